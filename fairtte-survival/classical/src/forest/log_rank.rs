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
//! `Y_L1` .. `Y_Lm`, and `2 sum_{k <= m} w_k Y_Lk + W(m)` to the last sum, which a tree of sums over the left samples gives
//! ([`LeftSums`]). All cuts of a column cost O(n log n) instead of O(n `n_events`). Where few cuts are requested, the last sum is
//! computed at each of them instead.
//! Source: Ishwaran et al. 2008, <https://doi.org/10.1214/08-AOAS169> (the statistic).

use super::order::Order;

/// A sample of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Member {
    /// How often it was drawn.
    pub(super) weight: u32,
    /// What it counts in the size of a node.
    pub(super) size: u32,
    /// Place of its time among all different times of the training data.
    pub(super) time: u32,
    pub(super) event: bool,
}

/// Sums over the left samples, by the number m of event times up to their own: weights, and weights times `W(m)`.
///
/// A binary tree over m, of which only left children are kept: those are all that the sum below an m needs.
#[derive(Default)]
struct LeftSums {
    /// Node k of the tree, counted from 1 at the root, at k / 2 if it is a left child.
    sums: Vec<[f64; 2]>,
    /// Leaves, a power of two.
    width: usize,
}

impl LeftSums {
    fn clear(&mut self, n: usize) {
        self.width = n.next_power_of_two();
        self.sums.clear();
        self.sums.resize(self.width, [0.0; 2]);
    }

    /// The sums over places below `at`; then adds to `at`.
    fn below_then_add(&mut self, at: usize, values: [f64; 2]) -> [f64; 2] {
        let (mut node, mut below) = (at + self.width, [0.0; 2]);
        while node > 1 {
            // On the way to the root: the left sibling of a right child is below; a left child contains the place.
            let is_right = (node & 1) as f64;
            let sum = &mut self.sums[node >> 1];
            for part in 0..2 {
                below[part] += is_right * sum[part];
                sum[part] += (1.0 - is_right) * values[part];
            }
            node >>= 1;
        }
        below
    }
}

/// What a member adds to the sums of the left child.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Weight times (event - hazard).
    u: f64,
    /// Weight times the first part of the variance.
    first: f64,
    /// `W(m)`.
    squares: f64,
    /// Event times of the node that are not after its own.
    m: u32,
    weight: u32,
    size: u32,
    /// Size of an event.
    events: u32,
}

/// The event times of a node with what a split needs of them, and room for the search. Reused from node to node.
#[derive(Default)]
pub(super) struct Node {
    /// Sizes of samples and events.
    n: u32,
    n_events: u32,
    n_times: usize,
    shares: Vec<Share>,
    /// By event time, `w_k`.
    weights: Vec<f64>,
    sums: LeftSums,
    /// Weights of the left samples by m.
    left: Vec<u32>,
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
    /// Square of the log-rank statistic, positive.
    pub(super) square: f64,
    /// Values with this rank and below go to the left.
    pub(super) below: u32,
    /// The next rank that a member has.
    pub(super) above: u32,
}

/// The left child so far.
#[derive(Default)]
struct Left {
    weight: u32,
    n: u32,
    n_events: u32,
    u: f64,
    first: f64,
}

