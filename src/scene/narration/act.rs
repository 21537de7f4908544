//! What one rank does at a time.

use crate::scene::blocks::kernel;
use crate::trace::{Arrivals, Arrow, Groups, Kind, Label, Phase, Span, Stream, Trace};
use crate::units::{Nanos, Pass};
use crate::words::{Language, say};

use super::words::{Noun, collective, kind_of, numbered, pass};

/// More members of a group are counted.
const MOST_NAMED: usize = 8;

/// The kind of what a rank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    Pass(Pass),
    Optimizer,
    Work,
    Collective,
    Transfer,
    Waiting,
    Idle,
    Nothing,
    Ended,
}

/// What a rank does.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) doing: Doing,
    /// Of the pass that it is in.
    pub(super) stage: Option<u32>,
    pub(super) micro_batch: Option<u32>,
    pub(super) what: String,
    /// The same without with whom.
    pub(super) brief: String,
}

impl Act {
    fn new(doing: Doing, brief: impl Into<String>) -> Self {
        let brief = brief.into();
        Self {
            doing,
            stage: None,
            micro_batch: None,
            what: brief.clone(),
            brief,
        }
    }

    /// With more about it that depends on the rank.
    fn and(mut self, more: &str) -> Self {
        self.what.push_str(more);
        self
    }

    /// Within a pass.
    fn within(mut self, of: Option<&Label>) -> Self {
        if let Some(of) = of {
            (self.stage, self.micro_batch) = (of.stage, of.micro_batch);
        }
        self
    }
}

/// What several acts of one kind are.
pub(super) fn kind(acts: &[&Act], language: Language) -> String {
    let what = match acts[0].doing {
        Doing::Pass(pass) => language.say(kind_of(pass)),
        Doing::Optimizer => say!(language, "optimizer step"),
        Doing::Work => say!(language, "computing"),
        Doing::Collective => {
            return say!(language, "in a collective with other GPUs").to_owned();
        }
        Doing::Transfer => {
            return say!(language, "waiting for a message on its way").to_owned();
        }
        Doing::Waiting => {
            return say!(language, "waiting for other GPUs in a collective").to_owned();
        }
        Doing::Idle => return say!(language, "idle").to_owned(),
        Doing::Nothing | Doing::Ended => return acts[0].what.clone(),
    };
    let batches: Vec<u32> = acts.iter().filter_map(|act| act.micro_batch).collect();
    if batches.is_empty() {
        return what.to_owned();
    }
    let batches = numbered(Noun::MicroBatch, batches, language);
    say!(language, "{what} of {batches}", what, batches)
}

/// Tells what ranks do at a time.
pub(super) struct Teller<'a> {
    pub(super) trace: &'a Trace,
    pub(super) arrivals: &'a Arrivals,
    pub(super) groups: Groups<'a>,
    pub(super) time: Nanos,
    pub(super) language: Language,
}

