"""The language that docs/extending.md adds through a plugin is found, run, judged and healed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "extending.md"
MATHS = """# Whole numbers.
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
RIGHT = MATHS.replace("$1 + 2", "$1 * 2")
EARLY = MATHS.replace("echo $(($1 + 2))", "echo ok 2 - doubles; exit 0")

Suture = Callable[..., CompletedProcess[str]]


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which a package is installed that brings the page's language."""
    code = PAGE.read_text("utf-8").partition("## A language\n")[2]
    found = re.search(r"```python\n(.*?)```", code, re.DOTALL)
    assert found is not None
    assert len(found[1].splitlines()) < 30
    packages = tmp_path / "packages"
    about = packages / "shell_language-1.0.dist-info"
    about.mkdir(parents=True)
    (packages / "shell_language.py").write_text(found[1])
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shell-language\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[suture.languages]\nshell = shell_language:SHELL\n")
    return {"PYTHONPATH": str(packages)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in shell whose doubling is wrong."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "maths.sh").write_text(MATHS)
    (folder / "test.sh").write_text(TESTS)
    return folder


@pytest.mark.usefixtures("sandbox")
def test_it_is_found_run_judged_and_healed(
    suture: Suture, installed: dict[str, str], project: Path, script: Callable[..., str]
) -> None:
    wrong, right = (f"### maths.sh\n```sh\n{code}```\n" for code in (EARLY, RIGHT))
    healed = suture("heal", str(project), "--model", script(wrong, right), "--apply", "--json", env=installed)
    assert healed.returncode == 0, healed.stderr
    told = json.loads(healed.stdout)
    assert (told["outcome"], told["evidence"], told["spend"]["attempts"]) == ("healed", "report", 2)
    assert (project / "maths.sh").read_text() == RIGHT
    assert (project / "test.sh").read_text() == TESTS
    # A run is looked at without the package, and judged again only with it.
    shown = suture("show", "last")
    assert "shell" in shown.stdout.lower(), shown.stderr
    assert "raised: it printed `not ok`" in shown.stdout
    refused = suture("verify", "last")
    assert refused.returncode == 2, refused.stderr
    assert "there is no language 'shell'" in refused.stderr
    again = suture("verify", "last", env=installed)
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("go = shell_language:SHELL", "provides the language 'go'"),
        ("shell = shell_language:read", "provides the language 'shell'"),
        ("shell = shell_language:gone", "the language 'shell' does not load"),
    ],
)
def test_what_is_no_language_is_an_error_before_the_run(
    suture: Suture, installed: dict[str, str], project: Path, tmp_path: Path, entry: str, says: str
) -> None:
    (about,) = (tmp_path / "packages").glob("*.dist-info")
    (about / "entry_points.txt").write_text(f"[suture.languages]\n{entry}\n")
    refused = suture("heal", str(project), "--model", "none", env=installed)
    assert refused.returncode == 3, refused.stderr
    assert says in refused.stderr
