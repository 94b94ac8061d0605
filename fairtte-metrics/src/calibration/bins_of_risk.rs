//! Bins of nearly equal size of samples by predicted risk.

/// Cuts `order`, rows with `risk` in order, at the places of `ends` (ascending; the last is the number of rows). Samples of the same
/// risk stay in one bin: an end between two of them moves behind the last of them, so that no bin depends on the order of rows. Bins
/// that are left without rows are no bins.
pub(crate) fn cut_between_risks<'a>(
    order: &'a [usize],
    risk: &[f64],
    ends: impl IntoIterator<Item = usize>,
) -> Vec<&'a [usize]> {
    let mut bins = Vec::new();
    let mut begin = 0;
    for end in ends {
        let tied = |end: usize| risk[order[end - 1]].total_cmp(&risk[order[end]]).is_eq();
        let mut end = end.max(begin);
        while end > begin && end < order.len() && tied(end) {
            end += 1;
        }
        if end > begin {
            bins.push(&order[begin..end]);
            begin = end;
        }
    }
    bins
}

/// [`cut_between_risks`] into `n_bins` bins whose sizes differ by at most 1 where nothing is tied.
pub(crate) fn equal_bins<'a>(order: &'a [usize], risk: &[f64], n_bins: usize) -> Vec<&'a [usize]> {
    cut_between_risks(order, risk, (1..=n_bins).map(|bin| bin * order.len() / n_bins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_the_same_risk_are_in_one_bin_whatever_the_order_of_rows() {
        let risk = [0.1, 0.2, 0.2, 0.2, 0.3, 0.4];
        assert_eq!(equal_bins(&[0, 1, 2, 3, 4, 5], &risk, 3), [&[0, 1, 2, 3][..], &[4, 5][..]]);
        assert_eq!(equal_bins(&[0, 3, 1, 2, 4, 5], &risk, 2), [&[0, 3, 1, 2][..], &[4, 5][..]]);
        assert_eq!(equal_bins(&[0, 1, 2, 3, 4, 5], &risk, 6), [&[0][..], &[1, 2, 3], &[4], &[5]]);
        assert_eq!(equal_bins(&[1, 2, 3], &risk, 2), [&[1, 2, 3]]);
        assert_eq!(equal_bins(&[0, 1, 4, 5], &risk, 2), [&[0, 1], &[4, 5]]);
        assert_eq!(cut_between_risks(&[0, 1, 4], &risk, [2, 3]), [&[0, 1][..], &[4]]);
        assert!(equal_bins(&[], &risk, 3).is_empty());
    }
}
