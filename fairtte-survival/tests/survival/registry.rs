//! Heads that another crate registers are read, checked, compared and written like those of this one.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use fairtte_survival::{
    DeepHitConfig, HeadConfig, HeadSettings, NnetSurvival, SurvivalError, SurvivalHead, register_head,
};
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json, to_value};

/// Settings of a head, of which one is checked.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Own {
    end_weight: f64,
    is_late: bool,
}

impl HeadSettings for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn summary(&self) -> &'static str {
        "hazards with a weight"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        if self.end_weight >= 0.0 {
            return Ok(Box::new(NnetSurvival));
        }
        Err(SurvivalError::Setting { key: "end-weight", value: self.end_weight, expected: "a number >= 0" })
    }
}

/// A head of another crate with a name that is taken.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Taken {}

impl HeadSettings for Taken {
    fn name(&self) -> &'static str {
        "deephit"
    }

    fn summary(&self) -> &'static str {
        "never listed"
    }

    fn build(&self) -> Result<Box<dyn SurvivalHead>, SurvivalError> {
        Ok(Box::new(NnetSurvival))
    }
}

#[test]
fn a_registered_head_is_listed_last_read_checked_and_written_with_its_defaults() {
    let unknown = from_value::<HeadConfig>(json!({ "own": {} })).unwrap_err().to_string();
    let known = "`pmf`, `deephit`, `nnet-survival`, `cox`, `cox-time`, `pc-hazard`, `binary`, `segmentation`";
    assert_eq!(unknown, format!("unknown variant `own`, expected one of {known}"));

    register_head::<Own>().unwrap();
    register_head::<Own>().unwrap();
    assert_eq!(HeadConfig::catalogue()[HeadConfig::NAMES.len()..], [("own", "hazards with a weight")]);
    let unknown = from_value::<HeadConfig>(json!({ "owl": {} })).unwrap_err().to_string();
    assert_eq!(unknown, format!("unknown variant `owl`, expected one of {known}, `own`"));

    let read = |settings: serde_json::Value| from_value::<HeadConfig>(json!({ "own": settings }));
    let head = read(json!({ "end-weight": 2.5 })).unwrap();
    assert_eq!(head.name(), "own");
    assert_eq!(to_value(&head).unwrap(), json!({ "own": { "end-weight": 2.5, "is-late": false } }));
    assert_eq!(from_value::<HeadConfig>(to_value(&head).unwrap()).unwrap(), head);
    assert_ne!(read(json!({ "end-weight": 2.0 })).unwrap(), head);
    assert_eq!(head.build().unwrap().name(), "nnet-survival");
    let error = read(json!({ "end-weight": -1.0 })).unwrap().build().unwrap_err();
    assert_eq!(error.to_string(), "end-weight is -1, expected a number >= 0");
    let error = read(json!({ "weight": 1.0 })).unwrap_err().to_string();
    assert_eq!(error, "unknown field `weight`, expected `end-weight` or `is-late`");
}

#[test]
fn the_name_of_a_head_of_this_crate_cannot_be_registered() {
    let error = register_head::<Taken>().unwrap_err();
    assert_eq!(error.to_string(), "head is deephit, expected a name that no head of fairtte-survival has");
    assert!(HeadConfig::catalogue().iter().all(|(_, about)| *about != "never listed"));
    let head: HeadConfig = from_value(json!({ "deephit": {} })).unwrap();
    assert_eq!(head, HeadConfig::DeepHit(DeepHitConfig::default()));
}
