//! The equity-scaled values that `FairSeg` prints, from the groups that it prints.

use serde_json::Value;

use super::EquityScaling;
use crate::Direction;

const TABLES: &str = include_str!("../../tests/golden/fairseg_tables.json");
/// Values are printed with four decimals: each of up to five numbers is off by up to 5e-5.
const ROUNDING: f64 = 1.5e-4;
/// What does not follow from the groups of its row, by more than rounding: all of `TransUNet` with FEBS on the rim.
const DO_NOT_FOLLOW: [(u64, &str); 3] = [(6, "Dice"), (6, "IoU"), (7, "IoU")];

#[test]
fn all_but_three_equity_scaled_values_of_fairseg_follow_from_its_groups() {
    let tables: Value = serde_json::from_str(TABLES).unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    let (mut n_following, mut others) = (0, Vec::new());
    for row in tables["rows"].as_array().unwrap() {
        let table = row[0].as_u64().unwrap();
        let form = if table <= 5 { EquityScaling::FairSeg } else { EquityScaling::FairSegDeviation };
        for (metric, [scaled, overall, groups]) in [("Dice", [3, 4, 7]), ("IoU", [5, 6, 8])] {
            let groups: Vec<f64> = row[groups].as_array().unwrap().iter().map(number).collect();
            let found = form.of(&groups, number(&row[overall]), Direction::HigherIsBetter).unwrap();
            if (found - number(&row[scaled])).abs() <= ROUNDING {
                n_following += 1;
            } else {
                assert_eq!((row[1].as_str(), row[2].as_str()), (Some("rim"), Some("TransUNet+FEBS")));
                others.push((table, metric));
            }
        }
    }
    assert_eq!((n_following, others), (257, DO_NOT_FOLLOW.to_vec()));
}
