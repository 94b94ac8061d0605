//! The evaluation of predicted probabilities of a binary class.
//!
//! Groups, gaps, intervals and comparisons are those of [`evaluate`](crate::evaluate), from the same draws. An event is a
//! positive sample. Criteria at the threshold are read from the gaps of the groups that are compared; see
//! [`Parity`](crate::classification::Parity) for what they are.

mod settings;

use serde::{Deserialize, Serialize};

use self::settings::{ACCURACY, ECE, FNR, FPR, INTERCEPT, SELECTION, SLOPE};
pub use self::settings::{CLASS_METRICS, ClassSettings};
use crate::classification::replicates::{ClassValues, N_CLASS_METRICS, SortedClasses};
use crate::classification::{
    ClassPredictions, Confusion, DeLong, RocReading, Underdiagnosis, auc, average_precision, brier_score,
    calibration_intercept, calibration_line, confusion, cross_entropy, delong, expected_calibration_error, tpr_at_tnr,
};
use crate::evaluation::Stop;
use crate::evaluation::chance::{RelabelledValues, Relabelling};
use crate::evaluation::evaluated::{Counted, Evaluated, Input, Kind, Slice, SliceValue, count_subjects};
use crate::evaluation::model_comparison::{ModelComparison, ModelPair, check_names, compare_pairs, every_two, owned};
use crate::evaluation::models::{TradeOff, check_reference, trade_offs};
use crate::evaluation::replicates::Cells;
use crate::evaluation::report::{Estimate, MetricReport};
use crate::evaluation::resampled::{Draws, Resampled, Values};
use crate::evaluation::summary::Summary;
use crate::fairness::{Comparison, PerGroup};
use crate::resampling::lanes::{LANES, LaneWeights};
use crate::{EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, parallel};

/// The result of [`evaluate_classes`] for one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClassReport {
    /// Evaluated samples.
    pub n: usize,
    /// Positive samples among them.
    pub n_positive: usize,
    /// Distinct subjects among them.
    pub n_subjects: usize,
    /// What the metrics were computed with.
    pub class: ClassSettings,
    /// Replicates and intervals.
    pub settings: EvaluationSettings,
    /// One entry per metric of [`CLASS_METRICS`]; events are positive samples.
    pub metrics: Vec<MetricReport>,
    /// The AUC with the variance of `DeLong`, which treats samples as independent; `None` where it does not exist.
    pub delong: Option<DeLong>,
    /// The true positive rate of the step reading; `None` where it does not exist.
    pub tpr_at_tnr_step: Option<f64>,
    /// Criteria of fairness at the threshold, one entry per attribute.
    pub parity: Vec<AttributeParity>,
}

impl ClassReport {
    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&MetricReport> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

/// The result of [`evaluate_class_models`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClassModels {
    /// Name of the model that all others are compared with.
    pub reference: String,
    /// Name and report of every model, in the order given; all have the same samples and threshold.
    pub models: Vec<(String, ClassReport)>,
    /// One entry per metric and other model: its values minus those of the reference.
    pub pairs: Vec<ModelPair>,
    /// One entry per metric and attribute.
    pub trade_offs: Vec<TradeOff>,
}

/// The criteria of one attribute, of the groups that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AttributeParity {
    /// Name of the attribute.
    pub attribute: String,
    /// 1 - gap of the false positive rate (`EqOpp0`); 1 = equal.
    pub equal_opportunity_negative: Estimate,
    /// 1 - gap of the true positive rate (`EqOpp1`).
    pub equal_opportunity_positive: Estimate,
    /// Their mean (`EqOdd`). Its interval comes from those of both gaps, each at half of the error level.
    pub equalised_odds: Estimate,
    /// Gap of the selection rate; 0 = equal.
    pub demographic_parity_difference: Estimate,
    /// Smallest divided by largest selection rate; 1 = equal.
    pub demographic_parity_ratio: Estimate,
    /// Gap of the rate of underdiagnosis of the settings.
    pub underdiagnosis_difference: Estimate,
}

