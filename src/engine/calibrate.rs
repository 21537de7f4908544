//! How fast this machine is: products by size, copies, messages and collectives between two threads. Each figure is the
//! median of several tries, so that what else runs here for a moment does not count.

use std::hint::black_box;
use std::thread;

use candle_core::{DType, Device, Tensor};

use super::step::StepError;
use crate::comm::{
    Algorithm, Buffer, Call, Communicator as _, Fold, Kind, SharedComm, World, WorldSpec,
};
use crate::model::{ModelError, product};
use crate::units::{Bytes, Nanos};
use crate::wall::Stopwatch;

/// Sizes of the square matrices that are multiplied.
const SIZES: [usize; 5] = [32, 64, 128, 256, 512];
/// Tries of each figure.
const TRIES: usize = 9;
/// Elements that are copied and reduced: more than caches hold.
const LARGE: usize = 4 << 20;
/// How long ranks wait for each other before something is wrong.
const TIMEOUT: Nanos = Nanos(30_000_000_000);

/// A collective's time between two ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollectiveTime {
    /// Its name.
    pub name: &'static str,
    /// Of a single element.
    pub smallest: Nanos,
    /// Of [`Speeds::large`].
    pub large: Nanos,
}

/// How fast this machine is, on one thread or between two.
#[derive(Clone, Debug, PartialEq)]
pub struct Speeds {
    /// Products of square float32 matrices: their size, and FLOP/s.
    pub products: Vec<(usize, f64)>,
    /// Bytes copied in a second (each read once and written once).
    pub copied: f64,
    /// The time of the smallest product, which is all beginning and end.
    pub launch: Nanos,
    /// From a send to its receipt.
    pub message: Nanos,
    /// What large copies and collectives are of.
    pub large: Bytes,
    /// Collectives of two ranks.
    pub collectives: Vec<CollectiveTime>,
}

impl Speeds {
    /// The highest rate of products, in FLOP/s.
    pub fn peak(&self) -> f64 {
        self.products
            .iter()
            .map(|&(_, rate)| rate)
            .fold(0.0, f64::max)
    }

    /// The time of a collective, by its name.
    pub fn collective(&self, name: &str) -> Option<&CollectiveTime> {
        self.collectives.iter().find(|time| time.name == name)
    }
}

/// What is measured, one after the other; `tell` hears of each before it begins, and of how many there are.
pub fn calibrate(tell: &mut dyn FnMut(usize, usize, &str)) -> Result<Speeds, StepError> {
    let kinds = [
        Kind::AllReduce(Fold::Sum),
        Kind::ReduceScatter,
        Kind::AllGather,
        Kind::Broadcast { root: 0 },
    ];
    let all = SIZES.len() + 3 + kinds.len();
    let mut done = 0;
    let mut next = |what: &str| {
        tell(done, all, what);
        done += 1;
    };
    let mut products = Vec::new();
    for size in SIZES {
        next(&format!("products of {size} x {size}"));
        products.push((size, rate_of(size)?));
    }
    next("copies");
    let copied = copies();
    next("the smallest product");
    let launch = smallest()?;
    next("messages");
    let message = between_two(messages)?;
    let mut collectives = Vec::new();
    for kind in kinds {
        next(kind.name());
        collectives.push(CollectiveTime {
            name: kind.name(),
            smallest: between_two(|comm| collective(comm, kind, 2))?,
            large: between_two(|comm| collective(comm, kind, LARGE))?,
        });
    }
    Ok(Speeds {
        products,
        copied,
        launch,
        message,
        large: Bytes(4 * LARGE as u64),
        collectives,
    })
}

/// The median of several tries, without the first, which finds nothing in the caches.
fn median<E>(mut once: impl FnMut() -> Result<Nanos, E>) -> Result<Nanos, E> {
    once()?;
    let tries: Result<Vec<Nanos>, E> = (0..TRIES).map(|_| once()).collect();
    let mut tries = tries?;
    tries.sort_unstable();
    Ok(tries[TRIES / 2])
}

fn rate_of(size: usize) -> Result<f64, ModelError> {
    let matrix = Tensor::ones((size, size), DType::F32, &Device::Cpu)?;
    let flops = 2.0 * (size as f64).powi(3);
    // Long enough for the clock.
    let count = ((2e7 / flops) as usize).max(1);
    let time = median(|| {
        let watch = Stopwatch::start();
        for _ in 0..count {
            black_box(product(&matrix, &matrix)?);
        }
        Ok::<_, ModelError>(watch.elapsed())
    })?;
    Ok(flops * count as f64 / time.secs())
}

