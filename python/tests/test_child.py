"""How the program is started and read as a child process."""

import contextlib
import stat
import sys

import numpy as np
import pytest

import fairtte
from fairtte import program


def of_python(folder, code, name="program"):
    (folder / "child.py").write_text(code)
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder / "child.py"}" "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


def test_a_program_of_the_working_folder_is_not_looked_for_in_path(tmp_path, monkeypatch):
    here, elsewhere = tmp_path / "a folder", tmp_path / "bin"
    for folder in (here, elsewhere):
        folder.mkdir()
        of_python(folder, f"print({folder.name!r})", "fairtte")
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", str(elsewhere), prepend=":")
    for name in ("./fairtte", "fairtte"):
        assert program.run_program([], program=name, quiet=True) == "a folder\n"
    monkeypatch.setenv("FAIRTTE_PROGRAM", "./fairtte")
    assert program.run_program([], quiet=True) == "a folder\n" and program.find_program() == here / "fairtte"


@pytest.mark.parametrize("encoding", ["ascii", "closed"])
def test_what_cannot_be_shown_does_not_stop_the_program(tmp_path, encoding):
    # More than a pipe holds, in a letter that the stream has no code for.
    loud = "import sys\nsys.stderr.reconfigure(encoding='utf-8')\nfor _ in range(5000): print('é' * 40, file=sys.stderr)\n"
    child = of_python(tmp_path, loud + "print('done')")
    with open(tmp_path / "log", "w", encoding="ascii") as log:
        if encoding == "closed":
            log.close()
        with contextlib.redirect_stderr(log):
            assert program.run_program([], program=child) == "done\n"
    if encoding == "ascii":
        # Other letters are shown by their numbers, and all lines are.
        assert (tmp_path / "log").read_text(encoding="ascii") == ("\\xe9" * 40 + "\n") * 5000


def test_settings_of_single_precision_are_their_decimals(tmp_path):
    echo = of_python(tmp_path, "import sys\nfor part in sys.argv[1:]: print(part, file=sys.stderr)")
    given = {"a": np.float32(1e-3), "b": np.array([0.1, 0.2], dtype=np.float32), "c": {"d": [np.float32(0.7)]}}
    printed = fairtte.study("s.toml", set=given, program=echo, quiet=True)
    assert [line for line in printed.splitlines()[3:] if line != "--set"] == ["a=0.001", "b=[0.1, 0.2]", 'c={"d" = [0.7]}']
