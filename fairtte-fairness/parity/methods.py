"""The strategies with more than one network, pass or phase, and what happens beside steps: validation, the end of the
training, prediction.

Every method has `modules` (by the name of the file in which FairTTE saves them), `step(rows, draws)` -> report,
`validate(loss)`, `finish(draws)` and `predict(rows)`.
"""

import math

import numpy as np
import torch

import objectives
from setting import (HEADS, LEVELS, REPRESENTATION, Module, Optimiser, classifier_shapes, classify, encode, encoder_shapes,
                     gradients, survival_shapes)


class Setting:
    def __init__(self, table, head, dtype, rate, decay, clip, jitter=0):
        """`jitter` k > 0 moves every input by one unit in the last place of float32, in directions of its own."""
        self.table, self.head, self.dtype = table, HEADS[head](table), dtype
        self.features = table.features
        if jitter:
            towards = np.random.default_rng(jitter).choice([-np.inf, np.inf], table.features.shape).astype(np.float32)
            self.features = np.nextafter(table.features.astype(np.float32), towards).astype(np.float64)
        self.rate, self.decay, self.clip = rate, decay, clip
        self.next_seed = 1

    def x(self, rows):
        return torch.tensor(self.features[rows], dtype=self.dtype)

    def module(self, file, shapes):
        module = Module(file, shapes, self.dtype, self.next_seed)
        self.next_seed += 100
        return module

    def optimiser(self, module):
        return Optimiser(module, self.rate, self.decay, self.clip)

    def adversary_optimiser(self, module, rate):
        return Optimiser(module, rate, 0.0, self.clip)


class Method:
    """One survival network under an objective."""

    def __init__(self, setting, objective=None):
        self.setting, self.objective = setting, objective or objectives.Erm()
        self.net = setting.module("network", survival_shapes(setting.head.name))
        self.optimiser = setting.optimiser(self.net)
        self.modules, self.baseline = {"network": self.net}, None

    def sampling(self):
        return self.objective.sampling(self.setting.table)

    def forward(self, rows, mode="train", net=None):
        net = net or self.net
        z = encode(net, self.setting.x(rows), mode)
        return z, classify(net, z)

    def batch(self, rows, z, out, draws=None):
        return objectives.Batch(self.setting, rows, z, out, draws)

    def report(self, task, objective, norm, absent=0, terms=None):
        number = lambda value: float(value.detach()) if torch.is_tensor(value) else float(value)
        return {"task_loss": number(task), "objective": number(objective), "gradient_norm": norm,
                "absent_groups": absent, "terms": {k: number(t) for k, t in (terms or {}).items()}}

    def step(self, rows, draws):
        batch = self.batch(rows, *self.forward(rows), draws)
        value, absent, terms = self.objective.value(batch)
        norm = self.optimiser.step(gradients(value, self.net))
        return self.report(batch.mean(), value, norm, absent, terms)

    def outputs(self, rows):
        return self.forward(rows, "evaluate")[1]

    def validate(self, loss=None):
        train = self.setting.table.train
        with torch.no_grad():
            self.baseline = self.setting.head.baseline(self.outputs(train), train)

    def finish(self, draws):
        pass

    def predict(self, rows):
        with torch.no_grad():
            return self.setting.head.curves(self.outputs(rows), self.baseline)

    def log_terms(self):
        return {}


def comparable(cells):
    """Whether two groups have a sample in some cell; cells are (group, stratum) or None."""
    return len({cell[0] for cell in cells if cell}) >= 2


def absent(cells):
    return len(LEVELS) - len({cell[0] for cell in cells if cell})


class Sam(Method):
    """Foret et al. 2021: e = rho g / (|g| + 1e-12); the gradient at w + e is applied at w. ASAM: Kwon et al. 2021."""

    def __init__(self, setting, adaptive, rho, eta):
        super().__init__(setting)
        self.adaptive, self.rho, self.eta = adaptive, rho, eta

    def step(self, rows, draws):
        here = self.batch(rows, *self.forward(rows)).mean()
        g = gradients(here, self.net)
        size = {k: p.detach().abs() + self.eta if self.adaptive else 1.0 for k, p in self.net.parameters().items()}
        norm = math.sqrt(sum(float(((size[k] * g[k]) ** 2).sum()) for k in g if g[k] is not None))
        near = self.net.copied()
        for name, parameter in near.parameters().items():
            if g[name] is not None:
                with torch.no_grad():
                    parameter.add_(self.rho * size[name] ** 2 * g[name] / (norm + 1e-12))
        there = self.batch(rows, *self.forward(rows, "frozen", near)).mean()
        norm = self.optimiser.step(gradients(there, near))
        return self.report(here, there, norm, 0, {"sharpness": float(there.detach()) - float(here.detach())})


