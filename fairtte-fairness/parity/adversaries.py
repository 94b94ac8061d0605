"""LAFTR, CFair, LNL and ODR: definitions in float64 with PyTorch's autograd."""

import torch

from methods import Method, absent, comparable
from setting import (LEVELS, REPRESENTATION, classify, classifier_shapes, encode, encoder_shapes, gradients, perceive,
                     perceptron_shapes, survival_shapes)


def cross_entropy(logits, cells):
    """Mean over the samples in a cell of -log p(own group)."""
    log = torch.log_softmax(logits, 1)
    return torch.stack([-log[k, cell[0]] for k, cell in enumerate(cells) if cell]).mean()


def negative_entropy(logits, cells):
    """Mean over the samples in a cell of sum p log p."""
    log = torch.log_softmax(logits, 1)
    of_sample = (torch.exp(log) * log).sum(1)
    return of_sample[[k for k, cell in enumerate(cells) if cell]].mean()


def of_groups(batch):
    return [None if g is None else (g, 0) for g in batch.group]


class Laftr(Method):
    """Madras et al. 2018: encoder and head descend L_task + gamma L_adv, then on a new forward pass the adversary ascends on
    gamma L_adv; L_adv = J - (2 / G) sum over cells of the mean of 1 - p(own group)."""

    def __init__(self, setting, mode, gamma, aud_steps, rate):
        super().__init__(setting)
        self.mode, self.gamma, self.aud_steps = mode, gamma, aud_steps
        self.n_strata = 2 if mode == "eqodd" else 1
        inputs = REPRESENTATION + (0 if mode == "dp" else 1)
        self.adversary = setting.module("adversary", perceptron_shapes(inputs, 128))
        self.adversary_optimiser = setting.adversary_optimiser(self.adversary, rate)
        self.modules["adversary"] = self.adversary

    def cells(self, batch):
        if self.mode == "dp":
            return of_groups(batch)
        pairs = [(g, y) if None not in (g, y) else None for g, y in zip(batch.group, batch.stratum)]
        if self.mode == "eqodd":
            return pairs
        only = int(self.mode[-1])
        return [(cell[0], 0) if cell and cell[1] == only else None for cell in pairs]

    def gain(self, z, batch, cells):
        if self.mode != "dp":
            indicator = [[1.0 if y == 1 else 0.0] for y in batch.stratum]
            z = torch.cat([z, torch.tensor(indicator, dtype=z.dtype)], 1)
        p = torch.softmax(perceive(self.adversary, z, 0.2), 1)
        total = float(self.n_strata)
        for cell in sorted({cell for cell in cells if cell}):
            members = [k for k in range(len(cells)) if cells[k] == cell]
            total = total - 2 / len(LEVELS) * (1 - p[members, cell[0]]).mean()
        return total

    def step(self, rows, draws):
        z, out = self.forward(rows)
        batch = self.batch(rows, z, out)
        cells = self.cells(batch)
        task = batch.mean()
        if not comparable(cells):
            norm = self.optimiser.step(gradients(task, self.net))
            return self.report(task, task, norm, absent(cells))
        gain = self.gain(z, batch, cells)
        norm = self.optimiser.step(gradients(task + self.gamma * gain, self.net))
        again = encode(self.net, self.setting.x(rows), "train").detach()
        for _ in range(self.aud_steps):
            ascend = -self.gamma * self.gain(again, batch, cells)
            self.adversary_optimiser.step(gradients(ascend, self.adversary))
        return self.report(task, task + self.gamma * gain, norm, absent(cells), {"adversary gain": gain})


