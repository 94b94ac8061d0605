//! The evaluation of predicted masks: means over samples of the metrics of every class.
//!
//! Groups, gaps, intervals and comparisons are those of [`evaluate`](crate::evaluate), from the same draws. A sample counts once,
//! whatever its number of pixels; one without a value (a distance from an empty mask) is left out of the mean of that metric and
//! counted: the events of an [`Estimate`] are its samples with a value, and `min-events` counts them.

mod metric;

use serde::{Deserialize, Serialize};

pub use self::metric::MaskMetric;
use crate::evaluation::evaluated::{Counted, Evaluated, Input, count_subjects};
use crate::evaluation::metrics::{PreparedMetric, WeightBlock};
use crate::evaluation::prepared::{Prepared, Visit};
use crate::evaluation::report::{AttributeReport, Estimate, MetricDescription, MetricReport};
use crate::evaluation::summary::Summary;
use crate::masks::{MaskClass, MaskSettings, PairScore};
use crate::resampling::Stratify;
use crate::resampling::lanes::LANES;
use crate::{EvaluationSettings, Groups, MetricError, Outcomes, SubjectId};

/// The pixels of every sample, compared.
#[derive(Clone, Copy, Debug)]
pub struct MaskSamples<'a> {
    /// The classes; the metrics of each are reported.
    pub classes: &'a [MaskClass],
    /// By class and sample.
    pub scores: &'a [Vec<PairScore>],
    /// The error of the vertical cup-to-disc ratio of every sample, where there is one.
    pub cup_to_disc: Option<&'a [Result<f64, MetricError>]>,
    /// The unit of distances in words, for example `pixels`.
    pub unit: &'a str,
}

/// The result of [`evaluate_masks`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MaskReport {
    /// Evaluated samples.
    pub n: usize,
    /// Distinct subjects among them.
    pub n_subjects: usize,
    /// The classes.
    pub classes: Vec<MaskClass>,
    /// How masks were compared.
    pub masks: MaskSettings,
    /// The unit of distances.
    pub unit: String,
    /// Replicates and intervals.
    pub settings: EvaluationSettings,
    /// By class, then metric; that of cup and disc last. Events are samples with a value.
    pub metrics: Vec<MetricReport>,
    /// By class, then the whole sample and every group.
    pub empty: Vec<EmptyMasks>,
}

impl MaskReport {
    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&MetricReport> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

/// How many masks of a class are empty, of the whole sample (no attribute) or of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct EmptyMasks {
    /// The class.
    pub class: String,
    /// Name of the attribute.
    pub attribute: Option<String>,
    /// Name of the level.
    pub level: Option<String>,
    /// Samples.
    pub n: usize,
    /// Neither mask has a pixel of the class.
    pub n_both: usize,
    /// The prediction has pixels of a class that is not there.
    pub n_truth: usize,
    /// The prediction has no pixel of a class that is there.
    pub n_predicted: usize,
}

