//! Rank metrics and losses, prepared for an evaluation.

use super::{PreparedMetric, ScoredSample, WeightBlock, rows_metric};
use crate::estimators::{BeyondLastTime, KaplanMeier};
use crate::evaluation::replicates::{AucLanes, BrierLanes, Cells, SortedAuc};
use crate::ids::to_u32;
use crate::rank::{
    AucTd, ConcordanceTd, ConventionTd, PreparedAucTd, PreparedConcordanceTd, TieTest, TiedPairs, TiedPredictions,
    UnoConvention, concordance_td_ipcw, concordance_td_with, harrell_concordance, uno_concordance,
};
use crate::resampling::lanes::sums_fit;
use crate::scores::{
    EventDensity, IntegratedScoreRule, IntegrationRule, PreparedBrier, ScoreWeights, SnlForm, integrated_nbll,
    kaplan_meier_curves,
};
use crate::{CensoringTies, MetricError, Outcomes, Reading, SurvivalCurves};

type Prepared = Result<Box<dyn PreparedMetric>, MetricError>;

struct PreparedCTd {
    pairs: PreparedConcordanceTd,
    ties: TiedPredictions,
}

impl PreparedMetric for PreparedCTd {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        Ok(self.pairs.weighted(weights, self.ties)?.value)
    }
}

/// The AUC of one slice, whose rows all have weights of their own.
struct AucOfRows(SortedAuc);

impl AucOfRows {
    fn boxed(auc: PreparedAucTd) -> Box<dyn PreparedMetric> {
        let every_row_a_unit: Vec<u32> = (0..to_u32(auc.order.len())).collect();
        Box::new(Self(SortedAuc::new(auc, &[], &every_row_a_unit)))
    }
}

impl PreparedMetric for AucOfRows {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.0.prepared().weighted(weights)?.time_average
    }

    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        if !sums_fit(draws.rows()) {
            return draws.one_by_one(self);
        }
        // Which times are missing is not asked here.
        let lanes = AucLanes::new(&self.0, &[Vec::new()], draws.rows());
        (0..draws.n_draws()).map(|lane| Some(lanes.average(0, lane)?.value)).collect()
    }
}

/// A Brier score that is refused above 1.
pub(super) struct CheckedBrier {
    brier: PreparedBrier,
    cells: Cells,
    /// The subject of the sample that adds most.
    largest: String,
}

impl CheckedBrier {
    pub(super) fn boxed(brier: PreparedBrier, sample: &ScoredSample<'_>) -> Box<dyn PreparedMetric> {
        let integrals = brier.subject_integrals().iter().enumerate();
        let largest = integrals.max_by(|a, b| a.1.total_cmp(b.1)).map(|(row, _)| sample.subjects[row].to_string());
        let cells = Cells::whole(brier.subject_integrals().len());
        Box::new(Self { brier, cells, largest: largest.unwrap_or_default() })
    }
}

impl PreparedMetric for CheckedBrier {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        self.brier.check_at_most_one(self.brier.weighted(weights)?, |_| self.largest.clone())
    }

    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        let lanes = BrierLanes::new(self.brier.subject_integrals(), &self.cells, draws.rows());
        (0..draws.n_draws()).map(|lane| lanes.value(0, lane).filter(|value| *value <= 1.0)).collect()
    }
}

fn concordance(sample: &ScoredSample<'_>, ties: TiedPredictions) -> Prepared {
    let pairs = ConcordanceTd::prepare(sample.outcomes, sample.curves, sample.reading)?;
    Ok(Box::new(PreparedCTd { pairs, ties }))
}

pub(super) fn c_td(sample: &ScoredSample<'_>) -> Prepared {
    concordance(sample, TiedPredictions::Strict)
}

pub(super) fn c_td_half(sample: &ScoredSample<'_>) -> Prepared {
    concordance(sample, TiedPredictions::Half)
}

pub(super) fn c_td_adjusted(sample: &ScoredSample<'_>) -> Prepared {
    let reading = sample.reading;
    of_selection(sample, move |outcomes, curves| {
        Ok(concordance_td_with(outcomes, curves, reading, ConventionTd::Adjusted)?.value)
    })
}

pub(super) fn c_td_ipcw(sample: &ScoredSample<'_>) -> Prepared {
    let (reading, censoring, tau) = (sample.reading, sample.censoring.clone(), last_time(sample)?);
    of_selection(sample, move |outcomes, curves| {
        let ties = TiedPairs::Predictions;
        Ok(concordance_td_ipcw(outcomes, curves, reading, &censoring, Some(tau), ties)?.value)
    })
}

pub(super) fn auc_td(sample: &ScoredSample<'_>) -> Prepared {
    let ScoredSample { outcomes, curves, censoring, reading, .. } = *sample;
    Ok(AucOfRows::boxed(AucTd::prepare(outcomes, curves, censoring, reading, sample.times()?)?))
}

