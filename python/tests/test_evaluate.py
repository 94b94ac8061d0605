"""`evaluate` with every kind of input, its frames and its errors."""

import json
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairtte


def evaluate(c, survival=None, **changed):
    arguments = {"times": c.times, "time": c.time, "event": c.event, "replicates": 0, "permutations": 0}
    arguments |= changed
    return fairtte.evaluate(c.survival if survival is None else survival, **arguments)


def values(found):
    return list(found.overall["value"])


def direct_c_td(c):
    """Antolini's C by a double loop, curves read as refined by 10 (the default)."""
    fine = np.linspace(c.times[0], c.times[-1], 10 * (len(c.times) - 1) + 1)
    at = np.clip(np.searchsorted(fine, c.time + 1e-12, side="right") - 1, 0, len(fine) - 1)
    read = np.array([np.interp(fine[at], c.times, row) for row in c.survival])
    good = total = 0
    for i in np.flatnonzero(c.event):
        later = (c.time > c.time[i]) | ((c.time == c.time[i]) & ~c.event)
        good += np.sum(read[i, i] < read[later, i])
        total += later.sum()
    return good / total


def test_c_td_is_that_of_a_double_loop(cohort):
    found = evaluate(cohort, metrics=["c-td"])
    assert found["c-td"].value == pytest.approx(direct_c_td(cohort), abs=1e-12)


def test_every_kind_of_matrix_gives_the_same_numbers(cohort):
    c = cohort
    expected = values(evaluate(c))
    same = [
        np.asfortranarray(c.survival),
        np.repeat(c.survival, 2, axis=0)[::2],
        pd.DataFrame(c.survival),
        pl.DataFrame(c.survival),
    ]
    for survival in same:
        assert values(evaluate(c, survival)) == expected
    pycox_frame = pd.DataFrame(c.survival.T, index=c.times)
    assert values(evaluate(c, pycox_frame, times=None)) == expected
    assert values(evaluate(c, time=c.y, event=None)) == expected
    assert values(evaluate(c, time=pd.Series(c.time), event=pd.Series(c.event.astype(int)))) == expected
    single = c.survival.astype(np.float32)
    as_double = values(evaluate(c, single.astype(np.float64)))
    assert values(evaluate(c, single)) == as_double
    assert values(evaluate(c, np.asfortranarray(single))) == as_double


