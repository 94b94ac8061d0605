//! A table becomes a cohort: samples with time and event, the rows left out with their reasons, groups, a split by
//! subject, and the columns encoded as inputs of a model.
//!
//! `cargo run -p fairtte-data --example cohort`
//!
//! It reads the made-up `examples/cohort/visits.csv`: up to two visits per patient, with some cells missing.

#![expect(clippy::print_stdout, reason = "an example prints what it found")]

use std::error::Error;
use std::path::Path;

use fairtte_data::adapters::{Tabular, TabularConfig};
use fairtte_data::cohort::{CohortSummary, Threshold};
use fairtte_data::features::{TabularFeatures, leak_warnings};
use fairtte_data::split::SplitTable;
use fairtte_data::{
    Adapter as _, AttributeConfig, FittedAttributes, Loader, Part, Sampling, SplitConfig, build_cohort, make_split,
};

fn main() -> Result<(), Box<dyn Error>> {
    // Which column holds what; a run file says the same under `[data.tabular]`.
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cohort/visits.csv");
    let adapter = Tabular::new(TabularConfig {
        subject: Some("patient".to_owned()),
        sample: Some("visit".to_owned()),
        time: "years".to_owned(),
        event: "death".to_owned(),
        time_unit: "years".to_owned(),
        numeric: vec!["age".to_owned()], // an attribute is an input only if named here
        ..TabularConfig::new(table)
    });
    let age = AttributeConfig { threshold: Some(Threshold::Value(60.0)), ..AttributeConfig::new("age") };
    let attributes = [AttributeConfig::new("sex"), age];

    // Every row is kept or excluded for a reason.
    let (cohort, exclusions) = build_cohort(adapter.read()?, &attributes)?;
    exclusions.check(cohort.n())?;
    for step in exclusions.flow_of_tables() {
        println!("{:>3} {:<24} excluded: {}", step.n_kept, step.label, step.n_excluded);
    }
    for excluded in exclusions.list() {
        println!("    {}: {} ({})", excluded.sample_id, excluded.reason, excluded.source);
    }

    // All visits of a patient are in the same part; deaths are spread evenly over the parts.
    let config = SplitConfig { stratify: vec!["event".to_owned()], ..SplitConfig::default() };
    let (split, _record) = make_split(&cohort, &config, &attributes, 7)?;
    let train = split.rows(Part::Train);

    // Groups and encodings are fitted on the training part only, and then applied to all rows.
    let groups = FittedAttributes::fit(&attributes, &cohort, train)?;
    println!("\n{:<12} {:>16} {:>16} {:>16}", "samples", "train", "validation", "test");
    for row in SplitTable::new(&cohort, groups.all(), &split)?.rows {
        let cell = |part| format!("{} ({} deaths)", row.size(part).samples, row.size(part).events);
        let [train, validation, test] = Part::ALL.map(cell);
        println!("{:<12} {train:>16} {validation:>16} {test:>16}", row.name());
    }
    let summary = CohortSummary::new(&cohort, &exclusions, &groups);
    let shown = summary.total.mean_time.map_or("-".to_owned(), |time| format!("{time:.2}"));
    println!("\n{} patients, mean follow-up {shown} {}", summary.n_subjects, summary.time_unit);

    // The other columns as inputs: numbers standardised, missing values marked.
    let cells = adapter.features()?.aligned(&cohort)?;
    let names = attributes.each_ref().map(|attribute| attribute.name.as_str());
    let settings = &adapter.config().feature_config();
    let fitted = TabularFeatures::fit(&cells, train, settings, &names)?;
    let features = fitted.encode(&cells)?;
    println!("features: {}", features.names().join(", "));
    println!("columns that may give the outcome away: {}", leak_warnings(&fitted, &cells, &cohort, train)?.len());

    // Batches hold features, outcomes, groups and identities of the same samples.
    let membership = groups.all()[0].membership().to_vec();
    let loader = Loader::of_features(&features, &cohort, membership)?;
    if let Some(batch) = loader.batches(train, 8, &Sampling::Shuffled, 7, 0)?.next() {
        let first = (&batch.sample_ids[0], batch.time[0], batch.event[0]);
        println!(
            "first batch: shape {:?}, begins with {} ({} years, death {})",
            batch.shape, first.0, first.1, first.2
        );
    }
    Ok(())
}
