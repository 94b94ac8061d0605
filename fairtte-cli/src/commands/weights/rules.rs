//! The rules of backbones and heads in words and formulas, for readers of an exported file.

use fairtte_models::weights::Layout;
use fairtte_models::{BackboneKind, EncoderConfig, MlpConfig, VitConfig};
use serde::Serialize;

use crate::CliError;
use crate::run_file::training::HeadConfig;

/// Which network the backbone is elsewhere.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct BackboneRule {
    name: &'static str,
    /// The library whose names its tensors have.
    library: &'static str,
    /// A call that builds it there; none where there is no such network.
    #[serde(skip_serializing_if = "Option::is_none")]
    python: Option<String>,
    words: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mlp: Option<MlpConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vit: Option<VitConfig>,
}

const TORCHVISION: &str = "its last layer is replaced by the identity, its first convolution has the number of channels of the \
input";
const VIT: &str = "fc_norm of the mean over the patch tokens, without the class token; epsilon of the norms 1e-6. For pictures \
of another size than 224 x 224 the 14 x 14 grid of positions is interpolated (bicubic, A = -0.75, align_corners = false, no \
antialiasing)";
const MEDICALNET: &str = "models/resnet.py of github.com/Tencent/MedicalNet up to layer4, then the mean over depth, height and \
width; shortcut type A for 18 and 34, B for 10 and 50";
const SMALL: &str = "layers.0 to layers.3: convolution with kernel 3, stride 2, padding 1, without bias; batch norm (epsilon 1e-5, \
gamma is its weight, beta its bias); ReLU. Then the mean over space";
const MLP: &str = "layers.0, layers.1, ..: dense (linear), ReLU, then norm (batch norm, epsilon 1e-5, gamma is its weight, beta its \
bias) if mlp.batch-norm";

impl BackboneRule {
    pub(super) fn of(config: &EncoderConfig, channels: usize) -> Self {
        use BackboneKind as Kind;
        let kind = config.backbone;
        let vit = |name: &str| {
            format!("timm.create_model(\"{name}\", in_chans={channels}, global_pool=\"avg\", num_classes=0)")
        };
        let (python, words) = match kind {
            Kind::EfficientNetB0 => (Some("torchvision.models.efficientnet_b0()".to_owned()), TORCHVISION),
            Kind::ResNet18 => (Some("torchvision.models.resnet18()".to_owned()), TORCHVISION),
            Kind::ResNet18Volume => (Some("torchvision.models.video.r3d_18()".to_owned()), TORCHVISION),
            Kind::VitBase16 => (Some(vit("vit_base_patch16_224")), VIT),
            Kind::VitLarge16 => (Some(vit("vit_large_patch16_224")), VIT),
            Kind::MedicalNet10 | Kind::MedicalNet18 | Kind::MedicalNet34 | Kind::MedicalNet50 => (None, MEDICALNET),
            Kind::Small2d | Kind::Small3d => (None, SMALL),
            _ => (None, MLP),
        };
        let library = match Layout::home(kind) {
            Layout::Native => "fairtte",
            layout => layout.name(),
        };
        Self { name: kind.name(), library, python, words, mlp: config.mlp.clone(), vit: config.vit }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn library(&self) -> &'static str {
        self.library
    }
}

/// How outputs become survival.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct HeadRule {
    rule: &'static str,
    formula: &'static str,
    between_cut_points: &'static str,
}

/// The times of the curves, and how a discrete curve reaches them.
pub(super) const CURVE_BETWEEN: &str = "grid.times are the times of the predicted curves. If points is 1 and early is null they are \
the cut points; otherwise values at the cut points are interpolated to them as head.between-cut-points says";

/// How the curves of a group are mapped.
pub(super) const RECALIBRATION: &str = "maps has one entry per level of groups, applied to the curve of a sample of that group; \
without a group the mapped curves are averaged with shares. exponent a: S^a. knots: F' is the line through the pairs (F, F'), \
F = 1 - S. shifts b: at cut point k, h = 1 - S_k / S_(k-1) becomes sigmoid(logit h + b_k) (0 and 1 stay), S'_k = S'_(k-1) (1 - h'); \
at a time t with c_(k-1) < t <= c_k, S'(t) = S'_(k-1) (S(t) / S_(k-1))^(log(1 - h') / log(1 - h)), exponent e^b where h = 0 and 1 \
where h = 1; S before the first cut point is 1";

