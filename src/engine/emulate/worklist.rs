//! A worklist over the data graph: ready nodes are run, the most urgent first, by as many threads as there
//! are; with one, on the caller's own, as a browser needs it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use super::data::DataGraph;
use super::{StepError, lock};
use crate::plan::OpId;

/// What is left to do.
struct List {
    ready: BinaryHeap<Reverse<u32>>,
    waiting: Vec<u32>,
    left: usize,
    failed: Option<StepError>,
}

/// Runs every node of the graph after all that it waits for.
pub(super) fn run(
    graph: &DataGraph,
    threads: usize,
    stop: &AtomicBool,
    work: &(dyn Fn(OpId) -> Result<(), StepError> + Sync),
) -> Result<(), StepError> {
    let waiting = graph.waiting();
    let ready = (0..graph.len() as u32)
        .filter(|&node| waiting[node as usize] == 0)
        .map(Reverse)
        .collect();
    let list = Mutex::new(List {
        ready,
        waiting,
        left: graph.len(),
        failed: None,
    });
    let changed = Condvar::new();
    let worker = || {
        while let Some(node) = next(&list, &changed, stop) {
            let done = guarded(work, graph.node(node));
            finish(&list, &changed, graph, node, done);
        }
    };
    side_by_side(threads, &worker)?;
    let list = list.into_inner().unwrap_or_else(PoisonError::into_inner);
    match list.failed {
        Some(error) => Err(error),
        None if list.left > 0 => Err(StepError::Stopped),
        None => Ok(()),
    }
}

/// Runs `nodes`, which wait for nothing, in any order.
pub(super) fn run_all(
    nodes: &[OpId],
    threads: usize,
    stop: &AtomicBool,
    work: &(dyn Fn(OpId) -> Result<(), StepError> + Sync),
) -> Result<(), StepError> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    let worker = || {
        while let Some(&node) = nodes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = if stop.load(Ordering::Relaxed) {
                Err(StepError::Stopped)
            } else {
                guarded(work, node)
            };
            if let Err(error) = done {
                lock(&failed).get_or_insert(error);
                return;
            }
        }
    };
    side_by_side(threads, &worker)?;
    failed
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(()), Err)
}

/// Runs `worker` on so many threads, of which the caller's is one, until all return.
fn side_by_side(threads: usize, worker: &(dyn Fn() + Sync)) -> Result<(), StepError> {
    if threads <= 1 {
        worker();
        return Ok(());
    }
    std::thread::scope(|scope| {
        for index in 1..threads {
            let named = std::thread::Builder::new().name(format!("emulate-{index}"));
            named
                .spawn_scoped(scope, worker)
                .map_err(|error| StepError::Thread(error.to_string()))?;
        }
        worker();
        Ok(())
    })
}

/// A panic in the maths ends the step, not the program, and leaves no thread waiting.
fn guarded(
    work: &(dyn Fn(OpId) -> Result<(), StepError> + Sync),
    node: OpId,
) -> Result<(), StepError> {
    catch_unwind(AssertUnwindSafe(|| work(node))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic");
        Err(StepError::Thread(text.to_owned()))
    })
}

/// The most urgent ready node; waits for one while others run. None once there is nothing left to do.
fn next(list: &Mutex<List>, changed: &Condvar, stop: &AtomicBool) -> Option<u32> {
    let mut list = lock(list);
    loop {
        if list.left == 0 || list.failed.is_some() || stop.load(Ordering::Relaxed) {
            changed.notify_all();
            return None;
        }
        if let Some(Reverse(node)) = list.ready.pop() {
            return Some(node);
        }
        list = changed.wait(list).unwrap_or_else(PoisonError::into_inner);
    }
}

fn finish(
    list: &Mutex<List>,
    changed: &Condvar,
    graph: &DataGraph,
    node: u32,
    done: Result<(), StepError>,
) {
    let mut list = lock(list);
    if let Err(error) = done {
        list.failed.get_or_insert(error);
        changed.notify_all();
        return;
    }
    list.left -= 1;
    let mut freed = 0;
    for &after in graph.successors(node) {
        let waiting = &mut list.waiting[after as usize];
        *waiting -= 1;
        if *waiting == 0 {
            list.ready.push(Reverse(after));
            freed += 1;
        }
    }
    // This thread takes one of them itself; the others are for whoever waits.
    if freed > 1 || list.left == 0 {
        changed.notify_all();
    }
}
