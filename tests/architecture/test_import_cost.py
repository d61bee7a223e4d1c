"""Imports in a fresh interpreter load no library that is not used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = frozenset(
    {
        "IPython",
        "acp",
        "aiosqlite",
        "alembic",
        "anthropic",
        "docker",
        "e2b",
        "fastapi",
        "httpx",
        "huggingface_hub",
        "langchain",
        "langchain_anthropic",
        "langchain_core",
        "langchain_ollama",
        "langchain_openai",
        "langgraph",
        "langsmith",
        "lsprotocol",
        "mcp",
        "numpy",
        "ollama",
        "openai",
        "pgvector",
        "prometheus_client",
        "psycopg",
        "pydantic",
        "pygls",
        "sqlalchemy",
        "starlette",
        "tenacity",
        "torch",
        "transformers",
        "uvicorn",
        "watchfiles",
        "xllamacpp",
    }
)
HELP = """
import sys
from suture.interfaces.cli import main
sys.argv = ["suture", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
REPORT = """
import json, sys
print("\\n" + json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def loaded_packages(code: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after running `code`."""
    child = subprocess.run(
        [sys.executable, "-c", code + REPORT], capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr
    return set(json.loads(child.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "module",
    ["suture", "suture.errors", "suture.core.records", "suture.core.ledger", "suture.project.workspace"],
)
def test_the_base_modules_load_nothing_heavy(module: str) -> None:
    assert loaded_packages(f"import {module}") & HEAVY == set()


@pytest.mark.parametrize("module", ["suture.api", "suture.interfaces.web.web_app"])
def test_an_entry_point_loads_no_graph_and_no_client_before_a_run(module: str) -> None:
    """A server starts its runs in other processes, so its own start need not wait for what they load."""
    assert loaded_packages(f"import {module}") & HEAVY <= {
        "fastapi",
        "prometheus_client",
        "pydantic",
        "starlette",
    }


def test_the_web_service_starts_without_the_loop() -> None:
    """Runs have their own processes; what a few routes need of the loop is imported while the server answers."""
    code = """
import sys
import suture.interfaces.web.uvicorn_server
assert not [name for name in sys.modules if name.startswith(("suture.api", "suture.loop", "suture.judge"))]
"""
    assert "suture" in loaded_packages(code)


def test_the_evaluation_package_loads_no_interface_and_no_optional_package() -> None:
    code = """
import sys
import suture.bench, suture.bench.folder_tasks
assert not [name for name in sys.modules if name.startswith("suture.interfaces")]
"""
    assert loaded_packages(code) & HEAVY <= {"pydantic"}


def test_settings_load_only_pydantic() -> None:
    assert loaded_packages("import suture.core.settings") & HEAVY == {"pydantic"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("openai:a", "anthropic:b"), {"pydantic"}),
        # Ollama's server is asked for the context size of its model when this is opened.
        (("ollama:c",), {"pydantic", "httpx"}),
    ],
)
def test_models_load_no_vendor_before_the_first_call(names: tuple[str, ...], expected: set[str]) -> None:
    code = f"""
from suture.models import open_role_models
from suture.core.settings import ModelSettings, Settings
for name in {names!r}:
    open_role_models(Settings(model=ModelSettings(name=name, base_url="http://127.0.0.1:9/v1")))
"""
    assert loaded_packages(code) & HEAVY == expected


def test_the_database_loads_the_checkpointer_only_when_opened() -> None:
    assert loaded_packages("import suture.storage.database") & HEAVY == set()


def test_help_loads_nothing_heavy() -> None:
    assert loaded_packages(HELP.format(arguments=["--help"])) & HEAVY == set()


def test_help_loads_no_event_types() -> None:
    """There are dozens of them, and each costs as much as a small module."""
    code = HELP.format(arguments=["--help"]) + 'assert "suture.core.ledger" not in sys.modules\n'
    assert "suture" in loaded_packages(code)


@pytest.mark.parametrize("command", ["apply", "undo", "review", "resume", "replay", "fork"])
def test_an_unknown_run_is_reported_before_what_continues_runs_is_loaded(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "runs" / "20261128-081944454-678156").mkdir(parents=True)
    code = (
        f'import os, sys\nos.environ["SUTURE_HOME"] = {str(tmp_path)!r}\n'
        + HELP.format(arguments=[command, "nosuchrun"]).replace("assert not end.code", "assert end.code == 2")
        + 'assert "suture.api" not in sys.modules\n'
    )
    assert "suture" in loaded_packages(code)


@pytest.mark.parametrize("command", ["run", "heal", "show", "doctor", "models", "prompts", "config"])
def test_help_of_a_command_loads_no_graph_and_no_vendor(command: str) -> None:
    assert loaded_packages(HELP.format(arguments=[command, "--help"])) & HEAVY <= {"pydantic"}


def test_the_end_of_a_command_collects_no_garbage_of_imported_modules() -> None:
    program = HELP.format(arguments=["--version"]) + "import gc\nprint(gc.get_freeze_count())\n"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert int(completed.stdout.split()[-1]) > 10_000
