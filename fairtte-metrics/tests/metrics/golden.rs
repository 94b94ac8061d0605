//! Every number against other packages; see `tests/golden/README.md` for where the values come from.
//!
//! One walk over all files of the golden folder: `FAIRTTE_GOLDEN` names another folder of the same format. What was
//! compared, what the other package refused and what was skipped, and why, is printed by
//! `cargo test -p fairtte-metrics --test metrics golden -- --nocapture`.

use crate::families::{self, Item};
use crate::records::{Case, Unusable, cases, reported, tables};
use crate::tally::{Tally, Verdict};

/// A walk over a whole set that compares less than this found no files, or lost a family.
const AT_LEAST: usize = 5_000;

#[test]
fn every_record_of_a_convention_we_offer_matches() {
    let mut tally = Tally::default();
    for (name, case) in cases() {
        tally.begin("files", name.clone());
        match case {
            Ok(case) => compare_case(&case, &mut tally),
            Err(Unusable::Refused(error)) => tally.book([Verdict::Skipped(format!("{name}: {error}"))]),
            Err(Unusable::Malformed(what)) => tally.mismatch(&what),
        }
    }
    for (name, file) in tables() {
        tally.begin(name.clone(), name.clone());
        let compared = file.and_then(|file| reported(|| families::compare_table(&name, &file, &mut tally)));
        tally.mismatch_if_err(compared);
    }
    // A folder given by `FAIRTTE_GOLDEN` may contain a single small recording.
    tally.finish(if std::env::var_os("FAIRTTE_GOLDEN").is_some() { 1 } else { AT_LEAST });
}

fn compare_case(case: &Case, tally: &mut Tally) {
    for record in case.records() {
        let (subset, record) = match record {
            Ok(record) => record,
            Err(what) => {
                tally.begin("files", case.name.clone());
                tally.mismatch(&what);
                continue;
            }
        };
        let name = format!("{} {} {} {} {}", case.name, subset.name, record.peer, record.function, record.censoring);
        tally.begin(format!("{} {}", record.peer, record.function), format!("{name} {}", record.args));
        match &subset.outcomes {
            Ok(outcomes) => {
                let item = Item { case, subset, outcomes, record: &record };
                let compared = reported(|| families::compare(&item, tally));
                tally.mismatch_if_err(compared);
            }
            Err(error) => tally.book([Verdict::Skipped(error.to_string())]),
        }
    }
    tally.begin("gaps derived from the records", format!("{} derived", case.name));
    let compared = reported(|| families::compare_derived(case, tally));
    tally.mismatch_if_err(compared);
}
