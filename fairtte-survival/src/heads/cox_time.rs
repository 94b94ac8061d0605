//! Cox-Time: a Cox model whose network reads the time, so that hazards need not be proportional (Kvamme, Borgan & Scheel
//! 2019, JMLR 20(129), eq. 12 and section 4).
//!
//! Outputs g(t, x) at the different event times of the batch. The loss of an event i at time t with controls C is
//! `l_i` = log(1 + sum_{j in C} exp(g(t, `x_j`) - g(t, `x_i`))) + shrink (|g(t, `x_i`)| + `sum_C` |g(t, `x_j`)|) / |C|.
//! A censored sample has loss 0 and is not counted; a batch without an event has loss 0; an event without anyone else at
//! risk has loss 0 before shrinking (and is counted, as it would have no sampled controls). Every term depends on the rest of its batch.
//! H(t | x) = sum over training event times up to t of dH0 exp(g(t, x)), with Breslow's dH0 (`baseline.rs`).
//!
//! | setting | default | range | meaning |
//! |---|---|---|---|
//! | `controls` | 0 | >= 0 | 0 = all others at risk in the batch, otherwise this many, drawn without replacement |
//! | `shrink` | 0 | >= 0 | weight of the term that pulls outputs to 0 |
//! | `log-time` | false | | the network reads log(1 + t) |
//!
//! Where we differ from pycox 0.3.0: controls come from the batch and not from the whole training part, never include the
//! row of the case itself, and are drawn from the run's own stream (pycox: 1 control, with replacement); differences are not
//! clamped at 80, because the sum runs in logarithms. Here the time enters the classifier, not the first layer of the network.
//! Events tied with the case may be its controls, as in Breslow's sum: they were at risk at that time, and without them the
//! comparison would be with survivors alone (an odds ratio, far from a hazard ratio on coarse times). So may a second copy of
//! the case in a batch that was drawn with replacement: a risk set counts a subject as often as it was drawn. A copy has the
//! output of the case, so it adds 1 to the sum, and as the only control it gives the constant log 2.
//! Golden values: pycox 0.3.0 `cox_cc_loss`, `CoxTime.compute_baseline_hazards`, `LabTransCoxTime`.

use burn::tensor::Tensor;
use fairtte_metrics::Outcomes;
use ndarray::{Array2, ArrayView2};
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::partial_likelihood::{Comparison, RiskSets, comparisons};
use super::{Comparators, HeadSettings, SurvivalHead, constant, indicator};
use crate::baseline::{Baseline, BaselineFit, TiedTimes};
use crate::{CutPoints, PredictionGrid, SurvivalError, Targets, TimeScale};

/// Settings of Cox-Time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CoxTimeConfig {
    /// Controls per event; 0 = all others at risk in the batch.
    pub controls: usize,
    /// Weight of the term that pulls outputs to 0, at least 0.
    pub shrink: f64,
    /// Whether the network reads log(1 + t) instead of t.
    pub log_time: bool,
}

impl HeadSettings for CoxTimeConfig {
    fn name(&self) -> &'static str {
        "cox-time"
    }

    fn summary(&self) -> &'static str {
        "log risk that depends on the time, with a baseline (Kvamme, Borgan & Scheel 2019)"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(CoxTime::new(self)?))
    }
}

/// Log risk that depends on the time, with a baseline.
#[derive(Clone, Copy, Debug)]
pub struct CoxTime {
    controls: usize,
    shrink: f64,
    log_time: bool,
}

impl CoxTime {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`SurvivalError::Setting`] naming the key, its value and its range.
    pub fn new(config: &CoxTimeConfig) -> Result<Self, SurvivalError> {
        let CoxTimeConfig { controls, shrink, log_time } = *config;
        if !(0.0..f64::INFINITY).contains(&shrink) {
            let expected = "a finite number >= 0";
            return Err(SurvivalError::Setting { key: "shrink", value: shrink, expected });
        }
        Ok(Self { controls, shrink, log_time })
    }

    /// One row per event, or per distinct event time where all samples at risk are controls; for each the number of
    /// controls and all samples of the row, the case included.
    fn risk_sets(
        self,
        targets: &Targets,
        comparators: Comparators<'_>,
        stream: &mut ChaCha8Rng,
    ) -> (RiskSets, Vec<Vec<usize>>) {
        let (mut sets, mut members) = (RiskSets::new(targets.n()), Vec::new());
        let mut push = |column: usize, samples: Vec<usize>, cases: &[usize]| {
            let weights: Vec<(usize, f64)> = samples.iter().map(|sample| (*sample, 0.0)).collect();
            sets.push(column, &weights, cases.iter().map(|case| (*case, 1.0)).collect());
            members.push(samples);
        };
        for Comparison { column, cases, at_risk, .. } in comparisons(targets, comparators) {
            if self.controls == 0 {
                push(column, at_risk, &cases);
                continue;
            }
            for case in cases {
                let mut others: Vec<usize> = at_risk.iter().copied().filter(|sample| *sample != case).collect();
                let (drawn, _) = others.partial_shuffle(stream, self.controls);
                let samples = drawn.iter().copied().chain([case]).collect();
                push(column, samples, &[case]);
            }
        }
        (sets, members)
    }

    /// |g| of the samples of every row, summed and divided by the number of controls, `[n_rows]`.
    fn size_of_outputs(rows: Tensor<2>, members: &[Vec<usize>]) -> Tensor<1> {
        let [n_rows, n] = rows.dims();
        let mut weights = vec![0.0; n_rows * n];
        for (row, samples) in members.iter().enumerate() {
            for sample in samples {
                weights[row * n + sample] = 1.0 / (samples.len() - 1).max(1) as f64;
            }
        }
        let weights = constant(weights, [n_rows, n], &rows);
        (rows.abs() * weights).sum_dim(1).flatten(0, 1)
    }

    fn losses(
        self,
        outputs: Tensor<2>,
        targets: &Targets,
        comparators: Comparators<'_>,
        stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        let (sets, members) = self.risk_sets(targets, comparators, stream);
        if sets.n_rows() == 0 {
            return (outputs.slice([0..targets.n(), 0..1]) * 0.0).flatten(0, 1);
        }
        let losses = Self::likelihoods(&sets, outputs.clone(), targets);
        if self.shrink > 0.0 {
            losses + sets.spread(Self::size_of_outputs(sets.rows(outputs), &members)) * self.shrink
        } else {
            losses
        }
    }

    /// The losses before shrinking.
    fn likelihoods(sets: &RiskSets, outputs: Tensor<2>, targets: &Targets) -> Tensor<1> {
        let [n, n_times] = outputs.dims();
        let times = targets.event_times();
        let at_own_time =
            indicator(n, n_times, &outputs, |i, k| targets.event[i] && targets.time[i].total_cmp(&times[k]).is_eq());
        let own: Tensor<1> = (outputs.clone() * at_own_time).sum_dim(1).flatten(0, 1);
        sets.spread(sets.terms(sets.rows(outputs))) - own
    }
}

