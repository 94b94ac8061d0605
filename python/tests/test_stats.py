"""Tests of several models, the choice of a run and the sources of bias.

Recorded from SciPy 1.17.1: friedmanchisquare, f.sf, rankdata, studentized_range with infinite degrees of freedom, wilcoxon.
"""

import numpy as np
import pytest

import fairtte
from fairtte import stats
from conftest import Cohort

VALUES = [
    [-0.8, -1.0, 0.4, 1.6], [1.1, 0.4, 0.0, 0.4], [0.7, 1.9, 0.9, -0.0], [-1.0, 1.9, 0.8, -0.5], [-0.1, -0.9, -0.0, 0.7],
    [-0.7, 0.9, 0.5, 0.6], [0.4, 1.1, -1.0, 0.9], [-1.0, 0.1, -0.7, 1.2], [-0.0, -0.0, -0.4, 0.8],
]  # fmt: skip


def test_friedman_is_that_of_scipy():
    found = stats.friedman(VALUES)
    assert found.statistic == pytest.approx(5.079545454545457, rel=1e-12)
    assert found.p_value == pytest.approx(0.1660642451086291, rel=1e-10)
    assert (found.degrees, found.f_degrees) == (3, (3, 24))
    assert found.f == pytest.approx(1.853810264385693, rel=1e-12)
    assert found.f_p_value == pytest.approx(0.16443453129866362, rel=1e-9)
    ranks = [3.0555555555555554, 2.111111111111111, 2.888888888888889, 1.9444444444444444]
    assert list(found.average_ranks.values()) == pytest.approx(ranks)
    # Ties (a half rank in two settings) make the corrected statistic larger.
    assert stats.friedman(VALUES, ties="uncorrected").statistic < found.statistic
    reversed_ranks = stats.friedman(VALUES, higher_is_better=False).average_ranks
    assert list(reversed_ranks.values()) == pytest.approx([5 - rank for rank in ranks])
    assert stats.friedman([[1.0, 2.0], [3.0, 4.0]]).f is None


def test_nemenyi_is_the_tail_of_the_studentised_range():
    found = stats.nemenyi(VALUES)
    assert found[0, 3] == pytest.approx(0.26111894019829407, rel=1e-8)
    assert found == pytest.approx(found.T) and np.all(np.diag(found) == 1)
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    names = ["a", "b", "c", "d"]
    assert stats.nemenyi(pd.DataFrame(VALUES, columns=names)).loc["a", "d"] == found[0, 3]
    frame = stats.nemenyi(pl.DataFrame(np.array(VALUES), schema=names))
    assert frame.columns == ["model", *names] and frame["d"][0] == found[0, 3]


