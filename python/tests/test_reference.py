"""The reference is that of the docstrings, and says of everything public what it is."""

import importlib
import inspect
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

reference = pytest.importorskip("reference")


def public():
    for name in reference.MODULES:
        module = importlib.import_module(name)
        for found in (getattr(module, public) for public in module.__all__ if not public.startswith("__")):
            yield found
            if inspect.isclass(found):
                yield from (member for _, member in reference.members(found))


def test_everything_public_has_a_text():
    without = [found for found in public() if not inspect.getdoc(found)]
    assert not without and len(list(public())) > 120


def name_of(found):
    return getattr(found.fget if isinstance(found, property) else found, "__qualname__")


def test_everything_public_has_an_example():
    # The properties of a run folder are in the example of `Run`.
    without = {name_of(found) for found in public() if ">>>" not in inspect.getdoc(found)}
    assert without == {"Run.is_done", "Run.report", "Run.selection", "Run.settings", "Run.page"}


def test_every_function_says_what_it_raises():
    functions = {name_of(found): found for found in public() if inspect.isfunction(found)}
    without = {name for name, found in functions.items() if "aises" not in inspect.getdoc(found)}
    # These show what was found.
    shown = {f"{kind}.{name}" for kind in ("Evaluation", "ClassEvaluation", "BiasSources") for name in ("to_dict", "to_json", "to_html")}
    assert without <= shown | {"metric_names", "class_metric_names"}, without


@pytest.mark.skipif(not reference.PAGE.parent.exists(), reason="the documentation is not here")
def test_the_page_is_that_of_the_docstrings():
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run python reference.py"
