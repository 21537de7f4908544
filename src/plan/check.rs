//! Checks a program: what would hang is refused, with the ranks and operations named.

use std::collections::{HashMap, VecDeque};

use super::{Group, OpId, Plan, Program, Reduction, Tag, What};
use crate::trace::Stream;
use crate::units::{Collective, Rank};

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The layout or schedule does not go with the model or mesh.
    #[error("{0}")]
    Layout(String),
    /// Too much to count.
    #[error("the plan would have over {0} operations; lower the micro-batches or the GPUs")]
    TooLarge(u64),
    /// A send that no one receives.
    #[error(
        "rank {rank} sends {what} to rank {to}, but rank {to} never receives it: rank {rank} would wait forever"
    )]
    UnmatchedSend {
        /// Who sends.
        rank: Rank,
        /// What.
        what: String,
        /// To whom.
        to: Rank,
    },
    /// A receive of what no one sends.
    #[error(
        "rank {rank} receives {what} from rank {from}, but rank {from} never sends it: rank {rank} would wait forever"
    )]
    UnmatchedReceive {
        /// Who receives.
        rank: Rank,
        /// What.
        what: String,
        /// From whom.
        from: Rank,
    },
    /// The same message twice.
    #[error("rank {rank} sends {what} to rank {to} twice")]
    SentTwice {
        /// Who sends.
        rank: Rank,
        /// What.
        what: String,
        /// To whom.
        to: Rank,
    },
    /// A rank takes part in a collective of a group it is not in.
    #[error("rank {rank} takes part in {what} of a group that it is not in")]
    NotAMember {
        /// Who.
        rank: Rank,
        /// In what.
        what: String,
    },
    /// Members disagree on a collective.
    #[error(
        "collective number {number} of the {axis} group {members}: rank {rank} wants {wants}, but rank {other} wants {other_wants}"
    )]
    Mismatch {
        /// Which one of the group, from 0.
        number: usize,
        /// The group's axis.
        axis: &'static str,
        /// The group's ranks.
        members: String,
        /// A member.
        rank: Rank,
        /// What it wants.
        wants: String,
        /// Another member.
        other: Rank,
        /// What that one wants.
        other_wants: String,
    },
    /// Operations that wait for each other.
    #[error("the ranks would wait for each other forever: {0}")]
    Cycle(String),
}

impl Program {
    /// Checks the program. What comes out cannot hang.
    pub fn check(self) -> Result<Plan, PlanError> {
        let partners = match_messages(&self)?;
        let collectives = match_collectives(&self)?;
        let (order, sizes) = order(&self, &partners, &collectives)?;
        Ok(Plan {
            partners,
            heads: collectives.heads,
            order,
            sizes,
            program: self,
        })
    }

    /// An operation in words, for messages.
    fn describe(&self, id: OpId) -> String {
        let op = self.op(id);
        let label = &self.labels[op.label.0 as usize];
        match op.what {
            What::Send { tag, .. } => format!("send of {}", describe(tag)),
            What::Receive { tag, .. } => format!("receive of {}", describe(tag)),
            What::Compute { .. } => format!("{} on stage {}", label.short(), op.stage),
            What::Collective { .. } if label.pass.is_some() => {
                format!("{} of {} on stage {}", label.name, label.short(), op.stage)
            }
            What::Collective { .. } | What::Optimizer => label.name.clone().into_owned(),
        }
    }
}

fn describe(tag: Tag) -> String {
    let what = if tag.pass == crate::units::Pass::Forward {
        "the activation"
    } else {
        "the gradient"
    };
    format!(
        "{what} of micro-batch {} for stage {}",
        tag.micro_batch, tag.stage
    )
}

/// Pairs each send with its receive.
fn match_messages(program: &Program) -> Result<Vec<OpId>, PlanError> {
    let mut partners: Vec<OpId> = (0..program.ops.len() as u32).map(OpId).collect();
    let mut sends: HashMap<(Rank, Rank, Tag), OpId> = HashMap::new();
    for rank in ranks(program) {
        for id in program.ops_of(rank) {
            if let What::Send { to, tag } = program.op(id).what
                && sends.insert((rank, to, tag), id).is_some()
            {
                return Err(PlanError::SentTwice {
                    rank,
                    what: describe(tag),
                    to,
                });
            }
        }
    }
    for rank in ranks(program) {
        for id in program.ops_of(rank) {
            if let What::Receive { from, tag } = program.op(id).what {
                let unmatched = || PlanError::UnmatchedReceive {
                    rank,
                    what: describe(tag),
                    from,
                };
                let send = sends.remove(&(from, rank, tag)).ok_or_else(unmatched)?;
                partners[id.index()] = send;
                partners[send.index()] = id;
            }
        }
    }
    match sends.into_iter().min() {
        Some(((rank, to, tag), _)) => Err(PlanError::UnmatchedSend {
            rank,
            what: describe(tag),
            to,
        }),
        None => Ok(partners),
    }
}

