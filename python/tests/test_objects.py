"""What an evaluation is as an object: copies, pickles, names, frames of one type, notes."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairtte
import fairtte.data
from conftest import Cohort
from fairtte.estimators import CoxElasticNet, CoxPH


def evaluate(c, **changed):
    arguments = {"survival": c.survival, "times": c.times, "time": c.time, "event": c.event, "replicates": 20, "permutations": 9}
    return fairtte.evaluate(**(arguments | changed))


def of_class(c, **changed):
    arguments = {"probability": 1 - c.survival[:, 5], "label": c.event, "groups": {"sex": c.sex}, "replicates": 20, "permutations": 9}
    return fairtte.evaluate_binary(**(arguments | changed))


def test_an_evaluation_can_be_sent_and_compared_again(cohort):
    c = cohort
    train = (c.time[:300], c.event[:300])
    groups = {"sex": np.where(np.arange(400) < 5, None, c.sex), "old": c.age > 60}
    settings = {"groups": groups, "intersections": True, "train": train, "subject": np.arange(400) // 2, "horizon": 1.1, "name": "a"}
    found, other = evaluate(c, **settings), evaluate(c, **settings, survival=c.survival**0.9, times=c.times)
    sent = pickle.loads(pickle.dumps(found))
    assert sent.to_json() == found.to_json() and sent.to_html() == found.to_html() and sent.notes == found.notes
    assert (sent.name, repr(sent)) == ("a", repr(found))
    expected = found.compare(other).gaps
    for first, second in ((sent, other), (found, pickle.loads(pickle.dumps(other)))):
        assert first.compare(second).gaps.equals(expected)
    for copied in (copy.copy(found), copy.deepcopy(found)):
        assert copied.compare(other).gaps.equals(expected) and copied is not found
        copied.name = "b"
    assert found.name == "a"


def test_an_evaluation_of_a_class_can_be_sent_and_compared_again(cohort):
    c = cohort
    half = (1 - c.survival[200:, 5], c.event[200:])
    settings = {"validation": half, "metrics": ["auc", "fnr"]}
    found, other = of_class(c, **settings), of_class(c, **settings, probability=(1 - c.survival[:, 5]) ** 0.9)
    sent = pickle.loads(pickle.dumps(found))
    assert sent.to_json() == found.to_json() and sent.to_html() == found.to_html() and sent.threshold == found.threshold
    assert sent.compare(other).overall.equals(found.compare(other).overall)
    assert copy.deepcopy(found).compare(other).overall.equals(found.compare(other).overall)


def test_what_cannot_be_sent_says_what_can(cohort, tmp_path):
    c = cohort
    with_baseline = evaluate(c, baseline={"age": c.age})
    with pytest.raises(fairtte.MetricError, match=r"an evaluation with a baseline cannot be pickled, expected its to_dict\(\)"):
        pickle.dumps(with_baseline)
    assert copy.deepcopy(with_baseline).to_html() == with_baseline.to_html()
    path = tmp_path / "cohort.csv"
    path.write_text("\n".join(["person,time,event,sex", *(f"{k},{k % 7 + 1},{k % 2},{'FM'[k % 2]}" for k in range(30))]))
    samples = fairtte.data.table(path, subject="person", attributes="sex")
    assert samples.attributes == ["sex"] and copy.deepcopy(samples).n == 30
    with pytest.raises(TypeError, match=r"a Cohort cannot be pickled, expected its to_pandas\(\)"):
        pickle.dumps(samples)
    wrong = [({"seed": -1}, "seed is -1"), ({"seed": 1.5}, "seed is 1.5"), ({"fractions": (0.5, 0.5)}, "expected three shares")]
    for arguments, message in wrong:
        with pytest.raises(fairtte.DataError, match=message):
            samples.split(**arguments)


def test_names_of_metrics(cohort):
    found = evaluate(cohort, metrics=["c-td", "ibs"], thresholds=[0.3, 0.4])
    assert list(found)[:2] == ["c_td_antolini_strict", "ibs"]
    assert "ibs" in found and "c-td" in found and "no" not in found and 0 not in found
    for name, message in [
        ("net-benefit", r"expected one of: net-benefit:0.3, net-benefit:0.4'"),
        ("ibbs", "expected one of: ibs'"),
        (0, "0 is not a metric of this evaluation"),
    ]:
        with pytest.raises(KeyError, match=message):
            found[name]


def test_the_table_of_a_notebook_has_a_head(cohort):
    table = evaluate(cohort, groups={"sex": cohort.sex, "<b>": cohort.age > 60}, metrics=["ibs"])._repr_html_()
    assert "<tr><th>metric</th><th>all samples</th><th>gap of sex</th><th>gap of &lt;b&gt;</th></tr><tr><td>IBS</td><td>" in table


def test_a_comparison_shows_its_differences(cohort):
    c = cohort
    found = evaluate(c, metrics=["c-td"], name="a").compare(evaluate(c, metrics=["c-td"], survival=c.survival**0.9, name="b"))
    assert repr(found).splitlines() == ["Comparison: a minus b", "c_td_antolini_strict     0 (0 to 0), p = 1"]
    with pytest.raises(fairtte.MetricError, match="other is a NoneType, expected an Evaluation"):
        evaluate(c).compare(None)
    with pytest.raises(fairtte.MetricError, match="names is 'AB', expected two names"):
        evaluate(c).compare(evaluate(c), names="AB")


def test_evaluations_with_other_training_samples_are_not_compared(cohort):
    c = cohort
    own, same, other = (evaluate(c, train=train) for train in (None, (c.time, c.event), (c.time[:200], c.event[:200])))
    assert set(own.compare(same).overall["value"]) == {0.0}
    with pytest.raises(fairtte.MetricError, match=r"have other training samples \(train\), expected the same"):
        own.compare(other)


def test_runs_are_selected_on_the_same_samples(cohort):
    c, d = cohort, Cohort(seed=2)
    groups = {"sex": c.sex}
    first, second = evaluate(c, groups=groups), evaluate(c, survival=c.survival**0.5, groups=groups)
    chosen = fairtte.select({"a": first, "b": second}, metric="ibs", by="minimax")
    assert chosen.chosen == "a" and not chosen.table["reason"].astype(str).str.contains("[{]").any()
    elsewhere = evaluate(d, groups={"sex": d.sex})
    with pytest.raises(fairtte.MetricError, match='"b" has other times, events or groups than "a"'):
        fairtte.select({"a": first, "b": elsewhere}, metric="ibs")
    exchanged = evaluate(c, groups={"sex": c.sex[::-1]})
    with pytest.raises(fairtte.MetricError, match="has other times, events or groups"):
        fairtte.select({"a": first, "b": exchanged}, metric="ibs", by="minimax")
    classes = {"good": of_class(c), "bad": of_class(c, probability=np.full(400, 0.5))}
    assert fairtte.select(classes, metric="auc", by="minimax").chosen == "good"
    with pytest.raises(fairtte.MetricError, match='"b" is a ClassEvaluation, expected an Evaluation'):
        fairtte.select({"a": first, "b": classes["good"]}, metric="ibs")


def test_columns_have_one_type(cohort, monkeypatch):
    c = cohort
    for make, kind in ((pd.DataFrame, pd), (pl.DataFrame, pl)):
        groups = make({"sex": c.sex})
        quick = {"groups": groups, "metrics": ["c-td", "ibs"], "replicates": 0, "permutations": 0}
        small = make({"sex": np.where(np.arange(400) < 3, "X", c.sex)})
        without, undefined = evaluate(c, **quick), evaluate(c, **(quick | {"groups": small}))
        found = evaluate(c, **(quick | {"replicates": 20, "permutations": 9}))
        for name in ("overall", "by_group", "differences", "gaps"):
            frames = [getattr(evaluation, name) for evaluation in (without, undefined, found)]
            types = [list(map(str, frame.dtypes)) for frame in frames]
            assert types[0] == types[1] == types[2], name
            assert len(kind.concat(frames)) == sum(map(len, frames))
    assert evaluate(c, replicates=0).overall["lower"].dtype == np.float64
    fitted = CoxPH().fit(c.risk[:, None], c.y)
    numbers = ["coefficient", "standard_error", "hazard_ratio", "mean"]
    # A ridge has standard errors, an elastic net none.
    net = CoxElasticNet(folds=3, lambdas=5).fit(c.risk[:, None], c.y)
    assert [str(kind) for kind in fitted.summary().dtypes] == [str(kind) for kind in net.summary().dtypes]
    assert set(map(str, fitted.summary()[numbers].dtypes)) == {"float64"}
    assert set(net.summary("polars").select(numbers).dtypes) == {pl.Float64} and net.summary("polars")["name"].dtype == pl.String
    without = fairtte.select({"run": ["a"], "c": [None]}, "c", name="run").table
    some = fairtte.select({"run": ["a", "b"], "c": [1, 2]}, "c", name="run").table
    assert list(map(str, without.dtypes)) == list(map(str, some.dtypes))
    # Without groups the frames have no rows, but types.
    none, one = evaluate(c, replicates=0).by_group, evaluate(c, replicates=0, groups={"sex": c.sex}).by_group
    assert len(none) == 0 and list(map(str, none.dtypes)) == list(map(str, one.dtypes)) and none["n"].dtype == np.int64
    monkeypatch.setattr(fairtte.evaluation._inputs, "_frames", lambda kind: ("", None))
    bare = evaluate(c, replicates=0).overall
    assert bare["value"].dtype == bare["lower"].dtype == np.float64 and bare["n"].dtype.kind == "i" and bare["metric"].dtype == object


def test_any_argument_of_polars_gives_frames_of_polars(cohort):
    c = cohort
    train = (pl.Series(c.time), pl.Series(c.event))
    for changed in (
        {"subject": pl.Series(np.arange(400))}, {"train": train}, {"train": list(train)}, {"times": pl.Series(c.times)},
        {"baseline": pl.DataFrame({"age": c.age})},
    ):  # fmt: skip
        assert isinstance(evaluate(c, replicates=0, permutations=0, metrics=["ibs"], **changed).overall, pl.DataFrame)
    by_class = of_class(c, replicates=0, permutations=0, validation=(pl.Series(1 - c.survival[:, 5]), c.event))
    assert isinstance(by_class.overall, pl.DataFrame)


def test_levels_have_one_type_whatever_is_missing(tmp_path):
    path = tmp_path / "cohort.csv"
    path.write_text("\n".join(["person,time,event,sex", *(f"{k},{k % 7 + 1},{k % 2},{'FM'[k % 2] if k else ''}" for k in range(30))]))
    samples = fairtte.data.table(path, subject="person", attributes="sex")
    for library in ("pandas", "polars"):
        whole, few = samples.groups(library=library), samples.select([0, 1]).groups(library=library)
        assert list(map(str, whole.dtypes)) == list(map(str, few.dtypes))


def test_what_the_page_says_is_a_list_and_warnings(cohort):
    c = cohort
    with pytest.warns(fairtte.FairtteWarning, match="All 400 curves of the evaluated sample are equal") as caught:
        equal = evaluate(c, survival=np.tile(c.survival[0], (400, 1)))
    assert [str(warning.message) for warning in caught] == equal.notes[:1] and caught[0].filename == __file__
    page = equal.to_html()
    assert "All 400 curves of the evaluated sample are equal" in page and "There is no train" in equal.notes[1]
    with pytest.warns(fairtte.FairtteWarning, match="not shown to be better than 0.5"):
        guessed = evaluate(c, survival=c.survival[np.random.default_rng(0).permutation(400)])
    assert "not shown to be better than 0.5" in guessed.notes[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        good = evaluate(c, train=(c.time, c.event), metrics=["ibs"])
    assert not any("train" in note for note in good.notes)
    late = evaluate(c, time=np.where(np.arange(400) < 40, 9.0, c.time))
    assert any("40" in note for note in late.notes)
    with pytest.warns(fairtte.FairtteWarning, match="in no comparison: sex = X"):
        small = of_class(c, groups={"sex": np.where(np.arange(400) < 3, "X", c.sex)})
    assert any("sex = X" in note for note in small.notes)