class Cfair(Method):
    """Zhao et al. 2020: one adversary per stratum on relu(z); the encoder descends the task minus lambda times the balanced
    error of the adversaries, they descend it, in one step of one optimiser."""

    def __init__(self, setting, mode, weight, scaling, weights):
        self.setting, self.mode, self.weight, self.scaling, self.weights = setting, mode, weight, scaling, weights
        shapes = survival_shapes(setting.head.name, "survival.")
        for y in range(2):
            shapes |= perceptron_shapes(REPRESENTATION, 128, f"adversaries.{y}.")
        self.net = setting.module("network", shapes)
        self.optimiser = setting.optimiser(self.net)
        self.modules, self.baseline = {"network": self.net}, None

    def forward(self, rows, mode="train", net=None):
        z = encode(self.net, self.setting.x(rows), mode, "survival.")
        return z, classify(self.net, z, "survival.classifier.")

    def sampling(self):
        return "shuffled"

    def task(self, batch):
        if self.mode == "cfair-eo":
            return batch.mean()
        strata = [y for y, counted in zip(batch.stratum, batch.counted) if counted and y is not None]
        share = len(strata) / batch.n
        total = 0.0
        for k, y in enumerate(batch.stratum):
            if batch.counted[k]:
                w = 1 / batch.n if y is None else share / len(set(strata)) / strata.count(y)
                total = total + w * batch.losses[k]
        return total if torch.is_tensor(total) else batch.losses.sum()

    def balanced_error(self, z, batch, cells):
        """Mean over the strata in the batch of the weighted mean cross-entropy of their samples."""
        table, errors = self.setting.table, []
        for y in range(2):
            members = [k for k, cell in enumerate(cells) if cell and cell[1] == y]
            if not members:
                continue
            log = torch.log_softmax(perceive(self.net, torch.relu(z[members]), 0.0, f"adversaries.{y}."), 1)
            groups = [cells[k][0] for k in members]
            if self.weights == "batch":
                w = [1 / groups.count(g) for g in groups]
            else:
                in_stratum = [table.group[i] for i in table.train if table.stratum[i] == y and table.group[i] is not None]
                w = [len(in_stratum) / in_stratum.count(g) for g in groups]
            errors.append(sum(-log[k, g] * w[k] for k, g in enumerate(groups)) / sum(w))
        return sum(errors) / len(errors)

    def step(self, rows, draws):
        z, out = self.forward(rows)
        batch = self.batch(rows, z, out)
        cells = [(g, y) if None not in (g, y) else None for g, y in zip(batch.group, batch.stratum)]
        task, plain = self.task(batch), batch.mean()
        if not comparable(cells):
            norm = self.optimiser.step(gradients(task, self.net))
            return self.report(plain, task, norm, absent(cells))
        error = self.balanced_error(z, batch, cells)
        objective = task - self.weight * error
        found, of_error = gradients(objective, self.net), gradients(error, self.net)
        scale = self.weight if self.scaling == "both" else 1.0
        for name in found:
            if name.startswith("adversaries."):
                found[name] = None if of_error[name] is None else scale * of_error[name]
        norm = self.optimiser.step(found)
        return self.report(plain, objective, norm, absent(cells), {"adversary loss": error})


class Lnl(Method):
    """Kim et al. 2019: phase 1 on L_task + lambda mean sum p log p, predictor fixed; phase 2 on a new forward pass: predictor on
    its cross-entropy, encoder on -mu times the gradient of it."""

    def __init__(self, setting, weight, mu, rate):
        super().__init__(setting)
        self.weight, self.mu = weight, mu
        self.predictor = setting.module("predictor", perceptron_shapes(REPRESENTATION, 64))
        self.predictor_optimiser = setting.adversary_optimiser(self.predictor, rate)
        self.modules["predictor"] = self.predictor

    def step(self, rows, draws):
        z, out = self.forward(rows)
        batch = self.batch(rows, z, out)
        cells, task = of_groups(batch), batch.mean()
        if not comparable(cells):
            norm = self.optimiser.step(gradients(task, self.net))
            return self.report(task, task, norm, absent(cells))
        logits = perceive(self.predictor, z, 0.0)
        entropy, error = negative_entropy(logits, cells), cross_entropy(logits, cells)
        objective = task + self.weight * entropy
        norm = self.optimiser.step(gradients(objective, self.net))
        again = encode(self.net, self.setting.x(rows), "train")
        loss = cross_entropy(perceive(self.predictor, again, 0.0), cells)
        of_net, of_predictor = gradients(loss, self.net), gradients(loss, self.predictor)
        if self.mu > 0:
            self.optimiser.step({k: None if g is None else -self.mu * g for k, g in of_net.items()})
        self.predictor_optimiser.step(of_predictor)
        terms = {"predictor negative entropy": entropy, "predictor cross-entropy": error}
        return self.report(task, objective, norm, absent(cells), terms)


