//! Hazards of intervals from survival curves.

use ndarray::Array2;

use crate::SurvivalCurves;

/// The smallest hazard whose logit is taken; the largest is 1 minus it.
pub(super) const CLIP: f64 = 1e-7;

/// Hazards of the intervals between the times of curves.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalHazards {
    /// Ends of the intervals, `[n_intervals]`: the times of the curves above 0.
    pub ends: Vec<f64>,
    /// Hazards `[n, n_intervals]`, in \[1e-7, 1 - 1e-7\].
    pub hazards: Array2<f64>,
    /// How many were outside that range, and were set to its ends. Where survival is 0 at the start of an interval, its hazard
    /// counts as 1.
    pub n_clipped: usize,
}

impl IntervalHazards {
    /// Computes the hazards; O(n times).
    ///
    /// ```
    /// use fairtte_metrics::SurvivalCurves;
    /// use fairtte_metrics::effects::IntervalHazards;
    /// use ndarray::array;
    ///
    /// let curves = SurvivalCurves::new(vec![0.0, 1.0, 2.0, 3.0], array![[1.0, 0.75, 0.375, 0.375]])?;
    /// let found = IntervalHazards::of(&curves);
    /// assert_eq!(found.ends, [1.0, 2.0, 3.0]);
    /// // No event in the third interval: 0 is set to 1e-7.
    /// assert_eq!((found.hazards, found.n_clipped), (array![[0.25, 0.5, 1e-7]], 1));
    /// # Ok::<(), fairtte_metrics::MetricError>(())
    /// ```
    pub fn of(curves: &SurvivalCurves) -> Self {
        let first = usize::from(curves.grid()[0] <= 0.0);
        let ends = curves.grid()[first..].to_vec();
        let mut n_clipped = 0;
        let hazards = Array2::from_shape_fn((curves.n(), ends.len()), |(row, k)| {
            let curve = curves.curve(row);
            let before = if first + k == 0 { 1.0 } else { curve[first + k - 1] };
            let hazard = if before > 0.0 { 1.0 - curve[first + k] / before } else { 1.0 };
            let kept = hazard.clamp(CLIP, 1.0 - CLIP);
            n_clipped += usize::from(!(CLIP..=1.0 - CLIP).contains(&hazard));
            kept
        });
        Self { ends, hazards, n_clipped }
    }
}
