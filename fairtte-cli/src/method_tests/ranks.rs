//! The tests of equal average ranks.

use fairtte_metrics::statistics::{
    CliqueRule, RangeQuantile, RankTable, RankTies, cliques, critical_difference, friedman, iman_davenport, nemenyi,
};
use fairtte_metrics::{Direction, MetricError};
use ndarray::Array2;

use super::{FEWEST_SETTINGS, RankTests, SettingValues, Tested, TestsError, Untested};

/// Ranks and tests of complete settings. `rejects` is decided later, with the family.
pub(super) fn rank_tests(
    settings: &[SettingValues],
    direction: Direction,
    level: f64,
) -> Result<RankTests, TestsError> {
    let Some(first) = settings.first() else {
        let (average_ranks, means) = (Vec::new(), Vec::new());
        return Ok(RankTests {
            n_settings: 0,
            average_ranks,
            means,
            tested: None,
            untested: Some(Untested::NoSetting),
        });
    };
    let shape = (settings.len(), first.means.len());
    let table = RankTable::new(Array2::from_shape_fn(shape, |(row, method)| settings[row].means[method]), direction)?;
    let (tested, untested) = match tests(&table, level) {
        _ if settings.len() < FEWEST_SETTINGS => (None, Some(Untested::FewSettings)),
        Ok(tested) => (Some(tested), None),
        Err(MetricError::AllModelsTied { .. }) => (None, Some(Untested::AllTied)),
        Err(error) => return Err(error.into()),
    };
    let mean = |method: usize| settings.iter().map(|setting| setting.means[method] / shape.0 as f64).sum();
    Ok(RankTests {
        n_settings: shape.0,
        average_ranks: table.average_ranks(),
        means: (0..shape.1).map(mean).collect(),
        tested,
        untested,
    })
}

fn tests(table: &RankTable, level: f64) -> Result<Tested, MetricError> {
    let friedman = friedman(table, RankTies::Corrected)?;
    let iman_davenport = match iman_davenport(table, RankTies::Corrected) {
        Err(MetricError::PerfectAgreement { .. }) => None,
        found => Some(found?),
    };
    Ok(Tested {
        friedman,
        friedman_p_holm: None,
        iman_davenport,
        rejects: false,
        nemenyi_p: nemenyi(table).rows().into_iter().map(|row| row.to_vec()).collect(),
        critical_difference: critical_difference(table.n_models(), table.n_data_sets(), level, RangeQuantile::Exact)?,
        cliques: cliques(table, level, CliqueRule::RankInterval(RangeQuantile::Exact))?,
    })
}
