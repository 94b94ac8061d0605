//! Operations that the kernels do not cover have the bits of burn's own operations.

use burn::nn::conv::{Conv2dConfig, Conv3dConfig};
use burn::nn::{BatchNormConfig, LayerNormConfig, LinearConfig, PaddingConfig2d, PaddingConfig3d};
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::super::{self as fast, Activation, computes_on_host, has_kernels};
use super::{by_burn, device, plain_device, tensor, values};

#[test]
fn dilation_groups_and_uneven_padding_go_to_burn() {
    let device = device();
    let plain = Conv2dConfig::new([4, 6], [3, 3]);
    let x = tensor([2, 4, 9, 8], 1, &device);
    for (what, config) in [
        ("dilation", plain.clone().with_dilation([2, 2])),
        ("groups", plain.clone().with_groups(2)),
        ("uneven padding", plain.clone().with_padding(PaddingConfig2d::Explicit(0, 1, 2, 1))),
        ("padding to the same size", plain.with_padding(PaddingConfig2d::Same)),
    ] {
        let conv = config.init(&device);
        let (found, expected) = (fast::conv2d(&conv, x.clone()), conv.forward(x.clone()));
        assert_eq!(values(found.inner()), values(expected.inner()), "{what}");
    }
    let volume = tensor([2, 4, 5, 6, 7], 2, &device);
    for (what, config) in [
        ("dilation", Conv3dConfig::new([4, 6], [3; 3]).with_dilation([2; 3])),
        ("groups", Conv3dConfig::new([4, 4], [3; 3]).with_groups(4)),
        ("padding to the same size", Conv3dConfig::new([4, 6], [3; 3]).with_padding(PaddingConfig3d::Same)),
    ] {
        let config = if what == "dilation" { config.with_padding(PaddingConfig3d::Explicit(2, 2, 2)) } else { config };
        let conv = config.init(&device);
        let (found, expected) = (fast::conv3d(&conv, volume.clone()), conv.forward(volume.clone()));
        assert_eq!(values(found.inner()), values(expected.inner()), "{what}");
    }
}

#[test]
fn other_types_than_those_of_the_kernels_go_to_burn() {
    let device = device();
    let half = fast::computes_on_host(&device).then_some(DType::F16);
    for dtype in std::iter::once(DType::F64).chain(half) {
        let x = tensor([2, 3, 6, 5], 3, &device).cast(dtype);
        assert!(!has_kernels(&x));
        let found = fast::act(x.clone(), Activation::Silu);
        assert_eq!(found.dtype(), dtype);
        let expected = by_burn(|| fast::act(x.clone(), Activation::Silu));
        assert_eq!(found.into_data(), expected.into_data());
        assert_eq!(fast::average(x.clone()).dtype(), dtype);
        assert_eq!(fast::add_relu(x.clone(), x.clone()).dtype(), dtype);
        assert_eq!(fast::max_pool(x, [3, 3], [2, 2], [1, 1]).dims(), [2, 3, 3, 3]);
    }
}

#[test]
fn shapes_that_are_to_be_repeated_go_to_burn() {
    let device = device();
    let (x, one) = (tensor([2, 3, 4, 5], 5, &device), tensor([1, 3, 4, 5], 6, &device));
    let expected = by_burn(|| fast::add_relu(x.clone(), one.clone()));
    assert_eq!(values(fast::add_relu(x.clone(), one).inner()), values(expected.inner()));
    let gate = tensor([1, 3, 1, 1], 7, &device);
    let expected = x.clone() * gate.clone();
    assert_eq!(values(fast::gate(x, gate).inner()), values(expected.inner()));
}

#[test]
fn parameters_of_another_type_are_none_for_the_kernels() {
    let device = device();
    if !fast::computes_on_host(&device) {
        return;
    }
    let mut norm = LayerNormConfig::new(4).init(&device);
    norm.beta = norm.beta.map(|beta| beta.map(|beta| beta.cast(DType::F64)));
    let linear = LinearConfig::new(4, 5).init(&device);
    let mut other = linear.clone();
    other.bias = other.bias.map(|bias| bias.map(|bias| bias.cast(DType::F64)));
    assert!(fast::norm_link(&norm, 1e-6, 4).is_none());
    assert!(fast::linear_link(&linear, 4).is_some());
    assert!(fast::linear_link(&other, 4).is_none());
}

