//! The five sources of bias: in which respects the data of groups differ, each between 0 (none) and 1 (maximal).
//!
//! Largest value over pairs of groups (a, b), with Y the time, E the event, `X_Z` the representation (`FairTTE`, F.4):
//! - image features: mean over projections of W1(`X_Z` | a; `X_Z` | b) / range of the projection;
//! - information about the time: | NMI(`X_Z`; Y | a, E = 1) - NMI(`X_Z`; Y | b, E = 1) |;
//! - information about the event indicator: | NMI(`X_Z`; E | a) - NMI(`X_Z`; E | b) |;
//! - time distribution: W1(Y | a, E = 1; Y | b, E = 1) / largest observed time;
//! - censoring rate: | P(E = 0 | a) - P(E = 0 | b) |.
//!
//! The paper names no estimator of NMI = 2I/(H + H). Here `X_Z` is clustered (k-means of all samples, after every group
//! is centred and divided by its spread, which changes no information within a group but excludes differences of image
//! features), Y is divided into equal-frequency bins of its group (which excludes differences of the time
//! distribution), and the value expected by chance at that group size is subtracted, because the plug-in estimate grows
//! as groups shrink. The other choice, [`Quantisation::EqualFrequency`], bins every dimension within its group, as Y,
//! and averages over dimensions. The value without that correction is returned as well. An NMI with a binary indicator
//! stays well below 1: H(`X_Z`) is larger. The paper divides by max y also for image features, which its text calls the
//! range, and divides the censoring rate by P(E = 1), which can exceed 1: that number is
//! [`BiasSources::relative_event_rate_gap`].
//!
//! p values: labels of whole subjects are permuted, among subjects with events for the two sources given E = 1, and
//! among subjects of the same event status for the information about E, so that censoring rates stay as they are.
//! Intervals: `2 value - quantile` of bootstrap replicates (basic), cut to [0, 1], because distances and information
//! are larger in replicates than in the sample; ranges, clusters and bins are those of the whole sample. No package
//! offers these numbers; their parts are checked against scipy, POT and scikit-learn.

use ndarray::ArrayRef2;
use serde::{Deserialize, Serialize};

use super::measure::measure;
use super::mutual_information::NullCorrected;
use super::permutation::PermutationTest;
use super::wasserstein::MAX_PROJECTIONS;
use crate::estimators::kaplan_meier::check_level;
use crate::evaluation::Stop;
use crate::resampling::Resample;
use crate::resampling::bootstrap::MAX_REPLICATES;
use crate::value_or_reason::value_or_reason;
use crate::{GroupId, Groups, MetricError, Outcomes, SubjectId};

/// How sources of bias are measured. Keys in a file are written in kebab-case; unknown keys are errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BiasSettings {
    /// Clusters of the representation (with `equal-frequency`: bins of every dimension), 2 to 1000. Default 10.
    pub n_clusters: usize,
    /// How the representation becomes labels: `k-means` (default) or `equal-frequency`.
    pub quantisation: Quantisation,
    /// Bins of the time, 2 to 1000. Default 10.
    pub n_bins: usize,
    /// Directions along which representations are compared, 1 to 100,000. Default 50.
    pub n_projections: usize,
    /// Permutations behind a p value, 1 to 1,000,000. Default 1000.
    pub n_permutations: usize,
    /// Bootstrap replicates, at most 1,000,000; 0 = no intervals. Default 1000.
    pub n_replicates: usize,
    /// What the bootstrap draws: `subject` (default) or `sample`.
    pub resample: Resample,
    /// Level of the intervals, between 0 and 1. Default 0.95.
    pub level: f64,
    /// Minimum number of samples of a group that enter a source; smaller groups are not compared there. At least 1.
    /// Default 10.
    pub min_group_size: usize,
    /// Seed of clusters, projections, permutations and replicates. Default 0.
    pub seed: u64,
    /// Ends the measurement from another thread, before its next part, permutation or replicate; in no file.
    #[serde(skip)]
    pub stop: Stop,
}

impl Default for BiasSettings {
    fn default() -> Self {
        Self {
            n_clusters: 10,
            quantisation: Quantisation::default(),
            n_bins: 10,
            n_projections: 50,
            n_permutations: 1000,
            n_replicates: 1000,
            resample: Resample::default(),
            level: 0.95,
            min_group_size: 10,
            seed: 0,
            stop: Stop::default(),
        }
    }
}

