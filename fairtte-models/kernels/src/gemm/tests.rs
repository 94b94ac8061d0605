//! Products of matrices against plain loops in double precision.

#![expect(clippy::many_single_char_names, reason = "the usual names of a matrix product")]

use super::*;
use crate::arrays::{on_any_number_of_threads, random};

/// The product element by element, with the sum of the magnitudes of the terms.
fn plain(sizes: [usize; 3], a: Matrix, b: Matrix) -> Vec<[f64; 2]> {
    let [m, n, k] = sizes;
    let mut result = Vec::new();
    for row in 0..m {
        for column in 0..n {
            let terms = (0..k).map(|step| {
                f64::from(a.data[row * a.row_stride + step * a.column_stride])
                    * f64::from(b.data[step * b.row_stride + column * b.column_stride])
            });
            result.push(terms.fold([0.0, 0.0], |[sum, size], term| [sum + term, size + term.abs()]));
        }
    }
    result
}

fn check(sizes: [usize; 3], a: Matrix, b: Matrix, row_stride: usize, options: Options) {
    let [m, n, _] = sizes;
    let before = random(3, (m - 1) * row_stride + n);
    let mut c = before.clone();
    product(&mut c, row_stride, sizes, a, b, options);
    for (index, [sum, size]) in plain(sizes, a, b).into_iter().enumerate() {
        let (row, column) = (index / n, index % n);
        let at = row * row_stride + column;
        let mut expected = sum;
        expected += if options.add { f64::from(before[at]) } else { 0.0 };
        expected += options.bias.map_or(0.0, |bias| f64::from(bias[column]));
        let error = (f64::from(c[at]) - expected).abs();
        assert!(error <= 1e-6 * (size + 1.0), "{sizes:?} at {row}, {column}: {} instead of {expected}", c[at]);
    }
    for (at, (after, before)) in c.iter().zip(&before).enumerate() {
        assert!(at % row_stride < n || after.to_bits() == before.to_bits(), "{at} lies between the rows");
    }
}

const SIZES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [1, 33, 7],
    [13, 31, 64],
    [14, 32, 320],
    [15, 16, 321],
    [29, 65, 3],
    [64, 97, 650],
    [170, 40, 17],
    [3, 1030, 9],
    [7, 17, 1],
    [200, 5, 40],
    [61, 1100, 33],
];

#[test]
fn a_product_is_the_sum_of_the_products_for_every_layout() {
    for sizes in SIZES {
        let [m, n, k] = sizes;
        let (a, b) = (random(1, m * k), random(2, k * n));
        for left in [Matrix::new(&a, k), Matrix::new(&a, m).transposed()] {
            for right in [Matrix::new(&b, n), Matrix::new(&b, k).transposed()] {
                for parallel in [false, true] {
                    check(sizes, left, right, n, Options { parallel, ..Options::default() });
                }
            }
        }
    }
}

#[test]
fn strides_addition_and_bias_are_respected() {
    for sizes in SIZES {
        let [m, n, k] = sizes;
        let (a, b, bias) = (random(4, 2 * m * (k + 3)), random(5, 3 * k * (n + 2)), random(6, n));
        let left = Matrix { data: &a, row_stride: 2 * (k + 3), column_stride: 2 };
        let right = Matrix { data: &b, row_stride: 3 * (n + 2), column_stride: 3 };
        let options = Options { add: true, bias: Some(&bias), parallel: true };
        check(sizes, left, right, n + 5, options);
        check(sizes, left, right, n + 5, Options { add: false, bias: None, parallel: false });
    }
}

#[test]
fn a_sum_of_no_terms_is_zero_or_what_was_there() {
    let mut c = [1.0, 2.0, 3.0, 4.0];
    let empty = Matrix::new(&[], 0);
    product(&mut c, 2, [2, 2, 0], empty, empty, Options { add: true, ..Options::default() });
    assert_eq!(c.map(f32::to_bits), [1.0f32, 2.0, 3.0, 4.0].map(f32::to_bits));
    product(&mut c, 2, [2, 2, 0], empty, empty, Options { bias: Some(&[5.0, 6.0]), ..Options::default() });
    assert_eq!(c.map(f32::to_bits), [5.0f32, 6.0, 5.0, 6.0].map(f32::to_bits));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for sizes in [[64, 200, 700], [197, 768, 64], [3, 5000, 20], [500, 3, 900], [600, 640, 340]] {
        let [m, n, k] = sizes;
        let (a, b) = (random(7, m * k), random(8, k * n));
        on_any_number_of_threads(|| {
            let mut c = vec![0.0; m * n];
            let options = Options { parallel: true, ..Options::default() };
            product(&mut c, n, sizes, Matrix::new(&a, k), Matrix::new(&b, k).transposed(), options);
            [c]
        });
    }
}

