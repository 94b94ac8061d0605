"""The metrics of scikit-survival, pycox and SurvivalEVAL by their names, and scorers.

Values recorded by parity/record.py from scikit-survival 0.28.0, pycox 0.3.0 and SurvivalEVAL 0.9.0 on the sample of `small()`.
"""

import numpy as np
import pytest

import fairtte
from fairtte import sksurv
from fairtte.pycox import EvalSurv
from fairtte.survival_eval import SurvivalEvaluator
from fairtte.estimators import CoxPH
from fairtte.sklearn import (
    as_concordance_index_ipcw_scorer,
    as_cumulative_dynamic_auc_scorer,
    as_integrated_brier_score_scorer,
    concordance_scorer,
    gap_scorer,
)
from conftest import Cohort

GRID = np.linspace(0.2, 1.5, 9)
# fmt: off
HARRELL = [0.7844600526777875, 877.0, 229.0, 33.0, 0.0]
UNO = [0.7818089613884569, 902.0, 237.0, 0.0, 0.0]
AUC = [0.7926820873970558, 0.8714167875271936, 0.8964255200655992, 0.8604722881576665, 0.8254472428327945, 0.799037761624161, 0.8131080584456893, 0.812953676384949, 0.7920932344342606]
AUC_MEAN = 0.8327874186504799
AUC_MEAN_OF_ONE_RISK = 0.8320289609075134
BRIER = [0.1353844743340595, 0.1355368200300492, 0.1428399336577996, 0.1624171313157126, 0.17849058483906363, 0.2032853477431607, 0.2061020162904244, 0.22510603421362288, 0.25011256660151004]
BRIER_RISING = [0.4270420829883088, 0.29646100058365177, 0.23101372579586066, 0.19952336509896332, 0.17849058483906363, 0.18229072903588012, 0.17614464001863347, 0.19843512436345054, 0.25778160898695573]
IBS = 0.18081579856970223
PYCOX = {
    "post": {
        "adj_antolini": 0.504828797190518,
        "antolini": 0.07550482879719052,
        "brier": [0.20608061249965318, 0.31795107164742936, 0.37995551967948116, 0.15443262655848305, 0.16511887748334997, 0.18117072595837613, 0.20331260788303376, 0.20789690092657162, 0.21701338001931722],
        "nbll": [3.3216271035779013, 5.124765853510222, 6.124159471507898, 0.479598005116857, 0.5020586232552672, 0.5400698287696294, 0.5793989228928538, 0.5907296198856999, 0.6151636364801312],
    },
    "pre": {
        "adj_antolini": 0.7919227392449517,
        "antolini": 0.7919227392449517,
        "brier": [0.21562549861247315, 0.15840762627776242, 0.14652502653090227, 0.21632167716326683, 0.20603170147334152, 0.21465759657749436, 0.2531632131264374, 0.25739239769693506, 0.2688364863054813],
        "nbll": [0.6503190865702646, 0.4748924310888659, 0.4478528061324462, 0.6140513717845497, 0.5917977702406703, 0.6097805502138496, 0.7303913334918419, 0.7473873789811114, 0.784038403872758],
    },
}
SURVIVAL_EVAL = {
    "none": [0.8161838161838162, 817.0, 1001.0],
    "Risk": [0.7946927374301676, 853.5, 1074.0],
    "Time": [0.7818343722172751, 878.0, 1123.0],
    "All": [0.7646321070234113, 914.5, 1196.0],
    "auc": [0.892063492063492, 0.8713768115942029, 0.8652424166596216],
    "brier": [0.14398831227100717, 0.14978502788826276, 0.1436581824873278, 0.16090298994481614, 0.1755791949078148, 0.20033382236618688, 0.2054936194698605, 0.22216180478808098, 0.24665180022256597],
    "unweighted": [0.1385570005142783, 0.13731798713433468, 0.12310252440961093, 0.12248744063826252, 0.12618613967444223, 0.13998744348318673, 0.13629496059432913, 0.13368443551954962, 0.1321494942648896],
    "ibs": [0.13404285356222642, 0.08394599498631475, 0.18165433726239205],
    "one-calibration": [
        (0.16236556779960704, [0.7999999999999999, 0.5285714285714285, 0.2055555555555556, 0.07692307692307687], [0.8392220267312773, 0.5976702723614725, 0.4021249278547218, 0.19862978571610432]),
        (0.2589261153435522, [0.7999999999999999, 0.44999999999999996, 0.2055555555555556, 0.0], [0.7262609668916725, 0.48848833673723296, 0.31567360394017396, 0.15170043972540487]),
    ],
    "km-calibration": 0.011779764398132721,
    "d-calibration": [7.181859214139357, 4.656958574206719, 6.461557485777652, 3.791386824076919, 7.054801376024401, 4.329712529999368, 7.054023585530361, 3.7506275223900816, 6.241400322457338, 9.477672565397805],
}
ONE_CALIBRATION = [{"target_time": 0.7, "num_bins": 4}, {"num_bins": 4, "adjust_variance": False}]
# fmt: on