const OF_SETTING: &str = "grid.rule linear: S is a straight line between cut points; constant-hazard: log S is";

impl HeadRule {
    /// # Errors
    /// [`CliError::Config`] for a head of another program, whose rule is not known here.
    pub(super) fn of(head: &HeadConfig) -> Result<Self, CliError> {
        let (rule, formula, between_cut_points) = match head {
            HeadConfig::Pmf(_) | HeadConfig::DeepHit(_) => (
                "the softmax of the outputs and an appended 0 are the probabilities of an event in each interval and of surviving the \
                 last cut point",
                "S(c_j) = (1 + sum_{m > j} exp(o_m)) / (1 + sum_m exp(o_m)), j = 0 .. L - 1",
                OF_SETTING,
            ),
            HeadConfig::NnetSurvival(_) => (
                "the sigmoid of output m is the probability of an event in interval m given survival up to it",
                "S(c_j) = prod_{m <= j} 1 / (1 + exp(o_m)), j = 0 .. L - 1",
                OF_SETTING,
            ),
            HeadConfig::PcHazard(_) => (
                "softplus of output m is the cumulative hazard over the interval from cut point m to m + 1; there is one output less \
                 than cut points",
                "S(c_j) = exp(-sum_{m < j} log(1 + exp(o_m))), j = 0 .. L - 1",
                "the cumulative hazard -log S is a straight line between cut points",
            ),
            HeadConfig::Cox(_) => (
                "the output is the log risk relative to the baseline of the network",
                "S(t) = exp(-H0(t) exp(o)), H0(t) = cumulative at the last baseline time <= t, 0 before the first",
                "cut points are not used: S is a step at every time of the baseline",
            ),
            HeadConfig::CoxTime(_) => (
                "the output at a time of the baseline is the log risk at that time relative to the baseline of the network",
                "S(t) = exp(-sum_{k: t_k <= t} exp(log-hazards_k + o(t_k)))",
                "cut points are not used: S is a step at every time of the baseline",
            ),
            HeadConfig::Binary(_) => (
                "the sigmoid of the output is the probability of the positive class; its curve has one interval, from 0 to 1",
                "S(1) = 1 - p = 1 / (1 + exp(o))",
                OF_SETTING,
            ),
            HeadConfig::Segmentation(_) => {
                let message = "the decoder of masks is not exported, expected a run that predicts curves or a class";
                return Err(CliError::setting("head", message.to_owned(), None));
            }
            other => {
                let message = format!("{} is a head of another program, whose rule is not known here", other.name());
                return Err(CliError::setting("head", message, None));
            }
        };
        Ok(Self { rule, formula, between_cut_points })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use super::*;

    #[test]
    fn every_head_of_this_program_has_a_rule_but_that_of_masks() {
        for name in HeadConfig::NAMES.into_iter().filter(|name| *name != "segmentation") {
            let head: HeadConfig = serde_json::from_value(serde_json::json!({ name: {} })).unwrap();
            assert!(HeadRule::of(&head).unwrap().formula.starts_with("S("), "{name}");
        }
    }

    #[test]
    fn what_has_a_home_elsewhere_says_how_it_is_built_there() {
        for kind in BackboneKind::ALL {
            let rule = BackboneRule::of(&EncoderConfig::new(kind), 1);
            let is_pip = ["torchvision", "timm"].contains(&rule.library);
            assert_eq!(rule.python.is_some(), is_pip, "{}", kind.name());
            assert_eq!(rule.library == "fairtte", Layout::home(kind) == Layout::Native, "{}", kind.name());
        }
        let gray = BackboneRule::of(&EncoderConfig::new(BackboneKind::VitBase16), 1).python.unwrap();
        assert!(gray.contains("in_chans=1"), "{gray}");
    }
}
