use super::*;
use crate::arrays::{assert_close, assert_near, on_any_number_of_threads, random, wide};

/// Batch, tokens, heads and width of a head.
const SHAPES: [[usize; 4]; 9] = [
    [1, 1, 1, 1],
    [2, 5, 3, 4],
    [1, 17, 2, 16],
    [1, 50, 1, 64],
    [3, 6, 2, 3],
    [1, 33, 2, 20],
    [1, 300, 1, 7], // two blocks of queries
    [2, 197, 2, 64],
    [0, 4, 2, 8],
];

/// Attention by its formula in double precision: the output and the logarithms of the sums.
fn plain(qkv: &[f64], [batch, tokens, heads, width]: [usize; 4]) -> [Vec<f64>; 2] {
    let at = |sample: usize, token: usize, part: usize, head: usize, index: usize| {
        qkv[(((sample * tokens + token) * 3 + part) * heads + head) * width + index]
    };
    let [mut output, mut log_sums] = [vec![0.0; batch * tokens * heads * width], vec![0.0; batch * heads * tokens]];
    for sample in 0..batch {
        for head in 0..heads {
            for query in 0..tokens {
                let scores: Vec<f64> = (0..tokens)
                    .map(|key| {
                        let dot = (0..width).map(|i| at(sample, query, 0, head, i) * at(sample, key, 1, head, i));
                        dot.sum::<f64>() / (width as f64).sqrt()
                    })
                    .collect();
                let greatest = scores.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
                let sum: f64 = scores.iter().map(|score| (score - greatest).exp()).sum();
                log_sums[(sample * heads + head) * tokens + query] = greatest + sum.ln();
                for i in 0..width {
                    let mixed =
                        (0..tokens).map(|key| (scores[key] - greatest).exp() / sum * at(sample, key, 2, head, i));
                    output[((sample * tokens + query) * heads + head) * width + i] = mixed.sum();
                }
            }
        }
    }
    [output, log_sums]
}

/// The gradient of `sum(d_output output)` with respect to `qkv`, by the chain rule through the softmax.
fn plain_gradient(qkv: &[f64], d_output: &[f64], [batch, tokens, heads, width]: [usize; 4]) -> Vec<f64> {
    let place = |sample: usize, token: usize, part: usize, head: usize, index: usize| {
        (((sample * tokens + token) * 3 + part) * heads + head) * width + index
    };
    let scale = 1.0 / (width as f64).sqrt();
    let mut d_qkv = vec![0.0; qkv.len()];
    for sample in 0..batch {
        for head in 0..heads {
            for query in 0..tokens {
                let given = |i: usize| d_output[((sample * tokens + query) * heads + head) * width + i];
                let score = |key: usize| {
                    let product =
                        |i: usize| qkv[place(sample, query, 0, head, i)] * qkv[place(sample, key, 1, head, i)];
                    scale * (0..width).map(product).sum::<f64>()
                };
                let greatest = (0..tokens).map(score).fold(f64::NEG_INFINITY, f64::max);
                let exponentials: Vec<f64> = (0..tokens).map(|key| (score(key) - greatest).exp()).collect();
                let sum: f64 = exponentials.iter().sum();
                let weights: Vec<f64> = exponentials.iter().map(|value| value / sum).collect();
                let d_weights: Vec<f64> = (0..tokens)
                    .map(|key| (0..width).map(|i| given(i) * qkv[place(sample, key, 2, head, i)]).sum())
                    .collect();
                let mean: f64 = weights.iter().zip(&d_weights).map(|(a, b)| a * b).sum();
                for key in 0..tokens {
                    let d_score = weights[key] * (d_weights[key] - mean) * scale;
                    for i in 0..width {
                        let [q, k, v] =
                            [0, 1, 2].map(|part| place(sample, if part == 0 { query } else { key }, part, head, i));
                        d_qkv[q] += d_score * qkv[k];
                        d_qkv[k] += d_score * qkv[q];
                        d_qkv[v] += weights[key] * given(i);
                    }
                }
            }
        }
    }
    d_qkv
}

