//! A survival tree: splits by the log-rank statistic, leaves with Nelson-Aalen curves.

use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::log_rank::{Cut, Limits, Member, Node, midpoint};
use super::order::{Order, Orders};
use super::settings::{ConstantColumns, ForestSettings, NodeSizes};
use super::training::Training;

/// A grown tree. Node 0 is the root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Tree {
    pub(super) nodes: Vec<TreeNode>,
    /// Jumps of the Nelson-Aalen curves of all leaves, leaf after leaf: places of the times, and heights.
    jump_times: Vec<u32>,
    jump_heights: Vec<f64>,
}

/// A split or a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TreeNode {
    /// Values of the column up to the threshold go to the next node, the others to `right`.
    Split { column: u32, threshold: f64, right: u32 },
    /// Its jumps, and the sum of its cumulative hazard over all event times of the training data.
    Leaf { from: u32, to: u32, mortality: f64 },
}

/// A node that is not grown yet.
struct Open {
    from: usize,
    to: usize,
    depth: usize,
    /// Columns that are not drawn again, at the front of the columns.
    n_excluded: usize,
    /// The parent, of a right child.
    right_of: Option<usize>,
}

/// Grows trees, one after the other, in the same memory.
pub(super) struct Grower<'a> {
    training: &'a Training,
    settings: &'a ForestSettings,
    columns_per_split: usize,
    /// By place of a time, event times of the training data that are not before it.
    n_later: &'a [u32],
    /// Members of a node are a range, sorted by time: their rows, and what is known of them.
    rows: Vec<u32>,
    members: Vec<Member>,
    /// Room for those of a right child.
    aside: Vec<(u32, Member)>,
    open: Vec<Open>,
    /// Columns in the order of the last draw.
    columns: Vec<usize>,
    node: Node,
    orders: Orders,
    order: Order,
    /// Places of possible cuts.
    cuts: Vec<u32>,
    tree: Tree,
}

impl<'a> Grower<'a> {
    pub(super) fn new(training: &'a Training, n_later: &'a [u32], settings: &'a ForestSettings) -> Self {
        Self {
            training,
            settings,
            columns_per_split: settings.columns_per_split.of(training.n_columns()),
            n_later,
            rows: Vec::new(),
            members: Vec::new(),
            aside: Vec::new(),
            open: Vec::new(),
            columns: Vec::new(),
            node: Node::default(),
            orders: Orders::default(),
            order: Order::default(),
            cuts: Vec::new(),
            tree: Tree::default(),
        }
    }

    /// Grows a tree from the rows, each drawn `drawn[row]` times.
    pub(super) fn grow(&mut self, drawn: &[u32], rng: &mut ChaCha8Rng) -> Tree {
        self.rows.clear();
        self.members.clear();
        for row in &self.training.by_time {
            let at = *row as usize;
            if drawn[at] > 0 {
                self.rows.push(*row);
                let (time, event) = (self.training.time[at], self.training.event[at]);
                let weight = drawn[at];
                let size = if self.settings.node_sizes == NodeSizes::Draws { weight } else { 1 };
                self.members.push(Member { weight, size, time, event });
            }
        }
        self.columns.clear();
        self.columns.extend(0..self.training.n_columns());
        self.tree.nodes.clear();
        self.tree.jump_times.clear();
        self.tree.jump_heights.clear();
        self.grow_nodes(rng);
        // A copy has no room to spare.
        self.tree.clone()
    }

    /// A left child follows its parent. A list of open nodes in place of recursion, because a tree may be deep.
    fn grow_nodes(&mut self, rng: &mut ChaCha8Rng) {
        self.open.push(Open { from: 0, to: self.members.len(), depth: 0, n_excluded: 0, right_of: None });
        while let Some(Open { from, to, depth, mut n_excluded, right_of }) = self.open.pop() {
            let place = self.tree.nodes.len();
            if let Some(parent) = right_of
                && let TreeNode::Split { right, .. } = &mut self.tree.nodes[parent]
            {
                *right = to_u32(place);
            }
            let is_deep = self.settings.max_depth.is_some_and(|most| depth >= most);
            let split = if is_deep { None } else { self.split(from, to, &mut n_excluded, rng) };
            let Some((column, cut)) = split else {
                self.leaf(from, to);
                continue;
            };
            let middle = self.partition(from, to, column, cut.below);
            let values = &self.training.values[column];
            let threshold = midpoint(values[cut.below as usize], values[cut.above as usize]);
            self.tree.nodes.push(TreeNode::Split { column: to_u32(column), threshold, right: 0 });
            let depth = depth + 1;
            self.open.push(Open { from: middle, to, depth, n_excluded, right_of: Some(place) });
            self.open.push(Open { from, to: middle, depth, n_excluded, right_of: None });
        }
    }

    /// Puts the members with ranks up to `below` first; both sides stay sorted by time. Returns where the others begin.
    fn partition(&mut self, from: usize, to: usize, column: usize, below: u32) -> usize {
        let ranks = &self.training.ranks[column];
        self.aside.clear();
        let mut middle = from;
        for place in from..to {
            let (row, member) = (self.rows[place], self.members[place]);
            if ranks[row as usize] <= below {
                self.rows[middle] = row;
                self.members[middle] = member;
                middle += 1;
            } else {
                self.aside.push((row, member));
            }
        }
        for (place, (row, member)) in (middle..to).zip(&self.aside) {
            self.rows[place] = *row;
            self.members[place] = *member;
        }
        middle
    }

