//! Trains twice on simulated pictures in which one group shows less of its risk: with the mean loss (ERM) and with Group
//! DRO, and compares the groups of the test part.
//!
//! `cargo run --release -p fairtte-fairness --example train`
//!
//! It takes some seconds. With 600 subjects the differences of methods and groups are mostly chance: the example shows how
//! a training is put together, not that one method is better.

#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use burn::tensor::Device;
use fairtte_data::simulated::{BiasKnobs, SimulationConfig};
use fairtte_data::{
    AttributeConfig, DataConfig, FittedAttributes, ImageConfig, ImageStore, IntensityConfig, Loader, Part, SplitConfig,
    build_cohort, split_by_subject,
};
use fairtte_fairness::strategies::{GroupDroConfig, TrainingCells};
use fairtte_fairness::{
    EpochReport, LearnerSpec, NetworkSpec, Observer, OptimiserConfig, Outputs, Scoring, StrategyConfig, Trainer,
    TrainingConfig, TrainingData, predict,
};
use fairtte_metrics::{CensoringCurve, CensoringTies, EvaluationSettings, SurvivalCurves, evaluate};
use fairtte_models::{BackboneKind, EncoderConfig};
use fairtte_survival::{ClassifierConfig, CutPoints, NnetSurvival, NoSettings, PredictionGrid};
use std::error::Error;

const SEED: u64 = 7;

/// Prints a line per epoch.
struct Printer;

impl Observer for Printer {
    fn epoch_done(&mut self, report: &EpochReport) {
        let EpochReport { epoch, train_loss, validation, terms, .. } = report;
        println!("  epoch {epoch}: loss {train_loss:.3}, validation {:.3}, terms {terms:.2?}", validation.nll);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Simulated chest films: for women (group F) the picture says less about the time to the event.
    let folder = tempfile::tempdir()?;
    let bias = BiasKnobs { mi_time: 0.8, ..BiasKnobs::default() };
    let data = SimulationConfig { n_subjects: 600, size: vec![64, 64], bias, ..SimulationConfig::default() };
    let adapter = DataConfig::Simulated(data).adapter(SEED, folder.path());
    let attributes = [AttributeConfig::new("sex")];
    let (cohort, _) = build_cohort(adapter.read()?, &attributes)?;
    let size = ImageConfig { size: vec![64, 64], ..ImageConfig::default() };
    let (store, undecodable) = ImageStore::open_or_build(&cohort, &size, folder.path(), &|_done, _total| {})?;
    let cohort = cohort.without(&undecodable);

    // Everything that is fitted sees the training part only.
    let split = split_by_subject(&cohort, &SplitConfig::default(), SEED)?;
    let [train, test] = [Part::Train, Part::Test].map(|part| split.rows(part));
    let fitted = FittedAttributes::fit(&attributes, &cohort, train)?;
    let sex = &fitted.all()[0];
    let intensity = IntensityConfig::Standardise.fit(&store, &cohort, train)?;
    let loader = Loader::new(&store, &cohort, sex.membership().to_vec(), &intensity)?;
    let outcomes = cohort.outcomes(train)?;
    let cut_points = CutPoints::equidistant(&outcomes, 10)?;
    let grid = PredictionGrid::at_cut_points(&cut_points);
    let settings = EvaluationSettings::default();
    let scoring = Scoring::new(grid.clone(), &cut_points, &settings, &outcomes)?;
    let device = Device::flex();
    let data = TrainingData {
        loader: &loader,
        train,
        validation: split.rows(Part::Validation),
        levels: sex.levels(),
        kept_for: &[],
        outputs: Outputs { head: &NnetSurvival, cut_points: &cut_points },
        scoring: &scoring,
        seed: SEED,
        device: &device,
    };

    // What a strategy builds its network from, and what it may know of the training part.
    let encoder = EncoderConfig::new(BackboneKind::Small2d);
    let classifier = ClassifierConfig::for_head(&NnetSurvival, &cut_points, &outcomes, encoder.hidden)?;
    let network = NetworkSpec { encoder, channels: 1, classifier };
    let optimiser = OptimiserConfig { learning_rate: 1e-3, ..OptimiserConfig::default() };
    let spec = LearnerSpec { network, optimiser, seed: SEED, device: device.clone(), pretrained: None };
    let cells = TrainingCells::of(Some(sex), &loader, train, &cut_points)?;

    let group_dro = StrategyConfig::GroupDro(GroupDroConfig::default());
    for (name, method) in [("ERM", StrategyConfig::Erm(NoSettings {})), ("Group DRO", group_dro)] {
        println!("{name}");
        let mut strategy = method.build(&spec, &cells)?;
        let config = TrainingConfig { epochs: 6, ..TrainingConfig::default() };
        let mut printer = Printer;
        let run =
            Trainer::new(&data, &config, &folder.path().join(name)).observe(&mut printer).fit(strategy.as_mut())?;

        // Test part: curves of the best epoch, scored by group.
        let survival = predict(strategy.as_ref(), &loader, test, &data.outputs.on(&grid), &device)?;
        let curves = SurvivalCurves::new(grid.times().to_vec(), survival)?;
        let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
        let (subjects, truth) = (cohort.subjects(test), cohort.outcomes(test)?);
        let report = evaluate(&subjects, &truth, &curves, &censoring, &fitted.groups(test), &settings)?;
        println!("  test part, weights of epoch {}:", run.best_epoch);
        for metric in report.metrics.iter().filter(|metric| metric.name != "c_td_half") {
            let groups = metric.attributes[0].groups.iter().map(|group| (group.level.as_str(), &group.estimate));
            for (group, found) in groups.chain([("gap", &metric.attributes[0].gap)]) {
                let [value, lower, upper] = [found.value, found.lower, found.upper].map(Option::unwrap_or_default);
                println!("  {:<16} {group:<4} {value:.3} ({lower:.3} to {upper:.3})", metric.label);
            }
        }
    }
    Ok(())
}
