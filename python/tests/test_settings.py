"""Settings and arguments that are wrong are named as the caller calls them."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairtte
from fairtte import _fairtte, _settings, pycox
from fairtte.estimators import CoxPH, RandomSurvivalForest
from fairtte.survival_eval import SurvivalEvaluator

QUICK = {"replicates": 0, "permutations": 0, "metrics": ["ibs"]}


def evaluate(c, **changed):
    arguments = {"survival": c.survival, "times": c.times, "time": c.time, "event": c.event, **QUICK}
    return fairtte.evaluate(**(arguments | changed))


WRONG = [
    ({"replicates": 10.5}, "replicates is 10.5, expected a whole number >= 0"),
    ({"replicates": None}, "replicates is null, expected a whole number >= 0"),
    ({"seed": -1}, "seed is -1, expected a whole number >= 0"),
    ({"level": "0.9"}, 'level is "0.9", expected a number'),
    ({"level": 95}, "level is 95, expected a number between 0 and 1"),
    ({"level": np.nan}, "level is nan, expected finite numbers"),
    ({"thresholds": [np.nan]}, r"thresholds is \[nan\], expected finite numbers"),
    ({"thresholds": 0.2}, "thresholds is 0.2, expected a list"),
    ({"horizon": "a"}, "horizon is 'a', expected a number"),
    ({"horizon": [1, 2]}, r"horizon is \[1, 2\], expected a number"),
    ({"horizon": np.nan}, "horizon is nan, expected finite numbers"),
    ({"eval_times": [2, 1]}, r"eval_times\[1\] is 1, expected finite times >= 0 in strictly increasing order"),
    ({"metrics": 3}, "metrics is 3, expected a list of names"),
    ({"interval": "foo"}, 'interval is "foo", expected one of "percentile", "basic", "bca", "studentised"'),
    ({"min_events": 2.5}, "min_events is 2.5, expected a whole number >= 0"),
    ({"reference": "M"}, 'reference is "M", expected a dict'),
    ({"reading": {"refined": 3}}, "reading is .*, expected a dict of its settings"),
    ({"interval": object()}, "interval is a object, expected a number, text"),
    ({"threads": -1}, "threads is -1, expected a whole number from 1 to 4096"),
    ({"threads": 1.5}, "threads is 1.5, expected a whole number"),
    ({"time_unit": None}, "time_unit is None, expected text"),
    ({"name": 3}, "name is 3, expected text"),
    ({"name": np.int64(3)}, "name is 3, expected text"),
    ({"subject": "person"}, "subject is 'person', expected a column"),
    ({"groups": {"sex": "F"}}, r'sex is \'F\', expected a column'),
    ({"cuts": [60]}, r'cuts is \[60\], expected a dict such as \{"age": \[60\]\}'),
    ({"group": {}}, "group is no argument of evaluate, expected groups$"),
    ({"bootstrap": 100}, "bootstrap is no argument of evaluate, expected replicates$"),
    ({"alpha": 0.05}, "alpha is no argument of evaluate, expected level$"),
    ({"n-times": 5}, "n-times is no argument of evaluate, expected n_times$"),
    ({"cause": 1}, "expected it of the program: fairtte evaluate --cause"),
    ({"sensitivity": {}}, "expected it of the program: fairtte evaluate"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_wrong_setting_is_named_with_its_value(cohort, arguments, message):
    with pytest.raises(fairtte.MetricError, match=message) as caught:
        evaluate(cohort, **arguments)
    assert not re.search("usize|u64|f64|struct|`", str(caught.value))



def test_what_is_missing_is_said_with_its_place(cohort):
    c = cohort
    without = pd.Series(c.event, dtype="boolean")
    without[3] = pd.NA
    curves = pd.DataFrame(c.survival, dtype=object)
    curves.iloc[3, 4] = pd.NA
    for arguments, message in [
        ({"event": without}, r"event\[3\] is missing, expected 0 or 1"),
        ({"event": np.where(np.arange(400) == 3, np.nan, c.event)}, r"event\[3\] is missing"),
        ({"event": ["yes"] + [True] * 399}, r"event has the type"),
        ({"survival": curves}, r"survival\[3, 4\] is missing, expected a number"),
        ({"time": [pd.NA, *c.time[1:]]}, r"time\[0\] is missing, expected a number"),
        ({"time": [{}, *c.time[1:]]}, r"time\[0\] is \{\}, expected a number"),
        ({"train": pd.DataFrame({"time": c.time, "event": c.event})}, r'train is a DataFrame, expected \(time, event\), such as'),
        ({"survival": pl.DataFrame(c.survival).lazy()}, r"survival is a LazyFrame, expected its collect\(\)"),
        ({"train": c.time}, r"train is no pair of arrays, expected \(time, event\)"),
        ({"time": pd.DataFrame({"time": c.time}), "event": c.event}, r"time is a DataFrame of the shape \(400, 1\), expected a vector"),
    ]:
        with pytest.raises(fairtte.MetricError, match=message):
            evaluate(c, **arguments)
    assert evaluate(c, train=[c.time, c.event])["ibs"].value == evaluate(c)["ibs"].value


def test_several_causes_are_sent_to_the_program(cohort):
    c = cohort
    for arguments in ({"survival": c.survival[None]}, {"event": np.where(c.event, np.arange(400) % 3, 0)}):
        with pytest.raises(fairtte.MetricError, match="fairtte evaluate --cause"):
            evaluate(c, **arguments)
    with pytest.raises(fairtte.MetricError) as caught:
        evaluate(c, event=np.where(c.event, 1, -1))
    assert "--cause" not in str(caught.value)


def test_the_names_of_settings_are_those_of_the_engine(cohort):
    c = cohort
    with pytest.raises(fairtte.MetricError) as caught:
        _fairtte.evaluate(c.survival, c.times, c.time, c.event, [], False, None, None, '{"no-such": 1}')
    engine = set(str(caught.value).split("expected one of ")[1].split(", "))
    own = {"replicates", "level", "seed", "metrics", "horizon", "times"}
    assert set(_settings.EVALUATION) == engine - own - {"sensitivity"}


def test_numbers_of_numpy_are_settings(cohort):
    c = cohort
    settings = {"replicates": 30, "level": 0.9, "thresholds": [0.2], "horizon": 1.1, "seed": 3, "groups": {"sex": c.sex}}
    of_numpy = {"replicates": np.int64(30), "level": np.float32(0.9), "thresholds": np.array([0.2], dtype=np.float32)}
    of_numpy |= {"horizon": np.float32(1.1), "seed": np.uint8(3)}
    assert evaluate(c, **(settings | of_numpy)).to_json() == evaluate(c, **settings).to_json()
    runs = {"run": ["a", "b", "c"], "c": np.array([0.8, 0.78, 0.6], dtype=np.float32), "gap": [0.1, 0.02, 0.0]}
    fairness = {"by": "fairness", "gap": "gap", "name": "run", "tolerated_loss": np.float32(0.05), "no_skill": np.float64(0.5)}
    chosen = fairtte.select(runs, "c", base_utility=np.float32(0.8), **fairness)
    assert chosen.chosen == "a" == fairtte.select(runs, "c", base_utility=0.8, **fairness).chosen
    X, y = c.risk[:, None], c.y
    forest = {"n_estimators": np.int64(3), "min_samples_leaf": np.int32(5), "sampling": {"subsample": np.float32(0.5)}}
    found = RandomSurvivalForest(**forest).fit(X, y)
    same = RandomSurvivalForest(n_estimators=3, min_samples_leaf=5, sampling={"subsample": 0.5}).fit(X, y)
    assert list(found.predict(X)) == list(same.predict(X))


def test_other_settings_that_are_wrong_are_named(cohort):
    c = cohort
    evaluator = SurvivalEvaluator(c.survival, c.times, c.time, c.event)
    runs = {"c": [0.8, 0.7], "gap": [0.1, 0.0], "word": ["a", "b"]}
    for call, message in [
        (lambda: evaluator.d_calibration(-1), "num_bins is -1, expected a whole number >= 0"),
        (lambda: evaluator.d_calibration(2.9), "num_bins is 2.9, expected a whole number >= 0"),
        (lambda: evaluator.one_calibration(num_bins=2.9), "num_bins is 2.9, expected a whole number >= 0"),
        (lambda: evaluator.integrated_brier_score(num_points=2.5), "num_points is 2.5, expected a whole number >= 0"),
        (lambda: evaluator.auc("a"), "target_time is 'a', expected a number"),
        (lambda: fairtte.evaluate_binary([0.2, 0.6], [0, 1], time_unit=None), "time_unit is None, expected text"),
        (lambda: fairtte.evaluate_binary([0.2, 0.6], [0, 1], name=None), "name is None, expected text"),
        (lambda: fairtte.select(runs, "c", higher_is_better=0), "higher_is_better is 0, expected True or False"),
        (lambda: fairtte.select(runs, "c", higher_is_better="no"), "higher_is_better is 'no', expected True or False"),
        (lambda: fairtte.select(runs, "c", by="fairness", gap="gap", base_utility="a"), "base_utility is 'a', expected a number"),
        (lambda: fairtte.select(runs, "c", by="fairness", gap="gap", base_utility=np.nan), "base_utility is nan, expected finite"),
        (lambda: fairtte.select(runs, "word"), r'runs\["word"\]\[0\] is \'a\', expected a number'),
        (lambda: fairtte.select(runs, "c", base_utility=0.8), 'base_utility is 0.8 with by="overall", which does not read it'),
        (lambda: fairtte.select(runs, "c", by="dto", no_skill=np.float32(0.5)), 'no_skill is 0.5 with by="dto", which does not read it'),
        (lambda: evaluator.brier_score(0.5, IPCW_weighted=0), "IPCW_weighted is 0, expected True or False"),
        (lambda: evaluator.one_calibration(0.5, adjust_variance=1), "adjust_variance is 1, expected True or False"),
        (lambda: evaluate(c, groups={"sex": c.sex}, intersections=1), "intersections is 1, expected True or False"),
        (lambda: fairtte.evaluate_binary([0.2, 0.6], [0, 1], intersections="no"), "intersections is 'no', expected True or False"),
        (lambda: fairtte.bias_sources(c.survival, c.y, groups={"sex": c.sex}, intersections=1), "intersections is 1, expected True"),
        (lambda: CoxPH().fit(c.risk[:, None], c.y).summary("arrow"), "library is 'arrow', expected \"pandas\" or \"polars\""),
    ]:
        with pytest.raises(fairtte.MetricError, match=message):
            call()
    assert evaluator.d_calibration(np.int64(4))[0] == evaluator.d_calibration(4)[0]


def test_settings_of_a_class_are_named_too(cohort):
    c = cohort
    probability = 1 - c.survival[:, 5]
    for arguments, message in [
        ({"permutations": -1}, "permutations is -1, expected a whole number"),
        ({"threshold": np.nan}, "threshold is nan, expected finite numbers"),
        ({"horizon": "a", "time": c.time, "event": c.event, "label": None}, "horizon is 'a', expected a number"),
        ({"treshold": 0.3}, "treshold is no argument of evaluate_binary, expected threshold$"),
        ({"metrics": []}, r"metrics is \[\], expected at least one name"),
        ({"metrics": ["auc", "fnr", "auc"]}, r"metrics is \['auc', 'fnr', 'auc'\], expected auc once"),
    ]:
        with pytest.raises(fairtte.MetricError, match=message):
            fairtte.evaluate_binary(**({"probability": probability, "label": c.event, "replicates": 0} | arguments))
    with pytest.raises(fairtte.MetricError, match="permutations is -1"):
        fairtte.bias_sources(c.survival, c.time, c.event, groups={"sex": c.sex}, permutations=-1)


def test_more_columns_than_there_are_cannot_be_drawn(cohort):
    with pytest.raises(fairtte.MetricError, match="max_features is 99, expected at most 1, the columns of X"):
        RandomSurvivalForest(n_estimators=2, max_features=99).fit(cohort.risk[:, None], cohort.y)


def test_arguments_of_other_packages_keep_their_names(cohort):
    c = cohort
    curves = pd.DataFrame(c.survival.T, index=c.times)
    with pytest.raises(fairtte.MetricError, match=r"time_grid\[1\] is 0.5"):
        pycox.EvalSurv(curves, c.time, c.event, "km").brier_score([1.0, 0.5])
    with pytest.raises(fairtte.MetricError, match=r"surv.index\[1\] is"):
        pycox.EvalSurv(curves[::-1], c.time, c.event, "km").brier_score([0.5, 1.0])
    with pytest.raises(fairtte.MetricError, match="surv is a ndarray, expected a pandas frame with times as index"):
        pycox.EvalSurv(c.survival, c.time, c.event)
    evaluator = SurvivalEvaluator(c.survival, c.times, c.time, c.event, c.time, c.event)
    with pytest.raises(fairtte.MetricError, match=r"target_times\[1\] is 0.5"):
        evaluator.brier_score_multiple_points([1.0, 0.5])
    with pytest.raises(fairtte.MetricError, match=r"target_times\[1\] is 0.5"):
        evaluator.predict_multi_probabilities_from_curve([1.0, 0.5])
