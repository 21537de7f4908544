//! Plans: what a checked one guarantees, and how a broken one is refused.

use super::*;
use crate::hardware::Precision;
use crate::schedule::{Schedule, ScheduleKind};
use crate::shape::{Methods, ModelShape, Zero};
use crate::units::Bytes;

fn shape(layers: usize) -> ModelShape {
    ModelShape {
        layers,
        ..ModelShape::preset("nano").unwrap()
    }
}

fn load(shape: &ModelShape) -> Load<'_> {
    Load::Model(ModelLoad {
        shape,
        micro_batch_size: 2,
        precision: Precision::F32,
        overlap: true,
        methods: Methods::default(),
        gpus_per_node: 4,
        layers_per_stage: None,
    })
}

fn lowered(shape: &ModelShape, degrees: [usize; 3], m: usize) -> Plan {
    let [dp, tp, pp] = degrees;
    let schedule = ScheduleKind::OneFOneB.build(pp, m, 1).unwrap();
    let mesh = Mesh::new(dp, tp, pp).unwrap();
    lower(&Job {
        fold: None,
        mesh,
        schedule: &schedule,
        load: load(shape),
    })
    .unwrap()
}

/// Two ranks on which operations are written by hand.
fn by_hand(write: impl FnOnce(&mut Program, NewOp)) -> Result<Plan, PlanError> {
    let mut program = Program::new(Mesh::new(2, 1, 1).unwrap());
    program.groups.push(Group {
        axis: Axis::Dp,
        ranks: vec![Rank(0), Rank(1)],
        size: 2,
    });
    let task = program.task(Task::Collective {
        kind: Collective::AllReduce,
        bytes: Bytes(4),
        ranks: 2,
        per_node: 2,
    });
    let label = program.label(Label::new(crate::trace::Kind::AllReduce, "all-reduce"));
    let what = What::Optimizer;
    let op = NewOp {
        what,
        stream: Stream::Dp,
        task,
        label,
        micro_batch: 0,
        stage: 0,
        memory: 0,
    };
    write(&mut program, op);
    program.check()
}

fn tag(stage: u32) -> Tag {
    Tag {
        pass: Pass::Forward,
        stage,
        micro_batch: 3,
    }
}

fn all_reduce(op: NewOp, elements: u64) -> NewOp {
    NewOp {
        what: What::Collective {
            kind: Collective::AllReduce,
            group: 0,
            what: Reduction::Norm,
            elements,
        },
        ..op
    }
}

fn send(op: NewOp, to: u32, stage: u32) -> NewOp {
    NewOp {
        what: What::Send {
            to: Rank(to),
            tag: tag(stage),
        },
        stream: Stream::SendNext,
        ..op
    }
}

fn receive(op: NewOp, from: u32, stage: u32) -> NewOp {
    NewOp {
        what: What::Receive {
            from: Rank(from),
            tag: tag(stage),
        },
        ..op
    }
}

