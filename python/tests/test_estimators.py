"""Estimators: scikit-learn's contract, predictions, pickles, errors."""

import json
import pickle

import numpy as np
import pytest

import fairtte
from fairtte import _fairtte, estimators
from fairtte.estimators import AFT, CoxElasticNet, CoxPH, CoxTimeVarying, GradientBoostedCox, LogisticHazard
from fairtte.estimators import RandomSurvivalForest, StepFunction, surv

ALL = [
    CoxPH(), CoxElasticNet(lambdas=20, folds=3), CoxTimeVarying(), LogisticHazard(), AFT(), RandomSurvivalForest(n_estimators=20),
    GradientBoostedCox(n_estimators=20),
]  # fmt: skip


def sample(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    time = rng.exponential(np.exp(-X[:, 0])) + 0.01
    return X, surv(time, rng.random(n) < 0.8)


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_every_estimator_fits_predicts_and_is_the_same_after_a_pickle(model):
    X, y = sample()
    fitted = type(model)(**model.get_params()).fit(X, y)
    risk = fitted.predict(X)
    assert fitted.score(X, y) > 0.6 and risk.shape == (200,) and fitted.n_features_in_ == 3
    curves = fitted.predict_survival_function(X[:5], return_array=True)
    assert curves.shape == (5, len(np.unique(y["time"]))) == (5, len(fitted.unique_times_))
    functions = fitted.predict_survival_function(X[:5])
    at = float(fitted.unique_times_[50])
    assert [function(at) for function in functions] == list(curves[:, 50])
    # On another grid the mean over trees may be summed in another order.
    alone = fitted.predict_survival_function(X[:5], return_array=True, times=[at])[:, 0]
    assert list(alone) == pytest.approx(list(curves[:, 50]), rel=1e-14)
    hazards = fitted.predict_cumulative_hazard_function(X[:5], return_array=True)
    assert np.exp(-hazards) == pytest.approx(curves, abs=1e-15) and not np.any(np.signbit(hazards))
    hazard = fitted.predict_cumulative_hazard_function(X[:5])[2]
    assert hazard(at) == hazards[2, 50] and hazard(0.0) == 0.0
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), risk) and again.get_params() == model.get_params()
    # (time, event), lists and single precision are accepted.
    pair = type(model)(**model.get_params()).fit(X.tolist(), (y["time"], y["event"]))
    assert np.array_equal(pair.predict(X), risk)
    assert pair.predict(X.astype(np.float32)) == pytest.approx(risk, rel=1e-3, abs=1e-3)


def test_every_estimator_of_the_catalogue_has_a_class_with_its_defaults():
    classes = [getattr(estimators, name) for name in estimators.__all__]
    classes = [found for found in classes if hasattr(found, "_name")]
    assert sorted(found._name for found in classes) == sorted(name for name, _ in _fairtte.estimator_names())
    for found in classes:
        own = _fairtte.estimator_settings(found._name, json.dumps(found()._settings()))
        assert own == _fairtte.estimator_settings(found._name, "{}"), found


def test_parameters_reach_the_fit():
    X, y = sample()
    changed = [
        CoxPH(ties="breslow"), CoxPH(ridge=50.0), CoxPH(strata=["2"]), CoxElasticNet(l1_ratio=1.0, lambdas=5),
        CoxElasticNet(choice={"fixed": 0.2}), CoxElasticNet(random_state=5), LogisticHazard(cut_points={"equidistant": 5}),
        LogisticHazard(penalty={"l2": {"c": 0.01}}), LogisticHazard(effects="linear"), LogisticHazard(censored="at-risk"),
        LogisticHazard(reading="step"), AFT(distribution="log-normal"), AFT(penalty=1.0), CoxTimeVarying(function="identity"),
        CoxTimeVarying(varying=["0"]), RandomSurvivalForest(n_estimators=7), RandomSurvivalForest(preset="rfsrc"),
        RandomSurvivalForest(random_state=4), RandomSurvivalForest(max_features="all"), RandomSurvivalForest(max_depth=1),
        RandomSurvivalForest(sampling={"subsample": 0.5}), GradientBoostedCox(learning_rate=0.5),
        GradientBoostedCox(max_features=1), GradientBoostedCox(early_stopping={"share": 0.2}),
        GradientBoostedCox(subsample=0.5, random_state=1),
    ]  # fmt: skip
    y["time"] = np.round(y["time"], 1) + 0.1
    X[:, 2] = np.round(X[:, 2]).clip(-1, 1)
    for model in changed:
        default = type(model)().fit(X, y)
        model.fit(X, y)
        if isinstance(model, CoxElasticNet) and model.random_state == 5:
            assert model.to_dict()["validation"] != default.to_dict()["validation"]
            continue
        times = np.array([0.25, 0.5, 1.0])
        own = model.predict_survival_function(X[:50], return_array=True, times=times)
        assert np.any(own != default.predict_survival_function(X[:50], return_array=True, times=times)), model
    assert np.array_equal(RandomSurvivalForest(n_jobs=1).fit(X, y).predict(X), RandomSurvivalForest(n_jobs=2).fit(X, y).predict(X))


