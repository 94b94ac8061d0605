//! The split of a node with the largest log-rank statistic.
//!
//! At the event times `t_k` of a node, with `d_k` events and `Y_k` samples at risk, and `Y_Lk` of them in the left child, the statistic of a
//! split is |U| / sqrt(V),
//!
//! ```text
//! U = sum_k d_Lk - Y_Lk d_k / Y_k
//! V = sum_k (Y_Lk / Y_k) (1 - Y_Lk / Y_k) (Y_k - d_k) / (Y_k - 1) d_k
//! ```
//!
//! Computed afresh at every cut this costs the number of event times. But U is the sum over the left samples of `d_i` - `L(T_i)`, with L the
//! Nelson-Aalen curve of the node, and V is `sum_i A(T_i) - sum_k w_k Y_Lk^2` with `A(t) = sum of c_k / Y_k up to t`, `w_k = c_k / Y_k^2`
//! and `c_k = d_k (Y_k - d_k) / (Y_k - 1)`. A sample that moves to the left with m of the event times up to its own adds 1 to
//! `Y_L1` .. `Y_Lm`, and `2 sum_{k <= m} w_k Y_Lk + W(m)` to the last sum, which two Fenwick trees give. All cuts of a column cost
//! O(n log n) instead of O(n `n_events`).
//! Sources: Ishwaran et al. 2008, <https://doi.org/10.1214/08-AOAS169> (the statistic); Fenwick 1994 (the trees).

/// Sums of a prefix, updated in O(log n).
#[derive(Default)]
struct Fenwick {
    sums: Vec<f64>,
}

impl Fenwick {
    fn clear(&mut self, n: usize) {
        self.sums.clear();
        self.sums.resize(n + 1, 0.0);
    }

    /// Adds to place `at`, counted from 0.
    fn add(&mut self, at: usize, value: f64) {
        let mut place = at + 1;
        while place < self.sums.len() {
            self.sums[place] += value;
            place += place & place.wrapping_neg();
        }
    }

    /// Sum of the places 0 to `to`, included.
    fn up_to(&self, to: usize) -> f64 {
        let (mut place, mut sum) = (to + 1, 0.0);
        while place > 0 {
            sum += self.sums[place];
            place -= place & place.wrapping_neg();
        }
        sum
    }
}

/// A sample of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Member {
    /// Row in the training data.
    pub(super) row: u32,
    /// How often it was drawn.
    pub(super) weight: u32,
    /// Place of its time among all different times of the training data.
    pub(super) time: u32,
    pub(super) event: bool,
}

/// The event times of a node with what a split needs of them, and room for the search. Reused from node to node.
#[derive(Default)]
pub(super) struct Node {
    /// Samples and events, by weight.
    n: u32,
    n_events: u32,
    /// By member, event times of the node that are not after its own.
    n_before: Vec<u32>,
    /// By number of event times, their sums: hazard, first part of the variance, weights of squares. Place 0 is 0.
    hazard: Vec<f64>,
    first: Vec<f64>,
    squares: Vec<f64>,
    /// Weights of the left samples by their number of event times: sums of weight times `squares`, and of weight.
    left_squares: Fenwick,
    left: Fenwick,
}

/// What every child has at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) samples: u32,
    pub(super) events: u32,
}

/// A cut of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cut {
    /// Log-rank statistic, positive.
    pub(super) statistic: f64,
    /// Values up to it go to the left.
    pub(super) threshold: f64,
}

