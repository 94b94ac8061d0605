"""Parameter gradients of whole networks in PyTorch float64, as a file that a test of fairtte-models reads.

    python gradients.py [OUT] [--only NAME ..]     # OUT defaults to ../tests/parity/gradients.json

Needs torch, torchvision and timm. The networks are those of references.py at full size, in training mode without stochastic
depth and dropout; the loss is sum(features * probe). Weights, input and probe come from the closed formula of operations.py,
so that the file holds gradients only: entry i (row-major) of a tensor with `seed`, `scale` and `shift` is
shift + scale * v(seed, i), where in 32-bit arithmetic that wraps

    x = i + seed * 0x9E3779B9;  x ^= x >> 16;  x *= 0x7FEB352D;  x ^= x >> 15;  x *= 0x846CA68B;  x ^= x >> 16
    v = (x >> 19) / 4096 - 1                                   # in [-1, 1), in steps of 2^-12

which float32 holds exactly, because scales have 8 significant bits and shifts are 0, 1 or 2.5. The seed of a
parameter is its place among the parameters in PyTorch's order, from 1; its shape is PyTorch's ([out, in] of a linear layer).
Scales: weights of rank 2 and more sqrt(3 g / fan_in), a variance of g / fan_in with g = 2 (ViT: 1); norm weights 1 + 0.25 v;
biases 0.25 v (RAISED + 0.25 v in the batch norms of the ReLU networks); class token and positions 0.5 v.

Of every gradient are written: `norm` (L2) and `largest` absolute value, the entries k * stride modulo their number, k < 16, in
float64 rounded to 9 digits, `rounding`, what PyTorch's float32 is off by at most over all entries as a share of `largest`,
`rounding_here`, the same over the entries that are written, and `rounding_norm`, that of the norm. A gradient that is 0 but for
rounding, as that of a shift that the next batch norm takes out again, is marked `zero`; its rounding is a share of the network's
`largest`.

Among a million ReLUs some sit so near 0 that rounding decides on which side, which changes a gradient by percents, in PyTorch
as anywhere. Hence the shifts above, and an input whose seed was chosen (--search) so that every ReLU and every choice of a
maximum keeps a distance: `margin` is the smallest one as a multiple of what PyTorch's float32 is off by at most in that layer.
"""

import argparse
import copy
import datetime
import functools
import json
import math
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))
from operations import Input, number
from references import PositionsOfSize, efficientnet, r3d_18, resnet18, vit, without_dropout

RAISED = 2.5
ENTRIES = 16
CASES = {
    "efficientnet-b0": (efficientnet, [4, 3, 72, 60], 1001),
    "resnet18": (resnet18, [4, 3, 72, 60], 1019),
    "resnet18-3d": (r3d_18, [2, 1, 11, 42, 46], 1010),
    "vit-base/16": (functools.partial(vit, 768, 12, 12), [2, 3, 224, 224], 1001),
}


