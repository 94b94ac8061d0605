//! The sample that the censoring curve is fitted on, where it is not the evaluated one: whether it can be what it is given for.

use fairtte_metrics::evaluation::check_training_times;
use fairtte_metrics::{MetricError, Outcomes};
use fairtte_records::{TRAINING_SAMPLE, Warning};

/// Checks that the times of `train`, if there is one, are in the unit of the `evaluated` ones, and warns of times that look like another
/// unit, and of a sample without events or without censored samples, whose weights mean something else. An event of any cause is one.
///
/// # Errors
/// [`MetricError::TrainingTimesDisagree`] where the times hardly overlap.
pub(crate) fn about_training(train: Option<&Outcomes>, evaluated: &Outcomes) -> Result<Option<Warning>, MetricError> {
    let Some(train) = train else { return Ok(None) };
    match check_training_times(train, evaluated) {
        // A sample at much higher risk looks the same.
        Err(error @ MetricError::TrainingTimesDisagree { is_far: false, .. }) => {
            let text = format!("Look at the unit of time: {error}.");
            return Ok(Some(Warning { name: TRAINING_SAMPLE.to_owned(), text }));
        }
        found => found?,
    }
    let n_censored = |outcomes: &Outcomes| outcomes.n() - outcomes.n_events();
    let text = if train.n_events() == 0 && evaluated.n_events() > 0 {
        format!(
            "The training sample has no event ({} of {} evaluated samples have one): the censoring curve takes every training time for \
             a censoring, so that the weights of AUC^td and IBS are too large. Look at its column of events.",
            evaluated.n_events(),
            evaluated.n()
        )
    } else if n_censored(train) == 0 && n_censored(evaluated) > 0 {
        format!(
            "No sample of the training sample is censored ({} of {} evaluated samples are): the censoring curve is 1 everywhere, so that \
             all weights are 1 and AUC^td and IBS are not corrected for censoring. Look at its column of events.",
            n_censored(evaluated),
            evaluated.n()
        )
    } else {
        return Ok(None);
    };
    Ok(Some(Warning { name: TRAINING_SAMPLE.to_owned(), text }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn a_training_sample_without_events_or_without_censored_samples_is_warned_of() {
        let of = |events: [bool; 4]| Outcomes::new(vec![1.0, 2.0, 3.0, 4.0], events.to_vec()).unwrap();
        let mixed = of([true, false, true, true]);
        let text = |train: [bool; 4], evaluated: &Outcomes| {
            about_training(Some(&of(train)), evaluated).unwrap().map(|warning| warning.text)
        };
        let without = text([false; 4], &mixed).unwrap();
        assert!(
            without.starts_with("The training sample has no event (3 of 4 evaluated samples have one)"),
            "{without}"
        );
        let complete = text([true; 4], &mixed).unwrap();
        assert!(
            complete.contains("(1 of 4 evaluated samples are)") && complete.contains("all weights are 1"),
            "{complete}"
        );
        // Hazards that differ by a factor of 10, followed for ten years and for one.
        let followed = |hazard: f64, years: f64| {
            let time = |k: u32| -(1.0 - (f64::from(k) + 0.5) / 200.0).ln() / hazard;
            let (times, events) = (0..200).map(time).map(|time| (time.min(years), time <= years)).unzip();
            Outcomes::new(times, events).unwrap()
        };
        let unlike = about_training(Some(&followed(0.05, 10.0)), &followed(0.5, 1.0)).unwrap().unwrap().text;
        assert!(unlike.starts_with("Look at the unit of time: the training times go up to 10 and"), "{unlike}");
        assert_eq!(text([true, false, false, false], &mixed), None);
        assert_eq!(text([true; 4], &of([true; 4])), None);
        assert_eq!(text([false; 4], &of([false; 4])), None);
    }
}
