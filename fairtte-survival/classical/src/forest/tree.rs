//! A survival tree: splits by the log-rank statistic, leaves with Nelson-Aalen curves.

use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::ForestSettings;
use super::log_rank::{Cut, Limits, Member, Node};
use super::training::Training;

/// A grown tree. Node 0 is the root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Tree {
    pub(super) nodes: Vec<TreeNode>,
    /// Jumps of the Nelson-Aalen curves of all leaves, leaf after leaf: place of the time, and height.
    jumps: Vec<(u32, f64)>,
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

/// Grows a tree from the rows, each drawn `drawn[row]` times.
pub(super) fn grow(
    training: &Training,
    drawn: &[u32],
    n_later: &[u32],
    settings: &ForestSettings,
    rng: &mut ChaCha8Rng,
) -> Tree {
    let member = |row: &u32| {
        let at = *row as usize;
        Member { row: *row, weight: drawn[at], time: training.time[at], event: training.event[at] }
    };
    let members = training.by_time.iter().map(member).filter(|member| member.weight > 0).collect();
    let columns = (0..training.n_columns()).collect();
    let (node, tree, aside) = (Node::default(), Tree::default(), Vec::new());
    let mut growth = Growth { training, settings, n_later, members, aside, columns, node, tree, rng };
    growth.grow();
    growth.tree
}

/// A node that is not grown yet.
struct Open {
    from: usize,
    to: usize,
    depth: usize,
    /// The parent, of a right child.
    right_of: Option<usize>,
}

/// A tree that grows: members of a node are a range, sorted by time.
struct Growth<'a> {
    training: &'a Training,
    settings: &'a ForestSettings,
    /// By place of a time, event times of the training data that are not before it.
    n_later: &'a [u32],
    members: Vec<Member>,
    /// Room for those of a right child.
    aside: Vec<Member>,
    /// Columns in the order of the last draw.
    columns: Vec<usize>,
    node: Node,
    tree: Tree,
    rng: &'a mut ChaCha8Rng,
}

