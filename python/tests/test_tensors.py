"""Tensors of torch, whatever their class, in lists too. Where torch is not installed, a class with what the package needs of it."""

import sys
import types

import numpy as np
import pytest

import fairtte
from fairtte import _inputs


class Fake:
    """A tensor of a module that is called torch."""

    layout = "torch.strided"

    def __init__(self, values, fails=None):
        self.values, self.fails = np.asarray(values), fails

    def detach(self):
        return self

    def cpu(self):
        return self

    def to_dense(self):
        dense = type(self)(self.values)
        dense.layout = "torch.strided"
        return dense

    def numpy(self):
        if self.fails or self.layout != "torch.strided":
            raise RuntimeError(self.fails or "sparse")
        return self.values

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("NumPy may not look into it")


class MetaTensor(Fake):
    """A subclass of another package."""


@pytest.fixture
def tensor(monkeypatch):
    torch = types.ModuleType("torch")
    torch.Tensor = Fake
    monkeypatch.setitem(sys.modules, "torch", torch)
    return MetaTensor


def test_a_subclass_of_a_tensor_is_one(tensor, cohort):
    c = cohort
    assert list(_inputs.numbers(tensor(c.time), "time")) == list(c.time)
    assert np.shares_memory(_inputs.matrix(tensor(c.survival), "survival"), c.survival)
    assert list(_inputs.flags(tensor(c.event), "event")) == list(c.event)
    assert _inputs.values_of(tensor([1, 0]), "sex") == [1, 0]
    settings = {"replicates": 0, "permutations": 0, "metrics": ["ibs"]}
    found = fairtte.evaluate(tensor(c.survival), tensor(c.times), tensor(c.time), tensor(c.event), **settings)
    assert found["ibs"].value == fairtte.evaluate(c.survival, c.times, c.time, c.event, **settings)["ibs"].value


def test_lists_of_tensors_are_arrays(tensor):
    scalars, rows = [tensor(1.5), tensor(2.5)], [tensor([0.9, 0.5]), tensor([0.8, 0.1])]
    assert list(_inputs.numbers(scalars, "time")) == [1.5, 2.5]
    assert _inputs.matrix(rows, "survival").tolist() == [[0.9, 0.5], [0.8, 0.1]] == _inputs.matrix(tuple(rows), "survival").tolist()
    assert _inputs.matrix([[tensor(0.9), tensor(0.5)], [0.8, 0.1]], "survival").shape == (2, 2)
    names, codes = _inputs.levels([tensor(1), tensor(0), None, tensor(1)], "sex")
    assert names == ["0", "1"] and list(codes) == [1, 0, -1, 1]
    assert list(_inputs.levels([tensor(np.float32(1.1)), tensor(np.float32(2))], "x", cuts=[1.1])[1]) == [0, 1]
    probability = [tensor(p) for p in (0.9, 0.4, 0.6, 0.2)]
    settings = {"replicates": 0, "permutations": 0, "min_events": 1}
    found = fairtte.evaluate_binary(probability, [tensor(k) for k in (1, 1, 0, 0)], groups={"sex": [tensor(k) for k in (0, 0, 1, 1)]}, **settings)
    assert found["auc"].value == 0.75 and set(found.by_group["level"]) == {"0", "1"}


def test_a_sparse_tensor_becomes_dense_and_what_fails_is_named(tensor):
    sparse = tensor([1.0, 0.0])
    sparse.layout = "torch.sparse_coo"
    assert list(_inputs.numbers(sparse, "time")) == [1.0, 0.0]
    for read in (_inputs.numbers, _inputs.matrix, _inputs.flags, _inputs.values_of):
        for value in (tensor([1.0], fails="no memory"), [tensor([1.0], fails="no memory")]):
            with pytest.raises(fairtte.MetricError, match="time is a MetaTensor that is no array: no memory"):
                read(value, "time")

    class Own:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("not now")

    for read in (_inputs.numbers, _inputs.values_of):
        with pytest.raises(fairtte.MetricError, match="time is no (array|column): not now"):
            read(Own(), "time")


def test_real_tensors_of_other_kinds():
    torch = pytest.importorskip("torch")

    class Sub(torch.Tensor):
        pass

    values = torch.tensor([0.5, 1.1])
    assert list(_inputs.numbers(values.as_subclass(Sub), "time")) == [0.5, 1.1]
    assert list(_inputs.numbers(torch.tensor([0.0, 2.0]).to_sparse(), "time")) == [0.0, 2.0]
    assert list(_inputs.numbers([torch.tensor(1.5, requires_grad=True), torch.tensor(2.5)], "time")) == [1.5, 2.5]
    assert _inputs.values_of([torch.tensor(1), torch.tensor(0)], "sex") == [1, 0]
    with pytest.raises(fairtte.MetricError, match="time has|time is"):
        _inputs.numbers(torch.tensor([1 + 2j]), "time")