/// Evaluates predicted masks: `metrics` of every class, overall and in every group, with gap, ratio, worst group, equity scaling,
/// differences and intervals.
///
/// Sample `i` of `samples`, `subjects` and `groups` is the same. Of `settings`, those of replicates, permutations, intervals,
/// `min-events` (samples with a value) and references are used. Distances have no equity scaling, whose forms are about metrics in
/// \[0, 1\].
///
/// Cost: O(samples x metrics) per replicate and attribute.
///
/// ```
/// use fairtte_metrics::evaluation::{MaskMetric, MaskSamples, evaluate_masks};
/// use fairtte_metrics::masks::{LabelPair, Labels, MaskClass, MaskGrid, MaskSettings, score_pair};
/// use fairtte_metrics::{EvaluationSettings, SubjectId};
///
/// // Two samples of four pixels: the first is predicted exactly, of the second one of two pixels is found.
/// let cup = MaskClass { name: "cup".to_owned(), values: vec![1] };
/// let grid = MaskGrid::new(&[2, 2], &[1.0, 1.0])?;
/// let masks = MaskSettings::default();
/// let score = |truth: &[i32], predicted: &[i32]| {
///     Ok(score_pair(&LabelPair::new(grid, Labels { truth, predicted })?, &cup, &masks))
/// };
/// let scores = [vec![score(&[0, 1, 0, 1], &[0, 1, 0, 1])?, score(&[0, 1, 0, 1], &[0, 0, 0, 1])?]];
/// let samples = MaskSamples { classes: &[cup.clone()], scores: &scores, cup_to_disc: None, unit: "pixels" };
/// let settings = EvaluationSettings { replicates: 0, permutations: 0, ..EvaluationSettings::default() };
/// let subjects = ["a", "b"].map(SubjectId::from);
/// let report = evaluate_masks(&samples, &subjects, &[], &[MaskMetric::Dice], &masks, &settings)?;
/// assert_eq!(report.metrics[0].overall.value, Some((1.0 + 2.0 / 3.0) / 2.0));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`MaskSettings::validate`], and of [`evaluate`](crate::evaluate) for subjects, groups and settings;
/// [`MetricError::LengthMismatch`] unless every class has a score of every sample; [`MetricError::InvalidSetting`] for strata by
/// event, without a class or a metric, for a class without values, or for the error of the cup-to-disc ratio where `samples` has none.
pub fn evaluate_masks(
    samples: &MaskSamples<'_>,
    subjects: &[SubjectId],
    groups: &[Groups],
    metrics: &[MaskMetric],
    masks: &MaskSettings,
    settings: &EvaluationSettings,
) -> Result<MaskReport, MetricError> {
    masks.validate()?;
    let n = subjects.len();
    samples.check(n, metrics, settings)?;
    let columns = samples.columns(metrics, masks);
    let mut reports: Vec<Option<MetricReport>> = vec![None; columns.len()];
    // Metrics that have a value for the same samples are evaluated together.
    for first in 0..columns.len() {
        if reports[first].is_some() {
            continue;
        }
        let has_value = columns[first].has_value();
        let same: Vec<usize> = (first..columns.len()).filter(|k| columns[*k].has_value() == has_value).collect();
        let outcomes = Outcomes::new(vec![1.0; n], has_value)?;
        let input = Input { subjects, outcomes: &outcomes, competing: None, groups, settings };
        input.check()?;
        let together: Vec<&Column> = same.iter().map(|k| &columns[*k]).collect();
        for (place, report) in same.into_iter().zip(evaluate_together(&input, &together)?) {
            reports[place] = Some(report);
        }
    }
    Ok(MaskReport {
        n,
        n_subjects: count_subjects(subjects, &(0..n).collect::<Vec<_>>()),
        classes: samples.classes.to_vec(),
        masks: *masks,
        unit: samples.unit.to_owned(),
        settings: settings.clone(),
        metrics: reports.into_iter().flatten().collect(),
        empty: samples.empty(groups, n),
    })
}

/// Attribute and level of a group (`None`: all samples), and its rows.
type NamedRows<'a> = (Option<(&'a str, &'a str)>, Vec<usize>);

/// The values of one metric of one class by sample.
struct Column {
    metric: MaskMetric,
    name: String,
    label: String,
    convention: String,
    values: Vec<Result<f64, MetricError>>,
}

impl Column {
    fn has_value(&self) -> Vec<bool> {
        self.values.iter().map(Result::is_ok).collect()
    }

    fn description(&self) -> MetricDescription<'_> {
        let Self { metric, name, label, convention, .. } = self;
        MetricDescription { name, label, convention, direction: metric.direction() }
    }
}

