//! Choices of the Wilcoxon signed-rank test, named after what they do, with the packages that make them.

use serde::{Deserialize, Serialize};

/// The alternative hypothesis to "no difference".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alternative {
    /// The first values differ in either direction.
    #[default]
    TwoSided,
    /// The first values are larger.
    Greater,
    /// The first values are smaller.
    Less,
}

/// The treatment of pairs without a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZeroDifferences {
    /// Dropped before ranking (Wilcoxon; the default of scipy, and what R does).
    #[default]
    Drop,
    /// Ranked with the others, then dropped (Pratt, JASA 54 (1959) 655-667).
    Pratt,
    /// Ranked with the others; half of their rank sum is added to each side (scipy `zsplit`).
    Split,
}

/// How the p value is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignedRankMethod {
    /// The permutation distribution given ties and zeros, for up to 1,000 ranked differences.
    #[default]
    Exact,
    /// The distribution of the untied ranks 1 to m whatever the ties and zeros: scipy's `exact`, which critdd uses.
    /// Not exact with ties or zeros (8 zero differences, Pratt: p = 0.0078), and with Pratt's zeros p changes when the
    /// samples are swapped; rank sums that are not whole are rounded to the larger p.
    UntiedTable,
    /// The normal approximation.
    Normal {
        /// Moves W+ by 1/2 towards its mean.
        continuity_correction: bool,
    },
    /// scipy's `auto`: normal for more than 50 pairs, zeros counted; else exact without ties and zeros, or with them for
    /// up to 13 pairs; else normal. Its default is no continuity correction.
    ScipyAuto {
        /// Applies where the rule takes the normal approximation.
        continuity_correction: bool,
    },
    /// R with `exact = TRUE`: exact without ties and zeros, else normal. Use with [`ZeroDifferences::Drop`].
    ExactUnlessTied {
        /// Applies where the rule takes the normal approximation; R's default is `true`.
        continuity_correction: bool,
    },
    /// R's default: as [`ExactUnlessTied`](Self::ExactUnlessTied) below 50 differences other than zero, else normal.
    RDefault {
        /// Applies where the rule takes the normal approximation; R's default is `true`.
        continuity_correction: bool,
    },
}

/// The null distribution a p value was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignedRankNull {
    /// All sign patterns of the ranks as they are.
    Exact,
    /// All sign patterns of the untied ranks 1 to m.
    UntiedTable,
    /// Normal approximation.
    Normal,
    /// Normal approximation with continuity correction.
    NormalCorrected,
}

/// Alternative, treatment of zeros and method; the default is two-sided, zeros dropped, exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SignedRankSettings {
    /// The alternative hypothesis.
    pub alternative: Alternative,
    /// Pairs without a difference.
    pub zeros: ZeroDifferences,
    /// How p is computed.
    pub method: SignedRankMethod,
}
