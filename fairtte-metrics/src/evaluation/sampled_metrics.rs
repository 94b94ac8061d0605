//! The metrics of one model with their bootstrap replicates, for results beyond the report of one model: on models that
//! were chosen among many, or on changes other than a plain difference.
//!
//! Draws depend on subjects, strata and seed only, so replicate b of two models on the same samples is the same draw and
//! their numbers are paired ([`paired_difference`](crate::resampling::paired_difference),
//! [`relative_change`](crate::resampling::relative_change)).

use crate::classification::ClassPredictions;
use crate::competing::{CompetingOutcomes, IncidenceCurves};
use crate::evaluation::ClassSettings;
use crate::evaluation::causes::of_cause;
use crate::evaluation::evaluate::{Requested, each_metric};
use crate::evaluation::evaluated::{Evaluated, Input, Predictions, Sampled};
use crate::evaluation::time_window::{Covered, choose_times};
use crate::{CensoringCurve, Direction, EvaluationSettings, Groups, MetricError, Outcomes, SubjectId, SurvivalCurves};

/// The metrics of [`evaluate`](crate::evaluate), each with its replicates.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledMetrics {
    /// Number of samples.
    pub n: usize,
    /// Number of events.
    pub n_events: usize,
    /// One per metric, in the order of a report.
    pub metrics: Vec<SampledMetric>,
}

/// One metric of the whole sample and of every group.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledMetric {
    /// Stable name, as in [`MetricReport`](crate::evaluation::MetricReport).
    pub name: String,
    /// Whether a higher value is better.
    pub higher_is_better: bool,
    /// Of all samples.
    pub overall: SampledValue,
    /// By attribute.
    pub attributes: Vec<SampledAttribute>,
}

/// The groups of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledAttribute {
    /// Name of the attribute.
    pub attribute: String,
    /// One per level, in the order of the levels.
    pub groups: Vec<SampledGroup>,
}

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledGroup {
    /// Name of the group.
    pub level: String,
    /// Number of samples.
    pub n: usize,
    /// Number of events.
    pub n_events: usize,
    /// The metric within the group.
    pub value: SampledValue,
}

/// A number with its replicates.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledValue {
    /// The number, or why there is none.
    pub value: Result<f64, MetricError>,
    /// The number in every replicate, `[replicates]`; `None` where it is undefined.
    pub replicates: Vec<Option<f64>>,
}

impl SampledMetrics {
    /// The metric with this stable name.
    pub fn metric(&self, name: &str) -> Option<&SampledMetric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

impl SampledMetric {
    /// The groups of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&SampledAttribute> {
        self.attributes.iter().find(|attribute| attribute.attribute == name)
    }
}

impl SampledValue {
    /// This number minus another one of the same draws; undefined wherever one of the two is.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let value = self.value.clone().and_then(|value| Ok(value - other.value.clone()?));
        let pairs = self.replicates.iter().zip(&other.replicates);
        Self { value, replicates: pairs.map(|(own, other)| Some((*own)? - (*other)?)).collect() }
    }
}

impl From<Sampled> for SampledValue {
    fn from(Sampled { value, replicates, .. }: Sampled) -> Self {
        Self { value, replicates }
    }
}