impl Node {
    /// Prepares the search for members that are sorted by time, ascending. Returns the number of different event times.
    pub(super) fn prepare(&mut self, members: &[Member]) -> usize {
        self.n = members.iter().map(|member| member.size).sum();
        self.n_events = members.iter().filter(|member| member.event).map(|member| member.size).sum();
        self.shares.clear();
        self.weights.clear();
        let (mut at_risk, mut from) = (members.iter().map(|member| member.weight).sum::<u32>(), 0);
        let (mut hazard, mut first, mut squares, mut m) = (0.0, 0.0, 0.0, 0);
        while from < members.len() {
            let (time, mut to) = (members[from].time, from);
            let (mut events, mut all) = (0, 0);
            while to < members.len() && members[to].time == time {
                all += members[to].weight;
                events += if members[to].event { members[to].weight } else { 0 };
                to += 1;
            }
            if events > 0 {
                let (d, y) = (f64::from(events), f64::from(at_risk));
                // With one sample at risk nothing can vary.
                let c = if at_risk > 1 { d * (y - d) / (y - 1.0) } else { 0.0 };
                hazard += d / y;
                first += c / y;
                squares += c / (y * y);
                self.weights.push(c / (y * y));
                m += 1;
            }
            for member in &members[from..to] {
                let weight = f64::from(member.weight);
                self.shares.push(Share {
                    u: weight * (f64::from(u8::from(member.event)) - hazard),
                    first: weight * first,
                    squares,
                    m,
                    weight: member.weight,
                    size: member.size,
                    events: if member.event { member.size } else { 0 },
                });
            }
            at_risk -= all;
            from = to;
        }
        self.n_times = self.weights.len();
        self.n_times
    }

    /// The best cut of a column in whose `order` the members are (those that [`prepare`](Self::prepare) was given). `only` are the places
    /// after which a cut may be, ascending; without it after every place. `None` if no cut is possible. Of equal statistics the first.
    pub(super) fn best_cut(&mut self, order: &Order, limits: Limits, only: Option<&[u32]>) -> Option<Cut> {
        let levels = (self.n_times + 1).ilog2() as usize + 1;
        let n_asked = only.map_or(order.members.len(), <[u32]>::len);
        if n_asked * self.n_times <= order.members.len() * (levels + 2) {
            self.left.clear();
            self.left.resize(self.n_times + 1, 0);
            let add = |node: &mut Self, share: &Share, _: &mut f64| node.left[share.m as usize] += share.weight;
            self.search(order, limits, only, add, |node, left, _| node.squares_of_left(left.weight))
        } else {
            self.sums.clear(self.n_times + 1);
            let mut weight_left = 0.0;
            let add = |node: &mut Self, share: &Share, second: &mut f64| {
                // A sample before all event times is never at risk at one.
                if share.m > 0 {
                    let weight = f64::from(share.weight);
                    let below = node.sums.below_then_add(share.m as usize, [weight, weight * share.squares]);
                    // A left sample has been at risk at the event times up to the earlier of both.
                    let crossed = below[1] + (weight_left - below[0]) * share.squares;
                    *second += weight * (2.0 * crossed + weight * share.squares);
                    weight_left += weight;
                }
            };
            self.search(order, limits, only, add, |_, _, second| second)
        }
    }

    /// The sum of `w_k Y_Lk^2` from the left weights by m.
    fn squares_of_left(&self, weight: u32) -> f64 {
        let (mut at_risk, mut sum) = (weight, 0.0);
        for (before, weight) in self.left.iter().zip(&self.weights) {
            at_risk -= before;
            sum += weight * f64::from(at_risk) * f64::from(at_risk);
        }
        sum
    }

    /// Moves member after member to the left: `add` keeps what the second part of the variance needs, `second` gives it at a cut.
    fn search(
        &mut self,
        order: &Order,
        limits: Limits,
        only: Option<&[u32]>,
        mut add: impl FnMut(&mut Self, &Share, &mut f64),
        second: impl Fn(&Self, &Left, f64) -> f64,
    ) -> Option<Cut> {
        let (n, n_events, last) = (self.n, self.n_events, order.members.len() - 1);
        let (mut left, mut sum, mut best): (Left, f64, Option<(Cut, f64)>) = (Left::default(), 0.0, None);
        let mut asked = only.map(|places| places.iter().copied().peekable());
        for place in 0..last {
            let share = self.shares[order.members[place] as usize];
            add(self, &share, &mut sum);
            left.u += share.u;
            left.first += share.first;
            left.weight += share.weight;
            left.n += share.size;
            left.n_events += share.events;
            if n - left.n < limits.samples {
                break;
            }
            let (below, above) = (order.ranks[place], order.ranks[place + 1]);
            let is_asked = match &mut asked {
                Some(places) => places.next_if(|next| *next as usize == place).is_some(),
                None => below < above,
            };
            let is_possible = is_asked
                && left.n >= limits.samples
                && left.n_events >= limits.events
                && n_events - left.n_events >= limits.events;
            if !is_possible {
                continue;
            }
            let variance = left.first - second(self, &left, sum);
            if variance <= VARIANCE * left.first {
                continue;
            }
            let square = left.u * left.u;
            if best.is_none_or(|(best, of_best)| square * of_best > best.square * variance) {
                best = Some((Cut { square, below, above }, variance));
            }
        }
        best.map(|(cut, variance)| Cut { square: cut.square / variance, ..cut })
    }
}

