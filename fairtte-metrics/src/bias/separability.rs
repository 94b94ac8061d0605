//! How well a linear model tells the groups apart from the representation: what a fair representation should prevent.
//!
//! For every level: the AUC of a logistic regression (ridge penalty 1, `ridge_logistic.rs`) of that level against all
//! others, in 5-fold cross-validation. Whole subjects are in one fold, and the folds have about the same share of every
//! level. The AUC is computed within every fold and averaged, because predictors of different fits have different
//! intercepts. 0.5 = no better than chance, 1 = perfectly separated; values below 0.5 are chance.
//! The text relates this to the term D of its bound (`FairTTE`, Theorem 1). The interval is a percentile interval over
//! subjects whose fitted models stay as they are: it describes the evaluated subjects, not the variation of the fits.
//! AUC: Hanley & `McNeil` (1982), <https://doi.org/10.1148/radiology.143.1.7063747>; ties count one half. Golden values:
//! scikit-learn, version and call in the tests.

use ndarray::{Array1, ArrayRef2, Axis};
use serde::Serialize;

use super::quantise::check_matrix;
use super::ridge_logistic::RidgeLogistic;
use super::sources::BiasSettings;
use crate::folds::folds_by_subject;
use crate::resampling::{Bootstrap, percentile_interval};
use crate::value_or_reason::value_or_reason;
use crate::{GroupId, Groups, MetricError, SubjectId, parallel};

/// Folds of the cross-validation.
const N_FOLDS: usize = 5;
/// Ridge penalty of components whose variance is about 1.
const PENALTY: f64 = 1.0;

/// How well the levels of an attribute can be told apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Separability {
    /// Name of the attribute.
    pub attribute: String,
    /// One entry per level, each against all others. With two levels both have the same value, up to rounding.
    pub levels: Vec<LevelSeparability>,
}

/// How well one level can be told apart from all others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LevelSeparability {
    /// Name of the level.
    pub level: String,
    /// Samples of the level.
    pub n: usize,
    /// Mean AUC of the held-out folds, in [0, 1], or why there is none.
    #[serde(serialize_with = "value_or_reason")]
    pub auc: Result<f64, MetricError>,
    /// Lower and upper end of its interval; `None` without replicates.
    pub interval: Option<(f64, f64)>,
}

impl Separability {
    /// The level that can be told apart best.
    pub fn largest(&self) -> Option<&LevelSeparability> {
        let value = |level: &LevelSeparability| level.auc.as_ref().copied().unwrap_or(f64::NEG_INFINITY);
        let defined = self.levels.iter().filter(|level| level.auc.is_ok());
        defined.reduce(|best, other| if value(other) > value(best) { other } else { best })
    }
}

/// Cross-validated AUC of every level of `groups`; row `i` of every argument is the same sample, `representation` is
/// `[n, d]`. Of `settings` it uses `min_group_size`, `n_replicates`, `resample`, `level` and `seed`.
///
/// Samples without a level and levels smaller than `min_group_size` take no part.
///
/// Cost: O(k n d^2) per step of Newton's method for k levels, and O(k B n) for B replicates.
///
/// # Errors
/// As [`bias_sources`](super::bias_sources).
pub fn separability(
    subjects: &[SubjectId],
    representation: &ArrayRef2<f64>,
    groups: &Groups,
    settings: &BiasSettings,
) -> Result<Separability, MetricError> {
    settings.validate()?;
    let expected = subjects.len();
    let lengths = [("rows of the representation", representation.nrows()), ("group memberships", groups.n())];
    if let Some((what, found)) = lengths.into_iter().find(|(_, found)| *found != expected) {
        return Err(MetricError::LengthMismatch { what, found, expected });
    }
    check_matrix(representation)?;
    let sizes = groups.sizes();
    let is_large = |group: &GroupId| sizes[group.index()] >= settings.min_group_size;
    let membership: Vec<Option<GroupId>> = groups.membership().iter().map(|group| group.filter(is_large)).collect();
    let folds = folds_by_subject(subjects, &membership, N_FOLDS, (settings.seed, "separability-folds"));
    let bootstrap = Bootstrap::new(subjects, settings.resample, settings.n_replicates, settings.seed);
    let of_level = |group: GroupId| {
        settings.stop.check()?;
        let (level, n) = (groups.levels()[group.index()].clone(), sizes[group.index()]);
        let found = if is_large(&group) {
            HeldOut::new(representation, &membership, &folds, group, &level)
        } else {
            Err(MetricError::GroupTooSmall { level: level.clone(), n, expected: settings.min_group_size })
        };
        let interval = found.as_ref().ok().map(|held_out| held_out.interval(&bootstrap, settings)).transpose()?;
        let auc = found.and_then(|held_out| held_out.auc(|_| 1).ok_or(MetricError::NoSamples));
        Ok(LevelSeparability { level, n, auc, interval: interval.flatten() })
    };
    let levels = groups.ids().map(of_level).collect::<Result<_, MetricError>>()?;
    Ok(Separability { attribute: groups.attribute().to_owned(), levels })
}

