//! Counts, for every event, the samples it is comparable with, by how their predictions compare with its own.
//!
//! An event i is compared with every sample that is known to have outlived it: `T_j > T_i`, or `T_j = T_i` and j
//! censored. Pairs of events at the same time are counted separately. A pair is tied if its predictions differ by at
//! most the tolerance, as a difference of floating-point numbers, which is no equivalence: a may be tied with b and b
//! with c but not a with c. So every event has its own interval of tied predictions, and no classes of tied samples
//! exist.
//!
//! Algorithm: samples are added from the latest time to the earliest. All events whose predictions are read at the same
//! position of the curves form one bin. The ends of their intervals divide the real line into buckets; every sample at
//! risk is put into one of them, and the counts of an event are sums over a range of buckets. With L positions and k
//! events per position this takes O(n log n + n L log k) time and O(n) memory; a scalar score has one position.

use crate::Outcomes;
use crate::rank::concordance_bins::latest_first;
use crate::rank::fenwick::Fenwick;

/// Where predictions come from; a lower prediction means that the event is expected earlier.
pub(crate) trait Predictions {
    /// The position at which the predictions of a time are read; equal positions have equal predictions.
    type Place: Copy + PartialEq;
    fn place(&self, time: f64) -> Self::Place;
    fn at(&self, row: usize, place: Self::Place) -> f64;
}

/// How the samples of some set compare with one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Partners {
    pub(crate) n: u64,
    /// Predictions above that of the event.
    pub(crate) concordant: u64,
    pub(crate) tied: u64,
}

impl Partners {
    pub(crate) fn discordant(self) -> u64 {
        self.n - self.concordant - self.tied
    }

    fn minus(self, other: Self) -> Self {
        Self { n: self.n - other.n, concordant: self.concordant - other.concordant, tied: self.tied - other.tied }
    }
}

/// One event with all samples it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) row: usize,
    /// All comparable samples.
    pub(crate) all: Partners,
    /// Those of them that were censored at the time of the event.
    pub(crate) same_time: Partners,
    /// Other events at the same time, and how many of them have a tied prediction.
    pub(crate) tied_events: u64,
    pub(crate) tied_events_and_predictions: u64,
}

/// Rows from the latest time to the earliest, at equal times the censored first, and the times that hold events.
pub(crate) struct LatestFirst {
    pub(crate) order: Vec<usize>,
    pub(crate) blocks: Vec<Block>,
}

/// A time that holds an event: its censored are `order[start..events]`, its events `order[events..end]`.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) start: usize,
    pub(crate) events: usize,
    pub(crate) end: usize,
}

impl LatestFirst {
    pub(crate) fn new(outcomes: &Outcomes) -> Self {
        let (time, event) = (outcomes.time(), outcomes.event());
        let order: Vec<usize> = latest_first(outcomes).into_iter().map(|row| row as usize).collect();
        let (mut blocks, mut start) = (Vec::new(), 0);
        for tied in order.chunk_by(|&a, &b| time[a].total_cmp(&time[b]).is_eq()) {
            let n_censored = tied.partition_point(|&row| !event[row]);
            if n_censored < tied.len() {
                blocks.push(Block { start, events: start + n_censored, end: start + tied.len() });
            }
            start += tied.len();
        }
        Self { order, blocks }
    }
}

