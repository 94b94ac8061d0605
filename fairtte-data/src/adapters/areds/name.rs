//! File names of the AREDS photographs: eye, visit, field and stereo side.
//!
//! The name is split into words at every character that is neither letter nor digit. The first word is the identity (a
//! directory number, or `ID2` in re-packed copies), the second the visit in half-years; the others are read as a set,
//! because copies differ in their order: `F1` `F2` `F3` (field; 2 is the macula), `RE` `LE` (eye), `LS` `RS` (stereo
//! side), `REF` (reflex image, not a photograph of the retina). Case does not matter, other words are ignored.
//!
//! Source: names in public code and in the public documentation of NCBI (`59011/00/59011 00 F2 RE LS.jpg`,
//! `2419_24_RE_F2_LS.jpg`, `1000/1000_06_F2_RE_LS.jpg`); folders in front of the name are ignored.

use std::fmt;

/// Which eye.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Eye {
    /// `RE`.
    Right,
    /// `LE`.
    Left,
}

impl fmt::Display for Eye {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Right => "RE",
            Self::Left => "LE",
        })
    }
}

/// Which photograph of a stereo pair; the order is the order of preference where one is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// `LS`.
    Left,
    /// `RS`.
    Right,
    /// The name gives no side.
    Unstated,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "LS",
            Self::Right => "RS",
            Self::Unstated => "no side",
        })
    }
}

/// What the picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// `F1`, `F2` or `F3`; field 2 is centred on the macula.
    Field(u8),
    /// `REF`.
    Reflex,
    /// The name gives no field.
    Unstated,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(field) => write!(f, "F{field}"),
            Self::Reflex => f.write_str("REF"),
            Self::Unstated => f.write_str("no field"),
        }
    }
}

/// How a picture is stored; the order is the order of preference among repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// `.jpg`, `.jpeg`.
    Jpeg,
    /// `.png`.
    Png,
    /// `.tif`, `.tiff`.
    Tiff,
    /// `.bmp`.
    Bmp,
    /// `.dng`.
    Dng,
}

impl Ending {
    /// The kind of picture given by the ending of `file_name`, ignoring case.
    pub fn of(file_name: &str) -> Option<Self> {
        let (_, ending) = file_name.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "jpg" | "jpeg" => Some(Self::Jpeg),
            "png" => Some(Self::Png),
            "tif" | "tiff" => Some(Self::Tiff),
            "bmp" => Some(Self::Bmp),
            "dng" => Some(Self::Dng),
            _ => None,
        }
    }
}

/// The parsed name of one picture. A name with field 2 also has a visit and an eye.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageName {
    /// First word, unchanged: number of the image directory, or `ID2`.
    pub identity: String,
    /// Half-years since baseline, 0 to 99.
    pub visit: Option<u8>,
    /// Which eye.
    pub eye: Option<Eye>,
    /// What the picture shows.
    pub view: View,
    /// Which photograph of the stereo pair.
    pub side: Side,
    /// How the picture is stored.
    pub ending: Ending,
    /// Words without a meaning here, such as the `2` of a second copy.
    pub n_other_words: usize,
}

/// The reason why a name cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadableName {
    /// The name starts with a dot, like the metadata files that macOS writes (`._59011 00 F2 RE LS.jpg`).
    Hidden,
    /// The ending is not that of a picture.
    Ending,
    /// The first word is not an identity.
    Identity,
    /// Field 2, but the second word is not a visit.
    Visit,
    /// Field 2, but no eye.
    Eye,
    /// Two words contradict each other.
    Contradiction(String, String),
}

impl fmt::Display for UnreadableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => f.write_str("the file name starts with a dot, expected the name of a photograph"),
            Self::Ending => f.write_str("the file name does not end in .jpg, .jpeg, .png, .tif, .tiff, .bmp or .dng"),
            Self::Identity => f.write_str("the file name does not start with a word that holds a digit"),
            Self::Visit => f.write_str("the second word of the file name is no visit, expected one or two digits"),
            Self::Eye => f.write_str("the file name holds neither RE nor LE"),
            Self::Contradiction(one, other) => {
                write!(f, "the file name holds \"{one}\" and \"{other}\", expected one of the two")
            }
        }
    }
}