fn ranks(program: &Program) -> impl Iterator<Item = Rank> + use<> {
    (0..program.starts.len() as u32 - 1).map(Rank)
}

/// Collectives with their members.
struct Collectives {
    /// The first member of each operation's collective, or itself.
    heads: Vec<OpId>,
    /// Members of the collective that an operation heads.
    members: HashMap<OpId, Vec<OpId>>,
}

/// Matches the members of collectives by their group and by how many each rank issued in it before, as
/// NCCL does.
fn match_collectives(program: &Program) -> Result<Collectives, PlanError> {
    let mut heads: Vec<OpId> = (0..program.ops.len() as u32).map(OpId).collect();
    let mut members = HashMap::new();
    for (index, calls) in calls_by_group(program)?.into_iter().enumerate() {
        let group = &program.groups[index];
        let longest = calls.iter().map(Vec::len).max().unwrap_or(0);
        for number in 0..longest {
            let of_all: Vec<Option<OpId>> = calls
                .iter()
                .map(|calls| calls.get(number).copied())
                .collect();
            let ids = agree(program, group, number, &of_all)?;
            for id in &ids {
                heads[id.index()] = ids[0];
            }
            members.insert(ids[0], ids);
        }
    }
    Ok(Collectives { heads, members })
}

/// For each group, for each of its members, the collectives that it issues, in order.
fn calls_by_group(program: &Program) -> Result<Vec<Vec<Vec<OpId>>>, PlanError> {
    let mut calls: Vec<Vec<Vec<OpId>>> = program
        .groups
        .iter()
        .map(|group| vec![Vec::new(); group.ranks.len()])
        .collect();
    for rank in ranks(program) {
        for id in program.ops_of(rank) {
            if let What::Collective { group, .. } = program.op(id).what {
                let members = program.groups.get(group as usize).map(|group| &group.ranks);
                let slot = members.and_then(|ranks| ranks.binary_search(&rank).ok());
                let outside = || PlanError::NotAMember {
                    rank,
                    what: program.describe(id),
                };
                calls[group as usize][slot.ok_or_else(outside)?].push(id);
            }
        }
    }
    Ok(calls)
}

/// All members' calls, if they want the same.
fn agree(
    program: &Program,
    group: &Group,
    number: usize,
    calls: &[Option<OpId>],
) -> Result<Vec<OpId>, PlanError> {
    let fingerprint = |call: Option<OpId>| -> Option<(Collective, Reduction, u64)> {
        match program.op(call?).what {
            What::Collective {
                kind,
                what,
                elements,
                ..
            } => Some((kind, what, elements)),
            What::Compute { .. } | What::Optimizer | What::Send { .. } | What::Receive { .. } => {
                None
            }
        }
    };
    let odd = calls
        .iter()
        .position(|&call| fingerprint(call) != fingerprint(calls[0]));
    if let Some(odd) = odd {
        let wants = |call: Option<OpId>| match (call, fingerprint(call)) {
            (Some(id), Some((.., elements))) => {
                format!("{} of {elements} elements", program.describe(id))
            }
            _ => "no more".to_owned(),
        };
        let members: Vec<String> = group.ranks.iter().map(ToString::to_string).collect();
        return Err(PlanError::Mismatch {
            number,
            axis: group.axis.name(),
            members: format!("[{}]", members.join(", ")),
            rank: group.ranks[0],
            wants: wants(calls[0]),
            other: group.ranks[odd],
            other_wants: wants(calls[odd]),
        });
    }
    Ok(calls.iter().copied().flatten().collect())
}

/// For each node, those that can only start once it is done; and how many each still waits for.
struct Graph {
    starts: Vec<u32>,
    successors: Vec<u32>,
    waiting: Vec<u32>,
}

