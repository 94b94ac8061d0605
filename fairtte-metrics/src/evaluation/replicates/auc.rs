//! AUC^td for a block of replicates: the time average, per slice and lane.
//!
//! A walk by falling S(t) does not visit the samples in memory order, so the data that it reads are kept small: the
//! weights of units (subjects), not of samples, and a bit each where all are 0 or 1, as those of relabelled groups, or a
//! byte, unless a weight needs more.

use super::unit_weights::{UnitWeights, as_bits, as_bytes};
use super::{Cells, LANES, LaneWeights, add};
use crate::Groups;
use crate::rank::auc_td::PreparedAucTd;
use crate::rank::auc_walk::Walk;
use crate::scores::integrate::time_average;

/// The time average of the AUC of every slice in every lane; `None` where no time has a value.
pub(crate) struct AucLanes {
    averages: Vec<[Option<Average>; LANES]>,
}

/// An average over the times that have an AUC.
#[derive(Clone, Copy)]
pub(crate) struct Average {
    pub(crate) value: f64,
    /// Whether a time at which the sample itself has an AUC is missing.
    pub(crate) is_partial: bool,
}

/// AUC of every slice and lane at one time; NaN, which never leaves this module, where there is none.
type Values = Vec<[f64; LANES]>;

/// What the AUC of all replicates needs in addition to the weights.
pub(crate) struct SortedAuc {
    prepared: PreparedAucTd,
    cells: Cells,
    /// Unit of the sample at every place of the order.
    unit_at: Vec<u32>,
    /// A row of every unit.
    row_of_unit: Vec<u32>,
}

impl SortedAuc {
    /// `unit_of_row`: which rows always have the same weights, numbered from 0.
    pub(crate) fn new(prepared: PreparedAucTd, groups: &[Groups], unit_of_row: &[u32]) -> Self {
        let n_units = unit_of_row.iter().max().map_or(0, |&last| last as usize + 1);
        let mut row_of_unit = vec![0; n_units];
        for (row, &unit) in (0..).zip(unit_of_row) {
            row_of_unit[unit as usize] = row;
        }
        let unit_at = prepared.order.iter().map(|&row| unit_of_row[row as usize]).collect();
        Self { cells: Cells::new(groups, &prepared.order), prepared, unit_at, row_of_unit }
    }

    /// The same samples with other groups and units.
    pub(crate) fn regrouped(self, groups: &[Groups], unit_of_row: &[u32]) -> Self {
        Self::new(self.prepared, groups, unit_of_row)
    }

    /// The samples without groups or weights.
    pub(crate) fn prepared(&self) -> &PreparedAucTd {
        &self.prepared
    }

    /// By slice, the times at which the sample itself has an AUC.
    pub(crate) fn used_times(&self) -> Vec<Vec<usize>> {
        let values = self.values(vec![u32::MAX; self.row_of_unit.len()]);
        let used = |slice: usize| (0..values.len()).filter(|&time| !values[time][slice][0].is_nan()).collect();
        (0..self.cells.n_slices()).map(used).collect()
    }

    /// By time; `weights` by unit.
    fn values<W: UnitWeights>(&self, weights: Vec<W>) -> Vec<Values> {
        let mut input =
            Input { sorted: self, weights, spoilt_from: vec![[f64::INFINITY; LANES]; self.cells.n_slices()] };
        for event in &self.prepared.without_weight {
            for &slice in self.cells.slices_at(event.place) {
                let weights = input.weights[self.unit_at[event.place] as usize];
                for (lane, spoilt_from) in input.spoilt_from[slice].iter_mut().enumerate() {
                    if weights.count(lane) > 0 {
                        *spoilt_from = spoilt_from.min(event.time);
                    }
                }
            }
        }
        self.prepared.times.iter().zip(&self.prepared.walks).map(|(&time, walk)| input.at(time, walk)).collect()
    }
}

/// What does not change within a block.
struct Input<'a, W> {
    sorted: &'a SortedAuc,
    /// By unit.
    weights: Vec<W>,
    /// Time of the earliest event without a weight that occurs, by slice and lane; infinite without one.
    spoilt_from: Vec<[f64; LANES]>,
}

/// How far ahead of the walk weights are loaded.
const STEPS_AHEAD: usize = 32;

/// Running sums of one slice during one walk.
#[derive(Clone, Copy)]
struct SliceSums {
    /// Controls with a higher prediction, and controls of the current class.
    above: [u32; LANES],
    tied: [u32; LANES],
    /// Weights of the cases, and twice the weighted score of the pairs.
    cases: [f64; LANES],
    won: [f64; LANES],
}

impl AucLanes {
    /// `used_times` are those of `sorted`; `weights` are `[n, LANES]` by row of the sample.
    pub(crate) fn new(sorted: &SortedAuc, used_times: &[Vec<usize>], weights: &[LaneWeights]) -> Self {
        let of_unit = || sorted.row_of_unit.iter().map(|&row| weights[row as usize]);
        let values = if let Some(bits) = as_bits(of_unit()) {
            sorted.values(bits)
        } else if let Some(bytes) = as_bytes(of_unit()) {
            sorted.values(bytes)
        } else {
            sorted.values(of_unit().collect())
        };
        let average = |slice: usize, lane: usize| {
            let is_defined = |time: &usize| !values[*time][slice][lane].is_nan();
            let defined: Vec<usize> = (0..values.len()).filter(is_defined).collect();
            let times: Vec<f64> = defined.iter().map(|&time| sorted.prepared.times[time]).collect();
            let of_lane: Vec<f64> = defined.iter().map(|&time| values[time][slice][lane]).collect();
            (!times.is_empty()).then(|| Average {
                value: time_average(&times, &of_lane),
                is_partial: !used_times[slice].iter().all(is_defined),
            })
        };
        let averages =
            (0..sorted.cells.n_slices()).map(|slice| std::array::from_fn(|lane| average(slice, lane))).collect();
        Self { averages }
    }

