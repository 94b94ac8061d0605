//! Our update beside burn's own, to the bit, and a record of the one taken up by the other.

use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use fairtte_metrics::seeds::stream;

use super::networks::{features, parameters, pixels};
use super::{by_burn, device};
use crate::miniature::miniature;
use crate::{Backbone, BackboneKind, adamw, initialise};

const DECAY: f32 = 0.01;

fn of_burn() -> ModuleOptimizer {
    AdamWConfig::new().with_epsilon(1e-8).with_weight_decay(DECAY).init()
}

/// Steps by one optimiser; the forward and backward passes are the same for both.
fn steps(mut net: Backbone, mut optimiser: ModuleOptimizer, n_steps: u32, fused: bool) -> (Backbone, ModuleOptimizer) {
    for step in 0..n_steps {
        let loss = features(&net, pixels(net.kind(), 1 + step, 1.0, &device())).powi_scalar(2).mean();
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        let before = net.clone();
        let update = || optimiser.step(1e-2, before.clone(), gradients);
        net = if fused { update() } else { by_burn(update) };
        assert!(parameters(&before) != parameters(&net), "a step that moves nothing");
    }
    (net, optimiser)
}

#[test]
fn parameters_have_the_bits_of_burns_optimiser() {
    for kind in [BackboneKind::EfficientNetB0, BackboneKind::VitBase16, BackboneKind::Small3d, BackboneKind::Mlp] {
        let net = initialise(miniature(kind, 3, &device()), stream(1, "weights", &[]));
        let (found, _) = steps(net.clone(), adamw(1e-8, DECAY), 5, true);
        let (expected, _) = steps(net, of_burn(), 5, false);
        assert!(parameters(&found) == parameters(&expected), "{}", kind.name());
    }
}

#[test]
fn a_record_of_either_goes_on_in_the_other() {
    let kind = BackboneKind::Small2d;
    let net = initialise(miniature(kind, 3, &device()), stream(1, "weights", &[]));
    let (net, ours) = steps(net, adamw(1e-8, DECAY), 3, true);
    let record = ours.into_bytes().expect("a record");
    let again = |optimiser: ModuleOptimizer| optimiser.from_bytes(record.clone()).expect("a record of the same kind");
    let (found, _) = steps(net.clone(), again(adamw(1e-8, DECAY)), 3, true);
    let (expected, _) = steps(net, again(of_burn()), 3, false);
    assert!(parameters(&found) == parameters(&expected));
}

/// The update changes a parameter in place, unless a copy of the module holds it too; such a copy stays as it was.
#[test]
fn a_module_held_by_nobody_else_gets_the_same_bits() {
    let net = || initialise(miniature(BackboneKind::VitBase16, 3, &device()), stream(1, "weights", &[]));
    let gradients = |net: &Backbone| {
        let loss = features(net, pixels(net.kind(), 1, 1.0, &device())).powi_scalar(2).mean();
        GradientsParams::from_grads(loss.backward(), net)
    };
    let [mut alone, mut shared] = [net(), net()];
    let [mut of_alone, mut of_shared] = [adamw(1e-8, DECAY), adamw(1e-8, DECAY)];
    for _ in 0..3 {
        let of_step = gradients(&alone);
        alone = of_alone.step(1e-2, alone, of_step);
        let (copy, before) = (shared.clone(), parameters(&shared));
        let of_step = gradients(&shared);
        shared = of_shared.step(1e-2, shared, of_step);
        assert!(parameters(&alone) == parameters(&shared));
        assert!(parameters(&copy) == before, "a step that moves a copy");
        assert!(parameters(&copy) != parameters(&shared), "a step that moves nothing");
    }
}