def small():
    c = Cohort(n=60, k=8, seed=3)
    train = c.y.copy()
    train["time"][np.argmax(train["time"])] += 1
    return c, train, np.exp(-np.outer(np.exp(c.risk), GRID))


def close(expected):
    return pytest.approx(expected, rel=0, abs=1e-12)


def test_values_are_those_of_scikit_survival():
    c, train, at = small()
    assert sksurv.concordance_index_censored(c.event, c.time, np.round(c.risk, 1)) == close(HARRELL)
    assert sksurv.concordance_index_ipcw(train, c.y, c.risk, tau=1.5) == close(UNO)
    auc, mean = sksurv.cumulative_dynamic_auc(train, c.y, np.round(1 - at, 1), GRID)
    assert auc == close(AUC) and mean == close(AUC_MEAN)
    assert sksurv.cumulative_dynamic_auc(train, c.y, c.risk, GRID)[1] == close(AUC_MEAN_OF_ONE_RISK)
    grid, brier = sksurv.brier_score(train, c.y, at, GRID)
    assert list(grid) == list(GRID) and brier == close(BRIER)
    assert sksurv.brier_score(train, c.y, at[:, ::-1], GRID)[1] == close(BRIER_RISING)
    assert sksurv.integrated_brier_score(train, c.y, at, GRID) == close(IBS)


def test_values_are_those_of_pycox():
    pd = pytest.importorskip("pandas")
    c = small()[0]
    for steps, expected in PYCOX.items():
        frame = pd.DataFrame(c.survival.T, index=c.times)
        found = EvalSurv(frame, c.time, c.event.astype(int), censor_surv="km", steps=steps)
        assert found.concordance_td() == close(expected["adj_antolini"])
        assert found.concordance_td("antolini") == close(expected["antolini"])
        assert list(found.brier_score(GRID)) == close(expected["brier"])
        assert list(found.nbll(GRID)) == close(expected["nbll"])
        assert found.brier_score(GRID).index.name == "time"
        # Simpson's rule over equal steps.
        weights = np.array([1, 4, 2, 4, 2, 4, 2, 4, 1]) / 24
        assert found.integrated_brier_score(GRID) == close(np.dot(weights, expected["brier"]))
        assert found.integrated_nbll(GRID) == close(np.dot(weights, expected["nbll"]))
    with pytest.raises(fairtte.MetricError, match="censor_surv is None"):
        EvalSurv(frame, c.time, c.event).brier_score(GRID)


PYCOX_OF_40 = [0.22800026788106084, 0.37768865449926825, 0.4690299426590128, 0.12495213681498993, 0.14145283730376318, 0.16583990149946973, 0.17783068135913196, 0.18793661686884014, 0.18837605566345478]  # fmt: skip


