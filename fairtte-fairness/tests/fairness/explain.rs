//! Maps of a network that was trained on films whose disease is known to the pixel.
//!
//! The expectation before the run: the network learns the burden of the opacities, which only their place in the lungs shows,
//! so more of a map is on them than their share of the area, for most films; not so for the same map with its axes swapped,
//! nor for the map of a network with random weights.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
#![expect(clippy::print_stdout, reason = "measured shares are worth seeing")]

use std::sync::atomic::AtomicBool;

use burn::tensor::Device;
use fairtte_data::loader::Intensity;
use fairtte_data::simulated::{SimulationConfig, disease};
use fairtte_data::{
    Cohort, DataConfig, HostBatch, ImageConfig, ImageStore, Loader, Part, Sampling, Split, SplitConfig, build_cohort,
    split_by_subject,
};
use fairtte_fairness::explain::{Patches, RiskAt};
use fairtte_fairness::strategies::{CellCounts, TrainingCells};
use fairtte_fairness::{
    FittedModel, LearnerSpec, ModelSettings, NetworkSpec, OptimiserConfig, Outputs, Predictor, Scoring, Silent,
    StrategyConfig, Trainer, TrainingConfig, TrainingData, write_weights,
};
use fairtte_metrics::{EvaluationSettings, Reading};
use fairtte_models::{BackboneKind, EncoderConfig};
use fairtte_survival::{ClassifierConfig, CutPoints, HeadConfig, NnetSurvivalConfig, NoSettings, PredictionGrid};

const SEED: u64 = 11;
const SIDE: usize = 32;
const N_FILMS: usize = 16;

fn simulation() -> SimulationConfig {
    SimulationConfig { n_subjects: 1500, size: vec![SIDE, SIDE], ..SimulationConfig::default() }
}

/// The attenuation that the disease adds to a film, by its name `images/s000007_v0.png`.
fn disease_of(sample: &str) -> Vec<f64> {
    let subject: u64 = sample.rsplit_once("/s").unwrap().1[..6].parse().unwrap();
    disease(&simulation(), SEED, subject - 1, 0).unwrap()
}

struct World {
    cohort: Cohort,
    store: ImageStore,
    split: Split,
    intensity: Intensity,
    cut_points: CutPoints,
}

impl World {
    fn new(folder: &std::path::Path) -> Self {
        let adapter = DataConfig::Simulated(simulation()).adapter(SEED, folder);
        let (cohort, _) = build_cohort(adapter.read().unwrap(), &[]).unwrap();
        let image = ImageConfig { size: vec![SIDE, SIDE], channels: 1, ..ImageConfig::default() };
        let (store, _) = ImageStore::open_or_build(&cohort, &image, folder, &|_, _| {}).unwrap();
        let split = split_by_subject(&cohort, &SplitConfig::default(), SEED).unwrap();
        let train = split.rows(Part::Train);
        let intensity = Intensity::fit(&store, &cohort, train).unwrap();
        let cut_points = CutPoints::equidistant(&cohort.outcomes(train).unwrap(), 8).unwrap();
        Self { cohort, store, split, intensity, cut_points }
    }

    fn loader(&self) -> Loader<'_> {
        Loader::new(&self.store, &self.cohort, vec![None; self.cohort.n()], &self.intensity).unwrap()
    }

    /// A network trained for some epochs, as a kept model.
    fn trained(&self, folder: &std::path::Path) -> Predictor {
        let train = self.split.rows(Part::Train);
        let outcomes = self.cohort.outcomes(train).unwrap();
        let head = HeadConfig::NnetSurvival(NnetSurvivalConfig::default());
        let built = head.build().unwrap();
        let encoder = EncoderConfig { dropout: 0.0, ..EncoderConfig::new(BackboneKind::Small2d) };
        let classifier =
            ClassifierConfig::for_head(built.as_ref(), &self.cut_points, &outcomes, encoder.hidden).unwrap();
        let strategy = StrategyConfig::Erm(NoSettings {});
        let spec = LearnerSpec {
            network: NetworkSpec { encoder: encoder.clone(), channels: 1, classifier: classifier.clone() },
            optimiser: OptimiserConfig { learning_rate: 3e-3, ..OptimiserConfig::default() },
            seed: SEED,
            device: Device::flex(),
            pretrained: None,
        };
        let cells = TrainingCells {
            attribute: String::new(),
            levels: Vec::new(),
            groups: vec![None; train.len()],
            event: outcomes.event().to_vec(),
            interval: self.cut_points.targets("training", outcomes.time(), outcomes.event()).unwrap().intervals.index,
            n_cut_points: self.cut_points.n(),
        };
        let mut method = strategy.build(&spec, &cells).unwrap();
        let grid = PredictionGrid::at_cut_points(&self.cut_points);
        let settings = EvaluationSettings::default();
        let (loader, never) = (self.loader(), AtomicBool::new(false));
        let data = TrainingData {
            loader: &loader,
            train,
            validation: self.split.rows(Part::Validation),
            levels: &[],
            kept_for: &[],
            outputs: Outputs { head: built.as_ref(), cut_points: &self.cut_points },
            scoring: &Scoring::new(grid.clone(), &self.cut_points, &settings, &outcomes).unwrap(),
            seed: SEED,
            device: &spec.device,
        };
        let training = TrainingConfig { epochs: 12, batch_size: 25, patience: 100, ..TrainingConfig::default() };
        let run = folder.join("run");
        Trainer::new(&data, &training, &run).observe(&mut Silent).stop_when(&never).fit(method.as_mut()).unwrap();
        let weights = folder.join("weights");
        let hashes = write_weights(method.as_mut(), &weights).unwrap();
        let fitted = FittedModel {
            channels: 1,
            cut_points: self.cut_points.clone(),
            grid,
            classifier,
            cells: CellCounts::from(&cells),
            causes: Vec::new(),
        };
        let model = ModelSettings { encoder: &encoder, head: &head, strategy: &strategy };
        Predictor::load(&model, &fitted, &weights, &hashes, &spec.device).unwrap()
    }

    /// The films of the test part with most disease, one batch each.
    fn films(&self, loader: &Loader<'_>) -> Vec<HostBatch> {
        let amount = |row: &usize| disease_of(self.cohort.samples[*row].sample_id.as_str()).iter().sum::<f64>();
        let mut rows = self.split.rows(Part::Test).to_vec();
        rows.sort_by(|a, b| amount(b).total_cmp(&amount(a)));
        let film = |row: &usize| loader.batches(&[*row], 1, &Sampling::Sequential, 0, 0).unwrap().next().unwrap();
        rows[..N_FILMS].iter().map(film).collect()
    }
}