/// Evaluates the probabilities of one model: every metric of [`CLASS_METRICS`] of the whole sample and of every group, gap,
/// ratio, worst group, differences and intervals, and the criteria of fairness at the threshold.
///
/// Row `i` of every argument is the same sample. Of `settings`, those of replicates, permutations, intervals, `min-events`
/// and references are used; `min-events` counts the samples of the rarer class of a group.
///
/// Cost: O(n log n), and O(n) per replicate and attribute; 32 replicates go through the sorted samples together.
///
/// ```
/// use fairtte_metrics::classification::ClassPredictions;
/// use fairtte_metrics::evaluation::{ClassSettings, evaluate_classes};
/// use fairtte_metrics::{EvaluationSettings, GroupId, Groups, SubjectId};
///
/// // 80 people; the model knows group F only.
/// let positive: Vec<bool> = (0..80).map(|k| k % 2 == 0).collect();
/// let probability = (0..80).map(|k| if k < 40 { 0.3 + 0.4 * f64::from((k + 1) % 2) } else { f64::from(k) / 100.0 });
/// let predictions = ClassPredictions::new(probability.collect(), positive)?;
/// let subjects: Vec<SubjectId> = (0..80).map(|k| SubjectId::new(format!("p{k:02}"))).collect();
/// let sex = Groups::new("sex", vec!["F".into(), "M".into()], (0..80).map(|k| Some(GroupId(k / 40))).collect())?;
/// let settings = EvaluationSettings { replicates: 50, permutations: 0, ..EvaluationSettings::default() };
/// let report = evaluate_classes(&predictions, &subjects, &[sex], &ClassSettings::default(), &settings)?;
/// assert_eq!(report.metrics[0].attributes[0].worst_group.as_deref(), Some("M"));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`ClassSettings::validate`], and of [`evaluate`](crate::evaluate) for subjects, groups and settings.
pub fn evaluate_classes(
    predictions: &ClassPredictions,
    subjects: &[SubjectId],
    groups: &[Groups],
    class: &ClassSettings,
    settings: &EvaluationSettings,
) -> Result<ClassReport, MetricError> {
    class.validate()?;
    let outcomes = outcomes(predictions)?;
    let input = Input { subjects, outcomes: &outcomes, competing: None, groups, settings };
    input.check()?;
    let evaluated = Evaluated::of_classes(&input, predictions, class, true)?;
    Ok(report(&input, &evaluated, predictions, class))
}

pub(super) fn report(
    input: &Input<'_>,
    evaluated: &Evaluated<'_>,
    predictions: &ClassPredictions,
    class: &ClassSettings,
) -> ClassReport {
    let Input { subjects, groups, settings, .. } = *input;
    let summary = Summary { input, evaluated };
    let underdiagnosis = match class.underdiagnosis {
        Underdiagnosis::MissedDisease => FNR,
        Underdiagnosis::CalledNoFinding => FPR,
    };
    let named = |place: usize| {
        let gap_name = match place {
            FNR => Some("equal opportunity difference"),
            FPR => Some("predictive equality difference"),
            SELECTION => Some("demographic parity difference"),
            _ => None,
        };
        MetricReport {
            gap_name: gap_name.map(|name| {
                if place == underdiagnosis { format!("{name}, underdiagnosis difference") } else { name.to_owned() }
            }),
            ratio_name: (place == SELECTION).then(|| "demographic parity ratio".to_owned()),
            threshold: is_decision(place).then_some(class.threshold),
            ..summary.metric(place)
        }
    };
    let metrics: Vec<MetricReport> = (0..N_CLASS_METRICS).map(named).collect();
    let parity = (0..groups.len()).map(|attribute| parity(&summary, &metrics, attribute, underdiagnosis)).collect();
    ClassReport {
        n: predictions.n(),
        n_positive: predictions.n_positive(),
        n_subjects: count_subjects(subjects, &(0..predictions.n()).collect::<Vec<_>>()),
        class: *class,
        settings: settings.clone(),
        metrics,
        delong: delong(predictions).ok(),
        tpr_at_tnr_step: tpr_at_tnr(predictions, class.tnr, RocReading::Step).ok(),
        parity,
    }
}