def eight_bits(x):
    """Nearest number of 8 significant bits."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(round(mantissa * 256), exponent - 8)


def owner(model):
    return model.net.net if isinstance(model.net, PositionsOfSize) else model.net


def build(name, make, shape):
    """The network in float64 with its weights, and where they come from: key, formula."""
    model = make(False)
    if name == "resnet18-3d":
        model.net.stem[0] = nn.Conv3d(shape[1], 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False)
    model = without_dropout(model.double())
    of_features = model.weights()
    relu = name.startswith("resnet")
    norms = {f"{k}.bias" for k, m in owner(model).named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)}
    formulas = {}
    for seed, (key, p) in enumerate([(k, p) for k, p in owner(model).named_parameters() if k in of_features], start=1):
        scale, shift = 0.25, 0.0
        if key.endswith(("cls_token", "pos_embed")):
            scale = 0.5
        elif p.dim() > 1:
            scale = eight_bits((3 * (1 if name.startswith("vit") else 2) / p[0].numel()) ** 0.5)
        elif key.endswith("weight"):
            shift = 1.0
        elif key in norms and relu:
            shift = RAISED
        formulas[key] = Input(key, p.shape, scale, shift, seed=seed)
        p.data.copy_(formulas[key].tensor(torch.float64))
    return model, formulas


def step(model, formulas, x, probe):
    """Features and gradients by key."""
    features = model(x)
    (features * probe).sum().backward()
    of_key = dict(owner(model).named_parameters())
    return features.detach(), {key: of_key[key].grad for key in formulas}


def entries(exact, single):
    """What is written of one tensor."""
    exact, single = exact.flatten(), single.flatten().double()
    n = exact.numel()
    stride = n // ENTRIES + 1
    while math.gcd(stride, n) > 1:
        stride += 1
    places = [k * stride % n for k in range(min(n, ENTRIES))]
    largest, off = exact.abs().max().item(), (exact - single).abs()
    share = lambda x: float(f"{x / largest if largest else x:.3g}")
    norm = exact.norm().item()
    return {"norm": number(norm), "largest": number(largest), "rounding": share(off.max().item()),
            "rounding_here": share(off[places].max().item()),
            "rounding_norm": float(f"{abs(single.norm().item() - norm) / norm if norm else 0:.3g}"),
            "stride": stride, "values": [number(v) for v in exact[places].tolist()]}


def distances(model, x):
    """Of every layer that chooses, its values and how far each choice is from the other."""
    found = []

    def seen(module, inputs):
        values = inputs[0].detach().clone()
        distance = values.abs()
        if isinstance(module, nn.MaxPool2d):
            padded = nn.functional.pad(values, [1] * 4, value=-math.inf)
            windows = padded.unfold(2, 3, 2).unfold(3, 3, 2).flatten(4)
            first, second = windows.topk(2).values.unbind(-1)
            distance = (first - second)[first > second]
        found.append((values, distance.min()))

    hooks = [m.register_forward_pre_hook(seen) for m in model.modules() if isinstance(m, (nn.ReLU, nn.MaxPool2d))]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return found


def margin(model, single, x):
    """The smallest distance as a multiple of what float32 is off by in the same layer."""
    sides = [distances(copy.deepcopy(net), x.tensor(dtype)) for net, dtype in ((model, torch.float64), (single, torch.float32))]
    shares = [(distance / (values - rounded).abs().max()).item() for (values, distance), (rounded, _) in zip(*sides)]
    return min(shares, default=math.inf)


def record(name, search):
    make, shape, seed = CASES[name]
    model, formulas = build(name, make, shape)
    single = copy.deepcopy(model).float()
    if search and any(isinstance(m, nn.ReLU) for m in model.modules()):
        found = [(margin(model, single, Input("input", shape, seed=seed)), seed) for seed in range(1001, 1001 + search)]
        print(name, "margins:", *(f"{seed} {m:.2f}," for m, seed in sorted(found, reverse=True)))
        seed = max(found)[1]
    x = Input("input", shape, seed=seed)
    kept = margin(model, single, x)
    with torch.no_grad():
        n_features = copy.deepcopy(model)(x.tensor(torch.float64)).shape[1]
    probe = Input("probe", [shape[0], n_features], seed=2001)
    exact, rounded = (step(net, formulas, x.tensor(dtype), probe.tensor(dtype))
                      for net, dtype in ((model, torch.float64), (single, torch.float32)))
    formula = lambda given: {key: getattr(given, key) for key in ("shape", "seed", "scale", "shift")}
    largest = max(gradient.abs().max().item() for gradient in exact[1].values())
    parameters = []
    for key, given in formulas.items():
        written = entries(exact[1][key], rounded[1][key])
        if written["largest"] < 1e-9 * largest:
            off = (exact[1][key] - rounded[1][key]).abs().max().item()
            written = {"zero": True, "rounding": float(f"{off / largest:.3g}")}
        parameters.append({"key": key, **formula(given), **written})
    features = entries(exact[0], rounded[0])
    roundings = sorted((p["rounding"], p["key"]) for p in parameters if not p.get("zero"))
    zeros = [p["rounding"] for p in parameters if p.get("zero")]
    print(f"{name} {shape}, seed {seed}, margin {kept:.1f}: "
          f"features of norm {features['norm']:.3g}, float32 off by {features['rounding']:.1e}; "
          f"{len(parameters)} gradients off by {roundings[len(roundings) // 2][0]:.1e} in the middle and at most "
          f"{', '.join(f'{r:.1e} {key}' for r, key in roundings[-3:])}; {len(zeros)} are 0 but for {max(zeros, default=0):.1e}")
    return {"name": name, "input": formula(x), "probe": formula(probe), "margin": number(kept), "largest": number(largest),
            "features": features, "parameters": parameters}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).parent.parent / "tests/parity/gradients.json")
    parser.add_argument("--search", type=int, default=0, metavar="N", help="try N seeds of the input of networks with ReLUs")
    parser.add_argument("--only", nargs="*", choices=CASES)
    args = parser.parse_args()
    torch.set_num_threads(2)
    import timm
    import torchvision

    networks = [record(name, args.search) for name in args.only or CASES]
    provenance = {"made": str(datetime.date.today()), "by": "fairtte-models/parity/gradients.py", "torch": torch.__version__,
                  "torchvision": torchvision.__version__, "timm": timm.__version__,
                  "rounding": "float32 on 2 threads, " + torch.backends.cpu.get_cpu_capability()}
    lines = []
    for network in networks:
        of_each = ",\n".join(json.dumps(p, separators=(",", ":")) for p in network.pop("parameters"))
        lines.append(json.dumps(network, separators=(",", ":"))[:-1] + f',"parameters":[\n{of_each}]}}')
    args.out.write_text(f'{{"provenance": {json.dumps(provenance)},\n"networks": [\n' + ",\n".join(lines) + "\n]}\n")
    print(f"{args.out.stat().st_size / 1000:.0f} kB: {args.out}")


if __name__ == "__main__":
    main()
