//! A class in place of a time: read from a column, or made from times by a horizon.
//!
//! A class is the outcome of one interval: a positive sample has its event at time 1, a negative one is followed until time 1.
//! Everything that reads times and events then reads classes, and a network that predicts the survival of this interval
//! predicts 1 minus the probability of the positive class.
//!
//! | source | positive | negative | no class |
//! |---|---|---|---|
//! | a column | its value, or 1 | any other value, or 0 | excluded when the table is read |
//! | a horizon | event by then | followed beyond it | censored by then |

use fairtte_metrics::classification::binary_at_horizon;
use serde::{Deserialize, Serialize};

use crate::cohort::{Cohort, Exclusion, Reason, Sample, unnamed_unit};
use crate::{DataError, SettingsOf};

/// The time of every sample of a class.
pub(crate) const CLASS_TIME: f64 = 1.0;

/// How times become a class, `[task] binary` of a run file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HorizonConfig {
    /// Positive is an event by this time, negative is who is followed beyond it; in the unit of the data, > 0.
    pub horizon: f64,
}

impl HorizonConfig {
    /// Checks the range.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] for a horizon that is not a finite number > 0.
    pub fn check(&self) -> Result<(), DataError> {
        if self.horizon.is_finite() && self.horizon > 0.0 {
            return Ok(());
        }
        Err(DataError::setting(SettingsOf::Horizon, "horizon", self.horizon, "a finite number > 0"))
    }
}

/// The class of every sample of a cohort.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// `Some(true)` = positive; `None` of a sample that is censored by the horizon.
    pub positive: Vec<Option<bool>>,
    /// The time at which the class is made; `None` of a class that was read.
    pub horizon: Option<f64>,
}

impl Classes {
    /// Rows without a class, ascending.
    pub fn left_out(&self) -> Vec<usize> {
        (0..self.positive.len()).filter(|row| self.positive[*row].is_none()).collect()
    }

    /// The samples without a class, for the exclusion list.
    pub fn exclusions(&self, cohort: &Cohort) -> Vec<Exclusion> {
        let horizon = self.horizon.unwrap_or_default();
        let exclusion = |row: usize| {
            let Sample { sample_id, time, .. } = &cohort.samples[row];
            let source = format!("censored at {time}, not after the horizon {horizon}");
            Exclusion { sample_id: sample_id.clone(), reason: Reason::CensoredByHorizon, source }
        };
        self.left_out().into_iter().map(exclusion).collect()
    }
}

impl Cohort {
    /// The column that the class was read from; `None` of a cohort of times.
    pub fn label(&self) -> Option<&str> {
        self.provenance.as_ref()?.label.as_deref()
    }

    /// The class of every sample: that which was read, or the event by a horizon. O(n).
    ///
    /// # Errors
    /// [`DataError::NoTimes`] for a horizon where there are no times, [`DataError::NoClass`] for times without a horizon,
    /// [`DataError::SeveralCauses`] where events have several causes, [`DataError::Metric`] for a horizon that is not a finite
    /// number > 0.
    pub fn classes(&self, horizon: Option<f64>) -> Result<Classes, DataError> {
        let positive = match (self.label(), horizon) {
            (Some(_), None) => self.samples.iter().map(|sample| Some(sample.event)).collect(),
            (None, Some(horizon)) => {
                let classes = binary_at_horizon(&self.outcomes(&self.all_rows())?, horizon)?;
                let mut positive = vec![None; self.n()];
                for (row, class) in classes.rows.into_iter().zip(classes.positive) {
                    positive[row] = Some(class);
                }
                positive
            }
            (Some(label), Some(_)) => return Err(self.no_times(label)),
            (None, None) => return Err(DataError::NoClass { cohort: self.name.clone() }),
        };
        Ok(Classes { positive, horizon })
    }