def test_coefficients_and_their_errors():
    X, y = sample(1000)
    model = CoxPH().fit(X, y)
    assert model.coef_ == pytest.approx([1, 0, 0], abs=0.15)
    table = model.summary()
    assert list(table["name"]) == ["0", "1", "2"] and table["hazard_ratio"][0] == pytest.approx(np.exp(model.coef_[0]))
    # Each person twice: plain errors shrink by sqrt(2), those that count persons do not.
    twice, person = np.vstack([X, X]), np.tile(np.arange(1000), 2)
    y2 = np.concatenate([y, y])
    robust = CoxPH(errors="robust", ties="breslow").fit(X, y).summary()["standard_error"]
    clustered = CoxPH(errors="robust", ties="breslow").fit(twice, y2, subject=person).summary()["standard_error"]
    alone = CoxPH(errors="robust", ties="breslow").fit(twice, y2).summary()["standard_error"]
    assert list(clustered) == pytest.approx(list(robust), rel=1e-6)
    assert list(alone) == pytest.approx(list(robust / np.sqrt(2)), rel=1e-6)


def test_a_tree_without_splits_is_the_curve_of_all_samples():
    X, y = sample()
    model = RandomSurvivalForest(n_estimators=3, sampling="all", min_samples_split=1000).fit(X, y)
    assert set(model.to_dict()) >= {"settings", "times", "trees"} and len(model.to_dict()["trees"]) == 3
    times = np.unique(y["time"])
    events = np.array([np.sum((y["time"] == t) & y["event"]) for t in times])
    at_risk = np.array([np.sum(y["time"] >= t) for t in times])
    curve = model.predict_survival_function(X[:2], return_array=True)
    # ranger averages cumulative hazards.
    assert curve == pytest.approx(np.tile(np.exp(-np.cumsum(events / at_risk)), (2, 1)), abs=1e-12)
    assert len(set(model.predict(X))) == 1


def test_step_functions():
    function = StepFunction(np.array([1.0, 2.0]), np.array([0.9, 0.5]))
    assert [function(t) for t in (0.0, 0.99, 1.0, 1.99, 2.0)] == [1.0, 1.0, 0.9, 0.9, 0.5]
    for outside in (-0.1, 2.1, float("nan")):
        with pytest.raises(fairtte.MetricError, match=r"expected times in \[0, 2.0\]"):
            function(outside)


def refusals():
    X, y = sample()
    return [
        (RandomSurvivalForest(n_estimators=0), X, y, "n_estimators is 0, expected a whole number from 1 to 1000000"),
        (RandomSurvivalForest(n_estimators="many"), X, y, 'n_estimators is "many", expected a whole number'),
        (RandomSurvivalForest(max_features=0), X, y, "max_features is 0"),
        (RandomSurvivalForest(random_state=-1), X, y, "random_state is -1"),
        (GradientBoostedCox(learning_rate=float("nan")), X, y, "learning_rate is nan, expected a finite number"),
        (CoxPH(ties="exact"), X, y, 'ties is "exact", expected "efron" or'),
        (CoxPH(strata=["age"]), X, y, 'strata names the covariate "age"'),
        (CoxPH(n_jobs=0), X, y, "n_jobs is 0"),
        (CoxPH(ridge=object()), X, y, "ridge is a object"),
        (CoxPH(), X, None, "requires y to be passed"),
        (CoxPH(), X, y["time"], "y is an array without an event beside it"),
        (CoxPH(), X[1:], y, "X has 199 rows and y 200"),
        (CoxPH(), np.where(np.eye(200, 3) == 1, np.nan, X), y, "NaN"),
        (CoxPH(), np.hstack([X, X[:, :1]]), y, "covariate \"0\" is a linear combination|covariate \"3\" is a linear combination"),
        (AFT(), X, surv(y["time"] * 0, y["event"]), "time of row 0 is 0, expected a time above 0"),
        (CoxPH(), X, surv(y["time"], np.zeros(200, bool)), "no sample has an event"),
    ]


