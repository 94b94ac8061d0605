"""Worked cases of the maps of the probability of a class: `platt` and `isotonic`.

Platt: scipy `minimize` on the likelihood of Platt's targets written out, and scikit-learn's `_sigmoid_calibration`, which stops
earlier, to 1e-3. Isotonic: scikit-learn `IsotonicRegression(out_of_bounds="clip")`. Run with any Python that has both:

    python parity/class_recalibration.py > tests/golden/class_recalibration.json
"""

import json

import numpy as np
import scipy
import scipy.optimize
import sklearn
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression

LARGEST = 36.7368005696771


def logit(p):
    with np.errstate(divide="ignore"):
        return np.clip(np.log(p) - np.log1p(-p), -LARGEST, LARGEST)


def platt(p, y):
    x = logit(p)
    n1, n0 = y.sum(), (1 - y).sum()
    t = np.where(y == 1, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    loss = lambda w: np.sum(np.logaddexp(0, w[0] + w[1] * x) - t * (w[0] + w[1] * x))
    sigmoid = lambda w: 1 / (1 + np.exp(-(w[0] + w[1] * x)))
    slope = lambda w: np.array([np.sum(sigmoid(w) - t), np.sum((sigmoid(w) - t) * x)])
    start = scipy.optimize.minimize(loss, [0.0, 0.0], jac=slope, method="BFGS", options={"gtol": 1e-8}).x
    found = scipy.optimize.root(slope, start, tol=1e-14).x
    a, b = _sigmoid_calibration(x, y)
    assert np.allclose([-b, -a], found, atol=1e-3), (a, b, found)
    return [float(found[0]), float(found[1])]


def case(name, p, y, at):
    p, y, at = np.array(p, float), np.array(y, int), np.array(at, float)
    found = platt(p, y)
    of_platt = 1 / (1 + np.exp(-(found[0] + found[1] * logit(at))))
    of_isotonic = IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(at)
    return {
        "name": name,
        "probability": p.tolist(),
        "positive": y.tolist(),
        "at": at.tolist(),
        "platt": found,
        "of_platt": of_platt.tolist(),
        "of_isotonic": of_isotonic.tolist(),
    }


rng = np.random.default_rng(20)
truth = rng.uniform(0.05, 0.95, 60)
bent = 1 / (1 + np.exp(-(0.8 + 2.0 * np.log(truth / (1 - truth)))))
at = [0.001, 0.1, 0.33, 0.5, 0.77, 0.999]
cases = [
    case("overconfident", np.round(bent, 3), (rng.uniform(size=60) < truth).astype(int), at),
    case("separated", [0.1, 0.2, 0.3, 0.6, 0.7, 0.9], [0, 0, 0, 1, 1, 1], at),
    case("tied", [0.2, 0.2, 0.2, 0.5, 0.5, 0.8, 0.8, 0.8], [0, 1, 0, 1, 0, 1, 1, 0], at),
    case("reversed", [0.1, 0.3, 0.4, 0.6, 0.8, 0.9], [1, 1, 0, 1, 0, 0], at),
]
made_with = {"numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
print(json.dumps({"made_with": made_with, "cases": cases}, indent=1))
