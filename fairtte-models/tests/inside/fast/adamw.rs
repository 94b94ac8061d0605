//! Our update has the same bits as burn's own, and either reads a record of the other.

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

fn gradients(net: &Backbone, step: u32) -> GradientsParams {
    let loss = features(net, pixels(net.kind(), step, 1.0, &device())).powi_scalar(2).mean();
    GradientsParams::from_grads(loss.backward(), net)
}

/// Steps by the optimiser of burn, and by ours with the same gradients on another copy of the network.
fn steps(net: &mut [Backbone; 2], [ours, of_burn]: [&mut ModuleOptimizer; 2], n_steps: u32) {
    for step in 1..=n_steps {
        let [found, expected] = net.clone();
        let before = parameters(&expected);
        let [for_ours, for_burn] = [(); 2].map(|()| gradients(&expected, step));
        *net = [ours.step(1e-2, found, for_ours), by_burn(|| of_burn.step(1e-2, expected, for_burn))];
        assert!(before != parameters(&net[1]), "a step that moves nothing");
    }
}

/// The bits of burn's own operations on `flex`. `LibTorch` rounds differently: there, equality up to single precision.
fn assert_same([found, expected]: &[Backbone; 2]) {
    let (kind, found, expected) = (found.kind().name(), parameters(found), parameters(expected));
    if std::env::var("FAIRTTE_TEST_DEVICE").is_err() {
        assert!(found == expected, "{kind}");
    }
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{kind}: {found} instead of {expected}");
    }
}

#[test]
fn parameters_have_the_bits_of_burns_optimiser() {
    for kind in [BackboneKind::EfficientNetB0, BackboneKind::VitBase16, BackboneKind::Small3d, BackboneKind::Mlp] {
        let net = initialise(miniature(kind, 3, &device()), stream(1, "weights", &[]));
        let mut both = [net.clone(), net];
        steps(&mut both, [&mut adamw(1e-8, DECAY), &mut of_burn()], 5);
        assert_same(&both);
    }
}

#[test]
fn a_record_of_either_goes_on_in_the_other() {
    let net = initialise(miniature(BackboneKind::Small2d, 3, &device()), stream(1, "weights", &[]));
    let mut both = [net.clone(), net];
    let [mut ours, mut of_burns] = [adamw(1e-8, DECAY), of_burn()];
    steps(&mut both, [&mut ours, &mut of_burns], 3);
    let record = |optimiser: ModuleOptimizer| optimiser.into_bytes().expect("a record");
    let (record_of_ours, record_of_burns) = (record(ours), record(of_burns));
    let [mut ours, mut of_burns] = [
        adamw(1e-8, DECAY).from_bytes(record_of_burns).expect("a record of burn's"),
        of_burn().from_bytes(record_of_ours).expect("a record of ours"),
    ];
    steps(&mut both, [&mut ours, &mut of_burns], 3);
    assert_same(&both);
}

/// The update changes a parameter in place, unless it is shared with a copy of the module, which stays unchanged.
#[test]
fn a_module_held_by_nobody_else_gets_the_same_bits() {
    let net = || initialise(miniature(BackboneKind::VitBase16, 3, &device()), stream(1, "weights", &[]));
    let [mut alone, mut shared] = [net(), net()];
    let [mut of_alone, mut of_shared] = [adamw(1e-8, DECAY), adamw(1e-8, DECAY)];
    for _ in 0..3 {
        let of_step = gradients(&alone, 1);
        alone = of_alone.step(1e-2, alone, of_step);
        let (copy, before) = (shared.clone(), parameters(&shared));
        let of_step = gradients(&shared, 1);
        shared = of_shared.step(1e-2, shared, of_step);
        assert!(parameters(&alone) == parameters(&shared));
        assert!(parameters(&copy) == before, "a step that moves a copy");
        assert!(parameters(&copy) != parameters(&shared), "a step that moves nothing");
    }
}