/// Compares every two of `models` (name and probabilities) in the metrics of a class, on the same samples and with the same
/// draws; all have the same threshold.
///
/// # Errors
/// Those of [`evaluate_classes`] and [`compare_models`](crate::compare_models); [`MetricError::LengthMismatch`] or
/// [`MetricError::InvalidSetting`] unless all have the same classes.
pub fn compare_classes(
    models: &[(&str, &ClassPredictions)],
    subjects: &[SubjectId],
    groups: &[Groups],
    class: &ClassSettings,
    settings: &EvaluationSettings,
) -> Result<ModelComparison, MetricError> {
    class.validate()?;
    let names = names_of(models)?;
    let outcomes = outcomes(models[0].1)?;
    let input = Input { subjects, outcomes: &outcomes, competing: None, groups, settings };
    input.check()?;
    let evaluated = evaluated(models, &input, class, false)?;
    let every_two = every_two(models.len());
    let of_metric = |metric: usize| compare_pairs(&names, &every_two, &evaluated, metric, settings);
    Ok(ModelComparison { models: owned(&names), pairs: (0..N_CLASS_METRICS).flat_map(of_metric).collect() })
}

/// The reports of several models on the same samples, and the differences of the others from `models[reference]`.
///
/// Every report is that of [`evaluate_classes`], and every difference is paired. Cost: that of the reports.
///
/// # Errors
/// Those of [`compare_classes`]; [`MetricError::InvalidSetting`] if there is no model `reference`.
pub fn evaluate_class_models(
    models: &[(&str, &ClassPredictions)],
    reference: usize,
    subjects: &[SubjectId],
    groups: &[Groups],
    class: &ClassSettings,
    settings: &EvaluationSettings,
) -> Result<ClassModels, MetricError> {
    class.validate()?;
    let names = names_of(models)?;
    check_reference(reference, models.len())?;
    let outcomes = outcomes(models[0].1)?;
    let input = Input { subjects, outcomes: &outcomes, competing: None, groups, settings };
    input.check()?;
    let evaluated = evaluated(models, &input, class, true)?;
    let reports = models.iter().zip(&evaluated);
    let reports: Vec<ClassReport> =
        reports.map(|((_, predictions), evaluated)| report(&input, evaluated, predictions, class)).collect();
    let others: Vec<(usize, usize)> =
        (0..models.len()).filter(|model| *model != reference).map(|model| (model, reference)).collect();
    let pairs = (0..N_CLASS_METRICS).flat_map(|metric| compare_pairs(&names, &others, &evaluated, metric, settings));
    let trade_offs = (0..N_CLASS_METRICS).flat_map(|metric| {
        let of_models: Vec<&MetricReport> = reports.iter().map(|report| &report.metrics[metric]).collect();
        trade_offs(&names, &of_models)
    });
    let (pairs, trade_offs) = (pairs.collect(), trade_offs.collect());
    let models = owned(&names).into_iter().zip(reports).collect();
    Ok(ClassModels { reference: names[reference].to_owned(), models, pairs, trade_offs })
}

/// The names of models, which must be different and have the same classes.
fn names_of<'a>(models: &[(&'a str, &ClassPredictions)]) -> Result<Vec<&'a str>, MetricError> {
    let names: Vec<&str> = models.iter().map(|(name, _)| *name).collect();
    check_names(&names)?;
    models[1..].iter().try_for_each(|(_, other)| models[0].1.check_same_classes(other))?;
    Ok(names)
}

fn evaluated(
    models: &[(&str, &ClassPredictions)],
    input: &Input<'_>,
    class: &ClassSettings,
    relabelled: bool,
) -> Result<Vec<Evaluated<'static>>, MetricError> {
    models.iter().map(|(_, model)| Evaluated::of_classes(input, model, class, relabelled)).collect()
}

/// Positive samples as events, all at one time.
pub(super) fn outcomes(predictions: &ClassPredictions) -> Result<Outcomes, MetricError> {
    Outcomes::new(vec![1.0; predictions.n()], predictions.positive().to_vec())
}

