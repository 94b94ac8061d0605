//! Whole numbers of subjects for every stratum and part, all as close as possible to the exact shares.
//!
//! `n_s share_p` is the exact number of stratum s in part p. Every count becomes its floor or its ceiling, so that the
//! counts of a stratum add up to its size and the counts of a part, over all strata, are the floor or the ceiling of
//! the exact total (controlled rounding of a two-way table: Cox 1987, JASA 82(398), 520-524). Rounding each stratum
//! separately would satisfy the first condition but not the second: twenty strata of one subject would all go to one
//! part.
//!
//! A first table assigns the remaining subjects of each stratum to the parts with the largest deficit. If a total is
//! still off, subjects are moved along a shortest chain of parts, which exists by the integrality of flows in a
//! bipartite graph. Cost: strata x parts, and strata x parts^2 for each chain, of which there are few.

/// A product that is whole up to the rounding error of the share counts as whole.
const SLACK: f64 = 1e-9;

/// Counts by stratum and part for strata of `sizes` and parts of `shares`, which add up to 1.
///
/// Ties go to strata and parts that come first, so the caller puts the strata in a random order.
pub(super) fn round_counts(sizes: &[usize], shares: &[f64]) -> Vec<Vec<usize>> {
    let mut table = Rounding::new(sizes, shares);
    table.deal();
    table.even_out();
    table.counts()
}

struct Rounding {
    /// Floors of the exact numbers, `[stratum][part]`.
    floors: Vec<Vec<usize>>,
    /// The fractional parts, in [0, 1); 0 where the exact number is whole.
    fractions: Vec<Vec<f64>>,
    /// Whether one subject was added to the floor.
    extra: Vec<Vec<bool>>,
    /// Remaining subjects of each stratum after the floors.
    left_over: Vec<usize>,
    n_parts: usize,
}

impl Rounding {
    fn new(sizes: &[usize], shares: &[f64]) -> Self {
        let exact = |n: usize| shares.iter().map(move |share| share * n as f64);
        let floors: Vec<Vec<usize>> = sizes.iter().map(|&n| exact(n).map(floor).collect()).collect();
        let fraction = |x: f64| if (x - x.round()).abs() <= SLACK { 0.0 } else { x - x.floor() };
        let left_over = sizes.iter().zip(&floors).map(|(n, floors)| n.saturating_sub(floors.iter().sum()));
        Self {
            left_over: left_over.collect(),
            fractions: sizes.iter().map(|&n| exact(n).map(fraction).collect()).collect(),
            extra: vec![vec![false; shares.len()]; sizes.len()],
            floors,
            n_parts: shares.len(),
        }
    }

    /// Assigns the remaining subjects, stratum after stratum, to the parts with the largest deficit.
    fn deal(&mut self) {
        let mut behind = vec![0.0; self.n_parts];
        for (stratum, fractions) in self.fractions.iter().enumerate() {
            for (behind, fraction) in behind.iter_mut().zip(fractions) {
                *behind += fraction;
            }
            let mut open: Vec<usize> = (0..self.n_parts).filter(|&part| fractions[part] > 0.0).collect();
            open.sort_by(|a, b| f64::total_cmp(&behind[*b], &behind[*a]));
            for part in open.into_iter().take(self.left_over[stratum]) {
                self.extra[stratum][part] = true;
                behind[part] -= 1.0;
            }
        }
    }

    /// Moves subjects until every part has the floor or the ceiling of its exact total.
    fn even_out(&mut self) {
        let exact: Vec<f64> =
            (0..self.n_parts).map(|part| self.fractions.iter().map(|row| row[part]).sum::<f64>()).collect();
        let least: Vec<usize> = exact.iter().map(|x| floor(*x + 1e-6)).collect();
        let most: Vec<usize> = exact.iter().map(|x| ceiling(*x - 1e-6)).collect();
        let mut given: Vec<usize> =
            (0..self.n_parts).map(|part| self.extra.iter().filter(|row| row[part]).count()).collect();
        loop {
            let above = (0..self.n_parts).find(|&part| given[part] > most[part]);
            let below = (0..self.n_parts).find(|&part| given[part] < least[part]);
            let chain = match (above, below) {
                (Some(from), _) => self.chain(|part| part == from, |part| given[part] < most[part]),
                (None, Some(to)) => self.chain(|part| given[part] > least[part], |part| part == to),
                (None, None) => return,
            };
            let Some(chain) = chain else { return };
            for &(stratum, from, to) in &chain {
                self.extra[stratum][from] = false;
                self.extra[stratum][to] = true;
                given[from] -= 1;
                given[to] += 1;
            }
        }
    }