fn lengths([batch, tokens, heads, width]: [usize; 4]) -> [usize; 3] {
    [3 * batch * tokens * heads * width, batch * tokens * heads * width, batch * heads * tokens]
}

/// Output, greatest score and inverse sum of each row, and the gradient of `qkv`.
fn run(qkv: &[f32], d_output: &[f32], shape: [usize; 4]) -> [Vec<f32>; 3] {
    let [inputs, outputs, n_rows] = lengths(shape);
    let [mut output, mut d_qkv] = [outputs, inputs].map(|length| vec![f32::NAN; length]);
    let mut rows = vec![[f32::NAN; 2]; n_rows];
    forward(qkv, shape, &mut output, Some(&mut rows));
    gradients(qkv, &output, &rows, d_output, shape, &mut d_qkv);
    [output, rows.into_flattened(), d_qkv]
}

#[test]
fn outputs_and_gradients_are_those_of_the_formula_in_double_precision() {
    for shape in SHAPES {
        let [inputs, outputs, _] = lengths(shape);
        let qkv: Vec<f32> = random(1, inputs).iter().map(|x| 2.0 * x).collect();
        let d_output = random(2, outputs);
        let [output, rows, d_qkv] = run(&qkv, &d_output, shape);
        let [expected, of_sums] = plain(&wide(&qkv), shape);
        assert_close(&output, &expected, 2e-6, &format!("output of {shape:?}"));
        for (row, log_sum) in rows.chunks(2).zip(of_sums) {
            let found = f64::from(row[0]) - f64::from(row[1]).ln();
            assert!((found - log_sum).abs() <= 2e-6 * (1.0 + log_sum.abs()), "{found} instead of {log_sum}");
        }
        let expected = plain_gradient(&wide(&qkv), &wide(&d_output), shape);
        assert_close(&d_qkv, &expected, 5e-6, &format!("gradient of {shape:?}"));
        let mut alone = vec![f32::NAN; outputs];
        forward(&qkv, shape, &mut alone, None);
        assert_eq!(alone, output);
    }
}

