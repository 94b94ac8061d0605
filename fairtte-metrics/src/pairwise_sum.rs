//! Sums whose rounding error grows with the logarithm of their length.
//!
//! The values are cut in halves down to blocks of at most 128, and a block is summed in eight running sums. `numpy`
//! 2.4.6 adds in the same order, so statistics that subtract two nearly equal means agree with packages based on it to
//! the last digits, where a plain running sum would not.

const LANES: usize = 8;
const BLOCK: usize = 128;

/// The sum of `values`; 0 for none.
pub(crate) fn pairwise_sum(values: &[f64]) -> f64 {
    if values.len() < LANES {
        return values.iter().sum();
    }
    if values.len() <= BLOCK {
        let mut sums = [0.0; LANES];
        let chunks = values.chunks_exact(LANES);
        let rest = chunks.remainder();
        for chunk in chunks {
            sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
        }
        let pair = |first: usize| sums[first] + sums[first + 1];
        return rest.iter().fold((pair(0) + pair(2)) + (pair(4) + pair(6)), |sum, value| sum + value);
    }
    let half = values.len() / 2;
    let (first, second) = values.split_at(half - half % LANES);
    pairwise_sum(first) + pairwise_sum(second)
}

/// The mean of `values`, which must not be empty.
pub(crate) fn pairwise_mean(values: &[f64]) -> f64 {
    pairwise_sum(values) / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_add_up_exactly_at_every_length() {
        for n in [0_u32, 1, 7, 8, 9, 127, 128, 129, 1000, 4099] {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(pairwise_sum(&values), f64::from(n) * f64::from(n + 1) / 2.0);
        }
    }

    #[test]
    fn the_order_of_additions_is_that_of_numpy() {
        // `(0.1 * numpy.arange(5003)).sum()`, numpy 2.4.6.
        let tenths: Vec<f64> = (0..5003).map(|k| 0.1 * f64::from(k)).collect();
        assert_eq!(pairwise_sum(&tenths), 1_251_250.299_999_999_8);
        assert_eq!(tenths.iter().sum::<f64>(), 1_251_250.3);
    }
}