/// The held-out rows of every fold in ascending order of their predictor: row, predictor, whether it is in the group.
struct HeldOut {
    folds: Vec<Vec<(usize, f64, bool)>>,
}

impl HeldOut {
    fn new(
        representation: &ArrayRef2<f64>,
        membership: &[Option<GroupId>],
        folds: &[usize],
        group: GroupId,
        level: &str,
    ) -> Result<Self, MetricError> {
        let members: Vec<usize> = (0..membership.len()).filter(|&row| membership[row].is_some()).collect();
        let is_in = |row: usize| membership[row] == Some(group);
        let fold = |fold: usize| {
            let (held_out, fitted): (Vec<usize>, Vec<usize>) = members.iter().partition(|row| folds[**row] == fold);
            let labels: Vec<bool> = fitted.iter().map(|&row| is_in(row)).collect();
            for rows in [&held_out, &fitted] {
                let n_in = rows.iter().filter(|row| is_in(**row)).count();
                if n_in == 0 || n_in == rows.len() {
                    return Err(MetricError::FoldOfOneGroup { level: level.to_owned() });
                }
            }
            let model = RidgeLogistic::fit(&representation.select(Axis(0), &fitted), &labels, PENALTY)?;
            let predicted = |row: &usize| (*row, model.predictor(&representation.row(*row)), is_in(*row));
            let mut sorted: Vec<(usize, f64, bool)> = held_out.iter().map(predicted).collect();
            sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
            Ok(sorted)
        };
        Ok(Self { folds: parallel::try_map(0..N_FOLDS, fold)? })
    }

    /// Mean AUC of the folds, every row counted `weight(row)` times; `None` if a fold has one class only.
    fn auc(&self, weight: impl Fn(usize) -> u32) -> Option<f64> {
        let aucs: Option<Vec<f64>> = self.folds.iter().map(|sorted| weighted_auc(sorted, &weight)).collect();
        aucs.map(|aucs| Array1::from_vec(aucs).sum() / N_FOLDS as f64)
    }

    fn interval(&self, bootstrap: &Bootstrap, settings: &BiasSettings) -> Result<Option<(f64, f64)>, MetricError> {
        let of_replicate = |replicate: usize| {
            settings.stop.check()?;
            let weights = bootstrap.weights(replicate);
            Ok(self.auc(|row| weights[row]))
        };
        let replicates: Vec<Option<f64>> = parallel::try_map(0..bootstrap.n_replicates(), of_replicate)?;
        percentile_interval(&replicates.into_iter().flatten().collect::<Vec<_>>(), settings.level)
    }
}

