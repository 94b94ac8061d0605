//! Every backbone that has a reference, narrow and shallow: the same code at a size suitable for tests.
//!
//! `parity/references.py` builds the references of the same shapes; a change here needs new files in `tests/parity`.

use burn::tensor::Device;

use crate::backbone::{Backbone, BackboneKind, Network};
use crate::efficientnet::EfficientNetB0;
use crate::medicalnet::{self, MedicalNet, MedicalNetDepth};
use crate::resnet2d::ResNet18;
use crate::resnet3d::ResNet18Volume;
use crate::vit::{self, VisionTransformer};
use crate::{EncoderConfig, MlpConfig};

/// The kinds that have a miniature of their own; the two Vision Transformers share one, and `MedicalNet`'s 34 is 18 with more
/// blocks.
pub(crate) const KINDS: [BackboneKind; 10] = [
    BackboneKind::EfficientNetB0,
    BackboneKind::ResNet18,
    BackboneKind::VitBase16,
    BackboneKind::ResNet18Volume,
    BackboneKind::MedicalNet10,
    BackboneKind::MedicalNet18,
    BackboneKind::MedicalNet50,
    BackboneKind::Small2d,
    BackboneKind::Small3d,
    BackboneKind::Mlp,
];

/// The miniature of `kind`; the small networks are their own.
pub(crate) fn miniature(kind: BackboneKind, channels: usize, device: &Device) -> Backbone {
    let widths = [4, 6, 8, 10];
    let network = match kind {
        BackboneKind::EfficientNetB0 => {
            let stages = [(1, 3, 1, 8, 8, 1), (6, 3, 2, 8, 8, 2), (6, 5, 2, 8, 16, 1)];
            Network::EfficientNetB0(EfficientNetB0::with_stages(channels, &stages, 24, device))
        }
        BackboneKind::ResNet18 => Network::ResNet18(ResNet18::with_widths(channels, widths, device)),
        BackboneKind::ResNet18Volume => Network::ResNet18Volume(ResNet18Volume::with_widths(channels, widths, device)),
        BackboneKind::VitBase16 | BackboneKind::VitLarge16 => {
            let plan = vit::Plan { width: 24, n_blocks: 3, n_heads: 3, patch: 4, grid: 4 };
            Network::VisionTransformer(VisionTransformer::with_plan(plan, channels, 0.2, device))
        }
        BackboneKind::MedicalNet10 => medicalnet(MedicalNetDepth::Ten.plan(), channels, widths, device),
        BackboneKind::MedicalNet18 | BackboneKind::MedicalNet34 => {
            medicalnet(MedicalNetDepth::Eighteen.plan(), channels, widths, device)
        }
        BackboneKind::MedicalNet50 => {
            let plan = medicalnet::Plan { repeats: [1, 2, 1, 1], ..MedicalNetDepth::Fifty.plan() };
            medicalnet(plan, channels, [4, 4, 4, 6], device)
        }
        BackboneKind::Mlp => return mlp(true, channels, device),
        BackboneKind::Small2d | BackboneKind::Small3d => return kind.build(channels, device),
    };
    Backbone { network, kind }
}

/// Two layers of 6 and 5 nodes.
pub(crate) fn mlp(batch_norm: bool, columns: usize, device: &Device) -> Backbone {
    let settings = MlpConfig { widths: vec![6, 5], dropout: 0.1, batch_norm };
    let config = EncoderConfig { mlp: Some(settings), ..EncoderConfig::new(BackboneKind::Mlp) };
    Backbone::new(&config, columns, device)
}

fn medicalnet(plan: medicalnet::Plan, channels: usize, widths: [usize; 4], device: &Device) -> Network {
    Network::MedicalNet(MedicalNet::with_plan(plan, channels, widths, device))
}
