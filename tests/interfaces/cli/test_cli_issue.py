"""`suture heal --issue` when every test passes: Suture first writes a test, which a person must accept."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]
FilesOf = Callable[[Path], dict[str, bytes]]

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(600)]
ISSUE = "total([100, 100], discount=10) in prices.py gives 190. Ten percent off 200 should be 180."
CODE = "def total(prices, discount=0):\n    return sum(prices) - discount\n"
FIXED = "def total(prices, discount=0):\n    return sum(prices) * (100 - discount) / 100\n"
OLD_TEST = "from prices import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
SHOWS_BUG = (
    "from prices import total\n\n\ndef test_percent():\n    assert total([100, 100], discount=10) == 180\n"
)
PASSES = SHOWS_BUG.replace("180", "190")
BROKEN_IMPORT = SHOWS_BUG.replace("import total", "import totals")
PATH = "tests/test_issue.py"


def block(code: str) -> str:
    return f"Here it is:\n\n```python\n{code}```\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "tests").mkdir(parents=True)
    (folder / "prices.py").write_text(CODE)
    (folder / "tests" / "test_prices.py").write_text(OLD_TEST)
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (folder / "issue.txt").write_text(ISSUE)
    return folder


@pytest.mark.heavy
def test_a_test_is_shown_and_decides_once_it_is_accepted(
    suture: Suture, script: Script, project: Path, files_of: FilesOf
) -> None:
    before = files_of(project)
    model = script(block(PASSES), block(BROKEN_IMPORT), block(SHOWS_BUG), *[block(FIXED)] * 3)
    waits = suture("heal", "--issue", "-", "--model", model, stdin=ISSUE, cwd=project)
    assert waits.returncode == 5, waits.stderr
    assert "--answer approve" in waits.stderr
    assert "--edit" not in waits.stderr
    shown = suture("review", "last", cwd=project)
    assert "+    assert total([100, 100], discount=10) == 180" in shown.stdout
    assert "got: 190" in shown.stdout
    assert files_of(project) == before

    (project / "mine.txt").write_text("edit")
    refused = suture("resume", "last", "--edit", f"{PATH}=mine.txt", cwd=project)
    assert refused.returncode == 2, refused.stderr
    (project / "mine.txt").unlink()

    healed = suture("resume", "last", "--answer", "approve", "--apply", "--json", cwd=project)
    assert healed.returncode == 0, healed.stderr
    told = json.loads(healed.stdout)
    assert told["candidate"]["files"] == {"prices.py": FIXED}
    assert sorted(told["applied"]) == ["prices.py", PATH]
    assert (project / PATH).read_text() == SHOWS_BUG
    assert suture("undo", cwd=project).returncode == 0
    assert files_of(project) == before


@pytest.mark.heavy
def test_the_accepted_test_is_in_the_proof_and_in_a_replay(
    suture: Suture, script: Script, project: Path
) -> None:
    model = script(block(SHOWS_BUG), *[block(FIXED)] * 3)
    assert suture("heal", "--issue", "issue.txt", "--model", model, cwd=project).returncode == 5
    healed = suture("resume", "last", "--answer", "approve", "--json", cwd=project)
    told = json.loads(healed.stdout)
    certificate = json.loads((Path(told["folder"]) / "certificate.json").read_text())
    assert certificate["claims"]["accepted_tests"] == [PATH]
    assert certificate["fixed"] == [f"{PATH}::test_percent"]
    assert suture("apply", "last", cwd=project).returncode == 0
    proved = suture("verify", "last", "--project", ".", cwd=project)
    assert (proved.returncode, f"accepted tests: {PATH}" in proved.stdout) == (0, True), proved.stdout
    again = suture("replay", "last", "--json", cwd=project)
    assert json.loads(again.stdout)["same"], again.stdout


@pytest.mark.heavy
@pytest.mark.parametrize(("answer", "code"), [("reject", 1), ("abort", 130)])
def test_a_test_that_is_not_accepted_decides_nothing(
    suture: Suture, script: Script, project: Path, answer: str, code: int
) -> None:
    model = script(block(SHOWS_BUG), *[block(FIXED)] * 3)
    assert suture("heal", "--issue", "issue.txt", "--model", model, cwd=project).returncode == 5
    ended = suture("resume", "last", "--answer", answer, cwd=project)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert not (project / PATH).exists()


@pytest.mark.heavy
def test_with_a_hint_another_test_is_written(suture: Suture, script: Script, project: Path) -> None:
    better = SHOWS_BUG.replace("test_percent", "test_better")
    model = script(block(SHOWS_BUG), block(better), *[block(FIXED)] * 3)
    assert suture("heal", "--issue", "issue.txt", "--model", model, cwd=project).returncode == 5
    assert suture("resume", "last", "--hint", "call it better", cwd=project).returncode == 5
    assert "def test_better" in suture("review", "last", cwd=project).stdout


def test_where_no_test_shows_the_fault_the_run_says_so(suture: Suture, script: Script, project: Path) -> None:
    model = script(*[block(PASSES)] * 6)
    ended = suture("heal", "--issue", "issue.txt", "--model", model, cwd=project)
    assert ended.returncode == 1, ended.stderr
    assert "passes on the present code" in ended.stderr


def test_an_issue_or_a_hint_needs_a_model(suture: Suture, project: Path) -> None:
    for option in (("--issue", "issue.txt"), ("--hint", "percent")):
        for nobody in (("--no-model",), ("--set", "model.name=none")):
            ended = suture("heal", *option, *nobody, cwd=project)
            assert (ended.returncode, "needs a model" in ended.stderr) == (2, True), ended.stderr