/// C^td, AUC^td and IBS of `curves` for the whole sample and every group, with all replicates; arguments, values and cost
/// as [`evaluate`](crate::evaluate). Memory: O(replicates x (1 + number of groups)) numbers per metric.
///
/// ```
/// use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, Outcomes, Reading, SubjectId, SurvivalCurves};
/// use fairtte_metrics::evaluation::sample_metrics;
/// use ndarray::array;
///
/// let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], vec![true, true, true, false])?;
/// let curves = SurvivalCurves::new(vec![1.0], array![[0.1], [0.2], [0.3], [0.4]])?;
/// let subjects = ["a", "b", "c", "d"].map(SubjectId::from);
/// let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
/// let settings = EvaluationSettings { replicates: 50, reading: Reading::Step, ..EvaluationSettings::default() };
/// let found = sample_metrics(&subjects, &outcomes, &curves, &censoring, &[], &settings)?;
/// let c_td = found.metric("c_td_antolini_strict").expect("it is always computed");
/// assert_eq!((c_td.overall.value.clone(), c_td.overall.replicates.len()), (Ok(1.0), 50));
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// Those of [`evaluate`](crate::evaluate).
pub fn sample_metrics(
    subjects: &[SubjectId],
    outcomes: &Outcomes,
    curves: &SurvivalCurves,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<SampledMetrics, MetricError> {
    let input = Input { subjects, outcomes, competing: None, groups, settings };
    input.check()?;
    let window = choose_times(outcomes, censoring, Covered::by([curves], settings.reading), settings);
    let times = window.as_ref().map(|window| window.times.as_slice()).map_err(MetricError::clone);
    let evaluated = Evaluated::of_curves(&input, &Predictions { curves, censoring, times }, false)?;
    let metrics = (0..evaluated.metrics.len()).map(|place| sampled(&input, &evaluated, place)).collect();
    Ok(SampledMetrics { n: outcomes.n(), n_events: outcomes.n_events(), metrics })
}

/// The metrics that `settings` name, of the predicted cumulative incidence of `cause`, with all replicates; arguments, values
/// and cost as [`evaluate_cause`](crate::evaluation::evaluate_cause).
///
/// # Errors
/// Those of [`evaluate_cause`](crate::evaluation::evaluate_cause).
pub fn sample_metrics_of_cause(
    subjects: &[SubjectId],
    (outcomes, cause): (&CompetingOutcomes, u32),
    curves: &IncidenceCurves,
    censoring: &CensoringCurve,
    groups: &[Groups],
    settings: &EvaluationSettings,
) -> Result<SampledMetrics, MetricError> {
    of_cause(subjects, (outcomes, cause), curves, censoring, groups, settings, |input, chosen, predictions| {
        let of_metric = |found: &Requested<'_>| sampled(input, &found.evaluated[0], found.place);
        let metrics = each_metric(input, predictions, chosen, false, of_metric)?;
        Ok(SampledMetrics { n: outcomes.n(), n_events: input.outcomes.n_events(), metrics })
    })
}

/// The metrics of a class for the whole sample and every group, with all replicates; arguments, values and cost as
/// [`evaluate_classes`](crate::evaluation::evaluate_classes). Events are positive samples.
///
/// # Errors
/// Those of [`evaluate_classes`](crate::evaluation::evaluate_classes).
pub fn sample_classes(
    predictions: &ClassPredictions,
    subjects: &[SubjectId],
    groups: &[Groups],
    class: &ClassSettings,
    settings: &EvaluationSettings,
) -> Result<SampledMetrics, MetricError> {
    class.validate()?;
    let outcomes = Outcomes::new(vec![1.0; predictions.n()], predictions.positive().to_vec())?;
    let input = Input { subjects, outcomes: &outcomes, competing: None, groups, settings };
    input.check()?;
    let evaluated = Evaluated::of_classes(&input, predictions, class, false)?;
    let metrics = (0..evaluated.metrics.len()).map(|place| sampled(&input, &evaluated, place)).collect();
    Ok(SampledMetrics { n: outcomes.n(), n_events: outcomes.n_events(), metrics })
}

/// The metric at a place with its replicates.
fn sampled(input: &Input<'_>, evaluated: &Evaluated<'_>, metric: usize) -> SampledMetric {
    let Input { outcomes, groups, .. } = *input;
    let n_events = |rows: &[usize]| rows.iter().filter(|row| outcomes.event()[**row]).count();
    let attribute = |place: usize| {
        let of_attribute = &evaluated.attributes[place];
        let group = |(level, name): (usize, &String)| {
            let rows = groups[place].rows(of_attribute.groups[level].group);
            let value = evaluated.group(metric, place, level).into();
            SampledGroup { level: name.clone(), n: rows.len(), n_events: n_events(&rows), value }
        };
        let groups = of_attribute.groups.iter().map(|group| &group.level).enumerate().map(group).collect();
        SampledAttribute { attribute: of_attribute.attribute.clone(), groups }
    };
    let about = &evaluated.metrics[metric];
    SampledMetric {
        name: about.name.to_owned(),
        higher_is_better: about.direction == Direction::HigherIsBetter,
        overall: evaluated.overall(metric).into(),
        attributes: (0..groups.len()).map(attribute).collect(),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::resampling::paired_difference;
    use crate::{CensoringTies, GroupId, compare_models, evaluate};

    #[test]
    fn the_metrics_of_a_class_are_those_of_its_report_and_their_replicates_give_its_intervals()
    -> Result<(), MetricError> {
        let positive: Vec<bool> = (0..90).map(|k| k % 3 == 0).collect();
        let probability = (0..90).map(|k| f64::from((k * 37 + u32::from(k % 3 == 0) * 20) % 100) / 100.0).collect();
        let predictions = ClassPredictions::new(probability, positive)?;
        let subjects: Vec<SubjectId> = (0..90).map(|k| SubjectId::new(format!("p{k:02}"))).collect();
        let membership = (0..90).map(|k| Some(GroupId(k / 45))).collect();
        let groups = [Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership)?];
        let settings = EvaluationSettings { replicates: 100, permutations: 0, ..EvaluationSettings::default() };
        let class = ClassSettings::default();
        let found = sample_classes(&predictions, &subjects, &groups, &class, &settings)?;
        let report = crate::evaluation::evaluate_classes(&predictions, &subjects, &groups, &class, &settings)?;
        assert_eq!((found.n, found.n_events, found.metrics.len()), (90, 30, report.metrics.len()));
        for (sampled, reported) in found.metrics.iter().zip(&report.metrics) {
            assert_eq!(sampled.name, reported.name);
            assert_eq!(sampled.overall.value.clone().ok(), reported.overall.value, "{}", sampled.name);
            let of_sex = sampled.attribute("sex").map(|of| of.groups[1].value.value.clone().ok());
            assert_eq!(of_sex, Some(reported.attributes[0].groups[1].estimate.value), "{}", sampled.name);
            assert_eq!(sampled.overall.replicates.len(), 100);
        }
        let auc = found.metric("auc").map(|metric| metric.overall.clone());
        let auc = auc.ok_or(MetricError::NoSamples)?;
        let outside = |end: Option<f64>, is_low: bool| {
            let end = end.unwrap_or(f64::NAN);
            let beyond = |value: &f64| if is_low { *value < end } else { *value > end };
            auc.replicates.iter().flatten().filter(|value| beyond(value)).count()
        };
        let reported = &report.metrics[0].overall;
        // 2.5 % of 100 replicates at each end of the percentile interval.
        assert!((1..=4).contains(&outside(reported.lower, true)) && (1..=4).contains(&outside(reported.upper, false)));
        Ok(())
    }

    fn curves(shift: f64) -> SurvivalCurves {
        let survival = |(row, time): (usize, usize)| {
            let risk = 0.2 + 0.6 * ((row as f64 * 0.7 + shift).sin() * 0.5 + 0.5);
            (1.0 - risk).powi(i32::try_from(time).unwrap() + 1)
        };
        SurvivalCurves::new(vec![1.0, 2.0, 4.0], Array2::from_shape_fn((60, 3), survival)).unwrap()
    }

    #[test]
    fn values_and_replicates_are_those_of_reports_and_of_paired_comparisons() {
        let time = (0..60).map(|k| 0.5 + f64::from(k * 17 % 60) / 15.0).collect();
        let outcomes = Outcomes::new(time, (0..60).map(|k| k % 3 != 0).collect()).unwrap();
        let subjects: Vec<SubjectId> = (0..60).map(|k| SubjectId::new(format!("p{k}"))).collect();
        let levels = vec!["a".to_owned(), "b".to_owned()];
        let groups = Groups::new("sex", levels, (0..60).map(|k| Some(GroupId(k % 2))).collect()).unwrap();
        let groups = [groups];
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst).unwrap();
        let metrics = ["c-td", "c-td-half", "auc-td", "ibs"].map(str::to_owned).to_vec();
        let settings = EvaluationSettings { replicates: 40, metrics, ..EvaluationSettings::default() };
        let [first, second] = [curves(0.0), curves(0.4)];
        let sample = |curves| sample_metrics(&subjects, &outcomes, curves, &censoring, &groups, &settings).unwrap();
        let (own, other) = (sample(&first), sample(&second));
        let report = evaluate(&subjects, &outcomes, &first, &censoring, &groups, &settings).unwrap();
        let models = [("first", &first), ("second", &second)];
        let compared = compare_models(&models, &subjects, &outcomes, &censoring, &groups, &settings).unwrap();
        assert_eq!((own.n, own.n_events), (60, 40));
        for metric in &report.metrics {
            let (own, other) = (own.metric(&metric.name).unwrap(), other.metric(&metric.name).unwrap());
            assert_eq!(own.higher_is_better, metric.higher_is_better);
            let pair = compared.pairs.iter().find(|pair| pair.metric == metric.name).unwrap();
            let difference = |a: &SampledValue, b: &SampledValue| {
                let (a_value, b_value) = (a.value.clone().unwrap(), b.value.clone().unwrap());
                let (a, b) = (
                    crate::resampling::Replicated::new(a_value, &a.replicates),
                    crate::resampling::Replicated::new(b_value, &b.replicates),
                );
                let found = paired_difference(&a, &b, settings.level, settings.interval).unwrap();
                (Some(found.value), Some(found.interval.lower), Some(found.interval.upper), found.p_value)
            };
            let expected = |d: &crate::evaluation::Difference| (d.value, d.lower, d.upper, d.p_value);
            assert_eq!(own.overall.value.clone().ok(), metric.overall.value);
            assert_eq!(difference(&own.overall, &other.overall), expected(&pair.overall));
            for level in 0..2 {
                let [own, other] = [own, other].map(|m| &m.attribute("sex").unwrap().groups[level]);
                let of_report = &metric.attributes[0].groups[level];
                assert_eq!((own.n, own.n_events), (of_report.estimate.n, of_report.estimate.n_events));
                assert_eq!(own.level, of_report.level);
                assert_eq!(difference(&own.value, &other.value), expected(&pair.attributes[0].groups[level].1));
            }
        }
    }

    #[test]
    fn a_difference_is_undefined_where_either_number_is() {
        let a = SampledValue { value: Ok(0.75), replicates: vec![Some(0.5), None, Some(1.0)] };
        let b = SampledValue { value: Ok(0.5), replicates: vec![Some(0.25), Some(0.5), None] };
        assert_eq!(a.minus(&b), SampledValue { value: Ok(0.25), replicates: vec![Some(0.25), None, None] });
        let none = SampledValue { value: Err(MetricError::NoSamples), replicates: vec![None; 3] };
        assert_eq!(a.minus(&none).value, Err(MetricError::NoSamples));
    }
}
