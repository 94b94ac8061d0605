//! Folds of cross-validation that keep the samples of a subject together.

use std::collections::BTreeMap;

use rand::seq::SliceRandom as _;

use crate::{GroupId, SubjectId, seeds};

/// Fold of every row. The subjects of every group are shuffled (`stream`: seed and name of the random numbers) and dealt
/// out in turn, so that all folds have about the same share of every group; a subject with samples in several groups is
/// dealt with the first of them. Subjects in no group are in fold 0, and so are all for fewer than two folds.
pub fn folds_by_subject(
    subjects: &[SubjectId],
    membership: &[Option<GroupId>],
    n_folds: usize,
    (seed, stream): (u64, &str),
) -> Vec<usize> {
    let mut group_of: BTreeMap<&SubjectId, GroupId> = BTreeMap::new();
    for (subject, group) in subjects.iter().zip(membership) {
        if let Some(group) = group {
            let kept = group_of.entry(subject).or_insert(*group);
            *kept = (*kept).min(*group);
        }
    }
    let mut by_group: BTreeMap<GroupId, Vec<&SubjectId>> = BTreeMap::new();
    for (subject, group) in group_of {
        by_group.entry(group).or_default().push(subject);
    }
    let mut fold_of: BTreeMap<&SubjectId, usize> = BTreeMap::new();
    for (group, mut members) in by_group {
        members.shuffle(&mut seeds::stream(seed, stream, &[u64::from(group.0)]));
        fold_of.extend(members.into_iter().enumerate().map(|(place, subject)| (subject, place % n_folds.max(1))));
    }
    subjects.iter().map(|subject| fold_of.get(subject).copied().unwrap_or(0)).collect()
}
