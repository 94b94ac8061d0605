//! The classifier that reads times, at more of them than it computes at once.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::module::{Module as _, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use fairtte_metrics::Outcomes;
use fairtte_survival::{Classifier, ClassifierConfig, CoxTime, CoxTimeConfig, CutPoints};

/// Weights that differ from each other, in the order of the layers.
struct Fill(f32);

impl ModuleMapper for Fill {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|old| {
            let n: usize = old.dims().iter().product();
            let mut next = || {
                self.0 = (self.0 * 37.7 + 0.31).fract();
                self.0 - 0.5
            };
            let values: Vec<f32> = (0..n).map(|_| next()).collect();
            Tensor::from_data(TensorData::new(values, old.dims()), &old.device())
        })
    }
}

// 512 rows x 32 hidden x 600 times are 9.8 million numbers, more than twice what is computed at once.
#[test]
fn outputs_at_many_times_are_those_at_few_times_to_the_bit() {
    let outcomes = Outcomes::new(vec![1.0, 400.0, 900.0], vec![true, true, false]).unwrap();
    let cut_points = CutPoints::equidistant(&outcomes, 5).unwrap();
    let head = CoxTime::new(&CoxTimeConfig::default()).unwrap();
    let config = ClassifierConfig::for_head(&head, &cut_points, &outcomes, 32).unwrap();
    let device = Device::flex();
    let classifier = Classifier::new(&config, 8, &device).map(&mut Fill(0.2));
    let rows: Vec<f32> = (0..512 * 8).map(|i| (i as f32 * 0.7).sin()).collect();
    let rows = Tensor::<2>::from_data(TensorData::new(rows, [512, 8]), &device);
    let times: Vec<f64> = (0..600).map(|i| f64::from(i) * 1.5).collect();
    let values = |query: &[f64]| {
        let outputs = classifier.forward(rows.clone(), query);
        assert_eq!(outputs.dims(), [512, query.len()]);
        outputs.into_data().iter::<f32>().collect::<Vec<f32>>()
    };
    let all = values(&times);
    for (first, last) in [(0, 3), (250, 310), (590, 600)] {
        let some = values(&times[first..last]);
        for row in 0..512 {
            let expected = &all[row * 600 + first..row * 600 + last];
            assert_eq!(&some[row * (last - first)..(row + 1) * (last - first)], expected, "row {row}, times {first}..");
        }
    }
    let (least, most) = all.iter().fold((f32::MAX, f32::MIN), |(a, b), v| (a.min(*v), b.max(*v)));
    assert!(most - least > 0.1, "the outputs hardly differ: {least} to {most}");
}
