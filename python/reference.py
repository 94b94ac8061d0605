"""Writes docs/src/python-reference.md from the docstrings of the package: `python reference.py`; a test compares the two."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "src" / "python-reference.md"
MODULES = [
    "fairtte", "fairtte.data", "fairtte.estimators", "fairtte.stats", "fairtte.sklearn", "fairtte.sksurv", "fairtte.pycox",
    "fairtte.survival_eval",
]  # fmt: skip
HEAD = """# Reference of the Python package

Made from the docstrings by `python/reference.py`; the examples are run by the tests. For the way in: [Python](python.md).
"""


def signature(found: object) -> str:
    """The arguments without types, which the text and the stubs have; defaults stay."""
    try:
        inner = inspect.signature(found)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    own = [p.replace(annotation=inspect.Parameter.empty) for name, p in inner.parameters.items() if name != "self"]
    return str(inner.replace(parameters=own, return_annotation=inspect.Signature.empty))


def words(text: str) -> str:
    """Roles of reStructuredText as code."""
    return re.sub(r":\w+:`~?\.?([^`]+)`", r"`\1`", text).replace("``", "`")


def as_markdown(text: str) -> str:
    """A docstring: headings of NumPy's style in bold, their entries as a list, examples as code."""
    lines, found, section, in_code = inspect.cleandoc(text).splitlines(), [], "", False
    for place, line in enumerate(lines):
        if set(line) == {"-"} and place:
            section = lines[place - 1]
            found[-1:] = [f"**{section}**", ""]
            continue
        if line.startswith(">>>") and not in_code:
            found += ["", "```python"] if found and found[-1] else ["```python"]
            in_code = True
        elif in_code and not line.strip():
            found.append("```")
            in_code = False
        if in_code:
            found.append(line)
        elif section and section != "Returns" and line and not line.startswith(" "):
            found.append(f"- `{line}`" if " : " in line or section != "Raises" else f"- `{line}`:")
        else:
            found.append(words(line))
    return "\n".join([*found, *(["```"] if in_code else [])]).strip()


def members(found: type) -> list[tuple[str, object]]:
    """Public methods and properties that the class or a base of this package defines, in their order."""
    named: dict[str, object] = {}
    for base in reversed(found.__mro__):
        if base.__module__.startswith("fairtte"):
            named |= {name: member for name, member in vars(base).items() if not name.startswith("_")}
    return [(name, member) for name, member in named.items() if callable(member) or isinstance(member, property)]


def entry(name: str, found: object, level: str) -> list[str]:
    """Heading, arguments and text of one name."""
    text = inspect.getdoc(found) or ""
    return [f"{level} `{name}{signature(found) if callable(found) else ''}`", "", as_markdown(text), ""]


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for name in MODULES:
        module = importlib.import_module(name)
        lines += [f"## {name}", "", as_markdown(module.__doc__ or ""), ""]
        for public in module.__all__:
            found = getattr(module, public)
            if public.startswith("__"):
                continue
            lines += entry(public, found, "###")
            if inspect.isclass(found) and not issubclass(found, Exception):
                for member, inner in members(found):
                    lines += entry(f"{public}.{member}", inner, "####")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
