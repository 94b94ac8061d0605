//! Audits the predictions of any model: two CSV files in, metrics by group with bootstrap intervals out.
//!
//! `cargo run --release -p fairtte-metrics --example audit [-- CURVES.csv OUTCOMES.csv]`
//!
//! The curves file has the header `subject,TIME,TIME,..` and one row of survival probabilities per subject; the outcomes
//! file has `subject,time,event,GROUP`, where `event` is 1 (observed) or 0 (censored) and an empty group is missing. Rows
//! are matched by subject. Without arguments it reads the made-up files in `examples/audit/`, in which the model knows
//! less about men and promises them too much survival.

#![expect(clippy::print_stdout, reason = "the table is the result")]

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fs;

use fairtte_metrics::calibration::{DCalibrationConvention, OwnTimeReading, d_calibration, integrated_calibration};
use fairtte_metrics::evaluation::{Estimate, MetricDescription, MetricReport, evaluate_metric};
use fairtte_metrics::fairness::PerGroup;
use fairtte_metrics::{
    CensoringCurve, CensoringTies, Direction, EvaluationSettings, GroupId, Groups, Outcomes, SubjectId, SurvivalCurves,
    evaluate,
};
use ndarray::Array2;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/audit");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (curves_file, outcomes_file) = match arguments.as_slice() {
        [] => (format!("{folder}/curves.csv"), format!("{folder}/outcomes.csv")),
        [curves, outcomes] => (curves.clone(), outcomes.clone()),
        _ => return Err("usage: audit [CURVES.csv OUTCOMES.csv]".into()),
    };
    let (times, by_subject) = read_curves(&curves_file)?;

    // One row per subject of the outcomes file, and the curve of the same subject beside it.
    let text = fs::read_to_string(&outcomes_file)?;
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().ok_or("the outcomes file is empty")?;
    let attribute = *header.get(3).ok_or("the outcomes file needs four columns")?;
    let (mut subjects, mut time, mut event, mut values, mut survival) = (vec![], vec![], vec![], vec![], vec![]);
    for line in lines {
        let [subject, years, observed, group] = line.as_slice() else { return Err("expected four cells".into()) };
        subjects.push(SubjectId::from(*subject));
        time.push(years.parse::<f64>()?);
        event.push(*observed == "1");
        values.push(*group);
        survival.extend(by_subject.get(*subject).ok_or_else(|| format!("{subject} has no curve"))?);
    }

    // The constructors check what they are given: finite times, curves that never rise, groups that exist.
    let outcomes = Outcomes::new(time, event)?;
    let curves = SurvivalCurves::new(times.clone(), Array2::from_shape_vec((subjects.len(), times.len()), survival)?)?;
    let levels: BTreeSet<&str> = values.iter().copied().filter(|value| !value.is_empty()).collect();
    let place = |value: &&str| levels.iter().zip(0..).find(|(level, _)| *level == value).map(|(_, id)| GroupId(id));
    let membership = values.iter().map(place).collect();
    let groups = [Groups::new(attribute, levels.iter().map(ToString::to_string).collect(), membership)?];

    // Rank and Brier metrics. Where the training sample is at hand, fit the censoring curve on that instead.
    let settings = EvaluationSettings::default();
    let censoring = CensoringCurve::fit(&outcomes, CensoringTies::EventsFirst)?;
    let report = evaluate(&subjects, &outcomes, &curves, &censoring, &groups, &settings)?;
    println!("{:<16} {:<8} {:>6}  {:<16} {:>4} {:>6}", "metric", attribute, "value", "95 % interval", "n", "events");
    report.metrics.iter().for_each(print_metric);

    // Any other metric of some rows gets the same groups, gaps and intervals; here calibration over the same times. Of
    // the two ways to be wrong, too much predicted survival counts as the worse one.
    let window = report.times.as_ref().ok_or("no evaluation times")?;
    let calibration = |rows: &[usize]| {
        let (outcomes, curves) = (outcomes.select(rows), curves.select(rows));
        Ok(integrated_calibration(&outcomes, &curves, settings.reading, &window.times)?.signed)
    };
    let description = MetricDescription {
        name: "signed_calibration",
        label: "predicted - KM",
        convention: "time average of the mean predicted curve minus the Kaplan-Meier curve",
        direction: Direction::LowerIsBetter,
    };
    print_metric(&evaluate_metric(description, calibration, &subjects, &outcomes, &groups, &settings)?);

    // Or only a number per group.
    let p_values = PerGroup::compute(&groups[0], &outcomes, Some(&subjects), |rows| {
        let (outcomes, curves) = (outcomes.select(rows), curves.select(rows));
        let reading = OwnTimeReading::OneBefore(settings.reading);
        Ok(d_calibration(&outcomes, &curves, reading, 5, DCalibrationConvention::Survivaleval)?.p_value)
    })?;
    for group in &p_values.groups {
        match &group.value {
            Ok(p) => println!("D-calibration of {}: p = {p:.3}", group.level),
            Err(reason) => println!("D-calibration of {}: {reason}", group.level),
        }
    }
    println!("{} samples without {attribute} are in no group", p_values.n_missing);
    Ok(())
}

fn print_metric(metric: &MetricReport) {
    let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let print = |group: &str, found: &Estimate| {
        let interval = format!("{} to {}", show(found.lower), show(found.upper));
        let value = show(found.value);
        println!("{:<16} {group:<8} {value:>6}  {interval:<16} {:>4} {:>6}", metric.label, found.n, found.n_events);
    };
    print("all", &metric.overall);
    for attribute in &metric.attributes {
        attribute.groups.iter().for_each(|group| print(&group.level, &group.estimate));
        print("gap", &attribute.gap);
    }
}

/// Survival probabilities by subject.
type Curves = HashMap<String, Vec<f64>>;

/// The times of the header, and the survival probabilities of every subject.
fn read_curves(file: &str) -> Result<(Vec<f64>, Curves), Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    let mut lines = text.lines();
    let numbers = |line: &str| line.split(',').skip(1).map(str::parse).collect::<Result<Vec<f64>, _>>();
    let times = numbers(lines.next().ok_or("the curves file is empty")?)?;
    let row = |line: &str| Ok((line.split(',').next().unwrap_or_default().to_owned(), numbers(line)?));
    Ok((times, lines.map(row).collect::<Result<_, Box<dyn Error>>>()?))
}
