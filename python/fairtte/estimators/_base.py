"""What all estimators share: columns, outcomes, predictions and their state."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _fairtte, _inputs, _labels, _settings
from .._errors import FairtteError, MetricError
from ._curves import StepFunction

if TYPE_CHECKING:
    from typing_extensions import Self

try:
    from sklearn.base import BaseEstimator as _Base
    from sklearn.exceptions import NotFittedError as _NotFitted
    from sklearn.utils.validation import validate_data as _validate_data
except ImportError:
    _validate_data = None

    class _NotFitted(ValueError, AttributeError):  # type: ignore[no-redef]
        pass

    class _Base:  # type: ignore[no-redef]
        """Parameters as scikit-learn's ``BaseEstimator`` has them."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """The parameters by name."""
            return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

        def set_params(self, **parameters: Any) -> Self:
            """Sets parameters; an unknown one is an error."""
            known = self.get_params()
            for name, value in parameters.items():
                if name not in known:
                    raise MetricError(f"{name} is no parameter of {type(self).__name__}, expected one of: {', '.join(known)}")
                setattr(self, name, value)
            return self


# Whichever of the two it is, for other modules.
Parameters = _Base


class NotFittedError(FairtteError, _NotFitted):  # type: ignore[misc, unused-ignore]
    """The estimator predicts before :meth:`fit`; also scikit-learn's ``NotFittedError`` where that is installed."""


