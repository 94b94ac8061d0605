//! How the five sources of bias are measured: what enters, permutations, replicates. Definitions: `sources.rs`.

use std::collections::HashSet;

use ndarray::{Array2, ArrayRef2, Axis};

use super::disparity::{Arrangement, Disparity, LANES, Pair, Rate, Transport};
use super::information::Information;
use super::permutation::{LabelPermutations, PermutationTest};
use super::quantise::{KMeansSettings, check_matrix, equal_frequency_bins, k_means_until};
use super::sources::{
    BiasSettings, BiasSource, BiasSources, DisparityEstimate, GroupSummary, PairDisparity, Quantisation,
    SourceDisparity, SourceGroup,
};
use super::wasserstein::{representable, seeded_projections};
use crate::resampling::{Bootstrap, percentile_interval};
use crate::{GroupId, Groups, MetricError, Outcomes, SubjectId, parallel};

/// Starts of k-means: enough to avoid a poor local optimum, few enough to be cheap.
const K_MEANS_STARTS: usize = 4;
const K_MEANS_ITERATIONS: usize = 100;

/// [`bias_sources`](super::bias_sources) with checked settings.
pub(super) fn measure(
    subjects: &[SubjectId],
    representation: &ArrayRef2<f64>,
    outcomes: &Outcomes,
    groups: &Groups,
    settings: &BiasSettings,
) -> Result<BiasSources, MetricError> {
    let expected = outcomes.n();
    let lengths = [
        ("subjects", subjects.len()),
        ("rows of the representation", representation.nrows()),
        ("group memberships", groups.n()),
    ];
    if let Some((what, found)) = lengths.into_iter().find(|(_, found)| *found != expected) {
        return Err(MetricError::LengthMismatch { what, found, expected });
    }
    check_matrix(representation)?;
    let input = Input { subjects, outcomes, groups, settings };
    let members = input.members();
    if members.is_empty() {
        return Err(MetricError::NoSamples);
    }
    let labellings = input.labellings(representation, &members)?;
    let prepared = [
        input.image_features(representation, &members)?,
        input.information(BiasSource::MiTime, members.clone(), &labellings)?,
        input.information(BiasSource::MiCensoring, members.clone(), &labellings)?,
        input.time_distribution(&members),
        input.censoring_rate(&members),
    ];
    let replicates = input.replicates(&prepared)?;
    let relative_event_rate_gap =
        input.relative_event_rate_gap(&members, &prepared[BiasSource::CensoringRate as usize]);
    let by_source = |(source, replicates): (Prepared, &Vec<_>)| input.finish(source, replicates);
    let sources = prepared.into_iter().zip(&replicates).map(by_source).collect();
    let all = LabelPermutations::new(subjects, groups.membership(), None, settings.n_permutations, settings.seed)?;
    Ok(BiasSources {
        attribute: groups.attribute().to_owned(),
        n: members.len(),
        n_missing: expected - members.len(),
        n_split_subjects: all.n_split_subjects(),
        sources,
        relative_event_rate_gap,
    })
}

/// The arguments, checked.
struct Input<'a> {
    subjects: &'a [SubjectId],
    outcomes: &'a Outcomes,
    groups: &'a Groups,
    settings: &'a BiasSettings,
}

/// A source before permutations and replicates.
struct Prepared {
    source: BiasSource,
    n: usize,
    groups: Vec<SourceGroup>,
    /// Labels of the rows that enter and belong to a compared group; `None` for all others.
    membership: Vec<Option<GroupId>>,
    strata: Option<Vec<u32>>,
    /// Pairs that are compared.
    pairs: Vec<Pair>,
    disparity: Box<dyn Disparity>,
}

