"""The page docs/src/python.md: its blocks of Python run in order, and print what the blocks of text after them say."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import fairtte
from fairtte import program

PAGE = Path(__file__).parents[2] / "docs" / "src" / "python.md"


def blocks():
    """Every block of Python with what it prints, None where the page does not say; each block with its line."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.finditer(r"^```python(?P<needs>,\w+)?\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```$)?", text, re.M | re.S)
    return [(text[: block.start()].count("\n") + 2, block["needs"], block["code"], block["printed"]) for block in found]


def has_program():
    try:
        program.find_program()
    except fairtte.FairtteError:
        return False
    return True


def write_images(folder):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(3)
    rows = ["image,person,time,event,sex,age"]
    for k in range(120):
        image.fromarray(rng.integers(0, 256, (24, 24), dtype=np.uint8)).save(folder / f"{k}.png")
        rows.append(f"{k}.png,p{k},{rng.exponential(3) + 0.01:.4f},{k % 3 > 0:d},{'FM'[k % 2]},{40 + k % 40}")
    (folder / "cohort.csv").write_text("\n".join([*rows, "120.png,p120,,1,F,50"]))
    (folder / "run.toml").write_text(
        'output = "run"\n[data.tabular]\ntable = "cohort.csv"\nsubject = "person"\nnumeric = ["age"]\n'
        '[[attribute]]\nname = "sex"\n[estimator.cox]\n[evaluation]\nreplicates = 20\n'
    )


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
def test_the_blocks_of_the_page_run_and_print_what_it_says(tmp_path, monkeypatch):
    for package in ("pandas", "sklearn", "tqdm"):
        pytest.importorskip(package)
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path)
    found, names = blocks(), {"__name__": "page"}
    assert len(found) >= 12 and sum(printed is not None for *_, printed in found) >= 8
    for line, needs, code, printed in found:
        if needs == ",program" and not has_program():
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("\n" * (line - 1) + code, str(PAGE), "exec"), names)
        if printed is not None:
            # A missing text is None before pandas 3 and NaN from then on.
            trimmed = "\n".join(text.rstrip() for text in output.getvalue().splitlines()).replace("None", " NaN")
            assert trimmed == printed.rstrip("\n").replace("None", " NaN"), f"line {line} of the page"
    for name in ("report.html", "class.html", "forest.svg"):
        assert (tmp_path / name).stat().st_size > 1000
