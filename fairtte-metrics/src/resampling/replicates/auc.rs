//! AUC^td for a block of replicates: the time average, per slice and lane.

use super::{Block, Cells, LANES, add, add_weights};
use crate::rank::auc_td::{PreparedAucTd, Walk};
use crate::scores::integrate::time_average;

/// The time average of the AUC of every slice in every lane; `None` where no time has a value.
pub(crate) struct AucLanes {
    averages: Vec<[Option<f64>; LANES]>,
}

/// AUC of every slice and lane at one time; NaN, which never leaves this module, where there is none.
type Values = Vec<[f64; LANES]>;

/// What does not change within a block.
struct Input<'a> {
    prepared: &'a PreparedAucTd,
    cells: &'a Cells,
    block: &'a Block,
    /// Time of the earliest event without a weight that occurs, by slice and lane; infinite without one.
    spoilt_from: Vec<[f64; LANES]>,
}

/// Sums of one slice on the way through one walk.
#[derive(Clone, Copy)]
struct SliceSums {
    /// Controls with a higher prediction, and controls of the class at hand.
    above: [u32; LANES],
    tied: [u32; LANES],
    /// Weights of the cases, and twice the weight of the pairs won.
    cases: [f64; LANES],
    won: [f64; LANES],
}

impl AucLanes {
    pub(crate) fn new(prepared: &PreparedAucTd, cells: &Cells, block: &Block) -> Self {
        let mut spoilt_from = vec![[f64::INFINITY; LANES]; cells.n_slices()];
        for event in &prepared.without_weight {
            for &slice in cells.slices_at(event.place) {
                for (spoilt_from, &weight) in spoilt_from[slice].iter_mut().zip(&block.rows[event.place]) {
                    if weight > 0 {
                        *spoilt_from = spoilt_from.min(event.time);
                    }
                }
            }
        }
        let input = Input { prepared, cells, block, spoilt_from };
        let values: Vec<Values> =
            prepared.times.iter().zip(&prepared.walks).map(|(&time, walk)| input.at(time, walk)).collect();
        let average = |slice: usize, lane: usize| {
            let of_lane = |at_time: &Values| at_time[slice][lane];
            let defined: Vec<usize> = (0..values.len()).filter(|&k| !of_lane(&values[k]).is_nan()).collect();
            let times: Vec<f64> = defined.iter().map(|&k| prepared.times[k]).collect();
            let values: Vec<f64> = defined.iter().map(|&k| of_lane(&values[k])).collect();
            (!times.is_empty()).then(|| time_average(&times, &values))
        };
        let averages = (0..cells.n_slices()).map(|slice| std::array::from_fn(|lane| average(slice, lane))).collect();
        Self { averages }
    }

    /// The time average of one slice in one replicate.
    pub(crate) fn value(&self, slice: usize, lane: usize) -> Option<f64> {
        self.averages[slice][lane]
    }
}

/// [`Input::walk`] as a value, so that it can be compiled for several instruction sets.
struct TakeWalk<'a> {
    input: &'a Input<'a>,
    walk: &'a Walk,
    sums: &'a mut [SliceSums],
}

impl pulp::WithSimd for TakeWalk<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        self.input.walk(self.walk, self.sums);
    }
}

impl Input<'_> {
    fn at(&self, time: f64, walk: &Walk) -> Values {
        let none = SliceSums { above: [0; LANES], tied: [0; LANES], cases: [0.0; LANES], won: [0.0; LANES] };
        let mut sums = vec![none; self.cells.n_slices()];
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
    fn walk(&self, walk: &Walk, sums: &mut [SliceSums]) {
        for class in walk.classes() {
            // Nearly every class is a single sample: a control goes straight above, a case has nobody tied.
            if let &[step] = class {
                if step.is_case() {
                    self.add_case(step.place(), sums);
                    continue;
                }
                for &slice in self.cells.slices_at(step.place()) {
                    add_weights(&mut sums[slice].above, &self.block.rows[step.place()]);
                }
                continue;
            }
            for control in class.iter().filter(|step| !step.is_case()).map(|step| step.place()) {
                for &slice in self.cells.slices_at(control) {
                    add_weights(&mut sums[slice].tied, &self.block.rows[control]);
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
    }

    #[inline(always)]
    fn add_case(&self, case: usize, sums: &mut [SliceSums]) {
        let case_weight = self.prepared.case_weights[case];
        let copies = self.block.rows[case];
        let mut weights = [0.0; LANES];
        for lane in 0..LANES {
            weights[lane] = f64::from(copies[lane]) * case_weight;
        }
        for &slice in self.cells.slices_at(case) {
            let SliceSums { above, tied, mut cases, mut won } = sums[slice];
            for lane in 0..LANES {
                cases[lane] += weights[lane];
                won[lane] += weights[lane] * f64::from(2 * above[lane] + tied[lane]);
            }
            sums[slice] = SliceSums { above, tied, cases, won };
        }
    }
}
