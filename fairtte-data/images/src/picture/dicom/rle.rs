//! Run-length coding of DICOM pixels (PS3.5 annex G): a header of 16 offsets, then one `PackBits` segment for each byte
//! of a sample, the highest byte first, and for each channel.

use super::super::unreadable;
use super::Layout;
use crate::Undecodable;

/// The samples in little endian, channel beside channel.
pub(super) fn decode(stream: &[u8], layout: &Layout) -> Result<Vec<u8>, Undecodable> {
    let short = || unreadable("the run-length coded DICOM pixels end in their header");
    let number = |index: usize| {
        let bytes = *stream.get(4 * index..).and_then(|rest| rest.first_chunk()).ok_or_else(short)?;
        Ok::<_, Undecodable>(u32::from_le_bytes(bytes) as usize)
    };
    let bytes_per_sample = layout.bits_allocated as usize / 8;
    let (found, expected) = (number(0)?, bytes_per_sample * layout.n_channels);
    if found != expected {
        return Err(unreadable(format!(
            "the number of segments of the run-length coded DICOM pixels is {found}, expected {expected}"
        )));
    }
    let n_pixels = layout.width * layout.height;
    let mut samples = vec![0; n_pixels * expected];
    for segment in 0..expected {
        let begin = number(segment + 1)?;
        let end = if segment + 1 < expected { number(segment + 2)? } else { stream.len() };
        let packed = stream.get(begin..end).ok_or_else(short)?;
        let (channel, byte) = (segment / bytes_per_sample, segment % bytes_per_sample);
        let offset = channel * bytes_per_sample + bytes_per_sample - 1 - byte;
        let mut places = samples.iter_mut().skip(offset).step_by(expected);
        let n_missing = unpack(packed, n_pixels, |value| {
            if let Some(place) = places.next() {
                *place = value;
            }
        });
        if n_missing > 0 {
            return Err(unreadable(format!(
                "a run-length segment lacks {n_missing} of {n_pixels} bytes: it is truncated"
            )));
        }
    }
    Ok(samples)
}

/// Passes on up to `n` unpacked bytes; returns how many are missing.
fn unpack(packed: &[u8], n: usize, mut put: impl FnMut(u8)) -> usize {
    let (mut left, mut at) = (n, 0);
    while left > 0 {
        let Some(control) = packed.get(at).copied() else { break };
        at += 1;
        if control < 128 {
            let literal = packed.get(at..).unwrap_or_default();
            let count = (usize::from(control) + 1).min(left).min(literal.len());
            literal[..count].iter().copied().for_each(&mut put);
            left -= count;
            at += usize::from(control) + 1;
        } else if control > 128 {
            let Some(value) = packed.get(at).copied() else { break };
            let count = (257 - usize::from(control)).min(left);
            (0..count).for_each(|_| put(value));
            left -= count;
            at += 1;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_runs_are_unpacked_and_missing_bytes_counted() {
        let unpacked = |packed: &[u8], n| {
            let mut bytes = Vec::new();
            (unpack(packed, n, |byte| bytes.push(byte)), bytes)
        };
        assert_eq!(unpacked(&[2, 7, 8, 9, 128, 254, 5], 6), (0, vec![7, 8, 9, 5, 5, 5]));
        assert_eq!(unpacked(&[254, 5], 2), (0, vec![5, 5]), "no more than wanted");
        assert_eq!(unpacked(&[5, 1, 2], 6), (4, vec![1, 2]));
        assert_eq!(unpacked(&[254], 3), (3, vec![]));
    }
}