    /// A shortest chain of moves `(stratum, from, to)` from a part in `begin` to another part in `end`.
    fn chain(&self, begin: impl Fn(usize) -> bool, end: impl Fn(usize) -> bool) -> Option<Vec<(usize, usize, usize)>> {
        let mut queue: Vec<usize> = (0..self.n_parts).filter(|&part| begin(part)).collect();
        let mut reached: Vec<bool> = (0..self.n_parts).map(&begin).collect();
        let mut by: Vec<Option<(usize, usize, usize)>> = vec![None; self.n_parts];
        let mut next = 0;
        while let Some(&from) = queue.get(next) {
            next += 1;
            for to in 0..self.n_parts {
                let can_move = |stratum: &usize| {
                    self.extra[*stratum][from] && !self.extra[*stratum][to] && self.fractions[*stratum][to] > 0.0
                };
                if reached[to] {
                    continue;
                }
                let Some(stratum) = (0..self.extra.len()).find(can_move) else { continue };
                (reached[to], by[to]) = (true, Some((stratum, from, to)));
                if end(to) {
                    let mut chain = Vec::new();
                    let mut at = to;
                    while let Some(step) = by[at] {
                        chain.push(step);
                        at = step.1;
                    }
                    return Some(chain);
                }
                queue.push(to);
            }
        }
        None
    }

    fn counts(self) -> Vec<Vec<usize>> {
        let row = |(floors, extra): (Vec<usize>, Vec<bool>)| {
            floors.into_iter().zip(extra).map(|(floor, extra)| floor + usize::from(extra)).collect()
        };
        self.floors.into_iter().zip(self.extra).map(row).collect()
    }
}

/// `floor(fraction * n)`, where a product that is whole up to the rounding error of the fraction counts as whole
/// (0.6 * 5 must be 3, 0.29 * 100 must be 29).
pub(super) fn floor_of(fraction: f64, n: usize) -> usize {
    floor(fraction * n as f64)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of subjects")]
fn floor(exact: f64) -> usize {
    (exact + SLACK).floor() as usize
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of subjects")]
fn ceiling(exact: f64) -> usize {
    exact.max(0.0).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ten_and_five_subjects_are_cut_exactly() {
        assert_eq!(round_counts(&[10, 5], &[0.6, 0.2, 0.2]), [[6, 2, 2], [3, 1, 1]]);
    }

    #[test]
    fn strata_of_one_subject_do_not_all_go_to_one_part() {
        let counts = round_counts(&[1; 20], &[0.6, 0.2, 0.2]);
        let totals: Vec<usize> = (0..3).map(|part| counts.iter().map(|row| row[part]).sum()).collect();
        assert_eq!(totals, [12, 4, 4]);
    }

    #[test]
    fn no_stratum_and_empty_strata_are_no_trouble() {
        assert!(round_counts(&[], &[0.5, 0.5]).is_empty());
        assert_eq!(round_counts(&[0, 3], &[1.0 / 3.0; 3]), [[0, 0, 0], [1, 1, 1]]);
    }

    proptest! {
        #[test]
        fn counts_add_up_and_are_within_one_of_every_exact_share(
            sizes in prop::collection::vec(0_usize..40, 1..30),
            weights in prop::collection::vec(1_u32..50, 2..9),
        ) {
            let total: u32 = weights.iter().sum();
            let shares: Vec<f64> = weights.iter().map(|weight| f64::from(*weight) / f64::from(total)).collect();
            let counts = round_counts(&sizes, &shares);
            let n: usize = sizes.iter().sum();
            for (size, row) in sizes.iter().zip(&counts) {
                prop_assert_eq!(row.iter().sum::<usize>(), *size);
                for (count, share) in row.iter().zip(&shares) {
                    prop_assert!((*count as f64 - share * *size as f64).abs() < 1.0 - 1e-6, "{:?}", counts);
                }
            }
            for (part, share) in shares.iter().enumerate() {
                let count: usize = counts.iter().map(|row| row[part]).sum();
                prop_assert!((count as f64 - share * n as f64).abs() < 1.0 - 1e-6, "part {} of {:?}", part, counts);
            }
        }
    }
}
