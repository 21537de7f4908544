//! How long all-reduces take: `allreduce copy MIB`, or `allreduce direct|ring RANKS MIB`; prints seconds, the median.

use std::error::Error;
use std::hint::black_box;
use std::thread;

use comm_model::comm::{
    Algorithm, Buffer, Call, Communicator, Fault, Fold, Kind, SharedComm, World, WorldSpec,
};
use comm_model::units::Nanos;

/// Rounds, of which the first are not counted.
const ROUNDS: usize = 12;
const WARM_UP: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let took = match arguments[..] {
        ["copy", mib] => copy(elements(mib)?)?,
        ["direct", ranks, mib] => all_reduce(Algorithm::Direct, ranks.parse()?, elements(mib)?)?,
        ["ring", ranks, mib] => all_reduce(Algorithm::Ring, ranks.parse()?, elements(mib)?)?,
        _ => return Err("usage: allreduce copy MIB | direct RANKS MIB | ring RANKS MIB".into()),
    };
    println!("{:.9}", median(took).secs());
    Ok(())
}

fn elements(mib: &str) -> Result<usize, Box<dyn Error>> {
    Ok((mib.parse::<f64>()? * 1024.0 * 1024.0 / 4.0) as usize)
}

fn median(mut took: Vec<Nanos>) -> Nanos {
    took.drain(..WARM_UP);
    took.sort_unstable();
    took[took.len() / 2]
}

fn world(ranks: usize, algorithm: Algorithm) -> Vec<SharedComm<()>> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    World::create(WorldSpec {
        ranks,
        groups: vec![(0..ranks as u32).collect()],
        timeout: Nanos::from_secs(60.0),
        algorithm,
        own_cores: ranks <= cores,
        names: Box::new(|_| "the benchmark".to_owned()),
    })
}

/// One core's copy from touched memory to touched memory.
fn copy(elements: usize) -> Result<Vec<Nanos>, Box<dyn Error>> {
    let clock = world(1, Algorithm::Direct)
        .pop()
        .ok_or("a world without ranks")?;
    let (from, mut to) = (vec![1.0_f32; elements], vec![2.0_f32; elements]);
    let one = |_| {
        let since = clock.now();
        black_box(&mut to).copy_from_slice(black_box(&from));
        clock.now().since(since)
    };
    Ok((0..ROUNDS).map(one).collect())
}

/// What rank 0 measures, each round after a barrier.
fn all_reduce(
    algorithm: Algorithm,
    ranks: usize,
    elements: usize,
) -> Result<Vec<Nanos>, Box<dyn Error>> {
    let mut threads = Vec::new();
    for comm in world(ranks, algorithm) {
        let name = format!("rank {}", comm.rank());
        let body = move || rounds(comm, elements);
        threads.push(thread::Builder::new().name(name).spawn(body)?);
    }
    let mut first = None;
    for thread in threads {
        let took = thread.join().map_err(|_| "a rank panicked")??;
        first.get_or_insert(took);
    }
    Ok(first.ok_or("a world without ranks")?)
}

fn rounds(mut comm: SharedComm<()>, elements: usize) -> Result<Vec<Nanos>, Fault> {
    let call = |kind| Call {
        group: 0,
        kind,
        what: 0,
    };
    let mut buffer = Buffer::from(vec![1.0; elements]);
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let barrier = comm.start(call(Kind::Barrier), Buffer::empty())?;
        comm.wait(barrier)?;
        let since = comm.now();
        let ticket = comm.start(call(Kind::AllReduce(Fold::Sum)), buffer)?;
        buffer = comm.wait(ticket)?.buffer;
        took.push(comm.now().since(since));
    }
    Ok(took)
}
