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
        ({"tnr": 1.0}, "tnr is 1"),
        ({"metrics": ["c-td"]}, 'metric "c-td" does not exist'),
        ({"horizon": 3}, "horizon makes the class from times"),
        ({"label": None}, "horizon is None, expected label"),
        ({"time": [1.0]}, "horizon is None, expected label"),
        ({"no_such": 3}, "no_such is no argument of evaluate_binary, expected one of: probability"),
        ({"label": None, "time": [1.0], "event": [1], "horizon": 2.0}, "probability has 300 values and time 1"),
        ({"threshold": 0.5, "validation": ([0.5], [1])}, "threshold is 0.5 and validation is given"),
        ({"validation": ([0.5, 0.4], [1, 1])}, "validation: number of positive samples: 2 of 2, expected both"),
        ({"validation": ([0.5, 1.4], [0, 1])}, r"probability of validation\[1\] is 1.4"),
        ({"validation": ([0.5], [0, 1])}, "probability of validation has 1 values"),
        ({"validation": [0.5]}, r"validation is not \(probability, label\)"),
        ({"underdiagnosis": "no"}, 'underdiagnosis is "no", expected "missed-disease" or'),
        ({"replicates": -1}, "replicates is -1, expected a whole number >= 0"),
        ({"groups": {"sex": ["F"]}}, "has 1 values, expected 300"),
    ],
)
def test_what_is_wrong_is_named(changed, message):
    with pytest.raises(fairtte.MetricError, match=message):
        evaluate(Classes(), **changed)


def by_hand(probability, label, threshold):
    called = probability >= threshold
    hits = np.sum(called & label)
    return 2 * hits / (np.sum(called) + np.sum(label))


def test_the_threshold_with_the_highest_f1_on_other_samples():
    c, other = Classes(), Classes(n=200, seed=9)
    found = evaluate(c, validation=(other.probability, other.label))
    f1 = {threshold: by_hand(other.probability, other.label, threshold) for threshold in np.unique(other.probability)}
    best = max(f1.values())
    assert found.threshold == max(threshold for threshold, value in f1.items() if value == best)
    assert found.to_dict()["threshold"] == {"f1-on-validation": {"n": 200, "n-positive": int(other.label.sum()), "f1": pytest.approx(best)}}
    assert found["fpr"].value == pytest.approx((c.probability >= found.threshold)[~c.label].mean(), abs=1e-12)
    assert evaluate(c).to_dict()["threshold"] == "default" and evaluate(c, threshold=0.5).to_dict()["threshold"] == "given"


