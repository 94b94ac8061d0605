//! The people of a study: samples, censoring and times of every group of every data set (Table A1 of the paper), from the
//! labelled tables, before images are decoded.

use fairtte_metrics::{Groups, Outcomes};

use super::plan::Plan;
use crate::CliError;
use crate::prepare::group_tables;
use crate::report::sheet::{Cell, Sheet};

/// The table, and a sentence per data set that cannot be read any more.
///
/// # Errors
/// [`CliError`] if a run file of the plan is wrong.
pub(crate) fn cohorts(plan: &Plan) -> Result<(Option<Sheet>, Vec<String>), CliError> {
    let (mut rows, mut missing) = (Vec::new(), Vec::new());
    for (run, of) in plan.data()?.iter().zip(&plan.study().data) {
        match group_tables(run) {
            Ok((outcomes, attributes)) => {
                let is_of = |groups: &&Groups| plan.cells().iter().any(|cell| cell.attribute == groups.attribute());
                attributes
                    .all()
                    .iter()
                    .filter(is_of)
                    .for_each(|groups| rows.extend(lines(&of.name, &outcomes, groups)));
            }
            Err(error) => {
                let reason = crate::error::sentence(&error);
                missing.push(format!("The table of groups lacks {}, whose data cannot be read: {reason}", of.name));
            }
        }
    }
    if rows.is_empty() {
        return Ok((None, missing));
    }
    let columns = [
        ("data", "data"),
        ("attribute", "attribute"),
        ("group", "group"),
        ("n", "samples"),
        ("events", "events"),
        ("censored-percent", "censored %"),
        ("mean-event-time", "mean time of events"),
    ];
    let caption = "All samples of every group, in all parts.".to_owned();
    let mut sheet = Sheet::new("cohorts".to_owned(), caption, &columns, rows);
    sheet.notes.push(
        "As labelled, before images are decoded; groups as in the split of the run file. Samples without a group are left out."
            .to_owned(),
    );
    Ok((Some(sheet), missing))
}

fn lines(data: &str, outcomes: &Outcomes, groups: &Groups) -> Vec<Vec<Cell>> {
    let line = |group| {
        let members = groups.rows(group);
        let times: Vec<f64> =
            members.iter().filter(|row| outcomes.event()[**row]).map(|row| outcomes.time()[*row]).collect();
        let (n, events) = (members.len(), times.len());
        let censored = (n > 0).then(|| 100.0 * (n - events) as f64 / n as f64);
        let mean = (events > 0).then(|| times.iter().sum::<f64>() / events as f64);
        let names = [data, groups.attribute(), &groups.levels()[group.index()]].map(str::to_owned);
        let mut cells: Vec<Cell> = names.map(Cell::Text).to_vec();
        cells.extend([Cell::Count(n), Cell::Count(events)]);
        cells.extend([Cell::or_missing(censored, Cell::Value), Cell::or_missing(mean, Cell::Value)]);
        cells
    };
    groups.ids().map(line).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use fairtte_metrics::GroupId;

    use super::*;

    #[test]
    fn a_group_has_its_own_censoring_and_the_mean_time_of_its_events() {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 5.0, 9.0, 4.0], vec![true, false, true, false, true]).unwrap();
        let membership = [Some(0), Some(0), Some(0), Some(1), None].map(|group| group.map(GroupId)).to_vec();
        let groups = Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap();
        let shown: Vec<Vec<String>> =
            lines("films", &outcomes, &groups).iter().map(|row| row.iter().map(Cell::shown).collect()).collect();
        // F: 1 of 3 censored, events at 1 and 5; M: no event; the last sample has no group.
        assert_eq!(shown[0], ["films", "sex", "F", "3", "2", "33.33", "3"]);
        assert_eq!(shown[1], ["films", "sex", "M", "1", "0", "100", "–"]);
    }
}