fn parity(summary: &Summary<'_>, metrics: &[MetricReport], attribute: usize, underdiagnosis: usize) -> AttributeParity {
    let report = |place: usize| &metrics[place].attributes[attribute];
    let from_one = |gap: &Estimate| Estimate {
        value: gap.value.map(|gap| 1.0 - gap),
        lower: gap.upper.map(|gap| 1.0 - gap),
        upper: gap.lower.map(|gap| 1.0 - gap),
        ..gap.clone()
    };
    let [negative, positive] = [FPR, FNR].map(|place| from_one(&report(place).gap));
    let value = negative.value.zip(positive.value).map(|(a, b)| 0.5 * (a + b));
    let settings = summary.input.settings;
    let half = EvaluationSettings { level: 0.5 + 0.5 * settings.level, ..settings.clone() };
    let ends = [FPR, FNR].map(|place| {
        summary.evaluated.simultaneous_interval(place, attribute, Comparison::Gap, settings.min_events, &half)
    });
    let interval = match ends {
        [Some(a), Some(b)] if value.is_some() => Some((1.0 - 0.5 * (a.1 + b.1), 1.0 - 0.5 * (a.0 + b.0))),
        _ => None,
    };
    let equalised_odds = Estimate {
        value,
        undefined: negative.undefined.clone().or_else(|| positive.undefined.clone()),
        lower: interval.map(|ends| ends.0),
        upper: interval.map(|ends| ends.1),
        undefined_replicates: negative.undefined_replicates.max(positive.undefined_replicates),
        ..negative.clone()
    };
    AttributeParity {
        attribute: report(FPR).attribute.clone(),
        equal_opportunity_negative: negative,
        equal_opportunity_positive: positive,
        equalised_odds,
        demographic_parity_difference: report(SELECTION).gap.clone(),
        demographic_parity_ratio: report(SELECTION).ratio.clone(),
        underdiagnosis_difference: report(underdiagnosis).gap.clone(),
    }
}

/// What the values of every metric mean.
fn kinds() -> Vec<Kind> {
    let kind = |place| match place {
        ECE => Kind { is_distance: true, ..Kind::default() },
        SLOPE => Kind { target: Some(1.0), ..Kind::default() },
        INTERCEPT => Kind { target: Some(0.0), ..Kind::default() },
        SELECTION => Kind { has_best: false, ..Kind::default() },
        _ => Kind::default(),
    };
    (0..N_CLASS_METRICS).map(kind).collect()
}

/// Whether a metric is about who is called positive.
fn is_decision(place: usize) -> bool {
    (ACCURACY..=FNR).contains(&place) || place == SELECTION
}

/// A group with few negative samples has no false positive rate worth comparing.
pub(crate) const COUNTED: Counted = Counted::RarerClass;

/// The metrics of some rows, each by its own function, and what replicates are made from.
struct ClassSlice {
    rows: Vec<usize>,
    values: Vec<Result<f64, MetricError>>,
    sorted: SortedClasses,
}

impl ClassSlice {
    fn new(rows: Vec<usize>, all: &ClassPredictions, class: &ClassSettings) -> Self {
        let found = all.select(&rows);
        let counts = confusion(&found, class.threshold);
        let at = |read: fn(&Confusion) -> Result<f64, MetricError>| {
            counts.as_ref().map_err(MetricError::clone).and_then(read)
        };
        let (line, intercept) = (calibration_line(&found), calibration_intercept(&found));
        let start = [
            line.as_ref().map_or([0.0, 1.0], |line| [line.intercept, line.slope]),
            [intercept.as_ref().map_or(0.0, |intercept| *intercept), 1.0],
        ];
        let values = vec![
            auc(&found),
            average_precision(&found),
            cross_entropy(&found),
            brier_score(&found),
            expected_calibration_error(&found, class.calibration_error),
            line.map(|line| line.slope),
            intercept,
            at(Confusion::accuracy),
            at(Confusion::balanced_accuracy),
            at(Confusion::f1),
            at(Confusion::false_positive_rate),
            at(Confusion::false_negative_rate),
            tpr_at_tnr(&found, class.tnr, RocReading::Interpolated),
            at(Confusion::selection_rate),
        ];
        Self { rows, values, sorted: SortedClasses::new(&found, class.readings(), start) }
    }