/// Share of the pairs of one row in the group and one outside in which the one inside has the larger predictor; ties
/// count one half. Rows are in ascending order of their predictor.
fn weighted_auc(sorted: &[(usize, f64, bool)], weight: impl Fn(usize) -> u32) -> Option<f64> {
    let (mut inside, mut outside, mut won) = (0.0, 0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.1 >= b.1) {
        let mass = |wanted: bool| -> f64 {
            tied.iter().filter(|row| row.2 == wanted).map(|row| f64::from(weight(row.0))).sum()
        };
        let (here_in, here_out) = (mass(true), mass(false));
        won += here_in * (outside + here_out / 2.0);
        inside += here_in;
        outside += here_out;
    }
    (inside > 0.0 && outside > 0.0).then(|| won / (inside * outside))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use approx::assert_abs_diff_eq;
    use ndarray::Array2;

    use super::super::ridge_logistic::tests::{IN_GROUP, representation};
    use super::*;
    use crate::seeds;

    fn people(n: usize) -> Vec<SubjectId> {
        (0..n).map(|k| SubjectId::new(format!("s{k:03}"))).collect()
    }

    fn groups_of(codes: impl Iterator<Item = u32>, n_levels: usize) -> Groups {
        let levels = (0..n_levels).map(|k| format!("g{k}")).collect();
        Groups::new("g", levels, codes.map(|code| Some(GroupId(code))).collect()).unwrap()
    }

    #[test]
    fn held_out_folds_have_the_auc_of_scikit_learn() {
        // scikit-learn 1.9.1: LogisticRegression(C=1, solver="newton-cholesky", tol=1e-14) on the rows i % 5 != fold,
        // roc_auc_score of decision_function on the others, mean of the folds.
        let membership: Vec<_> = IN_GROUP.iter().map(|is_in| Some(GroupId(u32::from(*is_in)))).collect();
        let folds: Vec<usize> = (0..40).map(|row| row % N_FOLDS).collect();
        let held_out = HeldOut::new(&representation(40, 3), &membership, &folds, GroupId(1), "g").unwrap();
        assert_abs_diff_eq!(held_out.auc(|_| 1).unwrap(), 0.944_761_904_761_904_7, epsilon = 1e-12);
        let other = HeldOut::new(&representation(40, 3), &membership, &folds, GroupId(0), "g").unwrap();
        assert_abs_diff_eq!(other.auc(|_| 1).unwrap(), 0.944_761_904_761_904_7, epsilon = 1e-12);
    }

    #[test]
    fn the_auc_counts_pairs_with_ties_as_halves_and_weights_as_copies() {
        let sorted = [(0, 1.0, false), (1, 2.0, true), (2, 2.0, false), (3, 3.0, true)];
        assert_eq!(weighted_auc(&sorted, |_| 1), Some(3.5 / 4.0));
        assert_eq!(weighted_auc(&sorted, |row| [1, 2, 1, 0][row]), Some(3.0 / 4.0));
        assert_eq!(weighted_auc(&sorted, |row| u32::from(row == 1)), None);
    }

    #[test]
    fn a_shifted_level_is_told_apart_and_equal_levels_are_not() {
        let n = 300;
        let noise = |row: usize, column: usize| {
            use rand::RngExt as _;
            seeds::stream(3, "noise", &[row as u64, column as u64]).random::<f64>()
        };
        let settings = BiasSettings { n_replicates: 200, ..BiasSettings::default() };
        let shifted = Array2::from_shape_fn((n, 4), |(row, column)| {
            noise(row, column) + if row % 3 == 2 && column == 1 { 0.8 } else { 0.0 }
        });
        let groups = groups_of((0..n).map(|row| u32::try_from(row % 3).unwrap()), 3);
        let found = separability(&people(n), &shifted, &groups, &settings).unwrap();
        let largest = found.largest().unwrap();
        assert_eq!((largest.level.as_str(), largest.n), ("g2", 100));
        assert!(*largest.auc.as_ref().unwrap() > 0.95, "{largest:?}");
        let equal = Array2::from_shape_fn((n, 4), |(row, column)| noise(row, column));
        let found = separability(&people(n), &equal, &groups, &settings).unwrap();
        for level in &found.levels {
            let (low, high) = level.interval.unwrap();
            assert!(low < 0.5 && 0.5 < high, "{level:?}");
        }
    }

    #[test]
    fn a_level_of_fewer_subjects_than_folds_is_named() {
        let subjects: Vec<SubjectId> =
            (0..40).map(|k| SubjectId::new(format!("s{}", if k < 12 { k % 3 } else { k }))).collect();
        let groups = groups_of((0..40).map(|row| u32::from(row >= 12)), 2);
        let found = separability(&subjects, &representation(40, 3), &groups, &BiasSettings::default()).unwrap();
        let few = MetricError::FoldOfOneGroup { level: "g0".to_owned() };
        assert_eq!((found.levels[0].auc.clone(), found.largest()), (Err(few), None));
    }

    #[test]
    fn subjects_stay_in_one_fold_and_small_levels_take_no_part() {
        let subjects: Vec<SubjectId> = (0..60).map(|k| SubjectId::new(format!("s{}", k / 2))).collect();
        let membership: Vec<_> = (0..60).map(|k| Some(GroupId(u32::from(k / 2 % 2 == 0)))).collect();
        let folds = folds_by_subject(&subjects, &membership, N_FOLDS, (4, "separability-folds"));
        assert!(folds.chunks(2).all(|pair| pair[0] == pair[1]));
        let per_fold = |fold: usize| folds.iter().filter(|found| **found == fold).count();
        assert_eq!([0, 1, 2, 3, 4].map(per_fold), [12; 5]);
        let groups = groups_of((0..40).map(|row| if row < 3 { 2 } else { row % 2 }), 3);
        let found = separability(&people(40), &representation(40, 3), &groups, &BiasSettings::default()).unwrap();
        let too_small = MetricError::GroupTooSmall { level: "g2".to_owned(), n: 3, expected: 10 };
        assert_eq!((found.levels[2].auc.clone(), found.levels[2].interval), (Err(too_small), None));
        assert!(found.levels[0].auc.is_ok() && found.levels[0].interval.is_some());
    }
}