/// Calls `visit` for every event, from the latest to the earliest.
pub(crate) fn for_each_event<P: Predictions>(
    outcomes: &Outcomes,
    predictions: &P,
    tolerance: f64,
    mut visit: impl FnMut(&Anchor),
) {
    let LatestFirst { order, blocks } = LatestFirst::new(outcomes);
    let place = |block: &Block| predictions.place(outcomes.time()[order[block.events]]);
    let mut counter = Counter::default();
    for bin in blocks.chunk_by(|a, b| place(a) == place(b)) {
        let place = place(&bin[0]);
        let prediction = |row: usize| predictions.at(row, place);
        let events = bin.iter().flat_map(|block| &order[block.events..block.end]);
        counter.open(events.map(|&row| prediction(row)), tolerance);
        let mut n_joined = 0;
        for block in bin {
            let events = &order[block.events..block.end];
            let join = |counter: &mut Counter, n_joined: &mut usize, end: usize| {
                order[*n_joined..end].iter().for_each(|&row| counter.join(prediction(row)));
                *n_joined = end;
            };
            if n_joined == 0 {
                counter.join_all(order[..block.start].iter().map(|&row| prediction(row)));
                n_joined = block.start;
            }
            join(&mut counter, &mut n_joined, block.start);
            let later: Vec<Partners> = events.iter().map(|&row| counter.partners(prediction(row))).collect();
            join(&mut counter, &mut n_joined, block.events);
            let all: Vec<Partners> = events.iter().map(|&row| counter.partners(prediction(row))).collect();
            join(&mut counter, &mut n_joined, block.end);
            for ((&row, later), all) in events.iter().zip(later).zip(all) {
                let with_events = counter.partners(prediction(row)).minus(all);
                visit(&Anchor {
                    row,
                    all,
                    same_time: all.minus(later),
                    // The event itself is among them, and tied with itself.
                    tied_events: with_events.n - 1,
                    tied_events_and_predictions: with_events.tied - 1,
                });
            }
        }
    }
}

/// The buckets of one bin and the samples in them.
#[derive(Default)]
struct Counter {
    cuts: Cuts,
    /// `above[k]`: samples of the initial set in bucket k or a higher one.
    above: Vec<u64>,
    /// Samples that were added one by one afterwards.
    joined: Fenwick,
}

impl Counter {
    fn open(&mut self, levels: impl Iterator<Item = f64>, tolerance: f64) {
        self.cuts.set(levels, tolerance);
        self.above.clear();
        self.above.resize(self.cuts.n_buckets() + 1, 0);
        self.joined.reset(self.cuts.n_buckets());
    }

    fn join_all(&mut self, predictions: impl Iterator<Item = f64>) {
        predictions.for_each(|prediction| self.above[self.cuts.bucket(prediction)] += 1);
        for bucket in (1..self.above.len()).rev() {
            self.above[bucket - 1] += self.above[bucket];
        }
    }

    fn join(&mut self, prediction: f64) {
        self.joined.add(self.cuts.bucket(prediction), 1);
    }

    /// `level` is one of those that the bin was opened with.
    fn partners(&self, level: f64) -> Partners {
        let tied = self.cuts.tied_buckets(level);
        let above = |bucket: usize| self.above[bucket] + self.joined.total() - self.joined.sum_to(bucket);
        let concordant = above(tied.end);
        Partners { n: above(0), concordant, tied: above(tied.start) - concordant }
    }
}

/// The ends of the intervals of tied predictions of some levels, ascending; they divide the real line into buckets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    cuts: Vec<f64>,
    tolerance: f64,
}

impl Cuts {
    pub(crate) fn set(&mut self, levels: impl Iterator<Item = f64>, tolerance: f64) {
        self.tolerance = tolerance;
        self.cuts.clear();
        self.cuts.extend(levels.flat_map(|level| [first_tied(level, tolerance), first_above(level, tolerance)]));
        self.cuts.sort_by(f64::total_cmp);
        self.cuts.dedup();
    }

    pub(crate) fn n_buckets(&self) -> usize {
        self.cuts.len() + 1
    }

    pub(crate) fn bucket(&self, prediction: f64) -> usize {
        self.cuts.partition_point(|cut| *cut <= prediction)
    }

    /// The buckets whose predictions are tied with `level`, one of the levels that were set.
    pub(crate) fn tied_buckets(&self, level: f64) -> std::ops::Range<usize> {
        let bucket = |cut| self.bucket(cut);
        bucket(first_tied(level, self.tolerance))..bucket(first_above(level, self.tolerance))
    }
}

/// The smallest number that is not below `level` by more than `tolerance`.
fn first_tied(level: f64, tolerance: f64) -> f64 {
    let start = (level - 2.0 * tolerance).min(level.next_down());
    first_where(start, level, level - tolerance, |x| x - level >= -tolerance)
}