    fn to_slice(&self) -> Slice {
        let value = |value: &Result<f64, MetricError>| SliceValue {
            value: value.clone(),
            n_comparable: None,
            undefined_times: 0,
        };
        Slice { rows: self.rows.clone(), values: self.values.iter().map(value).collect() }
    }

    fn replicates(&self, weights: &[LaneWeights], n_draws: usize) -> Vec<ClassValues> {
        if self.rows.len() == weights.len() {
            return self.sorted.values(weights, n_draws);
        }
        let own: Vec<LaneWeights> = self.rows.iter().map(|row| weights[*row]).collect();
        self.sorted.values(&own, n_draws)
    }
}

impl Evaluated<'static> {
    /// The metrics of a class; `relabelled` says whether groups are relabelled as well.
    pub(super) fn of_classes(
        input: &Input<'_>,
        predictions: &ClassPredictions,
        class: &ClassSettings,
        relabelled: bool,
    ) -> Result<Self, MetricError> {
        let Input { outcomes, groups, .. } = *input;
        let bootstrap = input.bootstrap()?;
        let rows: Vec<Vec<usize>> = input.slices().map(|(_, rows)| rows).collect();
        let slices: Vec<ClassSlice> = parallel::map(rows, |rows| ClassSlice::new(rows, predictions, class));
        let mut of_groups = slices[1..].iter();
        let attributes = groups.iter().map(|groups| {
            let of_group = |_: &[usize]| of_groups.next().map(ClassSlice::to_slice).ok_or(MetricError::NoSamples);
            let mut found = PerGroup::compute_all(groups, outcomes, Some(input.subjects), of_group)?;
            found.groups.iter_mut().for_each(|group| group.n_events = COUNTED.of(group.n, group.n_events));
            Ok(found)
        });
        let attributes = attributes.collect::<Result<Vec<_>, MetricError>>()?;
        let values = |draws: Draws<'_>| values(&slices, draws, &input.settings.stop);
        let resampled = Resampled::new(input, &bootstrap, slices.len(), N_CLASS_METRICS, values)?;
        let by_chance = if relabelled {
            let of_weights = |relabelling: &Relabelling| {
                let found = self::values(&slices[..1], Draws::Relabelled(relabelling), &input.settings.stop)?.values;
                Ok(found.into_iter().map(|of_slice| of_slice[0].to_vec()).collect())
            };
            RelabelledValues::of_attributes(input, COUNTED, of_weights)?
        } else {
            vec![]
        };
        let (cells, overall) = (Cells::new(groups, &[]), slices[0].to_slice());
        let (metrics, kinds) = (&CLASS_METRICS, kinds());
        Ok(Self { metrics, kinds, counted: COUNTED, overall, attributes, cells, resampled, by_chance })
    }
}

/// The metrics of every slice for all weights of `draws`, in parallel over blocks of them.
fn values(slices: &[ClassSlice], draws: Draws<'_>, stop: &Stop) -> Result<Values<ClassValues>, MetricError> {
    let n_rows = slices[0].rows.len();
    stop.expect(draws.n_blocks());
    let of_block = |block: usize| -> Result<Vec<Vec<ClassValues>>, MetricError> {
        let first = block * LANES;
        let mut weights: Vec<LaneWeights> = vec![[0; LANES]; n_rows];
        draws.weights_block(first, weights.as_flattened_mut(), stop)?;
        let n_draws = LANES.min(draws.n() - first);
        let by_slice: Vec<Vec<ClassValues>> = slices.iter().map(|slice| slice.replicates(&weights, n_draws)).collect();
        Ok((0..n_draws).map(|draw| by_slice.iter().map(|of_slice| of_slice[draw]).collect()).collect())
    };
    let values = parallel::try_map(0..draws.n_blocks(), of_block)?.into_iter().flatten().collect();
    Ok(Values { values, n_partial: vec![vec![0; N_CLASS_METRICS]; slices.len()] })
}

#[cfg(test)]
mod tests;
