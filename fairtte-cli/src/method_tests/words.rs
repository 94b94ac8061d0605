//! What is asked of a metric and what its tests say, in sentences.

use fairtte_metrics::statistics::Alternative;

use super::{Family, Goal, MethodTests, MetricTests, PairTest, Tested, Untested};
use crate::plural::counted;
use crate::report::{list, p_relation, short};

/// Most findings in one sentence.
const MOST_NAMED: usize = 5;

/// Fills in the question and the verdict of every metric.
pub(super) fn speak(tests: &mut MethodTests) {
    let n_tested = tests.metrics.iter().filter(|metric| metric.ranks.tested.is_some()).count();
    let n_pairs_of_table = tests.metrics.iter().map(n_pairs).sum();
    let about = About { level: tests.level, family: tests.family, alternative: tests.alternative, n_tested };
    for metric in &mut tests.metrics {
        let n_family = if tests.family == Family::Table { n_pairs_of_table } else { n_pairs(metric) };
        metric.question = question(metric);
        metric.verdict = about.of_ranks(metric).into_iter().chain([about.of_pairs(metric, n_family)]).collect();
    }
}

/// Tests of a metric that were made.
fn n_pairs(metric: &MetricTests) -> usize {
    metric.pairs.iter().filter(|pair| pair.test.is_some()).count()
}

fn question(metric: &MetricTests) -> String {
    let n = metric.ranks.n_settings + metric.left_out.len();
    let (k, goal, gap) =
        (metric.methods.len(), metric.goal.words(), if metric.goal == Goal::Gap { "the gap of " } else { "" });
    let settings = counted(n, "setting");
    let settings = match metric.left_out.len() {
        0 => settings,
        _ => format!("{} of {settings}", metric.ranks.n_settings),
    };
    format!("Do the {k} methods differ in {gap}{} over {settings} ({goal})?", metric.metric)
}

struct About {
    level: f64,
    family: Family,
    alternative: Alternative,
    /// Metrics with Friedman's test.
    n_tested: usize,
}

impl About {
    fn of_ranks(&self, metric: &MetricTests) -> Vec<String> {
        let ranks = &metric.ranks;
        let settings = counted(ranks.n_settings, "setting");
        if let Some(tested) = &ranks.tested {
            return self.of_tested(metric, tested);
        }
        vec![match ranks.untested {
            Some(Untested::NoSetting) => {
                format!("No setting has a value of all {} methods, so that none can be ranked.", metric.methods.len())
            }
            Some(Untested::AllTied) => format!("All methods tie in every one of {settings}: there is nothing to test."),
            Some(Untested::FewSettings) | None => format!(
                "Friedman's test is not meant for so few settings ({}, expected at least {}): the ranks are shown alone, \
                 and say nothing about chance.",
                ranks.n_settings,
                super::FEWEST_SETTINGS
            ),
        }]
    }

    fn of_tested(&self, metric: &MetricTests, tested: &Tested) -> Vec<String> {
        let settings = counted(metric.ranks.n_settings, "setting");
        let p = p_relation(tested.friedman.p_value);
        let adjusted = tested.friedman_p_holm.map(|p_holm| {
            format!(", after Holm's adjustment for {} p {}", counted(self.n_tested, "metric"), p_relation(p_holm))
        });
        // The text names the one that decides where they differ.
        let deciding = if self.family == Family::Table { adjusted.clone().unwrap_or_default() } else { String::new() };
        let given = format!("(p {p}{deciding}, {settings}, {} methods)", metric.methods.len());
        let mut said = vec![if tested.rejects {
            format!("Friedman rejects equal ranks {given}: at least two methods differ. {}", self.apart(metric, tested))
        } else {
            format!(
                "Friedman does not reject equal ranks {given}: no difference between methods is shown, and Nemenyi's p \
                 values of pairs are no findings."
            )
        }];
        if let Some(p_holm) = tested.friedman_p_holm.filter(|_| self.family == Family::Metric && tested.rejects) {
            let holds = if p_holm <= self.level { "it still rejects" } else { "it no longer rejects" };
            said.push(format!(
                "Holm's adjustment for the {} of the table gives p {}: {holds}.",
                counted(self.n_tested, "metric"),
                p_relation(p_holm)
            ));
        }
        said
    }

