//! Tests of changes and their offers.

use super::*;

fn refused(asked: Change) -> Refusal {
    let config = Config::default();
    let error = asked.applied(&config).unwrap_err();
    refuse(&config, asked, &error)
}

#[test]
fn an_illegal_degree_says_why_and_offers_its_neighbours() {
    let refusal = refused(Change::Number(Field::Tp, 3));
    assert!(refusal.reason.contains("whole heads"), "{}", refusal.reason);
    let offers: Vec<String> = refusal
        .offers
        .iter()
        .map(|offer| refusal.offer_text(offer))
        .collect();
    assert_eq!(offers[..2], ["Tensor parallel 2", "Tensor parallel 4"]);
}

#[test]
fn zero_offers_one() {
    let refusal = refused(Change::Number(Field::Dp, 0));
    assert_eq!(refusal.offers[0], [Change::Number(Field::Dp, 1)]);
}

#[test]
fn every_offer_can_be_taken() {
    let config = Config::default();
    for field in Field::NUMBERS {
        for value in 0..20 {
            let asked = Change::Number(field, value);
            let Err(error) = asked.applied(&config) else {
                continue;
            };
            let refusal = refuse(&config, asked.clone(), &error);
            assert!(!refusal.offers.is_empty(), "{}", asked.text());
            for offer in refusal.offers {
                let mut result = config.clone();
                for change in &offer {
                    result = change.made_to(&result).unwrap();
                }
                assert!(result.check().is_ok(), "{offer:?}");
            }
        }
    }
}

#[test]
fn a_press_more_gets_past_a_refused_value() {
    let config = Config::default();
    let at_2 = Change::Number(Field::Tp, 2).applied(&config).unwrap();
    let three = next(&at_2, None, Field::Tp, Direction::Up);
    let error = three.applied(&at_2).unwrap_err();
    let refusal = refuse(&at_2, three, &error);
    let four = next(&at_2, Some(&refusal), Field::Tp, Direction::Up);
    assert_eq!(four, Change::Number(Field::Tp, 4));
}