    /// The same samples with their class as the outcome of one interval, [0, 1]; one without a class is censored at 0.
    ///
    /// # Panics
    /// If there is not one class per sample.
    #[must_use]
    pub fn of_classes(&self, classes: &Classes) -> Self {
        assert_eq!(self.n(), classes.positive.len(), "one class per sample");
        let sample = |(sample, class): (&Sample, &Option<bool>)| Sample {
            time: if class.is_some() { CLASS_TIME } else { 0.0 },
            event: *class == Some(true),
            ..sample.clone()
        };
        let samples = self.samples.iter().zip(&classes.positive).map(sample).collect();
        Self { samples, provenance: None, time_unit: unnamed_unit(), ..self.clone() }
    }

    pub(super) fn no_times(&self, label: &str) -> DataError {
        DataError::NoTimes { cohort: self.name.clone(), label: label.to_owned() }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;
    use crate::cohort::ContentHasher;

    fn cohort(outcomes: &[(f64, bool)]) -> Cohort {
        let sample = |(row, (time, event)): (usize, &(f64, bool))| Sample {
            sample_id: format!("s{row}").into(),
            subject_id: format!("p{row}").into(),
            unit: None,
            image: std::path::PathBuf::new(),
            time: *time,
            event: *event,
            competing: None,
            source_row: row + 2,
        };
        Cohort {
            name: "films".to_owned(),
            time_unit: "days".to_owned(),
            source: "films.csv".into(),
            samples: outcomes.iter().enumerate().map(sample).collect(),
            attributes: Vec::new(),
            provenance: None,
            cause: None,
        }
    }

    /// A censoring at the horizon says nothing about it; an event at it is one by then.
    #[test]
    fn times_become_a_class_and_who_is_censored_by_the_horizon_has_none() {
        let times = [(100.0, true), (365.0, true), (365.0, false), (365.5, false), (400.0, true), (10.0, false)];
        let cohort = cohort(&times);
        let classes = cohort.classes(Some(365.0)).unwrap();
        assert_eq!(classes.positive, [Some(true), Some(true), None, Some(false), Some(false), None]);
        assert_eq!(classes.left_out(), [2, 5]);
        let excluded = classes.exclusions(&cohort);
        assert_eq!((excluded[0].sample_id.as_str(), excluded[1].sample_id.as_str()), ("s2", "s5"));
        assert!(excluded.iter().all(|exclusion| exclusion.reason == Reason::CensoredByHorizon));
        assert_eq!(excluded[1].source, "censored at 10, not after the horizon 365");
        let view = cohort.of_classes(&classes);
        let outcomes: Vec<(f64, bool)> = view.samples.iter().map(|sample| (sample.time, sample.event)).collect();
        assert_eq!(outcomes, [(1.0, true), (1.0, true), (0.0, false), (1.0, false), (1.0, false), (0.0, false)]);
        assert_eq!(cohort.samples[0].time.to_bits(), 100.0_f64.to_bits(), "the record is unchanged");
    }

    #[test]
    fn a_cohort_has_one_kind_of_outcome() {
        let mut cohort = cohort(&[(1.0, true), (1.0, false)]);
        let error = |found: Result<Classes, DataError>| found.err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(
            error(cohort.classes(None)),
            "films has times and no class, expected [task] binary = { horizon = .. } or a column of labels"
        );
        assert!(error(cohort.classes(Some(0.0))).contains("horizon"));
        let mut provenance = ContentHasher::new().finish("generic", String::new(), 1, Vec::new(), &[]);
        provenance.label = Some("disease".to_owned());
        cohort.provenance = Some(provenance);
        assert_eq!(cohort.classes(None).unwrap().positive, [Some(true), Some(false)]);
        let expected = "films has a class (column \"disease\") and no times, expected a cohort with time and event";
        assert_eq!(error(cohort.classes(Some(1.0))), expected);
        assert_eq!(cohort.outcomes(&[0]).err().map(|error| error.to_string()).unwrap_or_default(), expected);
        assert!(cohort.of_classes(&cohort.classes(None).unwrap()).outcomes(&[0, 1]).is_ok());
    }
}
