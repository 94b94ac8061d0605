#![expect(clippy::cast_possible_truncation, reason = "expected values are computed in double precision")]

use super::*;
use crate::arrays::random;

const SETTINGS: Settings =
    Settings { learning_rate: 1e-3, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, weight_decay: 0.01 };

/// The formula of the paper in double precision.
fn plain(parameter: f64, gradients: &[f64], settings: &Settings) -> [f64; 3] {
    let [beta_1, beta_2, epsilon, decay] =
        [settings.beta_1, settings.beta_2, settings.epsilon, settings.weight_decay].map(f64::from);
    let rate = settings.learning_rate;
    let (mut p, mut m, mut v) = (parameter, 0.0, 0.0);
    for (step, g) in gradients.iter().enumerate() {
        let time = i32::try_from(step + 1).expect("few steps");
        m = beta_1 * m + (1.0 - beta_1) * g;
        v = beta_2 * v + (1.0 - beta_2) * g * g;
        let m_hat = m / (1.0 - beta_1.powi(time));
        let v_hat = v / (1.0 - beta_2.powi(time));
        p -= rate * (m_hat / (v_hat.sqrt() + epsilon) + decay * p);
    }
    [p, m, v]
}

/// Parameter and moments after a step along each gradient.
fn run(start: &[f32], gradients: &[Vec<f32>], settings: &Settings) -> [Vec<f32>; 3] {
    let mut parameter = start.to_vec();
    let [mut first, mut second] = [vec![0.0; start.len()], vec![0.0; start.len()]];
    for (step, gradient) in gradients.iter().enumerate() {
        update(&mut parameter, gradient, &mut first, &mut second, settings, step + 1);
    }
    [parameter, first, second]
}

#[test]
fn several_steps_are_those_of_the_paper() {
    for count in [0, 1, 7, 100, 2 * PIECE + 3] {
        for weight_decay in [0.0, 0.01] {
            let settings = Settings { weight_decay, ..SETTINGS };
            let start = random(1, count);
            let gradients: Vec<_> = (0..5).map(|step| random(10 + step, count)).collect();
            let found = run(&start, &gradients, &settings);
            for index in 0..count {
                let gradients: Vec<f64> = gradients.iter().map(|gradient| f64::from(gradient[index])).collect();
                let expected = plain(f64::from(start[index]), &gradients, &settings);
                for (found, expected) in found.iter().zip(expected) {
                    let error = (f64::from(found[index]) - expected).abs();
                    assert!(error < 3e-7, "{} instead of {expected}", found[index]);
                }
            }
        }
    }
}

#[test]
fn each_operation_is_rounded_by_itself_as_in_burn() {
    let n = 1000;
    let (mut parameter, gradient) = (random(1, n), random(2, n));
    let (mut first, mut second) = (random(3, n), random(4, n).iter().map(|x| x.abs()).collect::<Vec<_>>());
    let (start, first_start, second_start) = (parameter.clone(), first.clone(), second.clone());
    update(&mut parameter, &gradient, &mut first, &mut second, &SETTINGS, 3);
    let scaled = |values: &[f32], factor: f32| values.iter().map(|x| x * factor).collect::<Vec<_>>();
    let add = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
    let m = add(&scaled(&first_start, 0.9), &scaled(&gradient, 1.0 - 0.9));
    let squares: Vec<f32> = gradient.iter().map(|g| g * g).collect();
    let v = add(&scaled(&second_start, 0.999), &scaled(&squares, 1.0 - 0.999));
    // Powers computed by the compiler may differ in the last bit from those computed at run time.
    let [rest_1, rest_2] = [0.9_f32, 0.999].map(|beta| 1.0 - std::hint::black_box(beta).powi(3));
    let root: Vec<f32> = v.iter().map(|v| (v / rest_2).sqrt() + 1e-8).collect();
    let change: Vec<f32> = m.iter().zip(&root).map(|(m, root)| m / rest_1 / root).collect();
    let decayed = scaled(&start, (1.0 - 1e-3 * f64::from(0.01_f32)) as f32);
    let expected = add(&decayed, &scaled(&change, -1e-3));
    assert_eq!(first, m);
    assert_eq!(second, v);
    assert_eq!(parameter, expected);
}

#[test]
fn a_gradient_of_zero_moves_nothing_but_by_decay() {
    let start = [2.0_f32, -3.0, 0.0];
    let settings = Settings { weight_decay: 0.0, ..SETTINGS };
    let [parameter, first, second] = run(&start, &[vec![0.0; 3]], &settings);
    assert_eq!((parameter.as_slice(), first, second), (start.as_slice(), vec![0.0; 3], vec![0.0; 3]));
    let [parameter, ..] = run(&start, &[vec![0.0; 3]], &SETTINGS);
    assert_eq!(parameter, start.map(|x| x * (1.0 - 1e-3 * f64::from(0.01_f32)) as f32));
}

#[test]
fn a_gradient_that_is_no_number_spoils_its_parameter_only() {
    let mut gradient = random(5, 40);
    gradient[17] = f32::NAN;
    let [parameter, first, second] = run(&random(6, 40), &[gradient], &SETTINGS);
    for values in [parameter, first, second] {
        for (index, value) in values.iter().enumerate() {
            assert_eq!(value.is_nan(), index == 17, "at {index}");
        }
    }
}
