//! The names of conventions, the same in displayed text and in files. Packages are spelt `scikit-survival`,
//! `survivaleval`, `pycox`, `riskregression` and `mlr3proba` everywhere.

use std::fmt;

use crate::CensoringTies;
use crate::bias::Quantisation;
use crate::calibration::DCalibrationConvention;
use crate::estimators::{BeyondLastTime, CensoringLookup, TiedEvents};
use crate::rank::{AucConvention, TieTest, TiedPairs, TiedPredictions, UnoConvention};
use crate::scores::{BrierConvention, EventDensity, IntegrationRule, SnlForm};
use crate::statistics::RangeQuantile;

macro_rules! names {
    ($($convention:ident { $($variant:ident = $name:literal),+ })+) => {
        $(impl fmt::Display for $convention {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $name),+ })
            }
        })+

        #[cfg(test)]
        fn check_names() {
            $($({
                let (convention, quoted) = ($convention::$variant, concat!('"', $name, '"'));
                assert_eq!(convention.to_string(), $name);
                assert_eq!(serde_json::to_string(&convention).unwrap(), quoted);
                assert_eq!(serde_json::from_str::<$convention>(quoted).unwrap(), convention);
            })+)+
        }
    };
}

names! {
    AucConvention {
        ScikitSurvival = "scikit-survival", SurvivalEval = "survivaleval", SurvivalEvalNaive = "survivaleval-naive",
        RiskRegression = "riskregression"
    }
    BrierConvention {
        ScikitSurvival = "scikit-survival", SurvivalEval = "survivaleval",
        SurvivalEvalUnweighted = "survivaleval-unweighted", Pycox = "pycox", RiskRegression = "riskregression",
        Mlr3proba = "mlr3proba"
    }
    UnoConvention {
        ScikitSurvival = "scikit-survival", SurvivalEval = "survivaleval", R = "r"
    }
    DCalibrationConvention {
        Survivaleval = "survivaleval", Mlr3proba = "mlr3proba", Mlr3probaAsInR = "mlr3proba-as-in-r"
    }
    SnlForm {
        Documented = "documented", Mlr3proba = "mlr3proba"
    }
    EventDensity {
        LinearDensity = "linear-density", ExactMass = "exact-mass", IntervalMass = "interval-mass"
    }
    TiedPredictions {
        Strict = "strict", Half = "half"
    }
    TiedPairs {
        Dropped = "dropped", Predictions = "predictions", Times = "times", All = "all"
    }
    TieTest {
        Near = "near", Exact = "exact"
    }
    TiedEvents {
        Together = "together", OneByOne = "one-by-one"
    }
    CensoringTies {
        EventsFirst = "events-first", Flipped = "flipped"
    }
    CensoringLookup {
        RightContinuous = "right-continuous", LeftLimit = "left-limit"
    }
    BeyondLastTime {
        Refuse = "refuse", Hold = "hold", LinearToZero = "linear-to-zero"
    }
    IntegrationRule {
        Trapezoid = "trapezoid", Simpson = "simpson", SimpsonAveraged = "simpson-averaged", PlainMean = "plain-mean",
        LeftStepsFromZero = "left-steps-from-zero"
    }
    RangeQuantile {
        Exact = "exact", Gleason = "gleason"
    }
    Quantisation {
        KMeans = "k-means", EqualFrequency = "equal-frequency"
    }
}

#[cfg(test)]
mod tests {
    use crate::Reading;

    #[test]
    fn what_is_shown_is_what_files_hold() {
        super::check_names();
        for reading in [Reading::NextGridPoint, Reading::LinearFromOne] {
            assert_eq!(serde_json::to_string(&reading).unwrap(), format!("\"{reading}\""));
        }
        assert_eq!(Reading::default().to_string(), "refined x10");
    }
}
