//! Distances between samples, mutual information, and the two parts of the bias sources that other packages offer.

use std::collections::BTreeMap;

use fairtte_metrics::bias::{
    BiasSettings, BiasSource, ContingencyTable, Distribution, GroupSummary, Normalisation, bias_sources,
    energy_distance, equal_frequency_bins, equal_width_bins, ksg_mutual_information_discrete, ksg_per_dimension,
    ksg_per_dimension_discrete, sliced_wasserstein, wasserstein_1, wasserstein_p_power,
};
use fairtte_metrics::{GroupId, Groups, MetricError, Outcomes, SubjectId};
use ndarray::Array2;
use serde_json::Value;

use crate::records::{flags, matrix, numbers};
use crate::tally::{Tally, Verdict};

const TOLERANCE: f64 = 1e-12;
/// scikit-learn adds noise of 1e-10 before it looks for neighbours.
const KSG_TOLERANCE: f64 = 1e-6;
const NEIGHBOURS: usize = 3;

pub fn compare_table(name: &str, file: &Value, tally: &mut Tally) -> Verdict {
    let compare = match name {
        "t_wasserstein1" => compare_distances,
        "t_sliced_wasserstein" => compare_sliced,
        "t_mutual_information" => compare_information,
        "t_fairlearn_gaps" => compare_gaps,
        _ => return Verdict::NotMine,
    };
    compare(file, tally);
    Verdict::Compared
}

fn entries<'a>(file: &'a Value, key: &str) -> &'a [Value] {
    file[key].as_array().map_or(&[], Vec::as_slice)
}

/// Compares every number of `outputs` whose name `ours` knows; an unknown name is a mismatch, so that none is skipped.
fn compare_outputs(
    what: &str,
    outputs: &Value,
    tally: &mut Tally,
    ours: impl Fn(&str) -> Option<Result<f64, MetricError>>,
) {
    for (key, expected) in outputs.as_object().unwrap() {
        match (ours(key), expected.as_f64()) {
            (Some(Ok(found)), Some(expected)) => tally.at(&format!("{what} {key}"), found, expected, TOLERANCE),
            // The other package gives no number, so ours must not give one either.
            (Some(Err(_)), None) => {}
            (found, expected) => tally.mismatch(&format!("{what} {key}: found {found:?}, expected {expected:?}")),
        }
    }
}

fn compare_distances(file: &Value, tally: &mut Tally) {
    for case in entries(file, "cases") {
        let distribution = |values: &str, weights: &str| {
            let values = numbers(&case[values]);
            if case[weights].is_array() {
                Distribution::weighted(&values, &numbers(&case[weights]))
            } else {
                Distribution::new(&values)
            }
        };
        let (u, v) = (distribution("u", "u_weights"), distribution("v", "v_weights"));
        compare_outputs(&case["name"].to_string(), &case["outputs"], tally, |key| {
            let distance = |distance: fn(&Distribution, &Distribution) -> Result<f64, MetricError>| {
                u.clone().and_then(|u| distance(&u, v.as_ref().map_err(MetricError::clone)?))
            };
            match key {
                "scipy_wasserstein_distance" => Some(distance(wasserstein_1)),
                "scipy_energy_distance" => Some(distance(energy_distance)),
                "pot_wasserstein_1d_p1" => Some(distance(|u, v| wasserstein_p_power(u, v, 1.0))),
                "pot_wasserstein_1d_p2_is_W2_squared" => Some(distance(|u, v| wasserstein_p_power(u, v, 2.0))),
                _ => None,
            }
        });
    }
}

fn compare_sliced(file: &Value, tally: &mut Tally) {
    for case in entries(file, "cases") {
        let (x, y, projections) = (matrix(&case["X"]), matrix(&case["Y"]), matrix(&case["projections"]));
        let sliced = |p| sliced_wasserstein(&x, &y, &projections, p);
        compare_outputs(&case["name"].to_string(), &case["outputs"], tally, |key| match key {
            "pot_p1" => Some(sliced(1.0).map(|found| found.value)),
            "pot_p2" => Some(sliced(2.0).map(|found| found.value)),
            "pot_max_sliced_p2" => Some(sliced(2.0).map(|found| found.max)),
            "scipy_mean_W1_of_projections" => {
                Some(sliced(1.0).map(|found| found.powers.iter().sum::<f64>() / found.powers.len() as f64))
            }
            _ => None,
        });
    }
}

/// Labels are any numbers; only which of them are equal matters.
fn labels(values: &Value) -> Vec<u32> {
    let values = numbers(values);
    let mut distinct = values.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    values.iter().map(|value| u32::try_from(distinct.partition_point(|other| other < value)).unwrap()).collect()
}

fn compare_information(file: &Value, tally: &mut Tally) {
    for case in entries(file, "cases") {
        let table = ContingencyTable::new(&labels(&case["a"]), &labels(&case["b"])).unwrap();
        compare_outputs(&case["name"].to_string(), &case["outputs"], tally, |key| {
            Some(Ok(match key {
                "mutual_info_nats" => table.mutual_information(),
                "nmi_arithmetic" => table.normalised(Normalisation::Arithmetic),
                "nmi_geometric" => table.normalised(Normalisation::Geometric),
                "nmi_min" => table.normalised(Normalisation::Min),
                "nmi_max" => table.normalised(Normalisation::Max),
                "adjusted" => adjusted(&table, case["outputs"][key].as_f64()),
                _ => return None,
            }))
        });
    }
    let representation = &file["representation"];
    if representation.is_object() {
        compare_discretised(representation, tally);
        compare_neighbours(representation, tally);
    }
}