impl Growth<'_> {
    /// Grows all nodes: a left child follows its parent. A list of open nodes in place of recursion, because a tree may be deep.
    fn grow(&mut self) {
        let mut open = vec![Open { from: 0, to: self.members.len(), depth: 0, right_of: None }];
        while let Some(Open { from, to, depth, right_of }) = open.pop() {
            let place = self.tree.nodes.len();
            if let Some(parent) = right_of
                && let TreeNode::Split { right, .. } = &mut self.tree.nodes[parent]
            {
                *right = to_u32(place);
            }
            let is_deep = self.settings.max_depth.is_some_and(|most| depth >= most);
            let split = if is_deep { None } else { self.split(from, to) };
            let Some((column, cut)) = split else {
                self.leaf(from, to);
                continue;
            };
            let middle = self.partition(from, to, column, cut.threshold);
            self.tree.nodes.push(TreeNode::Split { column: to_u32(column), threshold: cut.threshold, right: 0 });
            open.push(Open { from: middle, to, depth: depth + 1, right_of: Some(place) });
            open.push(Open { from, to: middle, depth: depth + 1, right_of: None });
        }
    }

    /// Puts the members with values up to the threshold first; both sides stay sorted by time. Returns where the others begin.
    fn partition(&mut self, from: usize, to: usize, column: usize, threshold: f64) -> usize {
        let (ranks, values) = (&self.training.ranks[column], &self.training.values[column]);
        let is_left = |member: &Member| values[ranks[member.row as usize] as usize] <= threshold;
        self.aside.clear();
        let mut middle = from;
        for place in from..to {
            let member = self.members[place];
            if is_left(&member) {
                self.members[middle] = member;
                middle += 1;
            } else {
                self.aside.push(member);
            }
        }
        self.members[middle..to].copy_from_slice(&self.aside);
        middle
    }

    /// The best cut among randomly drawn columns that are not constant in the node.
    fn split(&mut self, from: usize, to: usize) -> Option<(usize, Cut)> {
        let members = &self.members[from..to];
        let n: u32 = members.iter().map(|member| member.weight).sum();
        let settings = self.settings;
        if n < settings.min_samples_split.max(2 * settings.min_samples_leaf) {
            return None;
        }
        let n_times = self.node.prepare(members);
        if n_times == 0 {
            return None;
        }
        let limits = Limits { samples: settings.min_samples_leaf, events: settings.min_events_leaf };
        let mut best: Option<(usize, Cut)> = None;
        let (mut n_tried, p) = (0, self.columns.len());
        let (mut keys, mut order, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for place in 0..p {
            if n_tried == settings.columns_per_split {
                break;
            }
            // The next column of a random order, drawn as far as it is needed.
            self.columns.swap(place, self.rng.random_range(place..p));
            let column = self.columns[place];
            let ranks = &self.training.ranks[column];
            keys.clear();
            keys.extend(members.iter().zip(0_u64..).map(|(member, i)| u64::from(ranks[member.row as usize]) << 32 | i));
            keys.sort_unstable();
            if keys.first().map(|key| key >> 32) == keys.last().map(|key| key >> 32) {
                continue;
            }
            n_tried += 1;
            order.clear();
            values.clear();
            for key in &keys {
                #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
                order.push(*key as u32);
                values.push(self.training.values[column][(key >> 32) as usize]);
            }
            let only = settings.cuts_per_column.and_then(|most| random_cuts(&values, most, self.rng));
            let cut = self.node.best_cut(members, &order, &values, limits, only.as_deref());
            if let Some(cut) = cut.filter(|cut| best.is_none_or(|(_, best)| cut.statistic > best.statistic)) {
                best = Some((column, cut));
            }
        }
        best
    }

    fn leaf(&mut self, from: usize, to: usize) {
        let members = &self.members[from..to];
        let mut at_risk: u32 = members.iter().map(|member| member.weight).sum();
        let (begin, mut mortality) = (self.tree.jumps.len(), 0.0);
        for tied in members.chunk_by(|a, b| a.time == b.time) {
            let events: u32 = tied.iter().filter(|member| member.event).map(|member| member.weight).sum();
            if events > 0 {
                let height = f64::from(events) / f64::from(at_risk);
                mortality += height * f64::from(self.n_later[tied[0].time as usize]);
                self.tree.jumps.push((tied[0].time, height));
            }
            at_risk -= tied.iter().map(|member| member.weight).sum::<u32>();
        }
        let (from, to) = (to_u32(begin), to_u32(self.tree.jumps.len()));
        self.tree.nodes.push(TreeNode::Leaf { from, to, mortality });
    }
}

/// Places of `most` of the possible cuts, ascending; `None` if there are no more.
fn random_cuts(values: &[f64], most: usize, rng: &mut ChaCha8Rng) -> Option<Vec<usize>> {
    let mut cuts: Vec<usize> = (0..values.len() - 1).filter(|place| values[*place] < values[place + 1]).collect();
    if cuts.len() <= most {
        return None;
    }
    let (drawn, _) = cuts.partial_shuffle(rng, most);
    let mut drawn = drawn.to_vec();
    drawn.sort_unstable();
    Some(drawn)
}

impl Tree {
    /// The leaf of a sample: its jumps, and its mortality.
    pub(super) fn leaf(&self, value: impl Fn(usize) -> f64) -> (&[(u32, f64)], f64) {
        let mut at = 0;
        loop {
            match self.nodes[at] {
                TreeNode::Split { column, threshold, right } => {
                    at = if value(column as usize) <= threshold { at + 1 } else { right as usize };
                }
                TreeNode::Leaf { from, to, mortality } => return (&self.jumps[from as usize..to as usize], mortality),
            }
        }
    }
}

/// Numbers of rows, nodes and columns fit: the training data have fewer than 2^32 rows.
fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
