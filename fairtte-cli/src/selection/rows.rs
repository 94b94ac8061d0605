//! The rows of a block and the choice in each: from all trainings, within each training seed, and in every bootstrap
//! draw of trainings. Nothing here reads the test part.

use std::collections::{BTreeSet, HashMap};

use fairtte_metrics::resampling::draw_trainings;

use super::candidates::Candidate;
use super::pick::{Picked, Question};
use super::verdict::{Role, Rule};
use crate::CliError;

/// The candidates of one strategy in a block.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) strategy: String,
    /// Their indices.
    pub(super) candidates: Vec<usize>,
    /// Their training seeds, ascending.
    seeds: Vec<u64>,
}

/// One row with all choices for it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) role: Role,
    pub(super) strategy: String,
    pub(super) n_candidates: usize,
    pub(super) picked: Picked,
    /// By training seed.
    pub(super) of_seed: Vec<(u64, Picked)>,
    /// By bootstrap draw.
    pub(super) of_draw: Vec<Option<usize>>,
}

impl Row {
    /// All candidates that were chosen for something.
    pub(super) fn needed(&self) -> impl Iterator<Item = usize> {
        let of_seed = self.of_seed.iter().filter_map(|(_, picked)| picked.as_ref().ok());
        self.picked.as_ref().ok().into_iter().chain(of_seed).chain(self.of_draw.iter().flatten()).copied()
    }
}

impl Pool {
    /// The candidates of a strategy; `is_in_block` says which belong to the network and attribute.
    pub(super) fn new(all: &[Candidate], strategy: &str, is_in_block: impl Fn(&Candidate) -> bool) -> Self {
        let candidates: Vec<usize> =
            (0..all.len()).filter(|k| all[*k].strategy == strategy && is_in_block(&all[*k])).collect();
        let seeds: BTreeSet<u64> = candidates.iter().map(|k| all[*k].seed).collect();
        Self { strategy: strategy.to_owned(), candidates, seeds: seeds.into_iter().collect() }
    }

    pub(super) fn n_seeds(&self) -> usize {
        self.seeds.len()
    }

    fn of_seeds(&self, all: &[Candidate], seeds: &[u64]) -> Vec<usize> {
        self.candidates.iter().copied().filter(|k| seeds.contains(&all[*k].seed)).collect()
    }

    /// The candidates of the trainings at these positions of the list of seeds.
    fn drawn(&self, all: &[Candidate], places: &[usize]) -> Vec<usize> {
        let seeds: Vec<u64> = places.iter().map(|place| self.seeds[*place]).collect();
        self.of_seeds(all, &seeds)
    }
}

/// The data that the rows of a block are computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    pub(super) all: &'a [Candidate],
    pub(super) question: Question<'a>,
    pub(super) base: &'a Pool,
    pub(super) replicates: usize,
    pub(super) seed: u64,
}

