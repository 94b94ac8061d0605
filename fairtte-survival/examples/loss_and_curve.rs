//! A survival head from end to end on made-up outputs: cut points, the loss of every subject, its gradient, some steps
//! down that gradient, and the survival curves before and after.
//!
//! `cargo run -p fairtte-survival --example loss_and_curve [-- HEAD]`
//!
//! HEAD is `pmf`, `deephit`, `nnet-survival` (default), `pc-hazard` or `cox`. The outputs stand for those of a network.

#![expect(clippy::print_stdout, reason = "an example prints what it computed")]

use std::error::Error;

use burn::tensor::{Device, Tensor, TensorData};
use fairtte_metrics::Outcomes;
use fairtte_metrics::seeds::stream;
use fairtte_survival::{
    Cox, CoxConfig, CutPoints, DeepHit, DeepHitConfig, NnetSurvival, PcHazard, Pmf, PredictionGrid, SurvivalHead,
    marginal_hazard,
};
use ndarray::Array2;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "nnet-survival".to_owned());
    let head: Box<dyn SurvivalHead> = match name.as_str() {
        "pmf" => Box::new(Pmf),
        "deephit" => Box::new(DeepHit::new(&DeepHitConfig::default())?),
        "nnet-survival" => Box::new(NnetSurvival),
        "pc-hazard" => Box::new(PcHazard),
        "cox" => Box::new(Cox::new(&CoxConfig::default())),
        other => return Err(format!("no head is called {other}").into()),
    };

    // Six subjects: years to the event, or to the end of follow-up without one (censored).
    let train = Outcomes::new(vec![1.0, 2.0, 2.5, 4.0, 5.0, 6.0], vec![true, true, false, true, false, true])?;
    let cut_points = CutPoints::equidistant(&train, 7)?;
    let targets = cut_points.targets("training", train.time(), train.event())?;
    println!("head {}, cut points {:?}", head.name(), cut_points.times());
    println!("interval of every subject: {:?}", targets.intervals.index);

    // Every subject starts at the same outputs: the marginal distribution of the sample, or 0 for a Cox head.
    let (n, width) = (train.n(), head.n_outputs(&cut_points));
    let start = head.starting_outputs(&marginal_hazard(&targets.intervals, cut_points.n()));
    let start = start.unwrap_or_else(|| vec![0.0; width]);
    let device = Device::flex().autodiff();
    let start = TensorData::new(start, [1, width]).convert::<f32>();
    let mut outputs = Tensor::<2>::from_data(start, &device).repeat_dim(0, n);
    show_curves("at the start", head.as_ref(), &cut_points, &train, &outputs)?;

    // Plain gradient descent on the outputs themselves.
    let mut controls = stream(1, "controls", &[]); // read by heads that draw controls
    for step in 0..=40 {
        outputs = outputs.detach().require_grad();
        let losses = head.subject_losses(outputs.clone(), &targets, &mut controls); // [n], not reduced
        let gradients = losses.clone().mean().backward();
        let gradient = outputs.grad(&gradients).ok_or("the outputs have no gradient")?; // [n, width]
        if step % 20 == 0 {
            let shown: Vec<String> = numbers(losses)?.iter().map(|loss| format!("{loss:.3}")).collect();
            let norm = numbers(gradient.clone().powi_scalar(2).sum())?[0].sqrt();
            println!("step {step:>2}: losses [{}], norm of the gradient {norm:.4}", shown.join(", "));
        }
        outputs = Tensor::from_inner(outputs.inner() - gradient * 2.0);
    }
    show_curves("after 40 steps", head.as_ref(), &cut_points, &train, &outputs)
}

/// Prints the curve of every subject. A Cox head first needs the baseline hazard of the training sample.
fn show_curves(
    when: &str,
    head: &dyn SurvivalHead,
    cut_points: &CutPoints,
    train: &Outcomes,
    outputs: &Tensor<2>,
) -> Result<(), Box<dyn Error>> {
    let outputs = Array2::from_shape_vec(outputs.dims(), numbers(outputs.clone())?)?;
    let baseline = match head.baseline_fit(train) {
        Some(mut fit) => {
            fit.add(&outputs.view(), train.time(), train.event());
            Some(fit.finish()?)
        }
        None => None,
    };
    let grid = PredictionGrid::at_cut_points(cut_points);
    let survival = head.survival(outputs.view(), &grid, baseline.as_ref())?; // [n, n_times] in f64
    println!("survival {when} at times {:?}", grid.times());
    for ((curve, time), event) in survival.rows().into_iter().zip(train.time()).zip(train.event()) {
        let curve: Vec<String> = curve.iter().map(|s| format!("{s:.2}")).collect();
        println!("  {} at {time:.1}: {}", if *event { "event   " } else { "censored" }, curve.join(" "));
    }
    Ok(())
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, Box<dyn Error>> {
    tensor.into_data().try_to_vec().map_err(|error| format!("{error:?}").into())
}
