//! From a simulation to batches, as in a run.

use fairtte_data::simulated::{PictureKind, SimulationConfig};
use fairtte_data::{
    AttributeConfig, DataConfig, FittedAttributes, ImageConfig, ImageStore, IntensityConfig, Loader, Part, Sampling,
    SplitConfig, build_cohort, split_by_subject,
};

#[test]
fn simulated_films_and_volumes_become_batches_without_losing_one() {
    let cache = tempfile::tempdir().unwrap();
    for (kind, size) in [(PictureKind::Films, vec![20, 24]), (PictureKind::Volumes, vec![8, 10, 12])] {
        let simulation = SimulationConfig { n_subjects: 15, images_per_subject: 2, ..SimulationConfig::of_kind(kind) };
        let adapter = DataConfig::Simulated(simulation).adapter(11, cache.path());
        let attributes = ["sex", "age", "race"].map(AttributeConfig::new);
        let (cohort, mut exclusions) = build_cohort(adapter.read().unwrap(), &attributes).unwrap();
        let config = ImageConfig { size: size.clone(), channels: 1, ..ImageConfig::default() };
        let (store, undecodable) = ImageStore::open_or_build(&cohort, &config, cache.path(), &|_, _| {}).unwrap();
        exclusions.extend(undecodable);
        assert_eq!(exclusions.summary(), "none");
        exclusions.check(30).unwrap();

        let split = split_by_subject(&cohort, &SplitConfig::default(), 11).unwrap();
        let train = split.rows(Part::Train);
        assert_eq!(train.len(), 18, "9 of 15 subjects with 2 images each");
        let sex = FittedAttributes::fit(&attributes, &cohort, train).unwrap().all()[0].clone();
        let intensity = IntensityConfig::Standardise.fit(&store, &cohort, train).unwrap();
        let loader = Loader::new(&store, &cohort, sex.membership().to_vec(), &intensity).unwrap();
        let mut rows = Vec::new();
        for batch in loader.batches(train, 8, &Sampling::Shuffled, 11, 0).unwrap() {
            assert_eq!(batch.shape[2..], size);
            assert!(batch.pixels.iter().all(|pixel| pixel.is_finite()));
            let levels = batch.groups.iter().map(|group| sex.levels()[group.unwrap().index()].as_str());
            assert!(
                levels.zip(&batch.rows).all(|(level, &row)| cohort.attributes[0].values[row].as_deref() == Some(level))
            );
            rows.extend(batch.rows);
        }
        rows.sort_unstable();
        assert_eq!(rows, train);
    }
}