pub(super) fn auc(sample: &ScoredSample<'_>) -> Prepared {
    let ScoredSample { outcomes, curves, censoring, reading, .. } = *sample;
    Ok(AucOfRows::boxed(AucTd::prepare(outcomes, curves, censoring, reading, &[sample.horizon()?])?))
}

pub(super) fn ibs(sample: &ScoredSample<'_>) -> Prepared {
    let ScoredSample { outcomes, curves, censoring, reading, .. } = *sample;
    Ok(CheckedBrier::boxed(PreparedBrier::new(outcomes, curves, censoring, reading, sample.times()?)?, sample))
}

pub(super) fn brier(sample: &ScoredSample<'_>) -> Prepared {
    let ScoredSample { outcomes, curves, censoring, reading, .. } = *sample;
    Ok(CheckedBrier::boxed(PreparedBrier::at(outcomes, curves, censoring, reading, sample.horizon()?)?, sample))
}

pub(super) fn harrell_c(sample: &ScoredSample<'_>) -> Prepared {
    let (outcomes, risk) = (sample.outcomes.clone(), sample.risks()?);
    Ok(rows_metric(move |rows| {
        let (outcomes, risk) = (outcomes.select(rows), risk.select(rows));
        Ok(harrell_concordance(&outcomes, &risk, TieTest::Near, TiedPairs::Predictions)?.value)
    }))
}

pub(super) fn uno_c(sample: &ScoredSample<'_>) -> Prepared {
    let (outcomes, risk, censoring) = (sample.outcomes.clone(), sample.risks()?, sample.censoring.clone());
    let tau = last_time(sample)?;
    Ok(rows_metric(move |rows| {
        let (outcomes, risk) = (outcomes.select(rows), risk.select(rows));
        Ok(uno_concordance(&outcomes, &risk, &censoring, Some(tau), UnoConvention::ScikitSurvival)?.value)
    }))
}

pub(super) fn rsbs(sample: &ScoredSample<'_>) -> Prepared {
    integrated(sample, IntegratedScoreRule::RSBS)
}

pub(super) fn risl(sample: &ScoredSample<'_>) -> Prepared {
    integrated(sample, IntegratedScoreRule::RISL)
}

pub(super) fn isll(sample: &ScoredSample<'_>) -> Prepared {
    integrated(sample, IntegratedScoreRule::ISLL)
}

fn integrated(sample: &ScoredSample<'_>, rule: IntegratedScoreRule) -> Prepared {
    let (reading, times) = (sample.reading, sample.times()?.to_vec());
    // Beyond the last training time these scores hold the last value.
    let censoring = sample.censoring.with_ties(CensoringTies::Flipped).with_beyond(BeyondLastTime::Hold);
    // Where the censoring curve is 0 the convention counts an event a thousand times, which says nothing about the predictions.
    let last = last_time(sample)?;
    let events = sample.outcomes.time().iter().zip(sample.outcomes.event());
    let is_weighted = |time: f64| rule.weights == ScoreWeights::PerSubject || time <= last;
    for (&time, _) in events.filter(|(time, event)| **event && is_weighted(**time)) {
        if censoring.at(time)? <= 0.0 {
            return Err(MetricError::ZeroCensoringSurvival { time });
        }
    }
    of_selection(sample, move |outcomes, curves| Ok(rule.score(outcomes, curves, &censoring, reading, &times)?.value))
}

pub(super) fn nbll(sample: &ScoredSample<'_>) -> Prepared {
    let (reading, times) = (sample.reading, sample.times()?.to_vec());
    let censoring = sample.censoring.with_ties(CensoringTies::Flipped);
    of_selection(sample, move |outcomes, curves| {
        integrated_nbll(outcomes, curves, &censoring, reading, IntegrationRule::Trapezoid, &times)
    })
}

pub(super) fn snl(sample: &ScoredSample<'_>) -> Prepared {
    let censoring = sample.censoring.with_ties(CensoringTies::Flipped);
    of_selection(sample, move |outcomes, curves| {
        let (density, form) = (EventDensity::LinearDensity, SnlForm::Documented);
        Ok(crate::scores::snl(outcomes, curves, &censoring, density, form)?.value)
    })
}

pub(super) fn rcll(sample: &ScoredSample<'_>) -> Prepared {
    of_selection(sample, |outcomes, curves| {
        Ok(crate::scores::rcll(outcomes, curves, EventDensity::LinearDensity)?.value)
    })
}

