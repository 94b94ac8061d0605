//! Are the numbers of an evaluation honest? Cohorts of the generator, whose truth is known, give the coverage of intervals, the bias of
//! metrics and gaps, and the rejection rates of tests.
//!
//! `cargo run --release -p fairtte-classical --example honesty -- FOLDER [PART] [COHORTS]`
//!
//! PART is the beginning of the names of the parts that are run: `intervals`, `more-intervals`, `distance-intervals`, `causes`,
//! `classes`, `delong`, `observed`, `comparisons`, `model-groups`, `estimators`, `ratios`, `sources`, `trends`,
//! `censoring`, `shares`, `tests`, `calibration`, `ranks`, `unequal`; `all` = every one. A part whose file is in FOLDER is not run again,
//! so that a run that was stopped resumes. COHORTS are those of every part, 0 = its own number. The files are Markdown tables; all are
//! printed at the end.

#![expect(clippy::print_stdout, reason = "the tables are the result")]
#![expect(clippy::unwrap_used, reason = "simulated input is valid")]

mod calibration;
mod causes;
mod censoring;
mod classes;
mod comparisons;
mod design;
mod estimators;
mod intervals;
mod model_groups;
mod observed;
mod ranks;
mod ratios;
mod rejections;
mod shares;
mod sources;
mod table;
mod unequal;

use std::path::Path;

use table::Part;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = arguments.first() else {
        println!("usage: honesty FOLDER [PART] [COHORTS]");
        return;
    };
    let chosen = arguments.get(1).map_or("all", String::as_str);
    let n_cohorts: u64 = arguments.get(2).map_or(0, |n| n.parse().unwrap());
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder).unwrap();
    let parts: Vec<Part> = [
        ranks::parts(),
        calibration::parts(),
        censoring::parts(),
        shares::parts(),
        rejections::parts(),
        intervals::parts(),
        causes::parts(),
        classes::parts(),
        observed::parts(),
        comparisons::parts(),
        model_groups::parts(),
        estimators::parts(),
        ratios::parts(),
        sources::parts(),
        unequal::parts(),
    ]
    .into_iter()
    .flatten()
    .collect();
    for part in &parts {
        if chosen == "all" || part.name.starts_with(chosen) {
            part.run(folder, n_cohorts);
        }
    }
    table::print(folder, &parts);
}
