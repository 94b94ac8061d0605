"""The blocks of code of the pages that show this package: they run in their order, and print what the page shows.

A block behind `<!-- needs .. -->` is left out. `FAIRTTE_WRITE_PAGES=1` writes what was printed into the pages, and the figure."""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(<!-- needs [^\n]*-->\n)?```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
needs_frames = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documentation is not here")


def run(page, before, folder):
    """Runs the blocks of a page behind `before` in one namespace; returns the page with what they printed."""
    pytest.importorskip("matplotlib").use("Agg")
    pytest.importorskip("pandas")
    text = page.read_text(encoding="utf-8")
    names, found, end, n_run = dict(before), [], 0, 0
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in BLOCK.finditer(text):
            if block.group(1):
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.group(2), f"{page.name}: {block.group(2)[:30]}", "exec"), names)
            n_run += 1
            if block.group(3) is None:
                assert printed.getvalue() == "", f"{page.name} shows no output of {block.group(2)}"
                continue
            found += [text[end : block.start(3)], printed.getvalue()]
            end = block.end(3)
    assert n_run > 0
    return "".join([*found, text[end:]])


def sample():
    """What the README says that the reader has."""
    names = {}
    block = next(BLOCK.finditer((ROOT / "docs" / "src" / "python.md").read_text(encoding="utf-8"))).group(2)
    exec(block.split("found = ")[0], names)
    return names


@needs_frames
def test_the_page_of_the_package(tmp_path):
    page = ROOT / "docs" / "src" / "python.md"
    found = run(page, {}, tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 10_000 and (tmp_path / "class.html").exists()
    figure = (tmp_path / "forest.svg").read_text(encoding="utf-8")
    shown = page.parent / "python" / "forest.svg"
    if os.environ.get("FAIRTTE_WRITE_PAGES"):
        page.write_text(found, encoding="utf-8")
        shown.parent.mkdir(exist_ok=True)
        shown.write_text(figure, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == found
    assert shown.exists()


@needs_frames
@pytest.mark.parametrize("name", ["README.md", "python/README.md"])
def test_the_readmes(tmp_path, name):
    before = sample() if name == "README.md" else {}
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = [block.group(2) for block in BLOCK.finditer(text) if "fairtte.evaluate(" in block.group(2)]
    assert len(blocks) == 1
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.chdir(tmp_path)
        exec(compile(blocks[0], name, "exec"), before)
    assert "Evaluation of model" in (tmp_path / "report.html").read_text(encoding="utf-8")