/// Reads the name of the picture at `path` (folders may be separated by `/` or `\`).
///
/// A picture that is not of field 2 may lack visit and eye, because it is left out anyway.
///
/// # Errors
/// [`UnreadableName`] if the name is not that of a picture, has no identity, contradicts itself, or has field 2 without
/// a visit or an eye.
///
/// ```
/// use fairtte_data::adapters::areds::{Eye, Side, View, parse_image_name};
///
/// let name = parse_image_name("2419_24_re_F2_LS.JPG").unwrap();
/// assert_eq!((name.identity.as_str(), name.visit, name.eye), ("2419", Some(24), Some(Eye::Right)));
/// assert_eq!((name.view, name.side), (View::Field(2), Side::Left));
/// ```
pub fn parse_image_name(path: &str) -> Result<ImageName, UnreadableName> {
    let file_name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    if file_name.starts_with('.') {
        return Err(UnreadableName::Hidden);
    }
    let ending = Ending::of(file_name).ok_or(UnreadableName::Ending)?;
    let stem = file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem);
    let mut words = stem.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let identity = words.next().filter(|word| word.chars().any(|c| c.is_ascii_digit()) && keyword(word).is_none());
    let identity = identity.ok_or(UnreadableName::Identity)?.to_owned();
    let mut said = Said::default();
    let mut visit = None;
    for (position, word) in words.enumerate() {
        match keyword(word) {
            Some(keyword) => said.add(keyword, word)?,
            None if position == 0 && parse_visit(word).is_some() => visit = parse_visit(word),
            None => said.n_other_words += 1,
        }
    }
    let view = match (said.reflex, said.field) {
        (true, _) => View::Reflex,
        (false, Some((field, _))) => View::Field(field),
        (false, None) => View::Unstated,
    };
    let eye = said.eye.map(|(eye, _)| eye);
    if view == View::Field(2) {
        visit.ok_or(UnreadableName::Visit)?;
        eye.ok_or(UnreadableName::Eye)?;
    }
    let side = said.side.map_or(Side::Unstated, |(side, _)| side);
    Ok(ImageName { identity, visit, eye, view, side, ending, n_other_words: said.n_other_words })
}

#[derive(Clone, Copy)]
enum Keyword {
    Field(u8),
    Reflex,
    Eye(Eye),
    Side(Side),
}

fn keyword(word: &str) -> Option<Keyword> {
    let is = |name: &str| word.eq_ignore_ascii_case(name);
    match () {
        () if is("F1") => Some(Keyword::Field(1)),
        () if is("F2") => Some(Keyword::Field(2)),
        () if is("F3") => Some(Keyword::Field(3)),
        () if is("REF") || is("REFLEX") => Some(Keyword::Reflex),
        () if is("RE") => Some(Keyword::Eye(Eye::Right)),
        () if is("LE") => Some(Keyword::Eye(Eye::Left)),
        () if is("LS") => Some(Keyword::Side(Side::Left)),
        () if is("RS") => Some(Keyword::Side(Side::Right)),
        () => None,
    }
}

/// The keywords of one name, each with the word it was read from.
#[derive(Default)]
struct Said<'a> {
    field: Option<(u8, &'a str)>,
    eye: Option<(Eye, &'a str)>,
    side: Option<(Side, &'a str)>,
    reflex: bool,
    n_other_words: usize,
}

impl<'a> Said<'a> {
    fn add(&mut self, keyword: Keyword, word: &'a str) -> Result<(), UnreadableName> {
        match keyword {
            Keyword::Field(field) => set(&mut self.field, field, word),
            Keyword::Eye(eye) => set(&mut self.eye, eye, word),
            Keyword::Side(side) => set(&mut self.side, side, word),
            Keyword::Reflex => {
                self.reflex = true;
                Ok(())
            }
        }
    }
}

fn set<'a, T: PartialEq>(slot: &mut Option<(T, &'a str)>, value: T, word: &'a str) -> Result<(), UnreadableName> {
    match slot {
        Some((known, before)) if *known != value => {
            Err(UnreadableName::Contradiction((*before).to_owned(), word.to_owned()))
        }
        _ => {
            *slot = Some((value, word));
            Ok(())
        }
    }
}

