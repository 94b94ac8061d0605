"""The exceptions of the package."""

from __future__ import annotations


class FairtteError(Exception):
    """Any error of this package."""


class MetricError(FairtteError, ValueError):
    """An argument is wrong, or a number does not exist for this input. The message says which argument, what it is and
    what was expected."""


class DataError(FairtteError, ValueError):
    """A file, a column or a cell is not what it should be, or an option of :mod:`fairtte.data` is wrong. The message says which,
    what it is and what was expected."""


class RunError(FairtteError):
    """The program ``fairtte`` failed; ``exit_code`` is its code (2 usage, 3 run file, 4 data, 5 training) and the message its
    sentence."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[type[RunError], tuple[str, int]]:
        return (type(self), (str(self), self.exit_code))


class InternalError(FairtteError, RuntimeError):
    """The package failed where it never should, whatever the input; the message says how to report it."""
