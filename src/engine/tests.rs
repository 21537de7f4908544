//! The clock against the textbook and published figures, and the words for the figures as properties.

use proptest::prelude::*;

use super::*;
use crate::hardware::{CostModel, Hardware, PassTimes, Precision, Price, Pricing as _};
use crate::mesh::{Fold, Mesh};
use crate::plan::{Job, Load, ModelLoad, Plan, Reduction, What, lower};
use crate::schedule::{Schedule, ScheduleKind};
use crate::shape::{GradFormat, Methods, ModelShape, Zero};
use crate::trace::{Bubbles, Memory, Stream, Trace};
use crate::units::{Nanos, Pass};

/// The two whose bubble depends on no pass's time.
const EVEN: [ScheduleKind; 2] = [ScheduleKind::GPipe, ScheduleKind::OneFOneB];

fn passes(kind: ScheduleKind, pp: usize, m: usize) -> Plan {
    let schedule = kind.build(pp, m, 1).unwrap();
    lower(&Job {
        fold: None,
        mesh: Mesh::new(1, 1, pp).unwrap(),
        schedule: &schedule,
        load: Load::Passes,
    })
    .unwrap()
}

fn classroom() -> CostModel {
    CostModel {
        hardware: Hardware::profile("classroom").unwrap(),
        precision: Precision::F32,
        gradients: GradFormat::F32,
    }
}

fn formula(pp: usize, m: usize) -> f64 {
    (pp - 1) as f64 / (m + pp - 1) as f64
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn unit_passes_take_33_units_and_leave_three_elevenths() {
    for kind in EVEN {
        let trace = simulate(&passes(kind, 4, 8), &PassTimes::unit(1));
        assert_eq!(trace.makespan, Nanos::from_millis(33.0));
        assert!(close(trace.bubbles().of_total, 3.0 / 11.0));
        assert!(close(trace.bubbles().of_ideal, 3.0 / 8.0));
    }
}

#[test]
fn the_zero_bubble_papers_1f1b_column_to_its_four_digits() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/zero_bubble_table5_9.csv"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let millis = |index: usize| Nanos::from_millis(cells[index].parse().unwrap());
        let times = PassTimes {
            forward: millis(3),
            input_grad: millis(4),
            weight_grad: millis(5),
            comm: millis(6),
            chunks: 1,
        };
        let (pp, m) = (cells[1].parse().unwrap(), cells[2].parse().unwrap());
        let trace = simulate(&passes(ScheduleKind::OneFOneB, pp, m), &times);
        let published: f64 = cells[7].parse().unwrap();
        assert_eq!(
            (trace.bubbles().stage_span * 1e4).round() / 1e4,
            published,
            "{line}"
        );
        rows += 1;
    }
    assert_eq!(rows, 8);
}

#[test]
fn with_fewer_micro_batches_than_stages_it_still_runs() {
    // CASES 1: m = 1 gives (p-1)/p.
    for kind in EVEN {
        for pp in [2, 4, 8] {
            let trace = simulate(&passes(kind, pp, 1), &PassTimes::unit(1));
            assert!(close(trace.bubbles().of_total, (pp - 1) as f64 / pp as f64));
        }
    }
}

/// One step in which every stage is alike, whatever it holds, and sends take no time: what the formulas
/// assume. Layers cost, with their tensor-parallel reductions; the embedding, the head and the loss do not;
/// gradients are reduced and the optimizer runs.
fn simulate_even(plan: &Plan) -> Trace {
    let labels = &plan.program().labels;
    clock::run(plan, |_, op| {
        let in_layer = labels[op.label.0 as usize].layer.is_some();
        let occupies = match op.what {
            What::Compute { place, .. } if in_layer => {
                if place.pass == Pass::Forward {
                    1000
                } else {
                    2000
                }
            }
            What::Collective {
                what: Reduction::Tensor(_),
                ..
            } if in_layer => 300,
            What::Collective {
                what: Reduction::Gradients(_) | Reduction::TiedEmbedding,
                elements,
                ..
            } => elements,
            What::Optimizer => 12_345,
            What::Compute { .. }
            | What::Send { .. }
            | What::Receive { .. }
            | What::Collective { .. } => 0,
        };
        Price {
            occupies: Nanos(occupies),
            delay: Nanos::ZERO,
        }
    })
}

