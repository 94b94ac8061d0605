//! Weighted means of curves: the prediction of several models, or without a group.

use ndarray::Array2;

/// sum of `weight` x curves, `[n, n_times]`, with weights that sum to 1; `None` without any. Curves of weight 0 are not
/// computed.
///
/// # Errors
/// The errors of `curves`.
pub(super) fn mixture<E>(
    weights: &[f64],
    mut curves: impl FnMut(usize) -> Result<Array2<f64>, E>,
) -> Result<Option<Array2<f64>>, E> {
    let mut sum: Option<Array2<f64>> = None;
    for (g, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        let part = curves(g)? * *weight;
        sum = Some(match sum {
            Some(sum) => sum + part,
            None => part,
        });
    }
    // Weights sum to 1 up to rounding, which must not make a probability exceed 1.
    Ok(sum.map(|curves| curves.mapv_into(|s| s.clamp(0.0, 1.0))))
}

/// Share of each group among the samples that have one, `[n_groups]`; all 0 without any.
pub(super) fn shares(counts: &[usize]) -> Vec<f64> {
    let n = counts.iter().sum::<usize>().max(1) as f64;
    counts.iter().map(|count| *count as f64 / n).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    #![expect(clippy::print_stdout, reason = "how many values were compared is worth seeing")]
    use super::*;
    use serde_json::Value as Json;

    fn numbers(json: &Json) -> Vec<f64> {
        json.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    }

    #[test]
    fn averaged_curves_are_those_of_the_worked_cases_of_the_controlled_attribute() {
        let golden: Json = serde_json::from_str(include_str!("../../tests/golden/csa.json")).unwrap();
        let (mut n_compared, mut n_cases) = (0, 0);
        for case in golden["cases"].as_array().unwrap() {
            let subjects = case["inputs"]["survival_per_group_model"].as_array().unwrap();
            let of_model = |g: usize| {
                let rows = subjects.iter().flat_map(|models| numbers(&models[g])).collect();
                Ok::<_, ()>(Array2::from_shape_vec((subjects.len(), 4), rows).unwrap())
            };
            let found = mixture(&numbers(&case["inputs"]["weights"]), of_model).unwrap().unwrap();
            let hazards = |row: usize, k: usize| 1.0 - found[[row, k]] / if k == 0 { 1.0 } else { found[[row, k - 1]] };
            for row in 0..subjects.len() {
                for k in 0..4 {
                    for (found, key) in [(found[[row, k]], "survival"), (hazards(row, k), "interval_hazard")] {
                        let expected = numbers(&case["expected"][key][row])[k];
                        // The weights are written with 12 digits: 1/3 three times is 1 - 1e-12.
                        let close = (found - expected).abs() <= 1e-9 * expected.abs() + 1e-12;
                        assert!(close, "{}, {key}: {found} is not {expected}", case["name"]);
                        n_compared += 1;
                    }
                }
            }
            n_cases += 1;
        }
        println!("controlled attribute: {n_compared} values of {n_cases} cases compared");
        assert_eq!((n_cases, n_compared), (3, 48));
    }

    #[test]
    fn a_model_without_weight_is_not_asked() {
        let ask = |g: usize| if g == 1 { Err("asked") } else { Ok(Array2::from_elem((1, 2), 0.5)) };
        assert_eq!(mixture(&[0.4, 0.0, 0.6], ask).unwrap().unwrap(), Array2::from_elem((1, 2), 0.5));
        assert_eq!(mixture(&[0.0, 0.0], ask).unwrap(), None);
    }
}
