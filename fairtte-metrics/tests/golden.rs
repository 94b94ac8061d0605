//! Every number against other packages; see `tests/golden/README.md` for where the values come from.
//!
//! One walk over all files of the golden folder: `FAIRTTE_GOLDEN` names another folder of the same format. What was
//! compared, what the other package refused and what was skipped, and why, is printed by
//! `cargo test -p fairtte-metrics --test golden -- --nocapture`.

#![expect(clippy::unwrap_used, reason = "a golden file that cannot be read fails the test")]

mod families;
mod records;
mod tally;

use families::Item;
use records::{cases, tables};
use tally::{Tally, Verdict};

/// A walk that compares less than this found no files, or lost a family.
const AT_LEAST: usize = 500;

#[test]
fn every_record_of_a_convention_we_offer_matches() {
    let mut tally = Tally::default();
    for case in cases() {
        for (subset, record) in case.records() {
            let name =
                format!("{} {} {} {} {}", case.name, subset.name, record.peer, record.function, record.censoring);
            tally.begin(format!("{} {}", record.peer, record.function), format!("{name} {}", record.args));
            match &subset.outcomes {
                Ok(outcomes) => families::compare(&Item { case: &case, subset, outcomes, record: &record }, &mut tally),
                Err(error) => tally.book([Verdict::Skipped(error.to_string())]),
            }
        }
        tally.begin("gaps derived from the records", format!("{} derived", case.name));
        families::compare_derived(&case, &mut tally);
    }
    for (name, file) in tables() {
        tally.begin(name.clone(), name.clone());
        families::compare_table(&name, &file, &mut tally);
    }
    tally.finish(AT_LEAST);
}
