//! C^td for readings with (nearly) one bin per event: every event is compared with every sample at risk, without ranks.
//!
//! Under the linear reading a prediction is `a + d * f` with a and d of the sample (the value at the grid point before,
//! and the step to the next) and f of the event. The events between two grid points share a and d, so the comparison is
//! two arrays, one multiplication, one addition and two comparisons per pair, which the compiler turns into vector
//! code. Ranking is O(n) per event as well, but a search and a scattered addition per pair.

use rayon::prelude::*;

use crate::curves::SurvivalCurves;
use crate::rank::concordance_bins::BinPlan;
use crate::rank::concordance_td::Counts;

/// Bins with more events than this are cheaper to rank.
const MAX_EVENTS: usize = 8;

/// The pairs of all bins of a linear reading that hold one time and few events, every sample counted once, and the bins
/// that are left.
pub(crate) fn count_directly(plan: &BinPlan, curves: &SurvivalCurves) -> (Counts, Vec<usize>) {
    let (direct, left): (Vec<usize>, Vec<usize>) = plan.all().partition(|&bin| {
        let events = plan.events(bin);
        events.len() <= MAX_EVENTS && events.iter().all(|event| event.1 == events[0].1)
    });
    let column = |bin: usize| plan.position(bin).column;
    let groups: Vec<&[usize]> = direct.chunk_by(|&a, &b| column(a) == column(b)).collect();
    let count = |bins: &&[usize]| count_between_two_grid_points(plan, bins, curves);
    (groups.par_iter().map(count).reduce(Counts::default, std::ops::Add::add), left)
}

fn count_between_two_grid_points(plan: &BinPlan, bins: &[usize], curves: &SurvivalCurves) -> Counts {
    let column = plan.position(bins[0]).column;
    let next = (column + 1).min(curves.grid().len() - 1);
    let n_read = bins.iter().map(|&bin| plan.events(bin).last().map_or(0, |event| event.0 + 1)).max().unwrap_or(0);
    let rows = || plan.order[..n_read].iter().map(|&row| curves.curve(row as usize));
    let here: Vec<f64> = rows().map(|row| row[column]).collect();
    let step: Vec<f64> = rows().map(|row| row[next] - row[column]).collect();
    let mut counts = Counts::default();
    for &bin in bins {
        let fraction = plan.position(bin).fraction;
        for &(place, n_at_risk) in plan.events(bin) {
            // As `Reading::blend`, operation by operation: a tie must stay a tie.
            let of_event = if fraction <= 0.0 { here[place] } else { here[place] + step[place] * fraction };
            let compare = Compare { here: &here[..n_at_risk], step: &step[..n_at_risk], fraction, of_event };
            let (greater, tied) = pulp::Arch::new().dispatch(compare);
            counts.n_events += 1;
            counts.comparable += n_at_risk as u64;
            counts.concordant += greater;
            counts.tied += tied;
        }
    }
    counts
}

/// How many predictions lie above that of an event, and how many equal it.
struct Compare<'a> {
    here: &'a [f64],
    step: &'a [f64],
    fraction: f64,
    of_event: f64,
}

impl pulp::WithSimd for Compare<'_> {
    type Output = (u64, u64);

    #[expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set of the machine")]
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Self::Output {
        let Self { here, step, fraction, of_event } = self;
        let (mut greater, mut not_less) = (0_u64, 0_u64);
        for (here, step) in here.iter().zip(step) {
            // With a fraction of 0 the sum is `here` itself.
            let prediction = here + step * fraction;
            greater += u64::from(prediction > of_event);
            not_less += u64::from(prediction >= of_event);
        }
        (greater, not_less - greater)
    }
}
