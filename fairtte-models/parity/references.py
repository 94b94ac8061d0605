"""Reference networks with random weights, and what they compute, as files that the parity tests of fairtte-models read.

    python references.py OUT --miniature [--medicalnet DIR]   # narrow and shallow: fairtte-models/tests/parity
    python references.py OUT [--medicalnet DIR] [--only NAME ..] [--containers]

DIR is a checkout of github.com/Tencent/MedicalNet; without it its networks are left out. For every network NAME:

NAME.safetensors           the weights under the reference's own keys (with --containers also NAME.pth and NAME.legacy.pth)
NAME.expected.safetensors  input, features (evaluation mode); input.N and features.N of other sizes; where gradients are
                           compared, training.features and gradient.KEY of one training step with the loss
                           sum(features * probe), and training.rounding, what a float32 pass of PyTorch is off by; of
                           full size the step has an input (training.input) and weights of its own:
NAME.training.safetensors  the weights with batch-norm shifts 4 higher

Weights are drawn in float32 from a fixed seed. Batch-norm statistics are those of one random batch, shifted and scaled at
random, so that activations keep their size. Features of the evaluation mode are PyTorch's in float32, what a user sees;
those of the training step and the gradients are computed in float64. How far the other precision is off is printed. Among a
million ReLUs some sit so near 0 that rounding decides on which side, which changes a gradient by percents, here as in
PyTorch: hence the higher shifts in the training step of full size, and the miniatures, whose units are few, for the kinks.

Made with torch 2.15.0, torchvision 0.29.2, timm 1.0.31, torchtuples 0.2.2, MedicalNet 20f76aa, segmentation_models_pytorch 0.6.0.
"""

import argparse
import copy
import functools
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn


def mean_over_space(x):
    return x.flatten(2).mean(2)


class Features(nn.Module):
    """Any network up to its features: `run(net, x)`."""

    def __init__(self, net, run, prefixes=()):
        super().__init__()
        self.net, self.run, self.prefixes = net, run, prefixes

    def forward(self, x):
        return self.run(self.net, x)

    def weights(self):
        """Weights under the reference's keys, without the layers behind the features."""
        return {k: v for k, v in self.net.state_dict().items() if not k.startswith(self.prefixes or "\0")}


def efficientnet(miniature):
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig, efficientnet_b0

    if miniature:
        stages = [MBConvConfig(1, 3, 1, 8, 8, 1, 1.0, 1.0), MBConvConfig(6, 3, 2, 8, 8, 2, 1.0, 1.0),
                  MBConvConfig(6, 5, 2, 8, 16, 1, 1.0, 1.0)]
        net = EfficientNet(stages, 0.2, stochastic_depth_prob=0.0, last_channel=24)
    else:
        net = efficientnet_b0(stochastic_depth_prob=0.0)
    return Features(net, lambda net, x: mean_over_space(net.features(x)), ("classifier",))


def resnet_stages(net, x):
    x = net.maxpool(net.relu(net.bn1(net.conv1(x))))
    return mean_over_space(net.layer4(net.layer3(net.layer2(net.layer1(x)))))


def resnet18(miniature):
    from torchvision.models.resnet import BasicBlock, ResNet
    from torchvision.models import resnet18 as full

    net = full()
    if miniature:
        widths = [4, 6, 8, 10]
        net.inplanes = widths[0]
        net.conv1 = nn.Conv2d(3, widths[0], 7, stride=2, padding=3, bias=False)
        net.bn1 = nn.BatchNorm2d(widths[0])
        for stage, width in enumerate(widths):
            setattr(net, f"layer{stage + 1}", ResNet._make_layer(net, BasicBlock, width, 2, stride=1 if stage == 0 else 2))
    return Features(net, resnet_stages, ("fc",))


