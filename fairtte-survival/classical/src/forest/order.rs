//! The members of a node in the order of their values of a column.

use super::training::Training;

/// Room for orders, reused from node to node.
#[derive(Default)]
pub(super) struct Orders {
    keys: Vec<u64>,
    /// By rank, how many members have it, and then where they go.
    counts: Vec<u32>,
    /// By row, its place in the node, and the node.
    place: Vec<(u32, u32)>,
    /// Nodes so far, and whether `place` is filled for the last one.
    n_nodes: u32,
    is_placed: bool,
}

/// Members in ascending order of a column, members with the same value in their own order.
#[derive(Default)]
pub(super) struct Order {
    /// Their places in the node.
    pub(super) members: Vec<u32>,
    /// The ranks of their values.
    pub(super) ranks: Vec<u32>,
}

impl Orders {
    /// The next node.
    pub(super) fn next(&mut self) {
        self.n_nodes += 1;
        self.is_placed = false;
    }

    /// Orders the rows of a node; `false` if the column is constant in it.
    ///
    /// Three ways to the same order, each the cheapest for some node: counting for few values, a walk through all rows in the order
    /// of the column for a node that has many of them, sorting otherwise.
    pub(super) fn fill(&mut self, training: &Training, column: usize, rows: &[u32], order: &mut Order) -> bool {
        let (ranks, n_values) = (&training.ranks[column], training.values[column].len());
        let first = rows.first().map(|row| ranks[*row as usize]);
        if rows.iter().all(|row| Some(ranks[*row as usize]) == first) {
            return false;
        }
        order.members.clear();
        order.ranks.clear();
        let n = rows.len();
        if n_values <= 2 * n {
            self.count(ranks, n_values, rows, order);
        } else if n * (n.ilog2() as usize) >= 2 * training.n() {
            self.walk(training, column, rows, order);
        } else {
            self.sort(ranks, rows, order);
        }
        true
    }

    fn count(&mut self, ranks: &[u32], n_values: usize, rows: &[u32], order: &mut Order) {
        self.counts.clear();
        self.counts.resize(n_values, 0);
        for row in rows {
            self.counts[ranks[*row as usize] as usize] += 1;
        }
        let mut before = 0;
        for count in &mut self.counts {
            before += std::mem::replace(count, before);
        }
        order.members.resize(rows.len(), 0);
        order.ranks.resize(rows.len(), 0);
        for (row, member) in rows.iter().zip(0..) {
            let rank = ranks[*row as usize];
            let place = &mut self.counts[rank as usize];
            order.members[*place as usize] = member;
            order.ranks[*place as usize] = rank;
            *place += 1;
        }
    }

    fn walk(&mut self, training: &Training, column: usize, rows: &[u32], order: &mut Order) {
        if !self.is_placed {
            self.place.resize(training.n(), (0, 0));
            rows.iter().zip(0..).for_each(|(row, member)| self.place[*row as usize] = (self.n_nodes, member));
            self.is_placed = true;
        }
        for row in &training.by_value[column] {
            let (node, member) = self.place[*row as usize];
            if node == self.n_nodes {
                order.members.push(member);
                order.ranks.push(training.ranks[column][*row as usize]);
            }
        }
    }

    fn sort(&mut self, ranks: &[u32], rows: &[u32], order: &mut Order) {
        self.keys.clear();
        self.keys.extend(rows.iter().zip(0_u64..).map(|(row, member)| u64::from(ranks[*row as usize]) << 32 | member));
        self.keys.sort_unstable();
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of a key")]
        for key in &self.keys {
            order.members.push(*key as u32);
            order.ranks.push((key >> 32) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use fairtte_metrics::Outcomes;
    use ndarray::Array2;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn three_ways_lead_to_one_order(values in prop::collection::vec(0..9_u8, 1..40), drawn in prop::collection::vec(any::<bool>(), 40)) {
            let n = values.len();
            let columns = Array2::from_shape_fn((n, 1), |(row, _)| f64::from(values[row]));
            // Times fall with the rows, so that members are not in the order of the rows.
            let outcomes = Outcomes::new((0..n).map(|row| (n - row) as f64).collect(), vec![true; n]);
            let training = Training::new(&columns, &outcomes.expect("valid")).expect("valid");
            let rows: Vec<u32> = training.by_time.iter().copied().filter(|row| drawn[*row as usize]).collect();
            let mut expected: Vec<u32> = (0..).take(rows.len()).collect();
            expected.sort_by_key(|member| values[rows[*member as usize] as usize]);
            let ranks: Vec<u32> = expected.iter().map(|member| training.ranks[0][rows[*member as usize] as usize]).collect();
            let mut orders = Orders::default();
            // A node before this one must leave no trace.
            let before: Vec<u32> = training.by_time.clone();
            orders.next();
            orders.walk(&training, 0, &before, &mut Order::default());
            orders.next();
            for way in 0..3 {
                let mut order = Order::default();
                match way {
                    0 => orders.count(&training.ranks[0], training.values[0].len(), &rows, &mut order),
                    1 => orders.walk(&training, 0, &rows, &mut order),
                    _ => orders.sort(&training.ranks[0], &rows, &mut order),
                }
                prop_assert_eq!(&order.members, &expected, "way {}", way);
                prop_assert_eq!(&order.ranks, &ranks, "way {}", way);
            }
            let is_constant = ranks.first() == ranks.last();
            prop_assert_eq!(orders.fill(&training, 0, &rows, &mut Order::default()), !is_constant);
        }
    }
}