/// How much more of a map is on the opacities than their share of the area: those pixels where the disease adds more than
/// half of its maximum.
fn enrichment(map: &[f64], sample: &HostBatch) -> f64 {
    let disease = disease_of(sample.sample_ids[0].as_str());
    let half = 0.5 * disease.iter().copied().fold(0.0, f64::max);
    let inside: f64 = map.iter().zip(&disease).filter(|(_, added)| **added > half).map(|(value, _)| value.abs()).sum();
    let area = disease.iter().filter(|added| **added > half).count() as f64 / disease.len() as f64;
    inside / map.iter().map(|value| value.abs()).sum::<f64>() / area
}

fn transposed(map: &[f64]) -> Vec<f64> {
    (0..SIDE * SIDE).map(|place| map[place % SIDE * SIDE + place / SIDE]).collect()
}

/// Occlusion and integrated gradients of every film.
fn maps(predictor: &Predictor, films: &[HostBatch], at: RiskAt) -> [Vec<Vec<f64>>; 2] {
    let patches = Patches::of_images(&[SIDE, SIDE], 4, 2).unwrap();
    let zero = vec![0.0; SIDE * SIDE];
    let occluded = films.iter().map(|film| predictor.occlusion(film, &zero, &patches, at).unwrap().map).collect();
    let integrated = films.iter().map(|film| {
        let found = predictor.integrated_gradients(film, &zero, 64, 16, at).unwrap();
        // ReLU networks are linear in pieces: the sum over steps has an error of the order of one step.
        assert!(found.gap() < 0.01, "{} of {}", found.gap(), found.whole - found.baseline);
        found.values
    });
    [occluded, integrated.collect()]
}

#[test]
fn the_maps_of_a_trained_network_are_on_the_disease() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(folder.path());
    let mut predictor = world.trained(folder.path());
    let loader = world.loader();
    let films = world.films(&loader);
    let at = RiskAt { horizon: 0.5 * predictor.times().last().unwrap(), reading: Reading::Linear };
    let trained = maps(&predictor, &films, at);
    let before = predictor.risks(films[0].clone(), at).unwrap();
    predictor.randomise(SEED);
    assert_ne!(predictor.risks(films[0].clone(), at).unwrap(), before, "the weights are others");
    let random = maps(&predictor, &films, at);
    for (method, (trained, random)) in ["occlusion", "integrated gradients"].iter().zip(trained.iter().zip(&random)) {
        let of = |maps: &[Vec<f64>]| -> Vec<f64> {
            maps.iter().zip(&films).map(|(map, film)| enrichment(map, film)).collect()
        };
        let swapped: Vec<Vec<f64>> = trained.iter().map(|map| transposed(map)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (own, swapped, random) = (of(trained), of(&swapped), of(random));
        let n_above = own.iter().filter(|share| **share > 1.0).count();
        println!(
            "{method}: {:.2} times the share of the area ({n_above} of {N_FILMS} films above 1); axes swapped {:.2}, random \
             weights {:.2}",
            mean(&own),
            mean(&swapped),
            mean(&random)
        );
        assert!(n_above >= N_FILMS - 2, "{method}: {own:?}");
        // An error that swaps the axes, or maps that show the picture and not what was learnt, would fail here.
        assert!(mean(&own) > 1.3 * mean(&swapped), "{method}: {own:?} {swapped:?}");
        assert!(mean(&own) > 1.3 * mean(&random), "{method}: {own:?} {random:?}");
    }
}
