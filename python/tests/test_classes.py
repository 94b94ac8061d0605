"""Probabilities of a class."""

import json

import numpy as np
import pytest

import fairtte

pd = pytest.importorskip("pandas")


class Classes:
    def __init__(self, n=300, seed=4):
        rng = np.random.default_rng(seed)
        self.score = rng.normal(size=n)
        self.label = rng.random(n) < 1 / (1 + np.exp(-self.score))
        self.probability = np.round(1 / (1 + np.exp(-0.7 * self.score)), 2)
        self.sex = np.where(rng.random(n) < 0.4, "F", "M")


def evaluate(c, **changed):
    arguments = {"probability": c.probability, "label": c.label, "groups": {"sex": c.sex}, "replicates": 0, "permutations": 0}
    return fairtte.evaluate_binary(**(arguments | changed))


def auc(probability, label):
    positive, negative = probability[label][:, None], probability[~label]
    return float(np.mean((positive > negative) + 0.5 * (positive == negative)))


def test_values_are_those_of_the_definitions():
    c = Classes()
    found = evaluate(c, threshold=0.4)
    called = c.probability >= 0.4
    assert found.threshold == 0.4
    assert found["auc"].value == pytest.approx(auc(c.probability, c.label), abs=1e-12)
    assert found["brier"].value == pytest.approx(np.mean((c.probability - c.label) ** 2), abs=1e-12)
    assert found["fpr"].value == pytest.approx(called[~c.label].mean(), abs=1e-12)
    assert found["fnr"].value == pytest.approx(1 - called[c.label].mean(), abs=1e-12)
    assert found["fnr"].value != evaluate(c)["fnr"].value
    by_group = found.by_group.set_index(["metric", "level"])["value"]
    for sex in ("F", "M"):
        own = c.sex == sex
        assert by_group["auc", sex] == pytest.approx(auc(c.probability[own], c.label[own]), abs=1e-12)
    gaps = found.gaps.set_index(["metric", "comparison"])["value"]
    assert gaps["auc", "gap"] == pytest.approx(abs(by_group["auc", "F"] - by_group["auc", "M"]), abs=1e-12)
    parity = found.parity.set_index("criterion")["value"]
    rate = {sex: called[c.sex == sex].mean() for sex in ("F", "M")}
    assert parity["demographic-parity-difference"] == pytest.approx(abs(rate["F"] - rate["M"]), abs=1e-12)
    assert parity["equal-opportunity-negative"] == pytest.approx(1 - gaps["fpr", "gap"], abs=1e-12)
    assert parity["underdiagnosis-difference"] == pytest.approx(gaps["fnr", "gap"], abs=1e-12)
    healthy = evaluate(c, threshold=0.4, underdiagnosis="called-no-finding").parity.set_index("criterion")["value"]
    assert healthy["underdiagnosis-difference"] == pytest.approx(gaps["fpr", "gap"], abs=1e-12)


def test_roc_intervals_and_text():
    c = Classes()
    found = evaluate(c, replicates=60, permutations=19, name="mine <1>")
    area = np.trapezoid if hasattr(np, "trapezoid") else np.trapz
    roc = found.roc()
    assert area(roc["true_positive"], roc["false_positive"]) == pytest.approx(found["auc"].value, abs=1e-12)
    of_women = found.roc("sex", "F")
    own = c.sex == "F"
    assert area(of_women["true_positive"], of_women["false_positive"]) == pytest.approx(
        auc(c.probability[own], c.label[own]), abs=1e-12
    )
    assert found["auc"].lower < found["auc"].value < found["auc"].upper
    assert 0 < found.gaps.query("metric == 'auc' and comparison == 'gap'")["p"].iloc[0] <= 1
    assert "mine &lt;1&gt;" in found._repr_html_() and "positive = " in repr(found)
    assert json.loads(found.to_json()) == found.to_dict()
    assert found.to_json() == evaluate(c, replicates=60, permutations=19, threads=3).to_json()
    subject = np.arange(len(c.label)) // 3
    together = evaluate(c, replicates=60, permutations=19, subject=subject)
    assert together["auc"].value == found["auc"].value and together["auc"].lower != found["auc"].lower


def test_only_the_metrics_that_are_asked_for_in_their_order():
    c = Classes()
    assert list(evaluate(c, metrics=["fnr", "auc"]).overall["metric"]) == ["fnr", "auc"]
    assert len(evaluate(c).overall) == len(fairtte.class_metric_names()) == 14
    pl = pytest.importorskip("polars")
    assert isinstance(evaluate(c, groups=pl.DataFrame({"sex": c.sex})).overall, pl.DataFrame)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"probability": [0.5, 1.5, 0.2], "label": [0, 1, 1], "groups": None}, r"probability\[1\] is 1.5, expected a number in \[0, 1\]"),
        ({"probability": [0.5, np.nan, 0.2], "label": [0, 1, 1], "groups": None}, r"probability\[1\] is NaN"),
        ({"label": [0, 1]}, "probability has 300 values and label 2"),
        ({"label": np.full(300, 2)}, r"label\[0\] is 2.0, expected 0 or 1"),
        ({"threshold": 1.5}, "threshold"),
        ({"tnr": 1.0}, "tnr|true negative rate"),
        ({"metrics": ["c-td"]}, 'metric "c-td" does not exist'),
        ({"horizon": 3}, "horizon is no setting of a class"),
        ({"underdiagnosis": "no"}, "unknown variant `no`"),
        ({"replicates": -1}, "invalid value"),
        ({"groups": {"sex": ["F"]}}, "has 1 values, expected 300"),
    ],
)
def test_what_is_wrong_is_named(changed, message):
    with pytest.raises(fairtte.MetricError, match=message):
        evaluate(Classes(), **changed)