impl Teller<'_> {
    pub(super) fn act(&mut self, rank: usize) -> Act {
        if self.time >= self.trace.makespan {
            return Act::new(
                Doing::Ended,
                say!(self.language, "done with this training step"),
            );
        }
        let here = self.trace.lane(rank, Stream::Compute).at(self.time);
        let Some(span) = here.copied() else {
            return Act::new(Doing::Nothing, say!(self.language, "nothing to do"));
        };
        match span.phase {
            Phase::Busy => self.busy(rank, &span),
            Phase::Transfer => self.transfer(rank, &span),
            Phase::Waiting => self.waiting(rank),
            Phase::Idle => self.idle(rank, &span),
        }
    }

    /// What a lane is in now, in one way.
    fn on(&self, rank: usize, stream: Stream, phase: Phase) -> Option<&Label> {
        let span = self.trace.lane(rank, stream).at(self.time)?;
        (span.phase == phase).then(|| self.trace.label(span.label))
    }

    fn pass(&self, rank: usize) -> Option<&Label> {
        let label = self.on(rank, Stream::Passes, Phase::Busy)?;
        (label.kind == Kind::Pass).then_some(label)
    }

    fn busy(&self, rank: usize, span: &Span) -> Act {
        let label = self.trace.label(span.label);
        let own = self.pass(rank);
        let act = match (own.and_then(|own| own.pass), own) {
            (Some(kind), Some(own)) => {
                Act::new(Doing::Pass(kind), pass(own, self.language)).within(own.into())
            }
            _ if label.kind == Kind::Optimizer => Act::new(
                Doing::Optimizer,
                say!(self.language, "optimizer step, weights change"),
            ),
            _ => Act::new(Doing::Work, kernel(&label.name)),
        };
        match self.on(rank, Stream::Dp, Phase::Transfer) {
            Some(beside) => {
                let beside = collective(beside, self.language);
                act.and(&say!(self.language, "; meanwhile {beside}", beside))
            }
            None => act,
        }
    }

    fn transfer(&mut self, rank: usize, span: &Span) -> Act {
        let trace = self.trace;
        if let Some(label) = self.on(rank, Stream::Tp, Phase::Transfer).cloned() {
            return self.reduces(rank, &label);
        }
        if let Some(arrow) = self.arrivals.awaited(trace, rank, span) {
            let language = self.language;
            let what = pass(trace.label(arrow.label), language);
            let brief = say!(language, "waiting for the {what}, on its way", what);
            let from = say!(language, " from GPU {from}", from = arrow.from);
            return Act::new(Doing::Transfer, brief).and(&from);
        }
        if let Some(label) = self.on(rank, Stream::Dp, Phase::Transfer).cloned() {
            return self.reduces(rank, &label);
        }
        let name = &trace.label(span.label).name;
        Act::new(
            Doing::Transfer,
            say!(self.language, "waiting for data before {name}", name),
        )
    }

    /// In a collective that runs.
    fn reduces(&mut self, rank: usize, label: &Label) -> Act {
        let language = self.language;
        let mut members = self.others(rank, label);
        members.push(rank);
        let own = self.pass(rank);
        let before = own.map_or_else(String::new, |own| format!("{}, ", pass(own, language)));
        let what = collective(label, language);
        let brief = say!(language, "{before}in {what}", before, what);
        let act = Act::new(Doing::Collective, brief).within(own);
        // All members, so that they are told in one line.
        match self.named(&members, label) {
            Some(names) => act.and(&say!(language, " among {names}", names)),
            None => act,
        }
    }

    fn waiting(&mut self, rank: usize) -> Act {
        let language = self.language;
        let streams = [Stream::Tp, Stream::Dp];
        let found = streams.into_iter().find_map(|stream| {
            let label = self.on(rank, stream, Phase::Waiting)?;
            Some((stream, label.clone()))
        });
        let Some((stream, label)) = found else {
            return Act::new(Doing::Waiting, say!(language, "waiting for other GPUs"));
        };
        let mut late = self.others(rank, &label);
        late.retain(|&other| self.on(other, stream, Phase::Waiting) != Some(&label));
        let own = self.pass(rank);
        let before = own.map_or_else(String::new, |own| format!("{}, ", pass(own, language)));
        let what = collective(&label, language);
        let brief = say!(
            language,
            "{before}waiting for other GPUs in {what}",
            before,
            what
        );
        let mut act = Act::new(Doing::Waiting, brief).within(own);
        if let Some(names) = self.named(&late, &label) {
            act.what = say!(
                language,
                "{before}waiting for {names} in {what}",
                before,
                names,
                what
            );
        }
        act
    }

    /// The other members of a collective's group, as far as the trace has them.
    fn others(&mut self, rank: usize, label: &Label) -> Vec<usize> {
        let members = label.axis().map(|axis| self.groups.members(rank, axis));
        let mut others = members.unwrap_or_default().to_vec();
        others.retain(|&other| other != rank);
        others
    }

    /// Their names; none where there are none.
    fn named(&self, ranks: &[usize], label: &Label) -> Option<String> {
        let of = label.members as usize;
        if ranks.len() > MOST_NAMED {
            let group = label.group.as_deref().unwrap_or_default().to_uppercase();
            return Some(say!(
                self.language,
                "{count} GPUs of its {group} group",
                count = ranks.len(),
                group
            ));
        }
        // One rank may stand for several members.
        let stands = ranks.iter().any(|&rank| self.trace.ranks[rank].count > 1);
        if ranks.is_empty() || (stands && of > ranks.len()) {
            return None;
        }
        let numbers = ranks.iter().map(|&rank| self.trace.ranks[rank].rank.0);
        Some(numbered(Noun::Gpu, numbers.collect(), self.language))
    }

    fn idle(&self, rank: usize, gap: &Span) -> Act {
        let (trace, language) = (self.trace, self.language);
        if let Some(arrow) = self.arrivals.awaited(trace, rank, gap) {
            let what = pass(trace.label(arrow.label), language);
            let brief = say!(language, "idle; waiting for the {what}", what);
            let more = self.making(arrow);
            return Act::new(Doing::Idle, brief).and(&more);
        }
        let next = trace.label(gap.label);
        match next.kind {
            Kind::Pass | Kind::Segment => Act::new(
                Doing::Idle,
                say!(
                    language,
                    "idle; waiting for what the {what} needs",
                    what = pass(next, language)
                ),
            ),
            Kind::Optimizer
            | Kind::AllReduce
            | Kind::ReduceScatter
            | Kind::AllGather
            | Kind::Collective
            | Kind::Send
            | Kind::Kernel
            | Kind::Copy
            | Kind::End
            | Kind::Other => Act::new(
                Doing::Idle,
                say!(language, "idle; no pass left in this step"),
            ),
        }
    }

    /// How far the sender of a message is with it.
    fn making(&self, arrow: &Arrow) -> String {
        let (trace, language, gpu) = (self.trace, self.language, arrow.from);
        let of = trace.label(arrow.label);
        let from = trace.ranks.iter().position(|info| info.rank == arrow.from);
        let passes = from.map(|from| trace.lane(from, Stream::Passes).spans());
        let passes = passes.unwrap_or_default();
        let until = passes.partition_point(|span| span.start < arrow.left);
        let made = passes[..until].iter().rev().find(|span| {
            let label = trace.label(span.label);
            (label.pass, label.micro_batch, label.stage) == (of.pass, of.micro_batch, of.stage)
        });
        match made {
            Some(span) if span.end <= self.time => {
                say!(language, ", which GPU {gpu} has yet to send", gpu)
            }
            Some(span) if span.start <= self.time => {
                say!(language, ", which GPU {gpu} is computing", gpu)
            }
            _ => say!(language, ", which GPU {gpu} has yet to make", gpu),
        }
    }
}
