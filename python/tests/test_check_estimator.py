"""scikit-learn's own checks of estimators.

Its targets are numbers; the checked classes read them as times without censoring, the only change. Excluded checks are in
`EXCLUDED` with the reason.
"""

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from fairtte import estimators  # noqa: E402


def as_outcomes(y):
    """Numbers as times above 0 without censoring; what is no vector of numbers stays as it is."""
    if y is None or isinstance(y, tuple) or getattr(getattr(y, "dtype", None), "names", None):
        return y
    from sklearn.utils.validation import column_or_1d

    times = column_or_1d(y, dtype=np.float64, warn=True)
    if not np.all(np.isfinite(times)):
        raise ValueError("y contains NaN or infinity")
    return estimators.surv(times - times.min() + 1.0, np.ones(len(times), dtype=bool))


def checked(base, **parameters):
    class Checked(base):
        def fit(self, X, y):
            return super().fit(X, as_outcomes(y))

        def score(self, X, y):
            return super().score(X, as_outcomes(y))

    # Pickles find a class by its name.
    Checked.__name__ = Checked.__qualname__ = f"Checked{base.__name__}"
    Checked.__init__ = base.__init__
    globals()[Checked.__name__] = Checked
    return Checked(**parameters)


MODELS = [
    checked(estimators.CoxPH, ridge=1.0),
    checked(estimators.CoxElasticNet, lambdas=5, folds=2),
    checked(estimators.CoxTimeVarying, ridge=1.0),
    checked(estimators.LogisticHazard),
    checked(estimators.AFT, penalty=0.1),
    checked(estimators.RandomSurvivalForest, n_estimators=5),
    checked(estimators.GradientBoostedCox, n_estimators=5),
]
EXCLUDED = {
    "LogisticHazard": {
        "check_fit2d_1sample": "one sample is refused, in a sentence on its interval, which the check does not know",
    },
}


@parametrize_with_checks(MODELS, expected_failed_checks=lambda model: EXCLUDED.get(type(model).__mro__[1].__name__, {}))
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)