fn model_plan(
    kind: ScheduleKind,
    degrees: [usize; 3],
    m: usize,
    overlap: bool,
    layers: usize,
) -> Plan {
    let shape = ModelShape {
        layers,
        ..ModelShape::preset("nano").unwrap()
    };
    let [dp, tp, pp] = degrees;
    let schedule = kind.build(pp, m, 1).unwrap();
    let load = ModelLoad {
        shape: &shape,
        micro_batch_size: 2,
        precision: Precision::F32,
        overlap,
        methods: Methods::default(),
        gpus_per_node: 4,
        layers_per_stage: None,
    };
    let mesh = Mesh::new(dp, tp, pp).unwrap();
    lower(&Job {
        fold: None,
        mesh,
        schedule: &schedule,
        load: Load::Model(load),
    })
    .unwrap()
}

fn splits_sum_to_the_makespan(trace: &Trace) -> bool {
    (0..trace.ranks.len()).all(|rank| trace.split(rank).total() == trace.makespan)
}

fn kinds() -> impl Strategy<Value = ScheduleKind> {
    prop::sample::select(EVEN.to_vec())
}

fn degrees() -> impl Strategy<Value = [usize; 3]> {
    let pick = |from: &'static [usize]| prop::sample::select(from);
    [pick(&[1, 2, 3]), pick(&[1, 2, 4]), pick(&[1, 2, 3, 4, 8])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_time_of_a_rank_sums_to_the_makespan(
        kind in kinds(), degrees in degrees(), m in 1usize..10, overlap: bool, layers in 1usize..9,
    ) {
        let costs = classroom();
        let trace = simulate(&model_plan(kind, degrees, m, overlap, layers), &costs);
        prop_assert!(splits_sum_to_the_makespan(&trace));
        let lanes = trace.lanes.iter().flat_map(|lane| lane.spans().windows(2));
        for pair in lanes {
            prop_assert!(pair[0].start <= pair[1].start);
        }
    }

    #[test]
    fn so_it_does_with_passes_of_any_time_and_sends_that_take_some(
        kind in kinds(), pp in 1usize..9, m in 1usize..17, times in [1u64..50, 1u64..50, 1u64..50, 0u64..50],
    ) {
        let [forward, input_grad, weight_grad, comm] = times.map(Nanos);
        let times = PassTimes { forward, input_grad, weight_grad, comm, chunks: 1 };
        prop_assert!(splits_sum_to_the_makespan(&simulate(&passes(kind, pp, m), &times)));
    }

    #[test]
    fn bubbles_follow_their_formulas_with_tp_dp_and_optimizer(
        kind in kinds(), degrees in degrees(), m in 1usize..13, overlap: bool, each in 1usize..3,
    ) {
        let [_, _, pp] = degrees;
        let trace = simulate_even(&model_plan(kind, degrees, m, overlap, each * pp));
        prop_assert!(splits_sum_to_the_makespan(&trace));
        let Bubbles { of_total, of_ideal, .. } = trace.bubbles();
        prop_assert!(close(of_total, formula(pp, m)), "{of_total}");
        prop_assert!(close(of_ideal, (pp - 1) as f64 / m as f64), "{of_ideal}");
    }

    #[test]
    fn gpipe_and_1f1b_take_the_published_time(
        kind in kinds(), pp in 1usize..17, m in 1usize..65, f in 1u64..50, i in 1u64..50, w in 1u64..50,
    ) {
        let times = PassTimes {
            forward: Nanos(f), input_grad: Nanos(i), weight_grad: Nanos(w), comm: Nanos::ZERO, chunks: 1,
        };
        let trace = simulate(&passes(kind, pp, m), &times);
        prop_assert_eq!(trace.makespan.0, (m + pp - 1) as u64 * (f + i + w));
        prop_assert!(close(trace.bubbles().of_total, formula(pp, m)));
        for rank in 0..pp {
            let in_flight = if kind == ScheduleKind::GPipe { m } else { m.min(pp - rank) };
            prop_assert_eq!(trace.ranks[rank].peak_in_flight as usize, in_flight);
        }
    }
}

#[test]
fn the_time_of_a_rank_sums_to_the_makespan_on_pytorchs_schedules_too() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/schedules");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let schedule = Schedule::from_csv(&text).unwrap();
        let plan = lower(&Job {
            fold: None,
            mesh: Mesh::new(1, 1, schedule.pp()).unwrap(),
            schedule: &schedule,
            load: Load::Passes,
        });
        let times = PassTimes {
            comm: Nanos(300_000),
            ..PassTimes::unit(2)
        };
        assert!(splits_sum_to_the_makespan(&simulate(
            &plan.unwrap(),
            &times
        )));
    }
}

