//! Quantiles of the standard normal distribution.
//!
//! Rational approximations of Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution",
//! Applied Statistics 37 (1988) 477-484, routine PPND16: relative error about 1e-16. Golden values:
//! `statistics.NormalDist().inv_cdf` of Python 3.

// Coefficients of numerator and denominator, highest power first, for the centre, the near and the far tail.
const CENTRE: ([f64; 8], [f64; 8]) = (
    [
        2_509.080_928_730_122_7,
        33_430.575_583_588_13,
        67_265.770_927_008_7,
        45_921.953_931_549_87,
        13_731.693_765_509_46,
        1_971.590_950_306_551_3,
        133.141_667_891_784_38,
        3.387_132_872_796_366_5,
    ],
    [
        5_226.495_278_852_854,
        28_729.085_735_721_943,
        39_307.895_800_092_71,
        21_213.794_301_586_597,
        5_394.196_021_424_751,
        687.187_007_492_057_9,
        42.313_330_701_600_91,
        1.0,
    ],
);
const NEAR_TAIL: ([f64; 8], [f64; 8]) = (
    [
        0.000_774_545_014_278_341_4,
        0.022_723_844_989_269_184,
        0.241_780_725_177_450_6,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        0.000_547_593_808_499_534_5,
        0.015_198_666_563_616_457,
        0.148_103_976_427_480_08,
        0.689_767_334_985_1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
);
const FAR_TAIL: ([f64; 8], [f64; 8]) = (
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        0.001_242_660_947_388_078_4,
        0.026_532_189_526_576_124,
        0.296_560_571_828_504_87,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_7e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        0.000_786_869_131_145_613_3,
        0.014_875_361_290_850_615,
        0.136_929_880_922_735_8,
        0.599_832_206_555_888,
        1.0,
    ],
);

/// The value that a standard normal variable stays below with probability `p`, for `p` in (0, 1).
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let ratio = |(numerator, denominator): ([f64; 8], [f64; 8]), x: f64| {
        let horner = |coefficients: [f64; 8]| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
        horner(numerator) / horner(denominator)
    };
    let from_centre = p - 0.5;
    if from_centre.abs() <= 0.425 {
        return from_centre * ratio(CENTRE, 0.180_625 - from_centre * from_centre);
    }
    let tail = if from_centre < 0.0 { p } else { 1.0 - p };
    let distance = (-tail.ln()).sqrt();
    let size = if distance <= 5.0 { ratio(NEAR_TAIL, distance - 1.6) } else { ratio(FAR_TAIL, distance - 5.0) };
    size.copysign(from_centre)
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
