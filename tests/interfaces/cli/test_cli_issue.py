"""`suture heal --issue` on passing tests first proposes a test, which a person must accept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interfaces.cli.conftest import ReadFiles, Script, Suture

pytestmark = [pytest.mark.usefixtures("sandbox", "commands_with_bare_python"), pytest.mark.timeout(600)]
ISSUE = "total([100, 100], discount=10) in prices.py gives 190. Ten percent off 200 should be 180."
BROKEN_CODE = "def total(prices, discount=0):\n    return sum(prices) - discount\n"
FIXED_CODE = "def total(prices, discount=0):\n    return sum(prices) * (100 - discount) / 100\n"
OLD_TEST = "from prices import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
FAILING_TEST = (
    "from prices import total\n\n\ndef test_percent():\n    assert total([100, 100], discount=10) == 180\n"
)
PASSING_TEST = FAILING_TEST.replace("180", "190")
TEST_WITH_BROKEN_IMPORT = FAILING_TEST.replace("import total", "import totals")
TEST_PATH = "tests/test_issue.py"


def make_reply(code: str) -> str:
    """Return a model reply with one code block."""
    return f"Here it is:\n\n```python\n{code}```\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project whose tests pass although the issue describes a fault."""
    folder = tmp_path / "shop"
    (folder / "tests").mkdir(parents=True)
    (folder / "prices.py").write_text(BROKEN_CODE)
    (folder / "tests" / "test_prices.py").write_text(OLD_TEST)
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    (folder / "issue.txt").write_text(ISSUE)
    return folder


@pytest.mark.heavy
def test_a_proposed_test_is_reviewed_and_decides_after_acceptance(
    suture: Suture, script: Script, project: Path, read_files: ReadFiles
) -> None:
    before = read_files(project)
    model = script(
        make_reply(PASSING_TEST),
        make_reply(TEST_WITH_BROKEN_IMPORT),
        make_reply(FAILING_TEST),
        *[make_reply(FIXED_CODE)] * 3,
    )
    first_result = suture("heal", "--issue", "-", "--model", model, stdin=ISSUE, cwd=project)
    assert first_result.returncode == 5, first_result.stderr
    assert "--answer approve" in first_result.stderr
    assert "--edit" not in first_result.stderr
    review = suture("review", "last", cwd=project)
    assert "+    assert total([100, 100], discount=10) == 180" in review.stdout
    assert "got: 190" in review.stdout
    assert read_files(project) == before

    (project / "mine.txt").write_text("edit")
    refusal = suture("resume", "last", "--edit", f"{TEST_PATH}=mine.txt", cwd=project)
    assert refusal.returncode == 2, refusal.stderr
    (project / "mine.txt").unlink()

    final_result = suture("resume", "last", "--answer", "approve", "--apply", "--json", cwd=project)
    assert final_result.returncode == 0, final_result.stderr
    output = json.loads(final_result.stdout)
    assert output["candidate"]["files"] == {"prices.py": FIXED_CODE}
    assert sorted(output["applied"]) == ["prices.py", TEST_PATH]
    assert (project / TEST_PATH).read_text() == FAILING_TEST
    assert suture("undo", cwd=project).returncode == 0
    assert read_files(project) == before


@pytest.mark.heavy
def test_an_accepted_test_is_part_of_the_certificate_and_the_replay(
    suture: Suture, script: Script, project: Path
) -> None:
    model = script(make_reply(FAILING_TEST), *[make_reply(FIXED_CODE)] * 3)
    assert suture("heal", "--issue", "issue.txt", "--model", model, cwd=project).returncode == 5

    final_result = suture("resume", "last", "--answer", "approve", "--json", cwd=project)
    output = json.loads(final_result.stdout)
    certificate = json.loads((Path(output["folder"]) / "certificate.json").read_text())
    assert certificate["claims"]["accepted_tests"] == [TEST_PATH]
    assert certificate["fixed"] == [f"{TEST_PATH}::test_percent"]
    assert suture("apply", "last", cwd=project).returncode == 0

    verification = suture("verify", "last", "--project", ".", cwd=project)
    assert (verification.returncode, f"a person accepted: {TEST_PATH}" in verification.stdout) == (0, True), (
        verification.stdout
    )

    replay = suture("replay", "last", "--json", cwd=project)
    assert json.loads(replay.stdout)["same"], replay.stdout


@pytest.mark.heavy
@pytest.mark.parametrize(("answer", "code"), [("reject", 1), ("abort", 130)])
def test_a_test_that_is_not_accepted_ends_the_run_unhealed(
    suture: Suture, script: Script, project: Path, answer: str, code: int
) -> None:
    model = script(make_reply(FAILING_TEST), *[make_reply(FIXED_CODE)] * 3)
    assert suture("heal", "--issue", "issue.txt", "--model", model, cwd=project).returncode == 5
    result = suture("resume", "last", "--answer", answer, cwd=project)
    assert (result.returncode, result.stdout) == (code, "")
    assert not (project / TEST_PATH).exists()


@pytest.mark.heavy
def test_a_hint_leads_to_another_test(suture: Suture, script: Script, project: Path) -> None:
    better = FAILING_TEST.replace("test_percent", "test_better")
    model = script(make_reply(FAILING_TEST), make_reply(better), *[make_reply(FIXED_CODE)] * 3)
    assert suture("heal", "--issue", "issue.txt", "--model", model, cwd=project).returncode == 5
    assert suture("resume", "last", "--hint", "call it better", cwd=project).returncode == 5
    assert "def test_better" in suture("review", "last", cwd=project).stdout


def test_a_run_reports_that_no_test_shows_the_fault(suture: Suture, script: Script, project: Path) -> None:
    model = script(*[make_reply(PASSING_TEST)] * 6)
    result = suture("heal", "--issue", "issue.txt", "--model", model, cwd=project)
    assert result.returncode == 1, result.stderr
    assert "passes on the present code" in result.stderr


def test_an_issue_or_a_hint_needs_a_model(suture: Suture, project: Path) -> None:
    for option in (("--issue", "issue.txt"), ("--hint", "percent")):
        for no_model in (("--no-model",), ("--set", "model.name=none")):
            result = suture("heal", *option, *no_model, cwd=project)
            assert (result.returncode, "needs a model" in result.stderr) == (2, True), result.stderr
