//! The maximum over volumes, composed of two over pictures, against its definition.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
use super::*;
use burn::tensor::TensorData;

/// The definition: the first of the largest values of each window in the order depth, height, width.
fn windows(x: &[f32], [depth, height, width]: [usize; 3]) -> Vec<usize> {
    let halved = |n: usize| n.div_ceil(2);
    let near = |i: usize, n: usize| (2 * i).saturating_sub(1)..(2 * i + 2).min(n);
    let mut found = Vec::new();
    for (d, h) in (0..halved(depth)).flat_map(|d| (0..halved(height)).map(move |h| (d, h))) {
        for w in 0..halved(width) {
            let mut best: Option<usize> = None;
            for i in near(d, depth) {
                for j in near(h, height) {
                    for k in near(w, width) {
                        let at = (i * height + j) * width + k;
                        if best.is_none_or(|best| x[at] > x[best]) {
                            best = Some(at);
                        }
                    }
                }
            }
            found.push(best.unwrap());
        }
    }
    found
}

#[test]
fn the_maximum_over_volumes_and_its_gradient_are_those_of_the_definition_with_ties_and_negative_values() {
    let device = Device::flex().autodiff();
    for sizes in [[1, 1, 1], [2, 3, 5], [5, 4, 7], [8, 6, 3]] {
        let [depth, height, width] = sizes;
        let n_voxels = depth * height * width;
        // Few levels, so that ties are common; all below 0, so that padding with 0 would show.
        let x: Vec<f32> = (0..n_voxels).map(|i| ((i * 7919 + 13) % 5) as f32 - 9.0).collect();
        let input =
            Tensor::<5>::from_data(TensorData::new(x.clone(), [1, 1, depth, height, width]), &device).require_grad();
        let output = max_pool_3d(input.clone());
        let winners = windows(&x, sizes);
        let found: Vec<f32> = output.clone().into_data().try_to_vec().unwrap();
        let expected: Vec<f32> = winners.iter().map(|&at| x[at]).collect();
        assert_eq!(found, expected, "{sizes:?}");
        // Weights 1, 2, 3, .. distinguish the windows.
        let weights: Vec<f32> = (1..=winners.len()).map(|i| i as f32).collect();
        let weights = Tensor::from_data(TensorData::new(weights, output.dims()), &device);
        let gradients = (output * weights).sum().backward();
        let found: Vec<f32> = input.grad(&gradients).unwrap().into_data().try_to_vec().unwrap();
        let mut expected = vec![0.0; n_voxels];
        for (window, &at) in winners.iter().enumerate() {
            expected[at] += (window + 1) as f32;
        }
        assert_eq!(found, expected, "{sizes:?}");
    }
}
