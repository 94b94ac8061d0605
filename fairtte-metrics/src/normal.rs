//! Quantiles of the standard normal distribution, from `statrs` 0.18, compared with `statistics.NormalDist().inv_cdf`
//! of Python 3 (relative error below 1e-14, also far in the tails).

use statrs::distribution::{ContinuousCDF as _, Normal};

/// The quantile `p` of the standard normal distribution, for `p` in (0, 1).
pub fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn quantiles_match_the_python_standard_library() {
        let golden = [
            (0.975, 1.959_963_984_540_053_6),
            (0.9, 1.281_551_565_544_600_8),
            (0.6, 0.253_347_103_135_799_8),
            (0.001, -3.090_232_306_167_813),
            (1e-10, -6.361_340_902_404_056),
            (1e-15, -7.941_345_326_170_997),
        ];
        for (p, expected) in golden {
            assert_relative_eq!(normal_quantile(p), expected, max_relative = 1e-14);
        }
        assert!(normal_quantile(0.5).abs() < f64::EPSILON);
    }
}
