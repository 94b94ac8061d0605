"""The choice of one run among several, by the criteria of MEDFAIR (Zong et al. 2023)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _fairtte, _inputs, _settings
from ._errors import MetricError
from .classes import ClassEvaluation
from .evaluation import Evaluation

_AN = {"Evaluation": "an Evaluation", "ClassEvaluation": "a ClassEvaluation"}
_CRITERIA = ("overall", "minimax", "dto", "fairness")


class Selection:
    """The result of :func:`select`: ``chosen``, the name of the run to keep (None if no run qualifies), and ``table``.

    >>> from fairtte import select
    >>> select({"run": ["erm", "dro"], "c": [0.80, 0.78]}, "c", name="run")
    Selection(chosen='erm', n_runs=2)
    """

    def __init__(self, found: dict[str, Any], kind: str) -> None:
        self.chosen: str | None = found["chosen"]
        self._found = found
        self._kind = kind

    @property
    def table(self) -> Any:
        """A data frame with one row per run: run, value of the criterion, standing (``chosen``, ``eligible``,
        ``dominated``, ``too-much-loss``, ``excluded``) and, of an excluded one, the reason.

        >>> from fairtte import select
        >>> list(select({"run": ["erm", "dro"], "c": [0.80, None]}, "c", name="run").table["standing"])
        ['chosen', 'excluded']
        """
        rows = []
        for run in self._found["runs"]:
            standing = run["standing"]
            name = standing if isinstance(standing, str) else next(iter(standing))
            detail = None if isinstance(standing, str) else ", ".join(f"{key} {of}" for key, of in standing[name].items())
            rows.append({"run": run["run"], "value": run["value"], "standing": name, "reason": detail})
        for run in self._found["excluded"]:
            rows.append({"run": run["run"], "value": None, "standing": "excluded", "reason": run["reason"]})
        return _inputs.to_frame(rows, ("run", "value", "standing", "reason"), self._kind)

    def __repr__(self) -> str:
        return f"Selection(chosen={self.chosen!r}, n_runs={len(self._found['runs'])})"


def select(
    runs: Any,
    utility: str | None = None,
    groups: Sequence[str] | None = None,
    *,
    by: str = "overall",
    name: str | None = None,
    gap: str | None = None,
    metric: str | None = None,
    attribute: str | None = None,
    higher_is_better: bool | None = None,
    worst_group: str = "of-each-run",
    base_utility: float | None = None,
    tolerated_loss: float = 0.05,
    no_skill: float | None = None,
) -> Selection:
    """Chooses one of several runs by their values on a validation sample.

    Parameters
    ----------
    runs : data frame or dict of columns, or dict of Evaluations
        One row per run; or by name of the run what :func:`fairtte.evaluate` or :func:`fairtte.evaluate_binary` returned, all on the
        same samples.
    utility : str
        Of a frame, the column with the value over all samples.
    groups : list of str
        Of a frame, the columns with the value of every group.
    by : str
        ``"overall"``: the best utility. ``"minimax"``: the best worst group among the runs that no other dominates in every
        group. ``"dto"``: the smallest relative distance to the best value of every group. ``"fairness"``: the smallest gap
        among the runs that lose at most ``tolerated_loss`` against ``base_utility``.
    name, gap : str
        Of a frame, the columns with names and gaps (>= 0). Default names: the number of the row.
    metric, attribute : str
        Of Evaluations, the metric (default: the first) and the attribute (default: the only one).
    higher_is_better : bool
        Of the utility, default: True; Evaluations know it.
    worst_group : "of-each-run" or "of-all-runs"
        Of ``"minimax"``: MEDFAIR's definition, or the one group of its published analysis.
    base_utility, tolerated_loss, no_skill : float
        Of ``"fairness"``: utility of the model that was trained without regard to fairness; share of it, or of its distance to
        ``no_skill`` (0.5 of a C), that may be lost.

    Raises
    ------
    MetricError
        For columns that are not there, names that repeat, numbers out of range, a criterion that does not fit, and Evaluations on
        different samples.

    Examples
    --------
    >>> from fairtte import select
    >>> runs = {"run": ["erm", "dro"], "c": [0.80, 0.78], "c_F": [0.82, 0.78], "c_M": [0.70, 0.77]}
    >>> select(runs, "c", name="run").chosen
    'erm'
    >>> select(runs, "c", ["c_F", "c_M"], name="run", by="minimax").chosen
    'dro'
    """
    if by not in _CRITERIA:
        raise MetricError(f'by is "{by}", expected one of: {", ".join(_CRITERIA)}')
    for key, value in (("base_utility", base_utility), ("no_skill", no_skill)):
        if value is not None and by != "fairness":
            raise MetricError(f'{key} is {_settings.plain(value)!r} with by="{by}", which does not read it, expected by="fairness"')
    kind = "pandas"
    if isinstance(runs, Mapping) and runs and all(isinstance(value, Evaluation | ClassEvaluation) for value in runs.values()):
        if utility is not None or groups is not None or gap is not None or name is not None:
            raise MetricError("utility, groups, gap and name are columns of a frame, expected metric and attribute")
        if higher_is_better is not None:
            raise MetricError("higher_is_better is given with Evaluations, which know it")
        table = _of_evaluations(runs, metric, attribute, needs_groups=by != "overall")
        kind = next(iter(runs.values()))._kind
    else:
        if metric is not None or attribute is not None:
            raise MetricError("metric and attribute are for Evaluations, expected utility and groups")
        is_higher_better = higher_is_better is None or _settings.flag(higher_is_better, "higher_is_better")
        columns = _inputs.columns(runs, "runs")
        kind = _inputs.frame_library(runs)
        table = _of_columns(columns, utility, groups, name, gap, is_higher_better)
    if by == "fairness" and base_utility is None:
        raise MetricError('base_utility is None, expected the utility of the base model for by="fairness"')
    criterion: Any = {"overall": "best-utility", "dto": "distance-to-optimum"}.get(by)
    if by == "minimax":
        criterion = {"minimax-pareto": {"worst_group": worst_group}}
    elif by == "fairness":
        settings = {"base_utility": base_utility, "tolerated_loss": tolerated_loss, "no_skill": no_skill}
        criterion = {"best-fairness": {key: _number_of(value, key) for key, value in settings.items()}}
    return Selection(json.loads(_fairtte.select(json.dumps(table), json.dumps(criterion))), kind)


def _number_of(value: Any, name: str) -> Any:
    return None if value is None else _settings.of_json(_settings.number(value, name), name)


def _measured(value: Any, reason: str) -> dict[str, Any]:
    known = value is not None and value == value
    return {"value": float(value)} if known else {"undefined": reason}


def _of_columns(
    columns: dict[str, Any],
    utility: str | None,
    groups: Sequence[str] | None,
    name: str | None,
    gap: str | None,
    higher_is_better: bool,
) -> dict[str, Any]:
    def column(key: str | None, what: str) -> list[Any]:
        if key is None or key not in columns:
            raise MetricError(f"{what} is {key!r}, expected one of the columns {', '.join(columns)}")
        return _inputs.values_of(columns[key], f'runs["{key}"]')

    def numbers(key: str | None, what: str) -> list[Any]:
        return [_number_of(value, f'runs["{key}"][{row}]') for row, value in enumerate(column(key, what))]

    of_all = numbers(utility, "utility")
    group_names = [] if groups is None else _settings.names(groups, "groups")
    of_groups = [numbers(key, "groups") for key in group_names]
    gaps = numbers(gap, "gap") if gap is not None else [None] * len(of_all)
    names = column(name, "name") if name is not None else list(range(len(of_all)))
    for key, values in [(name, names), (gap, gaps), *zip(group_names, of_groups, strict=True)]:
        if len(values) != len(of_all):
            raise MetricError(f'runs["{key}"] has {len(values)} values, expected {len(of_all)}')
    rows = [
        {
            "run": _inputs.text(names[row]),
            "utility": _measured(of_all[row], "missing"),
            "group-utilities": [_measured(values[row], "missing") for values in of_groups],
            "gap": _measured(gaps[row], "missing"),
        }
        for row in range(len(of_all))
    ]
    direction = "higher-is-better" if higher_is_better else "lower-is-better"
    return {"direction": direction, "groups": group_names, "runs": rows}


def _of_evaluations(
    runs: Mapping[str, Evaluation | ClassEvaluation], metric: str | None, attribute: str | None, needs_groups: bool
) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    direction, levels = "", None
    first_run, first = next(iter(runs.items()))
    for run, evaluation in runs.items():
        if type(evaluation) is not type(first):
            raise MetricError(f'"{run}" is a {type(evaluation).__name__}, expected {_AN[type(first).__name__]} as "{first_run}"')
        found = evaluation._metric(metric)
        if found is None:
            raise MetricError(f'"{run}" has no metric "{metric}", expected one of its evaluation')
        if found.get("target") is not None or found.get("no-best"):
            raise MetricError(f'metric "{metric}" has no better direction, expected one of order or accuracy')
        direction = "higher-is-better" if found["higher-is-better"] else "lower-is-better"
        attributes = {entry["attribute"]: entry for entry in found["attributes"]}
        key = attribute if attribute is not None else next(iter(attributes)) if len(attributes) == 1 else None
        if (needs_groups or attribute is not None) and key not in attributes:
            raise MetricError(f"attribute is {attribute!r}, expected one of: {', '.join(attributes) or 'none, there are no groups'}")
        entry: dict[str, Any] = attributes[key] if key in attributes else {"groups": [], "gap": {"undefined": "there is no attribute"}}
        own = [group["level"] for group in entry["groups"]]
        inner: Any = evaluation._inner
        if (levels is None or own == levels) and not inner.is_of_same_samples(first._inner, key):
            raise MetricError(f'"{run}" has other times, events or groups than "{first_run}", expected evaluations of the same samples')
        if levels is not None and own != levels:
            raise MetricError(f'"{run}" has the groups {", ".join(own)}, expected {", ".join(levels)} as the first run')
        levels = own
        rows.append(
            {
                "run": str(run),
                "utility": _estimate(found["overall"]),
                "group-utilities": [_estimate(group["estimate"]) for group in entry["groups"]],
                "gap": _estimate(entry["gap"]),
            }
        )
    return {"direction": direction, "groups": levels or [], "runs": rows}


def _estimate(found: Mapping[str, Any]) -> dict[str, Any]:
    return _measured(found.get("value"), found.get("undefined") or "undefined")