/// Share of the first part of a variance below which it is rounding.
const VARIANCE: f64 = 1e-12;

/// A threshold between two values; the lower if there is no number between them.
pub(super) fn midpoint(below: f64, above: f64) -> f64 {
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
        prop::collection::vec((1..4_u32, 0..20_u32, any::<bool>(), 0..12_u8), 2..50)
    }

    proptest! {
        #[test]
        fn the_best_cut_is_the_best_of_all_by_definition(rows in members(), smallest in 1..4_u32, events in 0..3_u32, asked: bool, draws: bool) {
            let mut rows = rows;
            rows.sort_by_key(|row| row.1);
            let members: Vec<Member> = rows.iter()
                .map(|(weight, time, event, _)| Member {
                    weight: *weight,
                    size: if draws { *weight } else { 1 },
                    time: *time,
                    event: *event,
                })
                .collect();
            let mut order: Vec<u32> = (0..).take(members.len()).collect();
            order.sort_by_key(|i| rows[*i as usize].3);
            let ranks: Vec<u32> = order.iter().map(|i| u32::from(rows[*i as usize].3)).collect();
            let order = Order { members: order, ranks };
            let mut node = Node::default();
            // A node before this one leaves no trace.
            node.prepare(&members[members.len() / 2..]);
            let n_times = node.prepare(&members);
            let limits = Limits { samples: smallest, events };
            let cuts: Vec<u32> = (0..).zip(order.ranks.windows(2)).filter(|(_, pair)| pair[0] < pair[1]).map(|(i, _)| i).collect();
            let found = node.best_cut(&order, limits, asked.then_some(&cuts));
            let mut times: Vec<u32> = members.iter().filter(|m| m.event).map(|m| m.time).collect();
            times.dedup();
            prop_assert_eq!(n_times, times.len());
            let mut best = 0.0_f64;
            for cut in 0..11 {
                let threshold = f64::from(cut) + 0.5;
                let is_left = |i: usize| f64::from(rows[i].3) <= threshold;
                let of = |left: bool| members.iter().enumerate().filter(move |(i, _)| is_left(*i) == left);
                let is_possible = [true, false].iter().all(|left| {
                    of(*left).map(|(_, m)| m.size).sum::<u32>() >= smallest
                        && of(*left).filter(|(_, m)| m.event).map(|(_, m)| m.size).sum::<u32>() >= events
                });
                if is_possible {
                    best = best.max(by_definition(&members, is_left));
                }
            }
            match found {
                None => prop_assert!(best < 1e-9, "there is a cut with {}", best),
                Some(cut) => {
                    let statistic = cut.square.sqrt();
                    prop_assert!((statistic - best).abs() < 1e-6 * best.max(1.0), "{} for {}", statistic, best);
                    let own = by_definition(&members, |i| u32::from(rows[i].3) <= cut.below);
                    prop_assert!((statistic - own).abs() < 1e-6 * own.max(1.0), "{} for {}", statistic, own);
                    prop_assert!(cut.below < cut.above);
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
