"""The exceptions of the package."""

from __future__ import annotations


class FairtteError(Exception):
    """Any error of this package.

    >>> import fairtte
    >>> issubclass(fairtte.MetricError, fairtte.FairtteError), issubclass(fairtte.MetricError, ValueError)
    (True, True)
    """


class MetricError(FairtteError, ValueError):
    """An argument is wrong, or a number does not exist for this input. The message says which argument, what it is and
    what was expected.

    >>> import fairtte
    >>> fairtte.evaluate_binary([0.5, 1.5], [0, 1])
    Traceback (most recent call last):
    fairtte._errors.MetricError: probability[1] is 1.5, expected a number in [0, 1]
    """


class DataError(FairtteError, ValueError):
    """A file, a column or a cell is not what it should be, or an option of :mod:`fairtte.data` is wrong. The message says which,
    what it is and what was expected.

    >>> import fairtte
    >>> fairtte.read_run("no-such-folder")
    Traceback (most recent call last):
    fairtte._errors.DataError: no-such-folder has no cohort.parquet, expected the folder of a run
    """


class RunError(FairtteError):
    """The program ``fairtte`` failed; ``exit_code`` is its code (2 usage, 3 run file, 4 data, 5 training) and the message its
    sentence.

    >>> import fairtte
    >>> fairtte.RunError("cannot read run file", 3).exit_code
    3
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[type[RunError], tuple[str, int]]:
        return (type(self), (str(self), self.exit_code))


class FairtteWarning(UserWarning):
    """What must be read before the numbers of an evaluation: all predictions are equal, the ranking is not shown to be better than
    guessing, groups are censored differently. :attr:`fairtte.Evaluation.notes` has the same sentence.

    >>> import warnings, fairtte
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = fairtte.evaluate_binary([0.5] * 4, [1, 1, 0, 0], replicates=0, permutations=0)
    >>> caught[0].category is fairtte.FairtteWarning, str(caught[0].message) == found.notes[0]
    (True, True)
    """


class InternalError(FairtteError, RuntimeError):
    """The package failed where it never should, whatever the input; the message says how to report it.

    >>> import fairtte
    >>> issubclass(fairtte.InternalError, RuntimeError)
    True
    """