#[test]
fn what_would_hang_is_refused_by_name() {
    let unmatched = by_hand(|program, op| {
        program.issue(send(op, 1, 1), &[]);
        program.end_rank();
        program.end_rank();
    });
    let unsent = by_hand(|program, op| {
        program.end_rank();
        program.issue(receive(op, 0, 1), &[]);
        program.end_rank();
    });
    // CASES 11: one rank reduces twice as many elements.
    let sizes = by_hand(|program, op| {
        program.issue(all_reduce(op, 16), &[]);
        program.end_rank();
        program.issue(all_reduce(op, 32), &[]);
        program.end_rank();
    });
    let missing = by_hand(|program, op| {
        program.issue(all_reduce(op, 16), &[]);
        program.end_rank();
        program.end_rank();
    });
    let cycle = by_hand(|program, op| {
        let first = program.issue(receive(op, 1, 0), &[]);
        program.issue(send(op, 1, 1), &[first]);
        program.end_rank();
        let first = program.issue(receive(op, 0, 1), &[]);
        program.issue(send(op, 0, 0), &[first]);
        program.end_rank();
    });
    let said: Vec<String> = [unmatched, unsent, sizes, missing, cycle]
        .into_iter()
        .map(|plan| plan.unwrap_err().to_string())
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn case_10_both_send_then_receive_does_not_hang() {
    let plan = by_hand(|program, op| {
        for (other, mine, theirs) in [(1, 0, 1), (0, 1, 0)] {
            let sent = program.issue(send(op, other, mine), &[]);
            let got = program.issue(receive(op, other, theirs), &[]);
            program.issue(
                NewOp {
                    stream: Stream::Compute,
                    ..op
                },
                &[sent, got],
            );
            program.end_rank();
        }
    })
    .unwrap();
    assert_eq!(plan.len(), 6);
}

#[test]
fn a_schedule_that_deadlocks_is_refused() {
    // Rank 0 wants its backward of micro-batch 0 before it sends micro-batch 1, rank 1 the other way.
    let csv = "0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1";
    let schedule = Schedule::from_csv(csv).unwrap();
    let mesh = Mesh::new(1, 1, 2).unwrap();
    let error = lower(&Job {
        fold: None,
        mesh,
        schedule: &schedule,
        load: Load::Passes,
    })
    .unwrap_err();
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn every_layer_of_every_pass_is_in_the_plan() {
    // CASES 2: 30 layers on 4 stages, 10 on 3.
    for (layers, pp) in [(30, 4), (10, 3), (5, 2), (2, 4)] {
        let shape = shape(layers);
        let plan = lowered(&shape, [1, 1, pp], 3);
        for pass in [Pass::Forward, Pass::Backward] {
            let mut seen = vec![0; layers];
            for op in plan.program().ops() {
                if let What::Compute {
                    segment: Some(Segment::Mlp(layer)),
                    place,
                } = op.what
                    && place.pass == pass
                {
                    seen[usize::from(layer)] += 1;
                }
            }
            assert_eq!(seen, vec![3; layers]);
        }
    }
}

#[test]
fn memory_that_is_taken_is_given_back() {
    let shape = shape(5);
    for degrees in [[1, 1, 1], [2, 2, 2], [1, 4, 3]] {
        let plan = lowered(&shape, degrees, 4);
        let program = plan.program();
        for rank in 0..program.mesh.ranks() as u32 {
            let sum: i64 = program
                .ops_of(Rank(rank))
                .map(|id| program.op(id).memory)
                .sum();
            assert_eq!(sum, 0);
        }
    }
}

#[test]
fn each_parameter_is_reduced_over_the_data_ranks_once() {
    let shape = shape(5);
    for overlap in [true, false] {
        for (tp, pp) in [(1, 1), (2, 1), (1, 2), (2, 3)] {
            let schedule = ScheduleKind::OneFOneB.build(pp, 4, 1).unwrap();
            let mesh = Mesh::new(2, tp, pp).unwrap();
            let Load::Model(load) = load(&shape) else {
                unreachable!()
            };
            let load = Load::Model(ModelLoad { overlap, ..load });
            let plan = lower(&Job {
                fold: None,
                mesh,
                schedule: &schedule,
                load,
            })
            .unwrap();
            let program = plan.program();
            for rank in (0..mesh.ranks() as u32).map(Rank) {
                let reduced: u64 = program
                    .ops_of(rank)
                    .filter_map(|id| match program.op(id).what {
                        What::Collective {
                            what: Reduction::Gradients(_),
                            elements,
                            ..
                        } => Some(elements),
                        What::Compute { .. }
                        | What::Optimizer
                        | What::Send { .. }
                        | What::Receive { .. }
                        | What::Collective { .. } => None,
                    })
                    .sum();
                let held = program.memory[rank.index()].parameters.0 / 4;
                assert_eq!(reduced, held, "rank {rank} of tp {tp} pp {pp}");
            }
        }
    }
}

/// Elements that data ranks gather and reduce in a step of so many micro-batches, in multiples of the parameters.
fn shared(zero: Zero, m: usize) -> (f64, f64) {
    let shape = shape(4);
    let Load::Model(load) = load(&shape) else {
        unreachable!("a model's")
    };
    let methods = Methods {
        zero,
        ..load.methods
    };
    let plan = lower(&Job {
        fold: None,
        mesh: Mesh::new(4, 1, 1).unwrap(),
        schedule: &ScheduleKind::OneFOneB.build(1, m, 1).unwrap(),
        load: Load::Model(ModelLoad { methods, ..load }),
    });
    let plan = plan.unwrap();
    let program = plan.program();
    let of = |wanted: Collective| {
        let elements = program
            .ops_of(Rank(0))
            .filter_map(|id| match program.op(id).what {
                What::Collective { kind, elements, .. } if kind == wanted => Some(elements),
                What::Collective { .. }
                | What::Compute { .. }
                | What::Optimizer
                | What::Send { .. }
                | What::Receive { .. } => None,
            });
        elements.sum::<u64>() as f64 / shape.params() as f64
    };
    (of(Collective::AllGather), of(Collective::ReduceScatter))
}

#[test]
fn zero_moves_two_or_three_times_the_parameters_and_more_for_each_micro_batch() {
    let shape = shape(4);
    let [token, positions] = [shape.embedding_params(1), (shape.seq * shape.hidden) as u64]
        .map(|params| params as f64 / shape.params() as f64);
    // Published for one micro-batch: 2, 2 and 3 times the parameters. The head multiplies by the embedding's matrix
    // here, which is gathered for it anew, and a backward pass has no use of positions.
    let passes = 2.0 + token - positions;
    let close = |(gathered, reduced): (f64, f64), wanted: (f64, f64)| {
        (gathered - wanted.0).abs() < 1e-9 && (reduced - wanted.1).abs() < 1e-9
    };
    assert!(close(shared(Zero::Optimizer, 1), (1.0, 1.0)));
    assert!(close(shared(Zero::Gradients, 1), (1.0, 1.0)));
    assert!(close(shared(Zero::Parameters, 1), (passes, 1.0)));
    assert!(close(shared(Zero::Optimizer, 8), (1.0, 1.0)));
    assert!(close(shared(Zero::Gradients, 8), (1.0, 8.0)));
    assert!(close(shared(Zero::Parameters, 8), (8.0 * passes, 8.0)));
}