fn smallest() -> Result<Nanos, ModelError> {
    const COUNT: u64 = 1000;
    let matrix = Tensor::ones((2, 2), DType::F32, &Device::Cpu)?;
    let time = median(|| {
        let watch = Stopwatch::start();
        for _ in 0..COUNT {
            black_box(product(&matrix, &matrix)?);
        }
        Ok::<_, ModelError>(watch.elapsed())
    })?;
    Ok(Nanos(time.0 / COUNT))
}

fn copies() -> f64 {
    let from = vec![1.0_f32; LARGE];
    let mut to = vec![0.0_f32; LARGE];
    let time = median(|| {
        let watch = Stopwatch::start();
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        Ok::<_, ModelError>(watch.elapsed())
    });
    time.map_or(0.0, |time| 4.0 * LARGE as f64 / time.secs())
}

/// What the first of two ranks measures, while the second does the same.
fn between_two(
    measure: impl Fn(&mut SharedComm<()>) -> Result<Nanos, StepError> + Sync,
) -> Result<Nanos, StepError> {
    let world = WorldSpec {
        ranks: 2,
        groups: vec![vec![0, 1]],
        timeout: TIMEOUT,
        algorithm: Algorithm::Direct,
        own_cores: super::training::cores() >= 2,
        names: Box::new(|_| "a measurement".to_owned()),
    };
    let measure = &measure;
    let results = thread::scope(|scope| {
        let start = |mut comm: SharedComm<()>| {
            let name = format!("rank {}", comm.rank());
            let work = move || measure(&mut comm);
            thread::Builder::new().name(name).spawn_scoped(scope, work)
        };
        let threads: Vec<_> = World::create(world).into_iter().map(start).collect();
        let join = |thread: std::io::Result<thread::ScopedJoinHandle<'_, _>>| {
            let failed = |why: String| StepError::Thread(why);
            let thread = thread.map_err(|error| failed(error.to_string()))?;
            thread
                .join()
                .unwrap_or_else(|_panic| Err(failed("it panicked".to_owned())))
        };
        let joined = threads.into_iter().map(join);
        joined.collect::<Vec<Result<Nanos, StepError>>>()
    });
    let mut times = results.into_iter();
    let first = times.next().unwrap_or(Ok(Nanos::ZERO))?;
    times.try_for_each(|other| other.map(drop))?;
    Ok(first)
}

/// Half of a message there and one back.
fn messages(comm: &mut SharedComm<()>) -> Result<Nanos, StepError> {
    const COUNT: u32 = 200;
    let mut number = 0;
    let time = median(|| {
        let watch = Stopwatch::start();
        for _ in 0..COUNT {
            number += 1;
            let other = 1 - comm.rank();
            if comm.rank() == 0 {
                comm.send(other, number, ())?;
                comm.receive(other, number)?;
            } else {
                comm.receive(other, number)?;
                comm.send(other, number, ())?;
            }
        }
        Ok::<_, StepError>(watch.elapsed())
    })?;
    Ok(Nanos(time.0 / u64::from(COUNT) / 2))
}

fn collective(comm: &mut SharedComm<()>, kind: Kind, elements: usize) -> Result<Nanos, StepError> {
    let mut memory = Some(Buffer::from(vec![0.0; elements]));
    median(|| {
        let mut call = |kind, buffer| -> Result<Buffer, StepError> {
            let call = Call {
                group: 0,
                kind,
                what: 0,
            };
            let ticket = comm.start(call, buffer)?;
            Ok(comm.wait(ticket)?.buffer)
        };
        call(Kind::Barrier, Buffer::empty())?;
        let watch = Stopwatch::start();
        let buffer = memory.take().unwrap_or_else(Buffer::empty);
        memory = Some(call(kind, buffer)?);
        Ok(watch.elapsed())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_measured_and_told_of() {
        let mut told = Vec::new();
        let mut all = 0;
        let speeds = calibrate(&mut |done, of, what| {
            assert_eq!(done, told.len());
            all = of;
            told.push(what.to_owned());
        });
        let speeds = speeds.unwrap();
        assert_eq!(told.len(), all);
        assert!(speeds.products.iter().all(|&(_, rate)| rate > 0.0));
        assert!(speeds.copied > 0.0 && speeds.message > Nanos::ZERO);
        assert_eq!(speeds.collectives.len(), 4);
        let reduce = speeds.collective("all-reduce").unwrap();
        assert!(reduce.large > reduce.smallest);
    }
}