class Odr(Method):
    """Sarhan et al. 2020: L_task + l_E(t) mean sum q log q (on z_T) + l_OD(t) (KL_T + KL_S) + L_s, L_s not into the encoder;
    the group classifier learns from L_s alone."""

    def __init__(self, setting, weights, gammas, epochs, code, rate):
        self.setting, self.weights, self.gammas, self.epochs, self.code = setting, weights, gammas, epochs, code
        shapes = encoder_shapes() | classifier_shapes("classifier.", code, setting.head.name)
        for part in ["target", "sensitive"]:
            for layer in ["mean", "log_var"]:
                shapes |= {f"{part}.{layer}.weight": (REPRESENTATION, code), f"{part}.{layer}.bias": (code,)}
        self.net = setting.module("network", shapes)
        self.optimiser = setting.optimiser(self.net)
        self.classifier = setting.module("group-classifier", perceptron_shapes(code, 64))
        self.classifier_optimiser = setting.adversary_optimiser(self.classifier, rate)
        self.modules = {"network": self.net, "group-classifier": self.classifier}
        self.baseline, self.seen = None, 0
        half = code // 2
        self.priors = {"target": [0.0] * half + [1.0] * (code - half), "sensitive": [1.0] * half + [0.0] * (code - half)}

    def sampling(self):
        return "shuffled"

    def parameters_of(self, part, z):
        linear = lambda layer: z @ self.net[f"{part}.{layer}.weight"] + self.net[f"{part}.{layer}.bias"]
        return linear("mean"), linear("log_var")

    def drawn(self, part, z, noise):
        mean, log_var = self.parameters_of(part, z)
        return mean + torch.exp(log_var / 2) * torch.tensor(noise, dtype=z.dtype)

    def distance(self, part, z):
        """Mean KL(N(mean, var) || N(prior, 1)) over the samples."""
        mean, log_var = self.parameters_of(part, z)
        prior = torch.tensor(self.priors[part], dtype=z.dtype)
        return ((log_var.exp() + (mean - prior) ** 2 - 1 - log_var).sum(1) / 2).mean()

    def step(self, rows, draws):
        z = encode(self.net, self.setting.x(rows), "train")
        target = self.drawn("target", z, draws["target-code"])
        sensitive = self.drawn("sensitive", z.detach(), draws["sensitive-code"])
        batch = self.batch(rows, target, classify(self.net, target))
        cells, task = of_groups(batch), batch.mean()
        distance = self.distance("target", z) + self.distance("sensitive", z)
        t = self.seen / len(self.setting.table.train) / self.epochs
        entropy_weight, distance_weight = [w * gamma ** t for w, gamma in zip(self.weights, self.gammas)]
        entropy = of_group = torch.zeros((), dtype=z.dtype)
        if comparable(cells):
            entropy = negative_entropy(perceive(self.classifier, target, 0.0), cells)
            of_group = cross_entropy(perceive(self.classifier, sensitive, 0.0), cells)
        objective = task + entropy_weight * entropy + distance_weight * distance + of_group
        found = gradients(objective, self.net)
        of_classifier = gradients(of_group, self.classifier) if comparable(cells) else None
        norm = self.optimiser.step(found)
        if of_classifier:
            self.classifier_optimiser.step(of_classifier)
        self.seen += len(rows)
        terms = {"entropy term": entropy, "distance to the priors": distance, "group cross-entropy": of_group}
        return self.report(task, objective, norm, absent(cells), terms)

    def outputs(self, rows):
        z = encode(self.net, self.setting.x(rows), "evaluate")
        return classify(self.net, self.parameters_of("target", z)[0])