impl Rows<'_> {
    /// The base row, with `fairest` the control row, and one for every other pool.
    pub(super) fn of(&self, others: &[Pool]) -> Result<Vec<Row>, CliError> {
        let mut rows = vec![self.row(Role::Base, self.base)?];
        if self.question.rule == Rule::Fairest {
            rows.push(self.row(Role::Control, self.base)?);
        }
        for pool in others {
            rows.push(self.row(Role::Strategy, pool)?);
        }
        Ok(rows)
    }

    fn row(&self, role: Role, pool: &Pool) -> Result<Row, CliError> {
        let of_seed = |seed: &u64| {
            let (own, base) = (pool.of_seeds(self.all, &[*seed]), self.base.of_seeds(self.all, &[*seed]));
            Ok((*seed, self.pick(role, &own, &base)?))
        };
        Ok(Row {
            role,
            strategy: pool.strategy.clone(),
            n_candidates: pool.candidates.len(),
            picked: self.pick(role, &pool.candidates, &self.base.candidates)?,
            of_seed: pool.seeds.iter().map(of_seed).collect::<Result<_, CliError>>()?,
            of_draw: self.draws(role, pool)?,
        })
    }

    fn pick(&self, role: Role, own: &[usize], base: &[usize]) -> Result<Picked, CliError> {
        let base = self.question.base(self.all, base)?;
        match role {
            Role::Base => Ok(base),
            Role::Control | Role::Strategy => self.question.like_the_others(self.all, own, &base),
        }
    }

    /// The choice in every draw of trainings; few sets of them differ, and the choice is made once for each set.
    fn draws(&self, role: Role, pool: &Pool) -> Result<Vec<Option<usize>>, CliError> {
        let mut known: HashMap<[Vec<usize>; 2], Option<usize>> = HashMap::new();
        let mut chosen = Vec::with_capacity(self.replicates);
        for replicate in 0..self.replicates {
            let places = [pool, self.base].map(|pool| draw_trainings(pool.seeds.len(), replicate, self.seed));
            if let Some(known) = known.get(&places) {
                chosen.push(*known);
                continue;
            }
            let picked =
                self.pick(role, &pool.drawn(self.all, &places[0]), &self.base.drawn(self.all, &places[1]))?.ok();
            known.insert(places, picked);
            chosen.push(picked);
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]
    use super::*;

    fn rows(all: &[Candidate], rule: Rule, tolerated_loss: f64) -> Vec<Row> {
        let pool = |strategy| Pool::new(all, strategy, |_| true);
        let metric = "c_td_antolini_strict";
        let question = Question { rule, attribute: "sex", metric, tolerated_loss, no_skill: None };
        Rows { all, question, base: &pool("erm"), replicates: 60, seed: 4 }.of(&[pool("sam")]).unwrap()
    }

    fn two_seeds() -> Vec<Candidate> {
        vec![
            Candidate::made_up("erm", 1, 0.80, 0.20),
            Candidate::made_up("erm", 1, 0.78, 0.10),
            Candidate::made_up("erm", 2, 0.70, 0.05),
            Candidate::made_up("sam", 1, 0.79, 0.30),
            Candidate::made_up("sam", 1, 0.60, 0.00),
            Candidate::made_up("sam", 2, 0.69, 0.01),
        ]
    }

    // 5 % below 0.80 is 0.76, and below 0.70 it is 0.665.
    #[test]
    fn the_control_is_the_base_under_the_rule_of_the_others() {
        let found = rows(&two_seeds(), Rule::Fairest, 0.05);
        let picked: Vec<(Role, Option<usize>)> = found.iter().map(|row| (row.role, row.picked.clone().ok())).collect();
        assert_eq!(picked, [(Role::Base, Some(0)), (Role::Control, Some(1)), (Role::Strategy, Some(3))]);
        let of_seeds = |row: &Row| row.of_seed.iter().map(|(_, picked)| picked.clone().ok()).collect::<Vec<_>>();
        // Within seed 2 the base has 0.70, so 0.69 is tolerated.
        assert_eq!(of_seeds(&found[0]), [Some(0), Some(2)]);
        assert_eq!(of_seeds(&found[1]), [Some(1), Some(2)]);
        assert_eq!(of_seeds(&found[2]), [Some(3), Some(5)]);
        let needed: BTreeSet<usize> = found.iter().flat_map(Row::needed).collect();
        assert_eq!(needed, BTreeSet::from([0, 1, 2, 3, 5]));
    }

    #[test]
    fn a_draw_chooses_among_its_trainings_and_beside_their_base() {
        let found = rows(&two_seeds(), Rule::Fairest, 0.05);
        for row in &found {
            assert_eq!(row.of_draw.len(), 60);
            let mut n_of_seed = [0, 0];
            for (replicate, chosen) in row.of_draw.iter().enumerate() {
                // With two seeds a draw has one of them.
                let place = draw_trainings(2, replicate, 4)[0];
                assert_eq!(*chosen, row.of_seed[place].1.clone().ok());
                n_of_seed[place] += 1;
            }
            assert!(n_of_seed.iter().all(|n| *n > 10), "{n_of_seed:?}");
        }
    }

    #[test]
    fn rules_that_treat_all_alike_need_no_control() {
        let found = rows(&two_seeds(), Rule::Overall, 0.05);
        let picked: Vec<(Role, Option<usize>)> = found.iter().map(|row| (row.role, row.picked.clone().ok())).collect();
        assert_eq!(picked, [(Role::Base, Some(0)), (Role::Strategy, Some(3))]);
    }

    #[test]
    fn what_loses_too_much_is_no_choice() {
        let mut all = two_seeds();
        all.truncate(3);
        all.push(Candidate::made_up("sam", 1, 0.759, 0.0));
        let found = rows(&all, Rule::Fairest, 0.05);
        assert_eq!(found[2].picked, Err("none is within the tolerated loss".to_owned()));
        assert!(found[2].of_draw.iter().any(Option::is_some), "within seed 2 the limit is lower");
        assert_eq!(rows(&all, Rule::Fairest, 0.06)[2].picked, Ok(3));
    }

    #[test]
    fn what_cannot_be_measured_is_the_reason_for_no_choice() {
        let mut all = two_seeds();
        all.truncate(4);
        let overall = &mut all[3].validation.metrics[0].overall;
        (overall.value, overall.undefined) = (None, Some("no comparable pair".to_owned()));
        let found = rows(&all, Rule::Overall, 0.05);
        assert_eq!(
            (&found[0].picked, &found[1].picked),
            (&Ok(0), &Err("utility is undefined: no comparable pair".to_owned()))
        );
        // One of two can be measured, and is out of reach.
        all.push(Candidate::made_up("sam", 1, 0.5, 0.0));
        assert_eq!(rows(&all, Rule::Fairest, 0.05)[2].picked, Err("none is within the tolerated loss".to_owned()));
    }
}
