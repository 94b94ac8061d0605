"""What all worked training steps share: the table, the formula of the initial weights, the network, two heads, AdamW.

Written from the definitions (docs/src/strategies.md, docs/src/metrics-reference.md, the headers of src/strategies), on top of
PyTorch's autograd and its AdamW; nothing of FairTTE is called. Everything takes a dtype: the expected numbers are float64, and
a second run in float32 tells how much of a difference is rounding.
"""

import math

import numpy as np
import torch

N_TRAIN, N_VALIDATION, N_CUTS = 160, 60, 6
LEVELS = ["a", "b", "c"]
COLUMNS = ["x0", "x1", "x2"]
BATCH_NORM_MOMENTUM, BATCH_NORM_EPSILON = 0.1, 1e-5


def v(seed, i):
    """Entry i of stream `seed`, in [-1, 1) in steps of 2^-12: the formula of fairtte-models/parity/gradients.py."""
    mask = 0xFFFFFFFF
    x = (i + seed * 0x9E3779B9) & mask
    x ^= x >> 16
    x = (x * 0x7FEB352D) & mask
    x ^= x >> 15
    x = (x * 0x846CA68B) & mask
    x ^= x >> 16
    return (x >> 19) / 4096 - 1


class Table:
    """220 samples: 160 for training, 60 for validation; three groups (4 : 3 : 3), one sample in eleven has none."""

    def __init__(self):
        n = N_TRAIN + N_VALIDATION
        self.x = np.array([[2 * v(901 + k, i) for k in range(3)] for i in range(n)])
        pattern = [0, 1, 2, 0, 2, 1, None, 0, 1, 2, 0]
        self.group = [pattern[i % 11] for i in range(n)]
        risk = self.x @ np.array([0.6, -0.4, 0.2])
        # Distinct times in steps of 2^-10, of which none is a cut point.
        raw = [-math.log((v(911, i) + 1.0001) / 2.0002) * math.exp(-risk[i]) * 1.5 for i in range(n)]
        order = {i: rank for rank, i in enumerate(sorted(range(n), key=lambda i: raw[i]))}
        self.time = np.array([0.25 + min(raw[i], 6.0) + order[i] / 1024 for i in range(n)])
        self.time = np.round(self.time * 4096) / 4096
        self.event = np.array([v(921, i) > -0.3 for i in range(n)])
        assert len(set(self.time)) == n
        train = self.x[:N_TRAIN]
        scaled = (self.x - train.mean(0)) / train.std(0)
        self.features = scaled.astype(np.float32).astype(np.float64)  # inputs are float32
        self.cuts = np.linspace(0.0, self.time[:N_TRAIN].max(), N_CUTS)
        pairs = [self.interval(self.time[i], self.event[i]) for i in range(n)]
        self.q = np.array([q for q, _ in pairs])
        self.d = np.array([d for _, d in pairs])
        self.train = list(range(N_TRAIN))
        self.validation = list(range(N_TRAIN, n))
        self.horizon = self.median_event()
        self.stratum = [self.status(int(self.q[i]), bool(self.d[i])) for i in range(n)]
        self.n_train = [sum(self.group[i] == g for i in self.train) for g in range(len(LEVELS))]
        for g in range(3):
            for y in range(2):
                n = sum(self.group[i] == g and self.stratum[i] == y for i in self.train)
                assert n >= 10, (g, y, n)

    def interval(self, time, event):
        """Events round up, censorings round down; beyond the grid censored at its end."""
        if time > self.cuts[-1]:
            return len(self.cuts) - 1, False
        if event:
            return int(np.searchsorted(self.cuts, time, side="left")), True
        return int(np.searchsorted(self.cuts, time, side="right")) - 1, False

    def median_event(self):
        """Smallest cut with at least half of the training events at or before it."""
        events = [self.q[i] for i in self.train if self.d[i]]
        return next(k for k in range(len(self.cuts)) if sum(q <= k for q in events) * 2 >= len(events))

    def status(self, q, event):
        if event and q <= self.horizon:
            return 1
        return 0 if q > self.horizon or (not event and q == self.horizon) else None

    def json(self):
        return {"columns": COLUMNS, "x": self.x.tolist(), "time": self.time.tolist(),
                "event": self.event.tolist(), "group": self.group, "levels": LEVELS,
                "n_train": N_TRAIN, "n_cut_points": N_CUTS}


