//! Tipping points: the deltas nearest to 0 at which a verdict turns.

use serde::{Deserialize, Serialize};

use crate::sensitivity::SensitivityPoint;

/// What turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval of the gap, which contains 0 at delta = 0, excludes it: a gap appears.
    GapAppears,
    /// The interval of the gap, which excludes 0 at delta = 0, contains it: the gap is no longer shown.
    GapVanishes,
    /// The difference of two groups changes its sign.
    SignChanges,
}

/// The delta nearest to 0 in one direction at which a verdict turns, on the straight line between two deltas of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TippingPoint {
    /// What turns.
    pub verdict: Verdict,
    /// The two groups, first minus second, of a change of sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<(String, String)>,
    /// Where: below 0 the censored have a lower hazard than the model says, above 0 a higher one.
    pub delta: f64,
    /// exp(delta).
    pub hazard_ratio: f64,
}

/// All tipping points of a metric, those below 0 first; `zero` is the place of delta = 0.
pub(super) fn tipping_points(points: &[SensitivityPoint], zero: usize) -> Vec<TippingPoint> {
    let deltas: Vec<f64> = points.iter().map(|point| point.delta).collect();
    let margins: Vec<Option<f64>> = points.iter().map(|point| point.gap_margin).collect();
    let excludes = margins[zero].is_some_and(|margin| margin > 0.0);
    let verdict = if excludes { Verdict::GapVanishes } else { Verdict::GapAppears };
    let mut found: Vec<TippingPoint> = crossings(&deltas, &margins, zero, |margin| margin > 0.0)
        .into_iter()
        .map(|delta| TippingPoint { verdict, groups: None, delta, hazard_ratio: delta.exp() })
        .collect();
    for pair in &points[zero].differences {
        let value_at = |point: &SensitivityPoint| {
            let same =
                point.differences.iter().find(|other| (&other.first, &other.second) == (&pair.first, &pair.second));
            same.and_then(|pair| pair.difference.value)
        };
        let values: Vec<Option<f64>> = points.iter().map(value_at).collect();
        // Exactly 0 has no sign that could change.
        if values[zero].is_none_or(|value| value.abs() <= 0.0) {
            continue;
        }
        let groups = Some((pair.first.clone(), pair.second.clone()));
        found.extend(crossings(&deltas, &values, zero, |value| value > 0.0).into_iter().map(|delta| TippingPoint {
            verdict: Verdict::SignChanges,
            groups: groups.clone(),
            delta,
            hazard_ratio: delta.exp(),
        }));
    }
    found
}

/// The nearest delta below and above that of place `zero` at which `is_above` of the value changes, where the straight line
/// between two points is 0. An undefined value ends the search in its direction.
fn crossings(deltas: &[f64], values: &[Option<f64>], zero: usize, is_above: impl Fn(f64) -> bool) -> Vec<f64> {
    let Some(at_zero) = values[zero] else { return vec![] };
    let search = |places: &mut dyn Iterator<Item = usize>| -> Option<f64> {
        let (mut before, mut delta) = (at_zero, deltas[zero]);
        for place in places {
            let value = values[place]?;
            if is_above(value) != is_above(at_zero) {
                let share = if (before - value).abs() > 0.0 { before / (before - value) } else { 1.0 };
                return Some(delta + share.clamp(0.0, 1.0) * (deltas[place] - delta));
            }
            (before, delta) = (value, deltas[place]);
        }
        None
    };
    let below = search(&mut (0..zero).rev());
    let above = search(&mut (zero + 1..deltas.len()));
    below.into_iter().chain(above).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_turns_where_the_line_between_two_deltas_crosses_zero() {
        let deltas = [-2.0, -1.0, 0.0, 1.0, 2.0];
        let found = |values: [f64; 5]| crossings(&deltas, &values.map(Some), 2, |value| value > 0.0);
        assert_eq!(found([-3.0, -1.0, 3.0, 2.0, -2.0]), [-0.75, 1.5]);
        assert_eq!(found([3.0, 1.0, -3.0, -2.0, -1.0]), [-0.75]);
        assert!(found([1.0; 5]).is_empty());
        // The nearest change counts, not the last one.
        assert_eq!(found([1.0, 1.0, 1.0, -1.0, 1.0]), [0.5]);
        // A value of exactly 0 does not exclude 0.
        assert_eq!(found([1.0, 1.0, 0.0, 0.0, 1.0]), [0.0, 1.0]);
    }

    #[test]
    fn an_undefined_value_ends_the_search_in_its_direction() {
        let deltas = [-2.0, -1.0, 0.0, 1.0];
        let values = [Some(-1.0), None, Some(1.0), Some(-1.0)];
        assert_eq!(crossings(&deltas, &values, 2, |value| value > 0.0), [0.5]);
        assert!(crossings(&deltas, &[Some(1.0), Some(1.0), None, Some(1.0)], 2, |value| value > 0.0).is_empty());
    }
}