impl Input<'_> {
    /// Rows with a known level, ascending.
    fn members(&self) -> Vec<usize> {
        let membership = self.groups.membership();
        (0..membership.len()).filter(|&row| membership[row].is_some()).collect()
    }

    fn observed(&self) -> Arrangement {
        Arrangement { group: self.groups.membership().to_vec(), weight: vec![1; self.groups.n()] }
    }

    /// Labels of every row from the representation: one labelling, or one per dimension.
    fn labellings(&self, representation: &ArrayRef2<f64>, members: &[usize]) -> Result<Vec<Vec<u32>>, MetricError> {
        match self.settings.quantisation {
            Quantisation::KMeans => Ok(vec![self.clusters(representation, members)?]),
            Quantisation::EqualFrequency => {
                let columns: Vec<Vec<f64>> =
                    representation.columns().into_iter().map(|column| column.to_vec()).collect();
                let bins = |column: &Vec<f64>| self.bins_of_groups(column, members, self.settings.n_clusters);
                parallel::try_map(&columns, bins)
            }
        }
    }

    /// Cluster of every row; 0 for rows without a level, which is never read.
    fn clusters(&self, representation: &ArrayRef2<f64>, members: &[usize]) -> Result<Vec<u32>, MetricError> {
        let mut standardised: Array2<f64> = representation.to_owned();
        for group in self.groups.ids() {
            let rows = self.groups.rows(group);
            let group_rows = representation.select(Axis(0), &rows);
            let Some(mean) = group_rows.mean_axis(Axis(0)) else { continue };
            let centred = group_rows - &mean;
            let variance = centred.iter().map(|value| value * value).sum::<f64>() / rows.len() as f64;
            let spread = representable("spread of the representation", variance.sqrt())?;
            let divisor = if spread > 0.0 { spread } else { 1.0 };
            for (&row, values) in rows.iter().zip(centred.rows()) {
                standardised.row_mut(row).assign(&(&values / divisor));
            }
        }
        let k_means_settings = KMeansSettings {
            n_clusters: self.settings.n_clusters,
            n_starts: K_MEANS_STARTS,
            max_iterations: K_MEANS_ITERATIONS,
            seed: self.settings.seed,
        };
        let taken = standardised.select(Axis(0), members);
        let labels = k_means_until(&taken, &k_means_settings, &self.settings.stop)?.labels;
        let mut clusters = vec![0; representation.nrows()];
        members.iter().zip(labels).for_each(|(&row, label)| clusters[row] = label);
        Ok(clusters)
    }

    fn events_among(&self, members: &[usize]) -> Vec<usize> {
        members.iter().copied().filter(|&row| self.outcomes.event()[row]).collect()
    }

    fn image_features(&self, representation: &ArrayRef2<f64>, rows: &[usize]) -> Result<Prepared, MetricError> {
        let settings = self.settings;
        let projections = seeded_projections(representation.ncols(), settings.n_projections, settings.seed)?;
        let taken = representation.select(Axis(0), rows);
        let transport = Transport::of_projections(rows.to_vec(), &taken, &projections)?;
        let summary = |_| Some(GroupSummary::Distribution);
        Ok(self.prepare(BiasSource::ImageFeatures, rows, summary, None, Box::new(transport)))
    }

    fn time_distribution(&self, members: &[usize]) -> Prepared {
        let time = self.outcomes.time();
        let rows = self.events_among(members);
        let times: Vec<f64> = rows.iter().map(|&row| time[row]).collect();
        let largest = members.iter().map(|&row| time[row]).fold(0.0, f64::max);
        let transport = Transport::of_values(rows.clone(), &times, largest);
        let summary = |_| Some(GroupSummary::Distribution);
        self.prepare(BiasSource::TimeDistribution, &rows, summary, None, Box::new(transport))
    }

    fn censoring_rate(&self, rows: &[usize]) -> Prepared {
        let rate = Rate { marked: rows.iter().map(|&row| !self.outcomes.event()[row]).collect(), rows: rows.to_vec() };
        let by_group = rate.by_group(&self.observed());
        let summary = |group| by_group.get(&group).map(|rate| GroupSummary::CensoringRate(*rate));
        self.prepare(BiasSource::CensoringRate, rows, summary, None, Box::new(rate))
    }

    fn information(
        &self,
        source: BiasSource,
        members: Vec<usize>,
        labellings: &[Vec<u32>],
    ) -> Result<Prepared, MetricError> {
        let events: Vec<u32> = self.outcomes.event().iter().map(|event| u32::from(*event)).collect();
        let (rows, labels, strata) = if source.only_events() {
            let events = self.events_among(&members);
            let bins = self.bins_of_groups(self.outcomes.time(), &events, self.settings.n_bins)?;
            (events, bins, None)
        } else {
            (members, events.clone(), Some(events))
        };
        let pick = |labels: &[u32]| rows.iter().map(|&row| labels[row]).collect::<Vec<u32>>();
        let x = labellings.iter().map(|labels| pick(labels)).collect();
        let information = Information::new(rows.clone(), (x, pick(&labels)), self.subjects, self.settings)?;
        let by_group = information.by_group(&self.observed());
        let summary = |group| by_group.get(&group).map(|information| GroupSummary::Information(*information));
        Ok(self.prepare(source, &rows, summary, strata, Box::new(information)))
    }

    /// Equal-frequency bin of the value of every one of `rows` among those of its group; 0 for other rows, which is
    /// never read.
    fn bins_of_groups(&self, values: &[f64], rows: &[usize], n_bins: usize) -> Result<Vec<u32>, MetricError> {
        let mut bins = vec![0; self.groups.n()];
        for group in self.groups.ids() {
            let rows: Vec<usize> =
                rows.iter().copied().filter(|&row| self.groups.membership()[row] == Some(group)).collect();
            if rows.is_empty() {
                continue;
            }
            let of_group: Vec<f64> = rows.iter().map(|&row| values[row]).collect();
            for (&row, bin) in rows.iter().zip(equal_frequency_bins(&of_group, n_bins)?) {
                bins[row] = bin;
            }
        }
        Ok(bins)
    }

    /// Decides which groups are compared.
    fn prepare(
        &self,
        source: BiasSource,
        rows: &[usize],
        summary: impl Fn(GroupId) -> Option<GroupSummary>,
        strata: Option<Vec<u32>>,
        disparity: Box<dyn Disparity>,
    ) -> Prepared {
        let mut membership = vec![None; self.groups.n()];
        for &row in rows {
            membership[row] = self.groups.membership()[row];
        }
        let describe = |group: GroupId| {
            let rows: Vec<usize> = rows.iter().copied().filter(|&row| membership[row] == Some(group)).collect();
            let (n, expected) = (rows.len(), self.settings.min_group_size);
            let level = self.groups.levels()[group.index()].clone();
            let found = if n < expected { None } else { summary(group) };
            let summary = found.ok_or_else(|| MetricError::GroupTooSmall { level: level.clone(), n, expected });
            let n_subjects = rows.iter().map(|&row| &self.subjects[row]).collect::<HashSet<_>>().len();
            SourceGroup { group, level, n, n_subjects, summary }
        };
        let groups: Vec<SourceGroup> = self.groups.ids().map(describe).collect();
        let compared: Vec<GroupId> = groups.iter().filter(|group| group.summary.is_ok()).map(|g| g.group).collect();
        for label in &mut membership {
            *label = label.filter(|group| compared.contains(group));
        }
        Prepared { source, n: rows.len(), groups, membership, strata, pairs: pairs_of(&compared), disparity }
    }

    /// The largest pair of every source in every replicate: the same replicates for all of them.
    fn replicates(&self, prepared: &[Prepared]) -> Result<Vec<Vec<Option<f64>>>, MetricError> {
        let settings = self.settings;
        let bootstrap = Bootstrap::new(self.subjects, settings.resample, settings.n_replicates, settings.seed);
        let batch = |first: usize| {
            settings.stop.check()?;
            let numbers = first..(first + LANES).min(settings.n_replicates);
            let arrange =
                |number| Arrangement { group: self.groups.membership().to_vec(), weight: bootstrap.weights(number) };
            let arrangements: Vec<Arrangement> = numbers.map(arrange).collect();
            Ok(prepared.iter().map(|source| source.largest(&arrangements)).collect())
        };
        let batches: Vec<Vec<Vec<Option<f64>>>> = parallel::try_map((0..settings.n_replicates).step_by(LANES), batch)?;
        let of_source = |source: usize| batches.iter().flat_map(|batch| batch[source].iter().copied()).collect();
        Ok((0..prepared.len()).map(of_source).collect())
    }

    fn null(&self, prepared: &Prepared) -> Result<Vec<Option<f64>>, MetricError> {
        let (n_permutations, seed) = (self.settings.n_permutations, self.settings.seed);
        let strata = prepared.strata.as_deref();
        let permutations = LabelPermutations::new(self.subjects, &prepared.membership, strata, n_permutations, seed)?;
        let batch = |first: usize| {
            self.settings.stop.check()?;
            let numbers = first..(first + LANES).min(n_permutations);
            let arrange = |k| Arrangement { group: permutations.labels(k), weight: vec![1; self.subjects.len()] };
            Ok(prepared.largest(&numbers.map(arrange).collect::<Vec<_>>()))
        };
        let batches: Vec<Vec<Option<f64>>> = parallel::try_map((0..n_permutations).step_by(LANES), batch)?;
        Ok(batches.concat())
    }

    fn finish(&self, prepared: Prepared, replicates: &[Option<f64>]) -> SourceDisparity {
        let observed = prepared.disparity.of(&[self.observed()], &prepared.pairs);
        let values = observed.into_iter().next().flatten().unwrap_or_default();
        let found = |pair: Pair| prepared.pairs.iter().position(|other| *other == pair).map(|place| values[place]);
        let reason = |(a, b): Pair| {
            let error = |group: GroupId| prepared.groups[group.index()].summary.as_ref().err().cloned();
            error(a).or_else(|| error(b)).unwrap_or(MetricError::NoSamples)
        };
        let describe = |pair: Pair| {
            let value = found(pair).ok_or_else(|| reason(pair));
            PairDisparity { a: pair.0, b: pair.1, value }
        };
        let all: Vec<GroupId> = self.groups.ids().collect();
        let pairs = pairs_of(&all).into_iter().map(describe).collect();
        let estimate = match largest_of(&values) {
            Some((place, value)) => self.estimate(&prepared, place, value, replicates),
            None => Err(MetricError::TooFewGroups {
                attribute: self.groups.attribute().to_owned(),
                n_defined: prepared.groups.iter().filter(|group| group.summary.is_ok()).count(),
                n_levels: prepared.groups.len(),
            }),
        };
        SourceDisparity { source: prepared.source, n: prepared.n, groups: prepared.groups, pairs, estimate }
    }

    fn estimate(
        &self,
        prepared: &Prepared,
        place: usize,
        value: f64,
        replicates: &[Option<f64>],
    ) -> Result<DisparityEstimate, MetricError> {
        let permutation = PermutationTest::new(value, &self.null(prepared)?)?;
        let n_replicates = replicates.len();
        let defined: Vec<f64> = replicates.iter().copied().flatten().collect();
        let reflect =
            |(low, high): (f64, f64)| ((2.0 * value - high).clamp(0.0, 1.0), (2.0 * value - low).clamp(0.0, 1.0));
        Ok(DisparityEstimate {
            value,
            pair: prepared.pairs[place],
            uncorrected: prepared.uncorrected(),
            permutation,
            null_corrected: (value - permutation.null_mean).max(0.0),
            interval: percentile_interval(&defined, self.settings.level)?.map(reflect),
            n_undefined_replicates: n_replicates - defined.len(),
        })
    }

    fn relative_event_rate_gap(&self, members: &[usize], rates: &Prepared) -> Result<f64, MetricError> {
        let rate = |group: GroupId| match rates.groups[group.index()].summary {
            Ok(GroupSummary::CensoringRate(rate)) => rate,
            _ => 0.0, // only compared groups, which have a rate, are in a pair
        };
        let (n, n_events) = (members.len(), self.events_among(members).len());
        let gaps: Vec<f64> = rates.pairs.iter().map(|(a, b)| (rate(*a) - rate(*b)).abs()).collect();
        let (attribute, n_levels) = (self.groups.attribute().to_owned(), rates.groups.len());
        let n_defined = rates.groups.iter().filter(|group| group.summary.is_ok()).count();
        let too_few = MetricError::TooFewGroups { attribute, n_defined, n_levels };
        let (_, gap) = largest_of(&gaps).ok_or(too_few)?;
        if n_events == 0 { Err(MetricError::NoEvents { n }) } else { Ok(gap / (n_events as f64 / n as f64)) }
    }
}

