//! Adjustment for having made several tests, and what is rejected.

use fairtte_metrics::MetricError;
use fairtte_metrics::statistics::{Adjustment, adjust_p_values};

use super::{Family, MethodTests, MetricTests, PairTest};

/// Adjusts Friedman's p values over the metrics and those of the pairs over their family; decides what is rejected.
pub(super) fn adjust(tests: &mut MethodTests) -> Result<(), MetricError> {
    let (family, level) = (tests.family, tests.level);
    let mut tested: Vec<_> = tests.metrics.iter_mut().filter_map(|metric| metric.ranks.tested.as_mut()).collect();
    let p_values: Vec<f64> = tested.iter().map(|tested| tested.friedman.p_value).collect();
    let adjusted = adjust_p_values(&p_values, Adjustment::Holm)?;
    let several = p_values.len() > 1;
    for (tested, p_holm) in tested.iter_mut().zip(adjusted) {
        tested.friedman_p_holm = several.then_some(p_holm);
        tested.rejects = if family == Family::Table { p_holm } else { tested.friedman.p_value } <= level;
    }
    match family {
        Family::Metric => tests.metrics.iter_mut().try_for_each(|metric| adjust_pairs(metric.pairs.iter_mut())),
        Family::Table => adjust_pairs(tests.metrics.iter_mut().flat_map(|metric: &mut MetricTests| &mut metric.pairs)),
    }
}

fn adjust_pairs<'a>(pairs: impl Iterator<Item = &'a mut PairTest>) -> Result<(), MetricError> {
    let tested: Vec<(&mut PairTest, f64)> = pairs
        .filter_map(|pair| {
            let p_value = pair.test?.p_value;
            Some((pair, p_value))
        })
        .collect();
    let p_values: Vec<f64> = tested.iter().map(|(_, p_value)| *p_value).collect();
    for ((pair, _), p_holm) in tested.into_iter().zip(adjust_p_values(&p_values, Adjustment::Holm)?) {
        pair.p_holm = Some(p_holm);
    }
    Ok(())
}
