//! Normalised mutual information within groups, minus the value expected by chance at that group size, for many
//! arrangements of the same samples.
//!
//! raw = mean over labellings of NMI = 2I/(H + H); chance = mean of the expected I of randomly permuted labels, given
//! the margins of the group's table (Vinh et al. 2010, exact), divided by the same entropies. Where subjects have
//! several samples, chance is larger by a factor that is estimated from permutations of whole subjects.

use std::collections::BTreeMap;

use rand::seq::SliceRandom as _;

use super::disparity::{Arrangement, Disparity, Pair, differences};
use super::mutual_information::{ContingencyTable, Normalisation, NullCorrected};
use super::sources::BiasSettings;
use crate::{GroupId, MetricError, SubjectId, parallel, seeds};

/// Normalised mutual information with `y` in every group, minus the value expected by chance at its size, as the mean
/// over one or several labellings.
pub(super) struct Information {
    rows: Vec<usize>,
    labellings: Vec<Labelling>,
    /// Labels of the rows.
    y: Vec<u32>,
    n_y: usize,
}

/// Labels of the rows, from the representation or from one dimension of it.
struct Labelling {
    labels: Vec<u32>,
    n_labels: usize,
    /// The factor by which the chance value grows because samples of one subject are alike; 1 with one sample per
    /// subject.
    inflation: f64,
}

impl Information {
    /// Every labelling of `x`, and `y`, are the labels of `rows`. With several rows per subject, `n_permutations` of `settings`
    /// permutations of whole subjects estimate the value expected by chance.
    ///
    /// # Errors
    /// [`MetricError::Stopped`].
    pub(super) fn new(
        rows: Vec<usize>,
        (x, y): (Vec<Vec<u32>>, Vec<u32>),
        subjects: &[SubjectId],
        settings: &BiasSettings,
    ) -> Result<Self, MetricError> {
        let n_labels = |labels: &[u32]| labels.iter().max().map_or(1, |label| *label as usize + 1);
        let mut information = Self { rows, labellings: vec![], n_y: n_labels(&y), y };
        let finish = |labels: Vec<u32>| {
            let labelling = Labelling { n_labels: n_labels(&labels), labels, inflation: 1.0 };
            Ok(Labelling { inflation: information.inflation_by_repeats(&labelling, subjects, settings)?, ..labelling })
        };
        information.labellings = x.into_iter().map(finish).collect::<Result<_, MetricError>>()?;
        Ok(information)
    }

    /// Mean information when the y of whole subjects are permuted, relative to permuted single samples. The y of the
    /// subjects are concatenated, so that every y is used once even where subjects differ in size.
    fn inflation_by_repeats(
        &self,
        labelling: &Labelling,
        subjects: &[SubjectId],
        settings: &BiasSettings,
    ) -> Result<f64, MetricError> {
        let mut by_subject: BTreeMap<&SubjectId, Vec<usize>> = BTreeMap::new();
        for (place, &row) in self.rows.iter().enumerate() {
            by_subject.entry(&subjects[row]).or_default().push(place);
        }
        if by_subject.len() == self.rows.len() {
            return Ok(1.0);
        }
        let BiasSettings { n_permutations, seed, stop, .. } = settings;
        let units: Vec<Vec<usize>> = by_subject.into_values().collect();
        let information = |permutation: usize| {
            stop.check()?;
            let mut givers: Vec<&Vec<usize>> = units.iter().collect();
            givers.shuffle(&mut seeds::stream(*seed, "bias-repeats", &[permutation as u64]));
            let mut counts = self.empty(labelling);
            for (&place, &giver) in units.iter().flatten().zip(givers.into_iter().flatten()) {
                counts[self.cell(labelling, place, giver)] += 1;
            }
            Ok(ContingencyTable::from_dense(&counts, self.n_y).map_or(0.0, |table| table.mutual_information()))
        };
        let permuted: Vec<f64> = parallel::try_map(0..*n_permutations, information)?;
        let mut counts = self.empty(labelling);
        (0..self.rows.len()).for_each(|place| counts[self.cell(labelling, place, place)] += 1);
        let expected =
            ContingencyTable::from_dense(&counts, self.n_y).map_or(0.0, |table| table.expected_mutual_information());
        let mean = permuted.iter().sum::<f64>() / *n_permutations as f64;
        Ok(if expected > 0.0 { (mean / expected).max(1.0) } else { 1.0 })
    }

    /// The counts of a table, `[n_labels, n_y]`.
    fn empty(&self, labelling: &Labelling) -> Vec<u64> {
        vec![0; labelling.n_labels * self.n_y]
    }

    /// Cell of the label of one place and the y of another.
    fn cell(&self, labelling: &Labelling, x_place: usize, y_place: usize) -> usize {
        labelling.labels[x_place] as usize * self.n_y + self.y[y_place] as usize
    }

    /// The information in every group that has a sample: the observed value and that expected by chance, both averaged
    /// over labellings.
    pub(super) fn by_group(&self, arrangement: &Arrangement) -> BTreeMap<GroupId, NullCorrected> {
        let mut sums: BTreeMap<GroupId, (f64, f64)> = BTreeMap::new();
        for labelling in &self.labellings {
            for (group, information) in self.of_labelling(labelling, arrangement) {
                let (raw, null_mean) = sums.entry(group).or_default();
                *raw += information.raw;
                *null_mean += information.null_mean;
            }
        }
        let n = self.labellings.len() as f64;
        sums.into_iter().map(|(group, (raw, null_mean))| (group, NullCorrected::of(raw / n, null_mean / n))).collect()
    }

