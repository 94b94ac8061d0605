"""Numbers of single precision are the decimals that they are written as, except in matrices of curves."""

import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairtte
from fairtte import _decimals, _inputs

QUICK = {"replicates": 0, "permutations": 0}


def test_the_shortest_decimal_that_reads_back():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    bits = np.concatenate([bits[np.isfinite(bits)], rng.normal(size=20_000).astype(np.float32), np.float32([0, 1.1, 16777216, 3e38, 1e-45])])
    found = _decimals.as_written(bits)
    assert found.dtype == np.float64 and np.array_equal(found.astype(np.float32), bits)
    assert list(found) == [float(str(value)) for value in bits]
    half = np.arange(2**16, dtype=np.uint16).view(np.float16)
    half = half[np.isfinite(half)]
    assert np.array_equal(_decimals.as_written(half).astype(np.float16), half)
    kept = _decimals.as_written(np.array([np.nan, np.inf, -np.inf, 1.1], dtype=np.float32))
    assert np.isnan(kept[0]) and list(kept[1:]) == [np.inf, -np.inf, 1.1]
    double = np.array([1.1, 2.2])
    assert _decimals.as_written(double) is double


def test_a_million_numbers_take_about_a_second():
    values = np.random.default_rng(0).exponential(size=1_000_000).astype(np.float32)
    begin = time.process_time()
    _inputs.numbers(values, "time")
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_vectors_of_single_precision_are_on_the_right_side_of_a_cut(dtype):
    values = np.array([1.1, 2.3, 0.7], dtype=dtype)
    objects = np.array([*values, None], dtype=object)[:3]
    columns = [values, pd.Series(values), objects, pd.Series(objects), list(values), [values[0], 2.3, 0.7]]
    if dtype == np.float32:
        columns += [pl.Series(values), pd.Series(values, dtype="Float32")]
    for column in columns:
        assert _inputs.numbers(column, "time")[0] == 1.1, type(column)
    for column in [*columns, np.ma.array(values)]:
        names, codes = _inputs.levels(column, "x", cuts=[1.1])
        assert names == ["<= 1.1", "> 1.1"] and list(codes) == [0, 1, 0], type(column)
    for cuts in ([values[0]], values[:1], [values[0], 2], values[0]):
        names, codes = _inputs.levels([1.1, 2.3], "x", cuts=cuts)
        assert names[0] == "<= 1.1" and list(codes)[0] == 0
    assert _inputs.levels(values, "x")[0] == ["0.7", "1.1", "2.3"]
    if dtype == np.float32:
        categories = pd.Series(pd.Categorical(values, categories=values[::-1]))
        names, codes = _inputs.levels(categories, "x")
        assert names == ["0.7", "2.3", "1.1"] and list(codes) == [2, 1, 0]
    assert _inputs.values_of(pd.Series([values[0], None], dtype=dtype), "x") == [1.1, None]


def test_an_evaluation_of_single_precision_is_that_of_its_decimals(cohort):
    c = cohort
    time_of, times = np.round(c.time + 0.01, 2), np.round(c.times, 2)
    settings = {"groups": {"age": c.age / 10}, "cuts": {"age": [6.1]}, "horizon": 1.1, "metrics": ["c-td", "ibs", "ici"], **QUICK}
    expected = fairtte.evaluate(c.survival, times, time_of, c.event, **settings)
    single = settings | {"groups": {"age": (c.age / 10).astype(np.float32)}, "cuts": {"age": np.float32([6.1])}, "horizon": np.float32(1.1)}
    found = fairtte.evaluate(c.survival, times.astype(np.float32), time_of.astype(np.float32), c.event, **single)
    assert found.by_group.equals(expected.by_group) and found.overall.equals(expected.overall)
    at = fairtte.evaluate_binary(np.float32([0.3, 0.7, 0.1, 0.9]), [0, 1, 0, 1], threshold=0.7, **QUICK)
    assert at["fnr"].value == 0.0 == fairtte.evaluate_binary([0.3, 0.7, 0.1, 0.9], [0, 1, 0, 1], threshold=np.float32(0.7), **QUICK)["fnr"].value