impl Node {
    /// Prepares the search for members that are sorted by time, ascending. Returns the number of different event times.
    pub(super) fn prepare(&mut self, members: &[Member]) -> usize {
        self.n = members.iter().map(|member| member.weight).sum();
        self.n_events = members.iter().filter(|member| member.event).map(|member| member.weight).sum();
        self.n_before.clear();
        for sums in [&mut self.hazard, &mut self.first, &mut self.squares] {
            sums.clear();
            sums.push(0.0);
        }
        let mut at_risk = f64::from(self.n);
        for tied in members.chunk_by(|a, b| a.time == b.time) {
            let events: u32 = tied.iter().filter(|member| member.event).map(|member| member.weight).sum();
            let all: u32 = tied.iter().map(|member| member.weight).sum();
            if events > 0 {
                let d = f64::from(events);
                // With one sample at risk nothing can vary.
                let c = if at_risk > 1.0 { d * (at_risk - d) / (at_risk - 1.0) } else { 0.0 };
                let push = |sums: &mut Vec<f64>, value: f64| sums.push(sums[sums.len() - 1] + value);
                push(&mut self.hazard, d / at_risk);
                push(&mut self.first, c / at_risk);
                push(&mut self.squares, c / (at_risk * at_risk));
            }
            let n_before = u32::try_from(self.hazard.len() - 1).unwrap_or(u32::MAX);
            self.n_before.extend(tied.iter().map(|_| n_before));
            at_risk -= f64::from(all);
        }
        self.hazard.len() - 1
    }

    /// The best cut of a column: `order` are the members (places in the slice that [`prepare`](Self::prepare) was given) in
    /// ascending order of their `values`. `only` are the places after which a cut may be, ascending; without it everywhere. `None` if
    /// no cut is possible. Of equal statistics the first.
    pub(super) fn best_cut(
        &mut self,
        members: &[Member],
        order: &[u32],
        values: &[f64],
        limits: Limits,
        only: Option<&[usize]>,
    ) -> Option<Cut> {
        let n_times = self.hazard.len() - 1;
        self.left.clear(n_times + 1);
        self.left_squares.clear(n_times + 1);
        let (n, n_events) = (self.n, self.n_events);
        let (mut n_left, mut events_left, mut weight_left) = (0, 0, 0.0);
        let (mut u, mut first, mut second) = (0.0, 0.0, 0.0);
        let (mut best, mut only): (Option<Cut>, _) = (None, only.map(|places| places.iter().peekable()));
        for (place, &member) in order.iter().enumerate() {
            let (own, m) = (&members[member as usize], self.n_before[member as usize] as usize);
            let weight = f64::from(own.weight);
            // Sum of w_k Y_Lk over the event times up to its own: a left sample has been at risk at those up to the earlier of both.
            let until = self.left_squares.up_to(m);
            let later = weight_left - self.left.up_to(m);
            let crossed = until + later * self.squares[m];
            second += 2.0 * weight * crossed + weight * weight * self.squares[m];
            first += weight * self.first[m];
            u += weight * (f64::from(u8::from(own.event)) - self.hazard[m]);
            self.left.add(m, weight);
            self.left_squares.add(m, weight * self.squares[m]);
            weight_left += weight;
            n_left += own.weight;
            events_left += if own.event { own.weight } else { 0 };
            if n - n_left < limits.samples || place + 1 == order.len() {
                break;
            }
            let is_asked = only.as_mut().is_none_or(|places| places.next_if(|asked| **asked == place).is_some());
            let (below, above) = (values[place], values[place + 1]);
            let is_possible = is_asked
                && below < above
                && n_left >= limits.samples
                && events_left >= limits.events
                && n_events - events_left >= limits.events;
            let variance = first - second;
            if !is_possible || variance <= VARIANCE * first {
                continue;
            }
            let statistic = u.abs() / variance.sqrt();
            if best.is_none_or(|best| statistic > best.statistic) {
                best = Some(Cut { statistic, threshold: midpoint(below, above) });
            }
        }
        best
    }
}

/// Share of the first part of a variance below which it is rounding.
const VARIANCE: f64 = 1e-12;

