//! A regression tree on the gradient: splits by squared error, leaves with means.
//!
//! A split of a node into sums `s_L`, `s_R` of `n_L`, `n_R` samples is worth `s_L^2 / n_L + s_R^2 / n_R`, which falls short of the sum of
//! squares by the squared error of both means. Nodes of a level are split together: every column is walked once per level in its
//! order, which was sorted once per fit, with the sums of all nodes beside each other. O(depth p n) per tree, in parallel over columns.
//! Sources: Breiman, Friedman, Olshen & Stone 1984; the stopping rules are those of scikit-learn 1.9 (`DecisionTreeRegressor`, squared
//! error): of columns with the same best split it takes one by chance, this tree the first.

use ndarray::{Array2, Axis};
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::settings::BoostingSettings;

/// A fitted tree. Node 0 is the root.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct RegressionTree {
    pub(super) nodes: Vec<TreeNode>,
}

/// A split or a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TreeNode {
    /// Values of the column up to the threshold go to `left`, the others to the node after it.
    Split { column: u32, threshold: f64, left: u32 },
    /// The mean of its samples.
    Leaf { value: f64 },
}

impl RegressionTree {
    /// The prediction of a sample.
    pub(super) fn value(&self, value: impl Fn(usize) -> f64) -> f64 {
        let mut at = 0;
        loop {
            match self.nodes[at] {
                TreeNode::Split { column, threshold, left } => {
                    at = left as usize + usize::from(value(column as usize) > threshold);
                }
                TreeNode::Leaf { value } => return value,
            }
        }
    }
}

/// Columns of the training data, sorted once.
pub(super) struct SortedColumns {
    /// By column, rows and values in ascending order.
    sorted: Vec<Vec<(u32, f64)>>,
    /// By column, values of the rows.
    values: Vec<Vec<f64>>,
}

impl SortedColumns {
    pub(super) fn new(columns: &Array2<f64>) -> Self {
        let sort = |values: &Vec<f64>| {
            let mut sorted: Vec<(u32, f64)> = (0..).zip(values.iter().copied()).collect();
            sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
            sorted
        };
        let values: Vec<Vec<f64>> = columns.axis_iter(Axis(1)).map(|column| column.to_vec()).collect();
        Self { sorted: values.par_iter().map(sort).collect(), values }
    }
}

/// A node that may be split.
#[derive(Clone, Copy, Default)]
struct Open {
    /// Its place in the tree.
    node: usize,
    n: u32,
    sum: f64,
    sum_of_squares: f64,
}

/// A cut of a node.
#[derive(Clone, Copy)]
struct Cut {
    worth: f64,
    column: usize,
    threshold: f64,
}

/// The left child of a node so far.
#[derive(Clone, Copy)]
struct Left {
    n: u32,
    sum: f64,
    last: f64,
    best: Option<(f64, f64)>,
}

/// A sample: its gradient, and the place of its node among the open ones.
#[derive(Clone, Copy)]
struct Sample {
    gradient: f64,
    open: u32,
}

/// No open node: of a sample that is not in the bag, or in a leaf.
const NONE: u32 = u32::MAX;

/// Values of a level below which one thread is faster.
const SERIAL: usize = 20_000;

/// Fits trees, one after the other, in the same memory.
pub(super) struct Fitter<'a> {
    columns: &'a SortedColumns,
    settings: &'a BoostingSettings,
    samples: Vec<Sample>,
    /// By row, its node in the tree.
    at: Vec<u32>,
    open: Vec<Open>,
}

impl<'a> Fitter<'a> {
    pub(super) fn new(columns: &'a SortedColumns, settings: &'a BoostingSettings) -> Self {
        Self { columns, settings, samples: Vec::new(), at: Vec::new(), open: Vec::new() }
    }

    /// Fits a tree to the gradient of the samples in the bag, `[n]` each.
    pub(super) fn fit(&mut self, gradient: &[f64], in_bag: &[bool], rng: &mut ChaCha8Rng) -> RegressionTree {
        self.at.clear();
        self.at.resize(gradient.len(), 0);
        let sample =
            |(gradient, in_bag): (&f64, &bool)| Sample { gradient: *gradient, open: if *in_bag { 0 } else { NONE } };
        self.samples.clear();
        self.samples.extend(gradient.iter().zip(in_bag).map(sample));
        let mut nodes = vec![TreeNode::Leaf { value: 0.0 }];
        self.open = vec![Open::default()];
        self.add_up();
        for _ in 0..self.settings.max_depth {
            for open in &self.open {
                nodes[open.node] = TreeNode::Leaf { value: open.sum / f64::from(open.n) };
            }
            self.close();
            if self.open.is_empty() {
                break;
            }
            let cuts = self.cuts(rng);
            self.split(&cuts, &mut nodes);
        }
        for open in &self.open {
            nodes[open.node] = TreeNode::Leaf { value: open.sum / f64::from(open.n) };
        }
        RegressionTree { nodes }
    }

    /// By row, its leaf in the last tree.
    pub(super) fn leaves(&self) -> &[u32] {
        &self.at
    }

