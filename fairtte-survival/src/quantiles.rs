//! Cut points at quantiles of the Kaplan-Meier curve of the training part (Kvamme & Borgan 2021, section 3.4): about
//! equally many events fall into each interval.
//!
//! pycox 0.3.0, `cuts_quantiles`, step by step: the point (0, 1) is added to the curve; `n` values lie evenly between
//! its lowest and its highest value; each is moved up to the nearest value that the curve takes and gives the latest
//! time at which the curve takes it; times that occur twice are kept once; the first cut is set to 0. So there may be
//! fewer than `n` cut points. The last is the largest training time. As in pycox, the curve is the exponential of a sum
//! of logarithms, since rounding decides where one of the `n` values coincides with a value of the curve.

use fairtte_metrics::Outcomes;

/// At most `n` cut points from 0 to the largest time; `train` has an event and two different times.
pub(crate) fn cuts(train: &Outcomes, n: usize) -> Vec<f64> {
    let curve = kaplan_meier(train); // (time, survival), times ascending
    let (highest, lowest) = (curve[0].1, curve[curve.len() - 1].1);
    let step = (highest - lowest) / (n - 1) as f64;
    // Descending values give ascending times.
    let wanted = (0..n).rev().map(|k| if k == n - 1 { highest } else { lowest + k as f64 * step });
    let mut times: Vec<f64> = wanted
        .map(|value| curve[curve.partition_point(|(_, survival)| *survival >= value).saturating_sub(1)].0)
        .collect();
    times.dedup();
    times[0] = 0.0;
    if times.len() == 1 {
        times.push(curve[curve.len() - 1].0); // every event is at time 0: the curve is flat after it
    }
    times
}

/// The curve at 0 and at every observed time.
fn kaplan_meier(train: &Outcomes) -> Vec<(f64, f64)> {
    let mut rows: Vec<(f64, bool)> = train.time().iter().copied().zip(train.event().iter().copied()).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut curve = if rows.first().is_some_and(|(time, _)| *time > 0.0) { vec![(0.0, 1.0)] } else { Vec::new() };
    let (mut log_survival, mut at_risk) = (0.0, rows.len());
    for tied in rows.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let events = tied.iter().filter(|(_, event)| *event).count();
        log_survival += (1.0 - events as f64 / at_risk as f64).ln(); // minus infinity where the curve ends at 0
        curve.push((tied[0].0, log_survival.exp()));
        at_risk -= tied.len();
    }
    curve
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    #[test]
    fn a_curve_that_falls_at_time_0_only_still_gives_an_interval() {
        let time = vec![0.0, 0.0, 1.0, 2.0, 3.0];
        let train = Outcomes::new(time, vec![true, true, false, false, false]).unwrap();
        assert_eq!(cuts(&train, 5), [0.0, 3.0]);
    }
}
