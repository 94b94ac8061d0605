"""The exceptions of the package."""


class FairtteError(Exception):
    """Any error of this package."""


class MetricError(FairtteError, ValueError):
    """An argument is wrong, or a number does not exist for this input. The message says which argument, what it is and
    what was expected."""


class InternalError(FairtteError, RuntimeError):
    """The package failed where it never should, whatever the input; the message says how to report it."""