class ClassTable(Table):
    """The same samples with a class in place of time and event: an early time of the other table. A class is an event at time
    1 of one interval, or none by then; strata are the classes themselves, as the methods were published."""

    def __init__(self):
        super().__init__()
        n = N_TRAIN + N_VALIDATION
        self.event = self.time < 1.25
        self.time, self.cuts = np.ones(n), np.array([0.0, 1.0])
        self.q, self.d = np.ones(n, int), self.event
        self.horizon, self.stratum = 1, [int(positive) for positive in self.event]
        cells = [(self.group[i], self.stratum[i]) for i in self.train if self.group[i] is not None]
        assert all(cells.count((g, y)) >= 10 for g in range(3) for y in range(2)), cells

    def json(self):
        return super().json() | {"n_cut_points": 2}


class Module:
    """Named tensors; running statistics among them take no gradient. Names and layouts are those of FairTTE's records."""

    def __init__(self, file, shapes, dtype, first_seed):
        self.file, self.tensors, self.formulas, self.dtype = file, {}, {}, dtype
        for place, (name, shape) in enumerate(shapes.items()):
            scale, shift = 0.25, 0.0
            if len(shape) == 2:
                scale = 2.0 ** round(math.log2(math.sqrt(3 / shape[0])))
            elif name.endswith(("gamma", "running_var")):
                shift = 1.0
            seed = first_seed + place
            self.formulas[name] = {"seed": seed, "scale": scale, "shift": shift}
            n = math.prod(shape)
            values = torch.tensor([shift + scale * v(seed, i) for i in range(n)], dtype=dtype).reshape(shape)
            self.tensors[name] = values.requires_grad_(not self.is_statistic(name))
        self.initial = {name: tensor.detach().clone() for name, tensor in self.tensors.items()}

    @staticmethod
    def is_statistic(name):
        return name.endswith(("running_mean", "running_var"))

    def parameters(self):
        return {name: t for name, t in self.tensors.items() if not self.is_statistic(name)}

    def __getitem__(self, name):
        return self.tensors[name]

    def copied(self):
        other = object.__new__(Module)
        other.file, other.formulas, other.dtype, other.initial = self.file, self.formulas, self.dtype, self.initial
        other.tensors = {k: t.detach().clone().requires_grad_(t.requires_grad) for k, t in self.tensors.items()}
        return other


WIDTH, REPRESENTATION, HIDDEN = 5, 4, 4


def encoder_shapes():
    layer = "encoder.backbone.network.Mlp.layers.0."
    return {f"{layer}dense.weight": (3, WIDTH), f"{layer}dense.bias": (WIDTH,),
            f"{layer}norm.gamma": (WIDTH,), f"{layer}norm.beta": (WIDTH,),
            f"{layer}norm.running_mean": (WIDTH,), f"{layer}norm.running_var": (WIDTH,),
            "encoder.projection.weight": (WIDTH, REPRESENTATION), "encoder.projection.bias": (REPRESENTATION,)}


def classifier_shapes(prefix, inputs, head):
    shapes = {f"{prefix}hidden.weight": (inputs, HIDDEN), f"{prefix}hidden.bias": (HIDDEN,)}
    shapes[f"{prefix}output.weight"] = (HIDDEN, N_CUTS if head == "nnet-survival" else 1)
    if head != "cox":  # a constant means nothing to the Cox loss
        shapes[f"{prefix}output.bias"] = shapes[f"{prefix}output.weight"][1:]
    return shapes


