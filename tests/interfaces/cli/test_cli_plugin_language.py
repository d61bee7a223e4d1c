"""Suture heals a project in the language that docs/extending.md adds through a plugin."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from interfaces.cli.conftest import Script, Suture

DOCUMENTATION_PAGE = Path(__file__).parents[3] / "docs" / "extending.md"
BROKEN_CODE = """# Whole numbers.
double() {
    echo $(($1 + 2))
}

half() {
    echo $(($1 / 2))
}
"""
TESTS = """. ./maths.sh
[ "$(half 8)" = 4 ] && echo "ok 1 - halves" || echo "not ok 1 - halves"
[ "$(double 3)" = 6 ] && echo "ok 2 - doubles" || { echo "not ok 2 - doubles"; failed=1; }
echo 1..2
exit ${failed:-0}
"""
CORRECT_CODE = BROKEN_CODE.replace("$1 + 2", "$1 * 2")
CHEATING_CODE = BROKEN_CODE.replace("echo $(($1 + 2))", "echo ok 2 - doubles; exit 0")


@pytest.fixture
def plugin_environ(tmp_path: Path) -> dict[str, str]:
    """Install the plugin of the documentation page, and return the environment that finds it."""
    code = DOCUMENTATION_PAGE.read_text("utf-8").partition("## A language\n")[2]
    example = re.search(r"```python\n(.*?)```", code, re.DOTALL)
    assert example is not None
    assert len(example[1].splitlines()) < 30
    packages = tmp_path / "packages"
    metadata = packages / "shell_language-1.0.dist-info"
    metadata.mkdir(parents=True)
    (packages / "shell_language.py").write_text(example[1])
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shell-language\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[suture.languages]\nshell = shell_language:SHELL\n")
    return {"PYTHONPATH": str(packages)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a shell project whose function `double` is wrong."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "maths.sh").write_text(BROKEN_CODE)
    (folder / "test.sh").write_text(TESTS)
    return folder


@pytest.mark.usefixtures("sandbox")
def test_a_project_in_a_plugin_language_is_healed(
    suture: Suture, plugin_environ: dict[str, str], project: Path, script: Script
) -> None:
    cheating_reply, correct_reply = (
        f"### maths.sh\n```sh\n{code}```\n" for code in (CHEATING_CODE, CORRECT_CODE)
    )
    heal = suture(
        "heal",
        str(project),
        "--model",
        script(cheating_reply, correct_reply),
        "--apply",
        "--json",
        env=plugin_environ,
    )
    assert heal.returncode == 0, heal.stderr

    output = json.loads(heal.stdout)
    assert (output["outcome"], output["evidence"], output["spend"]["attempts"]) == ("healed", "report", 2)
    assert (project / "maths.sh").read_text() == CORRECT_CODE
    assert (project / "test.sh").read_text() == TESTS

    # A run can be shown without the plugin, but verified only with it.
    show = suture("show", "last")
    assert "shell" in show.stdout.lower(), show.stderr
    assert "raised: it printed `not ok`" in show.stdout

    refusal = suture("verify", "last")
    assert refusal.returncode == 2, refusal.stderr
    assert "there is no language 'shell'" in refusal.stderr

    verification = suture("verify", "last", env=plugin_environ)
    assert verification.returncode == 0, verification.stdout + verification.stderr


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("go = shell_language:SHELL", "provides the language 'go'"),
        ("shell = shell_language:read", "provides the language 'shell'"),
        ("shell = shell_language:gone", "the language 'shell' does not load"),
    ],
)
def test_an_invalid_plugin_language_is_an_error_before_the_run(
    suture: Suture, plugin_environ: dict[str, str], project: Path, tmp_path: Path, entry: str, message: str
) -> None:
    (metadata,) = (tmp_path / "packages").glob("*.dist-info")
    (metadata / "entry_points.txt").write_text(f"[suture.languages]\n{entry}\n")
    refusal = suture("heal", str(project), "--model", "none", env=plugin_environ)
    assert refusal.returncode == 3, refusal.stderr
    assert message in refusal.stderr
