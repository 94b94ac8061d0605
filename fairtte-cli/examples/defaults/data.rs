//! The data of a run file, ready for training.

use burn::tensor::Device;
use fairtte_cli::RunFile;
use fairtte_data::adapters::Tabular;
use fairtte_data::features::{FeatureMatrix, TabularFeatures};
use fairtte_data::loader::Intensity;
use fairtte_data::{Cohort, DataConfig, FittedAttributes, ImageStore, Loader, Part, Split, build_cohort, make_split};
use fairtte_fairness::strategies::TrainingCells;
use fairtte_fairness::{LearnerSpec, NetworkSpec, Outputs, Scoring, TrainingData};
use fairtte_metrics::Groups;
use fairtte_survival::{ClassifierConfig, CutPoints, PredictionGrid, SurvivalHead};

use super::Outcome;

/// Everything that is fixed before a training, fitted on the training part.
pub struct World {
    pub cohort: Cohort,
    pub split: Split,
    /// Groups of the attribute that strategies work on.
    pub groups: Groups,
    pub cut_points: CutPoints,
    pub scoring: Scoring,
    pub head: Box<dyn SurvivalHead>,
    pub cells: TrainingCells,
    /// Specification of the learner; its seed is not that of a training.
    pub spec: LearnerSpec,
    inputs: Inputs,
}

enum Inputs {
    Images(Box<ImageStore>, Intensity),
    Features(FeatureMatrix),
}

impl World {
    pub fn read(run: &RunFile, attribute: &str) -> Outcome<Self> {
        run.check()?;
        let adapter = run.data.adapter(run.seed, &run.cache());
        let (mut cohort, _) = build_cohort(adapter.read()?, &run.attribute)?;
        let store = if matches!(run.data, DataConfig::Tabular(_)) {
            None
        } else {
            let (store, undecodable) = ImageStore::open_or_build(&cohort, &run.image, &run.cache(), &|_, _| ())?;
            cohort = cohort.without(&undecodable);
            Some(store)
        };
        let (split, _) = make_split(&cohort, &run.split, &run.attribute, run.seed)?;
        let train = split.rows(Part::Train);
        let fitted = FittedAttributes::fit(&run.attribute, &cohort, train)?;
        let groups =
            fitted.all().iter().find(|groups| groups.attribute() == attribute).ok_or("no such attribute")?.clone();
        let (inputs, channels) = if let Some(store) = store {
            let intensity = run.intensity.fit(&store, &cohort, train)?;
            (Inputs::Images(Box::new(store), intensity), run.image.channels)
        } else {
            let matrix = features(run, &cohort, train)?;
            let n = matrix.n_features();
            (Inputs::Features(matrix), n)
        };
        let outcomes = cohort.outcomes(train)?;
        let cut_points = CutPoints::fit(&outcomes, run.time.intervals, run.time.grid)?;
        let head = run.head.build()?;
        let grid = PredictionGrid::new(&cut_points, run.time.points_per_interval, run.time.interpolation)?
            .with_early(head.as_ref(), &outcomes);
        let classifier = ClassifierConfig::for_head(head.as_ref(), &cut_points, &outcomes, run.model.hidden)?;
        let spec = LearnerSpec {
            network: NetworkSpec { encoder: run.model.clone(), channels, classifier },
            optimiser: run.optimiser,
            seed: run.seed,
            device: Device::flex(),
            pretrained: None,
        };
        let cells = TrainingCells {
            attribute: attribute.to_owned(),
            levels: groups.levels().to_vec(),
            groups: train.iter().map(|row| groups.membership()[*row]).collect(),
            event: outcomes.event().to_vec(),
            interval: cut_points.targets("training", outcomes.time(), outcomes.event())?.intervals.index,
            n_cut_points: cut_points.n(),
        };
        let scoring = Scoring::new(grid, &cut_points, &run.evaluation, &outcomes)?;
        Ok(Self { cohort, split, groups, cut_points, scoring, head, cells, spec, inputs })
    }

    pub fn loader(&self) -> Outcome<Loader<'_>> {
        let groups = self.groups.membership().to_vec();
        Ok(match &self.inputs {
            Inputs::Images(store, intensity) => Loader::new(store, &self.cohort, groups, intensity)?,
            Inputs::Features(matrix) => Loader::of_features(matrix, &self.cohort, groups)?,
        })
    }

    pub fn training_data<'a>(&'a self, loader: &'a Loader<'a>, seed: u64) -> TrainingData<'a> {
        TrainingData {
            loader,
            train: self.split.rows(Part::Train),
            validation: self.split.rows(Part::Validation),
            levels: self.groups.levels(),
            kept_for: &[],
            outputs: Outputs { head: self.head.as_ref(), cut_points: &self.cut_points },
            scoring: &self.scoring,
            seed,
            device: &self.spec.device,
        }
    }
}

fn features(run: &RunFile, cohort: &Cohort, train: &[usize]) -> Outcome<FeatureMatrix> {
    let DataConfig::Tabular(config) = &run.data else { return Err("no table".into()) };
    let table = Tabular::new(config.clone()).features()?.aligned(cohort)?;
    let attributes: Vec<&str> = run.attribute.iter().map(|attribute| attribute.name.as_str()).collect();
    Ok(TabularFeatures::fit(&table, train, &config.feature_config(), &attributes)?.encode(&table)?)
}
