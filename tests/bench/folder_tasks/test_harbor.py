"""Tasks in Harbor's format: three of our own are solved from end to end, and unsupported ones are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from suture.bench.folder_tasks import FolderRow, load_folder_tasks, measure_folder
from suture.bench.folder_tasks.folder_task import UnusableTask
from suture.bench.folder_tasks.harbor import REWARDS, _explain_end, _read_reward, read_container_files
from suture.core.settings import Settings
from suture.errors import PrerequisiteError
from suture.sandbox import RunResult
from suture.testing import ScriptedModel

TASKS = Path(__file__).parents[3] / "benchmarks" / "harbor_set"
REPAIRED = (
    (TASKS / "shipping_days/environment/repo/shipping/dates.py")
    .read_text()
    .replace("if current.weekday() == SATURDAY", "while current.weekday() >= SATURDAY")
)
pytestmark = pytest.mark.usefixtures("sandbox", "active_bare_python")


def reply(path: str, text: str) -> str:
    """Return a model's reply that writes one file."""
    return f"### {path}\n```\n{text}\n```\n"


async def measure(folder: Path, model: ScriptedModel, out: Path) -> FolderRow:
    """Measure the one task in a folder."""
    rows = await measure_folder(load_folder_tasks(folder), out, Settings(), model, environment={"cpu": "x"})
    assert len(rows) == 1
    return rows[0]


async def test_a_right_change_gets_the_reward(tmp_path: Path) -> None:
    model = ScriptedModel([reply("shipping/dates.py", REPAIRED)])
    row = await measure(TASKS / "shipping_days", model, tmp_path)
    assert (row.task, row.fault) == ("shipping_days", "")
    assert row.is_solved_within(1)
    assert row.attempts[0].calls == len(model.calls) == 1
    prompts = " ".join(message.content for call in model.calls for message in call.messages)
    assert "returns a Sunday" in prompts
    assert "test_a_friday_leads_to_monday" not in prompts
    assert "weekday() >= SATURDAY" not in prompts
    # Finished tasks are kept: the model has no further reply.
    assert await measure(TASKS / "shipping_days", model, tmp_path) == row


async def test_a_wrong_change_gets_none(tmp_path: Path) -> None:
    wrong = reply("totals.py", "import sys\n\nprint('Bo 12.20\\nNia 12.75')")
    row = await measure(TASKS / "invoice_totals", ScriptedModel([wrong] * 20), tmp_path)
    assert row.fault == ""
    assert not row.is_solved_within(1)
    assert "the reward is 0" in row.attempts[0].reason


async def test_a_task_in_javascript_is_solved(tmp_path: Path) -> None:
    solution = (TASKS / "slug_letters/solution/solve.sh").read_text()
    code = solution.partition("<<'PROGRAM'\n")[2].partition("PROGRAM")[0]
    row = await measure(TASKS / "slug_letters", ScriptedModel([reply("src/slug.js", code)]), tmp_path)
    assert row.is_solved_within(1), row


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("tests/test.sh", "echo 1 > /logs/verifier/reward.txt", "pass on the untouched environment"),
        ("tests/test.sh", "exit 3", "wrote no reward"),
        ("solution/solve.sh", "touch /app/totals.py", "its own solution does not pass here"),
        ("environment/Dockerfile", "FROM x\nWORKDIR /app\nRUN apt-get update", "RUN apt-get update"),
        ("task.toml", "[environment]\ndocker_image = 'x'", "prebuilt image"),
        ("task.toml", "[[steps]]\nname = 'one'", "several steps"),
    ],
)
async def test_a_task_that_cannot_be_measured_is_refused_with_a_reason(
    tmp_path: Path, path: str, text: str, reason: str
) -> None:
    task = tmp_path / "set" / "invoice_totals"
    shutil.copytree(TASKS / "invoice_totals", task)
    (task / path).write_text(text)
    row = await measure(tmp_path / "set", ScriptedModel([]), tmp_path / "out")
    assert reason in row.fault
    assert row.attempts == ()


async def test_a_missing_language_makes_only_its_own_task_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nothing(*_: object) -> NoReturn:
        raise PrerequisiteError("there is no node", remedy="install it")

    monkeypatch.setattr("suture.bench.folder_tasks.harbor.discover_programs", find_nothing)
    row = await measure(TASKS / "slug_letters", ScriptedModel([]), tmp_path)
    assert "there is no node" in row.fault


@pytest.mark.parametrize(
    ("files", "reward"),
    [
        ({REWARDS[0]: b"0.5\n"}, 0.5),
        ({REWARDS[1]: b'{"reward": 1}'}, 1),
        ({REWARDS[0]: b"inf"}, None),
        ({REWARDS[0]: b"nan"}, None),
        ({REWARDS[0]: b"-1"}, None),
        ({REWARDS[1]: b'{"reward": NaN}'}, None),
        ({}, None),
    ],
)
def test_a_reward_is_a_number_from_0_to_1(files: dict[str, bytes], reward: float | None) -> None:
    result = RunResult(
        status="failed", exit_code=1, stdout=b"\x1b[31mexpected 2\x1b[0m\n\x1b[0m\n", files=files
    )
    assert _read_reward(result) == reward
    assert _explain_end(result, reward).endswith("(failed): expected 2")


CONTEXT = {"a.py": b"1", "data/b.csv": b"2", "data/deep/c.csv": b"3", ".dockerignore": b""}


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ("COPY . .", {"a.py": b"1", "data/b.csv": b"2", "data/deep/c.csv": b"3"}),
        ("COPY --chown=me data/ /app/in/", {"in/b.csv": b"2", "in/deep/c.csv": b"3"}),
        ("COPY a.py /app/main.py", {"main.py": b"1"}),
        ("COPY a.py \\\n  data/b.csv ./", {"a.py": b"1", "b.csv": b"2"}),
        ("COPY *.py src/", {"src/a.py": b"1"}),
    ],
)
def test_a_dockerfile_lays_out_files(lines: str, files: dict[str, bytes]) -> None:
    dockerfile = f"# A comment\nFROM python:3\nENV A=1 B='two words'\nWORKDIR /app\n{lines}\nCMD bash\n"
    container = read_container_files({"Dockerfile": dockerfile.encode(), **CONTEXT})
    assert (container.folder, container.files) == ("/app", files)
    assert container.variables == {"A": "1", "B": "two words"}


@pytest.mark.parametrize(
    "lines",
    [
        "WORKDIR /app\nADD a.py .",
        "WORKDIR /app\nFROM other\nWORKDIR /app",
        "WORKDIR /app\nCOPY a.py /etc/a.py",
        "WORKDIR /app\nCOPY --from=build a.py .",
        "WORKDIR /app\nCOPY missing.py .",
        "WORKDIR /app\nCOPY *.csv .",
        "COPY a.py .",
    ],
)
def test_an_environment_that_is_more_than_files_is_refused(lines: str) -> None:
    with pytest.raises(UnusableTask):
        read_container_files({"Dockerfile": f"FROM python:3\n{lines}".encode(), **CONTEXT})


def test_paths_of_the_container_are_those_of_the_sandbox() -> None:
    (task,) = load_folder_tasks(TASKS / "invoice_totals")
    texts = {"/app/x": "/box/x", "in /app.": "in /box.", "/apple src/app /app.py": "/apple src/app /app.py"}
    localise = task._localise  # type: ignore[attr-defined]  # the rule itself is tested
    assert {text: localise(text, "/app") for text in texts} == texts
