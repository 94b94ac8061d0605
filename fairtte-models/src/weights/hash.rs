//! The SHA-256 of a file, and the hash in its name.
//!
//! torchvision and timm publish files as `NAME-HASH.pth`, where `HASH` is the first eight hexadecimal digits of the SHA-256
//! of the file (`torch.hub.load_state_dict_from_url` with `check_hash`).

use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// SHA-256 of `bytes`, 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to text cannot fail
        text
    })
}

/// The digits of a hash at the end of the name of a published file, if it has them.
pub(super) fn published(path: &Path) -> Option<&str> {
    let (_, digits) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    let is_hash = digits.len() == 8 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let is_date = digits.bytes().all(|digit| digit.is_ascii_digit()); // true of one hash in 43
    (is_hash && !is_date).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_of_the_standard() {
        // FIPS 180-4, example of one block.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }

    #[test]
    fn only_eight_digits_with_a_letter_behind_the_last_dash_are_a_published_hash() {
        let published = |name: &str| published(Path::new(name)).map(str::to_owned);
        assert_eq!(published("w/r3d_18-b3b3357e.pth").as_deref(), Some("b3b3357e"));
        for name in
            ["r3d_18.pth", "resnet-18.pth", "a-b3b3357.pth", "a-B3B3357E.pth", "a-b3b3357ez.pth", "run-20240131.pth"]
        {
            assert_eq!(published(name), None, "{name}");
        }
    }
}
