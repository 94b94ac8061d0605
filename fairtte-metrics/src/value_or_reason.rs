//! How a result that may be missing is written: `{"value": ..}` or `{"undefined": "why, in words"}`.
//!
//! Only written: the reason in words does not become a [`MetricError`] again.

use serde::{Serialize, Serializer};

use crate::MetricError;

/// For `#[serde(serialize_with = "value_or_reason")]`.
pub(crate) fn value_or_reason<T: Serialize, S: Serializer>(
    result: &Result<T, MetricError>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match result {
        Ok(value) => serializer.collect_map([("value", value)]),
        Err(reason) => serializer.collect_map([("undefined", reason.to_string())]),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Groups, Outcomes, PerGroup};

    #[test]
    fn a_value_and_a_reason_are_told_apart() {
        let outcomes = Outcomes::new(vec![1.0], vec![true]).unwrap();
        let sex = Groups::new("sex", vec!["F".into(), "M".into()], vec![Some(crate::GroupId(0))]).unwrap();
        let found = PerGroup::compute(&sex, &outcomes, None, |rows| Ok(rows.len() as f64)).unwrap();
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["groups"][0]["value"], serde_json::json!({"value": 1.0}));
        let reason = serde_json::json!({"undefined": "no samples, expected at least one"});
        assert_eq!((&json["groups"][1]["value"], &json["n-missing"]), (&reason, &serde_json::json!(0)));
    }
}