#[test]
fn case_15_memory_under_1f1b_is_bounded_by_what_is_in_flight() {
    let costs = classroom();
    let peak = |m| {
        let plan = model_plan(ScheduleKind::OneFOneB, [1, 1, 4], m, true, 8);
        simulate(&plan, &costs)
            .memory
            .iter()
            .map(Memory::peak_activations)
            .collect::<Vec<_>>()
    };
    assert_eq!(peak(8), peak(64));
    let (first, third) = (peak(8)[0].0, peak(8)[2].0);
    assert_eq!(
        first,
        2 * third,
        "stage 0 holds four micro-batches, stage 2 two"
    );
}

#[test]
fn the_default_shows_bubble_transfer_and_waiting_and_mini_does_not_fit_one_gpu() {
    let share = |kind, degrees: [usize; 3], of: fn(crate::trace::TimeSplit) -> Nanos| {
        let trace = simulate(&model_plan(kind, degrees, 8, true, 8), &classroom());
        let sum: Nanos = (0..trace.ranks.len())
            .map(|rank| of(trace.split(rank)))
            .sum();
        sum.0 as f64 / (trace.makespan.0 * trace.ranks.len() as u64) as f64
    };
    let default = |of| share(ScheduleKind::OneFOneB, [2, 1, 4], of);
    assert!(default(|split| split.idle) > 0.2);
    assert!(default(|split| split.transfer) > 0.04);
    assert!(default(|split| split.waiting) > 0.01);
    // Without a pipeline there is no bubble, also where the loss is reduced several times in a row.
    assert_eq!(
        share(ScheduleKind::GPipe, [1, 4, 1], |split| split.idle),
        0.0
    );
    let mini = ModelShape::preset("mini").unwrap();
    assert!(mini.params() * 16 > classroom().hardware.memory().0);
}

#[test]
fn measured_times_take_their_place_on_the_same_clock() {
    let costs = classroom();
    let plan = model_plan(ScheduleKind::OneFOneB, [2, 2, 2], 4, true, 5);
    let program = plan.program();
    let price = |op: &crate::plan::Op| costs.price(&program.tasks[op.task.0 as usize]).occupies;
    let took: Vec<Nanos> = program.ops().iter().map(price).collect();
    assert_eq!(measured(&plan, &costs, &took), simulate(&plan, &costs));
    // Twice as slow a computation is twice as much of it, and transfers stay.
    let slow: Vec<Nanos> = took.iter().map(|&time| time * 2).collect();
    let (once, twice) = (simulate(&plan, &costs), measured(&plan, &costs, &slow));
    for rank in 0..8 {
        assert_eq!(twice.split(rank).compute, once.split(rank).compute * 2);
    }
}

#[test]
fn ranks_that_are_alike_may_be_told_by_one() {
    let costs = classroom();
    for degrees in [[4, 2, 4], [2, 4, 2], [8, 1, 2], [1, 4, 4]] {
        for (kind, zero, overlap) in [
            (ScheduleKind::OneFOneB, Zero::Off, true),
            (ScheduleKind::ZbV, Zero::Optimizer, true),
            (ScheduleKind::OneFOneB, Zero::Gradients, false),
            (ScheduleKind::ZbH1, Zero::Gradients, true),
            (ScheduleKind::OneFOneB, Zero::Parameters, true),
            (ScheduleKind::GPipe, Zero::Parameters, false),
        ] {
            let [dp, tp, pp] = degrees;
            let mesh = Mesh::new(dp, tp, pp).unwrap();
            let shape = ModelShape::preset("nano").unwrap();
            let schedule = kind.build(pp, 8, kind.chunks().count()).unwrap();
            let methods = Methods {
                zero,
                ..Methods::default()
            };
            let load = Load::Model(ModelLoad {
                shape: &shape,
                micro_batch_size: 2,
                precision: Precision::F32,
                overlap,
                methods,
                gpus_per_node: 4,
                layers_per_stage: None,
            });
            let run = |fold: Option<&Fold>| {
                let job = Job {
                    mesh,
                    fold,
                    schedule: &schedule,
                    load,
                };
                simulate(&lower(&job).unwrap(), &costs)
            };
            let fold = Fold::whole(mesh, 4).unwrap();
            let (all, told) = (run(None), run(Some(&fold)));
            assert_eq!(told.makespan, all.makespan);
            assert_eq!(told.gpus(), all.gpus());
            assert_eq!(told.bubbles(), all.bubbles());
            for index in 0..told.ranks.len() {
                let rank = told.ranks[index].rank.index();
                assert_eq!(told.split(index), all.split(rank));
                assert_eq!(told.memory[index], all.memory[rank]);
            }
        }
    }
}

