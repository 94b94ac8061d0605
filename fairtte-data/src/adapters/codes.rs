//! Cells that the tables of several data sets write in the same way: missing values, whole numbers, sexes.

/// The cell, unless it denotes a missing value: empty, `-4` (not applicable), `-1` (confirmed missing), `NA`, `?`, `.`.
pub(super) fn present(cell: Option<&str>) -> Option<&str> {
    const MISSING: [&str; 11] = ["-4", "-4.0", "-1", "-1.0", "NA", "N/A", "nan", "null", "none", "?", "."];
    cell.map(str::trim).filter(|cell| !cell.is_empty() && !MISSING.iter().any(|code| code.eq_ignore_ascii_case(cell)))
}

/// A whole number >= 0, also as `04` and as `4.0`, which software without missing integers writes.
pub(super) fn whole_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    let is_number = !whole.is_empty() && whole.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { whole.parse().ok() } else { None }
}

/// `F` or `M`, also in words; anything else is neither.
pub(super) fn parse_sex(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "f" | "female" => Some("F"),
        "m" | "male" => Some("M"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_for_missing_are_no_values() {
        for text in ["", " ", "-4", "-1", "NA", "nan", "?", "-4.0", "."] {
            assert_eq!(present(Some(text)), None, "{text}");
        }
        assert_eq!((present(Some(" 0 ")), present(None)), (Some("0"), None));
    }

    #[test]
    fn numbers_that_other_software_rewrote_are_the_same_numbers() {
        let numbers = ["3", "3.0", "03", "12", "4.", "11.00", "255"].map(whole_number::<u8>);
        assert_eq!(numbers, [3, 3, 3, 12, 4, 11, 255].map(Some));
        for text in ["", ".", ".0", "4.1", "1e1", "+4", "-0", "-3", "0x4", "three", "256", "1:3", "٣"] {
            assert_eq!(whole_number::<u8>(text), None, "{text}");
        }
    }

    #[test]
    fn only_two_sexes_are_told_apart_and_the_rest_is_missing() {
        assert_eq!(["F", "male", "X", ""].map(parse_sex), [Some("F"), Some("M"), None, None]);
    }
}