class Swad(Method):
    """Cha et al. 2021, Algorithm 1, with the end at the last evaluation not above the threshold."""

    def __init__(self, setting, n_converge, n_tolerance, ratio):
        super().__init__(setting)
        self.n_converge, self.n_tolerance, self.ratio = n_converge, n_tolerance, ratio
        self.iterations, self.segments, self.losses, self.stopped = [], [], [], False

    def step(self, rows, draws):
        report = super().step(rows, draws)
        self.iterations.append(self.net.copied())
        return report

    def validate(self, loss=None):
        super().validate()
        self.segments.append(self.iterations)
        self.iterations = []
        self.losses.append(loss)

    def valley(self):
        """First and last averaged segment, and whether a valley was found."""
        losses = self.losses
        for k in range(self.n_converge, len(losses) + 1):
            window = losses[k - self.n_converge:k]
            if window[0] == min(window):
                start = k - self.n_converge
                mean = sum(window) / len(window)
                threshold = mean + self.ratio * abs(mean)
                last = len(losses)
                for m in range(k + 1, len(losses) + 1):
                    if m - self.n_tolerance >= start and min(losses[m - self.n_tolerance:m]) > threshold:
                        last, self.stopped = m, True
                        break
                end = max(m for m in range(start, last) if losses[m] <= threshold)
                return start, end, True
        return len(losses) - 1, len(losses) - 1, False

    def log_terms(self):
        start, end, found = self.valley()
        n = sum(len(segment) for segment in self.segments[start:end + 1])
        return {"swad: valley found": float(found), "swad: first segment": start + 1.0, "swad: last segment": end + 1.0,
                "swad: iterations": float(n)}

    def finish(self, draws):
        start, end, _ = self.valley()
        averaged = [net for segment in self.segments[start:end + 1] for net in segment]
        layer = "encoder.backbone.network.Mlp.layers.0."
        with torch.no_grad():
            for name in self.net.tensors:
                self.net[name].copy_(sum(net[name] for net in averaged) / len(averaged))
            # Running statistics anew: mean over batches of 64 in the drawn order, weighed by their samples.
            sums, rows = [0.0, 0.0], draws["batch-norm rows"]
            for first in range(0, len(rows), 64):
                of_batch = rows[first:first + 64]
                h = torch.relu(self.setting.x(of_batch) @ self.net[f"{layer}dense.weight"] + self.net[f"{layer}dense.bias"])
                sums[0] = sums[0] + len(of_batch) * h.mean(0)
                sums[1] = sums[1] + len(of_batch) * h.var(0, unbiased=False)
            self.net[f"{layer}norm.running_mean"].copy_(sums[0] / len(rows))
            self.net[f"{layer}norm.running_var"].copy_(sums[1] / len(rows))
        super().validate()


class DomainIndependent(Method):
    """Wang et al. 2020: one encoder, one classifier per group."""

    def __init__(self, setting, inference):
        self.setting, self.inference, self.objective = setting, inference, objectives.Erm()
        shapes = encoder_shapes()
        for g in range(len(LEVELS)):
            shapes |= classifier_shapes(f"classifiers.{g}.", REPRESENTATION, setting.head.name)
        self.net = setting.module("network", shapes)
        self.optimiser = setting.optimiser(self.net)
        self.modules, self.baseline = {"network": self.net}, None

    def of(self, g, z, frozen=False):
        if not frozen:
            return classify(self.net, z, f"classifiers.{g}.")
        still = {k: t.detach() for k, t in self.net.tensors.items() if k.startswith(f"classifiers.{g}.")}
        fixed = object.__new__(Module)
        fixed.tensors = still
        return classify(fixed, z, f"classifiers.{g}.")

    def shares(self):
        n = self.setting.table.n_train
        return [k / sum(n) for k in n]

    def own(self, rows, z):
        """Each sample its own classifier; without a group the mean of all, which learn nothing from it."""
        out = []
        for k, i in enumerate(rows):
            g = self.setting.table.group[i]
            if g is None:
                out.append(sum(self.of(h, z[k:k + 1], True) for h in range(len(LEVELS))) / len(LEVELS))
            else:
                out.append(self.of(g, z[k:k + 1]))
        return torch.cat(out)

    def step(self, rows, draws):
        z = encode(self.net, self.setting.x(rows), "train")
        batch = self.batch(rows, z, self.own(rows, z))
        norm = self.optimiser.step(gradients(batch.mean(), self.net))
        return self.report(batch.mean(), batch.mean(), norm, batch.absent(False))

    def weights(self):
        return self.shares() if self.inference.startswith("share") else [1 / len(LEVELS)] * len(LEVELS)

    def combined(self, z):
        return sum(w * self.of(g, z) for g, w in enumerate(self.weights()))

    def validate(self, loss=None):
        train = self.setting.table.train
        with torch.no_grad():
            z = encode(self.net, self.setting.x(train), "evaluate")
            out = self.combined(z) if self.inference.endswith("logits") else self.own(train, z)
            self.baseline = self.setting.head.baseline(out, train)

    def predict(self, rows):
        with torch.no_grad():
            z = encode(self.net, self.setting.x(rows), "evaluate")
            curves = lambda out: self.setting.head.curves(out, self.baseline)
            if self.inference.endswith("logits"):
                return curves(self.combined(z))
            each = [curves(self.of(g, z)) for g in range(len(LEVELS))]
            weights = self.shares() if self.inference == "own-group" else self.weights()
            mean = sum(w * s for w, s in zip(weights, each))
            if self.inference != "own-group":
                return mean
            groups = [self.setting.table.group[i] for i in rows]
            return torch.stack([mean[k] if g is None else each[g][k] for k, g in enumerate(groups)])