def test_the_rest_of_evalsurv_is_that_of_pycox():
    pd = pytest.importorskip("pandas")
    c, _, _ = small()
    frame = pd.DataFrame(c.survival.T, index=c.times)
    whole = EvalSurv(frame, c.time, c.event, "km", None, "post")
    part = whole[10:50]
    # The weights are those of all 60.
    assert list(part.brier_score(GRID)) == close(PYCOX_OF_40) and part.concordance_td() == close(0.5009057971014492)
    assert list(part.idx_at_times(GRID)) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert list(whole[np.arange(60) // 10 == 1].durations) == list(c.time[10:20]) and len(whole[3].durations) == 1
    assert part.surv_at_times([0.6, 9.0]).equals(frame.iloc[[1, 7], 10:50])
    part.steps = "pre"
    assert list(part.idx_at_times([0.0, 0.1, 9.0])) == [0, 1, 7] and part.steps == "pre"
    later = EvalSurv(frame, c.time, c.event)
    assert later.censor_surv is None
    assert list(later.add_km_censor().brier_score(GRID)) == list(whole.brier_score(GRID)) and later.censor_surv == "km"
    pytest.importorskip("matplotlib").use("Agg")
    assert len(part.plot_surv(legend=False).lines) == 40
    for call, message in [
        (lambda: whole.plot_surv(), "60 curves, expected at most 50"),
        (lambda: part.plot_surv(drawstyle="default"), "drawstyle is given"),
        (lambda: EvalSurv(frame, c.time, c.event, frame), 'censor_surv is no "km"'),
        (lambda: EvalSurv(frame, c.time, c.event, None, c.time), "censor_durations is given"),
        (lambda: EvalSurv(frame, c.time, c.event, None, None, "mid"), 'steps is "mid"'),
        (lambda: later.add_km_censor("pre"), 'steps is "pre"'),
    ]:
        with pytest.raises(fairtte.FairtteError, match=message):
            call()


def test_values_are_those_of_survival_eval():
    c, train, _ = small()
    expected = SURVIVAL_EVAL
    tied = SurvivalEvaluator(np.round(c.survival, 1), c.times, np.ceil(4 * c.time) / 4, c.event.astype(int))
    for ties in ("none", "Risk", "Time", "All"):
        assert tied.concordance_time_dependent(ties=ties) == close(expected[ties])
    evaluator = SurvivalEvaluator(c.survival, c.times, c.time, c.event, train["time"], train["event"])
    assert [evaluator.auc(), evaluator.auc(0.7), evaluator.auc(0.7, "IPCW")] == close(expected["auc"])
    assert evaluator.brier_score() == close(0.1435447684325678)
    assert list(evaluator.brier_score_multiple_points(GRID)) == close(expected["brier"])
    assert list(evaluator.brier_score_multiple_points(GRID, IPCW_weighted=False)) == close(expected["unweighted"])
    found = [evaluator.integrated_brier_score(**how) for how in ({}, {"num_points": 5}, {"target_times": GRID})]
    assert found == close(expected["ibs"])
    p, mass = evaluator.d_calibration()
    assert p == close(0.8267309194680048) and list(mass) == close(expected["d-calibration"])
    for expected_of, how in zip(expected["one-calibration"], ONE_CALIBRATION, strict=True):
        p, observed, predicted = evaluator.one_calibration(**how)
        assert p == close(expected_of[0]) and observed == close(expected_of[1]) and predicted == close(expected_of[2])
    assert evaluator.km_calibration() == close(expected["km-calibration"])
    # SurvivalEVAL has NaN here: a bin without events has no variance.
    with pytest.raises(fairtte.MetricError, match="variance"):
        evaluator.one_calibration()
    with pytest.raises(fairtte.MetricError, match='binning_strategy is "X"'):
        evaluator.one_calibration(binning_strategy="X")
    with pytest.raises(fairtte.MetricError, match="after the last of time_coordinates"):
        SurvivalEvaluator(c.survival[:, :4], c.times[:4], c.time, c.event).km_calibration()
    # Without censoring the weights are off, whatever is asked.
    uncensored = SurvivalEvaluator(c.survival, c.times, c.time, np.ones(60, bool))
    assert uncensored.brier_score(0.5) == uncensored.brier_score(0.5, IPCW_weighted=False)
    with pytest.raises(fairtte.MetricError, match="train_event_times is None"):
        SurvivalEvaluator(c.survival, c.times, c.time, c.event).brier_score(0.5)
    with pytest.raises(fairtte.MetricError, match='ties is "some"'):
        tied.concordance_time_dependent(ties="some")
    with pytest.raises(fairtte.MetricError, match=r"pred_survs\[0, \d+\] is"):
        SurvivalEvaluator(c.survival[:, ::-1], c.times, c.time, c.event)


def test_harrell_counts_pairs(cohort):
    c = cohort
    risk = np.round(c.risk, 1)
    good = bad = tied = 0
    for i in np.flatnonzero(c.event):
        later = c.time > c.time[i]
        good += int(np.sum(risk[i] > risk[later]))
        bad += int(np.sum(risk[i] < risk[later]))
        tied += int(np.sum(risk[i] == risk[later]))
    expected = ((good + tied / 2) / (good + bad + tied), good, bad, tied, 0)
    assert sksurv.concordance_index_censored(c.event, c.time, risk) == pytest.approx(expected, abs=1e-15)


def test_errors_are_value_errors(cohort):
    c = cohort
    with pytest.raises(ValueError, match="expected booleans"):
        sksurv.concordance_index_censored(c.event.astype(int), c.time, c.risk)
    with pytest.raises(sksurv.NoComparablePairException):
        sksurv.concordance_index_censored(np.array([False, True]), np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    with pytest.raises(fairtte.MetricError, match="tied_tol is 0.1"):
        sksurv.concordance_index_censored(c.event, c.time, c.risk, tied_tol=0.1)
    with pytest.raises(ValueError, match=r"times go from 0.5 to 100"):
        sksurv.brier_score(c.y, c.y, c.survival[:, :2], [0.5, 100.0])


def test_times_of_other_packages_keep_the_names_of_their_arguments():
    c, train, at = small()
    early = c.y.copy()
    early["time"][3] = -1
    with pytest.raises(fairtte.MetricError, match=r"^event_time\[3\] is -1, expected a finite number >= 0"):
        sksurv.concordance_index_censored(c.event, early["time"], c.risk)
    with pytest.raises(fairtte.MetricError, match=r"^survival_test\[3\] is -1, expected a finite number >= 0"):
        sksurv.concordance_index_ipcw(train, early, c.risk)
    for function in (sksurv.brier_score, sksurv.cumulative_dynamic_auc):
        with pytest.raises(fairtte.MetricError, match=r"^survival_test\[3\] is -1, expected a finite number >= 0"):
            function(train, early, at, GRID)


class OnDevice:
    """A tensor that has to be brought from its device."""

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        raise TypeError("it is not in this memory")


OnDevice.__module__ = "torch"


def test_scores_of_pycox_at_times_on_a_device():
    pd = pytest.importorskip("pandas")
    c = small()[0]
    found = EvalSurv(pd.DataFrame(c.survival.T, index=c.times), c.time, c.event, "km")
    for score in (found.brier_score, found.nbll):
        assert score(OnDevice(GRID)).equals(score(GRID))


def test_a_matrix_has_a_column_for_each_time_in_order():
    c, train, at = small()
    order = [3, 0, 2, 1, 4, 5, 6, 7, 8]
    expected = "expected increasing times: estimate has a column for each"
    for function in (sksurv.brier_score, sksurv.integrated_brier_score, sksurv.cumulative_dynamic_auc):
        with pytest.raises(fairtte.MetricError, match=rf"times\[1\] is 0.2 after .*, {expected}"):
            function(train, c.y, at[:, order], GRID[order])
        with pytest.raises(fairtte.MetricError, match=rf"times\[1\] is 0.2 after 0.2, {expected}"):
            function(train, c.y, at[:, [0, 0, 1]], GRID[[0, 0, 1]])
    # One risk for all times has no columns.
    auc, mean = sksurv.cumulative_dynamic_auc(train, c.y, c.risk, GRID[order])
    assert mean == close(AUC_MEAN_OF_ONE_RISK) and list(auc) == list(sksurv.cumulative_dynamic_auc(train, c.y, c.risk, GRID)[0])
    assert sksurv.brier_score(train, c.y, at[:, 2], [GRID[2]])[1] == close(BRIER[2:3])


# CoxPHSurvivalAnalysis(ties="efron") of scikit-survival 0.28.0, fitted on 40 samples and scored on 20.
SCORES = [0.715515315751756, 0.7447737060431094, -0.2264913564878135]


def test_scorers_with_weights_are_those_of_scikit_survival():
    c, _, _ = small()
    features, times = np.column_stack([c.risk, c.age]), GRID[2:7]
    scorers = [
        as_concordance_index_ipcw_scorer(CoxPH(ties="efron"), tau=1.2),
        as_cumulative_dynamic_auc_scorer(CoxPH(ties="efron"), times),
        as_integrated_brier_score_scorer(CoxPH(ties="efron"), times),
    ]
    found = [scorer.fit(features[:40], c.y[:40]).score(features[40:], c.y[40:]) for scorer in scorers]
    # Both fits stop before the last digits.
    assert found == pytest.approx(SCORES, abs=1e-6)
    assert scorers[0].predict(features[:2]).shape == (2,)
    for scorer, score in zip((as_cumulative_dynamic_auc_scorer, as_integrated_brier_score_scorer), found[1:], strict=True):
        for other in (times[::-1], times[[1, 1, 0, 4, 3, 2]].tolist()):
            unsorted = scorer(CoxPH(ties="efron"), other).fit(features[:40], c.y[:40])
            assert unsorted.score(features[40:], c.y[40:]) == pytest.approx(score, abs=1e-12)
    with pytest.raises(fairtte.MetricError, match="time is 100.0, expected times in"):
        as_integrated_brier_score_scorer(CoxPH(), [0.5, 100.0]).fit(features[:40], c.y[:40]).score(features[:40], c.y[:40])


def test_scorers_with_weights_in_a_grid_search():
    pytest.importorskip("sklearn")
    from sklearn.model_selection import GridSearchCV, KFold

    c = Cohort(n=300)
    features, folds = np.column_stack([c.risk, c.age]), KFold(3, shuffle=True, random_state=0)
    model = as_integrated_brier_score_scorer(CoxPH(), [0.3, 0.6, 0.9])
    search = GridSearchCV(model, {"estimator__ridge": [0.0, 1e6]}, cv=folds, error_score="raise").fit(features, c.y)
    assert search.best_params_ == {"estimator__ridge": 0.0} and search.best_estimator_.predict(features).shape == (300,)
    # Of the first fold by hand.
    train, test = next(folds.split(features))
    own = CoxPH().fit(features[train], c.y[train])
    estimate = np.array([[f(t) for t in (0.3, 0.6, 0.9)] for f in own.predict_survival_function(features[test])])
    expected = -sksurv.integrated_brier_score(c.y[train], c.y[test], estimate, [0.3, 0.6, 0.9])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected, abs=1e-12)


class Model:
    def __init__(self, sign=1):
        self.sign = sign

    def predict(self, features):
        return self.sign * np.asarray(features["risk"], dtype=float)


def test_scorers():
    pd = pytest.importorskip("pandas")
    c = Cohort()
    features = pd.DataFrame({"risk": c.risk, "sex": c.sex})
    score = concordance_scorer()(Model(), features, c.y)
    assert score > 0.6 and concordance_scorer()(Model(-1), features, c.y) == pytest.approx(1 - score)
    women = c.sex == "F"
    of = [sksurv.concordance_index_censored(c.event[m], c.time[m], c.risk[m])[0] for m in (women, ~women)]
    assert gap_scorer("sex", 0.5)(Model(), features, c.y) == pytest.approx(score - 0.5 * abs(of[0] - of[1]))
    declared = features.assign(sex=pd.Categorical(c.sex, categories=["X", "F", "Y", "M"]))
    assert gap_scorer("sex", 0.5)(Model(), declared, c.y) == gap_scorer("sex", 0.5)(Model(), features, c.y)
    with pytest.raises(fairtte.MetricError, match=r'X\["sex"\] has 1 levels, expected at least 2'):
        gap_scorer("sex")(Model(), declared[women], c.y[women])
    small = features.assign(sex=np.where(np.arange(len(c.sex)) == 0, "X", c.sex))
    with pytest.raises(fairtte.MetricError, match=r'group "X" of X\["sex"\]: .*expected at least 2 samples'):
        gap_scorer("sex")(Model(), small, c.y)
    censored = c.y.copy()
    censored["event"] &= women
    with pytest.raises(fairtte.MetricError, match=r'group "M" of X\["sex"\]: '):
        gap_scorer("sex")(Model(), features, censored)
    with pytest.raises(fairtte.MetricError, match='no column "age"'):
        gap_scorer("age")(Model(), features, c.y)