/// The smallest number that is above `level` by more than `tolerance`.
fn first_above(level: f64, tolerance: f64) -> f64 {
    let end = (level + 2.0 * tolerance).max(level.next_up());
    first_where(level, end, level + tolerance, |x| x - level > tolerance)
}

/// The smallest number for which `holds`, which is false at `low`, true at `high` and changes once between them.
///
/// The difference of two floating-point numbers is rounded, so the change need not be at `guess`, but it almost always is.
fn first_where(mut low: f64, mut high: f64, guess: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for candidate in [guess, guess.next_up()] {
        if holds(candidate) && !holds(candidate.next_down()) {
            return candidate;
        }
    }
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return high;
        }
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_an_interval_are_exact_also_where_differences_are_rounded() {
        for level in [0.5, 0.3, 0.3 + 1e-8, 1e-8, 0.0, -1e-8, 1.0, -7.25, 123_456.7, 1e300, -1e300, f64::MAX, 5e-324] {
            for tolerance in [0.0, 1e-8] {
                let (tied, above) = (first_tied(level, tolerance), first_above(level, tolerance));
                assert!(tied - level >= -tolerance && tied.next_down() - level < -tolerance, "{level} {tolerance}");
                assert!(above - level > tolerance && above.next_down() - level <= tolerance, "{level} {tolerance}");
            }
        }
    }

    /// Predictions on a table, one column per unit of time.
    struct Columns(Vec<[f64; 4]>);

    impl Predictions for Columns {
        type Place = usize;

        fn place(&self, time: f64) -> usize {
            [1.0, 2.0, 3.0].iter().filter(|start| **start <= time).count()
        }

        fn at(&self, row: usize, place: usize) -> f64 {
            self.0[row][place]
        }
    }

    fn by_double_loop(outcomes: &Outcomes, predictions: &Columns, tolerance: f64) -> Vec<Anchor> {
        let (time, event) = (outcomes.time(), outcomes.event());
        let empty = Anchor {
            row: 0,
            all: Partners::default(),
            same_time: Partners::default(),
            tied_events: 0,
            tied_events_and_predictions: 0,
        };
        let rows = (0..outcomes.n()).filter(|&i| event[i]);
        rows.map(|i| {
            let mut anchor = Anchor { row: i, ..empty };
            let place = predictions.place(time[i]);
            for j in (0..outcomes.n()).filter(|&j| j != i && time[j] >= time[i]) {
                let difference = predictions.at(j, place) - predictions.at(i, place);
                let tied = u64::from(difference.abs() <= tolerance);
                let concordant = u64::from(difference > tolerance);
                let same_time = time[j] <= time[i];
                if same_time && event[j] {
                    anchor.tied_events += 1;
                    anchor.tied_events_and_predictions += tied;
                    continue;
                }
                for (counts, counted) in [(&mut anchor.all, true), (&mut anchor.same_time, same_time)] {
                    if counted {
                        counts.n += 1;
                        counts.tied += tied;
                        counts.concordant += concordant;
                    }
                }
            }
            anchor
        })
        .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn all_counts_equal_a_double_loop(
            rows in prop::collection::vec((1..12_u8, any::<bool>(), [0..9_i8, 0..9_i8, 0..9_i8, 0..9_i8]), 1..60),
            step in prop::sample::select(vec![0.25, 0.4e-8, 1e-8]),
            tolerance in prop::sample::select(vec![0.0, 1e-8]),
        ) {
            let time = rows.iter().map(|row| f64::from(row.0) / 3.0).collect();
            let outcomes = Outcomes::new(time, rows.iter().map(|row| row.1).collect()).unwrap();
            let values = rows.iter().map(|row| row.2.map(|value| 0.3 + f64::from(value) * step));
            let predictions = Columns(values.collect());
            let mut found = Vec::new();
            for_each_event(&outcomes, &predictions, tolerance, |anchor| found.push(*anchor));
            found.sort_by_key(|anchor| anchor.row);
            prop_assert_eq!(found, by_double_loop(&outcomes, &predictions, tolerance));
        }
    }
}
