//! Errors of the metrics: an undefined value always has a reason and is never NaN.

use crate::evaluation::disagreement::{Disagreement, UnitFactor, of_training_times, shortened};

/// Why a metric could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// Two arrays that must describe the same samples have different lengths.
    #[error("number of {what}: {found}, expected {expected}")]
    LengthMismatch {
        /// What was counted.
        what: &'static str,
        /// Number found.
        found: usize,
        /// Number of samples.
        expected: usize,
    },
    /// A time is not a finite number, or lies below 0.
    #[error("time of row {row} is {time}, expected a finite number >= 0")]
    InvalidTime {
        /// Row, counted from 0.
        row: usize,
        /// The value found.
        time: f64,
    },
    /// A membership refers to a level beyond the last one of its attribute.
    #[error(
        "row {row} of attribute \"{attribute}\" names a group beyond the last level (number of levels: {n_levels})"
    )]
    UnknownGroup {
        /// Name of the attribute.
        attribute: String,
        /// Row, counted from 0.
        row: usize,
        /// Number of levels.
        n_levels: usize,
    },
    /// There is nothing to evaluate.
    #[error("no samples, expected at least one")]
    NoSamples,
    /// A time grid has no point.
    #[error("the time grid is empty, expected at least one time")]
    EmptyGrid,
    /// A point of a time grid is not finite, is negative, or does not lie above the point before it.
    #[error("point {index} of the time grid is {time}, expected finite times >= 0 in strictly increasing order")]
    InvalidGrid {
        /// Position in the grid, counted from 0.
        index: usize,
        /// The value found.
        time: f64,
    },
    /// Curves that are compared have other times.
    #[error("time {index} of the curves is {found}, expected {expected} as in the curves that they are compared with")]
    OtherGrid {
        /// Position in the grid, counted from 0.
        index: usize,
        /// The time found.
        found: f64,
        /// The time of the other curves.
        expected: f64,
    },
    /// The survival matrix does not have one column per grid point.
    #[error("number of columns of survival: {columns}, expected {n_times}, one per time of the grid")]
    GridMismatch {
        /// Columns found.
        columns: usize,
        /// Points of the grid.
        n_times: usize,
    },
    /// A survival probability is not a number in [0, 1].
    #[error("survival of row {row} in column {column} is {value}, expected a number in [0, 1]")]
    InvalidSurvival {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// A survival curve rises.
    #[error(
        "survival of row {row} rises from {before} to {value} in column {column}, expected a curve that never rises"
    )]
    RisingSurvival {
        /// Row, counted from 0.
        row: usize,
        /// Column of the higher value, counted from 0.
        column: usize,
        /// Value in the column before.
        before: f64,
        /// The value found.
        value: f64,
    },
    /// No event was observed.
    #[error("none of {n} samples has an observed event")]
    NoEvents {
        /// Number of samples.
        n: usize,
    },
    /// No event of the cause that is evaluated was observed; there may be others.
    #[error("none of {n} samples has an observed event of the cause")]
    NoEventsOfCause {
        /// Number of samples.
        n: usize,
    },
    /// Events exist, but no sample is known to have outlived one of them.
    #[error("no comparable pair (number of samples: {n}, of events: {n_events})")]
    NoComparablePairs {
        /// Number of samples.
        n: usize,
        /// Number of events.
        n_events: usize,
    },
    /// No sample had the event by `time`.
    #[error("no event at or before time {time}")]
    NoCases {
        /// Evaluation time.
        time: f64,
    },
    /// No sample is known to be free of the event after `time`.
    #[error("no sample under observation after time {time}")]
    NoControls {
        /// Evaluation time.
        time: f64,
    },
    /// The probability of being uncensored is 0 where it must be divided by.
    #[error("the censoring curve is zero at time {time}, so no weight exists there")]
    ZeroCensoringSurvival {
        /// The time requested.
        time: f64,
    },
    /// The censoring curve is unknown beyond the last time it was fitted on.
    #[error("time {time} lies beyond {last}, the last time the censoring curve was fitted on")]
    BeyondCensoringCurve {
        /// The time requested.
        time: f64,
        /// Last time of the fitting sample.
        last: f64,
    },
    /// An evaluation time is outside the observed times of the evaluated sample.
    #[error("evaluation time {time} lies outside [{first}, {last}), the times observed in the evaluated sample")]
    OutsideObservedTimes {
        /// The evaluation time.
        time: f64,
        /// First observed time.
        first: f64,
        /// Last observed time.
        last: f64,
    },
    /// An evaluation time, or the first of a window, is outside the times of the curves.
    #[error("evaluation time {time} lies outside [{first}, {last}], the times of the curves")]
    OutsideCurves {
        /// The evaluation time.
        time: f64,
        /// First time at which the curves are known.
        first: f64,
        /// Last time.
        last: f64,
    },
    /// The times of the curves and the observed times do not fit together.
    #[error(
        "the curves go from {} to {} and the observed times from {} to {}: {finding}",
        shortened(*first), shortened(*last), shortened(*earliest), shortened(*latest)
    )]
    TimesDisagree {
        /// First time of the curves.
        first: f64,
        /// Last time of the curves.
        last: f64,
        /// Smallest observed time.
        earliest: f64,
        /// Largest observed time.
        latest: f64,
        /// What is wrong, and a factor that would make the times agree.
        finding: Disagreement,
    },
    /// The times of a training sample cannot be in the unit of the evaluated ones.
    #[error(
        "the training times go up to {} and the evaluated ones up to {}: {}",
        shortened(*train), shortened(*evaluated), of_training_times(factor.as_ref())
    )]
    TrainingTimesDisagree {
        /// Largest training time.
        train: f64,
        /// Largest evaluated time.
        evaluated: f64,
        /// A factor that makes them agree, with the training times in place of curves.
        factor: Option<UnitFactor>,
        /// Whether the ranges hardly overlap; otherwise a much higher or lower risk of one sample can look like another unit.
        is_far: bool,
    },
    /// No evaluation time is left after clipping to the support of the data.
    #[error("no evaluation time can be chosen: the window runs from {lower} to {upper}")]
    EmptyWindow {
        /// Lower end.
        lower: f64,
        /// Upper end after clipping.
        upper: f64,
    },
    /// The metric is undefined at every evaluation time.
    #[error("undefined at all {n_times} evaluation times; at the first: {first}")]
    UndefinedAtEveryTime {
        /// Number of evaluation times.
        n_times: usize,
        /// Why it is undefined at the first of them.
        first: Box<MetricError>,
    },
    /// An integral over time needs at least two times.
    #[error("number of evaluation times: {n_times}, expected at least 2 to integrate over")]
    TooFewTimes {
        /// Number of evaluation times.
        n_times: usize,
    },
    /// A mean weighted by the drop of survival has no drop to weigh with.
    #[error("the survival of the evaluated sample does not drop by time {time}, so its mean has no weight")]
    NoSurvivalDrop {
        /// Last evaluation time.
        time: f64,
    },
    /// A comparison of groups needs two groups with a value.
    #[error("attribute \"{attribute}\" has {n_defined} of {n_levels} groups with a value, expected at least 2")]
    TooFewGroups {
        /// Name of the attribute.
        attribute: String,
        /// Groups with a value.
        n_defined: usize,
        /// All levels.
        n_levels: usize,
    },
    /// A ratio would divide by zero.
    #[error("the largest group value of attribute \"{attribute}\" is 0, so no ratio exists")]
    ZeroDenominator {
        /// Name of the attribute.
        attribute: String,
    },
    /// The overall value that the groups are compared with is itself undefined.
    #[error("the overall value is undefined: {reason}")]
    OverallUndefined {
        /// Why.
        reason: Box<MetricError>,
    },
    /// A setting is outside its range.
    #[error("{setting} is {value}, expected {expected}")]
    InvalidSetting {
        /// Name of the setting.
        setting: &'static str,
        /// The value found.
        value: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// No sample has a weight at an evaluation time: all samples are censored by then, or left out because G = 0.
    #[error("no sample has a weight at time {time}: all are censored by then, or the censoring curve is zero")]
    NoWeight {
        /// The evaluation time.
        time: f64,
    },
    /// A share of the Kaplan-Meier baseline's loss is requested, but that loss is not above 0.
    #[error("the Kaplan-Meier baseline scores {baseline}, expected a loss > 0 to explain a share of")]
    NoBaselineLoss {
        /// The score of the baseline.
        baseline: f64,
    },
    /// The Kaplan-Meier baseline that a score is compared with has no score itself.
    #[error("the score of the Kaplan-Meier baseline is undefined: {reason}")]
    BaselineUndefined {
        /// Why.
        reason: Box<MetricError>,
    },
    /// A difference of paired values is not a finite number.
    #[error("the paired difference of row {row} is {value}, expected a finite number")]
    InvalidDifference {
        /// Row, counted from 0.
        row: usize,
        /// The value found.
        value: f64,
    },
    /// All paired differences are 0, so the signed-rank statistic cannot vary.
    #[error(
        "every paired difference is 0 (number of pairs: {n}), so the signed-rank statistic has no variance to divide by"
    )]
    NoSignedRanks {
        /// Number of pairs.
        n: usize,
    },
    /// A value to rank models by is not a finite number.
    #[error("the value of model {model} on data set {data_set} is {value}, expected a finite number")]
    InvalidModelValue {
        /// Row, counted from 0.
        data_set: usize,
        /// Column, counted from 0.
        model: usize,
        /// The value found.
        value: f64,
    },
    /// A comparison of several models lacks models or data sets.
    #[error("number of models: {n_models}, of data sets: {n_data_sets}, expected at least {expected}")]
    TooSmallComparison {
        /// Models found.
        n_models: usize,
        /// Data sets found.
        n_data_sets: usize,
        /// What is needed.
        expected: &'static str,
    },
    /// All models tie on every data set.
    #[error(
        "all {n_models} models tie on every data set (number of data sets: {n_data_sets}), so a tie-corrected statistic is 0 / 0"
    )]
    AllModelsTied {
        /// Number of models.
        n_models: usize,
        /// Number of data sets.
        n_data_sets: usize,
    },
    /// Every data set ranks the models alike, so the F statistic divides by zero.
    #[error(
        "every data set ranks the models alike (number of data sets: {n_data_sets}), so the F statistic is infinite"
    )]
    PerfectAgreement {
        /// Number of data sets.
        n_data_sets: usize,
    },
    /// A p value is not a probability.
    #[error("p value {index} is {value}, expected a number in [0, 1]")]
    InvalidPValue {
        /// Position, counted from 0.
        index: usize,
        /// The value found.
        value: f64,
    },
    /// A matrix of p values does not have one row and one column per model.
    #[error("a matrix of {rows} x {columns} p values for {n_models} models, expected one row and one column each")]
    PairwiseShape {
        /// Rows found.
        rows: usize,
        /// Columns found.
        columns: usize,
        /// Number of models.
        n_models: usize,
    },
    /// A time is where a Kaplan-Meier curve is unknown.
    #[error("time {time} lies beyond {last}, the last observed time, where the Kaplan-Meier curve is unknown")]
    BeyondFollowUp {
        /// The time requested.
        time: f64,
        /// Last observed time.
        last: f64,
    },
    /// A model of the time after censoring cannot be fitted.
    #[error("the model that imputes times after censoring cannot be fitted: {reason}")]
    ImputationModel {
        /// Why.
        reason: &'static str,
    },
    /// The model that smooths observed risks cannot be fitted.
    #[error("the calibration model cannot be fitted: {reason}")]
    CalibrationModel {
        /// Why.
        reason: &'static str,
    },
    /// A ratio to the predicted risk does not exist.
    #[error("every predicted risk at time {time} is 0, so that nothing can be divided by their mean")]
    NoPredictedRisk {
        /// The horizon.
        time: f64,
    },
    /// No metric has this name.
    #[error("metric \"{name}\" does not exist, expected one of: {known}")]
    UnknownMetric {
        /// The name found.
        name: String,
        /// All names.
        known: String,
    },
    /// A reference level is not one of its attribute's levels, or the attribute is not evaluated.
    #[error("reference {attribute} = \"{level}\": expected {expected}")]
    UnknownReference {
        /// The attribute named.
        attribute: String,
        /// The level named.
        level: String,
        /// The levels of the attribute, or the attributes.
        expected: String,
    },
    /// A group is in one of two cohorts only.
    #[error("there is no group \"{level}\" in the {cohort} cohort")]
    NoSuchGroup {
        /// The group.
        level: String,
        /// The cohort without it: `internal` or `external`.
        cohort: &'static str,
    },
    /// Two samples whose values do not vary differ: their distance in standard deviations does not exist.
    #[error("the values vary in neither sample, but differ between them: there is no standard deviation to divide by")]
    NoVariation,
    /// A group has too few events to be compared.
    #[error("number of events: {n_events}, fewer than min-events {needed}: the group is not compared")]
    FewEvents {
        /// Events of the group.
        n_events: usize,
        /// Events that a comparison needs.
        needed: usize,
    },
    /// A comparison of groups needs groups that are large enough: with `min-events` events, samples of the rarer class, or values.
    #[error(
        "attribute \"{attribute}\" has {n_compared} of {n_levels} groups that are large enough to be compared (min-events {min_events}), \
         expected at least {n_needed}"
    )]
    FewLargeGroups {
        /// Name of the attribute.
        attribute: String,
        /// Groups that can be compared.
        n_compared: usize,
        /// All levels.
        n_levels: usize,
        /// Size that a comparison needs of a group.
        min_events: usize,
        /// Groups that the comparison needs.
        n_needed: usize,
    },
    /// No sample is called positive, or none negative, so the share of those called right is undefined.
    #[error("no sample whose outcome at time {time} is known is called {called} at the threshold {threshold}")]
    NoDecision {
        /// `positive` or `negative`.
        called: &'static str,
        /// The threshold of the predicted risk.
        threshold: f64,
        /// The horizon.
        time: f64,
    },
    /// A metric of decisions is requested without a threshold.
    #[error("the metric needs a threshold of the predicted risk")]
    NoThreshold,
    /// A worst group or equity scaling of a metric that is not better at any value.
    #[error("no value of this metric is better than another, so there is no worst group and no equity scaling")]
    NoBestValue,
    /// Equity scaling of a value below 0.
    #[error("equity scaling divides {utility:.3}, which is below 0: distances between the groups would make it better")]
    NegativeUtility {
        /// What would be scaled: the overall value, or 1 minus it where lower is better.
        utility: f64,
    },
    /// Equity scaling of a metric whose best value is neither the highest nor the lowest.
    #[error("a metric that is best at a target, such as 1, has no utility that equity could scale")]
    NoUtility,
    /// A mean squared error of probabilities above 1.
    #[error(
        "the score would be {value:.3}, above 1: {percent:.0} % of it come from subject {subject}, whose censoring weight \
         ran wild because hardly anybody is followed that long; shorten the evaluation times (upper-quantile, times) or \
         fit the censoring curve on more samples"
    )]
    ScoreAboveOne {
        /// The score.
        value: f64,
        /// The subject that adds most.
        subject: String,
        /// Its share in percent.
        percent: f64,
    },
    /// A method that leaves censored samples out has none left.
    #[error("every sample is censored before time {time} (number of samples: {n}), so none is left")]
    AllCensoredBefore {
        /// The time requested.
        time: f64,
        /// Number of samples.
        n: usize,
    },
    /// A chi-square test has as many constraints as bins.
    #[error("no degree of freedom is left (number of bins: {n_bins}), so no p value exists")]
    NoDegreesOfFreedom {
        /// Bins with samples.
        n_bins: usize,
    },
    /// A difference would be divided by a variance of (nearly) 0.
    #[error(
        "bin {bin} has observed risk {observed}, expected risk {expected} and variance {variance}, which cannot be divided by"
    )]
    VanishingBinVariance {
        /// Position of the bin, counted from 0.
        bin: usize,
        /// Observed probability.
        observed: f64,
        /// Predicted probability.
        expected: f64,
        /// Its variance.
        variance: f64,
    },
    /// There is no run to choose from.
    #[error("no runs, expected at least one to choose from")]
    NoRuns,
    /// Two runs have the same name.
    #[error("run \"{run}\" occurs more than once, expected distinct names")]
    RepeatedRun {
        /// Name of the run.
        run: String,
    },
    /// A run has not one utility per group.
    #[error("number of group utilities of run \"{run}\": {found}, expected {expected}, one per group")]
    RunGroupsMismatch {
        /// Name of the run.
        run: String,
        /// Utilities found.
        found: usize,
        /// Number of groups.
        expected: usize,
    },
    /// A value of a run is outside its range.
    #[error("{what} of run \"{run}\" is {value}, expected {expected}")]
    InvalidRunValue {
        /// Name of the run.
        run: String,
        /// Which value.
        what: String,
        /// The value found.
        value: f64,
        /// What is allowed.
        expected: &'static str,
    },
    /// A relative distance would divide by 0.
    #[error("the best utility of group \"{group}\" over all runs is {best}, so no distance relative to it exists")]
    ZeroOptimum {
        /// Name of the group.
        group: String,
        /// The best utility.
        best: f64,
    },
    /// A risk score is not a finite number.
    #[error("risk of row {row} is {risk}, expected a finite number")]
    InvalidRisk {
        /// Row, counted from 0.
        row: usize,
        /// The value found.
        risk: f64,
    },
    /// Every comparable pair has tied predictions, and tied pairs are to be dropped.
    #[error(
        "every comparable pair has tied predictions (number of pairs: {n_tied}), so none is left when tied pairs are dropped"
    )]
    OnlyTiedPairs {
        /// Comparable pairs.
        n_tied: u64,
    },
    /// A subject has samples in two strata, so it cannot be drawn within one.
    #[error("subject \"{subject}\" has samples in two strata, expected one stratum per subject")]
    SubjectInTwoStrata {
        /// The first such subject, by name.
        subject: crate::SubjectId,
    },
    /// A sample occurs too often in a bootstrap replicate for the compact form of its weights.
    #[error("a sample is drawn more than 65535 times in bootstrap replicate {replicate}")]
    TooManyDraws {
        /// Replicate, counted from 0.
        replicate: usize,
    },
    /// The caller ended the computation.
    #[error("the computation was stopped")]
    Stopped,
    /// A sum over groups needs one group with a value.
    #[error("no group of attribute \"{attribute}\" has a value (number of groups: {n_levels})")]
    NoDefinedGroup {
        /// Name of the attribute.
        attribute: String,
        /// All levels.
        n_levels: usize,
    },
    /// A ratio of values with different signs, or of negative values, is no measure of equality.
    #[error("a value compared for attribute \"{attribute}\" is {value}, expected values >= 0 for a ratio")]
    NegativeRatio {
        /// Name of the attribute.
        attribute: String,
        /// The first negative value.
        value: f64,
    },
    /// An argument, or a number computed from it, is not finite.
    #[error("{what} is {value}, expected a finite number")]
    NotFinite {
        /// What the number is.
        what: &'static str,
        /// The value found.
        value: f64,
    },
    /// No attribute has the name that a setting asks for.
    #[error("no attribute is called \"{attribute}\", expected one of: {known}")]
    UnknownAttribute {
        /// The name requested.
        attribute: String,
        /// The names there are.
        known: String,
    },
    /// An attribute does not have the level that a setting names.
    #[error("attribute \"{attribute}\" has no level \"{level}\", expected one of: {known}")]
    UnknownLevel {
        /// Name of the attribute.
        attribute: String,
        /// The level asked for.
        level: String,
        /// The levels there are.
        known: String,
    },
    /// A time is not before the end of follow-up.
    #[error("time {time} is not before {end}, the administrative end of follow-up")]
    NotBeforeEnd {
        /// The time requested.
        time: f64,
        /// The end.
        end: f64,
    },
    /// Too few bootstrap replicates define the value.
    #[error("{n_defined} of {n_replicates} bootstrap replicates define the value, too few for an interval")]
    NoDefinedReplicate {
        /// Replicates that define it.
        n_defined: usize,
        /// Replicates drawn.
        n_replicates: usize,
    },
    /// A value does not exist when one of the units is left out, so its skewness cannot be estimated.
    #[error("undefined without {n_undefined} of {n_blocks} jackknife blocks, so that no BCa interval exists")]
    JackknifeUndefined {
        /// Blocks whose omission makes the value undefined.
        n_undefined: usize,
        /// All blocks.
        n_blocks: usize,
    },
    /// The `BCa` interval does not exist.
    #[error("no BCa interval: {reason}")]
    BcaUndefined {
        /// Why.
        reason: &'static str,
    },
    /// The studentised interval does not exist.
    #[error("no studentised interval: {reason}")]
    StudentisedUndefined {
        /// Why.
        reason: &'static str,
    },
    /// Two lists that must come from the same draws have different lengths.
    #[error("{first} and {second} {what}, expected those of the same draws")]
    NotAligned {
        /// What was counted.
        what: &'static str,
        /// Number in the first list.
        first: usize,
        /// Number in the second list.
        second: usize,
    },
    /// Two models of a comparison have the same name.
    #[error("model \"{model}\" is given twice, expected a different name for each")]
    RepeatedModel {
        /// The name.
        model: String,
    },
    /// A number is not in the range of its kind.
    #[error("{what} of row {row} is {value}, expected {expected}")]
    InvalidNumber {
        /// What the number is.
        what: &'static str,
        /// Row, counted from 0.
        row: usize,
        /// The value found.
        value: f64,
        /// What is allowed.
        expected: &'static str,
    },
    /// An estimate needs more samples.
    #[error("number of samples: {n}, expected at least {expected}")]
    TooFewSamples {
        /// Samples found.
        n: usize,
        /// Samples needed.
        expected: usize,
    },
    /// A group is too small to be compared.
    #[error("number of samples of group \"{level}\" in this comparison: {n}, expected at least {expected}")]
    GroupTooSmall {
        /// Name of the level.
        level: String,
        /// Samples found.
        n: usize,
        /// Samples needed.
        expected: usize,
    },
    /// A representation says nothing about its samples.
    #[error("all dimensions of the representation are equal in all {n} samples, expected one that varies")]
    ConstantRepresentation {
        /// Number of samples.
        n: usize,
    },
    /// A level has fewer subjects than a cross-validation has folds, or all others have.
    #[error(
        "group \"{level}\" or the rest of the samples is absent from a fold, expected subjects of both in every one"
    )]
    FoldOfOneGroup {
        /// Name of the level.
        level: String,
    },
    /// No permutation gave a value.
    #[error("undefined in all {n_permutations} permutations, so no p value exists")]
    UndefinedInEveryPermutation {
        /// Number of permutations.
        n_permutations: usize,
    },
    /// There is no such cause among the outcomes.
    #[error("cause {cause} is not among the outcomes, expected a whole number from 1 to {n_causes}")]
    UnknownCause {
        /// The cause asked for.
        cause: u32,
        /// Causes of the outcomes.
        n_causes: u32,
    },
    /// A cumulative incidence is not a probability.
    #[error("incidence of row {row} in column {column} is {value}, expected a number in [0, 1]")]
    InvalidIncidence {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// The value found.
        value: f64,
    },
    /// A cumulative incidence falls.
    #[error(
        "incidence of row {row} falls from {before} to {value} in column {column}, expected a curve that never falls, as \
         the probability of an event by then: survival is 1 minus it"
    )]
    FallingIncidence {
        /// Row, counted from 0.
        row: usize,
        /// Column of the lower value, counted from 0.
        column: usize,
        /// Value in the column before.
        before: f64,
        /// The value found.
        value: f64,
    },
    /// A metric of one of several causes is requested where outcomes have no causes.
    #[error("metric \"{name}\" needs outcomes with causes, of which one is evaluated")]
    NeedsCauses {
        /// Name of the metric.
        name: String,
    },
    /// A metric that would count other causes as censorings is requested for one of several causes.
    #[error(
        "metric \"{name}\" would count events of other causes as censorings, expected metrics of one of several causes: \
         {expected}"
    )]
    IgnoresCauses {
        /// Name of the metric.
        name: String,
        /// Metrics that do not.
        expected: String,
    },
    /// A metric of a binary class needs samples of both classes.
    #[error("number of positive samples: {n_positive} of {n}, expected both classes")]
    OneClass {
        /// Positive samples.
        n_positive: usize,
        /// Samples.
        n: usize,
    },
    /// A predicted risk of 0 or 1 has no log(-log(1 - risk)).
    #[error(
        "{n_certain} of {n} predicted risks by time {time} are 0 or 1, expected numbers between, which have a log(-log(1 - risk))"
    )]
    CertainRisk {
        /// Risks of 0 or 1.
        n_certain: usize,
        /// All of them.
        n: usize,
        /// The time.
        time: f64,
    },
    /// A probability of 0 or 1 has no finite logit.
    #[error("{n_certain} of {n} probabilities are 0 or 1, expected numbers between, which have a logit")]
    NoLogit {
        /// Probabilities of 0 or 1.
        n_certain: usize,
        /// Samples.
        n: usize,
    },
    /// A calibration line has no finite maximum of the likelihood.
    #[error("the probabilities of the classes do not overlap, so the calibration line has no finite slope")]
    SeparatedClasses,
    /// A group has too few samples of one class to be compared with others.
    #[error("samples of the rarer class: {n}, fewer than min-events {needed}: the group is not compared")]
    FewOfClass {
        /// Samples of the rarer class.
        n: usize,
        /// Samples needed.
        needed: usize,
    },
    /// A mask without pixels has no surface and no diameter.
    #[error("{which} {} no pixels", if *which == "both masks" { "have" } else { "has" })]
    EmptyMask {
        /// The mask, or both.
        which: &'static str,
    },
    /// A metric of masks has no value for any sample.
    #[error("the metric has no value for any of {n} samples: {first}")]
    NoMaskValue {
        /// Samples.
        n: usize,
        /// Why the first of them has none.
        #[source]
        first: Box<MetricError>,
    },
    /// A group has too few samples with a value to be compared with others.
    #[error("samples with a value: {n}, fewer than min-events {needed}: the group is not compared")]
    FewValues {
        /// Samples with a value.
        n: usize,
        /// Samples needed.
        needed: usize,
    },
    /// The weights add up to so many samples that their pairs cannot be counted.
    #[error("the weights add up to {n} samples, expected fewer than 4294967296")]
    TooManySamples {
        /// Sum of the weights.
        n: u64,
    },
}

impl MetricError {
    /// The same of one of several causes, beside which there may be events of others.
    pub(crate) fn of_cause(self) -> Self {
        match self {
            Self::NoEvents { n } => Self::NoEventsOfCause { n },
            other => other,
        }
    }
}
