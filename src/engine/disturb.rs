//! What slows some ranks down: a straggler, a slow link, jitter.

use serde::{Deserialize, Serialize};

use crate::hardware::Price;
use crate::model::rng::Rng;
use crate::plan::{Group, Op, OpId, Program, What};
use crate::units::{Nanos, Rank};

/// How a run differs from one in which all GPUs and links are alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disturbance {
    /// GPUs that compute more slowly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<Slow>,
    /// GPUs whose links are slower: all that they send, receive or take part in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slow_links: Vec<Slow>,
    /// Pairs of GPUs between which the link is slower: messages between them, and rings that pass from one to the other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slow_pairs: Vec<SlowPair>,
    /// By what share a computation takes longer at most, drawn for each one of each GPU.
    #[serde(skip_serializing_if = "is_none")]
    pub jitter: f64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands it a reference"
)]
fn is_none(jitter: &f64) -> bool {
    *jitter == 0.0
}

/// A GPU, and how many times as long what it does takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Which.
    pub rank: u32,
    /// How many times as long.
    pub factor: f64,
}

/// Two GPUs, and how many times as long what goes between them takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowPair {
    /// Which, in any order.
    pub ranks: [u32; 2],
    /// How many times as long.
    pub factor: f64,
}

impl SlowPair {
    fn joins(&self, one: Rank, other: Rank) -> bool {
        self.ranks == [one.0, other.0] || self.ranks == [other.0, one.0]
    }
}

impl Disturbance {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The ranks that stand out.
    pub fn ranks(&self) -> Vec<Rank> {
        let all = self.slow.iter().chain(&self.slow_links);
        let pairs = self.slow_pairs.iter().flat_map(|pair| pair.ranks);
        all.map(|slow| slow.rank).chain(pairs).map(Rank).collect()
    }

    /// Forgets what is of ranks beyond the first `gpus`.
    pub fn keep_within(&mut self, gpus: usize) {
        let known = |rank: u32| (rank as usize) < gpus;
        self.slow.retain(|slow| known(slow.rank));
        self.slow_links.retain(|slow| known(slow.rank));
        self.slow_pairs
            .retain(|pair| pair.ranks.into_iter().all(known));
    }

    /// In words: `GPU 3 takes 2 × as long`, `link 0-4 takes 10 × as long`; or `no straggler`.
    pub fn describe(&self) -> String {
        let gpus = self.slow.iter();
        let gpus = gpus.map(|slow| format!("GPU {} takes {} × as long", slow.rank, slow.factor));
        let links = self.slow_links.iter();
        let links =
            links.map(|slow| format!("GPU {}'s links take {} × as long", slow.rank, slow.factor));
        let pairs = self.slow_pairs.iter().map(|pair| {
            let [one, other] = pair.ranks;
            format!("link {one}-{other} takes {} × as long", pair.factor)
        });
        let jitter = (self.jitter > 0.0)
            .then(|| format!("jitter {} %", (self.jitter * 1e4).round() / 100.0));
        let all: Vec<String> = gpus.chain(links).chain(pairs).chain(jitter).collect();
        if all.is_empty() {
            "no straggler".to_owned()
        } else {
            all.join(", ")
        }
    }

    /// How many times as long what goes from one rank to another takes, of its link alone.
    fn between(&self, one: Rank, other: Rank) -> f64 {
        let found = self.slow_pairs.iter().filter(|pair| pair.joins(one, other));
        found.map(|pair| pair.factor).product()
    }
}

/// How much slower the slowest link of a group's ring is; each of all its members, told or not, sends to the next.
fn slowest_hop(program: &Program, how: &Disturbance, group: &Group) -> f64 {
    let (false, Some(&first)) = (how.slow_pairs.is_empty(), group.ranks.first()) else {
        return 1.0;
    };
    let mesh = program.fold.mesh;
    let members = mesh.group(group.axis, mesh.coord(program.real(first)));
    let next = members.iter().cycle().skip(1);
    let hops = members.iter().zip(next);
    hops.map(|(&from, &to)| how.between(from, to))
        .fold(1.0, f64::max)
}

/// A disturbance of a plan's ranks and groups.
pub(super) struct Disturbed<'a> {
    program: &'a Program,
    how: &'a Disturbance,
    /// Of each rank of the plan: how much slower it computes, and its links are.
    ranks: Vec<(f64, f64)>,
    /// Of each group: how much slower the slowest of its members' links are.
    groups: Vec<f64>,
    owners: Vec<u32>,
    jitter: f64,
    seed: u64,
}

impl<'a> Disturbed<'a> {
    pub(super) fn new(program: &'a Program, how: &'a Disturbance, seed: u64) -> Self {
        let of = |list: &[Slow], rank: Rank| -> f64 {
            let found = list.iter().filter(|slow| slow.rank == rank.0);
            found.map(|slow| slow.factor).product()
        };
        let ranks: Vec<(f64, f64)> = (0..program.mesh.ranks() as u32)
            .map(|cell| program.real(Rank(cell)))
            .map(|rank| (of(&how.slow, rank), of(&how.slow_links, rank)))
            .collect();
        let groups = program.groups.iter().map(|group| {
            let factors = group.ranks.iter().map(|rank| ranks[rank.index()].1);
            factors.fold(slowest_hop(program, how, group), f64::max)
        });
        Self {
            groups: groups.collect(),
            program,
            how,
            ranks,
            owners: program.owners(),
            jitter: how.jitter,
            seed,
        }
    }

    /// What an operation costs under it.
    pub(super) fn price(&self, id: OpId, op: &Op, price: Price) -> Price {
        let rank = self.owners[id.index()] as usize;
        let factor = match op.what {
            What::Compute { .. } | What::Optimizer => self.ranks[rank].0 * self.drawn(rank, id),
            What::Send { to, .. } => {
                let from = Rank(rank as u32);
                let link = self
                    .how
                    .between(self.program.real(from), self.program.real(to));
                let slower = self.ranks[rank].1.max(self.ranks[to.index()].1);
                slower.max(link)
            }
            What::Collective { group, .. } => self.groups[group as usize],
            What::Receive { .. } => 1.0,
        };
        let scaled = |time: Nanos| Nanos((time.0 as f64 * factor).round() as u64);
        if factor == 1.0 {
            return price;
        }
        Price {
            occupies: scaled(price.occupies),
            delay: scaled(price.delay),
        }
    }

    /// One, and a share up to the jitter: the same for a seed, a rank and the place of the operation on it.
    fn drawn(&self, rank: usize, id: OpId) -> f64 {
        if self.jitter == 0.0 {
            return 1.0;
        }
        let first = self
            .program
            .ops_of(Rank(rank as u32))
            .next()
            .map_or(0, |id| id.0);
        let place = self.seed ^ ((rank as u64) << 40) ^ u64::from(id.0 - first);
        let bits = Rng::from_state(place).next_u64();
        1.0 + self.jitter * (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}
