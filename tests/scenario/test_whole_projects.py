"""Whole projects are written, started and checked in the real sandbox. The first reply is usually wrong."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from requirements import Require
from scenario import written_projects as written
from suture.api import WriteOptions, solve, undo, verify
from suture.core.ledger import find_run
from suture.core.records import Result
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

NO_TESTS = "I cannot write any."


async def write_project(
    task: str,
    replies: list[str],
    settings: Settings,
    sandbox: BubblewrapSandbox,
    *,
    skeleton: bool = False,
    **options: Any,
) -> tuple[Result, ScriptedModel]:
    model = ScriptedModel([*replies, NO_TESTS, NO_TESTS, NO_TESTS])
    # By default, the second reply repairs the first.
    recipe = settings.loop.recipe if "recipe" in settings.loop.model_fields_set else "always_repair"
    limited = settings.model_copy(
        update={
            "loop": settings.loop.model_copy(update={"recipe": recipe}),
            "budget": settings.budget.model_copy(update={"attempts": len(replies), "seconds": 300}),
            "certification": settings.certification.model_copy(
                update={"mutants": 1}  # each mutant starts the whole project once
            ),
        }
    )
    write_options = WriteOptions(settings=limited, model=model, sandbox=sandbox, skeleton=skeleton, **options)
    return await solve(task, write_options), model


def list_passed_checks(result: Result) -> list[str]:
    assert result.verdict is not None
    return [outcome.check_id for outcome in result.verdict.outcomes if outcome.passed]


async def test_a_command_line_tool_is_written(settings: Settings, sandbox: BubblewrapSandbox) -> None:
    # A small model lists modules that Python has. Nobody is asked about them.
    needless = written.reply(("requirements.txt", "text", "json"))
    replies = [written.TODO_WRONG + needless, written.TODO]

    result, model = await write_project(written.TODO_TASK, replies, settings, sandbox, project="cli_tool")

    assert (result.outcome, result.evidence) == ("healed", "nonce"), result.reason
    assert "as the task shows: todo list (3)" in list_passed_checks(result)
    prompt = model.calls[1].messages[-1].content
    assert "`python -m todo done 1` raised exit code 1: " in prompt
    assert "IndexError: list index out of range" in prompt
    assert str(Path.cwd()) not in prompt


@pytest.mark.heavy
@pytest.mark.timeout(600)  # the certification, and the same again when the certificate is verified
async def test_a_library_is_written_verified_and_undone(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    target = tmp_path / "greet"
    replies = [written.GREET, written.GREET_TESTS]

    result, _ = await write_project(
        written.GREET_TASK, replies, settings, sandbox, project="library", into=target
    )

    assert result.outcome == "healed", result.reason
    assert "assert greeting('Ada') == 'Hello, Ada!'" in list_passed_checks(result)
    names = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    assert names == {".gitignore", "README.md", "pyproject.toml", "greet/__init__.py", "tests/test_greet.py"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    completed = subprocess.run(command, cwd=target, capture_output=True, check=False)
    assert b"1 passed" in completed.stdout, completed.stdout
    certificate = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    findings = [finding async for finding in verify(certificate, settings=settings, sandbox=sandbox)]
    assert all(finding.ok for finding in findings), findings
    undo(result.run_id, settings=settings)
    assert not any((target / name).exists() for name in names)


async def test_existing_files_are_not_overwritten(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(UsageError, match=r"README\.md"):
        await write_project(
            written.TODO_TASK, [written.TODO], settings, sandbox, project="cli_tool", into=tmp_path
        )
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["README.md"]


async def test_a_web_server_is_started_and_requested(settings: Settings, sandbox: BubblewrapSandbox) -> None:
    replies = [written.BOOKS_WRONG, written.BOOKS]
    result, model = await write_project(written.BOOKS_TASK, replies, settings, sandbox, project="web-app")
    assert result.outcome == "healed", result.reason
    assert "it answers GET /" in list_passed_checks(result)
    assert 'as the task shows: POST /books {"title": "Emma"} -> 201 (2)' in list_passed_checks(result)
    assert "but should give status 201" in model.calls[1].messages[-1].content


async def test_a_flask_server_is_written(
    settings: Settings, sandbox: BubblewrapSandbox, require: Require
) -> None:
    is_installed = importlib.util.find_spec("flask") is not None
    require("flask", is_installed, "it is not installed beside Suture")
    task = f"Use Flask. {written.BOOKS_TASK}"
    result, _ = await write_project(task, [written.FLASK], settings, sandbox, project="web_app")
    assert result.outcome == "healed", result.reason
    assert len(list_passed_checks(result)) == 7


async def test_a_server_that_exits_at_once_is_reported(
    settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    exiting = written.reply(("books/__main__.py", "python", "import sys\nsys.exit('no port is good enough')"))
    result, _ = await write_project(written.BOOKS_TASK, [exiting], settings, sandbox, project="web_app")
    assert result.outcome == "budget_exhausted"
    assert result.verdict is not None
    message = result.verdict.counterexamples[0].exception
    assert "ended by itself with exit code 1: no port is good enough" in message


async def test_a_data_pipeline_is_run_on_incomplete_data(
    settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    replies = [written.CSV_WRONG, written.CSV]

    result, model = await write_project(
        f"{written.CSV_TASK} It is called stats.", replies, settings, sandbox, project="data_pipeline"
    )

    assert result.outcome == "healed", result.reason
    assert "it turns the sample data into a file" in list_passed_checks(result)
    assert "could not convert string to float" in model.calls[1].messages[-1].content


async def test_a_node_command_line_tool_is_written(
    settings: Settings, sandbox: BubblewrapSandbox, require: Require, tmp_path: Path
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    target = tmp_path / "clock"
    replies = [written.TIME_WRONG, written.TIME, written.TIME_TESTS]
    options: dict[str, Any] = {"project": "cli_tool", "language": "node", "into": target}

    result, model = await write_project(written.TIME_TASK, replies, settings, sandbox, **options)

    assert result.outcome == "healed", result.reason
    assert "python" not in "".join(message.content for message in model.calls[0].messages).lower()
    assert "is not a function" in model.calls[1].messages[-1].content
    completed = subprocess.run(["npm", "test"], cwd=target, capture_output=True, check=False)
    assert b"pass 1" in completed.stdout, completed.stdout
    assert len(subprocess.check_output(["node", "src/index.js"], cwd=target).strip()) == len("12:34:56")


async def test_the_documented_node_example_needs_no_model(
    settings: Settings, sandbox: BubblewrapSandbox, require: Require, tmp_path: Path
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    page = (Path(__file__).parents[2] / "docs" / "projects.md").read_text()
    (line,) = (line for line in page.splitlines() if "scripted:node" in line)
    _, _, task, _, kind, _, language, _, folder, _, model = shlex.split(line)

    result = await solve(
        task,
        WriteOptions(
            project=kind,
            language=language,
            into=tmp_path / folder,
            model=model,
            settings=settings,
            sandbox=sandbox,
        ),
    )

    assert result.outcome == "healed", result.reason
    assert result.spend.attempts == 2
    assert (tmp_path / folder / "test" / "clock.test.js").is_file()


async def test_a_go_command_line_tool_is_written(
    settings: Settings, sandbox: BubblewrapSandbox, require: Require
) -> None:
    require("go", shutil.which("go") is not None, "it is not on PATH")
    replies = [written.GO_WRONG, written.GO, written.GO_TESTS]
    result, _ = await write_project(
        written.GO_TASK, replies, settings, sandbox, project="cli_tool", language="go"
    )
    assert result.outcome == "healed", result.reason
    assert result.candidate is not None
    assert set(result.candidate.files) == {"main.go", "greet_test.go"}


async def test_the_users_test_decides_and_is_not_replaced(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    test = tmp_path / "test_given.py"
    test.write_text(
        "from todo.store import load\n\n\ndef test_a_new_list_is_empty():\n    assert load() == [1]\n"
    )
    forged = written.TODO + written.reply(("tests/test_given.py", "python", "def test_x():\n    pass"))

    result, _ = await write_project(
        written.TODO_TASK, [forged], settings, sandbox, project="cli_tool", test=test
    )

    assert result.outcome == "budget_exhausted"
    assert result.candidate is not None
    assert "tests/test_given.py" not in result.candidate.files
    assert result.verdict is not None
    assert "tests/test_given.py::test_a_new_list_is_empty" in result.verdict.failed


async def test_a_feature_is_added_to_an_existing_project(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    shop = tmp_path / "shop"
    (shop / "tests").mkdir(parents=True)
    (shop / "cart.py").write_text("def total(prices):\n    return sum(prices)\n")
    test = "from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
    (shop / "tests" / "test_cart.py").write_text(test)
    breaking = written.reply(("cart.py", "python", "def total(prices):\n    return 0"))
    adding = written.reply(
        ("cart.py", "python", "def total(prices, off=0):\n    return sum(prices) - off"),
        ("discount.py", "python", "HALF = 0.5"),
    )
    task = "Let total take a discount that is taken off, `off`."

    result, model = await write_project(
        task, [breaking, adding], settings, sandbox, existing=shop, apply=True
    )

    assert result.outcome == "healed", result.reason
    assert "return sum(prices)" in model.calls[0].messages[-1].content
    assert "off=0" in (shop / "cart.py").read_text()
    assert (shop / "discount.py").exists()
    assert (shop / "tests" / "test_cart.py").read_text() == test
    assert "+def total(prices, off=0)" in result.diff
    assert result.reason.notes == ("feature_unshown",)


async def test_a_javascript_function_is_judged_by_the_given_tests(
    settings: Settings, sandbox: BubblewrapSandbox, require: Require, tmp_path: Path
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    test = tmp_path / "add.test.js"
    test.write_text(
        'const test = require("node:test");\nconst assert = require("node:assert");\n'
        'const { add } = require("./solution");\n'
        'test("adds", () => assert.strictEqual(add(1, 2), 3));\n'
    )
    replies = [f"```javascript\nmodule.exports = {{ add: (a, b) => a {sign} b }};\n```" for sign in "-+"]

    result, model = await write_project(
        "function add(a, b) adds two numbers", replies, settings, sandbox, language="node", test=test
    )

    assert (result.outcome, result.evidence) == ("healed", "nonce"), result.reason
    assert result.candidate is not None
    assert set(result.candidate.files) == {"solution.js"}
    assert "assert.strictEqual(add(1, 2), 3)" in model.calls[0].messages[-1].content

    with pytest.raises(UsageError, match="nothing shows what the JavaScript code must do"):
        await solve(
            "function add(a, b)",
            WriteOptions(settings=settings, model=model, sandbox=sandbox, language="node"),
        )