#[test]
fn factors_that_are_packed_for_all_threads_change_no_bit() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("a pool of threads");
    for sizes @ [m, n, k] in [[530, 1100, 33], [1100, 527, 41], [349, 350, 650]] {
        assert!(pool.install(|| shared::pays(sizes)), "{sizes:?}");
        let (a, b, bias, before) = (random(1, m * k), random(2, k * n), random(3, n), random(4, m * (n + 7)));
        for (left, right) in [
            (Matrix::new(&a, k), Matrix::new(&b, n)),
            (Matrix::new(&a, m).transposed(), Matrix::new(&b, k).transposed()),
        ] {
            for add in [false, true] {
                let on = |parallel: bool| {
                    let mut c = before.clone();
                    let options = Options { add, bias: add.then_some(&bias), parallel };
                    pool.install(|| product(&mut c, n + 7, sizes, left, right, options));
                    c.into_iter().map(f32::to_bits).collect::<Vec<_>>()
                };
                assert!(on(true) == on(false), "{sizes:?}, add: {add}");
            }
        }
    }
}

#[test]
fn what_is_not_a_number_stays_in_its_row_and_column() {
    let (m, n, k) = (20, 40, 30);
    let (mut a, b) = (random(9, m * k), random(10, k * n));
    a[4 * k + 29] = f32::NAN;
    a[11 * k] = f32::INFINITY;
    let mut c = vec![0.0; m * n];
    product(&mut c, n, [m, n, k], Matrix::new(&a, k), Matrix::new(&b, n), Options::default());
    for (row, values) in c.chunks(n).enumerate() {
        let expected = |value: &f32| match row {
            4 => value.is_nan(),
            11 => value.is_infinite(),
            _ => value.is_finite(),
        };
        assert!(values.iter().all(expected), "row {row}");
    }
}

#[test]
fn huge_terms_are_not_lost() {
    let a = [f32::MAX / 4.0; 3];
    let mut c = [0.0];
    product(&mut c, 1, [1, 1, 3], Matrix::new(&a, 3), Matrix::new(&[1.0, 1.0, -1.0], 1), Options::default());
    assert_eq!(c[0].to_bits(), (f32::MAX / 4.0).to_bits());
}

#[test]
#[should_panic(expected = "does not hold")]
fn a_factor_that_is_too_short_is_refused() {
    product(&mut [0.0; 4], 2, [2, 2, 2], Matrix::new(&[0.0; 3], 2), Matrix::new(&[0.0; 4], 2), Options::default());
}

#[test]
fn a_thread_keeps_its_buffers_but_for_those_of_huge_layers() {
    let kept = std::thread::spawn(|| {
        [5, MOST_KEPT / 2, MOST_KEPT].map(|length| {
            with_scratch([length], |_| ());
            SCRATCH.with_borrow(|buffers| buffers.iter().map(Vec::len).sum::<usize>())
        })
    });
    let kept = kept.join().expect("the thread ends");
    assert!((5..100).contains(&kept[0]) && kept[1] >= MOST_KEPT / 2, "{kept:?}");
    assert_eq!(kept[2], 0, "{kept:?}");
}

#[test]
fn tests_find_no_number_in_a_buffer_before_they_write_it() {
    for _ in 0..2 {
        with_scratch([7, 40], |buffers| {
            for buffer in buffers {
                assert!(buffer.iter().all(|value| value.is_nan()));
                buffer.fill(1.0);
            }
        });
    }
}

#[test]
fn rows_are_divided_evenly() {
    let parts: Vec<usize> = (0..5).map(|index| tile::part(64, 5, index).len()).collect();
    assert_eq!(parts.iter().sum::<usize>(), 64);
    assert!(parts.iter().all(|&part| part == 12 || part == 13), "{parts:?}");
}