    /// The pairs that Nemenyi's test finds apart.
    fn apart(&self, metric: &MetricTests, tested: &Tested) -> String {
        let k = metric.methods.len();
        let pairs = (0..k).flat_map(|i| (i + 1..k).map(move |j| (i, j)));
        let ranks = &metric.ranks.average_ranks;
        let apart: Vec<String> = pairs
            .map(|(i, j)| if ranks[i] <= ranks[j] { (i, j) } else { (j, i) })
            .filter(|(i, j)| tested.nemenyi_p[*i][*j] < self.level)
            .map(|(better, worse)| {
                let p = p_relation(tested.nemenyi_p[better][worse]);
                format!("{} ranks better than {} (p {p})", metric.methods[better], metric.methods[worse])
            })
            .collect();
        if apart.is_empty() {
            return "Nemenyi's test finds no two of them apart.".to_owned();
        }
        format!("Nemenyi's test: {}.", shortened(apart))
    }

    fn of_pairs(&self, metric: &MetricTests, n_family: usize) -> String {
        let tested: Vec<&PairTest> = metric.pairs.iter().filter(|pair| pair.test.is_some()).collect();
        let against = if metric.pairs.len() < metric.methods.len() {
            format!("against {}", metric.base)
        } else {
            "of all pairs".to_owned()
        };
        let Some(smallest) = tested.iter().min_by(|a, b| p_of(a).total_cmp(&p_of(b))) else {
            return format!("There is no pair of values for signed-rank tests {against}.");
        };
        let family = format!("Signed-rank tests {against}, Holm over {}", counted(n_family, "test"));
        let p = |pair: &PairTest| {
            format!("p {}, after Holm p {}", p_relation(p_of(pair)), p_relation(pair.p_holm.unwrap_or(1.0)))
        };
        let differs = |pair: &&&PairTest| pair.p_holm.is_some_and(|p_holm| p_holm <= self.level);
        let found: Vec<String> = tested
            .iter()
            .filter(differs)
            .map(|pair| {
                let median = short(pair.median_difference.unwrap_or(0.0));
                format!("{} minus {} has the median {median} ({})", pair.first, pair.second, p(pair))
            })
            .collect();
        if !found.is_empty() {
            return format!("{family}: {}.", shortened(found));
        }
        let pair = format!("{} minus {}: {}", smallest.first, smallest.second, p(smallest));
        format!("{family}: none differs (smallest, {pair}).{}", self.out_of_reach(&tested, n_family))
    }

    /// Says if the pairs are too few for any p value at the level. Those without a difference are dropped by the test.
    fn out_of_reach(&self, tested: &[&PairTest], n_family: usize) -> String {
        let most_of = |count: fn(&PairTest) -> usize| tested.iter().map(|pair| count(pair)).max().unwrap_or(0);
        let (n_pairs, most) = (most_of(|pair| pair.n_pairs), most_of(|pair| pair.n_pairs - pair.n_zero));
        let sides = if self.alternative == Alternative::TwoSided { 2.0 } else { 1.0 };
        let smallest = (sides * 0.5_f64.powi(i32::try_from(most).unwrap_or(i32::MAX))).min(1.0);
        if smallest * n_family as f64 <= self.level {
            return String::new();
        }
        let pairs = counted(most, "pair");
        let pairs = if most < n_pairs { format!("{pairs} whose values differ") } else { pairs };
        format!(
            " With {pairs} no p can be below {}, which is more than {} after the adjustment: these tests cannot find a \
             difference.",
            short(smallest),
            short(self.level)
        )
    }
}

/// A list, cut off after its beginning if it is long; the tables have everything.
fn shortened(mut items: Vec<String>) -> String {
    let rest = items.len().saturating_sub(MOST_NAMED);
    if rest > 1 {
        items.truncate(MOST_NAMED);
        items.push(format!("{rest} more"));
    }
    list(&items)
}

fn p_of(pair: &PairTest) -> f64 {
    pair.test.map_or(1.0, |test| test.p_value)
}
