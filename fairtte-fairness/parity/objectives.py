"""The strategies that only change the loss of one network: definitions in float64 with PyTorch's autograd.

An objective gives (number to descend, absent groups, terms of the report) from what one batch shows.
"""

import math

import torch

from setting import LEVELS


class Batch:
    """What an objective may read: rows of the table, losses, which of them count, outputs, representation."""

    def __init__(self, setting, rows, z, out, draws):
        self.table, self.head, self.rows, self.z, self.out, self.draws = setting.table, setting.head, rows, z, out, draws
        self.losses = self.head.losses(out, rows)
        self.counted = self.head.counted(rows)
        self.group = [self.table.group[i] for i in rows]
        self.stratum = [self.table.stratum[i] for i in rows]
        self.n = max(1, sum(self.counted))

    def mean(self):
        return self.losses.sum() / self.n

    def members(self, g):
        """Samples of group g with a loss term."""
        return [k for k in range(len(self.rows)) if self.group[k] == g and self.counted[k]]

    def absent(self, counted=True):
        return sum(not (self.members(g) if counted else g in self.group) for g in range(len(LEVELS)))


class Erm:
    def value(self, batch):
        return batch.mean(), 0, {}

    def sampling(self, table):
        return "shuffled"


def known_rows(table):
    return [i for i in table.train if table.group[i] is not None]


class SubgroupRebalancing(Erm):
    """Kamiran & Calders 2012: w_i = 1 / (K n_cell), or P(g) P(d) / P(g, d) as loss weights."""

    def __init__(self, by, mode, table):
        self.by, self.mode, self.table = by, mode, table

    def cell(self, i):
        g, d = self.table.group[i], int(self.table.event[i])
        if self.by == "event":
            return d
        if g is None:
            return None
        return g if self.by == "group" else 2 * g + d

    def sampling(self, table):
        if self.mode == "reweigh":
            return "shuffled"
        cells = [self.cell(i) for i in table.train]
        if self.mode == "oversample":
            return {"oversampled": cells}
        known = [c for c in cells if c is not None]
        n, n_cells = len(cells), len(set(known))
        return {"weighted": [1 / n if c is None else len(known) / n / n_cells / known.count(c) for c in cells]}

    def value(self, batch):
        if self.mode != "reweigh":
            return batch.mean(), 0, {}
        known = known_rows(self.table)
        share = lambda select: sum(map(select, known)) / len(known)
        total = 0.0
        for k, i in enumerate(batch.rows):
            g, d = self.table.group[i], self.table.event[i]
            w = 1.0
            if g is not None:
                both = share(lambda j: self.table.group[j] == g and self.table.event[j] == d)
                w = share(lambda j: self.table.group[j] == g) * share(lambda j: self.table.event[j] == d) / both
            total = total + w * batch.losses[k]
        return total / batch.n, 0, {}


class GroupDro(Erm):
    """Sagawa et al. 2020, Algorithm 1: w_g <- w_g exp(eta (L_g + C / sqrt(n_g))), normalised, then sum of w_g L_g."""

    def __init__(self, eta, c, absent, balanced, table):
        self.eta, self.absent, self.balanced, self.table = eta, absent, balanced, table
        self.adjustment = [c / math.sqrt(n) for n in table.n_train]
        self.w = [1 / len(LEVELS)] * len(LEVELS)

    def sampling(self, table):
        return SubgroupRebalancing("group", "resample", table).sampling(table) if self.balanced else "shuffled"

    def value(self, batch):
        members = [batch.members(g) for g in range(len(LEVELS))]
        means = [float(batch.losses[m].detach().mean()) if m else None for m in members]
        present = [g for g in range(len(LEVELS)) if means[g] is not None]
        moving = present if self.absent == "hold" else list(range(len(LEVELS)))
        mass = sum(self.w[g] for g in moving)
        for g in present:
            self.w[g] *= math.exp(self.eta * (means[g] + self.adjustment[g]))
        now = sum(self.w[g] for g in moving)
        for g in moving:
            self.w[g] *= mass / now if moving else 1.0
        n_known = sum(len(m) for m in members)
        total = 0.0
        for g in present:
            total = total + n_known / batch.n * self.w[g] * batch.losses[members[g]].mean()
        for k in range(len(batch.rows)):
            if batch.group[k] is None and batch.counted[k]:
                total = total + batch.losses[k] / batch.n
        return total, batch.absent(), {f"weight of {name}": w for name, w in zip(LEVELS, self.w)}


class Febs(Erm):
    """FairSeg's W_g = tanh((min L / L_g)^gamma) as inverse loss weights, scaled to a mean of 1 over the samples."""

    def __init__(self, gamma, decay):
        self.gamma, self.decay, self.past = gamma, decay, {}

    def value(self, batch):
        members = {g: batch.members(g) for g in range(len(LEVELS)) if batch.members(g)}
        for g, m in members.items():
            mean = float(batch.losses[m].detach().mean())
            self.past[g] = self.decay * self.past[g] + (1 - self.decay) * mean if g in self.past else mean
        level = {g: max(self.past[g], 0.0) + 1e-8 for g in members}
        inverse = {g: 1 / math.tanh((min(level.values()) / level[g]) ** self.gamma) for g in members}
        n_known = sum(len(m) for m in members.values())
        mean = sum(inverse[g] * len(members[g]) for g in members) / max(1, n_known)
        weight = {g: inverse[g] / mean for g in members}
        total = 0.0
        for k in range(len(batch.rows)):
            w = 1.0 if batch.group[k] is None else weight.get(batch.group[k], 0.0)
            total = total + w * batch.losses[k] / batch.n
        return total, batch.absent(), {f"weight of {LEVELS[g]}": w for g, w in weight.items()}


