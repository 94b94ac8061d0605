"""Single operations and their gradients in PyTorch float64, as a file that the tests of the fused operations read.

    python operations.py [OUT]          # OUT defaults to ../tests/parity/operations.json

Every input comes from a closed formula whose values are exact in float32 and float64 alike, so that the file holds results
only. Entry i of an input with `seed`, `bits`, `scale` and `shift` is shift + scale * v, where in 32-bit arithmetic that wraps

    x = i + seed * 0x9E3779B9;  x ^= x >> 16;  x *= 0x7FEB352D;  x ^= x >> 15;  x *= 0x846CA68B;  x ^= x >> 16
    v = (x >> (32 - bits)) / 2^(bits - 1) - 1        # in [-1, 1), in steps of 2^(1 - bits); bits is 13, few bits give ties

and `set` replaces single entries ("nan", "inf", "-inf" or a number); an input with `values` lists them all (the nearest float32
is meant). The last input, `dy`, is the gradient of y: results are those of sum(y * dy).

Each of `results` is y, the gradient d_NAME of input NAME, or (batch norm) mean and variance, the biased one. `values` are the
entries 0, stride, 2 * stride .. in float64 rounded to 9 digits (which float32 needs), `sum` is over all entries, `largest` the
largest absolute value. `rounding` is what PyTorch's own float32 is off by at most over all entries, as a share of `largest`
(absolute where that is 0): a test may ask for twice that plus a floor. Entries that are infinite or NaN are words and count
in neither largest nor rounding, and there is no sum. `single` is there where PyTorch's float32 has words in other places: its
values at the same entries.

Layouts are PyTorch's: convolution weights [out, in / groups, kernel..], linear weights [out, in].
"""

import argparse
import datetime
import json
import math
from pathlib import Path

import torch
from torch.nn import functional as F

ACTIVATIONS = {"identity": lambda x: x, "relu": F.relu, "silu": F.silu, "gelu": F.gelu, "sigmoid": torch.sigmoid}
KEEP = 72  # entries of a result that are written down


class Input:
    """Where the values of one input come from."""

    def __init__(self, name, shape, scale=1.0, shift=0.0, bits=13, seed=None, values=None, **places):
        self.name, self.shape, self.values, self.places = name, list(shape), values, places.get("set", {})
        self.seed, self.scale, self.shift, self.bits = seed, scale, shift, bits

    def tensor(self, dtype):
        if self.values is not None:
            return torch.tensor([float(v) for v in self.values]).reshape(self.shape).to(dtype)
        mask = 0xFFFFFFFF
        x = (torch.arange(math.prod(self.shape), dtype=torch.int64) + self.seed * 0x9E3779B9) & mask
        x = ((x ^ (x >> 16)) * 0x7FEB352D) & mask
        x = ((x ^ (x >> 15)) * 0x846CA68B) & mask
        x = x ^ (x >> 16)
        v = (x >> (32 - self.bits)).double() / 2 ** (self.bits - 1) - 1
        x = self.shift + self.scale * v
        assert torch.equal(x.float().double(), x), f"{self.name}: not exact in float32"
        for place, value in self.places.items():
            x[int(place)] = float(value)
        return x.reshape(self.shape).to(dtype)

    def recorded(self):
        if self.values is not None:
            return {"name": self.name, "shape": self.shape, "values": self.values}
        own = {key: getattr(self, key) for key in ("name", "shape", "seed", "bits", "scale", "shift")}
        return own | ({"set": self.places} if self.places else {})


def number(value):
    if math.isnan(value):
        return "nan"
    return float(f"{value:.9g}") if math.isfinite(value) else "inf" if value > 0 else "-inf"