#[test]
fn a_wrong_number_of_channels_is_told_in_the_words_of_burn() {
    let device = plain_device();
    let norm = BatchNormConfig::new(4).init(&device);
    let conv = Conv2dConfig::new([4, 6], [3, 3]).init(&device);
    let wide = Conv2dConfig::new([3, 8], [3, 3]).init(&device);
    let x = tensor([2, 3, 6, 5], 4, &device);
    // Fewer outputs than weights.
    let small = tensor([1, 3, 3, 3], 8, &device);
    for (what, of_fast, of_burn) in [
        (
            "convolution and batch norm",
            panicking(|| drop(fast::conv_norm_2d(&wide, &norm, small.clone().into(), Activation::Relu))),
            panicking(|| drop(norm.forward(wide.forward(small.clone())))),
        ),
        (
            "batch norm",
            panicking(|| drop(fast::bn_act(&norm, x.clone(), Activation::Relu))),
            panicking(|| drop(norm.forward(x.clone()))),
        ),
        (
            "convolution",
            panicking(|| drop(fast::conv2d(&conv, x.clone()))),
            panicking(|| drop(conv.forward(x.clone()))),
        ),
    ] {
        assert!(of_burn.is_some(), "{what}");
        assert_eq!(of_fast, of_burn, "{what}");
    }
}

fn panicking(call: impl FnOnce()) -> Option<String> {
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).err()?;
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()))
}

/// A name of a device is enough to decide: no GPU is asked.
#[test]
fn kernels_never_get_the_memory_of_a_gpu() {
    assert!(computes_on_host(&Device::flex()) && computes_on_host(&Device::flex().autodiff()));
    #[cfg(feature = "tch")]
    if !super::as_on_a_gpu() {
        named_devices_of_libtorch();
    }
    #[cfg(feature = "wgpu")]
    {
        let device = Device::wgpu(burn::tensor::DeviceKind::DefaultDevice);
        assert!(!computes_on_host(&device) && !computes_on_host(&device.autodiff()));
    }
}

#[cfg(feature = "tch")]
fn named_devices_of_libtorch() {
    for (device, on_host) in [(Device::libtorch(), true), (Device::libtorch_cuda(0), false)] {
        assert_eq!(computes_on_host(&device), on_host, "{device:?}");
        assert_eq!(computes_on_host(&device.clone().autodiff()), on_host, "{device:?} with gradients");
    }
}

/// x P(x) and its slope P(x) + x p(x), from the normal distribution function to 15 digits. An error function in single precision loses the
/// tail, and the gradient of burn's own GELU is that of an approximation.
#[test]
fn gelu_by_burn_has_the_tail_and_the_slope_of_its_definition() {
    let below: [(f64, f64); 10] = [
        (-6.0, 9.865_876_450_376_98e-10),
        (-5.0, 2.866_515_718_791_94e-7),
        (-4.0, 3.167_124_183_311_99e-5),
        (-3.0, 1.349_898_031_630_09e-3),
        (-2.0, 2.275_013_194_817_92e-2),
        (-1.0, 0.158_655_253_931_457),
        (0.0, 0.5),
        (1.0, 0.841_344_746_068_543),
        (3.0, 0.998_650_101_968_37),
        (6.0, 0.999_999_999_013_412),
    ];
    #[expect(clippy::cast_possible_truncation, reason = "small integers")]
    let places: Vec<f32> = below.iter().map(|&(x, _)| x as f32).collect();
    let x = Tensor::<1>::from_data(TensorData::new(places, [below.len()]), &device()).require_grad();
    let y = by_burn(|| fast::act(x.clone(), Activation::Gelu));
    let slopes = values(x.grad(&y.clone().sum().backward()).expect("a gradient"));
    for ((&(x, below), y), slope) in below.iter().zip(values(y.inner())).zip(slopes) {
        let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        for (what, found, expected) in [("value", y, x * below), ("slope", slope, below + x * density)] {
            let error = (f64::from(found) - expected).abs();
            assert!(error <= 3e-6 * expected.abs(), "{what} at {x}: {found:e}, expected {expected:e}");
        }
    }
}