/// Calls `edge(before, after)` for everything that an operation starts after.
fn edges(program: &Program, partners: &[OpId], mut edge: impl FnMut(OpId, OpId)) {
    for rank in ranks(program) {
        let mut last: [Option<OpId>; Stream::ALL.len()] = [None; Stream::ALL.len()];
        for id in program.ops_of(rank) {
            let op = program.op(id);
            for &wait in program.waits(op) {
                edge(wait, id);
            }
            if let What::Receive { .. } = op.what {
                edge(partners[id.index()], id);
            } else if let Some(before) = last[op.stream as usize].replace(id) {
                edge(before, id);
            }
        }
    }
}

fn graph(program: &Program, partners: &[OpId], heads: &[OpId]) -> Graph {
    let count = program.ops.len();
    let mut starts = vec![0_u32; count + 1];
    let mut waiting = vec![0_u32; count];
    edges(program, partners, |before, after| {
        starts[heads[before.index()].index() + 1] += 1;
        waiting[heads[after.index()].index()] += 1;
    });
    for index in 0..count {
        starts[index + 1] += starts[index];
    }
    let mut next = starts.clone();
    let mut successors = vec![0_u32; starts[count] as usize];
    edges(program, partners, |before, after| {
        let slot = &mut next[heads[before.index()].index()];
        successors[*slot as usize] = heads[after.index()].0;
        *slot += 1;
    });
    Graph {
        starts,
        successors,
        waiting,
    }
}

/// An order in which each operation comes after all that it waits for (Kahn's), or the circle that
/// prevents it.
fn order(
    program: &Program,
    partners: &[OpId],
    collectives: &Collectives,
) -> Result<(Vec<OpId>, Vec<u32>), PlanError> {
    let heads = &collectives.heads;
    let Graph {
        starts,
        successors,
        mut waiting,
    } = graph(program, partners, heads);
    let is_head = |index: &usize| heads[*index].index() == *index;
    let mut ready: VecDeque<u32> = (0..program.ops.len())
        .filter(is_head)
        .filter(|&index| waiting[index] == 0)
        .map(|index| index as u32)
        .collect();
    let mut order = Vec::with_capacity(program.ops.len());
    let mut sizes = Vec::with_capacity(program.ops.len());
    while let Some(node) = ready.pop_front() {
        let before = order.len();
        match collectives.members.get(&OpId(node)) {
            Some(members) => order.extend_from_slice(members),
            None => order.push(OpId(node)),
        }
        sizes.push((order.len() - before) as u32);
        for &after in
            &successors[starts[node as usize] as usize..starts[node as usize + 1] as usize]
        {
            waiting[after as usize] -= 1;
            if waiting[after as usize] == 0 {
                ready.push_back(after);
            }
        }
    }
    if order.len() < program.ops.len() {
        return Err(PlanError::Cycle(cycle(program, partners, heads, &waiting)));
    }
    Ok((order, sizes))
}

/// Walks back from a stuck operation to one that it has met before, and says the way round.
fn cycle(program: &Program, partners: &[OpId], heads: &[OpId], waiting: &[u32]) -> String {
    let stuck = |id: OpId| waiting[heads[id.index()].index()] > 0;
    let mut blocker: HashMap<OpId, (OpId, OpId)> = HashMap::new();
    edges(program, partners, |before, after| {
        if stuck(before) {
            blocker
                .entry(heads[after.index()])
                .or_insert((before, after));
        }
    });
    let first = (0..program.ops.len() as u32)
        .map(OpId)
        .find(|&id| stuck(id));
    let Some(mut at) = first.map(|id| heads[id.index()]) else {
        return "unknown".to_owned();
    };
    let mut met: Vec<OpId> = Vec::new();
    while !met.contains(&at) {
        met.push(at);
        match blocker.get(&at) {
            Some((before, _)) => at = heads[before.index()],
            None => break,
        }
    }
    let start = met.iter().position(|&id| id == at).unwrap_or(0);
    let steps = met[start..]
        .iter()
        .filter_map(|id| blocker.get(id))
        .map(|&(before, after)| {
            let (rank, other) = (program.rank_of(after), program.rank_of(before));
            format!(
                "rank {rank}'s {} waits for rank {other}'s {}",
                program.describe(after),
                program.describe(before)
            )
        });
    steps.take(12).collect::<Vec<_>>().join("; ")
}
