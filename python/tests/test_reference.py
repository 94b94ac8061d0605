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


def test_every_function_has_an_example_or_needs_files():
    # What reads files of others, runs the program, draws or needs two evaluations has its example in python.md.
    elsewhere = {"mimic_cxr", "adni", "areds", "train", "study", "read_run", "cd_diagram"}
    functions = {found.__name__: found for found in public() if inspect.isfunction(found) and "." not in found.__qualname__}
    without = {name for name, found in functions.items() if ">>>" not in inspect.getdoc(found)}
    assert without <= elsewhere, without - elsewhere


@pytest.mark.skipif(not reference.PAGE.parent.exists(), reason="the documentation is not here")
def test_the_page_is_that_of_the_docstrings():
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run python reference.py"