/// A threshold between two values; the lower if there is no number between them.
fn midpoint(below: f64, above: f64) -> f64 {
    let middle = below.midpoint(above);
    if middle < above { middle } else { below }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The statistic by its definition, every sample repeated by its weight.
    fn by_definition(members: &[Member], is_left: impl Fn(usize) -> bool) -> f64 {
        let repeated = || members.iter().enumerate().flat_map(|(i, m)| std::iter::repeat_n((i, m), m.weight as usize));
        let mut times: Vec<u32> = members.iter().filter(|m| m.event).map(|m| m.time).collect();
        times.sort_unstable();
        times.dedup();
        let (mut u, mut v) = (0.0, 0.0);
        for t in times {
            let count = |of: &dyn Fn(usize, &Member) -> bool| repeated().filter(|(i, m)| of(*i, m)).count() as f64;
            let (y, d) = (count(&|_, m| m.time >= t), count(&|_, m| m.time == t && m.event));
            let y_left = count(&|i, m| m.time >= t && is_left(i));
            let d_left = count(&|i, m| m.time == t && m.event && is_left(i));
            u += d_left - y_left * d / y;
            if y > 1.0 {
                v += y_left / y * (1.0 - y_left / y) * (y - d) / (y - 1.0) * d;
            }
        }
        if v > 1e-12 { u.abs() / v.sqrt() } else { 0.0 }
    }

    fn members() -> impl Strategy<Value = Vec<(u32, u32, bool, u8)>> {
        prop::collection::vec((1..4_u32, 0..9_u32, any::<bool>(), 0..6_u8), 2..30)
    }

    proptest! {
        #[test]
        fn the_best_cut_is_the_best_of_all_by_definition(rows in members(), smallest in 1..4_u32, events in 0..3_u32) {
            let mut rows = rows;
            rows.sort_by_key(|row| row.1);
            let members: Vec<Member> = (0..).zip(&rows)
                .map(|(row, (weight, time, event, _))| Member { row, weight: *weight, time: *time, event: *event })
                .collect();
            let mut order: Vec<u32> = (0..).take(members.len()).collect();
            order.sort_by_key(|i| rows[*i as usize].3);
            let values: Vec<f64> = order.iter().map(|i| f64::from(rows[*i as usize].3)).collect();
            let mut node = Node::default();
            let n_times = node.prepare(&members);
            let found = node.best_cut(&members, &order, &values, Limits { samples: smallest, events }, None);
            let mut times: Vec<u32> = members.iter().filter(|m| m.event).map(|m| m.time).collect();
            times.dedup();
            prop_assert_eq!(n_times, times.len());
            let mut best = 0.0_f64;
            for cut in 0..5 {
                let threshold = f64::from(cut) + 0.5;
                let is_left = |i: usize| f64::from(rows[i].3) <= threshold;
                let of = |left: bool| members.iter().enumerate().filter(move |(i, _)| is_left(*i) == left);
                let is_possible = [true, false].iter().all(|left| {
                    of(*left).map(|(_, m)| m.weight).sum::<u32>() >= smallest
                        && of(*left).filter(|(_, m)| m.event).map(|(_, m)| m.weight).sum::<u32>() >= events
                });
                if is_possible {
                    best = best.max(by_definition(&members, is_left));
                }
            }
            match found {
                None => prop_assert!(best < 1e-9, "there is a cut with {}", best),
                Some(cut) => {
                    prop_assert!((cut.statistic - best).abs() < 1e-6 * best.max(1.0), "{} for {}", cut.statistic, best);
                    let own = by_definition(&members, |i| f64::from(rows[i].3) <= cut.threshold);
                    prop_assert!((cut.statistic - own).abs() < 1e-6 * own.max(1.0), "{} for {}", cut.statistic, own);
                }
            }
        }
    }

    #[test]
    fn a_threshold_is_between_its_values() {
        assert!((midpoint(1.0, 2.0) - 1.5).abs() < 1e-15);
        let next = 1.0_f64.next_up();
        assert_eq!(midpoint(1.0, next).to_bits(), 1.0_f64.to_bits(), "there is no number between them");
    }
}