class ControlledAttribute(Method):
    """One network per group; each keeps the weights at which its own validation rows are most likely; the mean of curves."""

    def __init__(self, setting):
        self.setting, self.nets, self.optimisers, self.modules, self.best = setting, [], [], {}, {}
        self.nlls = [[] for _ in LEVELS]
        for g in range(len(LEVELS)):
            net = setting.module(f"group-{g}-training", survival_shapes(setting.head.name))
            self.nets.append(net)
            self.optimisers.append(setting.optimiser(net))
            self.modules[net.file] = net

    def sampling(self):
        return {"within-groups": [self.setting.table.group[i] for i in self.setting.table.train]}

    def step(self, rows, draws):
        g = self.setting.table.group[rows[0]]
        batch = self.batch(rows, *self.forward(rows, net=self.nets[g]))
        norm = self.optimisers[g].step(gradients(batch.mean(), self.nets[g]))
        return self.report(batch.mean(), batch.mean(), norm)

    def of_group(self, rows, g):
        return [i for i in rows if self.setting.table.group[i] == g]

    def nll(self, g, curves, rows):
        """Mean of -log of the mass of the interval of an event, or of S for a censoring. The mass of an interval without a
        training event of the group (Cox curves do not fall there) is shared with the next that has one."""
        table, total = self.setting.table, 0.0
        ends = {int(table.q[i]) for i in self.of_group(table.train, g) if table.d[i]}
        for k, i in enumerate(rows):
            q = int(table.q[i])
            if not table.d[i]:
                total -= math.log(float(curves[k, q]))
                continue
            first = last = q
            if self.setting.head.name == "cox":
                inside = min(q, max(ends))
                first = max((e + 1 for e in ends if e < inside), default=0)
                last = min(e for e in ends if e >= inside)
                last = len(table.cuts) - 1 if last == max(ends) else last
            before = float(curves[k, first - 1]) if first else 1.0
            total -= math.log((before - float(curves[k, last])) / (last + 1 - first))
        return total / len(rows)

    def validate(self, loss=None):
        table, head = self.setting.table, self.setting.head
        for g, net in enumerate(self.nets):
            train, validation = self.of_group(table.train, g), self.of_group(table.validation, g)
            with torch.no_grad():
                baseline = head.baseline(self.forward(train, "evaluate", net)[1], train)
                curves = head.curves(self.forward(validation, "evaluate", net)[1], baseline)
            nll = self.nll(g, curves, validation)
            if g not in self.best or nll < self.best[g][0]:
                self.best[g] = nll, net.copied(), baseline
            self.nlls[g].append(nll)

    def predict(self, rows):
        n, total = self.setting.table.n_train, 0.0
        for g in range(len(LEVELS)):
            _, net, baseline = self.best[g]
            with torch.no_grad():
                curves = self.setting.head.curves(self.forward(rows, "evaluate", net)[1], baseline)
            total = total + n[g] / sum(n) * curves
        return total

    def log_terms(self):
        n = sum(self.setting.table.group[i] is None for i in self.setting.table.train)
        return {f"csa: best nll of {LEVELS[g]}": self.best[g][0] for g in self.best} | {"csa: samples left out": float(n)}