def stride_of(n):
    """Entries are so far apart that few are kept, and at another place of every axis each time."""
    stride = -(-n // KEEP)
    while stride > 1 and math.gcd(stride, n) > 1:
        stride += 1
    return stride


def recorded(name, exact, single):
    exact, single = exact.detach().flatten(), single.detach().flatten().double()
    finite = exact.isfinite() & single.isfinite()
    among = lambda x: x[finite] if finite.any() else torch.zeros(1, dtype=torch.float64)
    largest = among(exact).abs().max().item()
    off = (among(exact) - among(single)).abs().max().item()
    stride = stride_of(exact.numel())
    found = {"name": name, "stride": stride, "sum": number(exact.sum().item()) if finite.all() else None,
             "largest": number(largest), "rounding": float(f"{off / largest if largest else off:.3g}"),
             "values": [number(v) for v in exact[::stride].tolist()]}
    words = lambda x: [number(v) for v in torch.where(x.isfinite(), torch.zeros_like(x), x).tolist()]
    if words(exact) != words(single):
        found["single"] = [number(v) for v in single[::stride].tolist()]
    return found


class Recorder:
    def __init__(self):
        self.entries = []

    def add(self, operation, name, settings, inputs, compute, dy=None):
        """`compute` takes the inputs by name and returns y, or y and a dict of further results."""
        inputs = [inputs[0], *inputs[1:]]
        for seed, given in enumerate(inputs, start=10 * len(self.entries) + 1):
            given.seed = given.seed or seed
        shape = list(compute(*(given.tensor(torch.float64) for given in inputs))[0].shape)
        dy = dy(shape) if dy else Input("dy", shape)
        dy.seed = 10 * len(self.entries) + 9
        sides = []
        for dtype in (torch.float64, torch.float32):
            tensors = [given.tensor(dtype).requires_grad_() for given in inputs]
            y, further = compute(*tensors)
            y.backward(dy.tensor(dtype))
            gradients = {f"d_{given.name}": t.grad for given, t in zip(inputs, tensors) if t.grad is not None}
            sides.append({"y": y, **further, **gradients})
        results = [recorded(key, sides[0][key], sides[1][key]) for key in sides[0]]
        self.entries.append({"operation": operation, "name": name, "settings": settings,
                             "inputs": [given.recorded() for given in [*inputs, dy]], "results": results})
        print(f"{operation}: {name}: {shape}, " + ", ".join(f"{r['name']} {r['rounding']:.1e}" for r in results))


def convolution(record, name, x, out, kernel, stride=1, padding=0, groups=1, bias=False, scale=1.0, **places):
    axes = len(kernel)
    each = lambda n: list(n) if isinstance(n, (list, tuple)) else [n] * axes
    settings = {"stride": each(stride), "padding": each(padding), "groups": groups}
    run = F.conv2d if axes == 2 else F.conv3d

    def compute(x, weight, bias=None):
        return run(x, weight, bias, settings["stride"], settings["padding"], 1, groups), {}

    inputs = [Input("x", x, scale=scale, **places), Input("weight", [out, x[1] // groups, *kernel], scale=scale)]
    inputs += [Input("bias", [out])] * bias
    kind = "depthwise" if groups == x[1] == out and groups > 1 else "conv"
    record.add(f"{kind}{axes}d", name + (", bias" if bias else ""), settings, inputs, compute)


def convolutions(record):
    conv = lambda *args, **settings: convolution(record, *args, **settings)
    conv("1x1", [2, 5, 7, 9], 6, [1, 1])
    conv("1x1", [2, 5, 7, 9], 6, [1, 1], bias=True)
    conv("1x1, plane of 1", [3, 17, 1, 1], 9, [1, 1], bias=True)
    conv("1x1, one sample with a plane of 1", [1, 19, 1, 1], 5, [1, 1], bias=True)
    conv("1x1, one sample", [1, 33, 5, 3], 20, [1, 1])
    conv("1x1, plane of 49", [3, 40, 7, 7], 24, [1, 1])
    conv("1x1, one channel in and out", [2, 1, 4, 5], 1, [1, 1])
    conv("1x1, stride 2", [2, 6, 7, 9], 8, [1, 1], stride=2)
    conv("1x1, stride 2, even plane", [1, 16, 8, 6], 32, [1, 1], stride=2)
    conv("3x3", [2, 4, 6, 8], 5, [3, 3], padding=1)
    conv("3x3", [2, 4, 9, 7], 5, [3, 3], padding=1, bias=True)
    conv("3x3, wide", [1, 20, 14, 14], 40, [3, 3], padding=1)
    conv("3x3, one sample and channel", [1, 1, 5, 5], 1, [3, 3], padding=1)
    conv("3x3, stride 2, odd plane", [2, 3, 9, 7], 6, [3, 3], stride=2, padding=1)
    conv("3x3, stride 2, even plane", [2, 3, 8, 10], 6, [3, 3], stride=2, padding=1, bias=True)
    conv("3x3, stride 2, the last row and column unused", [1, 2, 8, 6], 3, [3, 3], stride=2)
    conv("5x5, no padding", [2, 3, 9, 8], 4, [5, 5])
    conv("7x7, stride 2, 3 channels", [2, 3, 17, 15], 8, [7, 7], stride=2, padding=3)
    conv("16x16 patches", [2, 3, 32, 48], 12, [16, 16], stride=16, bias=True)
    conv("4x4 patches", [1, 3, 8, 12], 7, [4, 4], stride=4, bias=True)
    conv("3x3, plane of 1", [3, 6, 1, 1], 4, [3, 3], padding=1, bias=True)
    conv("3x3, stride 2, plane of 1", [2, 5, 1, 1], 4, [3, 3], stride=2, padding=1)
    conv("3x3, plane of 1 row", [2, 3, 1, 6], 4, [3, 3], padding=1)
    conv("3x3, stride 2 by 1, padding 0 by 1", [2, 3, 7, 6], 4, [3, 3], stride=[2, 1], padding=[0, 1])
    conv("3x3, values near 1e18", [1, 3, 5, 6], 4, [3, 3], padding=1, scale=2.0**60)
    conv("3x3, NaN and infinity", [2, 2, 5, 6], 3, [3, 3], padding=1, set={"7": "nan", "100": "inf"})
    conv("1x1, NaN and infinity", [2, 3, 4, 5], 3, [1, 1], set={"7": "nan", "100": "-inf"})
    conv("3x3", [2, 6, 7, 9], 6, [3, 3], padding=1, groups=6)
    conv("3x3", [2, 6, 7, 9], 6, [3, 3], padding=1, groups=6, bias=True)
    conv("3x3, stride 2, odd plane", [2, 5, 9, 7], 5, [3, 3], stride=2, padding=1, groups=5)
    conv("3x3, stride 2, even plane", [2, 5, 8, 14], 5, [3, 3], stride=2, padding=1, groups=5)
    conv("5x5", [2, 4, 7, 7], 4, [5, 5], padding=2, groups=4)
    conv("5x5, stride 2, odd plane", [2, 4, 11, 9], 4, [5, 5], stride=2, padding=2, groups=4)
    conv("5x5, stride 2, even plane", [1, 3, 14, 28], 3, [5, 5], stride=2, padding=2, groups=3)
    conv("5x5, no padding", [2, 3, 8, 9], 3, [5, 5], groups=3)
    conv("3x3, no padding, stride 2", [2, 3, 8, 9], 3, [3, 3], stride=2, groups=3)
    conv("3x3, plane of 1, one sample", [1, 7, 1, 1], 7, [3, 3], padding=1, groups=7)
    conv("5x5, plane smaller than the kernel", [1, 3, 2, 3], 3, [5, 5], padding=2, groups=3)
    conv("5x5, stride 2, plane of 1", [2, 3, 1, 1], 3, [5, 5], stride=2, padding=2, groups=3)
    conv("3x3, NaN and infinity", [2, 3, 5, 6], 3, [3, 3], padding=1, groups=3, set={"7": "nan", "100": "inf"})
    conv("3x3x3", [2, 3, 4, 5, 6], 4, [3, 3, 3], padding=1)
    conv("3x3x3", [1, 3, 5, 4, 3], 4, [3, 3, 3], padding=1, bias=True)
    conv("3x3x3, wide", [1, 12, 4, 6, 5], 20, [3, 3, 3], padding=1)
    conv("3x3x3, stride 2, odd sides", [2, 3, 5, 7, 3], 4, [3, 3, 3], stride=2, padding=1)
    conv("3x3x3, stride 2, even sides", [1, 4, 4, 6, 8], 5, [3, 3, 3], stride=2, padding=1)
    conv("3x7x7, stride 1 by 2 by 2, 1 channel", [2, 1, 5, 14, 13], 6, [3, 7, 7], stride=[1, 2, 2], padding=[1, 3, 3])
    conv("7x7x7, stride 2, 1 channel", [1, 1, 9, 12, 11], 4, [7, 7, 7], stride=2, padding=3)
    conv("1x1x1", [2, 5, 3, 4, 5], 6, [1, 1, 1], bias=True)
    conv("1x1x1, stride 2", [2, 6, 5, 4, 7], 8, [1, 1, 1], stride=2)
    conv("3x3x3, sides of 1", [2, 4, 1, 1, 1], 3, [3, 3, 3], padding=1)
    conv("3x3x3, one sample, depth of 1", [1, 2, 1, 5, 6], 3, [3, 3, 3], padding=1)
    conv("2x3x1, no padding", [1, 2, 5, 6, 7], 3, [2, 3, 1])


def norms(record):
    def trained(name, shape, activation, x=None, gamma=None):
        def compute(x, gamma, beta):
            axes = [0, *range(2, x.dim())]
            mean, variance = x.mean(axes), x.var(axes, unbiased=False)
            y = ACTIVATIONS[activation](F.batch_norm(x, None, None, gamma, beta, True, 0.1, 1e-5))
            return y, {"mean": mean, "variance": variance}

        inputs = [Input("x", shape, **(x or {})), gamma or Input("gamma", shape[1:2], 0.5, 1.0), Input("beta", shape[1:2], 0.5)]
        record.add("batch-norm", f"{name}, {activation}", {"eps": 1e-5, "activation": activation}, inputs, compute)

    for activation in ("identity", "relu", "silu"):
        trained("pictures", [3, 5, 4, 7], activation)
        trained("volumes", [2, 3, 3, 4, 5], activation)
        trained("columns", [9, 6], activation)
        trained("one sample", [1, 4, 5, 3], activation)
        trained("one channel", [4, 1, 3, 3], activation)
        trained("plane of 1", [5, 3, 1, 1], activation)
        trained("mean 1000 times the deviation", [3, 3, 5, 5], activation, {"shift": 600.0})
        trained("values near 1e18", [2, 3, 4, 4], activation, {"scale": 2.0**60})
        trained("values near 1e-12", [2, 3, 4, 4], activation, {"scale": 2.0**-40})
    trained("all values alike", [2, 3, 4, 4], "identity", {"scale": 0.0, "shift": 3.0})
    trained("long sums", [4, 2, 64, 80], "silu", {"shift": 4.0})
    trained("gamma 0 and negative", [2, 2, 4, 4], "relu", gamma=Input("gamma", [2], values=[0.0, -0.75]))
    trained("NaN in one channel", [2, 3, 4, 4], "silu", {"set": {"20": "nan"}})
    trained("infinity in one channel", [2, 3, 4, 4], "relu", {"set": {"20": "inf"}})

    def frozen(name, shape, activation):
        def compute(x, gamma, beta, mean, variance):
            mean, variance = mean.detach(), variance.detach()
            return ACTIVATIONS[activation](F.batch_norm(x, mean, variance, gamma, beta, False, 0.1, 1e-5)), {}

        of_channels = [("gamma", 0.5, 1.0), ("beta", 0.5, 0.0), ("mean", 0.5, 0.0), ("variance", 1.0, 1.25)]
        inputs = [Input("x", shape), *(Input(key, shape[1:2], scale, shift) for key, scale, shift in of_channels)]
        record.add("frozen-batch-norm", f"{name}, {activation}", {"eps": 1e-5, "activation": activation}, inputs, compute)

    for activation in ("identity", "relu", "silu"):
        frozen("pictures", [3, 5, 4, 7], activation)
        frozen("volumes, one sample", [1, 3, 3, 4, 5], activation)
        frozen("columns", [9, 6], activation)
        frozen("plane of 1", [1, 3, 1, 1], activation)

    def layer(name, rows, width, **x):
        inputs = [Input("x", [*rows, width], **x), Input("gamma", [width], 0.5, 1.0), Input("beta", [width], 0.5)]
        compute = lambda x, gamma, beta: (F.layer_norm(x, [width], gamma, beta, 1e-6), {})
        record.add("layer-norm", f"width {width}{name}", {"eps": 1e-6}, inputs, compute)

    for rows, width in (([5], 1), ([2, 5], 7), ([1, 3], 64), ([2, 3], 768), ([1, 1], 33)):
        layer("", rows, width)
    layer(", mean 1000 times the deviation", [2, 3], 48, shift=600.0)
    layer(", values near 1e18", [2, 3], 48, scale=2.0**60)
    layer(", values near 1e-12", [2, 3], 48, scale=2.0**-40)
    layer(", all values alike", [2, 2], 9, scale=0.0, shift=3.0)
    layer(", NaN in one row", [3], 9, set={"10": "nan"})
    layer(", infinity in one row", [3], 9, set={"10": "inf"})


def activations(record):
    # Apart by size, so that each group has a bound of its own.
    groups = {"0 and 1e-30": [0.0, 1e-30], "1e-10 and 1e-4": [1e-10, 1e-4], "1 to 5": [0.5, 1.0, 2.0, 3.0, 5.0],
              "10 to 50": [8.0, 10.0, 15.0, 20.0, 50.0], "87 to 104": [87.0, 88.0, 88.5, 88.75, 89.0, 100.0, 104.0],
              "1e4": [1e4], "1e30": [1e30, 3e38], "infinity and NaN": [math.inf, math.nan]}
    for activation in ("relu", "silu", "gelu", "sigmoid"):
        compute = lambda x: (ACTIVATIONS[activation](x), {})
        record.add("activation", activation, {"activation": activation}, [Input("x", [2, 3, 5, 7], 8.0)], compute)
        record.add("activation", f"{activation}, one value", {"activation": activation}, [Input("x", [1])], compute)
        for name, sizes in groups.items():
            values = [word(float(torch.tensor(sign * size))) for size in sizes for sign in (1.0, -1.0)]
            half = lambda shape: Input("dy", shape, values=[0.5] * len(values))
            inputs = [Input("x", [len(values)], values=values)]
            record.add("activation", f"{activation}, {name}", {"activation": activation}, inputs, compute, half)


def word(value):
    return "-0" if value == 0 and math.copysign(1, value) < 0 else number(value)


def others(record):
    gate = lambda x, s: (x * s, {})
    for name, shape in (("pictures", [2, 5, 3, 4]), ("one sample, plane of 1", [1, 7, 1, 1]), ("one channel", [3, 1, 5, 5])):
        record.add("gate", name, {}, [Input("x", shape), Input("s", [*shape[:2], 1, 1], 0.5, 0.5)], gate)
    record.add("gate", "NaN and infinity", {}, [Input("x", [2, 3, 2, 3], set={"4": "nan", "20": "inf"}),
                                               Input("s", [2, 3, 1, 1], 0.5, 0.5, set={"5": "nan"})], gate)
    add = lambda a, b: (F.relu(a + b), {})
    for name, shape in (("pictures", [2, 3, 5, 4]), ("volumes", [1, 3, 3, 4, 5]), ("one value", [1, 1, 1, 1])):
        record.add("add-relu", name, {}, [Input("a", shape), Input("b", shape)], add)
    record.add("add-relu", "NaN and infinity", {}, [Input("a", [2, 2, 2, 2], set={"1": "nan", "2": "inf", "3": "-inf"}),
                                                   Input("b", [2, 2, 2, 2], set={"2": "-inf"})], add)

    def attention(name, shape, **of_q):
        def compute(q, k, v):
            return torch.softmax(q @ k.transpose(-2, -1) * shape[-1] ** -0.5, -1) @ v, {}

        inputs = [Input("q", shape, **of_q), Input("k", shape), Input("v", shape)]
        record.add("attention", name, {"scale": shape[-1] ** -0.5}, inputs, compute)

    attention("1 token", [2, 3, 1, 4])
    attention("5 tokens", [1, 2, 5, 8])
    attention("17 tokens", [2, 2, 17, 16], scale=4.0)
    attention("50 tokens of 64", [1, 1, 50, 64], scale=8.0)
    attention("3 tokens of 1", [1, 1, 3, 1])
    attention("logits of some hundreds", [1, 2, 9, 16], scale=256.0)
    attention("logits beyond 1e4", [1, 2, 5, 8], scale=2.0**15)
    attention("NaN in one query", [1, 2, 3, 4], set={"5": "nan"})

    def pool(name, shape, kernel, stride, padding, **of_x):
        axes = len(kernel)
        run = F.max_pool2d if axes == 2 else F.max_pool3d
        settings = {"kernel": kernel, "stride": stride, "padding": padding}
        compute = lambda x: (run(x, kernel, stride, padding), {})
        record.add(f"max-pool{axes}d", name, settings, [Input("x", shape, **of_x)], compute)

    pool("odd plane, ties", [2, 3, 9, 7], [3, 3], [2, 2], [1, 1], bits=2)
    pool("even plane, ties", [2, 2, 8, 10], [3, 3], [2, 2], [1, 1], bits=2)
    pool("odd plane", [1, 4, 11, 13], [3, 3], [2, 2], [1, 1])
    pool("negative values beside the padding", [1, 3, 5, 6], [3, 3], [2, 2], [1, 1], shift=-2.0)
    pool("plane of 1", [2, 3, 1, 1], [3, 3], [2, 2], [1, 1])
    pool("NaN and infinity", [1, 2, 5, 6], [3, 3], [2, 2], [1, 1], set={"8": "nan", "40": "inf", "59": "-inf"})
    pool("odd sides, ties", [1, 2, 5, 7, 3], [3, 3, 3], [2, 2, 2], [1, 1, 1], bits=2)
    pool("even sides", [2, 1, 4, 6, 8], [3, 3, 3], [2, 2, 2], [1, 1, 1])

    linear = lambda x, weight, bias: (F.linear(x, weight, bias), {})
    sizes = {"9 rows": ([9], 7, 5), "tokens": ([2, 5], 24, 17), "one row": ([1], 65, 9), "from and to 1": ([3], 1, 1)}
    for name, (rows, width, out) in sizes.items():
        record.add("linear", name, {}, [Input("x", [*rows, width]), Input("weight", [out, width]), Input("bias", [out])], linear)
    inputs = [Input("x", [3, 4], set={"5": "nan", "8": "inf"}), Input("weight", [2, 4]), Input("bias", [2])]
    record.add("linear", "NaN and infinity", {}, inputs, linear)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=Path(__file__).parent.parent / "tests/parity/operations.json")
    args = parser.parse_args()
    torch.set_num_threads(2)
    record = Recorder()
    convolutions(record)
    norms(record)
    activations(record)
    others(record)
    provenance = {"made": str(datetime.date.today()), "by": "fairtte-models/parity/operations.py", "torch": torch.__version__,
                  "float64": "autograd of the named operation",
                  "rounding": "float32 on 2 threads, " + torch.backends.cpu.get_cpu_capability()}
    # So that another program can check that it computes the same inputs.
    provenance["seed 7, 13 bits"] = Input("check", [8], seed=7).tensor(torch.float64).tolist()
    provenance["seed 12345, 2 bits"] = Input("check", [8], seed=12345, bits=2).tensor(torch.float64).tolist()
    entries = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in record.entries)
    args.out.write_text(f'{{"provenance": {json.dumps(provenance)},\n"entries": [\n{entries}\n]}}\n')
    print(f"{len(record.entries)} entries, {args.out.stat().st_size / 1000:.0f} kB: {args.out}")


if __name__ == "__main__":
    main()
