//! Schoenfeld residuals, and whether hazards are proportional (Grambsch & Therneau 1994, doi:10.1093/biomet/81.3.515).
//!
//! The residual of an event is its covariates minus their mean over the samples at risk, weighted by their risks (with Efron's
//! ties the mean over the steps). The test is the one of scaled residuals, that of R `cox.zph` before survival 3.0 and of
//! lifelines: with g the transformed time of an event, d events, the residuals s, the covariance V of the coefficients, and
//! u = sum of (g - mean g) s, the statistic of covariate j is `d (V u)[j]^2 / (V[j, j] sum of (g - mean g)^2)`, chi-square
//! with 1 degree of freedom; that of all covariates is `d u' V u / sum of (g - mean g)^2`, with p degrees of freedom.
//!
//! `cox.zph` of survival 3.0 and later is a score test instead, whose numbers differ a little.

use fairtte_metrics::estimators::KaplanMeier;
use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use super::model::{ChiSquareTest, CoxModel};
use super::newton::inverse;
use super::samples::{CoxSamples, Layout, Prepared};
use crate::ClassicalError;

/// What a change of the coefficients over time is tested against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeTransform {
    /// 1 - S(t-) of the Kaplan-Meier curve of all samples, the default of R (default).
    #[default]
    KaplanMeier,
    /// The rank of the event's time among the events; tied events have the mean of their ranks.
    Rank,
    /// The time.
    Identity,
    /// Its logarithm.
    Log,
}

/// Schoenfeld residuals of d events.
#[derive(Clone, Debug, PartialEq)]
pub struct SchoenfeldResiduals {
    /// Rows of the events, by stratum and time.
    pub rows: Vec<usize>,
    /// Their times.
    pub times: Vec<f64>,
    /// `[d, p]`, in the units of the covariates; their sum is 0.
    pub residuals: Array2<f64>,
    /// d V s plus the coefficients, `[d, p]`: a curve through them over time estimates the coefficients' course.
    pub scaled: Array2<f64>,
}

/// The test of proportional hazards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProportionalityTest {
    /// What the coefficients were tested against.
    pub transform: TimeTransform,
    /// By covariate.
    pub covariates: Vec<CovariateProportionality>,
    /// Of all covariates at once.
    pub global: ChiSquareTest,
}

/// The test of one covariate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CovariateProportionality {
    /// Name of the covariate.
    pub name: String,
    /// Correlation of the scaled residuals with the transformed time; above 0 where the coefficient rises with time. `None` if the
    /// residuals are all equal.
    pub correlation: Option<f64>,
    /// The test.
    pub test: ChiSquareTest,
}

impl CoxModel {
    /// Schoenfeld residuals of the samples of the fit. O(n p).
    ///
    /// # Errors
    /// Those of [`CoxSettings::fit_samples`](super::CoxSettings::fit_samples) for samples that do not fit together, and
    /// [`ClassicalError::Columns`] for other columns than in the fit.
    pub fn schoenfeld_residuals(&self, samples: &CoxSamples<'_>) -> Result<SchoenfeldResiduals, ClassicalError> {
        self.residuals(samples).map(|(found, _)| found)
    }

    /// Residuals and the inverse information at the coefficients.
    fn residuals(&self, samples: &CoxSamples<'_>) -> Result<(SchoenfeldResiduals, Array2<f64>), ClassicalError> {
        samples.check()?;
        let (found, expected) = (samples.covariates.ncols(), self.n_columns);
        if found != expected {
            return Err(ClassicalError::Columns { found, expected });
        }
        let layout = Layout::new(samples.covariates, self.strata.clone());
        let prepared = Prepared::new(samples.covariates, samples.outcomes, &layout, self.settings.ties)
            .map_err(|error| error.with_places(&layout.used).with_names(&samples.all_names()))?;
        let ordered = &prepared.ordered;
        let coefficients = self.values() * &prepared.deviation;
        let sweep = ordered.sweep(&ordered.x.dot(&coefficients), &ordered.all());
        let steps = ordered.steps(&sweep, &ordered.all());
        let mut means = Array2::<f64>::zeros((ordered.blocks.len(), layout.used.len()));
        for (step, place) in steps.block.iter().enumerate() {
            let share = steps.count[step] / ordered.blocks[*place].n_events as f64;
            means.row_mut(*place).scaled_add(share, &steps.means.row(step));
        }
        let mut information = super::newton::Concave::derivatives(ordered, &coefficients).information;
        information.diag_mut().map_inplace(|cell| *cell += self.settings.ridge);
        let columns = || (0..self.coefficients.len()).map(crate::Column::new).collect();
        let mut covariance = inverse(information)
            .map_err(|_| ClassicalError::Separates { columns: columns() }.with_names(&self.names()))?;
        super::settings::unstandardise(&mut covariance, &prepared.deviation);
        // Ascending in time within a stratum.
        let mut order: Vec<(usize, usize)> = Vec::new();
        let mut by_time: Vec<usize> = (0..ordered.blocks.len()).collect();
        by_time.sort_by(|a, b| {
            let (a, b) = (&ordered.blocks[*a], &ordered.blocks[*b]);
            a.stratum.cmp(&b.stratum).then_with(|| a.time.total_cmp(&b.time))
        });
        for place in by_time {
            let block = &ordered.blocks[place];
            order.extend((block.start..block.start + block.n_events).map(|sample| (place, sample)));
        }
        let mut residuals = Array2::zeros((order.len(), layout.used.len()));
        for (mut row, (place, sample)) in residuals.rows_mut().into_iter().zip(&order) {
            row.assign(&((&ordered.x.row(*sample) - &means.row(*place)) * &prepared.deviation));
        }
        let scaled = residuals.dot(&covariance) * order.len() as f64 + &self.values();
        let found = SchoenfeldResiduals {
            rows: order.iter().map(|(_, sample)| ordered.rows[*sample]).collect(),
            times: order.iter().map(|(place, _)| ordered.blocks[*place].time).collect(),
            residuals,
            scaled,
        };
        Ok((found, covariance))
    }

