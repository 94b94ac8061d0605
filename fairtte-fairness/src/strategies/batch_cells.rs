//! Cells of group x stratum within one batch, over which the adversarial strategies take their means.
//!
//! A sample without group or stratum is in no cell and has coefficient 0. A cell without a sample contributes nothing.

use burn::tensor::{Int, Tensor, TensorData};
use fairtte_metrics::GroupId;

/// Which samples of a batch are in which cell.
#[derive(Clone, Debug)]
pub(crate) struct BatchCells {
    /// (stratum, group) of every sample, `[batch]`.
    cell: Vec<Option<(usize, usize)>>,
    /// Number of samples, `[n_strata][n_groups]`.
    counts: Vec<Vec<usize>>,
}

impl BatchCells {
    /// Cells of `groups` and `strata`, both `[batch]`; a stratum at or above `n_strata` counts as none.
    pub(crate) fn new(
        groups: &[Option<GroupId>],
        strata: &[Option<usize>],
        (n_groups, n_strata): (usize, usize),
    ) -> Self {
        let mut counts = vec![vec![0; n_groups]; n_strata];
        let cell = |(group, stratum): (&Option<GroupId>, &Option<usize>)| {
            let (group, stratum) = (group.as_ref()?.index(), stratum.filter(|stratum| *stratum < n_strata)?);
            counts[stratum][group] += 1;
            Some((stratum, group))
        };
        let cell = groups.iter().zip(strata).map(cell).collect();
        Self { cell, counts }
    }

    /// Cells of groups alone: one stratum that every sample is in.
    pub(crate) fn of_groups(groups: &[Option<GroupId>], n_groups: usize) -> Self {
        Self::new(groups, &vec![Some(0); groups.len()], (n_groups, 1))
    }

    /// Number of samples of `group` in `stratum`.
    pub(crate) fn n(&self, stratum: usize, group: usize) -> usize {
        self.counts[stratum][group]
    }

    /// Number of samples, `[n_strata][n_groups]`.
    pub(crate) fn counts(&self) -> &[Vec<usize>] {
        &self.counts
    }

    /// Number of strata that may occur.
    pub(crate) fn n_strata(&self) -> usize {
        self.counts.len()
    }

    /// Groups without a sample in any cell.
    pub(crate) fn n_absent_groups(&self) -> usize {
        let n_groups = self.counts.first().map_or(0, Vec::len);
        (0..n_groups).filter(|group| self.counts.iter().all(|stratum| stratum[*group] == 0)).count()
    }

    /// Whether samples of two groups are present.
    pub(crate) fn can_compare(&self) -> bool {
        let n_groups = self.counts.first().map_or(0, Vec::len);
        n_groups - self.n_absent_groups() >= 2
    }

    /// Samples of `stratum` and the group of each.
    pub(crate) fn members(&self, stratum: usize) -> (Vec<usize>, Vec<usize>) {
        let cells = self.cell.iter().enumerate();
        cells.filter_map(|(i, cell)| cell.filter(|(of, _)| *of == stratum).map(|(_, group)| (i, group))).unzip()
    }

    /// `weight(stratum, group)` of every sample, `[batch]`; 0 for one in no cell.
    pub(crate) fn coefficients(&self, weight: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        self.cell.iter().map(|cell| cell.map_or(0.0, |(stratum, group)| weight(stratum, group))).collect()
    }

    /// Entry of its own group for every sample: `[batch, n_groups]` -> `[batch]`. For a sample in no cell it is that of the
    /// first group, to be multiplied by a coefficient of 0.
    pub(crate) fn own(&self, of_groups: Tensor<2>) -> Tensor<1> {
        let groups: Vec<usize> = self.cell.iter().map(|cell| cell.map_or(0, |(_, group)| group)).collect();
        own_column(of_groups, &groups)
    }
}

/// Entry `columns[i]` of every row i: `[n, n_columns]` -> `[n]`.
pub(crate) fn own_column(rows: Tensor<2>, columns: &[usize]) -> Tensor<1> {
    let index = indices(columns, &rows.device()).reshape([columns.len(), 1]);
    rows.gather(1, index).flatten(0, 1)
}

/// Whole numbers on a device, `[n]`.
pub(crate) fn indices(values: &[usize], device: &burn::tensor::Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.iter().map(|value| i64::try_from(*value).expect("an index is small")).collect();
    let n = values.len();
    Tensor::from_data(TensorData::new(values, [n]), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Option<GroupId> = Some(GroupId(0));
    const B: Option<GroupId> = Some(GroupId(1));

    #[test]
    fn samples_without_group_or_stratum_are_in_no_cell() {
        let cells = BatchCells::new(&[A, B, None, B], &[Some(0), None, Some(0), Some(1)], (3, 2));
        assert_eq!((cells.n(0, 0), cells.n(0, 1), cells.n(1, 1)), (1, 0, 1));
        assert_eq!(
            cells.coefficients(|stratum, group| 1.0 + 10.0 * stratum as f64 + group as f64),
            [1.0, 0.0, 0.0, 12.0]
        );
        assert_eq!(cells.members(1), (vec![3], vec![1]));
        assert_eq!((cells.n_absent_groups(), cells.can_compare()), (1, true));
    }

    #[test]
    fn one_group_cannot_be_compared() {
        assert!(!BatchCells::of_groups(&[A, None, A], 2).can_compare());
        assert!(!BatchCells::of_groups(&[], 2).can_compare());
        assert!(!BatchCells::new(&[A, B], &[Some(0), None], (2, 1)).can_compare());
    }

    #[test]
    fn a_stratum_that_is_not_asked_for_counts_as_none() {
        let cells = BatchCells::new(&[A, B], &[Some(0), Some(1)], (2, 1));
        assert_eq!(cells.coefficients(|_, _| 1.0), [1.0, 0.0]);
    }
}
