//! Which samples are explained.

use fairtte_data::Cohort;
use fairtte_fairness::explain::RiskAt;
use fairtte_metrics::{GroupId, Groups};
use ndarray::Array2;

use super::source::Source;
use crate::CliError;
use crate::commands::predict::Member;
use crate::progress::say;

/// The rows of the named samples, each once, in the order of the names.
pub(super) fn named(samples: &[String], source: &Source) -> Result<Vec<usize>, CliError> {
    let mut rows = Vec::with_capacity(samples.len());
    for sample in samples {
        let row = source.row(sample)?;
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The error of a predicted risk at the horizon: (1 - risk)^2 for an event until then, risk^2 without an event until then;
/// `None` for a sample that was censored before, of which neither is known.
pub(super) fn error_at(risk: f64, time: f64, event: bool, horizon: f64) -> Option<f64> {
    match (event && time <= horizon, time > horizon) {
        (true, _) => Some((1.0 - risk).powi(2)),
        (false, true) => Some(risk * risk),
        (false, false) => None,
    }
}

/// The `n` rows of every group with the largest error, group after group, the worst first; ties in the order of the cohort.
pub(super) fn worst(
    n: usize,
    cohort: &Cohort,
    groups: Option<&Groups>,
    at: RiskAt,
    survival: impl Fn(&[usize]) -> Result<Array2<f64>, CliError>,
    member: &Member,
) -> Result<Vec<usize>, CliError> {
    if n == 0 {
        return Err(CliError::setting("--worst", "0 samples to explain, expected at least 1".to_owned(), None));
    }
    let rows = cohort.all_rows();
    let risks = at.of(member.times(), &survival(&rows)?)?;
    let error = |row: usize| {
        let sample = &cohort.samples[row];
        error_at(risks[row], sample.time, sample.event, at.horizon)
    };
    let n_unknown = rows.iter().filter(|row| error(**row).is_none()).count();
    if n_unknown > 0 {
        let (all, horizon) = (rows.len(), at.horizon);
        say(format!(
            "note: {n_unknown} of {all} samples were censored before {horizon}: how well they are predicted is unknown"
        ));
    }
    let worst_of = |group: Option<GroupId>| {
        let is_in = |row: &usize| groups.is_none_or(|groups| groups.membership()[*row] == group);
        let mut scored: Vec<(f64, usize)> =
            rows.iter().copied().filter(is_in).filter_map(|row| Some((error(row)?, row))).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scored.into_iter().take(n).map(|(_, row)| row).collect::<Vec<_>>()
    };
    let ids: Vec<Option<GroupId>> = groups.map_or_else(|| vec![None], |groups| groups.ids().map(Some).collect());
    let chosen: Vec<usize> = ids.into_iter().flat_map(worst_of).collect();
    if chosen.is_empty() {
        let message = format!("no sample of the part has an outcome that is known at {}", at.horizon);
        return Err(CliError::Setting {
            key: "--horizon".to_owned(),
            value: message,
            expected: "a time before which some have an event, or after which some are followed".to_owned(),
        });
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::error_at;

    #[test]
    fn the_error_is_that_of_the_known_outcome() {
        let close = |found: Option<f64>, expected: f64| assert!((found.unwrap_or(f64::NAN) - expected).abs() < 1e-12);
        close(error_at(0.7, 2.0, true, 3.0), 0.09);
        close(error_at(0.7, 3.0, true, 3.0), 0.09);
        close(error_at(0.7, 4.0, true, 3.0), 0.49);
        close(error_at(0.7, 4.0, false, 3.0), 0.49);
        assert_eq!(error_at(0.7, 2.0, false, 3.0), None);
        assert_eq!(error_at(0.7, 3.0, false, 3.0), None);
    }
}