def test_wilcoxon_and_holm():
    values = np.array(VALUES)
    approximate = stats.wilcoxon(values[:, 0], values[:, 3], alternative="less", method="normal")
    assert approximate.p_value == pytest.approx(0.03303898249051053, rel=1e-9)
    assert approximate.positive_rank_sum == 7.0 and approximate.n == 9 and approximate.n_tied == 2
    assert stats.wilcoxon(values[:, 0], values[:, 3], method="untied-table").p_value == pytest.approx(0.07421875)
    assert list(fairtte.tests.holm([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])
    assert list(stats.holm([0.5, 0.125], method="bonferroni")) == [1.0, 0.25]
    with pytest.raises(fairtte.MetricError, match=r"p_values\[1\] is 2, expected"):
        stats.holm([0.5, 2.0])
    with pytest.raises(fairtte.MetricError, match='alternative is "bigger": unknown variant'):
        stats.wilcoxon([1.0], [2.0], alternative="bigger")


def test_a_diagram_joins_models_within_the_critical_difference():
    pytest.importorskip("matplotlib").use("Agg")
    ax = stats.cd_diagram(VALUES)
    lines = {line.get_gid(): line for line in ax.lines if line.get_gid()}
    assert np.ptp(lines["critical difference"].get_xdata()) == pytest.approx(1.563462947523544, rel=1e-9)
    # All four are within it: one bar from the best to the worst.
    assert lines["group"].get_xdata() == pytest.approx([1.9444444444444444 - 0.03, 3.0555555555555554 + 0.03])
    assert any("3 (1.94)" in text.get_text() for text in ax.texts)


RUNS = {"run": ["erm", "dro", "bad"], "c": [0.80, 0.78, 0.6], "F": [0.82, 0.78, 0.62], "M": [0.70, 0.77, 0.65], "gap": [0.12, 0.01, 0.03]}


def choose(**arguments):
    return fairtte.select(RUNS, "c", ["F", "M"], name="run", gap="gap", **arguments)


def test_criteria_choose_different_runs():
    assert choose(by="overall").chosen == "erm"
    assert choose(by="minimax").chosen == "dro"
    assert choose(by="fairness", base_utility=0.8, tolerated_loss=0.05).chosen == "dro"
    assert choose(by="fairness", base_utility=0.8, tolerated_loss=0.01).chosen == "erm"
    # Distances: erm 0 and 7/77, dro 4/82 and 0.
    found = choose(by="dto")
    assert found.chosen == "dro"
    assert found.table.set_index("run").loc["erm", "value"] == pytest.approx(0.07 / 0.77)
    assert list(choose(by="minimax").table["standing"]) == ["eligible", "chosen", "dominated"]
    lower = fairtte.select(RUNS, "c", name="run", higher_is_better=False)
    assert lower.chosen == "bad" == fairtte.select(RUNS, "c", name="run", higher_is_better=np.bool_(False)).chosen
    for direction in (None, True, np.bool_(True)):
        assert fairtte.select(RUNS, "c", name="run", higher_is_better=direction).chosen == "erm"


def test_runs_without_a_value_are_excluded_with_the_reason():
    runs = {**RUNS, "c": [None, 0.78, float("nan")]}
    found = fairtte.select(runs, "c", name="run")
    assert found.chosen == "dro" and list(found.table["standing"]) == ["chosen", "excluded", "excluded"]
    for arguments, message in [
        ({"by": "best"}, "by is \"best\""),
        ({"utility": "x"}, "utility is 'x', expected one of the columns run, c"),
        ({"by": "fairness"}, "base_utility is None"),
        ({"metric": "ibs"}, "metric and attribute are for Evaluations"),
    ]:
        with pytest.raises(fairtte.MetricError, match=message):
            fairtte.select(**{"runs": RUNS, "utility": "c", "name": "run", **arguments})


def test_evaluations_are_chosen_by_their_own_numbers(cohort):
    c = cohort

    def of(survival):
        groups = {"sex": c.sex}
        return fairtte.evaluate(survival, c.times, c.time, c.event, groups=groups, replicates=0, metrics=["c-td", "ibs"])

    runs = {"good": of(c.survival), "worse": of(c.survival[::-1].copy())}
    assert fairtte.select(runs).chosen == "good"
    # A lower Brier score is better.
    assert fairtte.select(runs, metric="ibs", by="minimax").chosen == "good"
    table = fairtte.select(runs, metric="ibs").table.set_index("run")["value"]
    assert table["good"] == runs["good"]["ibs"].value < table["worse"]


def test_sources_of_bias():
    c = Cohort(n=300)
    features = np.random.default_rng(3).normal(size=(300, 4))
    features[:, 0] += 2.0 * (c.sex == "F")
    settings = {"groups": {"sex": c.sex}, "permutations": 199, "replicates": 50}
    found = fairtte.bias_sources(features, c.time, c.event, **settings)
    rows = found.sources.set_index("source")
    assert len(rows) == 5 and rows.loc["image-features", "p"] <= 0.01
    # The rate of censoring by hand.
    women = c.sex == "F"
    gap = abs(np.mean(~c.event[women]) - np.mean(~c.event[~women]))
    assert rows.loc["censoring-rate", "value"] == pytest.approx(gap, abs=1e-12)
    # Normal with means 2 apart: AUC = Phi(2 / sqrt 2) = 0.921.
    assert list(found.separability["auc"]) == pytest.approx([0.921, 0.921], abs=0.04)
    assert found.to_dict()["n"] == 300
    alike = fairtte.bias_sources(np.delete(features, 0, 1), c.y, **settings)
    assert alike.sources.set_index("source").loc["image-features", "p"] > 0.01
    other = fairtte.bias_sources(features, c.time, c.event, **{**settings, "seed": 1})
    assert other.to_json() != found.to_json()
    for arguments, message in [
        ({"features": features[1:]}, "features has 299 rows, expected 300"),
        ({"features": np.where(np.eye(300, 4) == 1, np.nan, features)}, r"features\[0, 0\] is NaN"),
        ({"n_clusters": 1}, "n_clusters is 1"),
        ({"no_such": 1}, "no_such is no argument of bias_sources, expected one of: features"),
        ({"components": 0}, "0, expected"),
        ({"components": -1}, "components is -1, expected a whole number"),
        ({"groups": {}}, "groups is empty"),
    ]:
        with pytest.raises(fairtte.MetricError, match=message):
            fairtte.bias_sources(**{"features": features, "time": c.time, "event": c.event, **settings, **arguments})
