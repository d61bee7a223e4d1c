"""The forked program of these tests behaves like the real program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from interfaces.cli.forked_suture import ForkedSuture

SETTING = "[model]\nname = 'scripted:none'\n"


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (("--version",), ""),
        (("config", "show", "--json"), ""),
        (("show", "nobody"), ""),
        (("run", "-", "--model", "scripted:missing"), "Write double(n) – with a dash."),
        (("heal", "--tset"), ""),
    ],
)
def test_a_command_says_and_answers_the_same(
    forked: ForkedSuture, environ: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], stdin: str
) -> None:
    (tmp_path / "suture.toml").write_text(SETTING)
    command = [sys.executable, "-m", "suture.interfaces.cli", *arguments]
    once = subprocess.run(
        command, input=stdin, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    again = forked(arguments, stdin=stdin, env=environ, cwd=tmp_path, timeout_s=100)
    assert again.stdout + again.stderr
    assert (again.returncode, again.stdout, again.stderr) == (once.returncode, once.stdout, once.stderr)


def test_one_call_leaves_nothing_to_the_next(
    forked: ForkedSuture, environ: dict[str, str], tmp_path: Path
) -> None:
    shown = ("config", "show", "--json")
    named = forked(shown, stdin="", env={**environ, "SUTURE_MODEL_NAME": "a:b"}, cwd=tmp_path, timeout_s=100)
    assert '"a:b"' in named.stdout, named.stderr
    assert '"a:b"' not in forked(shown, stdin="", env=environ, cwd=tmp_path, timeout_s=100).stdout


def test_what_does_not_end_is_ended(forked: ForkedSuture, environ: dict[str, str], tmp_path: Path) -> None:
    serve = ("serve", "--port", "0", "--model", "none")
    with pytest.raises(subprocess.TimeoutExpired):
        forked(serve, stdin="", env=environ, cwd=tmp_path, timeout_s=0.5)
