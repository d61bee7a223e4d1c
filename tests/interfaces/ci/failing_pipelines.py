"""Ten pipelines, each a small repository with the variables of a job and the expected result of its heal.

`python tests/interfaces/ci/failing_pipelines.py` runs action.yml on each and prints a table.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bare_pytest import BARE_PYTEST
from interfaces.ci.action_steps import ActionResult, job_variables, run_action

PROJECTS = Path(__file__).parents[2] / "repos" / "projects"
SHOP_CODE = """def total(prices):
    goods = 0
    for price in prices:
        goods {sign}= price
    return goods
"""
SHOP_TESTS = """from {module} import total


def test_nothing():
    assert total([]) == 0


def test_two():
    assert total([3, 4]) == 7


def test_three():
    assert total([1, 2, 3]) == 6
"""
SLOW_CODE = "import time\n\n\ndef total(prices):\n    time.sleep(60)\n    return 0\n"
ADA = ("Ada", "ada@shop.example")
MAX_FLAKY_RUNS = 24
"""The flaky pipeline runs at most this often until it fails and is found flaky; half of its runs pass."""


@dataclass(frozen=True, kw_only=True)
class FailingPipeline:
    """A pipeline and the expected result of its heal.

    Attributes:
        name: The name of the fault.
        outcome: The expected output `outcome`.
        reason: The expected output `reason`.
        status: The expected exit code of the step.
        files: The files of the project, path -> text.
        project: The name of a project in `tests/repos/projects`, or "".
        author: The name and the address of the last commit's author.
        message: The message of the last commit.
        variables: Additional variables of the job.
        inputs: Additional inputs of the action.
        fork: Whether the code comes from another repository.
    """

    name: str
    outcome: str
    reason: str = ""
    status: int
    files: Mapping[str, str] = field(default_factory=dict)
    project: str = ""
    author: tuple[str, str] = ADA
    message: str = "Count prices"
    variables: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    fork: bool = False


def make_shop_files(sign: str, module: str = "shop") -> dict[str, str]:
    """Return a shop project whose total is computed with `+` or `-`."""
    path = module.replace(".", "/")
    return {f"{path}.py": SHOP_CODE.format(sign=sign), "test_shop.py": SHOP_TESTS.format(module=module)}


FAILING_PIPELINES = (
    FailingPipeline(name="code", outcome="healed", status=0, files=make_shop_files("-")),
    FailingPipeline(name="flaky", outcome="not_a_code_fault", reason="flaky", status=1, project="flaky"),
    FailingPipeline(
        name="environment",
        outcome="not_a_code_fault",
        reason="environment",
        status=1,
        project="missing_package",
    ),
    FailingPipeline(
        name="test at fault",
        outcome="not_a_code_fault",
        reason="suspect_test",
        status=1,
        project="suspect_test",
    ),
    FailingPipeline(
        name="forbidden path",
        outcome="refused",
        reason="forbidden_path",
        status=7,
        files={**make_shop_files("-", "migrations.first"), "migrations/__init__.py": ""},
    ),
    FailingPipeline(
        name="too large a patch",
        outcome="refused",
        reason="too_many_lines",
        status=7,
        files=make_shop_files("-"),
        variables={"SUTURE_CI_MAX_LINES": "1"},
    ),
    FailingPipeline(
        name="bot loop",
        outcome="refused",
        reason="bot_commit",
        status=7,
        files=make_shop_files("-"),
        message="Heal shop.py\n\nHealed-by: suture 0.1.0 (run 1)",
    ),
    FailingPipeline(
        name="fork",
        outcome="refused",
        reason="fork_with_secrets",
        status=7,
        files=make_shop_files("-"),
        variables={"SUTURE_KEYS_OPENAI": "sk-of-the-tests"},
        fork=True,
    ),
    FailingPipeline(
        name="timeout",
        outcome="budget_exhausted",
        status=4,
        files={"shop.py": SLOW_CODE, "test_shop.py": SHOP_TESTS.format(module="shop")},
        inputs={"seconds": "3"},
    ),
    FailingPipeline(name="already green", outcome="nothing_to_heal", status=0, files=make_shop_files("+")),
)


def make_repository(pipeline: FailingPipeline, folder: Path) -> tuple[str, str]:
    """Make a repository with a first commit and the failing one, and return their hashes."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "work")
    (folder / "README.md").write_text("A shop.\n")
    base = commit(folder, ADA, "Begin")
    if pipeline.project:
        shutil.copytree(
            PROJECTS / pipeline.project,
            folder,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", ".*"),
        )
    for path, text in pipeline.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return base, commit(folder, pipeline.author, pipeline.message)