/// Nano on 4 x 2 x 4 GPUs, four a node, under `how`.
fn disturbed(fold: Option<&Fold>, how: &Disturbance, seed: u64) -> Trace {
    let shape = ModelShape::preset("nano").unwrap();
    let load = Load::Model(ModelLoad {
        shape: &shape,
        micro_batch_size: 2,
        precision: Precision::F32,
        overlap: true,
        methods: Methods::default(),
        gpus_per_node: 4,
        layers_per_stage: None,
    });
    let job = Job {
        mesh: Mesh::new(4, 2, 4).unwrap(),
        fold,
        schedule: &ScheduleKind::OneFOneB.build(4, 8, 1).unwrap(),
        load,
    };
    simulate_disturbed(&lower(&job).unwrap(), &classroom(), how, seed)
}

#[test]
fn a_slow_gpu_holds_up_all_and_breaks_the_symmetry_only_where_it_must() {
    let mesh = Mesh::new(4, 2, 4).unwrap();
    let how = Disturbance {
        slow: vec![Slow {
            rank: 11,
            factor: 1.5,
        }],
        slow_links: vec![Slow {
            rank: 2,
            factor: 3.0,
        }],
        slow_pairs: vec![SlowPair {
            ranks: [8, 16],
            factor: 40.0,
        }],
        jitter: 0.0,
    };
    let even = disturbed(None, &Disturbance::default(), 1);
    let slow = disturbed(None, &how, 1);
    assert!(slow.makespan > even.makespan);
    // The others of its tensor-parallel group wait for it, at every collective.
    let (straggler, beside) = (slow.split(11), slow.split(10));
    assert!(straggler.compute > beside.compute && beside.waiting > straggler.waiting);
    let fold = Fold::around(mesh, 4, &how.ranks()).unwrap();
    let told = disturbed(Some(&fold), &how, 1);
    assert!(told.ranks.len() < slow.ranks.len());
    assert_eq!((told.makespan, told.gpus()), (slow.makespan, 32));
    for index in 0..told.ranks.len() {
        assert_eq!(
            told.split(index),
            slow.split(told.ranks[index].rank.index())
        );
    }
    let jitter = Disturbance {
        jitter: 0.2,
        ..Disturbance::default()
    };
    assert_eq!(disturbed(None, &jitter, 1), disturbed(None, &jitter, 1));
    assert_ne!(
        disturbed(None, &jitter, 1).makespan,
        disturbed(None, &jitter, 2).makespan
    );
    assert!(disturbed(None, &jitter, 1).makespan > even.makespan);
}

#[test]
fn a_slow_link_between_two_slows_their_messages_and_rings_alone() {
    let even = disturbed(None, &Disturbance::default(), 1);
    // A message between the two, 1F1B's from stage 1 to 2, and no ring: 8 and 16 are of no group but the pipeline's.
    let pair = Disturbance {
        slow_pairs: vec![SlowPair {
            ranks: [8, 16],
            factor: 40.0,
        }],
        ..Disturbance::default()
    };
    let parted = disturbed(None, &pair, 1);
    assert!(parted.makespan > even.makespan);
    let sends = |trace: &Trace, rank| trace.lane(rank, Stream::SendNext).spans()[0].duration();
    assert_eq!(sends(&parted, 9), sends(&even, 9));
    assert_eq!(sends(&parted, 8).0, 40 * sends(&even, 8).0);
    // Neighbours on a ring hold all of it up; those that are not, nothing.
    let ring = |ranks| {
        let slow_pairs = vec![SlowPair {
            ranks,
            factor: 40.0,
        }];
        let how = Disturbance {
            slow_pairs,
            ..Disturbance::default()
        };
        disturbed(None, &how, 1).makespan
    };
    assert!(ring([0, 2]) > even.makespan && ring([6, 0]) > even.makespan);
    assert_eq!(ring([0, 4]), even.makespan);
}

#[test]
fn what_queues_behind_a_collective_is_no_bubble() {
    // With no pipeline there is none, whatever data ranks gather and reduce (`ZeRO` 3).
    let shape = ModelShape::preset("nano").unwrap();
    for overlap in [true, false] {
        let load = Load::Model(ModelLoad {
            shape: &shape,
            micro_batch_size: 1,
            precision: Precision::F32,
            overlap,
            methods: Methods {
                zero: Zero::Parameters,
                ..Methods::default()
            },
            gpus_per_node: 2,
            layers_per_stage: None,
        });
        let job = Job {
            mesh: Mesh::new(8, 1, 1).unwrap(),
            fold: None,
            schedule: &ScheduleKind::OneFOneB.build(1, 4, 1).unwrap(),
            load,
        };
        let trace = simulate(&lower(&job).unwrap(), &classroom());
        assert_eq!(trace.bubbles().of_total, 0.0, "{overlap}");
        assert!(trace.split(0).transfer > Nanos::ZERO);
    }
}
