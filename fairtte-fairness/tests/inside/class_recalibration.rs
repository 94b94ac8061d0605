//! The worked cases of `src/strategies/recalibration/probability.rs`.
use super::*;
use serde_json::Value as Json;

fn numbers(json: &Json) -> Vec<f64> {
    json.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn close(found: f64, expected: f64, tolerance: f64, what: &Json) {
    assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: {found} is not {expected}");
}

#[test]
fn maps_are_those_of_scikit_learn_and_scipy() {
    let golden: Json = serde_json::from_str(include_str!("../golden/class_recalibration.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let probability = numbers(&case["probability"]);
        let positive: Vec<bool> = numbers(&case["positive"]).iter().map(|class| *class > 0.5).collect();
        let (line, points) = (platt(&probability, &positive), isotonic(&probability, &positive));
        let expected = numbers(&case["platt"]);
        close(line.0, expected[0], 1e-9, &case["name"]);
        close(line.1, expected[1], 1e-9, &case["name"]);
        let expected = numbers(&case["of_platt"]).into_iter().zip(numbers(&case["of_isotonic"]));
        for (at, (of_platt, of_isotonic)) in numbers(&case["at"]).into_iter().zip(expected) {
            close(platt_of(line, at), of_platt, 1e-9, &case["name"]);
            close(isotonic_of(&points, at), of_isotonic, 1e-9, &case["name"]);
        }
    }
}

#[test]
fn groups_without_samples_and_equal_probabilities_are_no_error() {
    assert_eq!(platt(&[], &[]), (0.0, 1.0));
    assert!((platt_of((0.0, 1.0), 0.3) - 0.3).abs() < 1e-15, "no row, no change");
    let points = isotonic(&[], &[]);
    assert_eq!(isotonic_of(&points, 0.3).to_bits(), 0.3_f64.to_bits());
    // Three of four positive: targets 4/5 and 1/3, mean (3 * 4/5 + 1/3) / 4.
    let line = platt(&[0.2; 4], &[true, true, true, false]);
    assert_eq!(line.1.to_bits(), 0.0_f64.to_bits());
    assert!((platt_of(line, 0.9) - (2.4 + 1.0 / 3.0) / 4.0).abs() < 1e-12);
    let points = isotonic(&[0.2; 4], &[true, true, true, false]);
    assert_eq!([0.0, 0.2, 1.0].map(|p| isotonic_of(&points, p).to_bits()), [0.75_f64.to_bits(); 3]);
}

#[test]
fn certain_probabilities_stay_finite() {
    let (probability, positive) = ([0.0, 0.0, 0.5, 1.0, 1.0], [false, true, false, true, true]);
    let line = platt(&probability, &positive);
    assert!(line.0.is_finite() && line.1.is_finite());
    for p in [0.0, 0.5, 1.0] {
        let (mapped, stepped) = (platt_of(line, p), isotonic_of(&isotonic(&probability, &positive), p));
        assert!((0.0..=1.0).contains(&mapped) && (0.0..=1.0).contains(&stepped), "{p}: {mapped} {stepped}");
    }
}
