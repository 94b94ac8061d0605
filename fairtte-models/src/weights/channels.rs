//! The first convolution for another number of input channels than it was trained with.
//!
//! | from | to | rule | weights |
//! |---|---|---|---|
//! | C | 1 | `sum` | the sum over the channels: a gray image gives the same output as when repeated in every channel |
//! | C | 1 | `mean` | the sum divided by C |
//! | 1 | C | `replicate` | each channel gets the weights divided by C: a gray image repeated in every channel gives the same output as alone |
//!
//! The equalities hold for inputs with the same scaling in every channel; a mean and deviation per channel (as
//! `ImageNet`'s) shifts them.

use serde::{Deserialize, Serialize};

/// Most input channels that a network is built with because a file or an argument says so; multispectral pictures have some dozens.
pub const MOST_CHANNELS: usize = 1024;

/// How the first convolution is adapted from weights with another number of input channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Gray {
    /// `sum` for weights of several channels on one, `replicate` for weights of one channel on several.
    #[default]
    Auto,
    /// The sum over the channels.
    Sum,
    /// The mean over the channels.
    Mean,
    /// An equal share for every channel.
    Replicate,
}

impl Gray {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Sum, Self::Mean, Self::Replicate];

    /// Name in run files and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Replicate => "replicate",
        }
    }

    /// The rule that applies from `from` to `to` channels, if one does; none to more than [`MOST_CHANNELS`], so that no memory
    /// is allocated because of a number alone.
    pub(super) fn rule(self, from: usize, to: usize) -> Option<Self> {
        match (self, from, to) {
            (Self::Auto | Self::Sum, 2.., 1) => Some(Self::Sum),
            (Self::Mean, 2.., 1) => Some(Self::Mean),
            (Self::Auto | Self::Replicate, 1, 2..=MOST_CHANNELS) => Some(Self::Replicate),
            _ => None,
        }
    }

    /// A sentence for a change from `from` to `to` channels.
    pub(super) fn sentence(self, from: usize, to: usize) -> String {
        let done = match self {
            Self::Mean => "averaged over the channels",
            Self::Replicate => "divided evenly among the channels",
            Self::Auto | Self::Sum => "summed over the channels",
        };
        format!("first convolution: {from} input channels in the file, {to} here; {done}")
    }
}

/// Weights `[out, from, n_inner]` for `to` input channels.
pub(super) fn adapt(weights: &[f32], from: usize, n_inner: usize, to: usize, rule: Gray) -> Vec<f32> {
    let mut adapted = Vec::with_capacity(weights.len() / from * to);
    for kernel in weights.chunks_exact(from * n_inner) {
        match rule {
            Gray::Replicate => {
                let share = |weight: &f32| *weight / to as f32;
                (0..to).for_each(|_| adapted.extend(kernel.iter().map(share)));
            }
            Gray::Auto | Gray::Sum | Gray::Mean => {
                let divisor = if rule == Gray::Mean { from as f64 } else { 1.0 };
                for place in 0..n_inner {
                    let sum: f64 = (0..from).map(|channel| f64::from(kernel[channel * n_inner + place])).sum();
                    #[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
                    adapted.push((sum / divisor) as f32);
                }
            }
        }
    }
    adapted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_does_what_its_table_says() {
        // Two kernels of three channels with two places each.
        let weights = [1.0, 2.0, 10.0, 20.0, 100.0, 200.0, 3.0, 0.0, 6.0, 0.0, 9.0, 0.0];
        assert_eq!(adapt(&weights, 3, 2, 1, Gray::Sum), [111.0, 222.0, 18.0, 0.0]);
        assert_eq!(adapt(&weights, 3, 2, 1, Gray::Mean), [37.0, 74.0, 6.0, 0.0]);
        let one = [6.0, 12.0, 3.0, 9.0];
        assert_eq!(adapt(&one, 1, 2, 3, Gray::Replicate), [2.0, 4.0, 2.0, 4.0, 2.0, 4.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0]);
    }

    #[test]
    fn a_rule_applies_in_its_direction_only() {
        assert_eq!(Gray::Auto.rule(3, 1), Some(Gray::Sum));
        assert_eq!(Gray::Auto.rule(1, 3), Some(Gray::Replicate));
        assert_eq!(Gray::Mean.rule(1, 3), None);
        assert_eq!(Gray::Replicate.rule(3, 1), None);
        assert_eq!(Gray::Auto.rule(3, 4), None);
        let most = [MOST_CHANNELS, MOST_CHANNELS + 1, usize::MAX].map(|to| Gray::Replicate.rule(1, to));
        assert_eq!(most, [Some(Gray::Replicate), None, None], "no memory is allocated for a number in an argument");
    }
}
