"""What is not used is not loaded: fresh interpreters, and what they have in `sys.modules`."""

from __future__ import annotations

import json
import subprocess
import sys

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


def loaded_by(code: str) -> set[str]:
    child = subprocess.run(
        [sys.executable, "-c", code + REPORT], capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr
    return set(json.loads(child.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "room",
    ["suture", "suture.errors", "suture.core.records", "suture.core.ledger", "suture.project.workspace"],
)
def test_the_ground_costs_nothing_heavy(room: str) -> None:
    assert loaded_by(f"import {room}") & HEAVY == set()


@pytest.mark.parametrize("door", ["suture.api", "suture.interfaces.web.web_app"])
def test_a_door_loads_no_graph_before_a_run(door: str) -> None:
    """A server's runs have processes of their own, so its own start need not wait for it."""
    assert loaded_by(f"import {door}") & {"langgraph", "langchain_core"} == set()


def test_settings_cost_pydantic_only() -> None:
    assert loaded_by("import suture.core.settings") & HEAVY == {"pydantic"}


def test_the_models_load_no_vendor_until_one_is_asked() -> None:
    code = """
from suture.models import open_role_models
from suture.core.settings import ModelSettings, Settings
for name in ("openai:a", "anthropic:b", "ollama:c"):
    open_role_models(Settings(model=ModelSettings(name=name, base_url="http://127.0.0.1:9/v1")))
"""
    assert loaded_by(code) & HEAVY == {"pydantic"}


def test_the_store_loads_the_checkpointer_when_it_is_opened() -> None:
    assert loaded_by("import suture.storage.database") & HEAVY == set()


def test_help_loads_nothing_heavy() -> None:
    assert loaded_by(HELP.format(arguments=["--help"])) & HEAVY == set()


def test_help_makes_no_types_of_events() -> None:
    """There are dozens of them, and each costs as much as a small module."""
    code = HELP.format(arguments=["--help"]) + 'assert "suture.core.ledger" not in sys.modules\n'
    assert "suture" in loaded_by(code)


@pytest.mark.parametrize("command", ["run", "heal", "show", "doctor", "models", "prompts", "config"])
def test_the_help_of_a_command_loads_no_graph_and_no_vendor(command: str) -> None:
    assert loaded_by(HELP.format(arguments=[command, "--help"])) & HEAVY <= {"pydantic"}