def survival_shapes(head, prefix=""):
    shapes = encoder_shapes() | classifier_shapes("classifier.", REPRESENTATION, head)
    return {prefix + name: shape for name, shape in shapes.items()}


def perceptron_shapes(inputs, width, prefix=""):
    """Adversary, predictor, group classifier: Linear(inputs, width), activation, Linear(width, groups)."""
    n = len(LEVELS)
    return {f"{prefix}hidden.weight": (inputs, width), f"{prefix}hidden.bias": (width,),
            f"{prefix}output.weight": (width, n), f"{prefix}output.bias": (n,)}


def encode(module, x, mode, prefix=""):
    """Linear, ReLU, batch norm, Linear. `mode`: "train" normalises by the batch and moves the running statistics,
    "frozen" normalises by the batch only, "evaluate" by the running statistics."""
    at = lambda name: module[f"{prefix}encoder.{name}"]
    layer = "backbone.network.Mlp.layers.0."
    h = torch.relu(x @ at(f"{layer}dense.weight") + at(f"{layer}dense.bias"))
    if mode == "evaluate":
        mean, variance = at(f"{layer}norm.running_mean"), at(f"{layer}norm.running_var")
    else:
        mean, variance = h.mean(0), h.var(0, unbiased=False)
        if mode == "train":
            for running, now in [("running_mean", mean), ("running_var", variance)]:
                old = at(f"{layer}norm.{running}")
                # The running variance takes the biased variance of the batch, as burn's batch norm does (PyTorch: unbiased).
                old.copy_((1 - BATCH_NORM_MOMENTUM) * old + BATCH_NORM_MOMENTUM * now.detach())
    h = (h - mean) / torch.sqrt(variance + BATCH_NORM_EPSILON)
    h = h * at(f"{layer}norm.gamma") + at(f"{layer}norm.beta")
    return h @ at("projection.weight") + at("projection.bias")


def classify(module, z, prefix="classifier."):
    h = torch.relu(z @ module[f"{prefix}hidden.weight"] + module[f"{prefix}hidden.bias"])
    out = h @ module[f"{prefix}output.weight"]
    bias = f"{prefix}output.bias"
    return out + module[bias] if bias in module.tensors else out


def perceive(module, z, slope, prefix=""):
    h = z @ module[f"{prefix}hidden.weight"] + module[f"{prefix}hidden.bias"]
    h = torch.where(h > 0, h, slope * h)
    return h @ module[f"{prefix}output.weight"] + module[f"{prefix}output.bias"]


class NnetSurvival:
    """Gensheimer & Narasimhan 2019: Bernoulli terms up to the interval of the outcome."""

    name = "nnet-survival"

    def __init__(self, table):
        self.table = table

    def losses(self, out, rows, half=None):
        h = torch.sigmoid(out)
        losses = []
        for k, i in enumerate(rows):
            q = int(self.table.q[i])
            term = -torch.log(1 - h[k, :q]).sum()
            losses.append(term - torch.log(h[k, q] if self.table.d[i] else 1 - h[k, q]))
        return torch.stack(losses)

    def counted(self, rows):
        return [True] * len(rows)

    def baseline(self, out, rows):
        return None

    def curves(self, out, baseline):
        return torch.cumprod(1 - torch.sigmoid(out), 1)


