"""An agent with tools repairs a bug in three files. Only its replies are scripted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from project_files import write_files
from suture.agents.conversation.agent_commands import AgentCommand, cut_after_first_command, parse_command
from suture.api import HealOptions, heal, replay, resume
from suture.core.ledger import Event, RunFolder, find_run, read_ledger
from suture.core.ledger.kinds import AgentStepped, ModelCalled
from suture.core.records import Result
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    LoopSettings,
    SandboxSettings,
    Settings,
)
from suture.errors import MalformedReply
from suture.testing import ScriptedModel

FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": "def gross(net, rate):\n    return net * rate\n",
    "shop/basket.py": """from shop.prices import gross


def total(items, rate):
    return sum(gross(item, rate) for item in items[1:])
""",
    "shop/receipt.py": """from shop.basket import total


def line(items, rate):
    return "total " + total(items, rate)
""",
    "tests/__init__.py": "",
    "tests/test_receipt.py": """import unittest

from shop.receipt import line


class ReceiptTest(unittest.TestCase):
    def test_line(self):
        self.assertEqual(line([100, 200], 0.5), "total 450.00")
""",
}


def edit(path: str, old: str, new: str) -> str:
    return f"TOOL: edit\n{path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"


def shell(line: str) -> str:
    return f"TOOL: shell\n```sh\n{line}\n```"


INSPECTIONS = [
    "I inspect the project.\n\nTOOL: search\nINPUT: total(",
    "TOOL: read\nINPUT: shop/receipt.py:1-5",
]
REPAIRS = [
    edit("shop/prices.py", "    return net * rate", "    return net * (1 + rate)"),
    edit("shop/basket.py", "items[1:]", "items"),
    edit(
        "shop/basket.py",
        "    return sum(gross(item, rate) for item in items[1:])",
        "    return sum(gross(item, rate) for item in items)",
    ),
    shell('sed -i \'s/"total " + total(items, rate)/f"total {total(items, rate):.2f}"/\' shop/receipt.py'),
    "TOOL: run_tests",
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "project", FILES)


async def run_agent(
    replies: list[str],
    project: Path,
    settings: Settings,
    *,
    steps: int = 30,
    turns: int = 1,
    test: str = "python -m unittest",
) -> tuple[Result, RunFolder, ScriptedModel]:
    recipe = project.parent / "own.toml"
    recipe.write_text(f'agent = "alone"\nagent_steps = {steps}\nagent_turns = {turns}\n')
    agent_settings = settings.model_copy(
        update={
            "loop": LoopSettings(recipe=str(recipe)),
            "certification": CertificationSettings(seconds=0, mutants=0),
            "sandbox": SandboxSettings(test_timeout_s=5),
            "budget": BudgetSettings(attempts=4, seconds=200, tokens=2_000_000),
        }
    )
    model = ScriptedModel(replies)
    result = await heal(project, HealOptions(test=test, settings=agent_settings, model=model))
    return result, find_run(settings.paths.home, result.run_id), model


def read_steps(folder: RunFolder) -> list[tuple[AgentStepped, str]]:
    events: tuple[Event, ...] = read_ledger(folder.ledger_path).events
    steps = [event.payload for event in events if isinstance(event.payload, AgentStepped)]
    return [(step, str(folder.load_json(step.observation))) for step in steps]


async def test_an_agent_repairs_a_bug_in_three_files(project: Path, settings: Settings) -> None:
    result, folder, model = await run_agent([*INSPECTIONS, *REPAIRS], project, settings)

    assert result.outcome == "healed", result.reason
    assert set(result.candidate.files if result.candidate else ()) == {
        "shop/prices.py",
        "shop/basket.py",
        "shop/receipt.py",
    }
    observations = dict(enumerate((observation for _, observation in read_steps(folder)), 1))
    assert "shop/basket.py:4: def total(items, rate):" in observations[1]
    assert 'return "total " + total(items, rate)' in observations[2]
    assert observations[3] == "Changed shop/prices.py."
    assert observations[4].startswith("EditError: edit block 1 (shop/basket.py)")
    assert observations[6].startswith("(exit code 0)")
    assert observations[7] == "Every test passes."
    assert read_steps(folder)[-1][0].ending == "passed"
    assert result.spend.attempts == 1
    assert result.spend.model_calls == 7
    assert (folder.path / "certificate.json").is_file()
    assert "test_line" in model.calls[0].messages[1].content

    replayed = await replay(result.run_id, settings=settings)
    assert replayed.same, replayed.difference


@pytest.mark.heavy
async def test_forbidden_commands_have_no_effect_and_are_reported(project: Path, settings: Settings) -> None:
    replies = [
        "TOOL: browse\nINPUT: the web",
        "I would like to think.",
        shell("python3 -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 3)'"),
        shell("yes | head -c 50000000; echo the end"),
        shell("setsid sleep 1000 & while :; do sleep 1; done"),
        shell("sed -i 's/450.00/0/' tests/test_receipt.py; rm shop/prices.py; echo x > conftest.py"),
        edit("tests/test_receipt.py", "import unittest", "import nothing"),
        edit("sitecustomize.py", "", "import os"),
        "TOOL: read\nINPUT: ../../etc/passwd",
        "TOOL: create_file\nINPUT: ../outside.py\n```python\nx = 1\n```",
        "TOOL: create_file\nINPUT: tests/test_more.py\n```python\nx = 1\n```",
        "TOOL: create_file\nINPUT: shop/prices.py\n```python\nx = 1\n```",
        "TOOL: list_files\nINPUT: shop",
        "TOOL: run_tests",
        shell("echo 'def line(' > shop/receipt.py"),
        "TOOL: submit",
    ]

    result, folder, _ = await run_agent(replies, project, settings)

    assert result.outcome == "not_healed"
    assert result.diff == ""
    observations = [observation for _, observation in read_steps(folder)]
    assert observations[0].startswith(
        "ToolError: there is no tool 'browse', only shell, list_files, read_file, "
    )
    assert observations[1].startswith("ToolError: your reply names no tool")
    assert "Network is unreachable" in observations[2]
    assert len(observations[3]) < 7000
    assert observations[3].endswith("the end")
    assert observations[4].startswith("(its time was up after 5 s)")
    assert "put back, for no candidate may change it: conftest.py, tests/test_receipt.py" in observations[5]
    assert "put back, for nothing can be deleted: shop/prices.py" in observations[5]
    assert observations[6].startswith("EditError:")
    assert "EditError: no candidate may write sitecustomize.py" in observations[7]
    assert observations[8].startswith("ReadError: there is no file '../../etc/passwd'")
    assert observations[9] == "CreateError: '../outside.py': no file can be made there."
    assert observations[10] == "CreateError: no candidate may write tests/test_more.py."
    assert observations[11] == "CreateError: 'shop/prices.py': it is there already: use edit."
    assert "shop/basket.py\nshop/prices.py" in observations[12]
    assert observations[13].startswith("0 of 1 tests pass.")
    paths = {path.relative_to(project).as_posix(): path for path in project.rglob("*") if path.is_file()}
    assert {name: path.read_text() for name, path in paths.items()} == FILES


@pytest.mark.parametrize(
    ("replies", "ending"),
    [
        ([f"TOOL: search\nINPUT: word{n}" for n in range(4)], "changed nothing in 4 step(s)"),
        (["TOOL: run_tests"] * 3, "changed nothing in 3 step(s): repeated"),
        (["Sorry."] * 3, "changed nothing in 3 step(s): malformed"),
    ],
)
async def test_an_agent_that_makes_no_progress_is_stopped(
    replies: list[str], ending: str, project: Path, settings: Settings
) -> None:
    result, _, model = await run_agent(replies, project, settings, steps=4)
    assert result.outcome == "not_healed"
    assert ending in result.reason.detail
    assert len(model.calls) == len(replies)


async def test_a_second_turn_starts_from_the_result_of_the_first(project: Path, settings: Settings) -> None:
    tests = project / "tests" / "test_prices.py"
    tests.write_text(
        "from shop.prices import gross\n\n\ndef test_gross():\n    assert gross(100, 0.5) == 150\n"
    )
    replies = [REPAIRS[0], "TOOL: submit", REPAIRS[2], REPAIRS[3], "TOOL: run_tests"]

    result, _, model = await run_agent(replies, project, settings, turns=2, test=BARE_PYTEST)

    assert "test_prices" in model.calls[0].messages[1].content
    assert "test_prices" not in model.calls[2].messages[1].content.partition("## Files")[0]
    assert result.outcome == "healed", result.reason
    assert result.spend.attempts == 2


async def test_a_run_killed_after_any_step_resumes_and_pays_for_no_reply_twice(
    project: Path, settings: Settings, tmp_path: Path
) -> None:
    """A kill leaves the ledger up to that point and the replies that had arrived."""
    result, folder, model = await run_agent([*INSPECTIONS, *REPAIRS], project, settings)
    lines = folder.ledger_path.read_text().splitlines(keepends=True)
    events = read_ledger(folder.ledger_path).events
    backup = tmp_path / "kept"
    shutil.copytree(settings.paths.home, backup)
    kill_points = [
        n for n, event in enumerate(events) if isinstance(event.payload, AgentStepped | ModelCalled)
    ]
    for point in kill_points[1::5]:
        shutil.rmtree(settings.paths.home)
        shutil.copytree(backup, settings.paths.home)
        folder.ledger_path.write_text("".join(lines[: point + 1]))
        for checkpoint in settings.paths.home.glob("*checkpoint*"):
            checkpoint.unlink()
        paid_calls = [
            event.payload.call for event in events[: point + 1] if isinstance(event.payload, ModelCalled)
        ]
        for reply in folder.replies_path.glob("*.json"):
            if reply.stem not in paid_calls:
                reply.unlink()
        remaining = ScriptedModel([*INSPECTIONS, *REPAIRS][len(paid_calls) :])
        resumed = await resume(result.run_id, settings=settings, model=remaining)
        assert (resumed.outcome, resumed.diff) == ("healed", result.diff), resumed.reason
        assert len(remaining.calls) == len(model.calls) - len(paid_calls)


def test_the_first_command_of_a_reply_is_parsed() -> None:
    reply = "I inspect.\nTOOL: read\nINPUT: a.py\n\nTOOL: edit\na.py\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"

    assert parse_command(reply) == AgentCommand(tool="read_file", input="a.py")
    assert cut_after_first_command(reply) == "I inspect.\nTOOL: read\nINPUT: a.py"
    assert parse_command("```bash\nls -a\n```") == AgentCommand(tool="shell", input="ls -a")
    create = AgentCommand(tool="create_file", input="a.py\nx = 1")
    assert parse_command("TOOL: create_file\nINPUT: a.py\n\n```python\nx = 1\n```") == create
    assert parse_command('TOOL: create_file\nINPUT: {"path": "a.py", "content": "x = 1\\n"}') == create
    assert parse_command('TOOL: create_file\nINPUT: {"content": "x = 1\\n", "path": "a.py"}') == create
    assert parse_command("TOOL: create_file\nINPUT: a/__init__.py").input == "a/__init__.py"

    with pytest.raises(MalformedReply, match="needs a path"):
        parse_command("TOOL: create_file\n```python\nimport os\n```")
    deeply_nested = f"TOOL: search\nINPUT: {'[' * 7000}"
    assert parse_command(deeply_nested).tool == "search"
    arguments = '{"path": "a.py", "search": "x = 1\\n", "replace": "x = 2"}'
    assert parse_command(f"TOOL: edit\nINPUT: {arguments}") == AgentCommand(
        tool="edit", input="a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE"
    )
    arguments = '{"command": "ls\\npwd"}'
    assert parse_command(f"TOOL: shell\nINPUT: {arguments}") == AgentCommand(tool="shell", input="ls\npwd")
    assert parse_command("TOOL: run_tests\nINPUT: {}") == AgentCommand(tool="run_tests")