    fn of_labelling(&self, labelling: &Labelling, arrangement: &Arrangement) -> BTreeMap<GroupId, NullCorrected> {
        let mut counts: BTreeMap<GroupId, Vec<u64>> = BTreeMap::new();
        for (place, &row) in self.rows.iter().enumerate() {
            let Some(group) = arrangement.group[row] else { continue };
            let table = counts.entry(group).or_insert_with(|| self.empty(labelling));
            table[self.cell(labelling, place, place)] += u64::from(arrangement.weight[row]);
        }
        let tables = counts
            .into_iter()
            .filter_map(|(group, counts)| ContingencyTable::from_dense(&counts, self.n_y).map(|table| (group, table)));
        tables.map(|(group, table)| (group, corrected(&table, labelling.inflation))).collect()
    }
}

/// A constant labelling carries no information: 0, also where both are constant.
fn corrected(table: &ContingencyTable, inflation: f64) -> NullCorrected {
    let (a, b) = table.entropies();
    if a <= 0.0 || b <= 0.0 {
        return NullCorrected::of(0.0, 0.0);
    }
    let chance = inflation * table.expected_mutual_information() / f64::midpoint(a, b);
    NullCorrected::of(table.normalised(Normalisation::Arithmetic), chance.min(1.0))
}

impl Disparity for Information {
    fn of(&self, arrangements: &[Arrangement], pairs: &[Pair]) -> Vec<Option<Vec<f64>>> {
        let values = |arrangement: &Arrangement| {
            let groups = self.by_group(arrangement);
            differences(pairs, |group| groups.get(&group).map(|information| information.corrected))
        };
        arrangements.iter().map(values).collect()
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::RngExt as _;

    use super::*;

    fn permuted(n_permutations: usize) -> BiasSettings {
        BiasSettings { n_permutations, seed: 1, ..BiasSettings::default() }
    }

    #[test]
    fn information_by_group_is_the_mean_over_the_tables_of_the_group() {
        let n_rows = 200;
        let mut rng = seeds::stream(1, "labels", &[]);
        let x: Vec<u32> = (0..n_rows).map(|_| rng.random_range(0..4)).collect();
        let y: Vec<u32> =
            x.iter().map(|x| if rng.random::<f64>() < 0.5 { *x } else { rng.random_range(0..5) }).collect();
        let subjects: Vec<SubjectId> = (0..n_rows).map(|k| SubjectId::new(format!("{k}"))).collect();
        let labels = (vec![x.clone(), y.clone()], y.clone());
        let information = Information::new((0..n_rows).collect(), labels, &subjects, &permuted(10)).unwrap();
        assert!(information.labellings.iter().all(|labelling| labelling.inflation == 1.0));
        let group = (0..n_rows).map(|_| Some(GroupId(rng.random_range(0..3)))).collect();
        let arrangement = Arrangement { group, weight: (0..n_rows).map(|_| rng.random_range(0..3)).collect() };
        let rows = (0..n_rows).filter(|&row| arrangement.group[row] == Some(GroupId(2)));
        let rows: Vec<usize> = rows.flat_map(|row| vec![row; arrangement.weight[row] as usize]).collect();
        let pick = |labels: &[u32]| rows.iter().map(|&row| labels[row]).collect::<Vec<_>>();
        let found = information.by_group(&arrangement)[&GroupId(2)];
        let of_table = |x: &[u32]| {
            let table = ContingencyTable::new(&pick(x), &pick(&y)).unwrap();
            let (h_x, h_y) = table.entropies();
            let chance = table.expected_mutual_information() / f64::midpoint(h_x, h_y);
            (table.normalised(Normalisation::Arithmetic), chance)
        };
        // Two labellings, of which the second is y itself: its information is 1.
        let ((raw, chance), (all, chance_of_all)) = (of_table(&x), of_table(&y));
        assert_relative_eq!(all, 1.0, max_relative = 1e-14);
        assert_relative_eq!(found.raw, f64::midpoint(raw, all), max_relative = 1e-14);
        assert_relative_eq!(found.null_mean, f64::midpoint(chance, chance_of_all), max_relative = 1e-13);
    }

    #[test]
    fn repeated_samples_of_a_subject_raise_what_chance_gives() {
        // 100 subjects with four equal samples each have the chance value of 100 samples, about four times that of 400.
        let mut rng = seeds::stream(1, "repeats", &[]);
        let once: Vec<(u32, u32)> = (0..100).map(|_| (rng.random_range(0..3), rng.random_range(0..3))).collect();
        let repeat = |pick: fn(&(u32, u32)) -> u32| once.iter().flat_map(|pair| [pick(pair); 4]).collect::<Vec<u32>>();
        let subjects: Vec<SubjectId> = (0..400).map(|row| SubjectId::new(format!("{}", row / 4))).collect();
        let labels = (vec![repeat(|pair| pair.0)], repeat(|pair| pair.1));
        let information = Information::new((0..400).collect(), labels, &subjects, &permuted(2_000)).unwrap();
        let inflation = information.labellings[0].inflation;
        assert!((inflation - 4.0).abs() < 0.3, "{inflation}");
    }

    #[test]
    fn a_group_without_weight_has_no_information() {
        let group = vec![Some(GroupId(0)), Some(GroupId(1)), Some(GroupId(1))];
        let arrangement = |weight: Vec<u32>| Arrangement { group: group.clone(), weight };
        let arrangements = [arrangement(vec![1, 1, 1]), arrangement(vec![0, 2, 1])];
        let labellings = vec![Labelling { labels: vec![0; 3], n_labels: 1, inflation: 1.0 }];
        let information = Information { rows: vec![0, 1, 2], labellings, y: vec![0, 1, 0], n_y: 2 };
        assert_eq!(information.of(&arrangements, &[(GroupId(0), GroupId(1))]), [Some(vec![0.0]), None]);
    }
}