impl BiasSettings {
    /// Checks all settings.
    ///
    /// # Errors
    /// [`MetricError::InvalidSetting`] with the first bad setting.
    pub fn validate(&self) -> Result<(), MetricError> {
        let invalid = |setting, value: usize, expected| {
            Err(MetricError::InvalidSetting { setting, value: value.to_string(), expected })
        };
        check_level(self.level)?;
        for (setting, value) in [("n-clusters", self.n_clusters), ("n-bins", self.n_bins)] {
            if !(2..=1000).contains(&value) {
                return invalid(setting, value, "a whole number from 2 to 1000");
            }
        }
        if !(1..=MAX_PROJECTIONS).contains(&self.n_projections) {
            return invalid("n-projections", self.n_projections, "a whole number from 1 to 100000");
        }
        if !(1..=MAX_REPLICATES).contains(&self.n_permutations) {
            return invalid("n-permutations", self.n_permutations, "a whole number from 1 to 1000000");
        }
        if self.n_replicates > MAX_REPLICATES {
            return invalid("n-replicates", self.n_replicates, "a whole number from 0 to 1000000");
        }
        if self.min_group_size == 0 {
            return invalid("min-group-size", self.min_group_size, "a whole number >= 1");
        }
        Ok(())
    }
}

/// How a representation is turned into labels, whose mutual information is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantisation {
    /// One labelling: k-means clusters of all samples, after every group is centred and divided by its spread. Uses all
    /// dimensions jointly, and depends mainly on the directions of largest spread.
    #[default]
    KMeans,
    /// One labelling per dimension: equal-frequency bins of the group's values. The information is the mean over
    /// dimensions. All dimensions have equal weight, and a monotone transformation of one changes nothing; information
    /// that only several dimensions carry jointly is missed, and a few informative dimensions among many are diluted.
    EqualFrequency,
}

/// One respect in which groups may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BiasSource {
    /// Distribution of the representation.
    ImageFeatures,
    /// Information of the representation about the time of the event.
    MiTime,
    /// Information of the representation about whether the event is observed.
    MiCensoring,
    /// Distribution of the event times.
    TimeDistribution,
    /// Share of censored samples.
    CensoringRate,
}

impl BiasSource {
    /// All sources, in the order of the paper.
    pub const ALL: [Self; 5] =
        [Self::ImageFeatures, Self::MiTime, Self::MiCensoring, Self::TimeDistribution, Self::CensoringRate];

    /// Whether only samples with an observed event enter.
    pub fn only_events(self) -> bool {
        matches!(self, Self::MiTime | Self::TimeDistribution)
    }
}

/// The five sources of bias for one attribute.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BiasSources {
    /// Name of the attribute.
    pub attribute: String,
    /// Samples with a known level.
    pub n: usize,
    /// Samples whose attribute is missing; they are not used.
    pub n_missing: usize,
    /// Subjects with samples in more than one group; each of their parts is permuted separately.
    pub n_split_subjects: usize,
    /// One entry per source, in the order of [`BiasSource::ALL`].
    pub sources: Vec<SourceDisparity>,
    /// The paper's form of the last source, largest |P(E = 1 | a) - P(E = 1 | b)| / P(E = 1): not bounded by 1.
    #[serde(serialize_with = "value_or_reason")]
    pub relative_event_rate_gap: Result<f64, MetricError>,
}

impl BiasSources {
    /// The entry of one source.
    pub fn source(&self, source: BiasSource) -> &SourceDisparity {
        &self.sources[source as usize]
    }
}

/// One source of bias.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SourceDisparity {
    /// Which one.
    pub source: BiasSource,
    /// Samples that enter.
    pub n: usize,
    /// One entry per level, also for levels without samples.
    pub groups: Vec<SourceGroup>,
    /// One entry per pair of levels.
    pub pairs: Vec<PairDisparity>,
    /// The largest pair, or why there is none.
    #[serde(serialize_with = "value_or_reason")]
    pub estimate: Result<DisparityEstimate, MetricError>,
}

/// One group in a source.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SourceGroup {
    /// Which group.
    pub group: GroupId,
    /// Name of the level.
    pub level: String,
    /// Samples of the group that enter.
    pub n: usize,
    /// Distinct subjects among them.
    pub n_subjects: usize,
    /// The value of the group, or why it is not compared.
    #[serde(serialize_with = "value_or_reason")]
    pub summary: Result<GroupSummary, MetricError>,
}

/// The value of a group, where a source has one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupSummary {
    /// The source compares whole distributions.
    Distribution,
    /// Normalised mutual information.
    Information(NullCorrected),
    /// Share of censored samples.
    CensoringRate(f64),
}

/// How much two groups differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PairDisparity {
    /// First group.
    pub a: GroupId,
    /// Second group.
    pub b: GroupId,
    /// In [0, 1], or why there is no value.
    #[serde(serialize_with = "value_or_reason")]
    pub value: Result<f64, MetricError>,
}

/// The largest difference between two groups, with its permutation test and interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DisparityEstimate {
    /// In [0, 1]. A maximum of noisy distances: even equal groups have a value above 0.
    pub value: f64,
    /// The pair with this value; the first of them in level order if there are several.
    pub pair: (GroupId, GroupId),
    /// The same from uncorrected mutual information, without subtracting the value expected by chance in each group;
    /// `None` for the other sources.
    pub uncorrected: Option<f64>,
    /// The permutation test of the hypothesis that group membership has no influence on this source.
    pub permutation: PermutationTest,
    /// `value` minus its mean under permutation, or 0 where that is negative.
    pub null_corrected: f64,
    /// Lower and upper end of the interval of `value`; `None` without (defined) replicates. It describes the precision
    /// of the value, not whether groups differ: a distance between samples of equal groups is above 0 too, and its
    /// interval need not reach 0. Whether groups differ is tested by the p value.
    pub interval: Option<(f64, f64)>,
    /// Replicates in which a compared group is empty; the interval is computed from the others.
    pub n_undefined_replicates: usize,
}

