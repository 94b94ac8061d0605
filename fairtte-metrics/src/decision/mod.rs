//! Decisions at a threshold of the predicted risk: who is called positive, and how often that is right.
//!
//! A sample is called positive if its predicted risk by the horizon t, 1 - S(t), is at least the threshold. A case has
//! its event by t (T <= t), a control is under observation after t (T > t); the outcome of a sample that is censored by t
//! is unknown. Inverse-probability-of-censoring weights make up for these: a case weighs 1/G(T-), a control 1/G(t), any
//! other sample 0, with G the censoring curve. From the weighted 2 x 2 table follow
//!
//! ```text
//! sensitivity = TP / (TP + FN)    specificity = TN / (TN + FP)    false-positive rate = 1 - specificity
//! PPV         = TP / (TP + FP)    NPV         = TN / (TN + FN)    selection rate = positives / n, without weights
//! net benefit = TP - FP * threshold / (1 - threshold),  with TP + FP + FN + TN = 1
//! ```
//!
//! Sources: Uno et al. (2007), doi:10.1198/016214507000000149; Blanche, Dartigues & Jacqmin-Gadda (2013),
//! doi:10.1002/bimj.201200045, whose R package `timeROC` has these four as `SeSpPPVNPV`; net benefit: Vickers & Elkin
//! (2006), doi:10.1177/0272989X06295361, and for survival Vickers et al. (2008), doi:10.1186/1472-6947-8-53.
//!
//! Where we differ: `timeROC` calls a marker above the cut-off positive and cases those with T < t; here "at least" and
//! T <= t, as in the Brier score and the AUC of this crate. Vickers et al. (2008) take Kaplan-Meier estimates among the
//! positive; here the same weights serve all numbers, so that they are those of one table. Shares are divided by the sum of
//! the weights, which is n if G is fitted on the evaluated samples with [`CensoringTies::EventsFirst`] and the curve does
//! not end before t.
//!
//! [`CensoringTies::EventsFirst`]: crate::CensoringTies::EventsFirst

mod curve;
mod table;

pub use curve::{NetBenefit, decision_curve};
pub use table::{DecisionTable, decision_table, selection_rate};

pub(crate) use curve::curve_thresholds;
pub(crate) use table::{PreparedDecisions, PreparedSelection, risks};