/// One or two digits.
fn parse_visit(word: &str) -> Option<u8> {
    let digits = word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    if digits { word.parse().ok() } else { None }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field_2(path: &str) -> (String, u8, Eye, Side) {
        let name = parse_image_name(path).unwrap();
        assert_eq!(name.view, View::Field(2), "{path}");
        (name.identity, name.visit.unwrap(), name.eye.unwrap(), name.side)
    }

    #[test]
    fn every_documented_style_is_read() {
        let styles = [
            ("59011/00/59011 00 F2 RE LS.jpg", ("59011", 0, Eye::Right, Side::Left)),
            ("59011/04/59011 04 F2 LE RS.JPG", ("59011", 4, Eye::Left, Side::Right)),
            ("2419_24_RE_F2_LS.jpg", ("2419", 24, Eye::Right, Side::Left)),
            ("1000/1000_06_F2_RE_LS.jpg", ("1000", 6, Eye::Right, Side::Left)),
            ("0007-5-ls-f2-le.Tif", ("0007", 5, Eye::Left, Side::Left)),
            ("a\\b\\0007  05  F2 LE.dng", ("0007", 5, Eye::Left, Side::Unstated)),
            ("RE F1 LS/12 08 F2 LE RS.tiff", ("12", 8, Eye::Left, Side::Right)),
        ];
        for (path, (identity, visit, eye, side)) in styles {
            assert_eq!(field_2(path), (identity.to_owned(), visit, eye, side), "{path}");
        }
    }

    #[test]
    fn other_fields_and_reflex_images_are_told_from_field_2_even_if_incomplete() {
        for (path, view, eye) in [
            ("59011 00 F1 LE LS.jpg", View::Field(1), Some(Eye::Left)),
            ("59011 00 F3.jpg", View::Field(3), None),
            ("59016 06 REF RE.jpg", View::Reflex, Some(Eye::Right)),
            ("59016 06 F2 RE LS ref.jpg", View::Reflex, Some(Eye::Right)),
            ("59016 ref.jpg", View::Reflex, None),
            ("59011 00 RE LS.jpg", View::Unstated, Some(Eye::Right)),
            ("59011 00 F4 RE LS.jpg", View::Unstated, Some(Eye::Right)),
        ] {
            let name = parse_image_name(path).unwrap();
            assert_eq!((name.view, name.eye), (view, eye), "{path}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let contradiction = |a: &str, b: &str| UnreadableName::Contradiction(a.to_owned(), b.to_owned());
        for (path, why) in [
            ("", UnreadableName::Ending),
            ("Thumbs.db", UnreadableName::Ending),
            ("59011 00 F2 RE LS", UnreadableName::Ending),
            ("59011 00 F2 RE LS.jpg.part", UnreadableName::Ending),
            ("59011/00/._59011 00 F2 RE LS.jpg", UnreadableName::Hidden),
            (".jpg", UnreadableName::Hidden),
            ("_.jpg", UnreadableName::Identity),
            ("F2 00 RE LS.jpg", UnreadableName::Identity),
            ("fundus photo.jpg", UnreadableName::Identity),
            ("59011 F2 RE LS.jpg", UnreadableName::Visit),
            ("59011 RE 00 F2 LS.jpg", UnreadableName::Visit),
            ("59011 100 F2 RE LS.jpg", UnreadableName::Visit),
            ("59011 -1 F2 LS.jpg", UnreadableName::Eye),
            ("59011 00 F2 LS.jpg", UnreadableName::Eye),
            ("59011 00 F2 RE le LS.jpg", contradiction("RE", "le")),
            ("59011 00 F2 F1 RE.jpg", contradiction("F2", "F1")),
            ("59011 00 F2 RE LS RS.jpg", contradiction("LS", "RS")),
        ] {
            assert_eq!(parse_image_name(path), Err(why), "{path}");
        }
        let message = contradiction("RE", "le").to_string();
        assert_eq!(message, "the file name holds \"RE\" and \"le\", expected one of the two");
    }

    #[test]
    fn words_that_mean_nothing_are_counted_and_repeated_words_are_not_a_contradiction() {
        let name = parse_image_name("59011 00 F2 RE LS re (2) copy.jpg").unwrap();
        assert_eq!((name.n_other_words, name.eye), (2, Some(Eye::Right)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(path in "\\PC{0,40}") {
            let _ = parse_image_name(&path);
        }

        #[test]
        fn the_order_of_the_words_after_the_visit_and_the_separator_do_not_matter(
            order in Just(vec!["F2", "LE", "RS"]).prop_shuffle(),
            separator in prop::sample::select(vec!["_", " ", "-", "__", " - "]),
            visit in 0_u8..100,
        ) {
            let path = format!("59011{separator}{visit:02}{separator}{}.jpg", order.join(separator));
            prop_assert_eq!(field_2(&path), ("59011".to_owned(), visit, Eye::Left, Side::Right));
        }
    }
}