/// Measures the five sources of bias of `groups`; row `i` of every argument is the same sample, `representation` is
/// `[n, d]`.
///
/// Levels that are too small for a source are not compared there, and the reason is given; other levels are.
///
/// Cost: with n samples, k projections, B permutations and replicates and G groups O((B k G^2 + d k) n), in parallel
/// (with [`Quantisation::EqualFrequency`] another O(B d n) for d dimensions); the result does not depend on the number
/// of threads.
///
/// ```
/// use fairtte_metrics::{GroupId, Groups, Outcomes, SubjectId};
/// use fairtte_metrics::bias::{BiasSettings, BiasSource, bias_sources};
/// use ndarray::Array2;
///
/// // 40 people; half of group 1 is censored, none of group 0.
/// let outcomes = Outcomes::new(vec![1.0; 40], (0..40).map(|k| k % 4 != 3).collect())?;
/// let membership = (0..40).map(|k| Some(GroupId(k % 2))).collect();
/// let groups = Groups::new("sex", vec!["F".into(), "M".into()], membership)?;
/// let subjects: Vec<SubjectId> = (0..40).map(|k| SubjectId::new(format!("s{k}"))).collect();
/// let settings = BiasSettings { n_permutations: 199, n_replicates: 200, ..BiasSettings::default() };
/// let sources = bias_sources(&subjects, &Array2::zeros((40, 3)), &outcomes, &groups, &settings)?;
/// let censoring = sources.source(BiasSource::CensoringRate).estimate.as_ref().expect("two groups of 20");
/// assert_eq!(censoring.value, 0.5);
/// assert!(censoring.permutation.p_value < 0.01);
/// # Ok::<(), fairtte_metrics::MetricError>(())
/// ```
///
/// # Errors
/// [`MetricError::LengthMismatch`] if the arguments differ in length, [`MetricError::NoSamples`] without samples,
/// dimensions or known levels, [`MetricError::InvalidNumber`] if a component is not finite, [`MetricError::NotFinite`]
/// if the representation is too large for `f64`, [`MetricError::Stopped`], and those of [`BiasSettings::validate`].
pub fn bias_sources(
    subjects: &[SubjectId],
    representation: &ArrayRef2<f64>,
    outcomes: &Outcomes,
    groups: &Groups,
    settings: &BiasSettings,
) -> Result<BiasSources, MetricError> {
    settings.validate()?;
    measure(subjects, representation, outcomes, groups, settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bias::separability;

    #[test]
    fn counts_without_end_are_refused() {
        let refused = |change: fn(&mut BiasSettings)| {
            let mut settings = BiasSettings::default();
            change(&mut settings);
            matches!(settings.validate(), Err(MetricError::InvalidSetting { .. }))
        };
        assert_eq!(BiasSettings::default().validate(), Ok(()));
        assert!(refused(|settings| settings.n_projections = usize::MAX));
        assert!(refused(|settings| settings.n_permutations = usize::MAX));
        assert!(refused(|settings| settings.n_replicates = usize::MAX));
        assert!(refused(|settings| settings.n_clusters = usize::MAX));
        assert!(refused(|settings| settings.n_projections = 0));
    }

    #[test]
    fn a_flag_that_is_set_ends_the_measurement() {
        let outcomes = Outcomes::new((0..40).map(|k| f64::from(k % 9)).collect(), vec![true; 40]).unwrap();
        let groups = Groups::new("a", vec!["x".into(), "y".into()], (0..40).map(|k| Some(GroupId(k % 2))).collect());
        let features = ndarray::Array2::from_shape_fn((40, 2), |(row, column)| (row * (3 + column) % 7) as f64);
        for quantisation in [Quantisation::KMeans, Quantisation::EqualFrequency] {
            // With samples of the same subject, permutations also say what chance gives.
            for n_subjects in [40, 20] {
                let subjects: Vec<SubjectId> = (0..40).map(|k| SubjectId::new((k % n_subjects).to_string())).collect();
                let (settings, groups) =
                    (BiasSettings { quantisation, ..BiasSettings::default() }, groups.as_ref().unwrap());
                assert!(bias_sources(&subjects, &features, &outcomes, groups, &settings).is_ok());
                settings.stop.set();
                let found = bias_sources(&subjects, &features, &outcomes, groups, &settings);
                assert_eq!(found, Err(MetricError::Stopped));
                let found = separability(&subjects, &features, groups, &settings);
                assert_eq!(found, Err(MetricError::Stopped));
            }
        }
    }
}