#[test]
fn gradients_are_slopes() {
    let shape = [2, 5, 2, 3];
    let [inputs, outputs, _] = lengths(shape);
    let (qkv, d_output) = (random(1, inputs), random(2, outputs));
    let [_, _, found] = run(&qkv, &d_output, shape);
    let step = 1e-5;
    for at in 0..inputs {
        let value = |by: f64| {
            let mut moved = wide(&qkv);
            moved[at] += by;
            plain(&moved, shape)[0].iter().zip(&d_output).map(|(y, &dy)| y * f64::from(dy)).sum::<f64>()
        };
        let slope = (value(step) - value(-step)) / (2.0 * step);
        assert!((f64::from(found[at]) - slope).abs() < 1e-6, "at {at}: {} instead of {slope}", found[at]);
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    for shape in [[3, 40, 3, 16], [1, 260, 1, 9]] {
        let [inputs, outputs, _] = lengths(shape);
        let (qkv, d_output) = (random(1, inputs), random(2, outputs));
        on_any_number_of_threads(|| run(&qkv, &d_output, shape));
    }
}

#[test]
fn large_scores_pick_the_greatest() {
    let shape @ [_, tokens, _, width] = [1, 20, 1, 4];
    let [inputs, outputs, _] = lengths(shape);
    let mut qkv = random(1, inputs);
    for (token, row) in qkv.chunks_mut(3 * width).enumerate() {
        row[..width].fill(1e10);
        row[width..2 * width].fill(if token == 13 { 1e10 } else { -1e10 });
    }
    let [output, rows, d_qkv] = run(&qkv, &random(2, outputs), shape);
    let value = qkv[13 * 3 * width + 2 * width..][..width].to_vec();
    for row in output.chunks(width) {
        assert_eq!(row, value);
    }
    assert!(rows.chunks(2).all(|row| (row[0] - 2e20).abs() < 1e14 && (row[1] - 1.0).abs() < 1e-6), "{rows:?}");
    assert!(d_qkv.iter().all(|x| x.is_finite()));
    for token in (0..tokens).filter(|&token| token != 13) {
        assert!(d_qkv[token * 3 * width + 2 * width..][..width].iter().all(|&x| x == 0.0));
    }
}

#[test]
fn great_scores_keep_the_digits_of_their_differences() {
    let shape @ [_, _, heads, width] = [2, 40, 2, 4];
    let [inputs, outputs, _] = lengths(shape);
    let mut qkv = random(1, inputs);
    for (token, row) in qkv.chunks_mut(3 * heads * width).enumerate() {
        for (head, [query, key]) in (0..heads).map(|head| (head, [head, heads + head].map(|at| at * width))) {
            // Scores of 100000 and eighths, which single precision represents exactly.
            row[query..query + width].copy_from_slice(&[1000.0, (token % 4) as f32, head as f32, 0.0]);
            row[key..key + width].copy_from_slice(&[200.0, (token % 16) as f32 / 4.0, (token % 3) as f32, 1.0]);
        }
    }
    let d_output = random(2, outputs);
    let [output, _, d_qkv] = run(&qkv, &d_output, shape);
    assert_close(&output, &plain(&wide(&qkv), shape)[0], 2e-6, "output");
    assert_near("gradient", &d_qkv, &plain_gradient(&wide(&qkv), &wide(&d_output), shape), 3e-6);
}

#[test]
fn what_is_no_number_spoils_what_a_softmax_spoils() {
    let shape @ [_, tokens, heads, width] = [2, 18, 2, 5];
    let [inputs, outputs, _] = lengths(shape);
    let place = |sample: usize, token: usize, part: usize, head: usize| {
        (((sample * tokens + token) * 3 + part) * heads + head) * width
    };
    let d_output = random(2, outputs);
    let row = |output: &[f32], sample: usize, token: usize, head: usize| {
        output[((sample * tokens + token) * heads + head) * width..][..width].to_vec()
    };
    // NaN in a query affects its own row, in a key every row of its head, in a value its own column of its head.
    for part in 0..3 {
        let mut qkv = random(1, inputs);
        qkv[place(1, 4, part, 1) + 2] = f32::NAN;
        let [output, rows, d_qkv] = run(&qkv, &d_output, shape);
        for (sample, token, head) in (0..2).flat_map(|s| (0..tokens).flat_map(move |t| [(s, t, 0), (s, t, 1)])) {
            let spoilt = (sample, head) == (1, 1) && (part > 0 || token == 4);
            for (index, value) in row(&output, sample, token, head).into_iter().enumerate() {
                assert_eq!(value.is_nan(), spoilt && (part < 2 || index == 2), "part {part}, {sample} {token} {head}");
            }
            let inverse_sum = rows[2 * ((sample * heads + head) * tokens + token) + 1];
            assert_eq!(inverse_sum.is_nan(), spoilt && part < 2);
        }
        let spoilt = |sample: usize, head: usize| {
            (0..tokens).any(|t| (0..3).any(|p| d_qkv[place(sample, t, p, head)..][..width].iter().any(|x| x.is_nan())))
        };
        assert_eq!([spoilt(0, 0), spoilt(0, 1), spoilt(1, 0), spoilt(1, 1)], [false, false, false, true]);
    }
    // Every score of the query minus infinity: no probabilities.
    let mut qkv = random(1, inputs);
    for token in 0..tokens {
        qkv[place(0, token, 1, 0)..][..width].fill(1.0);
    }
    qkv[place(0, 7, 0, 0)..][..width].fill(f32::NEG_INFINITY);
    let [output, ..] = run(&qkv, &d_output, shape);
    for token in 0..tokens {
        assert_eq!(row(&output, 0, token, 0).iter().all(|x| x.is_nan()), token == 7);
        assert!(token == 7 || row(&output, 0, token, 0).iter().all(|x| x.is_finite()));
    }
    // One score minus infinity: that key has no weight.
    let mut qkv = random(1, inputs);
    for token in 0..tokens {
        qkv[place(0, token, 0, 0)..][..width].fill(1.0);
    }
    qkv[place(0, 7, 1, 0)..][..width].fill(f32::NEG_INFINITY);
    let [output, ..] = run(&qkv, &d_output, shape);
    assert!(output.iter().all(|x| x.is_finite()));
}
