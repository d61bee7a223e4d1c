"""Ten pipelines, each a small repository with a job's variables and how its heal must end.

python tests/interfaces/ci/failing_pipelines.py # runs action.yml on each, and prints the table
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
from interfaces.ci.action_steps import Ended, job_variables, run_action

PROJECTS = Path(__file__).parents[2] / "repos" / "projects"
SUM = """def total(prices):
    goods = 0
    for price in prices:
        goods {sign}= price
    return goods
"""
TESTS = """from {module} import total


def test_nothing():
    assert total([]) == 0


def test_two():
    assert total([3, 4]) == 7


def test_three():
    assert total([1, 2, 3]) == 6
"""
SLOW = "import time\n\n\ndef total(prices):\n    time.sleep(60)\n    return 0\n"
ADA = ("Ada", "ada@shop.example")
LUCK = 24
"""Times that the wavering pipeline is run until it is red and seen to waver; half of the runs are green."""


@dataclass(frozen=True, kw_only=True)
class RedPipeline:
    """One pipeline.

    Attributes:
        name: What is wrong.
        outcome: The output of that name.
        reason: The same.
        status: The step's exit code.
        files: The project, path -> text; what the first commit has is otherwise.
        project: Where it is one of `tests/repos/projects`, its name.
        author: Who wrote the last commit, name and address.
        message: Of that commit.
        variables: The job's own.
        inputs: The action's.
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


def with_sum(sign: str, module: str = "shop") -> dict[str, str]:
    path = module.replace(".", "/")
    return {f"{path}.py": SUM.format(sign=sign), "test_shop.py": TESTS.format(module=module)}


RED = (
    RedPipeline(name="code", outcome="healed", status=0, files=with_sum("-")),
    RedPipeline(name="flaky", outcome="not_a_code_fault", reason="flaky", status=1, project="flaky"),
    RedPipeline(
        name="environment",
        outcome="not_a_code_fault",
        reason="environment",
        status=1,
        project="missing_package",
    ),
    RedPipeline(
        name="test at fault",
        outcome="not_a_code_fault",
        reason="suspect_test",
        status=1,
        project="suspect_test",
    ),
    RedPipeline(
        name="forbidden path",
        outcome="refused",
        reason="forbidden_path",
        status=7,
        files={**with_sum("-", "migrations.first"), "migrations/__init__.py": ""},
    ),
    RedPipeline(
        name="too large a patch",
        outcome="refused",
        reason="too_many_lines",
        status=7,
        files=with_sum("-"),
        variables={"SUTURE_CI_MAX_LINES": "1"},
    ),
    RedPipeline(
        name="bot loop",
        outcome="refused",
        reason="bot_commit",
        status=7,
        files=with_sum("-"),
        message="Heal shop.py\n\nHealed-by: suture 0.1.0 (run 1)",
    ),
    RedPipeline(
        name="fork",
        outcome="refused",
        reason="fork_with_secrets",
        status=7,
        files=with_sum("-"),
        variables={"SUTURE_KEYS_OPENAI": "sk-of-the-tests"},
        fork=True,
    ),
    RedPipeline(
        name="timeout",
        outcome="budget_exhausted",
        status=4,
        files={"shop.py": SLOW, "test_shop.py": TESTS.format(module="shop")},
        inputs={"seconds": "3"},
    ),
    RedPipeline(name="already green", outcome="nothing_to_heal", status=0, files=with_sum("+")),
)


def make_repository(pipeline: RedPipeline, folder: Path) -> tuple[str, str]:
    """Two commits: a beginning, and the one that the pipeline is red for; answers their hashes."""
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
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in zip(("NAME", "EMAIL"), author, strict=True)
    }
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message, **who)
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str, **variables: str) -> str:
    environ = {**job_variables(folder), **variables, "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def github_variables(
    pipeline: RedPipeline, shas: tuple[str, str], place: Path, api_url: str
) -> dict[str, str]:
    """What the runner sets for a pull request, its event's file among it."""
    place.mkdir(parents=True, exist_ok=True)
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
    (place / "event.json").write_text(json.dumps(event))
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(place / "event.json"),
        "GITHUB_REPOSITORY": "ada/shop",
        "GITHUB_SHA": "f" * 40,
        "GITHUB_ACTOR": "ada",
        "GITHUB_API_URL": api_url,
    }


def heal(pipeline: RedPipeline, folder: Path, api_url: str = "", cache: Path | None = None) -> Ended:
    """The action's first half on one pipeline, in a clean folder; a cache holds what there was before."""
    shas = make_repository(pipeline, folder / "checkout")
    job = job_variables(
        folder / "home",
        **github_variables(pipeline, shas, folder / "runner", api_url),
        **pipeline.variables,
    )
    (folder / "home").mkdir()
    if cache is not None:
        shutil.copytree(cache, folder / "home" / ".cache" / "suture")
    inputs = {"suture": suture(), "test": BARE_PYTEST, "folder": str(folder / "heal"), **pipeline.inputs}
    tries = LUCK if pipeline.reason == "flaky" else 1
    for number in range(tries):
        ended = run_action(inputs, job, folder / "checkout", folder / f"runner/{number}")
        if ended.outputs["reason"] == pipeline.reason:
            break
    return ended


def suture() -> str:
    return str(Path(sys.executable).with_name("suture"))


def main() -> int:
    """Run all of them; answers how many ended otherwise than they must."""
    wrong = 0
    for pipeline in RED:
        with tempfile.TemporaryDirectory() as folder:
            ended = heal(pipeline, Path(folder))
        found = (ended.outputs["outcome"], ended.outputs["reason"], ended.status)
        right = found == (pipeline.outcome, pipeline.reason, pipeline.status)
        wrong += not right
        print(
            f"{'ok' if right else 'WRONG':6}{pipeline.name:20}{found[0]:20}{found[1]:20}{found[2]}",
            flush=True,
        )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