def test_what_is_wrong_is_named():
    for model, X, y, message in refusals():
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    X, y = sample()
    with pytest.raises(estimators._base.NotFittedError, match="this CoxPH is not fitted yet"):
        CoxPH().predict(X)
    with pytest.raises(ValueError, match="features|columns"):
        CoxPH().fit(X, y).predict(X[:, 1:])
    with pytest.raises(fairtte.MetricError, match=r"times\[1\] is 1"):
        CoxPH().fit(X, y).predict_survival_function(X, times=[2.0, 1.0])
    with pytest.raises(fairtte.MetricError, match="the state is no fitted estimator"):
        _fairtte.Fitted.from_bytes(b"{}")


def test_grid_search_over_a_pipeline_with_the_scorers():
    pytest.importorskip("sklearn")
    pd = pytest.importorskip("pandas")
    from sklearn.base import clone
    from sklearn.compose import make_column_transformer
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from fairtte.sklearn import concordance_scorer, gap_scorer

    X, y = sample(300)
    features = pd.DataFrame(X, columns=["a", "b", "c"]).assign(sex=np.where(np.arange(300) % 2, "F", "M"))
    pipeline = make_pipeline(
        make_column_transformer((StandardScaler(), ["a", "b", "c"])), RandomSurvivalForest(n_estimators=15)
    )
    grid = {"randomsurvivalforest__max_depth": [1, 4], "randomsurvivalforest__random_state": [0, 1]}
    folds = KFold(3, shuffle=True, random_state=0)
    for scoring in (concordance_scorer(), gap_scorer("sex", weight=0.5), None):
        search = GridSearchCV(pipeline, grid, cv=folds, scoring=scoring, n_jobs=2, error_score="raise").fit(features, y)
        scores = search.cv_results_["mean_test_score"]
        assert len(set(scores)) == 4 and search.best_params_["randomsurvivalforest__max_depth"] == 4
        assert search.best_estimator_.predict(features).shape == (300,)
    # The mean over folds by hand.
    chosen = clone(pipeline).set_params(**search.cv_results_["params"][0])
    by_hand = [
        concordance_scorer()(clone(chosen).fit(features.iloc[train], y[train]), features.iloc[test], y[test])
        for train, test in folds.split(features)
    ]
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(by_hand), abs=1e-12)


def test_names_of_columns_are_kept_and_compared():
    pytest.importorskip("sklearn")
    pd = pytest.importorskip("pandas")
    X, y = sample()
    frame = pd.DataFrame(X, columns=["age", "dose", "site"])
    model = CoxPH(strata=["site"]).fit(frame.round({"site": 0}).clip(-1, 1), y)
    assert list(model.feature_names_in_) == ["age", "dose", "site"] and list(model.summary()["name"]) == ["age", "dose"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"age": "years"}))


def test_without_scikit_learn_the_contract_is_the_same():
    import subprocess
    import sys

    code = """
import sys, pickle
sys.modules["sklearn"] = None
sys.modules["sklearn.base"] = None
import numpy as np, pandas as pd
from fairtte.estimators import CoxPH, surv
import fairtte
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
y = surv(rng.exponential(size=50), np.ones(50, bool))
model = CoxPH(ridge=1.0).fit(X, y)
assert list(model.feature_names_in_) == ["a", "b"] and model.n_features_in_ == 2
again = pickle.loads(pickle.dumps(model))
assert (again.predict(X) == model.predict(X)).all() and again.get_params()["ridge"] == 1.0
for wrong in (X.rename(columns={"a": "c"}), X[["a"]]):
    try:
        model.predict(wrong)
    except fairtte.MetricError as error:
        print(error)
try:
    CoxPH().predict(X)
except ValueError as error:
    print(error)
try:
    CoxPH().set_params(alpha=1)
except fairtte.MetricError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [
        "X has the columns c, b, expected a, b",
        "X has 1 columns, expected 2, those of the fit",
        "this CoxPH is not fitted yet: call fit first",
        "alpha is no parameter of CoxPH, expected one of: ties, ridge, strata, errors, n_jobs",
    ]
