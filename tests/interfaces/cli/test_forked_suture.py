"""Forked commands behave like commands in a new process."""

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
def test_a_forked_command_gives_the_same_output_and_exit_code(
    forked_program: ForkedSuture,
    environ: dict[str, str],
    tmp_path: Path,
    arguments: tuple[str, ...],
    stdin: str,
) -> None:
    (tmp_path / "suture.toml").write_text(SETTING)
    command = [sys.executable, "-m", "suture.interfaces.cli", *arguments]
    expected = subprocess.run(
        command, input=stdin, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    result = forked_program(arguments, stdin=stdin, env=environ, cwd=tmp_path, timeout_s=100)

    assert result.stdout + result.stderr
    assert (result.returncode, result.stdout, result.stderr) == (
        expected.returncode,
        expected.stdout,
        expected.stderr,
    )


def test_one_forked_command_does_not_affect_the_next(
    forked_program: ForkedSuture, environ: dict[str, str], tmp_path: Path
) -> None:
    show_settings = ("config", "show", "--json")
    with_model = forked_program(
        show_settings, stdin="", env={**environ, "SUTURE_MODEL_NAME": "a:b"}, cwd=tmp_path, timeout_s=100
    )

    assert '"a:b"' in with_model.stdout, with_model.stderr
    assert (
        '"a:b"'
        not in forked_program(show_settings, stdin="", env=environ, cwd=tmp_path, timeout_s=100).stdout
    )


def test_a_forked_command_that_does_not_end_is_killed(
    forked_program: ForkedSuture, environ: dict[str, str], tmp_path: Path
) -> None:
    serve = ("serve", "--port", "0", "--model", "none")
    with pytest.raises(subprocess.TimeoutExpired):
        forked_program(serve, stdin="", env=environ, cwd=tmp_path, timeout_s=0.5)