class Cox:
    """Negative log partial likelihood by event (no tied times), Breslow's baseline (Efron's is the same without ties)."""

    name = "cox"

    def __init__(self, table):
        self.table = table

    def losses(self, out, rows, half=None):
        """With `half` the risk set of an event is itself and those at risk in the other half."""
        g, time = out[:, 0], self.table.time
        losses = []
        for k, i in enumerate(rows):
            if not self.table.event[i]:
                losses.append(torch.zeros((), dtype=out.dtype))
                continue
            at_risk = [m for m, j in enumerate(rows) if time[j] >= time[i] and
                       (half is None or m == k or half[m] != half[k])]
            losses.append(torch.logsumexp(g[at_risk], 0) - g[k])
        return torch.stack(losses)

    def counted(self, rows):
        return [bool(self.table.event[i]) for i in rows]

    def baseline(self, out, rows):
        """Event times and cumulative baseline hazard at them."""
        g, time = out[:, 0].detach(), self.table.time
        events = sorted(time[i] for i in rows if self.table.event[i])
        total = 0.0
        cumulative = []
        for t in events:
            total = total + 1.0 / torch.exp(g[[k for k, i in enumerate(rows) if time[i] >= t]]).sum()
            cumulative.append(total)
        return events, cumulative

    def curves(self, out, baseline):
        events, cumulative = baseline
        h0 = []
        for cut in self.table.cuts:
            n = sum(t <= cut for t in events)
            h0.append(cumulative[n - 1] if n else torch.zeros((), dtype=out.dtype))
        return torch.exp(-torch.stack(h0)[None, :] * torch.exp(out[:, :1]))


class Binary:
    """Cross-entropy of a class, by PyTorch; survival of the one interval is 1 minus the probability."""

    name = "binary"

    def __init__(self, table):
        self.table = table

    def losses(self, out, rows, half=None):
        target = torch.tensor([float(self.table.event[i]) for i in rows], dtype=out.dtype)
        return torch.nn.functional.binary_cross_entropy_with_logits(out[:, 0], target, reduction="none")

    def counted(self, rows):
        return [True] * len(rows)

    def baseline(self, out, rows):
        return None

    def curves(self, out, baseline):
        return torch.stack([torch.ones_like(out[:, 0]), 1 - torch.sigmoid(out[:, 0])], 1)


HEADS = {"nnet-survival": NnetSurvival, "cox": Cox, "binary": Binary}


class Optimiser:
    """AdamW on all parameters of one module, after clipping by the joint norm. A parameter whose gradient is None stays, with
    its moments. In float64 it is PyTorch's. In float32, where only rounding is of interest, the decay rates and the bias
    corrections 1 - beta^t are float32 too, as in burn: 1 - 0.999^2 is 0.002 with an error of 3e-5 of it then."""

    def __init__(self, module, rate, decay, clip):
        self.module, self.rate, self.decay, self.clip = module, rate, decay, clip
        self.rounded = module.dtype == torch.float32
        self.state = {}
        if not self.rounded:
            self.adam = torch.optim.AdamW(list(module.parameters().values()), lr=rate, weight_decay=decay, eps=1e-8,
                                          foreach=False)

    def step(self, gradients):
        """`gradients` by name; gives the norm before clipping."""
        norm = math.sqrt(sum(float((g.double() ** 2).sum()) for g in gradients.values() if g is not None))
        factor = self.clip / norm if self.clip > 0 and norm > self.clip else 1.0
        for name, parameter in self.module.parameters().items():
            g = gradients.get(name)
            parameter.grad = None if g is None else g * factor
            if self.rounded and g is not None:
                self.step_rounded(name, parameter)
        if not self.rounded:
            self.adam.step()
        return norm

    def step_rounded(self, name, parameter):
        b1, b2 = np.float32(0.9), np.float32(0.999)
        m, s, t = self.state.get(name, (torch.zeros_like(parameter), torch.zeros_like(parameter), 0))
        m = float(b1) * m + float(1 - b1) * parameter.grad
        s = float(b2) * s + float(1 - b2) * parameter.grad ** 2
        self.state[name] = m, s, t + 1
        power = lambda b: float(np.float32(1) - np.prod([b] * (t + 1), dtype=np.float32))
        with torch.no_grad():
            parameter.mul_(1 - self.rate * self.decay)
            parameter.sub_(self.rate * (m / power(b1)) / (torch.sqrt(s / power(b2)) + 1e-8))


def gradients(loss, module):
    """Gradient by name, None where the loss does not depend on the parameter."""
    names, tensors = zip(*module.parameters().items())
    found = torch.autograd.grad(loss, tensors, allow_unused=True, retain_graph=True)
    return dict(zip(names, found))
