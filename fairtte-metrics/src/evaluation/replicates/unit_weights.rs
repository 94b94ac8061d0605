//! The weights of a unit in every lane, each in 16 bits, in a byte, or in a bit.
//!
//! Weights of 0 and 1 alone are those of relabelled groups and of leave-out samples.

use super::{LANES, LaneWeights};

/// The weights of a unit in every lane.
pub(super) trait UnitWeights: Copy + Send + Sync {
    /// How often the unit occurs in a lane.
    fn count(&self, lane: usize) -> u16;

    /// A part of the value, to load it.
    fn touch(&self) -> u32;
}

/// A bit per lane.
impl UnitWeights for u32 {
    #[inline(always)]
    fn count(&self, lane: usize) -> u16 {
        u16::from((self >> lane) & 1 == 1)
    }

    #[inline(always)]
    fn touch(&self) -> u32 {
        *self
    }
}

impl<W: Copy + Into<u16> + Send + Sync> UnitWeights for [W; LANES] {
    #[inline(always)]
    fn count(&self, lane: usize) -> u16 {
        self[lane].into()
    }

    #[inline(always)]
    fn touch(&self) -> u32 {
        u32::from(self[0].into())
    }
}

/// The weights as bits, if all are 0 or 1.
pub(super) fn as_bits(rows: impl Iterator<Item = LaneWeights>) -> Option<Vec<u32>> {
    let bits = |row: LaneWeights| {
        let bit = |(lane, weight): (usize, &u16)| u32::from(*weight == 1) << lane;
        row.iter().all(|weight| *weight <= 1).then(|| row.iter().enumerate().map(bit).sum())
    };
    rows.map(bits).collect()
}

/// The weights as a byte each, if they fit.
pub(super) fn as_bytes(rows: impl Iterator<Item = LaneWeights>) -> Option<Vec<[u8; LANES]>> {
    let bytes = |row: LaneWeights| {
        let mut bytes = [0; LANES];
        for (byte, weight) in bytes.iter_mut().zip(row) {
            *byte = u8::try_from(weight).ok()?;
        }
        Some(bytes)
    };
    rows.map(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_holds_the_same_weights_or_is_refused() {
        let row = |largest: u16| -> LaneWeights {
            std::array::from_fn(|lane| if lane % 5 == 2 { largest } else { u16::from(lane % 3 == 0) })
        };
        let counts = |row: &dyn Fn(usize) -> u16| (0..LANES).map(row).collect::<Vec<u16>>();
        for (largest, has_bits, has_bytes) in
            [(1, true, true), (2, false, true), (255, false, true), (256, false, false)]
        {
            let rows = [row(0), row(largest)];
            let (bits, bytes) = (as_bits(rows.into_iter()), as_bytes(rows.into_iter()));
            assert_eq!((bits.is_some(), bytes.is_some()), (has_bits, has_bytes), "{largest}");
            for place in 0..2 {
                let expected = rows[place].to_vec();
                assert_eq!(counts(&|lane| rows[place].count(lane)), expected);
                if let Some(bits) = &bits {
                    assert_eq!(counts(&|lane| bits[place].count(lane)), expected);
                }
                if let Some(bytes) = &bytes {
                    assert_eq!(counts(&|lane| bytes[place].count(lane)), expected);
                }
            }
        }
    }
}
