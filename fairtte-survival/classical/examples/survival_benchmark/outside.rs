//! Models of other programs: the people of every scenario as CSV, and curves of them read back.

use std::fmt::Write as _;
use std::path::Path;

use fairtte_classical::generator::GeneratorSettings;
use fairtte_metrics::SurvivalCurves;
use ndarray::Array2;

use super::{Failure, Halves, Scored, Source, scenarios, subgrouped};

/// The names of the models, one per line of `models.txt`.
pub fn names(folder: &str) -> Result<Vec<String>, Failure> {
    Ok(std::fs::read_to_string(Path::new(folder).join("models.txt"))?.lines().map(str::to_owned).collect())
}

/// Whether the folder of the first repeat of a scenario, or a setting of subgroups, is there.
pub fn has(folder: &str, name: &str) -> bool {
    Path::new(folder).join(format!("{name}-1")).is_dir()
}

/// Name of the folders of a setting of subgroups, without brackets.
pub fn name_of_subgroups(row: &str) -> String {
    format!("subgroups {}", row.replace(['[', ']', ','], ""))
}

/// `fit.csv`, `others.csv` and the times of the curves in `grid.txt`, in a folder per scenario, or setting of subgroups, and repeat.
pub fn write(folder: &str, source: &Source, repeats: u64) -> Result<(), Failure> {
    let by_scenario = scenarios().into_iter().map(|(name, _, settings)| (name.to_owned(), settings));
    let by_subgroup = subgrouped().into_iter().map(|(name, settings)| (name_of_subgroups(&name), settings));
    for (name, settings) in by_scenario.chain(by_subgroup) {
        for seed in 1..=repeats {
            let halves = Halves::draw(source, &settings, seed)?;
            let own = Path::new(folder).join(format!("{name}-{seed}"));
            std::fs::create_dir_all(&own)?;
            std::fs::write(own.join("fit.csv"), table(&halves, &halves.first))?;
            std::fs::write(own.join("others.csv"), table(&halves, &halves.others))?;
            std::fs::write(own.join("grid.txt"), joined(&halves.grid, "\n"))?;
        }
    }
    Ok(())
}

fn table(halves: &Halves, rows: &[usize]) -> String {
    let (inputs, outcomes) = (halves.cohort.inputs(), &halves.cohort.outcomes);
    let columns: Vec<String> = (0..inputs.ncols()).map(|place| format!("x{place}")).collect();
    let mut text = format!("sample_id,subject_id,time,event,{}\n", columns.join(","));
    for row in rows {
        let (time, event) = (outcomes.time()[*row], u8::from(outcomes.event()[*row]));
        let _ = writeln!(text, "p{row},p{row},{time},{event},{}", joined(&inputs.row(*row).to_vec(), ","));
    }
    text
}

fn joined(values: &[f64], between: &str) -> String {
    values.iter().map(f64::to_string).collect::<Vec<_>>().join(between)
}

/// The models of `models.txt`, whose curves are `MODEL.csv`: a row per person of `others.csv`, a column per time of `grid.txt`.
pub fn scored(
    folder: &str,
    name: &str,
    source: &Source,
    settings: &GeneratorSettings,
    seed: u64,
) -> Result<Vec<Scored>, Failure> {
    let halves = Halves::draw(source, settings, seed)?;
    let one = |model: String| {
        let path = Path::new(folder).join(name).join(format!("{model}.csv"));
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let values: Result<Vec<f64>, _> = text.lines().flat_map(|line| line.split(',')).map(str::parse).collect();
        let values = Array2::from_shape_vec((halves.others.len(), halves.grid.len()), values?)?;
        halves.scored(&SurvivalCurves::new(halves.grid.clone(), values)?)
    };
    names(folder)?.into_iter().map(one).collect()
}