class Estimator(_Base):  # type: ignore[misc, unused-ignore]
    """An estimator of ``fairtte-classical``."""

    _name: str
    # Parameters that have another name in run files.
    _keys: dict[str, str] = {"n_estimators": "trees", "max_features": "columns-per-split", "random_state": "seed"}
    n_jobs: int | None
    _fitted: _fairtte.Fitted

    def _settings(self) -> dict[str, Any]:
        """The parameters as keys of a run file; one that is None is left to its default there."""
        found = {}
        for name, value in self.get_params(deep=False).items():
            if name == "n_jobs" or value is None:
                continue
            if name == "random_state":
                value = _seed(value)
            found[self._keys.get(name, name.replace("_", "-"))] = _plain(value, name)
        return found

    def _threads(self) -> int | None:
        jobs = self.n_jobs
        if jobs is None or jobs == -1:
            return None
        if not isinstance(jobs, int | np.integer) or jobs < 1:
            raise MetricError(f"n_jobs is {jobs}, expected a whole number >= 1, -1 or None")
        return int(jobs)

    def fit(self, X: Any, y: Any) -> Self:
        """Fits to covariates ``X`` ``[n, p]`` (finite numbers; a data frame gives the columns their names) and outcomes
        ``y``, a ``Surv`` array or ``(time, event)``.

        Raises :class:`fairtte.MetricError` for a parameter out of range and where the model cannot be fitted.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> model = CoxPH(ridge=1.0).fit(X, y)
        >>> model.n_features_in_
        1
        """
        return self._fit(X, y, None)

    def _fit(self, X: Any, y: Any, subject: Any) -> Self:
        if y is None:
            raise MetricError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        settings = json.dumps(self._settings())
        covariates = self._covariates(X, reset=True)
        _labels.require_one_order(X=X, y=list(y) if isinstance(y, tuple) else y, subject=subject)
        time, event = _outcomes(y)
        if len(time) != len(covariates):
            raise MetricError(f"X has {len(covariates)} rows and y {len(time)}, expected as many")
        most = getattr(self, "max_features", None)
        if isinstance(most, int | np.integer) and most > covariates.shape[1]:
            raise MetricError(f"max_features is {most}, expected at most {covariates.shape[1]}, the columns of X")
        names = getattr(self, "feature_names_in_", None)
        columns = [str(name) for name in names] if names is not None else [str(k) for k in range(covariates.shape[1])]
        subjects = None
        if subject is not None:
            values = _inputs.values_of(subject, "subject")
            if None in values:
                raise MetricError(f"subject[{values.index(None)}] is missing")
            subjects = [_inputs.text(value) for value in values]
        self._fitted = _fairtte.fit_estimator(
            self._name, settings, covariates, columns, time, event, subjects, self._threads()
        )
        self.unique_times_: NDArray[np.float64] = np.unique(time)
        return self

    def _covariates(self, X: Any, reset: bool) -> NDArray[Any]:
        if not reset and not hasattr(self, "_fitted"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        if isinstance(X, np.ma.MaskedArray):
            raise MetricError("X is a masked array, expected one without missing values")
        X = _inputs.without_tensors(X, "X")
        if _validate_data is not None:
            # Its sentences are part of scikit-learn's contract.
            return _inputs.regular(_validate_data(self, X, reset=reset, dtype=[np.float64, np.float32]))
        found = _inputs.matrix(X, "X")
        names = [str(name) for name in X.columns] if _inputs.is_frame(X) else None
        if reset:
            self.n_features_in_: int = found.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_: NDArray[Any] = np.array(names, dtype=object)
        elif found.shape[1] != self.n_features_in_:
            raise MetricError(f"X has {found.shape[1]} columns, expected {self.n_features_in_}, those of the fit")
        elif names is not None and hasattr(self, "feature_names_in_") and names != list(self.feature_names_in_):
            raise MetricError(f"X has the columns {', '.join(names)}, expected {', '.join(self.feature_names_in_)}")
        return found

    def predict(self, X: Any) -> NDArray[np.float64]:
        """One risk per row of ``X``, ``[n]``: higher = the event is expected earlier.

        Raises :class:`fairtte.MetricError` for other columns than those of the fit.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> model = CoxPH(ridge=1.0).fit(X, y)
        >>> model.predict(X[:2]).shape
        (2,)
        """
        covariates = self._covariates(X, reset=False)
        return self._fitted.risk(covariates, self._threads())

    def predict_survival_function(self, X: Any, return_array: bool = False, times: Any = None) -> Any:
        """The probability to be free of the event, as in scikit-survival.

        Parameters
        ----------
        X : array or data frame [n, p]
        return_array : bool
            Whether to return an array ``[n, k]`` at ``unique_times_`` (all observed times of the fit) in place of
            ``[n]`` functions of time (:class:`StepFunction`).
        times : array [k]
            Other times, increasing, for the array or the steps; 54,000 samples at as many times take 23 GB. After the last observed
            time of the fit the last value stays; the curve of an ``AFT`` continues.

        Raises
        ------
        MetricError
            For other columns than those of the fit, and times that do not increase.

        Examples
        --------
        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> model = CoxPH(ridge=1.0).fit(X, y)
        >>> model.predict_survival_function(X[:2], return_array=True, times=[0.5, 1.5]).shape
        (2, 2)
        >>> model.predict_survival_function(X[:2])[0](0.5)
        1.0
        """
        covariates = self._covariates(X, reset=False)
        grid = self.unique_times_ if times is None else _inputs.numbers(times, "times")
        curves = self._fitted.survival(covariates, grid, self._threads())
        if return_array:
            return curves
        functions = np.empty(len(curves), dtype=object)
        functions[:] = [StepFunction(grid, curve) for curve in curves]
        return functions

    def predict_cumulative_hazard_function(self, X: Any, return_array: bool = False, times: Any = None) -> Any:
        """The cumulative hazard, -log of :meth:`predict_survival_function`, with the same arguments; infinite where the
        survival is 0. Functions are 0 before the first time.

        Of a forest scikit-survival averages the cumulative hazards of its trees, which is another number than -log of their mean
        survival.

        Raises :class:`fairtte.MetricError` as :meth:`predict_survival_function`.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> model = CoxPH(ridge=1.0).fit(X, y)
        >>> model.predict_cumulative_hazard_function(X[:2])[0](0.5)
        0.0
        """
        functions = self.predict_survival_function(X, return_array=return_array, times=times)
        if return_array:
            with np.errstate(divide="ignore"):
                # Not the negative: 0 has no sign.
                return 0.0 - np.log(functions)
        found = np.empty(len(functions), dtype=object)
        with np.errstate(divide="ignore"):
            found[:] = [StepFunction(function.x, 0.0 - np.log(function.y), before=0.0) for function in functions]
        return found

    def score(self, X: Any, y: Any) -> float:
        """Harrell's C of :meth:`predict` for the outcomes ``y``.

        Raises :class:`fairtte.MetricError` without comparable samples, and where labels of pandas differ.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> model = CoxPH(ridge=1.0).fit(X, y)
        >>> 0.5 <= model.score(X, y) <= 1.0
        True
        """
        from ..sksurv import concordance_index_censored

        _labels.require_one_order(X=X, y=list(y) if isinstance(y, tuple) else y)
        time, event = _outcomes(y)
        return concordance_index_censored(event, time, self.predict(X))[0]

    def to_dict(self) -> dict[str, Any]:
        """The fitted model as ``estimator.json`` of a run has it: coefficients with standard errors, trees, ..

        Raises scikit-learn's ``NotFittedError`` before :meth:`fit`.

        >>> import numpy as np
        >>> from fairtte.estimators import CoxPH, surv
        >>> X, y = np.arange(6.0)[:, None] % 4, surv([5, 4, 3, 2, 6, 1], [1, 1, 0, 1, 1, 1])
        >>> model = CoxPH(ridge=1.0).fit(X, y)
        >>> [found["name"] for found in model.to_dict()["coefficients"]]
        ['0']
        """
        if not hasattr(self, "_fitted"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        found: dict[str, Any] = json.loads(self._fitted.to_bytes())[self._name]
        return found

    def __getstate__(self) -> dict[str, Any]:
        inherited = getattr(super(), "__getstate__", None)
        state = dict(inherited()) if _validate_data is not None and inherited else dict(self.__dict__)
        if "_fitted" in state:
            state["_fitted"] = state["_fitted"].to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_fitted" in state:
            state["_fitted"] = _fairtte.Fitted.from_bytes(state["_fitted"])
        if _validate_data is not None:
            super().__setstate__(state)
        else:
            self.__dict__.update(state)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _outcomes(y: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Times and events of a ``Surv`` array or ``(time, event)``."""
    if not isinstance(y, tuple):
        return _inputs.outcomes(y, None, "y")
    if len(y) != 2:
        raise MetricError(f"y has {len(y)} parts, expected (time, event)")
    return _inputs.outcomes(*y)


def _seed(value: Any) -> int:
    """A seed from a whole number or a generator of NumPy, as scikit-learn's ``random_state``."""
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**31 - 1))
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**31 - 1))
    if isinstance(value, int | np.integer) and value >= 0:
        return int(value)
    raise MetricError(f"random_state is {value!r}, expected a whole number >= 0, a generator of NumPy or None")


def _plain(value: Any, name: str) -> Any:
    """A parameter as JSON has it; words may have underscores."""
    value = _settings.plain(value)
    if isinstance(value, dict):
        return {str(key).replace("_", "-"): _plain(item, name) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        raise MetricError(f"{name} is {value}, expected a finite number")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise MetricError(f"{name} is a {type(value).__name__}, expected numbers, text or lists of them")
