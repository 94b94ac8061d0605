"""Values of scikit-survival and pycox, recorded from them.

Recorded by scikit-survival 0.28.0 (`record` of this file's first lines); sample: `conftest.Cohort(n=60, k=8)`.
"""

import numpy as np
import pytest

import fairtte
from fairtte import sksurv
from fairtte.sklearn import concordance_scorer, gap_scorer
from conftest import Cohort


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
    with pytest.raises(fairtte.MetricError, match='no column "age"'):
        gap_scorer("age")(Model(), features, c.y)