    /// Sums of the open nodes.
    fn add_up(&mut self) {
        for sample in self.samples.iter().filter(|sample| sample.open != NONE) {
            let open = &mut self.open[sample.open as usize];
            open.n += 1;
            open.sum += sample.gradient;
            open.sum_of_squares += sample.gradient * sample.gradient;
        }
    }

    /// Keeps the open nodes that are large enough and not pure.
    fn close(&mut self) {
        let least = self.settings.min_samples_split.max(self.settings.min_samples_leaf.saturating_mul(2));
        let may_split = |open: &Open| {
            let n = f64::from(open.n);
            let variance = open.sum_of_squares / n - (open.sum / n).powi(2);
            open.n >= least && variance > f64::EPSILON
        };
        let mut n_kept = 0;
        let kept = |open: &Open| {
            let is_kept = may_split(open);
            n_kept += u32::from(is_kept);
            if is_kept { n_kept - 1 } else { NONE }
        };
        let place: Vec<u32> = self.open.iter().map(kept).collect();
        for sample in self.samples.iter_mut().filter(|sample| sample.open != NONE) {
            sample.open = place[sample.open as usize];
        }
        self.open.retain(may_split);
    }

    /// The best cut of every open node.
    fn cuts(&self, rng: &mut ChaCha8Rng) -> Vec<Option<Cut>> {
        let p = self.columns.values.len();
        let n_drawn = self.settings.columns_per_split.of(p);
        let mut is_drawn = vec![n_drawn == p; p * self.open.len()];
        if n_drawn < p {
            let mut all: Vec<usize> = (0..p).collect();
            for node in 0..self.open.len() {
                let (drawn, _) = all.partial_shuffle(rng, n_drawn);
                for column in drawn.iter() {
                    is_drawn[column * self.open.len() + node] = true;
                }
            }
        }
        let of_column = |column: usize| self.walk(column, &is_drawn[column * self.open.len()..][..self.open.len()]);
        let n: usize = self.open.iter().map(|open| open.n as usize).sum();
        let of_columns: Vec<Vec<Left>> = if n * p < SERIAL {
            (0..p).map(of_column).collect()
        } else {
            (0..p).into_par_iter().map(of_column).collect()
        };
        let best = |node: usize| {
            let mut best: Option<Cut> = None;
            for (column, of_column) in of_columns.iter().enumerate() {
                if let Some((worth, threshold)) = of_column[node].best
                    && best.is_none_or(|best| worth > best.worth)
                {
                    best = Some(Cut { worth, column, threshold });
                }
            }
            best
        };
        (0..self.open.len()).map(best).collect()
    }

    /// Walks through a column with the left children of all open nodes.
    fn walk(&self, column: usize, is_drawn: &[bool]) -> Vec<Left> {
        let mut left = vec![Left { n: 0, sum: 0.0, last: f64::NEG_INFINITY, best: None }; self.open.len()];
        if !is_drawn.contains(&true) {
            return left;
        }
        let least = self.settings.min_samples_leaf;
        for (row, value) in &self.columns.sorted[column] {
            let sample = self.samples[*row as usize];
            if sample.open == NONE || !is_drawn[sample.open as usize] {
                continue;
            }
            let (left, open) = (&mut left[sample.open as usize], &self.open[sample.open as usize]);
            if *value > left.last && left.n >= least && open.n - left.n >= least {
                let right = open.sum - left.sum;
                let worth = left.sum * left.sum / f64::from(left.n) + right * right / f64::from(open.n - left.n);
                if left.best.is_none_or(|(best, _)| worth > best) {
                    let middle = left.last.midpoint(*value);
                    left.best = Some((worth, if middle < *value { middle } else { left.last }));
                }
            }
            left.n += 1;
            left.sum += sample.gradient;
            left.last = *value;
        }
        left
    }

    /// Splits the open nodes that have a cut; their children are the next open ones.
    fn split(&mut self, cuts: &[Option<Cut>], nodes: &mut Vec<TreeNode>) {
        let mut children = Vec::new();
        let mut first_child = vec![NONE; cuts.len()];
        for ((open, cut), first) in self.open.iter().zip(cuts).zip(&mut first_child) {
            if let Some(Cut { column, threshold, .. }) = cut {
                *first = to_u32(children.len());
                let left = nodes.len();
                nodes[open.node] =
                    TreeNode::Split { column: to_u32(*column), threshold: *threshold, left: to_u32(left) };
                for node in [left, left + 1] {
                    children.push(Open { node, ..Open::default() });
                    nodes.push(TreeNode::Leaf { value: 0.0 });
                }
            }
        }
        for (row, (sample, at)) in self.samples.iter_mut().zip(&mut self.at).enumerate() {
            // Also of samples outside the bag, because the model predicts them too.
            let TreeNode::Split { column, threshold, left } = nodes[*at as usize] else {
                sample.open = NONE;
                continue;
            };
            let is_right = u32::from(self.columns.values[column as usize][row] > threshold);
            *at = left + is_right;
            if sample.open != NONE {
                sample.open = first_child[sample.open as usize] + is_right;
            }
        }
        self.open = children;
        self.add_up();
    }
}

/// Numbers of rows, nodes and columns fit: there are fewer than 2^32 rows.
fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
