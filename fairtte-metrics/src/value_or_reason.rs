//! How a result that may be missing is written: `{"value": ..}` or `{"undefined": "why, in words"}`.
//!
//! Serialisation only: the reason in words is not converted back into a [`MetricError`].

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
    use crate::fairness::PerGroup;
    use crate::rank::{HarrellC, TieTest, TiedPairs, harrell_concordance};
    use crate::statistics::{SignedRankSettings, SignedRankTest, wilcoxon_of_differences};
    use crate::{Groups, Outcomes, Risk};

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

    #[test]
    fn what_always_exists_is_read_back_as_written() {
        let outcomes = Outcomes::new(vec![1.0, 2.0, 3.0], vec![true, true, false]).unwrap();
        let risk = Risk::new(vec![3.0, 1.0, 2.0]).unwrap();
        let c = harrell_concordance(&outcomes, &risk, TieTest::Near, TiedPairs::Predictions).unwrap();
        let json = serde_json::to_string(&c).unwrap();
        assert!(json.contains(r#""n-comparable":3"#), "{json}");
        assert_eq!(serde_json::from_str::<HarrellC>(&json).unwrap(), c);
        let test = wilcoxon_of_differences(&[1.0, 2.0, -3.0, 4.0], &SignedRankSettings::default()).unwrap();
        let json = serde_json::to_string(&test).unwrap();
        assert_eq!(serde_json::from_str::<SignedRankTest>(&json).unwrap(), test);
    }
}
