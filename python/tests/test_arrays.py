"""Arrays of every layout, order of bytes and kind mean the same numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairtte
from fairtte import _decimals, _inputs
from fairtte.estimators import CoxPH, StepFunction, surv


def within_bytes(values):
    """The same numbers from an address that is no multiple of their size."""
    return np.frombuffer(b"\0" + values.tobytes(), dtype=values.dtype, offset=1).reshape(values.shape)


def test_what_lies_at_any_address_is_copied_to_one_that_rust_reads():
    for kind in (np.float64, np.float32):
        matrix = np.linspace(1, 0, 12).astype(kind).reshape(4, 3)
        shifted, fields = within_bytes(matrix), np.zeros(4, dtype=[("x", kind, 3), ("flag", "?")])
        fields["x"] = matrix
        for given in (shifted, fields["x"]):
            assert not given.flags.aligned
            for read in (_inputs.matrix(given, "survival"), _inputs.regular(given)):
                assert read.flags.aligned and read.dtype == kind and np.array_equal(read, matrix)
                assert all(stride % read.itemsize == 0 for stride in read.strides)
    time = np.array([1.5, 2.5])
    assert _inputs.numbers(within_bytes(time), "time").flags.aligned and list(_inputs.numbers(within_bytes(time), "time")) == [1.5, 2.5]
    # What is regular is read where it lies.
    for regular in (matrix, np.asfortranarray(matrix), matrix[::-2], matrix[:, ::2]):
        assert np.shares_memory(_inputs.matrix(regular, "survival"), regular)


def test_covariates_of_a_structured_array_are_those_of_its_copy():
    rng = np.random.default_rng(0)
    table = np.zeros(200, dtype=[("x", "f8", 3), ("event", "?")])
    table["x"], table["event"] = rng.normal(size=(200, 3)), rng.random(200) < 0.8
    y = surv(rng.exponential(np.exp(-table["x"][:, 0])) + 0.01, table["event"])
    # Steps of 25 bytes from one row to the next.
    assert table["x"].strides == (25, 8)
    expected, found = CoxPH().fit(table["x"].copy(), y), CoxPH().fit(table["x"], y)
    assert list(found.coef_) == list(expected.coef_)
    assert list(found.predict(table["x"])) == list(expected.predict(table["x"].copy()))


def test_the_order_of_bytes_changes_no_number():
    for kind in ("f2", "f4", "f8"):
        own, other = np.array([1.1, 2.5, np.nan], dtype=f"<{kind}"), np.array([1.1, 2.5, np.nan], dtype=f">{kind}")
        assert list(_decimals.as_written(other)[:2]) == [1.1, 2.5] == list(_inputs.numbers(other, "time")[:2])
        assert _inputs.values_of(other, "x") == _inputs.values_of(own, "x") == [1.1, 2.5, None]
        names, codes = _inputs.levels(other, "x", cuts=[1.1])
        assert names == ["<= 1.1", "> 1.1"] and list(codes) == [0, 1, -1]
    matrix = np.array([[0.5, 0.25]])
    assert np.array_equal(_inputs.matrix(matrix.astype(">f8"), "survival"), matrix)
    assert _inputs.matrix(matrix.astype(">f4"), "survival").dtype == np.float64


@pytest.mark.parametrize(
    "columns",
    [
        [("sex", ["F", "M"]), ("sex", ["M", "M"])],
        [pd.Series(["F", "M"], name="sex"), pd.Series(["M", "M"], name="sex")],
        [pl.Series("sex", ["F", "M"]), pl.Series("sex", ["M", "M"])],
        pd.DataFrame([["F", "M"], ["M", "M"]], columns=["sex", "sex"]),
    ],
)
def test_no_column_takes_the_place_of_another(columns):
    with pytest.raises(fairtte.MetricError, match='groups has several columns "sex", expected one'):
        _inputs.columns(columns, "groups")


def test_numbers_and_texts_are_one_name():
    for columns in (pd.DataFrame([[0, 1]], columns=[1, "1"]), {1: [0], "1": [1]}):
        with pytest.raises(fairtte.MetricError, match='groups has several columns "1", expected one'):
            _inputs.columns(columns, "groups")
    assert list(_inputs.columns(pd.DataFrame([[0, 1]], columns=[1, 2]), "groups")) == ["1", "2"]


def test_what_is_no_level_is_named_with_its_place():
    for value in (["b"], {"b": 1}, {"b"}, np.array([1, 2])):
        column = np.empty(2, dtype=object)
        column[:] = ["a", value]
        with pytest.raises(fairtte.MetricError, match=rf"sex\[1\] is a {type(value).__name__}, expected a number or text"):
            _inputs.levels(column, "sex")
    assert _inputs.values_of([1, np.ma.masked], "sex") == [1, None]


def test_a_step_function_reads_single_precision_as_its_decimals():
    function = StepFunction(np.array([0.7, 1.1]), np.array([0.9, 0.5]))
    # 0.7 is below and 1.1 above in single precision.
    assert function(np.float32(0.7)) == 0.9 and function(np.float32(1.1)) == 0.5
    assert list(function(np.array([0.69, 0.7, 1.1], dtype=np.float32))) == [1.0, 0.9, 0.5]
    assert function(0) == 1.0 and function([]).shape == (0,)


def test_an_outcome_has_two_parts():
    X, time, event = np.arange(6.0)[:, None] % 4, [5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1]
    for y in ((time, event, time), (time,)):
        with pytest.raises(fairtte.MetricError, match=rf"y has {len(y)} parts, expected \(time, event\)"):
            CoxPH(ridge=1.0).fit(X, y)
    model = CoxPH(ridge=1.0).fit(X, (time, event))
    with pytest.raises(fairtte.MetricError, match=r"y has 3 parts, expected \(time, event\)"):
        model.score(X, (time, event, time))