class Tensor:
    """What the package needs of a tensor of torch."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


Tensor.__module__ = "torch"


def test_tensors_come_from_their_device(cohort):
    c = cohort
    found = evaluate(c, Tensor(c.survival), time=Tensor(c.time), event=Tensor(c.event), groups={"sex": c.sex})
    assert values(found) == values(evaluate(c))


def test_real_tensors_of_torch(cohort):
    torch = pytest.importorskip("torch")
    c = cohort
    expected = values(evaluate(c))
    survival = torch.tensor(c.survival, requires_grad=True)
    found = evaluate(c, survival, time=torch.tensor(c.time), event=torch.tensor(c.event), times=torch.tensor(c.times))
    assert values(found) == expected
    assert values(evaluate(c, torch.tensor(c.survival.T.copy()).T)) == expected
    single = c.survival.astype(np.float32)
    assert values(evaluate(c, torch.tensor(single))) == values(evaluate(c, single))
    # NumPy has no bfloat16, which is part of float32.
    half = torch.tensor(c.survival).to(torch.bfloat16)
    assert values(evaluate(c, half)) == values(evaluate(c, half.float().numpy())) != expected
    by_tensor = evaluate(c, groups={"half": torch.tensor(c.risk > 0)}, metrics=["c-td"])
    assert list(by_tensor.by_group["n"]) == [int((c.risk <= 0).sum()), int((c.risk > 0).sum())]


def test_a_level_without_samples_has_a_reason_and_no_number(cohort):
    c = cohort
    category = pd.Series(pd.Categorical(c.sex, categories=["F", "M", "X"]))
    found = evaluate(c, groups={"age": c.age, "sex": category}, cuts={"age": [200]}, replicates=20, permutations=9, min_events=1)
    by_group = found.by_group[found.by_group["metric"] == "ibs"].set_index(["attribute", "level"])
    for empty in (("age", "> 200"), ("sex", "X")):
        assert by_group.loc[empty, "n"] == 0 and pd.isna(by_group.loc[empty, "value"]) and by_group.loc[empty, "reason"]
    # The only level of an attribute is the whole sample: there is no group to compare with.
    assert by_group.loc[("age", "<= 200"), "value"] == found["ibs"].value
    gaps = found.gaps[(found.gaps["metric"] == "ibs") & (found.gaps["comparison"] == "gap")].set_index("attribute")
    assert pd.isna(gaps.loc["age", "value"])
    two = [by_group.loc[("sex", sex), "value"] for sex in ("F", "M")]
    assert gaps.loc["sex", "value"] == pytest.approx(abs(two[0] - two[1]), abs=1e-15)
    assert "&gt; 200" in found.to_html() and json.loads(found.to_json())["n"] == len(c.time)


def test_frames_are_of_the_library_that_was_given(cohort):
    c = cohort
    groups = {"sex": c.sex, "age": c.age}
    of_pandas = evaluate(c, groups=pd.DataFrame(groups), cuts={"age": [60]}, replicates=30, permutations=9)
    of_polars = evaluate(c, groups=pl.DataFrame(groups), cuts={"age": [60]}, replicates=30, permutations=9)
    for name in ("overall", "by_group", "differences", "gaps"):
        assert isinstance(getattr(of_pandas, name), pd.DataFrame)
        assert isinstance(getattr(of_polars, name), pl.DataFrame)
    assert list(of_polars.by_group["value"]) == list(of_pandas.by_group["value"])
    for of_list in ([pl.Series("sex", c.sex)], [("sex", pl.Series(c.sex))], {"sex": pl.Series(c.sex)}):
        assert isinstance(evaluate(c, groups=of_list, metrics=["ibs"]).by_group, pl.DataFrame)
    assert isinstance(evaluate(c, groups=[pd.Series(c.sex, name="sex")], metrics=["ibs"]).by_group, pd.DataFrame)
    by_group = of_pandas.by_group
    assert set(by_group["level"]) == {"F", "M", "<= 60", "> 60"}
    n = by_group[(by_group.metric == "ibs") & (by_group.attribute == "age")].set_index("level")["n"]
    assert n["<= 60"] == int((c.age <= 60).sum())
    ibs = by_group[(by_group.metric == "ibs") & (by_group.attribute == "sex")]["value"]
    gaps = of_pandas.gaps
    gap = gaps[(gaps.metric == "ibs") & (gaps.attribute == "sex") & (gaps.comparison == "gap")].iloc[0]
    assert gap["value"] == pytest.approx(ibs.max() - ibs.min(), abs=1e-15)
    assert gap["lower"] <= gap["value"] and 0 < gap["p"] <= 1
    difference = of_pandas.differences.query("metric == 'ibs' and attribute == 'sex'").iloc[0]
    assert abs(difference["value"]) == pytest.approx(gap["value"], abs=1e-15)


def test_a_missing_value_is_in_no_group_and_levels_are_text(cohort):
    c = cohort
    site = [None if k % 10 == 0 else float(k % 2) for k in range(len(c.time))]
    found = evaluate(c, groups={"site": site}, metrics=["c-td"])
    assert list(found.by_group["level"]) == ["0", "1"]
    assert sum(found.by_group["n"]) == sum(value is not None for value in site)


def test_a_group_without_events_has_a_reason_and_no_number(cohort):
    c = cohort
    event = np.where(c.sex == "F", False, c.event)
    found = evaluate(c, event=event, groups={"sex": c.sex}, metrics=["c-td"])
    row = found.by_group.set_index("level").loc["F"]
    assert pd.isna(row["value"]) and "no" in row["reason"]


def test_subjects_are_drawn_as_a_whole(cohort):
    c = cohort
    subject = np.arange(len(c.time)) // 4
    alone = evaluate(c, metrics=["c-td"], replicates=100)
    together = evaluate(c, metrics=["c-td"], replicates=100, subject=subject)
    assert alone["c-td"].value == together["c-td"].value
    assert alone["c-td"].lower != together["c-td"].lower
    assert together.to_dict()["n-subjects"] == len(c.time) // 4


def test_the_training_sample_weighs(cohort):
    c = cohort
    later = (c.time * 1.5 + 0.5, c.event)
    assert evaluate(c)["ibs"].value != evaluate(c, train=later)["ibs"].value
    assert values(evaluate(c, train=c.y)) == values(evaluate(c, train=(c.time, c.event))) == values(evaluate(c))


def test_a_training_sample_in_another_unit_is_refused_and_one_without_events_warned_of(cohort):
    c = cohort
    with pytest.raises(fairtte.MetricError, match="look like days and years; divide the training times by 365.25"):
        evaluate(c, train=(c.time * 365.25, c.event))
    with pytest.warns(fairtte.FairtteWarning, match="The training sample has no event"):
        found = evaluate(c, train=(c.time, np.zeros_like(c.event)))
    assert "has no event" in found.notes[0]
    with pytest.warns(fairtte.FairtteWarning, match="all weights are 1"):
        evaluate(c, train=(c.time, np.ones_like(c.event)))


def test_threads_and_seeds(cohort):
    c = cohort
    one = evaluate(c, replicates=50, threads=1).to_json()
    assert one == evaluate(c, replicates=50, threads=3).to_json()
    assert one != evaluate(c, replicates=50, seed=1).to_json()


def test_report_json_and_notebook(cohort, tmp_path):
    c = cohort
    found = evaluate(c, groups={"sex": c.sex}, baseline={"age": c.age, "sex": c.sex}, name="mine <1>", replicates=20)
    page = found.report(tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") or page.startswith("<!doctype html>")
    assert "mine &lt;1&gt;" in page and "Cox (age, sex)" in page and "<script" not in page
    record = json.loads(found.to_json())
    assert record["n"] == len(c.time) and record["baseline"]["covariates"] == ["age", "sex"]
    assert "mine &lt;1&gt;" in found._repr_html_() and "C^td" in repr(found)


def test_a_matrix_read_without_a_copy_may_not_be_written_to_before_a_comparison(cohort):
    c = cohort
    other = evaluate(c, survival=c.survival**0.5 * 0.9)
    # Only C order in double precision is read where it lies.
    for read, is_copied in ((c.survival, False), (np.asfortranarray(c.survival), True), (c.survival.astype(np.float32), True)):
        survival = read.copy(order="K")
        found = evaluate(c, survival)
        before = found.compare(other).overall
        kept = survival[3, 2]
        survival[3, 2] *= 0.999
        if is_copied:
            assert found.compare(other).overall.equals(before)
            continue
        for first, second in ((found, other), (other, found)):
            with pytest.raises(fairtte.MetricError, match=r"survival was written to .* survival\.copy\(\)"):
                first.compare(second)
        survival[3, 2] = kept
        assert found.compare(other).overall.equals(before)


def test_a_matrix_that_is_written_to_during_its_evaluation_is_refused(monkeypatch):
    rng = np.random.default_rng(3)
    hazard, times = rng.uniform(0.2, 2.0, 4000), np.linspace(0.1, 3.0, 20)
    time, event = rng.exponential(1 / hazard), np.ones(4000, bool)
    survival = np.exp(-np.outer(hazard, times))

    @contextmanager
    def bar(what, is_shown):
        def show(done, total):
            survival[0] = 0.5

        # Called while the threads compute.
        yield show

    monkeypatch.setattr(fairtte.evaluation._inputs, "bar", bar)
    with pytest.raises(fairtte.MetricError, match="survival was written to"):
        fairtte.evaluate(survival, times, time, event, replicates=2000, permutations=0, metrics=["c-td", "auc-td"])


def test_memory_of_an_evaluation_lives_as_long_as_it(cohort):
    c = cohort
    found, other = evaluate(c, c.survival.copy()), evaluate(c, c.survival * 0.9)
    # The arrays have no other owner; what takes their place must not be read.
    rubbish = [np.full_like(c.survival, -7.0) for _ in range(50)]
    assert found.compare(other).overall.equals(evaluate(c).compare(other).overall)
    assert len(rubbish) == 50


def test_a_model_compared_with_itself_and_another(cohort, capsys):
    c = cohort
    groups = {"sex": c.sex}
    better = evaluate(c, groups=groups, replicates=100, name="a")
    worse = evaluate(c, survival=c.survival**0.5 * 0.9, groups=groups, replicates=100, name="b")
    itself = better.compare(better).overall
    assert set(itself["value"]) == {0.0}
    found = better.compare(worse).overall.set_index("metric")
    for metric in ("c-td", "ibs"):
        name = {"c-td": "c_td_antolini_strict"}.get(metric, metric)
        difference = better[metric].value - worse[metric].value
        assert found.loc[name, "value"] == pytest.approx(difference, abs=1e-12)
    assert (found.loc["ibs", "first"], found.loc["ibs", "second"]) == ("a", "b")
    assert list(better.compare(worse).gaps["attribute"].unique()) == ["sex"]
    pytest.importorskip("tqdm")
    better.compare(worse, progress=True)
    assert "100%" in capsys.readouterr().err
    with pytest.raises(fairtte.MetricError, match="other times or events"):
        better.compare(evaluate(c, time=c.time + 1, groups=groups, replicates=100))


def changed(array, place, value):
    found = array.copy()
    found[place] = value
    return found


def refusals(c):
    return [
        ({"survival": changed(c.survival, (3, 5), np.nan)}, r"survival\[3, 5\] is NaN, expected a number in \[0, 1\]"),
        ({"survival": changed(c.survival, (3, 5), 1.2)}, r"survival\[3, 5\] is 1.2"),
        ({"survival": c.survival[:, ::-1].copy()}, r"survival\[0, 1\] is .*never rise"),
        ({"survival": c.survival[:, 1:]}, "survival has 24 columns, expected 25"),
        ({"survival": c.survival[1:]}, "survival has 399 rows, expected 400"),
        ({"survival": c.survival[0]}, r"survival has the shape \(25,\), expected a matrix"),
        ({"survival": c.survival.astype(str)}, "survival has the type <U"),
        ({"times": c.times[::-1]}, r"times\[1\] is 3.83"),
        ({"times": None}, "times is None"),
        ({"time": changed(c.time, 7, np.nan)}, r"time\[7\] is NaN, expected a finite number >= 0"),
        ({"time": changed(c.time, 7, -1)}, r"time\[7\] is -1"),
        ({"time": None}, "time is None"),
        ({"event": c.event[1:]}, "time has 400 values and event 399"),
        ({"event": np.full(400, 2)}, r"event\[0\] is 2.0, expected 0 or 1"),
        ({"event": None}, "time is an array without an event beside it, expected event, or a structured array"),
        ({"groups": {"sex": c.sex[1:]}}, r'groups\["sex"\] has 399 values, expected 400'),
        ({"groups": c.sex}, "groups is a ndarray"),
        ({"groups": {"age": c.age}, "cuts": {"age": [60, 50]}}, r'cuts\["age"\]'),
        ({"groups": {"sex": c.sex}, "cuts": {"age": [60]}}, r'cuts\["age"\] is of no attribute'),
        ({"subject": c.sex[1:]}, "subject has 399 values"),
        ({"metrics": ["c"]}, 'metric "c" does not exist, expected one of: c-td'),
        ({"replicates": -1}, "replicates is -1, expected a whole number >= 0"),
        ({"level": 1.5}, "level"),
        ({"no_such": 1}, "no_such is no argument of evaluate, expected one of: survival"),
        ({"train": (c.time, c.event, c.sex)}, "train has 3 parts"),
        ({"train": (changed(c.time, 2, np.nan), c.event)}, r"train\[2\] is NaN, expected a finite number >= 0"),
        ({"intersections": True, "groups": {"sex": c.sex}}, "at least two"),
        ({"threads": 0}, "threads is 0"),
        ({"baseline": {"age": c.age[1:]}}, r'baseline\["age"\] has 399 values'),
    ]


def test_what_is_wrong_is_named_in_terms_of_the_arguments(cohort):
    for arguments, message in refusals(cohort):
        with pytest.raises(ValueError, match=message) as caught:
            evaluate(cohort, **arguments)
        assert isinstance(caught.value, fairtte.MetricError), arguments


def test_no_samples_is_an_error(cohort):
    with pytest.raises(fairtte.MetricError, match="no samples"):
        evaluate(cohort, survival=cohort.survival[:0], time=cohort.time[:0], event=cohort.event[:0])


def test_an_evaluation_shows_its_progress(cohort, capsys):
    pytest.importorskip("tqdm")
    evaluate(cohort, replicates=100, metrics=["ibs"], progress=True)
    assert "100%" in capsys.readouterr().err
    evaluate(cohort, replicates=100, metrics=["ibs"])
    assert capsys.readouterr().err == ""


def test_groups_of_a_table_of_pyarrow(cohort):
    pa = pytest.importorskip("pyarrow")
    site = [None if place % 7 == 0 else place % 2 for place in range(len(cohort.sex))]
    dose = np.where(np.arange(len(cohort.sex)) % 2, np.float32(0.1), np.float32(2.5))
    columns = {"sex": cohort.sex, "site": site, "dose": dose}
    table = pa.table({"sex": pa.array(cohort.sex).dictionary_encode(), "site": pa.array(site), "dose": pa.array(dose)})
    chosen = {"replicates": 0, "permutations": 0, "metrics": ["c-td"], "cuts": {"dose": [0.1]}}
    found = evaluate(cohort, groups=table, **chosen)
    assert found.to_dict()["metrics"] == evaluate(cohort, groups=columns, **chosen).to_dict()["metrics"]
    assert set(found.by_group["level"]) >= {"0", "1"}
    absent = pa.array([None if k == 0 else float(value) for k, value in enumerate(dose)])
    batch = pa.record_batch({"dose": absent})
    assert evaluate(cohort, groups=batch, **chosen).to_dict()["metrics"] == evaluate(
        cohort, groups={"dose": absent.to_pylist()}, **chosen
    ).to_dict()["metrics"]
    twice = pa.table([pa.array(cohort.sex), pa.array(cohort.sex)], names=["sex", "sex"])
    with pytest.raises(fairtte.MetricError, match='groups has several columns "sex", expected one'):
        evaluate(cohort, groups=twice, **chosen)


def test_figures(cohort):
    pytest.importorskip("matplotlib").use("Agg")
    found = evaluate(cohort, groups={"sex": cohort.sex}, replicates=20)
    assert len(found.plot.forest("ibs").get_yticklabels()) == 3
    # Short names as `found[..]` knows them.
    assert found.plot.forest("c-td").get_xlabel() == found.plot.forest("c_td").get_xlabel() == found.plot.forest().get_xlabel()
    assert len(found.plot.calibration().lines) >= 3
    assert len(found.plot.survival().lines) == 6
    with pytest.raises(fairtte.MetricError, match="not in this evaluation"):
        found.plot.forest("no")