    /// The best cut among randomly drawn columns.
    fn split(&mut self, from: usize, to: usize, n_excluded: &mut usize, rng: &mut ChaCha8Rng) -> Option<(usize, Cut)> {
        let settings = self.settings;
        let members = &self.members[from..to];
        let n: u32 = members.iter().map(|member| member.size).sum();
        if n < settings.min_samples_split.max(settings.min_samples_leaf.saturating_mul(2)) {
            return None;
        }
        if self.node.prepare(members) == 0 {
            return None;
        }
        self.orders.next();
        let limits = Limits { samples: settings.min_samples_leaf, events: settings.min_events_leaf };
        let mut best: Option<(usize, Cut)> = None;
        let (mut n_drawn, mut n_varied, p) = (0, 0, self.columns.len());
        for place in *n_excluded..p {
            let is_enough = match settings.constant_columns {
                ConstantColumns::Counted | ConstantColumns::CountedOnce => n_drawn == self.columns_per_split,
                ConstantColumns::Replaced => n_varied == self.columns_per_split,
                ConstantColumns::ReplacedIfAll => n_drawn >= self.columns_per_split && n_varied > 0,
            };
            if is_enough {
                break;
            }
            // The next column of a random order, drawn as far as it is needed.
            self.columns.swap(place, rng.random_range(place..p));
            let column = self.columns[place];
            n_drawn += 1;
            if !self.orders.fill(self.training, column, &self.rows[from..to], &mut self.order) {
                if matches!(settings.constant_columns, ConstantColumns::CountedOnce | ConstantColumns::Replaced) {
                    self.columns.swap(place, *n_excluded);
                    *n_excluded += 1;
                }
                continue;
            }
            n_varied += 1;
            let only = draw_cuts(&self.order.ranks, settings.cuts_per_column, &mut self.cuts, rng);
            let cut = self.node.best_cut(&self.order, limits, only);
            if let Some(cut) = cut.filter(|cut| best.is_none_or(|(_, best)| cut.square > best.square)) {
                best = Some((column, cut));
            }
        }
        best
    }

    fn leaf(&mut self, from: usize, to: usize) {
        let members = &self.members[from..to];
        let mut at_risk: u32 = members.iter().map(|member| member.weight).sum();
        let (begin, mut mortality) = (self.tree.jump_times.len(), 0.0);
        for tied in members.chunk_by(|a, b| a.time == b.time) {
            let events: u32 = tied.iter().filter(|member| member.event).map(|member| member.weight).sum();
            if events > 0 {
                let height = f64::from(events) / f64::from(at_risk);
                mortality += height * f64::from(self.n_later[tied[0].time as usize]);
                self.tree.jump_times.push(tied[0].time);
                self.tree.jump_heights.push(height);
            }
            at_risk -= tied.iter().map(|member| member.weight).sum::<u32>();
        }
        let (from, to) = (to_u32(begin), to_u32(self.tree.jump_times.len()));
        self.tree.nodes.push(TreeNode::Leaf { from, to, mortality });
    }
}

/// Places of `most` of the possible cuts, ascending; `None` if there are no more, or `most` is 0.
fn draw_cuts<'a>(ranks: &[u32], most: usize, cuts: &'a mut Vec<u32>, rng: &mut ChaCha8Rng) -> Option<&'a [u32]> {
    if most == 0 {
        return None;
    }
    cuts.clear();
    cuts.extend(ranks.windows(2).zip(0..).filter(|(pair, _)| pair[0] < pair[1]).map(|(_, place)| place));
    if cuts.len() <= most {
        return None;
    }
    let (drawn, _) = cuts.partial_shuffle(rng, most);
    drawn.sort_unstable();
    Some(drawn)
}

impl Tree {
    /// The leaf of a sample.
    pub(super) fn leaf(&self, value: impl Fn(usize) -> f64) -> Leaf<'_> {
        let mut at = 0;
        loop {
            match self.nodes[at] {
                TreeNode::Split { column, threshold, right } => {
                    at = if value(column as usize) <= threshold { at + 1 } else { right as usize };
                }
                TreeNode::Leaf { from, to, mortality } => {
                    let (times, heights) = (&self.jump_times, &self.jump_heights);
                    let range = from as usize..to as usize;
                    return Leaf { times: &times[range.clone()], heights: &heights[range], mortality };
                }
            }
        }
    }

    /// Bytes on the heap.
    pub(super) fn size_in_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<TreeNode>()
            + self.jump_times.capacity() * size_of::<u32>()
            + self.jump_heights.capacity() * size_of::<f64>()
    }
}

/// The curve of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf<'a> {
    /// Places of the times at which its cumulative hazard jumps, ascending.
    pub(super) times: &'a [u32],
    /// Heights of the jumps.
    pub(super) heights: &'a [f64],
    /// Its cumulative hazard summed over all event times of the training data.
    pub(super) mortality: f64,
}

/// Numbers of rows, nodes and columns fit: the training data have fewer than 2^32 rows.
fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