def test_a_class_from_times_leaves_out_who_is_censored_by_then():
    c = Classes()
    rng = np.random.default_rng(2)
    event_time, censored = rng.exponential(np.exp(-c.score)), rng.exponential(2.0, size=len(c.score))
    time, event = np.minimum(event_time, censored), event_time <= censored
    horizon, early = 0.8, (np.minimum(event_time, censored) <= 0.8) & ~(event_time <= censored)
    settings = {"label": None, "time": time, "event": event, "horizon": horizon, "replicates": 40}
    found = evaluate(c, **settings)
    own, label = ~early, time <= horizon
    same = evaluate(c, probability=c.probability[own], label=label[own], groups={"sex": c.sex[own]}, replicates=40)
    assert list(found.by_group["value"]) == list(same.by_group["value"]) and list(found.overall["upper"]) == list(same.overall["upper"])
    rows = found.at_horizon
    assert list(rows["level"])[1:] == ["F", "M"] and rows["attribute"].isna()[0]
    assert rows.loc[0, ["n", "positive", "negative", "left_out"]].to_list() == [
        300, int(label[own].sum()), int((~label[own]).sum()), int(early.sum()),
    ]  # fmt: skip
    assert list(rows["auc"]) == pytest.approx(
        [auc(c.probability[s], label[s]) for s in (own, own & (c.sex == "F"), own & (c.sex == "M"))], abs=1e-12
    )
    # Cases weigh 1 / G(T-), controls all alike; G by hand.
    at = np.unique(time)
    risk = np.array([np.sum((time > t) | (time == t) & ~event) for t in at])
    g = np.cumprod([1 - np.sum((time == t) & ~event) / max(n, 1) for t, n in zip(at, risk, strict=True)])
    before = np.concatenate([[1.0], g])[np.searchsorted(at, time)]
    case, control = np.flatnonzero(label & event), np.flatnonzero(time > horizon)
    weight = 1 / before[case]
    wins = (c.probability[case][:, None] > c.probability[control]) + 0.5 * (c.probability[case][:, None] == c.probability[control])
    assert rows.loc[0, "auc_weighted"] == pytest.approx(np.sum(weight * wins.mean(1)) / weight.sum(), abs=1e-12)
    assert rows.loc[0, "lower"] < rows.loc[0, "difference"] < rows.loc[0, "upper"]
    # Another training sample changes the weights alone.
    other = evaluate(c, train=(time * 0.7, event), **settings)
    assert other["auc"].value == found["auc"].value
    assert other.at_horizon.loc[0, "auc_weighted"] != rows.loc[0, "auc_weighted"]
    structured = np.array(list(zip(event, time, strict=True)), dtype=[("event", "?"), ("time", "f8")])
    again = evaluate(c, **{**settings, "time": structured, "event": None}, validation=(c.probability, structured))
    assert again.at_horizon.equals(rows) and again.threshold != found.threshold
    with pytest.raises(fairtte.MetricError, match="was not made from times"):
        same.at_horizon


def test_a_page_and_a_comparison(tmp_path):
    c = Classes()
    first, second = evaluate(c, replicates=40, name="mine <1>"), evaluate(c, probability=c.probability**2, replicates=40)
    page = first.report(tmp_path / "report.html").read_text()
    assert "Evaluation of mine &lt;1&gt;" in page and "<script" not in page and "Threshold 0.5, the default" in page
    assert "the validation sample" in evaluate(c, validation=(c.probability, c.label)).to_html()
    assert "the censoring curve of the weighted AUC is fitted on the evaluated sample" in evaluate(
        c, label=None, time=1 + c.score**2, event=c.label, horizon=2.0, time_unit="years"
    ).to_html()
    found = first.compare(second).overall.set_index("metric")
    for metric in ("auc", "brier", "fnr"):
        assert found.loc[metric, "value"] == pytest.approx(first[metric].value - second[metric].value, abs=1e-12)
    assert found.loc["brier", "lower"] < found.loc["brier", "value"] < found.loc["brier", "upper"]
    assert set(first.compare(first).by_group["value"].dropna()) == {0.0}
    with pytest.raises(fairtte.MetricError, match="other thresholds or settings"):
        first.compare(evaluate(c, replicates=40, threshold=0.2))
    with pytest.raises(fairtte.MetricError, match="other classes"):
        first.compare(evaluate(c, replicates=40, label=~c.label))


def test_figures_of_a_class():
    pytest.importorskip("matplotlib").use("Agg")
    found = evaluate(Classes(), replicates=20)
    assert [label.get_text() for label in found.plot.forest("auc").get_yticklabels()] == ["all", "sex: F", "sex: M"]
    roc = found.plot.roc()
    # The diagonal, all samples, and the two groups.
    assert [line.get_label() for line in roc.lines][1:] == ["all", "sex: F", "sex: M"]
    drawn, frame = roc.lines[1].get_xydata(), found.roc()
    assert drawn[:, 0].tolist() == list(frame["false_positive"]) and drawn[:, 1].tolist() == list(frame["true_positive"])
    # A line and its bins of each.
    assert len(found.plot.calibration().lines) == 7
    with pytest.raises(fairtte.MetricError, match="not in this evaluation"):
        found.plot.forest("no")


def test_the_bar_of_a_class(capsys):
    pytest.importorskip("tqdm")
    c = Classes()
    evaluate(c, replicates=64, progress=True)
    assert "100%" in capsys.readouterr().err