    fn names(&self) -> Vec<String> {
        self.coefficients.iter().map(|coefficient| coefficient.name.clone()).collect()
    }

    /// Tests whether the coefficients change with the transformed time, on the samples of the fit. With a small p value a hazard
    /// ratio of the model is an average over time; [`CoxTimeVaryingSettings`](super::CoxTimeVaryingSettings) fits its course.
    ///
    /// # Errors
    /// Those of [`schoenfeld_residuals`](Self::schoenfeld_residuals), [`ClassicalError::OneEventTime`], and
    /// [`ClassicalError::Setting`] for the logarithm of an event at time 0.
    pub fn proportionality_test(
        &self,
        samples: &CoxSamples<'_>,
        transform: TimeTransform,
    ) -> Result<ProportionalityTest, ClassicalError> {
        let (found, covariance) = self.residuals(samples)?;
        let times = transformed(&found.times, samples, transform)?;
        let times = Array1::from_vec(times);
        let centred = &times - times.mean().unwrap_or(0.0);
        let spread = centred.dot(&centred);
        if spread <= 0.0 {
            return Err(ClassicalError::OneEventTime { time: found.times.first().copied().unwrap_or(0.0) });
        }
        let n_events = found.times.len() as f64;
        let along = centred.dot(&found.residuals);
        let moved = along.dot(&covariance);
        let of_covariate = |(place, name): (usize, String)| {
            let scaled = found.scaled.column(place);
            let deviation = (&scaled - scaled.mean().unwrap_or(0.0)).mapv(|value| value.powi(2)).sum();
            CovariateProportionality {
                name,
                correlation: (deviation > 0.0)
                    .then(|| (n_events * moved[place] / (deviation.sqrt() * spread.sqrt())).clamp(-1.0, 1.0)),
                test: ChiSquareTest::new(n_events * moved[place].powi(2) / (covariance[[place, place]] * spread), 1),
            }
        };
        let global = ChiSquareTest::new(n_events * moved.dot(&along) / spread, along.len());
        let covariates = self.names().into_iter().enumerate().map(of_covariate).collect();
        Ok(ProportionalityTest { transform, covariates, global })
    }
}

/// The transformed times of events, in the order of `times`.
fn transformed(times: &[f64], samples: &CoxSamples<'_>, transform: TimeTransform) -> Result<Vec<f64>, ClassicalError> {
    match transform {
        TimeTransform::Identity => Ok(times.to_vec()),
        TimeTransform::Log if times.contains(&0.0) => {
            let (setting, expected) = ("time transform", "another one for an event at time 0");
            Err(ClassicalError::Setting { setting, value: "log".to_owned(), expected })
        }
        TimeTransform::Log => Ok(times.iter().map(|time| time.ln()).collect()),
        TimeTransform::KaplanMeier => {
            let curve = KaplanMeier::fit(samples.outcomes)?;
            Ok(times.iter().map(|time| 1.0 - curve.left_limit(*time)).collect())
        }
        TimeTransform::Rank => {
            let mut sorted = times.to_vec();
            sorted.sort_by(f64::total_cmp);
            let rank = |time: &f64| {
                let (below, up_to) = (sorted.partition_point(|t| t < time), sorted.partition_point(|t| t <= time));
                (below + up_to + 1) as f64 / 2.0
            };
            Ok(times.iter().map(rank).collect())
        }
    }
}