class Unet(nn.Module):
    """The reference's decoder on the encoder of `resnet18`, whose maps are those that its own encoder returns."""

    def __init__(self, miniature):
        from segmentation_models_pytorch.base import SegmentationHead
        from segmentation_models_pytorch.decoders.unet.decoder import UnetDecoder

        super().__init__()
        self.encoder = resnet18(miniature).net
        stages, widths = ([4, 4, 6, 8, 10], [9, 7, 6, 5, 4]) if miniature else ([64, 64, 128, 256, 512], [256, 128, 64, 32, 16])
        self.decoder = UnetDecoder(encoder_channels=[3, *stages], decoder_channels=widths)
        self.segmentation_head = SegmentationHead(widths[-1], 3, kernel_size=3)

    def forward(self, x):
        net = self.encoder
        maps = [x, net.relu(net.bn1(net.conv1(x)))]
        maps.append(net.layer1(net.maxpool(maps[-1])))
        for layer in (net.layer2, net.layer3, net.layer4):
            maps.append(layer(maps[-1]))
        return self.segmentation_head(self.decoder(maps))


def unet(miniature):
    """Logits of three classes in place of features."""
    return Features(Unet(miniature), lambda net, x: net(x).flatten(1), ("encoder.fc",))


def r3d_18(miniature):
    from torchvision.models.video import r3d_18 as full
    from torchvision.models.video.resnet import BasicBlock, Conv3DSimple, VideoResNet

    net = full()
    if miniature:
        widths = [4, 6, 8, 10]
        net.inplanes = widths[0]
        net.stem = nn.Sequential(nn.Conv3d(3, widths[0], (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False),
                                 nn.BatchNorm3d(widths[0]), nn.ReLU())
        for stage, width in enumerate(widths):
            layer = VideoResNet._make_layer(net, BasicBlock, Conv3DSimple, width, 2, stride=1 if stage == 0 else 2)
            setattr(net, f"layer{stage + 1}", layer)
    run = lambda net, x: mean_over_space(net.layer4(net.layer3(net.layer2(net.layer1(net.stem(x))))))
    return Features(net, run, ("fc",))


def medicalnet(depth, shortcut, miniature):
    import importlib

    module = importlib.import_module("models.resnet")
    settings = dict(sample_input_D=1, sample_input_H=1, sample_input_W=1, num_seg_classes=2, shortcut_type=shortcut, no_cuda=True)
    if not miniature:
        return Features(getattr(module, f"resnet{depth}")(**settings), resnet_stages, ("conv_seg",))
    block = module.Bottleneck if depth == 50 else module.BasicBlock
    repeats = {10: [1, 1, 1, 1], 18: [2, 2, 2, 2], 50: [1, 2, 1, 1]}[depth]
    widths = [4, 4, 4, 6] if depth == 50 else [4, 6, 8, 10]
    net = module.ResNet(module.BasicBlock, [1, 1, 1, 1], **settings)
    net.inplanes = widths[0]
    net.conv1 = nn.Conv3d(1, widths[0], 7, stride=2, padding=3, bias=False)
    net.bn1 = nn.BatchNorm3d(widths[0])
    for stage, (stride, dilation) in enumerate([(1, 1), (2, 1), (1, 2), (1, 4)]):
        layer = net._make_layer(block, widths[stage], repeats[stage], shortcut, stride, dilation)
        setattr(net, f"layer{stage + 1}", layer)
    return Features(net, resnet_stages, ("conv_seg",))


class PositionsOfSize(nn.Module):
    """A Vision Transformer of timm for pictures of any size, its positions interpolated as RETFound's util/pos_embed.py does."""

    def __init__(self, net, patch):
        super().__init__()
        self.net, self.patch = net, patch

    def forward(self, x):
        net, size = self.net, [side // self.patch for side in x.shape[2:]]
        of_class, of_patches = net.pos_embed[:, :1], net.pos_embed[:, 1:]
        grid = int(of_patches.shape[1] ** 0.5)
        if size != [grid, grid]:
            of_patches = of_patches.reshape(1, grid, grid, -1).permute(0, 3, 1, 2)
            of_patches = nn.functional.interpolate(of_patches, size=size, mode="bicubic", align_corners=False)
            of_patches = of_patches.permute(0, 2, 3, 1).flatten(1, 2)
        x = net.patch_embed.proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([net.cls_token.expand(len(x), -1, -1), x], 1) + torch.cat([of_class, of_patches], 1)
        for block in net.blocks:
            x = block(x)
        return net.fc_norm(x[:, 1:].mean(1))

    def state_dict(self):
        return self.net.state_dict()


def vit(width, n_blocks, n_heads, miniature):
    from timm.models.vision_transformer import VisionTransformer

    sizes = dict(img_size=16, patch_size=4) if miniature else dict(img_size=224, patch_size=16)
    norm = functools.partial(nn.LayerNorm, eps=1e-6)
    net = VisionTransformer(embed_dim=width, depth=n_blocks, num_heads=n_heads, mlp_ratio=4, qkv_bias=True, norm_layer=norm,
                            num_classes=1, global_pool="avg", **sizes)
    return Features(PositionsOfSize(net, sizes["patch_size"]), lambda net, x: net(x), ("head",))


def mlp(batch_norm):
    from torchtuples.practical import MLPVanilla

    net = MLPVanilla(7, [6, 5], 1, batch_norm=batch_norm, dropout=0.1)
    return Features(net, lambda net, x: net.net[:-1](x), ("net.2",))


def randomise(model, inputs, generator):
    """Weights and batch-norm statistics."""
    normal = lambda shape: torch.randn(shape, generator=generator)
    uniform = lambda shape, a, b: a + (b - a) * torch.rand(shape, generator=generator)
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith(("cls_token", "pos_embed")):
                p.copy_(0.5 * normal(p.shape))
            elif p.dim() > 2:
                p.copy_(normal(p.shape) * (2 / p[0].numel()) ** 0.5)
            elif p.dim() == 2:
                p.copy_(normal(p.shape) / p.shape[1] ** 0.5)
            elif name.endswith("weight"):
                p.copy_(uniform(p.shape, 0.6, 1.4))
            else:
                p.copy_(0.2 * normal(p.shape))
        for norm in norms:
            norm.momentum = 1.0
        without_dropout(model)(inputs)
        for norm in norms:
            norm.momentum = 0.1
            norm.running_mean += 0.1 * norm.running_var.sqrt() * normal(norm.running_mean.shape)
            norm.running_var *= uniform(norm.running_var.shape, 0.8, 1.25)


def without_dropout(model):
    """In training mode but for dropout."""
    model.train()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.eval()
    return model


def make(name, build, shape, other_sizes, training, args):
    generator = torch.Generator().manual_seed(20_26)
    model = build(args.miniature)

    def draw(shape):
        noise = torch.randn(shape, generator=generator)
        if args.miniature or len(shape) != 5 or shape[1] != 1:
            return noise
        # Scans are smooth. Pure noise looks the same everywhere to the last layers, whose batch norms then blow up rounding.
        coarse = torch.randn([*shape[:2], *(side // 16 for side in shape[2:])], generator=generator)
        return 0.3 * noise + nn.functional.interpolate(coarse, size=shape[2:], mode="trilinear")

    randomise(model, draw((max(shape[0], 4), *shape[1:])), generator)
    # The training step below moves batch-norm statistics.
    weights = {k: v.clone().contiguous() for k, v in model.weights().items()}
    exact = copy.deepcopy(model).double().eval()
    model.eval()
    expected = {}
    with torch.no_grad():
        for n, size in enumerate([shape, *other_sizes]):
            suffix = f".{n}" if n else ""
            x = draw(size)
            y = model(x)
            expected |= {f"input{suffix}": x, f"features{suffix}": y}
            rounding = (exact(x.double()) - y).abs().max().item()
            print(f"{name}{suffix}: {list(size)}, features within {y.abs().max().item():.2f}, float64 differs by {rounding:.1e}")
    if training:
        rounding, computed = 0.0, []
        x = expected["input"]
        if not args.miniature:
            x = expected["training.input"] = draw(training)
            for net in (exact, model):
                for m in net.modules():
                    if isinstance(m, nn.modules.batchnorm._BatchNorm):
                        m.bias.data += 4
            save_file({k: v.clone().contiguous() for k, v in model.weights().items()}, args.out / f"{name}.training.safetensors")
        probe = draw((len(x), y.shape[1]))
        for net, x in ((exact, x.double()), (model, x)):
            features = without_dropout(net)(x)
            (features * probe.to(features.dtype)).sum().backward()
            owner = net.net.net if isinstance(net.net, PositionsOfSize) else net.net
            computed.append({k: p.grad.clone() for k, p in owner.named_parameters() if k in weights})
            expected.setdefault("training.features", features.detach().float())
        largest = max(exactly.abs().max() for exactly in computed[0].values())
        for key, exactly in computed[0].items():
            expected[f"gradient.{key}"] = exactly.float()
            # Some gradients are 0 but for rounding: that of a shift which the next batch norm takes out again.
            if exactly.abs().max() > 1e-9 * largest:
                rounding = max(rounding, ((computed[1][key] - exactly).abs().max() / exactly.abs().max()).item())
        expected |= {"probe": probe, "training.rounding": torch.tensor([rounding])}
        print(f"{name}: {len(computed[0])} gradients, float32 differs by {rounding:.1e} of the largest entry of each")
    save_file(weights, args.out / f"{name}.safetensors")
    save_file({k: v.contiguous() for k, v in expected.items()}, args.out / f"{name}.expected.safetensors")
    if args.containers:
        torch.save(weights, args.out / f"{name}.pth")
        torch.save(weights, args.out / f"{name}.legacy.pth", _use_new_zipfile_serialization=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--miniature", action="store_true")
    parser.add_argument("--medicalnet", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--containers", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.medicalnet:
        sys.path.insert(0, str(args.medicalnet))
    small = args.miniature
    picture = (3, 3, 37, 42) if small else (2, 3, 224, 224)
    volume = (3, 3, 5, 18, 19) if small else (2, 3, 16, 112, 112)
    scan = (2, 1, 13, 18, 17) if small else (1, 1, 48, 64, 64)
    small_or = lambda shape: shape if small else {picture: (8, 3, 96, 96), volume: (4, 3, 8, 48, 48), scan: None}[shape]
    references = [
        ("efficientnet-b0", efficientnet, picture, [], small_or(picture)),
        ("resnet18", resnet18, picture, [], small_or(picture)),
        ("resnet18-3d", r3d_18, volume, [], small_or(volume)),
        ("mlp", lambda _: mlp(True), (9, 7), [], (9, 7)),
        ("mlp-without-norm", lambda _: mlp(False), (9, 7), [], (9, 7)),
    ]
    masks = (3, 3, 64, 32) if small else (2, 3, 224, 224)
    references.append(("unet", unet, masks, [], masks if small else (4, 3, 96, 96)))
    if args.medicalnet:
        # Shortcut A of the reference cuts the gradient, ours does not: outputs only.
        depths = [(10, "B"), (18, "A"), (50, "B")] if small else [(10, "B"), (18, "A"), (34, "A"), (50, "B")]
        for depth, shortcut in depths:
            build = functools.partial(medicalnet, depth, shortcut)
            training = small_or(scan) if shortcut == "B" else None
            references.append((f"medicalnet-resnet{depth}", build, scan, [], training))
    if small:
        references.append(("vit", functools.partial(vit, 24, 3, 3), (3, 3, 16, 16), [(2, 3, 12, 28)], (3, 3, 16, 16)))
    else:
        for name, shape in (("vit-base-16", (768, 12, 12)), ("vit-large-16", (1024, 24, 16))):
            references.append((name, functools.partial(vit, *shape), (1, 3, 224, 224), [(1, 3, 256, 320)], None))
    for name, build, shape, other_sizes, training in references:
        if not args.only or name in args.only:
            make(name, build, shape, other_sizes, training, args)


if __name__ == "__main__":
    main()
