//! Drawn pictures and volumes with a disease of known severity in a body of known attributes, for experiments in which the truth
//! must be known: a [frontal chest film](film) and a [head MRI](volume).
//!
//! ```
//! use fairtte_images::drawn::{Attributes, Race, film};
//! use rand::SeedableRng as _;
//! use rand_chacha::ChaCha8Rng;
//!
//! let who = Attributes { female: true, age: 64, race: Race::Asian };
//! let [mut body, mut image] = [1, 2].map(ChaCha8Rng::seed_from_u64);
//! let drawn = film([64, 64], who, 1.5, &mut body, &mut image);
//! assert_eq!((drawn.brightness.len(), drawn.disease.len()), (64 * 64, 64 * 64));
//! ```

mod film;
mod shading;
mod volume;

pub use film::{Film, film};
pub use volume::{Volume, volume};

/// The visible attributes of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Whether the person is a woman.
    pub female: bool,
    /// Years, 21 to 89.
    pub age: u32,
    /// Race; its trace in an image is an arbitrary mark.
    pub race: Race,
}

impl Attributes {
    /// `F` or `M`.
    pub fn sex(self) -> &'static str {
        if self.female { "F" } else { "M" }
    }
}

/// The races of a simulated cohort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Race {
    /// White.
    White,
    /// Black.
    Black,
    /// Asian.
    Asian,
    /// Any other.
    Other,
}

impl Race {
    /// The level in the tables of a simulated cohort.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::White => "White",
            Self::Black => "Black",
            Self::Asian => "Asian",
            Self::Other => "Other",
        }
    }
}
