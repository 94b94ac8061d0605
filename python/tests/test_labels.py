"""Labels and masks: what they say of the rows is not ignored."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairtte
from fairtte import pycox, sksurv, stats
from fairtte.estimators import CoxPH, surv
from fairtte.survival_eval import SurvivalEvaluator

QUICK = {"replicates": 0, "permutations": 0, "metrics": ["ibs"]}


def evaluate(c, **changed):
    arguments = {"survival": c.survival, "times": c.times, "time": c.time, "event": c.event, **QUICK}
    return fairtte.evaluate(**(arguments | changed))


def test_masked_entries_of_a_column_are_missing(cohort):
    c = cohort
    mask = np.arange(400) < 50
    masked, missing = np.ma.array(c.sex, mask=mask), np.where(mask, None, c.sex)
    expected = evaluate(c, groups={"sex": missing})
    found = evaluate(c, groups={"sex": masked})
    assert found.by_group.equals(expected.by_group) and found.by_group["n"].sum() == 350
    ages = evaluate(c, groups={"age": np.ma.array(c.age, mask=mask)}, cuts={"age": [60]})
    assert ages.by_group["n"].sum() == 350
    entries = [np.ma.masked if hidden else sex for hidden, sex in zip(mask, c.sex, strict=True)]
    assert evaluate(c, groups={"sex": entries}).by_group["n"].sum() == 350
    with pytest.raises(fairtte.MetricError, match=r"subject\[0\] is missing"):
        evaluate(c, subject=np.ma.array(np.arange(400), mask=mask))


def test_masked_arrays_of_numbers_are_refused(cohort):
    c = cohort
    hidden = np.ma.array(c.survival, mask=c.survival > 0.9)
    with pytest.raises(fairtte.MetricError, match="survival is a masked array"):
        evaluate(c, survival=hidden)
    with pytest.raises(fairtte.MetricError, match="survival is a masked array"):
        evaluate(c, survival=list(hidden))
    with pytest.raises(fairtte.MetricError, match="X is a masked array"):
        CoxPH().fit(np.ma.array(c.risk[:, None], mask=c.risk[:, None] > 1), c.y)


def test_the_same_labels_in_another_order_are_refused(cohort):
    c = cohort
    frame = pd.DataFrame({"time": c.time, "event": c.event, "sex": c.sex})
    other = frame.sample(frac=1, random_state=1)
    curves = pd.DataFrame(c.survival.T, index=c.times)
    for arguments, message in [
        ({"survival": curves[other.index], "times": None, "time": frame["time"]}, "time.index has the same labels .* survival.columns"),
        ({"survival": pd.DataFrame(c.survival), "time": other["time"]}, "time.index has the same labels in another order"),
        ({"time": frame["time"], "event": other["event"]}, "event.index has the same labels in another order than time.index"),
        ({"time": frame["time"], "groups": other[["sex"]]}, "groups.index has the same labels"),
        ({"time": frame["time"], "groups": {"sex": other["sex"]}}, r'groups\["sex"\].index has the same labels'),
        ({"time": frame["time"], "groups": [("sex", other["sex"])]}, r'groups\["sex"\].index has the same labels'),
        ({"time": frame["time"], "baseline": other[["sex"]]}, "baseline.index has the same labels"),
        ({"train": (frame["time"], other["event"])}, r'train\["event"\].index has the same labels'),
        ({"time": frame["time"].set_axis(range(9, 409)), "event": frame["event"].set_axis(range(10, 410))}, "event.index has other labels"),
    ]:
        with pytest.raises(fairtte.MetricError, match=message):
            evaluate(c, **arguments)
    with pytest.raises(fairtte.MetricError, match=r"label.index has .*: row 0 is \d+ in one and 0 in the other"):
        fairtte.evaluate_binary(pd.Series(1 - c.survival[:, 5]), other["event"], replicates=0)
    with pytest.raises(fairtte.MetricError, match="time.index"):
        fairtte.bias_sources(pd.DataFrame(c.survival), other["time"], frame["event"], groups={"sex": c.sex})
    with pytest.raises(fairtte.MetricError, match="durations.index .* surv.columns"):
        pycox.EvalSurv(curves, other["time"], other["event"])
    with pytest.raises(fairtte.MetricError, match="event_times.index"):
        SurvivalEvaluator(pd.DataFrame(c.survival), c.times, other["time"], other["event"])
    with pytest.raises(fairtte.MetricError, match=r'y\["time"\].index'):
        CoxPH().fit(pd.DataFrame({"risk": c.risk}), (other["time"], other["event"]))


def test_labels_are_compared_wherever_columns_come_apart(cohort):
    c = cohort
    frame = pd.DataFrame({"time": c.time, "event": c.event, "risk": c.risk, "person": np.arange(400) // 2})
    other = frame.sample(frac=1, random_state=1)
    model = CoxPH().fit(frame[["risk"]], c.y)
    evaluator = (c.survival, c.times, c.time, c.event)
    good = (frame["time"], frame["event"])
    for call, message in [
        (lambda: surv(frame["time"], other["event"]), "event.index has the same labels in another order than time.index"),
        (lambda: evaluate(c, train=good, baseline={"risk": c.risk}, baseline_train=other[["risk"]]), "baseline_train.index has the same"),
        (lambda: fairtte.evaluate_binary(1 - c.survival[:, 5], c.event, validation=(frame["risk"], other["event"])), r"validation\[\"event\"\]"),
        (lambda: CoxPH().fit(frame[["risk"]], c.y, subject=other["person"]), "subject.index has the same labels"),
        (lambda: model.score(frame[["risk"]], (other["time"], other["event"])), r'y\["time"\].index has the same labels'),
        (lambda: sksurv.concordance_index_censored(frame["event"], other["time"], c.risk), "event_time.index has the same labels"),
        (lambda: sksurv.concordance_index_censored(c.event, frame["time"], other["risk"]), "estimate.index has the same labels"),
        (lambda: stats.wilcoxon(frame["risk"], other["time"]), "second.index has the same labels in another order than first.index"),
        (lambda: SurvivalEvaluator(*evaluator, frame["time"], other["event"]), "train_event_indicators.index has the same labels"),
    ]:
        with pytest.raises(fairtte.MetricError, match=message):
            call()
    # Two selections of one table have no label in common, in whatever order the table is.
    assert stats.wilcoxon(frame["risk"][1::2], frame["time"][::2]).p_value < 1
    unnamed = frame["time"].rename(None)
    with pytest.raises(fairtte.MetricError, match=r"train\[1\].index has the same labels in another order than train\[0\].index"):
        evaluate(c, train=(unnamed, other["event"].rename(None)))
    assert list(surv(frame["time"], frame["event"])) == list(c.y)


def test_labels_of_several_levels_and_missing_ones_are_compared(cohort):
    c = cohort
    several = pd.MultiIndex.from_arrays([np.arange(400) // 2, np.arange(400) % 2])
    missing = pd.Index([pd.NA, *range(1, 400)], dtype=object)
    plain = evaluate(c)["ibs"].value
    for index in (several, missing, pd.Index([np.nan, *range(1, 400)]), pd.Index([None, *map(str, range(1, 400))], dtype=object)):
        time, event = pd.Series(c.time, index=index), pd.Series(c.event, index=index.copy())
        assert evaluate(c, time=time, event=event)["ibs"].value == plain
        assert evaluate(c, time=time, event=pd.Series(c.event))["ibs"].value == plain
        with pytest.raises(fairtte.MetricError, match="event.index has the same labels in another order than time.index"):
            evaluate(c, time=time, event=event[::-1])
    # Missing is missing, however it is written.
    assert evaluate(c, time=pd.Series(c.time, index=missing), event=pd.Series(c.event, index=[None, *range(1, 400)]))["ibs"].value == plain
    renamed = several.set_levels([np.arange(200) + 1, [0, 1]])
    with pytest.raises(fairtte.MetricError, match=r"event.index has other labels than time.index: row 0 is \(1, 0\) in one and \(0, 0\)"):
        evaluate(c, time=pd.Series(c.time, index=several), event=pd.Series(c.event, index=renamed))
    nullable = pd.Index([pd.NA, *range(1, 400)], dtype="Int64")
    with pytest.raises(fairtte.MetricError, match="has the same labels in another order"):
        evaluate(c, time=pd.Series(c.time, index=nullable), event=pd.Series(c.event, index=nullable[::-1]))


def test_rows_are_read_by_position_where_labels_say_nothing(cohort):
    c = cohort
    expected = evaluate(c)["ibs"].value
    some = pd.DataFrame({"time": c.time, "event": c.event, "sex": c.sex}, index=range(1000, 1400))
    assert evaluate(c, time=some["time"], event=some["event"], groups=some[["sex"]])["ibs"].value == expected
    # The numbers of the rows are the labels of whoever gives none.
    assert evaluate(c, survival=pd.DataFrame(c.survival), time=some["time"], event=some["event"])["ibs"].value == expected
    # The values of an index are no labels.
    assert evaluate(c, time=pd.Index(c.time), event=some["event"])["ibs"].value == expected
    mixed = evaluate(c, time=pl.Series(c.time), event=some["event"], subject=pd.Series(range(400)))
    assert mixed["ibs"].value == expected
    # A model of lifelines has the labels of its samples as columns.
    labelled = pd.DataFrame(c.survival.T, index=c.times, columns=some.index)
    assert evaluate(c, survival=labelled, times=None, time=some["time"], event=some["event"])["ibs"].value == expected


def test_columns_of_other_times_are_refused(cohort):
    c = cohort
    with pytest.raises(fairtte.MetricError, match="survival.columns are other times than times"):
        evaluate(c, survival=pd.DataFrame(c.survival, columns=c.times[::-1]))
    assert evaluate(c, survival=pd.DataFrame(c.survival, columns=c.times))["ibs"].value == evaluate(c)["ibs"].value


def test_levels_keep_the_order_that_they_were_given(cohort):
    c = cohort
    expected = evaluate(c, groups={"sex": c.sex}).by_group.set_index("level")["value"]
    for column in [
        pd.Categorical(c.sex, categories=["M", "F"], ordered=True),
        pd.Series(pd.Categorical(c.sex, categories=["M", "F"])),
        pl.Series(c.sex).cast(pl.Enum(["M", "F"])),
    ]:
        found = evaluate(c, groups={"sex": column}).by_group
        assert list(found["level"]) == ["M", "F"]
        assert list(found["value"]) == [expected["M"], expected["F"]]


def test_an_attribute_of_many_values_is_refused(cohort):
    c = cohort
    message = r'groups\["age"\] has 40 different values, expected at most 20: cut .*cuts=\{"age": \[60\]\}'
    with pytest.raises(fairtte.MetricError, match=message):
        evaluate(c, groups={"age": c.age})
    twenty = evaluate(c, groups={"age": c.age % 20})
    assert len(twenty.by_group) == 20
    declared = evaluate(c, groups={"age": pd.Categorical(c.age)})
    assert len(declared.by_group) == 40
    with pytest.raises(fairtte.MetricError, match=r"has 400 different values, expected at most 100"):
        evaluate(c, groups={"risk": pd.Categorical(c.risk)})