def commit(folder: Path, author: tuple[str, str], message: str) -> str:
    """Commit all files, and return the hash."""
    identity = {
        f"GIT_{role}_{field_name}": value
        for role in ("AUTHOR", "COMMITTER")
        for field_name, value in zip(("NAME", "EMAIL"), author, strict=True)
    }
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message, **identity)
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str, **variables: str) -> str:
    """Run git, and return its output."""
    environ = {**job_variables(folder), **variables, "GIT_CONFIG_GLOBAL": "/dev/null"}
    result = subprocess.run(
        ["git", *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    return result.stdout.strip()


def github_variables(
    pipeline: FailingPipeline, shas: tuple[str, str], runner_folder: Path, api_url: str
) -> dict[str, str]:
    """Write the event file of a pull request, and return the variables that the runner sets."""
    runner_folder.mkdir(parents=True, exist_ok=True)
    event = {
        "pull_request": {
            "number": 7,
            "title": "`touch no` $(touch no) ::error::",
            "user": {"login": "ada", "type": "User"},
            "head": {
                "sha": shas[1],
                "ref": "work/$(touch no);`touch no`",
                "repo": {"full_name": "eve/shop" if pipeline.fork else "ada/shop"},
            },
            "base": {"sha": shas[0], "ref": "main", "repo": {"full_name": "ada/shop"}},
        },
        "sender": {"login": "ada", "type": "User"},
    }
    (runner_folder / "event.json").write_text(json.dumps(event))
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(runner_folder / "event.json"),
        "GITHUB_REPOSITORY": "ada/shop",
        "GITHUB_SHA": "f" * 40,
        "GITHUB_ACTOR": "ada",
        "GITHUB_API_URL": api_url,
    }


def heal(
    pipeline: FailingPipeline, folder: Path, api_url: str = "", cache: Path | None = None
) -> ActionResult:
    """Run the healing half of the action on a pipeline in a clean folder.

    Args:
        pipeline: The pipeline.
        folder: The clean folder.
        api_url: The address of the code host.
        cache: The initial contents of Suture's cache.
    """
    shas = make_repository(pipeline, folder / "checkout")
    job = job_variables(
        folder / "home",
        **github_variables(pipeline, shas, folder / "runner", api_url),
        **pipeline.variables,
    )
    (folder / "home").mkdir()
    if cache is not None:
        shutil.copytree(cache, folder / "home" / ".cache" / "suture")
    inputs = {"suture": find_suture(), "test": BARE_PYTEST, "folder": str(folder / "heal"), **pipeline.inputs}
    max_runs = MAX_FLAKY_RUNS if pipeline.reason == "flaky" else 1
    for number in range(max_runs):
        result = run_action(inputs, job, folder / "checkout", folder / f"runner/{number}")
        if result.outputs["reason"] == pipeline.reason:
            break
    return result


def find_suture() -> str:
    """Return the path of the installed program."""
    return str(Path(sys.executable).with_name("suture"))


def main() -> int:
    """Run all pipelines, and return how many ended with an unexpected result."""
    failure_count = 0
    for pipeline in FAILING_PIPELINES:
        with tempfile.TemporaryDirectory() as folder:
            result = heal(pipeline, Path(folder))
        actual = (result.outputs["outcome"], result.outputs["reason"], result.status)
        is_expected = actual == (pipeline.outcome, pipeline.reason, pipeline.status)
        failure_count += not is_expected
        print(
            f"{'ok' if is_expected else 'WRONG':6}{pipeline.name:20}{actual[0]:20}{actual[1]:20}{actual[2]}",
            flush=True,
        )
    return failure_count


if __name__ == "__main__":
    sys.exit(main())
