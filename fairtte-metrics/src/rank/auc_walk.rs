//! The order in which the AUC at one time visits its controls and cases: by falling S(t), with the classes of tied
//! predictions marked.

/// A list of [`Step`]s, one per control and case.
#[derive(Clone, Debug)]
pub(crate) struct Walk(Vec<Step>);

/// A sample's place in the order, whether it is a case, and whether a new class of tied predictions begins with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step(u32);

impl Step {
    const NEW_CLASS: u32 = 1 << 31;
    const CASE: u32 = 1 << 30;

    fn new(place: u32, is_case: bool, starts_class: bool) -> Self {
        assert!(place < Self::CASE, "fewer than 2^30 samples");
        Self(place | if is_case { Self::CASE } else { 0 } | if starts_class { Self::NEW_CLASS } else { 0 })
    }

    #[inline]
    pub(crate) fn place(self) -> usize {
        (self.0 & !(Self::NEW_CLASS | Self::CASE)) as usize
    }

    #[inline]
    pub(crate) fn is_case(self) -> bool {
        self.0 & Self::CASE != 0
    }

    #[inline]
    fn starts_class(self) -> bool {
        self.0 & Self::NEW_CLASS != 0
    }
}

impl Walk {
    /// `predictions` in [0, 1], in order of the samples; `is_case` is `None` for a sample that is neither case nor control.
    pub(crate) fn new(predictions: &[f64], is_case: &[Option<bool>], tolerance: f64) -> Self {
        // The packages compare 1 - S, whose rounding decides about differences close to the tolerance.
        let risks: Vec<f64> = predictions.iter().map(|prediction| 1.0 - prediction).collect();
        let mut steps = Vec::with_capacity(predictions.len());
        let (mut before, mut starts) = (f64::NEG_INFINITY, false);
        for (risk, place) in rising(&risks) {
            // Samples that are neither case nor control link those on both sides of them, as in scikit-survival.
            starts |= risk - before > tolerance;
            before = risk;
            if let Some(is_case) = is_case[place as usize] {
                steps.push(Step::new(place, is_case, starts));
                starts = false;
            }
        }
        steps.shrink_to_fit();
        Self(steps)
    }

    /// All steps, by falling S(t).
    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The classes of tied predictions, by falling S(t).
    #[inline]
    pub(crate) fn classes(&self) -> impl Iterator<Item = &[Step]> {
        self.0.chunk_by(|_, next| !next.starts_class())
    }
}

/// Numbers in [0, 1] in rising order, each with its place.
///
/// They are distributed over half as many equally wide buckets between the lowest and the highest, and each bucket is
/// sorted: O(n) for numbers that are spread out, O(n log n) for any.
fn rising(numbers: &[f64]) -> Vec<(f64, u32)> {
    let n_buckets = numbers.len() / 2 + 1;
    let (low, high) = numbers.iter().fold((1.0_f64, 0.0_f64), |(low, high), &x| (low.min(x), high.max(x)));
    // Not above the number of buckets by more than a rounding, and finite also for a range of one subnormal step.
    let scale = if high > low { (n_buckets as f64 / (high - low)).min(f64::MAX) } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a count")]
    let bucket = |number: f64| (((number - low) * scale) as usize).min(n_buckets - 1);
    let mut ends = vec![0_u32; n_buckets + 1];
    for &number in numbers {
        ends[bucket(number) + 1] += 1;
    }
    for k in 0..n_buckets {
        ends[k + 1] += ends[k];
    }
    // Distributing the numbers moves the start of every bucket to its end, which is the start of the next.
    let mut sorted = vec![(0.0, 0); numbers.len()];
    for (&number, place) in numbers.iter().zip(0..) {
        let next = &mut ends[bucket(number)];
        sorted[*next as usize] = (number, place);
        *next += 1;
    }
    let mut start = 0;
    for &end in &ends[..n_buckets] {
        let end = end as usize;
        if end > start + 1 {
            sorted[start..end].sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        }
        start = end;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rank::TIE_TOLERANCE;

    #[test]
    fn near_ties_form_chains_like_those_of_scikit_survival() {
        let walk = Walk::new(
            &[0.5 + 1.6e-8, 0.5, 0.5 + 0.8e-8, 0.6, 0.4],
            &[true, true, false, false, false].map(Some),
            TIE_TOLERANCE,
        );
        let places = |class: &[Step]| class.iter().map(|step| step.place()).collect::<Vec<_>>();
        let classes: Vec<Vec<usize>> = walk.classes().map(places).collect();
        assert_eq!(classes, [vec![3], vec![0, 2, 1], vec![4]]);
    }

    proptest! {
        #[test]
        fn dealing_into_buckets_sorts(
            numbers in prop::collection::vec(prop_oneof![0.0..=1.0_f64, Just(0.0), Just(1.0), 0.0..1e-9_f64], 0..200)
        ) {
            let sorted = rising(&numbers);
            prop_assert!(sorted.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            let mut places: Vec<u32> = sorted.iter().map(|pair| pair.1).collect();
            prop_assert!(sorted.iter().all(|&(number, place)| number.to_bits() == numbers[place as usize].to_bits()));
            places.sort_unstable();
            prop_assert_eq!(places, (0..).take(numbers.len()).collect::<Vec<u32>>());
        }
    }
}
