//! Messages from rank to rank.

use super::*;

#[test]
fn messages_are_taken_in_any_order() {
    run(world(3, &[]), |mut comm| {
        let rank = comm.rank();
        let others: Vec<u32> = (0..3).filter(|&other| other != rank).collect();
        for what in 0..50 {
            for &to in &others {
                comm.send(to, what, vec![(100 * rank + what) as f32])
                    .unwrap();
            }
        }
        for what in (0..50).rev() {
            for &from in &others {
                let arrival = comm.receive(from, what).unwrap();
                assert_eq!(arrival.message, [(100 * from + what) as f32]);
                assert!(arrival.sent <= comm.now());
            }
        }
    });
}

#[test]
fn a_message_is_handed_over_not_copied() {
    let mine: Message = vec![f32::from_bits(0x7fc0_1234), -0.0, f32::from_bits(1), 1.5];
    let place = mine.as_ptr() as usize;
    let bits: Vec<u32> = mine.iter().map(|value| value.to_bits()).collect();
    let mine = std::sync::Mutex::new(Some(mine));
    run(world(2, &[]), move |mut comm| {
        if comm.rank() == 0 {
            let message = mine.lock().unwrap().take().unwrap();
            comm.send(1, 7, message).unwrap();
        } else {
            let message = comm.receive(0, 7).unwrap().message;
            assert_eq!(message.as_ptr() as usize, place);
            assert!(message.iter().map(|value| value.to_bits()).eq(bits.clone()));
        }
    });
}

#[test]
fn a_name_is_free_again_once_its_message_was_taken() {
    let end = run(world(2, &[]), |mut comm| {
        let other = 1 - comm.rank();
        let mut value = 0.0;
        for _ in 0..500 {
            if comm.rank() == 0 {
                comm.send(other, 3, vec![value]).unwrap();
                value = comm.receive(other, 3).unwrap().message[0] + 1.0;
            } else {
                value = comm.receive(other, 3).unwrap().message[0] + 1.0;
                comm.send(other, 3, vec![value]).unwrap();
            }
        }
        value
    });
    assert_eq!(end, [1000.0, 999.0]);
}

#[test]
fn what_was_sent_before_a_rank_ended_still_arrives() {
    run(world(2, &[]), |mut comm| {
        if comm.rank() == 0 {
            comm.send(1, 1, vec![4.0]).unwrap();
        } else {
            thread::sleep(Duration::from_millis(30));
            assert_eq!(comm.receive(0, 1).unwrap().message, [4.0]);
        }
    });
}

#[test]
fn what_was_joined_before_a_rank_ended_is_still_done() {
    for len in [4, 300_000] {
        run(together(3), move |mut comm| {
            let ticket = comm.start(call(SUM, 0), vec![1.0; len].into()).unwrap();
            if comm.rank() != 1 {
                thread::sleep(Duration::from_millis(30));
                let sum = comm.wait(ticket).unwrap().buffer;
                assert!(sum.read(0).iter().all(|&value| value == 3.0));
            }
        });
    }
}
