//! AUC^td for a block of replicates: the time average, per slice and lane.
//!
//! A walk by falling S(t) does not visit the samples in memory order, so the data that it reads are kept small: the
//! weights of units (subjects), not of samples, and a byte each, unless a weight needs more.

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
        let values = self.values(vec![[1_u8; LANES]; self.row_of_unit.len()]);
        let used = |slice: usize| (0..values.len()).filter(|&time| !values[time][slice][0].is_nan()).collect();
        (0..self.cells.n_slices()).map(used).collect()
    }

    /// By time; `weights` by unit.
    fn values<W: Weight>(&self, weights: Vec<[W; LANES]>) -> Vec<Values> {
        let mut input =
            Input { sorted: self, weights, spoilt_from: vec![[f64::INFINITY; LANES]; self.cells.n_slices()] };
        for event in &self.prepared.without_weight {
            for &slice in self.cells.slices_at(event.place) {
                let weights = input.weights[self.unit_at[event.place] as usize];
                for (spoilt_from, weight) in input.spoilt_from[slice].iter_mut().zip(weights) {
                    if Into::<u32>::into(weight) > 0 {
                        *spoilt_from = spoilt_from.min(event.time);
                    }
                }
            }
        }
        self.prepared.times.iter().zip(&self.prepared.walks).map(|(&time, walk)| input.at(time, walk)).collect()
    }
}

/// A weight in the table that the walks read.
trait Weight: Copy + Into<u32> + Into<f64> + std::ops::BitXorAssign + Default {}

impl Weight for u8 {}
impl Weight for u16 {}

/// What does not change within a block.
struct Input<'a, W> {
    sorted: &'a SortedAuc,
    /// By unit.
    weights: Vec<[W; LANES]>,
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
        let bytes: Option<Vec<[u8; LANES]>> = of_unit().map(bytes).collect();
        let values = match bytes {
            Some(bytes) => sorted.values(bytes),
            None => sorted.values(of_unit().collect::<Vec<LaneWeights>>()),
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

impl<W: Weight> pulp::WithSimd for TakeWalk<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        self.input.walk(self.walk, self.sums);
    }
}

impl<W: Weight> Input<'_, W> {
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
    fn weights_at(&self, place: usize) -> &[W; LANES] {
        &self.weights[self.sorted.unit_at[place] as usize]
    }

    #[inline(always)]
    fn walk(&self, walk: &Walk, sums: &mut [SliceSums]) {
        // Loading a word of each line some steps ahead hides the latency.
        let mut ahead = walk.steps().iter().skip(STEPS_AHEAD);
        let mut touched = W::default();
        for class in walk.classes() {
            for step in ahead.by_ref().take(class.len()) {
                touched ^= self.weights_at(step.place())[0];
            }
            // Nearly every class is a single sample: a control is added to `above` directly, a case has no tied
            // control.
            if let &[step] = class {
                if step.is_case() {
                    self.add_case(step.place(), sums);
                    continue;
                }
                for &slice in self.sorted.cells.slices_at(step.place()) {
                    add_weights(&mut sums[slice].above, self.weights_at(step.place()));
                }
                continue;
            }
            for control in class.iter().filter(|step| !step.is_case()).map(|step| step.place()) {
                for &slice in self.sorted.cells.slices_at(control) {
                    add_weights(&mut sums[slice].tied, self.weights_at(control));
                }
            }
            for case in class.iter().filter(|step| step.is_case()) {
                self.add_case(case.place(), sums);
            }
            for slice in &mut *sums {
                add(&mut slice.above, &slice.tied);
                slice.tied = [0; LANES];
            }
        }
        std::hint::black_box(touched);
    }

    #[inline(always)]
    fn add_case(&self, case: usize, sums: &mut [SliceSums]) {
        let case_weight = self.sorted.prepared.case_weights[case];
        let copies = *self.weights_at(case);
        let mut weights = [0.0; LANES];
        for lane in 0..LANES {
            weights[lane] = Into::<f64>::into(copies[lane]) * case_weight;
        }
        for &slice in self.sorted.cells.slices_at(case) {
            let SliceSums { above, tied, mut cases, mut won } = sums[slice];
            for lane in 0..LANES {
                cases[lane] += weights[lane];
                won[lane] += weights[lane] * f64::from(2 * above[lane] + tied[lane]);
            }
            sums[slice] = SliceSums { above, tied, cases, won };
        }
    }
}

/// Adds weights lane by lane.
#[inline(always)]
fn add_weights<W: Weight>(sums: &mut [u32; LANES], weights: &[W; LANES]) {
    let (mut result, weights) = (*sums, *weights);
    for lane in 0..LANES {
        result[lane] += Into::<u32>::into(weights[lane]);
    }
    *sums = result;
}

/// The weights as bytes, if they fit.
fn bytes(weights: LaneWeights) -> Option<[u8; LANES]> {
    let mut bytes = [0; LANES];
    for (byte, weight) in bytes.iter_mut().zip(weights) {
        *byte = u8::try_from(weight).ok()?;
    }
    Some(bytes)
}