impl Prepared {
    /// The largest pair in every arrangement.
    fn largest(&self, arrangements: &[Arrangement]) -> Vec<Option<f64>> {
        let largest = |values: Option<Vec<f64>>| largest_of(&values?).map(|(_, value)| value);
        self.disparity.of(arrangements, &self.pairs).into_iter().map(largest).collect()
    }

    fn uncorrected(&self) -> Option<f64> {
        let raw = |group: GroupId| match self.groups[group.index()].summary {
            Ok(GroupSummary::Information(information)) => Some(information.raw),
            _ => None,
        };
        let gaps: Option<Vec<f64>> = self.pairs.iter().map(|(a, b)| Some((raw(*a)? - raw(*b)?).abs())).collect();
        largest_of(&gaps?).map(|(_, gap)| gap)
    }
}

/// Every pair of different groups, in level order.
fn pairs_of(groups: &[GroupId]) -> Vec<Pair> {
    let after = |(place, a): (usize, &GroupId)| groups[place + 1..].iter().map(|b| (*a, *b)).collect::<Vec<_>>();
    groups.iter().enumerate().flat_map(after).collect()
}

/// Place and value of the first largest.
fn largest_of(values: &[f64]) -> Option<(usize, f64)> {
    let larger = |best: Option<(usize, f64)>, (place, value): (usize, f64)| match best {
        Some((_, most)) if most >= value => best,
        _ => Some((place, value)),
    };
    values.iter().copied().enumerate().fold(None, larger)
}
