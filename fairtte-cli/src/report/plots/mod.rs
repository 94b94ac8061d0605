//! The figures of the page, as SVG to be placed inside HTML.
//!
//! Colours are those of Okabe & Ito, which colour-blind readers can distinguish; the style sheet of the page maps the
//! neutral ones to its light and dark scheme. Colour is never the only distinction.

mod below;
mod bias;
mod boxes;
mod by_attribute;
mod calibration;
mod canvas;
mod critical_difference;
mod decision;
mod forest;
mod gap;
mod losses;
mod marker;
mod model_forest;
mod over_time;
mod panels;
mod roc;
mod sensitivity;
mod survival;
mod tertiles;
mod trade_off;

pub(super) use bias::bias_figure;
pub(super) use boxes::{BoxPanel, box_figure};
pub(super) use by_attribute::GroupFigure;
pub(super) use calibration::{calibration_figures, calibration_of_models, calibration_side_by_side};
pub(super) use canvas::DrawError;
pub(super) use critical_difference::critical_difference;
pub(super) use decision::decision_figures;
pub(super) use forest::forest;
pub(super) use gap::gap_figure;
pub(super) use losses::{LossCurve, loss_curve};
pub(super) use model_forest::{cohort_forest, model_forest};
pub(super) use over_time::over_time_figures;
pub(crate) use panels::{Chart, Dot, Panels, PlanePanel, RowPanel, chart};
pub(super) use roc::roc_figures;
pub(super) use sensitivity::sensitivity_figure;
pub(super) use survival::survival_figures;
pub(super) use tertiles::tertile_figures;
pub(crate) use trade_off::Place;
pub(super) use trade_off::{Labels, trade_off};