impl MaskSamples<'_> {
    fn check(&self, n: usize, metrics: &[MaskMetric], settings: &EvaluationSettings) -> Result<(), MetricError> {
        let invalid = |setting, value: &str, expected| {
            Err(MetricError::InvalidSetting { setting, value: value.to_owned(), expected })
        };
        if self.classes.is_empty() {
            return invalid("classes", "none", "at least one class of the masks");
        }
        // Its masks would be empty, and agree in every sample.
        if let Some(class) = self.classes.iter().find(|class| class.values.is_empty()) {
            return invalid("values of a class", &format!("none for {}", class.name), "at least one value");
        }
        if metrics.is_empty() {
            return invalid("metrics", "none", "at least one metric of masks");
        }
        if metrics.contains(&MaskMetric::CupToDisc) && self.cup_to_disc.is_none() {
            return invalid("metrics", "cup-to-disc-error", "the classes of cup and disc for it");
        }
        if settings.stratify == Stratify::Event {
            return invalid("stratify", "event", "none or an attribute, because masks have no events");
        }
        let counts = std::iter::once(("classes with scores", self.scores.len(), self.classes.len()))
            .chain(self.scores.iter().map(|of_class| ("scores of a class", of_class.len(), n)))
            .chain(self.cup_to_disc.iter().map(|errors| ("errors of the cup-to-disc ratio", errors.len(), n)));
        for (what, found, expected) in counts {
            if found != expected {
                return Err(MetricError::LengthMismatch { what, found, expected });
            }
        }
        Ok(())
    }

    /// By class and metric, the error of the cup-to-disc ratio last.
    fn columns(&self, metrics: &[MaskMetric], masks: &MaskSettings) -> Vec<Column> {
        let of_classes = metrics.iter().filter(|metric| **metric != MaskMetric::CupToDisc);
        let column = |class: &MaskClass, scores: &[PairScore], metric: MaskMetric| Column {
            metric,
            name: format!("{}-{}", metric.name(), class.name),
            label: format!("{} ({})", metric.label(), class.name),
            convention: metric.convention(masks, self.unit),
            values: scores.iter().map(|score| metric.value(score)).collect(),
        };
        let classes = self.classes.iter().zip(self.scores);
        let columns =
            classes.flat_map(|(class, scores)| of_classes.clone().map(move |metric| column(class, scores, *metric)));
        let ratio = self.cup_to_disc.filter(|_| metrics.contains(&MaskMetric::CupToDisc)).map(|errors| Column {
            metric: MaskMetric::CupToDisc,
            name: MaskMetric::CupToDisc.name().to_owned(),
            label: MaskMetric::CupToDisc.label().to_owned(),
            convention: MaskMetric::CupToDisc.convention(masks, self.unit),
            values: errors.to_vec(),
        });
        columns.chain(ratio).collect()
    }

    fn empty(&self, groups: &[Groups], n: usize) -> Vec<EmptyMasks> {
        let mut slices: Vec<NamedRows<'_>> = vec![(None, (0..n).collect())];
        for groups in groups {
            let name = |level: usize| Some((groups.attribute(), groups.levels()[level].as_str()));
            slices.extend(groups.ids().map(|group| (name(group.index()), groups.rows(group))));
        }
        let of_class = |(class, scores): (&MaskClass, &Vec<PairScore>)| {
            let of_slice = |(name, rows): &NamedRows<'_>| {
                let count = |truth: bool, predicted: bool| {
                    let is_so = |score: &PairScore| (score.n_truth == 0, score.n_predicted == 0) == (truth, predicted);
                    rows.iter().filter(|row| is_so(&scores[**row])).count()
                };
                EmptyMasks {
                    class: class.name.clone(),
                    attribute: name.map(|(attribute, _)| attribute.to_owned()),
                    level: name.map(|(_, level)| level.to_owned()),
                    n: rows.len(),
                    n_both: count(true, true),
                    n_truth: count(true, false),
                    n_predicted: count(false, true),
                }
            };
            slices.iter().map(of_slice).collect::<Vec<_>>()
        };
        self.classes.iter().zip(self.scores).flat_map(of_class).collect()
    }
}

