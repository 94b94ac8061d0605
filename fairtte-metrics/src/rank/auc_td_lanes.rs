//! The AUC of many weighted samples side by side: one walk by falling predictions serves them all.

use super::auc_td::{AucTd, PreparedAucTd};
use super::auc_walk::Walk;
use crate::MetricError;
use crate::resampling::replicates::{LANES, LaneWeights};

impl PreparedAucTd {
    /// The time averages of [`weighted`](Self::weighted) for the weights of all rows in every lane, with the same sums in the
    /// same order; `None` where undefined.
    pub(crate) fn time_averages(&self, rows: &[LaneWeights]) -> Vec<Option<f64>> {
        let weights: Vec<LaneWeights> = self.order.iter().map(|row| rows[*row as usize]).collect();
        // From the time of this event on, one case has no weight.
        let spoilt_from = |lane: usize| {
            let drawn = self.without_weight.iter().find(|event| weights[event.place][lane] > 0);
            drawn.map_or(f64::INFINITY, |event| event.time)
        };
        let by_time: Vec<[Option<f64>; LANES]> = self.walks.iter().map(|walk| self.lanes_at(walk, &weights)).collect();
        let of_lane = |lane: usize| {
            let spoilt = spoilt_from(lane);
            let value = |(time, values): (&f64, &[Option<f64>; LANES])| {
                values[lane].filter(|_| *time < spoilt).ok_or(MetricError::NoCases { time: *time })
            };
            AucTd::new(&self.times, self.times.iter().zip(&by_time).map(value).collect()).time_average.ok()
        };
        (0..LANES).map(of_lane).collect()
    }

    /// The AUC at one time; `weights` are in order.
    fn lanes_at(&self, walk: &Walk, weights: &[LaneWeights]) -> [Option<f64>; LANES] {
        let (mut above, mut won, mut total) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for class in walk.classes() {
            let mut tied = [0.0; LANES];
            for control in class.iter().filter(|step| !step.is_case()) {
                let copies = &weights[control.place()];
                for lane in 0..LANES {
                    tied[lane] += f64::from(copies[lane]);
                }
            }
            for case in class.iter().filter(|step| step.is_case()).map(|step| step.place()) {
                let (copies, of_case) = (&weights[case], self.case_weights[case]);
                for lane in 0..LANES {
                    let weight = f64::from(copies[lane]) * of_case;
                    // Counts of samples are exact in f64.
                    won[lane] += weight * (2.0 * above[lane] + tied[lane]);
                    total[lane] += weight;
                }
            }
            for lane in 0..LANES {
                above[lane] += tied[lane];
            }
        }
        std::array::from_fn(|lane| {
            let defined = total[lane] > 0.0 && above[lane] > 0.0;
            // Rounding must not lift a perfect ranking above 1.
            defined.then(|| (0.5 * won[lane] / (total[lane] * above[lane])).min(1.0))
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use ndarray::Array2;

    use super::*;
    use crate::scores::PreparedBrier;
    use crate::{CensoringCurve, CensoringTies, Outcomes, Reading, SurvivalCurves};

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
            let (averages, at_last) = (auc.time_averages(&rows), at.time_averages(&rows));
            for lane in 0..LANES {
                let of_lane: Vec<u32> = rows.iter().map(|row| u32::from(row[lane])).collect();
                let bits = |value: Option<f64>| value.map(f64::to_bits);
                let expected = |auc: &PreparedAucTd| auc.weighted(&of_lane).unwrap().time_average.ok();
                assert_eq!(bits(averages[lane]), bits(expected(&auc)), "lane {lane}");
                assert_eq!(bits(at_last[lane]), bits(expected(&at)), "lane {lane}");
                if let Ok(brier) = &brier {
                    assert_eq!(bits(brier.lanes(&rows)[lane]), bits(brier.weighted(&of_lane).ok()), "lane {lane}");
                }
            }
            assert!(averages[5].is_none() && averages[6].is_some());
        }
    }
}
