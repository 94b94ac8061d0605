"""Examples of methods go on with what the example of their class has made."""

import doctest
import importlib

import pytest


@pytest.fixture(autouse=True)
def what_the_class_has_made(request, doctest_namespace):
    """Runs the example of the class of :mod:`fairtte.data` that the method of a doctest belongs to."""
    doctest_namespace.clear()
    if isinstance(request.node, pytest.DoctestItem) and request.node.name.startswith("fairtte.data."):
        module, kind, *method = request.node.name.removeprefix("fairtte.data.").split(".")
        if method:
            text = getattr(importlib.import_module(f"fairtte.data.{module}"), kind).__doc__
            for example in doctest.DocTestParser().get_examples(text):
                exec(compile(example.source, kind, "single"), doctest_namespace)