impl SurvivalHead for CoxTime {
    fn name(&self) -> &'static str {
        "cox-time"
    }

    fn n_outputs(&self, _cut_points: &CutPoints) -> usize {
        1
    }

    fn check_hidden(&self, hidden: usize) -> Result<(), SurvivalError> {
        let expected = "at least 1 with head cox-time: a time that enters linearly cancels from its loss";
        let error = SurvivalError::Setting { key: "hidden", value: 0.0, expected };
        if hidden > 0 { Ok(()) } else { Err(error) }
    }

    fn time_scale(&self, train: &Outcomes) -> Result<Option<TimeScale>, SurvivalError> {
        TimeScale::fit(train, self.log_time).map(Some)
    }

    fn query_times(&self, targets: &Targets) -> Vec<f64> {
        let times = targets.event_times();
        if times.is_empty() { targets.time.iter().copied().take(1).collect() } else { times }
    }

    fn subject_losses(&self, outputs: Tensor<2>, targets: &Targets, stream: &mut ChaCha8Rng) -> Tensor<1> {
        self.losses(outputs, targets, Comparators::Batch, stream)
    }

    /// The controls of an event come from the other half.
    fn losses_against_other_half(
        &self,
        outputs: Tensor<2>,
        targets: &Targets,
        half: &[bool],
        stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        self.losses(outputs, targets, Comparators::OtherHalf(half), stream)
    }

    /// `l_i` before shrinking - log(1 + |C|) + log n, n the samples of the batch, as with the head `cox`.
    fn misfits(
        &self,
        outputs: Tensor<2>,
        targets: &Targets,
        half: Option<&[bool]>,
        stream: &mut ChaCha8Rng,
    ) -> Tensor<1> {
        let (sets, _) = self.risk_sets(targets, Comparators::of(half), stream);
        if sets.n_rows() == 0 {
            return (outputs.slice([0..targets.n(), 0..1]) * 0.0).flatten(0, 1);
        }
        let likelihoods = Self::likelihoods(&sets, outputs, targets);
        sets.misfits(likelihoods)
    }

    fn counted(&self, targets: &Targets) -> Vec<bool> {
        targets.event.clone()
    }

    fn survival(
        &self,
        outputs: ArrayView2<'_, f32>,
        grid: &PredictionGrid,
        baseline: Option<&Baseline>,
    ) -> Result<Array2<f64>, SurvivalError> {
        let baseline = baseline.ok_or(SurvivalError::NoBaseline { head: self.name() })?;
        let ends: Vec<usize> = grid.times().iter().map(|time| baseline.n_until(*time)).collect();
        let mut survival = Array2::zeros((outputs.nrows(), ends.len()));
        for (row, mut curve) in outputs.rows().into_iter().zip(survival.rows_mut()) {
            let (mut cumulative, mut done) = (0.0, 0);
            for (s, end) in curve.iter_mut().zip(&ends) {
                for k in done..*end {
                    cumulative += (baseline.log_hazards()[k] + f64::from(row[k])).exp();
                }
                done = *end;
                *s = (-cumulative).exp();
            }
        }
        Ok(survival)
    }

    fn starting_outputs(&self, _hazard: &[f64]) -> Option<Vec<f64>> {
        None
    }

    fn depends_on_batch(&self) -> bool {
        true
    }

    fn needs_baseline(&self) -> bool {
        true
    }

    fn baseline_fit(&self, train: &Outcomes) -> Option<BaselineFit> {
        Some(BaselineFit::new(train, TiedTimes::Breslow, true))
    }
}