/// The reports of columns with a value for the same samples, those of `input` with an event.
fn evaluate_together(input: &Input<'_>, columns: &[&Column]) -> Result<Vec<MetricReport>, MetricError> {
    let descriptions: Vec<MetricDescription<'_>> = columns.iter().map(|column| column.description()).collect();
    let prepare = |rows: &[usize], visit: Visit<'_, 'static>| {
        let of_column = |column: &&Column| -> Prepared<'static> { Ok(Box::new(Mean::of(column, rows)?)) };
        columns.iter().map(of_column).for_each(visit);
    };
    let evaluated = Evaluated::of_prepared(input, &descriptions, prepare, true)?;
    let evaluated = Evaluated { counted: Counted::Values, ..evaluated };
    let summary = Summary { input, evaluated: &evaluated };
    let report = |(place, column): (usize, &&Column)| {
        let report = summary.metric(place);
        if column.metric.is_distance() { without_equity_scaling(report) } else { report }
    };
    Ok(columns.iter().enumerate().map(report).collect())
}

/// The mean of the values of some samples.
struct Mean {
    values: Vec<Option<f64>>,
}

impl Mean {
    /// # Errors
    /// [`MetricError::NoMaskValue`] if no row has a value.
    fn of(column: &Column, rows: &[usize]) -> Result<Self, MetricError> {
        let values: Vec<Option<f64>> = rows.iter().map(|row| column.values[*row].as_ref().ok().copied()).collect();
        let first = rows.first().and_then(|row| column.values[*row].as_ref().err());
        match first {
            Some(first) if values.iter().all(Option::is_none) => {
                Err(MetricError::NoMaskValue { n: rows.len(), first: Box::new(first.clone()) })
            }
            _ => Ok(Self { values }),
        }
    }
}

impl PreparedMetric for Mean {
    fn value(&self, weights: &[u32]) -> Result<f64, MetricError> {
        let (mut sum, mut n) = (0.0, 0_u64);
        for (value, weight) in self.values.iter().zip(weights) {
            if let Some(value) = value {
                sum += f64::from(*weight) * value;
                n += u64::from(*weight);
            }
        }
        if n == 0 { Err(MetricError::NoSamples) } else { Ok(sum / n as f64) }
    }

    fn values(&self, draws: &WeightBlock<'_>) -> Vec<Option<f64>> {
        let (mut sums, mut counts) = ([0.0; LANES], [0_u64; LANES]);
        for (value, weights) in self.values.iter().zip(draws.rows()) {
            let Some(value) = value else { continue };
            for lane in 0..LANES {
                sums[lane] += f64::from(weights[lane]) * value;
                counts[lane] += u64::from(weights[lane]);
            }
        }
        (0..draws.n_draws()).map(|lane| (counts[lane] > 0).then(|| sums[lane] / counts[lane] as f64)).collect()
    }
}

/// The forms of equity scaling divide, or subtract from 1, a metric in [0, 1].
fn without_equity_scaling(mut report: MetricReport) -> MetricReport {
    let undefined = |estimate: &mut Estimate| {
        let why = "equity scaling is about metrics between 0 and 1, and distances have no upper end";
        *estimate = Estimate {
            value: None,
            undefined: Some(why.to_owned()),
            lower: None,
            upper: None,
            interval_undefined: None,
            caution: None,
            ..estimate.clone()
        };
    };
    for attribute in &mut report.attributes {
        let AttributeReport {
            equity_scaling, equity_scaling_fair_seg, equity_scaling_deviation, with_all_groups, ..
        } = attribute;
        [equity_scaling, equity_scaling_fair_seg].into_iter().chain(equity_scaling_deviation).for_each(undefined);
        if let Some(all) = with_all_groups {
            [&mut all.equity_scaling, &mut all.equity_scaling_fair_seg, &mut all.equity_scaling_deviation]
                .into_iter()
                .for_each(undefined);
        }
    }
    report
}

#[cfg(test)]
mod tests;