    /// The time average of one slice in one replicate.
    pub(crate) fn average(&self, slice: usize, lane: usize) -> Option<Average> {
        self.averages[slice][lane]
    }
}

/// [`Input::walk`] as a value, so that it can be compiled for several instruction sets.
struct TakeWalk<'a, W> {
    input: &'a Input<'a, W>,
    walk: &'a Walk,
    sums: &'a mut [SliceSums],
}

impl<W: UnitWeights> pulp::WithSimd for TakeWalk<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if let [whole] = self.sums {
            // Its sums have a place of their own, and no sample has to be looked up in the cells.
            let mut sums = *whole;
            self.input.walk::<true>(self.walk, std::slice::from_mut(&mut sums));
            *whole = sums;
        } else {
            self.input.walk::<false>(self.walk, self.sums);
        }
    }
}

impl<W: UnitWeights> Input<'_, W> {
    fn at(&self, time: f64, walk: &Walk) -> Values {
        let none = SliceSums { above: [0; LANES], tied: [0; LANES], cases: [0.0; LANES], won: [0.0; LANES] };
        let mut sums = vec![none; self.sorted.cells.n_slices()];
        pulp::Arch::new().dispatch(TakeWalk { input: self, walk, sums: &mut sums });
        let auc = |slice: usize, lane: usize| {
            let SliceSums { above, cases, won, .. } = &sums[slice];
            if self.spoilt_from[slice][lane] <= time || cases[lane] <= 0.0 || above[lane] == 0 {
                return f64::NAN;
            }
            (0.5 * won[lane] / (cases[lane] * f64::from(above[lane]))).min(1.0)
        };
        (0..sums.len()).map(|slice| std::array::from_fn(|lane| auc(slice, lane))).collect()
    }

    #[inline(always)]
    fn weights_at(&self, place: usize) -> &W {
        &self.weights[self.sorted.unit_at[place] as usize]
    }

    /// Calls `visit` with the sums of every slice of the sample at a place.
    #[inline(always)]
    fn for_each_slice<const WHOLE: bool>(
        &self,
        place: usize,
        sums: &mut [SliceSums],
        mut visit: impl FnMut(&mut SliceSums),
    ) {
        if WHOLE {
            visit(&mut sums[0]);
        } else {
            for &slice in self.sorted.cells.slices_at(place) {
                visit(&mut sums[slice]);
            }
        }
    }

    /// `WHOLE`: there are no groups, and only the sums of the whole sample.
    #[inline(always)]
    fn walk<const WHOLE: bool>(&self, walk: &Walk, sums: &mut [SliceSums]) {
        // Loading a word of each line some steps ahead hides the latency.
        let mut ahead = walk.steps().iter().skip(STEPS_AHEAD);
        let mut touched = 0;
        for class in walk.classes() {
            for step in ahead.by_ref().take(class.len()) {
                touched ^= self.weights_at(step.place()).touch();
            }
            // Nearly every class is a single sample: a control is added to `above` directly, a case has no tied
            // control.
            if let &[step] = class {
                let weights = self.weights_at(step.place());
                if step.is_case() {
                    self.add_case::<WHOLE>(step.place(), sums);
                } else {
                    self.for_each_slice::<WHOLE>(step.place(), sums, |sums| add_weights(&mut sums.above, weights));
                }
                continue;
            }
            for control in class.iter().filter(|step| !step.is_case()).map(|step| step.place()) {
                let weights = self.weights_at(control);
                self.for_each_slice::<WHOLE>(control, sums, |sums| add_weights(&mut sums.tied, weights));
            }
            for case in class.iter().filter(|step| step.is_case()) {
                self.add_case::<WHOLE>(case.place(), sums);
            }
            for slice in &mut *sums {
                add(&mut slice.above, &slice.tied);
                slice.tied = [0; LANES];
            }
        }
        std::hint::black_box(touched);
    }

    #[inline(always)]
    fn add_case<const WHOLE: bool>(&self, case: usize, sums: &mut [SliceSums]) {
        let case_weight = self.sorted.prepared.case_weights[case];
        let copies = *self.weights_at(case);
        let mut weights = [0.0; LANES];
        for lane in 0..LANES {
            weights[lane] = f64::from(copies.count(lane)) * case_weight;
        }
        self.for_each_slice::<WHOLE>(case, sums, |sums| {
            let SliceSums { above, tied, mut cases, mut won } = *sums;
            for lane in 0..LANES {
                cases[lane] += weights[lane];
                won[lane] += weights[lane] * f64::from(2 * above[lane] + tied[lane]);
            }
            *sums = SliceSums { above, tied, cases, won };
        });
    }
}

/// Adds weights lane by lane.
#[inline(always)]
fn add_weights<W: UnitWeights>(sums: &mut [u32; LANES], weights: &W) {
    let (mut result, weights) = (*sums, *weights);
    for lane in 0..LANES {
        result[lane] += u32::from(weights.count(lane));
    }
    *sums = result;
}