pub(super) fn explained_variation(sample: &ScoredSample<'_>) -> Prepared {
    let (reading, times) = (sample.reading, sample.times()?.to_vec());
    let censoring = sample.censoring.clone();
    let model = PreparedBrier::new(sample.outcomes, sample.curves, &censoring, reading, &times)?;
    let outcomes = sample.outcomes.clone();
    Ok(rows_metric(move |rows| {
        let mut weights = vec![0; outcomes.n()];
        for row in rows {
            weights[*row] += 1;
        }
        let drawn = outcomes.select(rows);
        // Its values at the evaluation times themselves: on the grid of the model it would be a coarser curve.
        let baseline = kaplan_meier_curves(&KaplanMeier::fit(&drawn)?, &times, drawn.n())?;
        let ones = vec![1; drawn.n()];
        let baseline = PreparedBrier::new(&drawn, &baseline, &censoring, Reading::Step, &times)?.weighted(&ones)?;
        if baseline <= 0.0 {
            return Err(MetricError::NoBaselineLoss { baseline });
        }
        Ok(1.0 - model.weighted(&weights)? / baseline)
    }))
}

/// A metric of outcomes and curves that is computed anew for every selection of rows.
pub(super) fn of_selection(
    sample: &ScoredSample<'_>,
    metric: impl Fn(&Outcomes, &SurvivalCurves) -> Result<f64, MetricError> + Send + Sync + 'static,
) -> Prepared {
    if sample.outcomes.n() == 0 {
        return Err(MetricError::NoSamples);
    }
    let (outcomes, curves) = (sample.outcomes.clone(), sample.curves.clone());
    Ok(rows_metric(move |rows| metric(&outcomes.select(rows), &curves.select(rows))))
}

fn last_time(sample: &ScoredSample<'_>) -> Result<f64, MetricError> {
    sample.times()?.last().copied().ok_or(MetricError::EmptyGrid)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use ndarray::Array2;

    use super::*;
    use crate::CensoringCurve;
    use crate::Reading;
    use crate::resampling::lanes::{LANES, LaneWeights};

    #[test]
    fn every_lane_is_bit_for_bit_the_sample_of_its_weights() {
        let n = 90;
        let mixed = |k: usize, factor: usize, modulus: usize| ((k * factor + k * k) % modulus) as f64;
        let time: Vec<f64> = (0..n).map(|k| 0.5 + mixed(k, 13, 23)).collect();
        let outcomes = Outcomes::new(time, (0..n).map(|k| k % 3 != 1).collect()).unwrap();
        // Predictions with many ties.
        let survival = Array2::from_shape_fn((n, 4), |(k, t)| (-mixed(k, 7, 11) * t as f64 / 20.0).exp());
        let curves = SurvivalCurves::new(vec![0.0, 4.0, 9.0, 16.0], survival).unwrap();
        let times = [2.0, 5.0, 11.0, 17.0];
        // The first censoring curve ends before the last events, which then have no weight.
        let short = Outcomes::new(vec![1.0, 6.0, 12.0, 18.0], vec![true, false, true, true]).unwrap();
        for of_censoring in [&short, &outcomes] {
            let censoring = CensoringCurve::fit(of_censoring, CensoringTies::EventsFirst).unwrap();
            let weight = |row: usize, lane: usize| if lane == 5 { 0 } else { (row * 5 + lane * lane) % (2 + lane % 7) };
            let rows: Vec<LaneWeights> =
                (0..n).map(|row| std::array::from_fn(|lane| u16::try_from(weight(row, lane)).unwrap())).collect();
            let auc = AucTd::prepare(&outcomes, &curves, &censoring, Reading::Linear, &times).unwrap();
            let at = AucTd::prepare(&outcomes, &curves, &censoring, Reading::Linear, &times[3..]).unwrap();
            let brier = PreparedBrier::at(&outcomes, &curves, &censoring, Reading::Linear, 5.0);
            let draws = WeightBlock::new(&rows, LANES);
            let values = |auc: &PreparedAucTd| AucOfRows::boxed(auc.clone()).values(&draws);
            let (averages, at_last) = (values(&auc), values(&at));
            let of_brier = brier.as_ref().ok().map(|brier| {
                let (cells, largest) = (Cells::whole(n), String::new());
                CheckedBrier { brier: brier.clone(), cells, largest }.values(&draws)
            });
            for lane in 0..LANES {
                let of_lane: Vec<u32> = rows.iter().map(|row| u32::from(row[lane])).collect();
                let bits = |value: Option<f64>| value.map(f64::to_bits);
                let expected = |auc: &PreparedAucTd| auc.weighted(&of_lane).unwrap().time_average.ok();
                assert_eq!(bits(averages[lane]), bits(expected(&auc)), "lane {lane}");
                assert_eq!(bits(at_last[lane]), bits(expected(&at)), "lane {lane}");
                if let (Ok(brier), Some(found)) = (&brier, &of_brier) {
                    assert_eq!(bits(found[lane]), bits(brier.weighted(&of_lane).ok()), "lane {lane}");
                }
            }
            assert!(averages[5].is_none() && averages[6].is_some());
        }
    }
}
