"""Recalibration by group: one map of curves per group, fitted on the validation part."""

import math

import torch

from methods import Method
from setting import LEVELS


class Recalibration(Method):
    """Trains as erm; at the end one map of curves per group, fitted on the validation part."""

    def __init__(self, setting, method, prior=1.0, ridge=1.0, shared=False):
        super().__init__(setting)
        self.method, self.prior, self.ridge, self.shared, self.maps = method, prior, ridge, shared, None

    @staticmethod
    def hazards(curve):
        previous = [1.0] + list(curve[:-1])
        return [1 - now / before for now, before in zip(curve, previous)]

    @staticmethod
    def root(f, low, high):
        """Where f, which rises, crosses 0."""
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) < 0 else (low, middle)
        return (low + high) / 2

    def fit(self, curves, rows):
        table = self.setting.table
        at_risk = [(k, h, bool(table.d[i]) and k == int(table.q[i]))
                   for curve, i in zip(curves, rows)
                   for k, h in enumerate(self.hazards(curve)[:int(table.q[i]) + 1])]
        if self.method == "oe":
            n_events = sum(bool(table.d[i]) for i in rows)
            expected = lambda a: sum(1 - (1 - h) ** a for _, h, _ in at_risk) + self.prior * a
            return self.root(lambda a: expected(a) - n_events - self.prior, 0.0, 100.0)
        if self.method == "hazard-intercept":
            shift = lambda h, b: h * math.exp(b) / (1 - h + h * math.exp(b))
            say = [entry for entry in at_risk if 0 < entry[1] < 1]
            solve = lambda part: self.root(
                lambda b: self.ridge * b - sum(d - shift(h, b) for _, h, d in part), -50.0, 50.0) if part else 0.0
            if self.shared:
                return [solve(say)] * len(table.cuts)
            return [solve([entry for entry in say if entry[0] == k]) for k in range(len(table.cuts))]
        # quantile: Kaplan-Meier of F at the outcome, as knots.
        values = sorted((1 - curve[int(table.q[i])], not table.d[i]) for curve, i in zip(curves, rows))
        knots, survival, n = [(0.0, 0.0)], 1.0, len(values)
        for value in sorted({value for value, _ in values}):
            n_events = sum(v == value and not censored for v, censored in values)
            survival *= 1 - n_events / n
            n -= sum(v == value for v, _ in values)
            if n_events and 0 < value < 1:
                knots.append((value, 1 - survival))
        return knots + [(1.0, 1.0)]

    def mapped(self, of_group, curve):
        if self.method == "oe":
            return [s ** of_group for s in curve]
        if self.method == "hazard-intercept":
            out, s = [], 1.0
            for h, b in zip(self.hazards(curve), of_group):
                if 0 < h < 1:
                    h = h * math.exp(b) / (1 - h + h * math.exp(b))
                s *= 1 - h
                out.append(s)
            return out
        out = []
        for s in curve:
            f = 1 - s
            for (x0, y0), (x1, y1) in zip(of_group, of_group[1:]):
                if x0 <= f <= x1:
                    out.append(1 - (y0 + (y1 - y0) * (f - x0) / (x1 - x0)))
                    break
        return out

    def finish(self, draws):
        table = self.setting.table
        self.maps, self.shares = [], []
        for g in range(len(LEVELS)):
            rows = [i for i in table.validation if table.group[i] == g]
            self.maps.append(self.fit(super().predict(rows).double().tolist(), rows))
            self.shares.append(len(rows))

    def predict(self, rows):
        curves = super().predict(rows)
        if self.maps is None:
            return curves
        out = []
        for i, curve in zip(rows, curves.double().tolist()):
            g = self.setting.table.group[i]
            each = [self.mapped(of_group, curve) for of_group in self.maps]
            mean = [sum(n * s[k] for n, s in zip(self.shares, each)) / sum(self.shares) for k in range(len(curve))]
            out.append(mean if g is None else each[g])
        return torch.tensor(out, dtype=torch.float64)
