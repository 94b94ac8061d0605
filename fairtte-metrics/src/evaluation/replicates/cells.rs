//! Which sums a sample belongs to: the whole sample, and one group of every attribute that is known for it.

use std::collections::HashMap;

use crate::ids::to_u32;
use crate::{GroupId, Groups};

/// The slices (the whole sample is slice 0, then every level of every attribute) and the cells that make them up.
pub(crate) struct Cells {
    n_slices: usize,
    /// Cell of every sample, in sorted order.
    cell_of: Vec<u32>,
    /// The slices that every cell is part of.
    slices_of: Vec<Vec<usize>>,
    /// First slice of every attribute.
    first_slice: Vec<usize>,
}

impl Cells {
    /// `order` is the sorted order of the rows.
    pub(crate) fn new(groups: &[Groups], order: &[u32]) -> Self {
        let mut first_slice = Vec::with_capacity(groups.len());
        let mut n_slices = 1;
        for attribute in groups {
            first_slice.push(n_slices);
            n_slices += attribute.levels().len();
        }
        let mut numbers: HashMap<Vec<Option<GroupId>>, u32> = HashMap::new();
        let mut slices_of = Vec::new();
        let cell_of = order.iter().map(|&row| {
            let levels: Vec<Option<GroupId>> = groups.iter().map(|groups| groups.membership()[row as usize]).collect();
            let next = to_u32(slices_of.len());
            *numbers.entry(levels).or_insert_with_key(|levels| {
                let known =
                    levels.iter().zip(&first_slice).filter_map(|(level, first)| Some(first + (*level)?.index()));
                slices_of.push(std::iter::once(0).chain(known).collect());
                next
            })
        });
        let cell_of = cell_of.collect();
        Self { n_slices, cell_of, slices_of, first_slice }
    }

    /// The cells of `n` samples without groups.
    pub(crate) fn whole(n: usize) -> Self {
        Self { n_slices: 1, cell_of: vec![0; n], slices_of: vec![vec![0]], first_slice: Vec::new() }
    }

    pub(crate) fn n_slices(&self) -> usize {
        self.n_slices
    }

    /// The slice of a level of an attribute.
    pub(crate) fn slice(&self, attribute: usize, level: usize) -> usize {
        self.first_slice[attribute] + level
    }

    pub(super) fn n_cells(&self) -> usize {
        self.slices_of.len()
    }

    #[inline(always)]
    pub(super) fn cell(&self, place: usize) -> usize {
        self.cell_of[place] as usize
    }

    #[inline(always)]
    pub(super) fn slices_at(&self, place: usize) -> &[usize] {
        &self.slices_of[self.cell(place)]
    }

    pub(super) fn slices_of(&self, cell: usize) -> &[usize] {
        &self.slices_of[cell]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_in_the_whole_and_in_one_level_of_every_known_attribute() {
        let sex =
            Groups::new("sex", vec!["F".into(), "M".into()], vec![Some(GroupId(1)), None, Some(GroupId(1))]).unwrap();
        let site =
            Groups::new("site", vec!["A".into(), "B".into()], [0, 1, 0].map(|k| Some(GroupId(k))).to_vec()).unwrap();
        let cells = Cells::new(&[sex, site], &[2, 1, 0]);
        assert_eq!((cells.n_slices(), cells.n_cells(), cells.slice(1, 1)), (5, 2, 4));
        assert_eq!(
            (cells.slices_at(0), cells.slices_at(1), cells.slices_at(2)),
            (&[0, 2, 3][..], &[0, 4][..], &[0, 2, 3][..])
        );
    }
}