/// (I - E)/(mean H - E), where scikit-learn sums E from logarithms of factorials, so that its rounding is some 1e-13 of
/// E (an adjusted value of 0 comes out as 5e-13): equal if the numerators are, to the tolerance relative to E.
fn adjusted(table: &ContingencyTable, recorded: Option<f64>) -> f64 {
    let found = table.adjusted(Normalisation::Arithmetic);
    let ((a, b), expected) = (table.entropies(), table.expected_mutual_information());
    let numerators = |recorded: f64| (found - recorded).abs() * (f64::midpoint(a, b) - expected).abs();
    recorded.filter(|recorded| numerators(*recorded) <= TOLERANCE * expected).unwrap_or(found)
}

fn compare_discretised(file: &Value, tally: &mut Tally) {
    let (group, y) = (labels(&file["group"]), numbers(&file["Y"]));
    for (n_bins, discretised) in file["discretised"].as_object().unwrap() {
        let n: usize = n_bins.parse().unwrap();
        let as_recorded = |key: &str| {
            let labels = discretised[key].as_array().unwrap();
            labels.iter().map(|label| u32::try_from(label.as_u64().unwrap()).unwrap()).collect::<Vec<u32>>()
        };
        let (quantile, width) = (equal_frequency_bins(&y, n).unwrap(), equal_width_bins(&y, n).unwrap());
        for (key, found) in [("y_quantile_labels", &quantile), ("y_equal_width_labels", &width)] {
            let wrong = found.iter().zip(as_recorded(key)).filter(|(found, expected)| *found != expected).count();
            tally.at(&format!("{key} for {n} bins: labels that differ"), wrong as f64, 0.0, TOLERANCE);
        }
        // The clusters of scikit-learn come from its own random numbers: taken as they are.
        let clusters = as_recorded("kmeans_labels");
        let nmi = |a: &[u32], b: &[u32]| ContingencyTable::new(a, b).map(|t| t.normalised(Normalisation::Arithmetic));
        compare_outputs(&format!("{n} bins"), &discretised["outputs"], tally, |key| match key {
            "nmi_group_yq" => Some(nmi(&group, &quantile)),
            "nmi_group_yew" => Some(nmi(&group, &width)),
            "nmi_group_kmeansZ" => Some(nmi(&group, &clusters)),
            "nmi_yq_kmeansZ" => Some(nmi(&quantile, &clusters)),
            _ => None,
        });
    }
}

fn compare_neighbours(file: &Value, tally: &mut Tally) {
    let (z, y, group) = (matrix(&file["Z"]), numbers(&file["Y"]), labels(&file["group"]));
    for (key, expected) in file["outputs"].as_object().unwrap() {
        let found = match key.as_str() {
            "mutual_info_regression_Z_Y" => ksg_per_dimension(&z, &y, NEIGHBOURS).unwrap().values,
            "mutual_info_classif_Z_group" => ksg_per_dimension_discrete(&z, &group, NEIGHBOURS).unwrap().values,
            "mutual_info_classif_Y_group" => vec![ksg_mutual_information_discrete(&y, &group, NEIGHBOURS).unwrap()],
            "note" => continue,
            _ => {
                tally.mismatch(&format!("{key} is not known"));
                continue;
            }
        };
        tally.all_close(key, &found, &numbers(expected), KSG_TOLERANCE);
    }
}

/// The censoring rates and the times; the other values of this file belong to another family. The distances recorded
/// there are between all observed times, those of the bias source between event times: so the function is compared,
/// not the source.
fn compare_gaps(file: &Value, tally: &mut Tally) {
    for case in entries(file, "cases") {
        let (time, group, outputs) = (numbers(&case["time"]), labels(&case["group"]), &case["outputs"]);
        let n = time.len();
        let mut by_group: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (time, group) in time.iter().zip(&group) {
            by_group.entry(*group).or_default().push(*time);
        }
        for (pair, expected) in outputs["wasserstein1_time_pairs"].as_object().into_iter().flatten() {
            let times = |group: &str| Distribution::new(&by_group[&group.parse().unwrap()]).unwrap();
            let (a, b) = pair.split_once('-').unwrap();
            let found = wasserstein_1(&times(a), &times(b)).unwrap();
            tally.at(&format!("{} W1 {pair}", case["name"]), found, expected.as_f64().unwrap(), TOLERANCE);
        }
        let Some(expected) = outputs["censoring_rate_gap"].as_f64() else { continue };
        let levels = by_group.keys().map(u32::to_string).collect();
        let membership = group.iter().map(|group| Some(GroupId(*group))).collect();
        let groups = Groups::new("group", levels, membership).unwrap();
        let subjects: Vec<SubjectId> = (0..n).map(|row| SubjectId::new(row.to_string())).collect();
        let outcomes = Outcomes::new(time, flags(&case["event"])).unwrap();
        let settings =
            BiasSettings { n_permutations: 1, n_replicates: 0, min_group_size: 1, ..BiasSettings::default() };
        let sources = bias_sources(&subjects, &Array2::zeros((n, 1)), &outcomes, &groups, &settings).unwrap();
        let source = sources.source(BiasSource::CensoringRate);
        tally.at("censoring rate gap", source.estimate.as_ref().unwrap().value, expected, TOLERANCE);
        assert!(source.groups.iter().all(|group| matches!(group.summary, Ok(GroupSummary::CensoringRate(_)))));
    }
}