class DroChiSquare(Erm):
    """Hu & Chen 2022: inf over eta of C sqrt(mean (l - eta)_+^2) + eta, the infimum by bisection on its derivative."""

    def __init__(self, alpha):
        self.c2 = 2 * (1 / alpha - 1) ** 2 + 1

    def one(self, losses):
        values, n = losses.detach().double(), len(losses)
        largest = float(values.max())
        if self.c2 * int((values >= largest).sum()) >= n:
            return losses.max(), 1
        c = math.sqrt(self.c2)

        def slope(eta):
            above = torch.clamp(values - eta, min=0)
            return 1 - c * float(above.mean()) / math.sqrt(float((above ** 2).mean()))

        low, high = largest - 1e6, largest - 1e-12
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        eta = (low + high) / 2
        value = c * torch.sqrt((torch.clamp(losses - eta, min=0) ** 2).mean()) + eta
        return value, int((values > eta).sum())

    def value(self, batch):
        if batch.head.name != "cox":
            value, n = self.one(batch.losses)
            return value, 0, {"losses with weight": n}
        # Events first, each kind in its drawn order; every second one is in the other half.
        order = sorted(batch.draws["halves"], key=lambda k: not batch.table.event[batch.rows[k]])
        half = [False] * len(order)
        for k in order[1::2]:
            half[k] = True
        losses = batch.head.losses(batch.out, batch.rows, half)
        total, n_weighted = 0.0, 0
        for side in [False, True]:
            members = [k for k in range(len(half)) if half[k] == side and batch.counted[k]]
            if members:
                value, n = self.one(losses[members])
                total, n_weighted = total + value, n_weighted + n
        return total, 0, {"losses with weight": n_weighted}


class FairRepresentation(Erm):
    """Mean loss + lambda * mean over pairs of groups of MMD^2 of their representations."""

    def __init__(self, weight, kernels, gamma, estimator, conditional):
        self.weight, self.kernels, self.gamma = weight, kernels, gamma
        self.estimator, self.conditional = estimator, conditional

    def gammas(self, squared):
        if self.kernels == "domainbed":
            return [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3]
        if self.kernels == "single":
            return [self.gamma]
        n = len(squared)
        pairs = sorted(float(squared[i, j]) for i in range(n) for j in range(i + 1, n))
        half = len(pairs) // 2
        median = pairs[half] if len(pairs) % 2 else (pairs[half - 1] + pairs[half]) / 2
        return [1 / (2 * c * median) for c in (0.25, 0.5, 1.0, 2.0, 4.0)]

    def value(self, batch):
        n = len(batch.rows)
        squared = ((batch.z[:, None, :] - batch.z[None, :, :]) ** 2).sum(2)
        kernel = sum(torch.exp(-gamma * squared) for gamma in self.gammas(squared.detach()))

        def mean(a, b):
            if a == b and self.estimator == "unbiased":
                return sum(kernel[i, j] for i in a for j in b if i != j) / (len(a) * (len(a) - 1))
            return kernel[a][:, b].mean()

        terms = []
        strata = [0, 1] if self.conditional else [None]
        for y in strata:
            cells = [[k for k in range(n) if batch.group[k] == g and (y is None or batch.stratum[k] == y)]
                     for g in range(len(LEVELS))]
            for g in range(len(LEVELS)):
                for h in range(g + 1, len(LEVELS)):
                    if len(cells[g]) >= 2 and len(cells[h]) >= 2:
                        terms.append(mean(cells[g], cells[g]) + mean(cells[h], cells[h]) - 2 * mean(cells[g], cells[h]))
        skipped = len(strata) * 3 - len(terms)
        mmd = sum(terms) / len(terms) if terms else torch.zeros((), dtype=batch.z.dtype)
        return batch.mean() + self.weight * mmd, batch.absent(False), {"pairs skipped": skipped, "mmd2": mmd}


class End(Erm):
    """Tartaglione et al. 2021 over all pairs, on directions u = z / |z|."""

    def __init__(self, alpha, beta, disentangling):
        self.alpha, self.beta, self.disentangling = alpha, beta, disentangling

    def value(self, batch):
        n, group = len(batch.rows), batch.group
        u = batch.z / batch.z.norm(dim=1, keepdim=True)
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        within = {g: [p for p in pairs if group[p[0]] == g == group[p[1]]] for g in range(len(LEVELS))}
        across = [(i, j) for i, j in pairs if None not in (group[i], group[j], batch.stratum[i], batch.stratum[j])
                  and group[i] != group[j] and batch.stratum[i] == batch.stratum[j]]
        zero = torch.zeros((), dtype=batch.z.dtype)
        n_within = sum(map(len, within.values()))
        disentangle, entangle = zero, zero
        if n_within:
            for of_group in within.values():
                products = [(u[i] * u[j]).sum() for i, j in of_group]
                if products:
                    products = torch.stack(products)
                    products = products.sum().abs() if self.disentangling == "group-sum" else products.abs().sum()
                    disentangle = disentangle + products / n_within
        if across:
            entangle = torch.stack([(1 - (u[i] * u[j]).sum()) / 2 for i, j in across]).mean()
        value, absent = batch.mean(), batch.absent(False)
        if len(LEVELS) - absent >= 2:
            value = value + self.alpha * disentangle + self.beta * entangle
        return value, absent, {"pairs within groups": n_within, "pairs across groups": len(across),
                               "disentangle": disentangle, "entangle": entangle}
