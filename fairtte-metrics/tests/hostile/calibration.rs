//! Calibration.

use fairtte_metrics::calibration::{
    BinVariance, DCalibrationConvention, ObservedRisk, OneCalibrationSettings, OwnTimeReading, RiskBinning,
    calibration_alpha, d_calibration, integrated_calibration, integrated_calibration_by_group, one_calibration,
    survival_at_own_time,
};

use super::check::{assert_within, check};
use super::input::{Cohort, Input};

pub fn try_all(input: &mut Input<'_>) {
    let Some(cohort) = Cohort::new(input) else { return };
    let Cohort { outcomes, curves, reading, times, .. } = &cohort;
    let own_time = [
        OwnTimeReading::FirstColumnBefore(*reading),
        OwnTimeReading::OneBefore(*reading),
        OwnTimeReading::LinearFromOne,
    ];
    for reading in own_time {
        for survival in
            check("survival_at_own_time", || survival_at_own_time(outcomes, curves, reading)).into_iter().flatten()
        {
            assert_within("survival at the own time", survival, 0.0, 1.0);
        }
        let replacement = input.any_number();
        let _ = check("calibration_alpha", || calibration_alpha(outcomes, curves, reading, replacement));
        let n_bins = input.count();
        for convention in [
            DCalibrationConvention::Survivaleval,
            DCalibrationConvention::Mlr3proba,
            DCalibrationConvention::Mlr3probaAsInR,
        ] {
            let found = check("d_calibration", || d_calibration(outcomes, curves, reading, n_bins, convention));
            if let Ok(found) = found {
                assert_within("p value of the D-calibration", found.p_value, 0.0, 1.0);
                assert_within("statistic of the D-calibration", found.statistic, 0.0, f64::MAX);
            }
        }
    }
    at_one_time(input, &cohort);
    let over_time = check("integrated_calibration", || integrated_calibration(outcomes, curves, *reading, times));
    if let Ok(found) = over_time {
        assert_within("signed calibration", found.signed, -1.0, 1.0);
        assert_within("absolute calibration", found.absolute, 0.0, 1.0);
        assert_within("squared calibration", found.squared, 0.0, 1.0);
    }
    let n = input.length(outcomes.n());
    let (groups, subjects) = (input.groups("a", n), input.subjects(n));
    if let Some(groups) = groups {
        let _ = check("integrated_calibration_by_group", || {
            integrated_calibration_by_group(&groups, outcomes, Some(&subjects), curves, *reading, times)
        });
    }
}

fn at_one_time(input: &mut Input<'_>, cohort: &Cohort) {
    let Cohort { outcomes, curves, reading, .. } = cohort;
    let time = input.time();
    for binning in [RiskBinning::EqualSize, RiskBinning::EqualWidth] {
        for observed in [ObservedRisk::KaplanMeier, ObservedRisk::Uncensored] {
            for variance in [BinVariance::ExpectedBinomial, BinVariance::Estimated] {
                let settings = OneCalibrationSettings { n_bins: input.count(), binning, observed, variance };
                let found = check("one_calibration", || one_calibration(outcomes, curves, time, *reading, settings));
                let Ok(found) = found else { continue };
                for bin in &found.bins {
                    assert_within("observed risk", bin.observed, 0.0, 1.0);
                    assert_within("expected risk", bin.expected, 0.0, 1.0);
                    assert_within("variance of a bin", bin.variance, 0.0, f64::MAX);
                }
                if let Ok(p_value) = found.p_value {
                    assert_within("p value of the 1-calibration", p_value, 0.0, 1.0);
                }
            }
        }
    }
}
