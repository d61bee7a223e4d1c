"""Who may know whom: DESIGN's rooms, walked over every import, function-local and type-only ones included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import suture

SOURCE = Path(suture.__file__).parent

# From the ground up; inside one line, left to right.
LINES = (
    ("errors", "plain_files", "plugins", "pysource", "records", "settings", "ledger"),
    ("languages", "safety"),
    ("sandbox", "packages", "models", "workspace", "store", "memory", "tracing"),
    ("checks",),
    ("repair", "roles"),
    ("tasks", "proof", "loop"),
    ("api",),
    ("narrative",),
    ("evals",),
    ("jobs",),
    ("pipeline",),
    ("cli", "web", "mcp", "editor", "notebook", "watch", "testing", "pytest_plugin"),
)
RANK = {room: rank for rank, room in enumerate(room for line in LINES for room in line)}
FRONT_DOORS = LINES[-1]
STARTS = {
    "__init__.py": "notebook",
    "cli/commands/serving/serve.py": "web",
    "cli/commands/serving/mcp.py": "mcp",
    "cli/commands/serving/editors.py": "editor",
    "cli/commands/work/watch.py": "watch",
}
"""What starts a front door -> that door, which nobody else beside it may know."""
ROOT = "__init__"
"""The package itself: it hands out the api's names, and its version to anyone."""
ROOT_MAY_KNOW = ("api", "errors", "ledger", "records")

EXEC = ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
STARTS_PROCESSES = (
    *("subprocess", "multiprocessing", "pty", "concurrent.futures.process"),
    *("concurrent.futures.ProcessPoolExecutor", "asyncio.subprocess"),
    *("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    *("os.fork", "os.forkpty", "os.popen", "os.posix_spawn", "os.posix_spawnp", "os.system"),
    *(f"os.exec{how}" for how in EXEC),
    *(f"os.spawn{how}" for how in EXEC),
)

# A module, or a name in it -> the files that may use it; a folder stands for all that is in it.
ONLY_IN = {
    "langgraph": ("loop/",),
    "langgraph.checkpoint": ("loop/", "store/"),
    "langchain_core.language_models": ("models/", "api/"),  # a chat model may be handed in at the door
    "langchain_core.runnables": ("models/", "loop/"),  # the graph's own configuration is one of these
    **dict.fromkeys(
        (
            "anthropic",
            "langchain",
            "langchain_anthropic",
            "langchain_core",
            "langchain_ollama",
            "langchain_openai",
            "ollama",
            "openai",
            "tenacity",
            "torch",
            "transformers",
            "xllamacpp",
        ),
        ("models/",),
    ),
    "mlflow": ("evals/tracking/",),
    "opentelemetry": ("tracing/",),
    **dict.fromkeys(("fastapi", "prometheus_client", "starlette", "uvicorn"), ("web/",)),
    **dict.fromkeys(("anyio", "mcp", "mcp_types"), ("mcp/",)),
    **dict.fromkeys(("acp", "lsprotocol", "pygls"), ("editor/",)),
    "IPython": ("notebook/",),
    "watchfiles": ("watch/",),
    **dict.fromkeys(("alembic", "pgvector", "psycopg", "sqlalchemy"), ("store/",)),
    "huggingface_hub": ("models/", "memory/exchange.py", "evals/datasets/sources.py"),  # weights, data sets
    **dict.fromkeys(
        STARTS_PROCESSES,
        (
            *("sandbox/", "models/weights/fetch.py"),
            *("models/embedded/server.py", "models/embedded/server_child.py"),
            "packages/client.py",  # the user's own pip, npm and go
            "packages/reach.py",  # the same, asked for their settings
            "workspace/git.py",
            "jobs/process.py",
            "cli/terminal/editor.py",  # the person's own, on their own terminal
            "repair/other_languages/drivers/go_trials.py",  # behind the wall
            "pytest_plugin.py",  # our own command line, apart from what tests have done to their process
            "checks/projects/smoke_program.py",  # behind the wall
            "checks/command/go_library_program.py",  # behind the wall
        ),
    ),
    # All of it runs behind the wall.
    "os.fork": (
        "sandbox/",
        "repair/inside/",
        "checks/split/judge_program.py",
        "checks/command/report_plugin/",
    ),
}
LOOP_METHODS = ("subprocess_exec", "subprocess_shell")
"""Methods of an event loop that start a process, whatever the loop's variable is called."""


def violations(source: Path) -> list[str]:
    """Every use in a tree that the rules forbid, as `file:line: what`."""
    found: list[str] = []
    for path in sorted(source.rglob("*.py")):
        file = path.relative_to(source).as_posix()
        for line, name in uses(ast.parse(path.read_text("utf-8")), file):
            reason = forbidden(file, name)
            if reason:
                found.append(f"{file}:{line}: {reason}")
    return found


def uses(tree: ast.Module, file: str) -> Iterator[tuple[int, str]]:
    """Every dotted name of a module or of something in one that a file imports or reaches into."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                known[alias.asname or top] = alias.name if alias.asname else top
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = absolute_module(node, file)
            for alias in node.names:
                known[alias.asname or alias.name] = f"{base}.{alias.name}"
                yield node.lineno, f"{base}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.lineno, dotted(node, known)
        elif isinstance(node, ast.Call) and imports_by_name(node, known):
            assert isinstance(node.args[0], ast.Constant)
            yield node.lineno, str(node.args[0].value)


def absolute_module(node: ast.ImportFrom, file: str) -> str:
    if node.level == 0:
        return node.module or ""
    package = ["suture", *Path(file).parent.parts]
    kept = package[: len(package) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def dotted(node: ast.Attribute, known: dict[str, str]) -> str:
    parts: list[str] = []
    value: ast.expr = node
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    base = known.get(value.id, "?") if isinstance(value, ast.Name) else "?"
    return ".".join([base, *reversed(parts)])


def imports_by_name(node: ast.Call, known: dict[str, str]) -> bool:
    called = node.func
    name = called.id if isinstance(called, ast.Name) else ""
    full = dotted(called, known) if isinstance(called, ast.Attribute) else known.get(name, name)
    literal = bool(node.args) and isinstance(node.args[0], ast.Constant)
    return literal and full in ("__import__", "importlib.import_module")


def forbidden(file: str, name: str) -> str | None:
    if name.rpartition(".")[2] in LOOP_METHODS:
        name = "asyncio.create_subprocess_exec"
    for owned in sorted(ONLY_IN, key=len, reverse=True):  # the longest name has the say
        if name == owned or name.startswith(owned + "."):
            if not any(
                file == place or (place.endswith("/") and file.startswith(place)) for place in ONLY_IN[owned]
            ):
                return f"only {', '.join(ONLY_IN[owned])} may use {owned}"
            return None
    if file in STARTS and (name + ".").startswith(f"suture.{STARTS[file]}."):
        return None
    return forbidden_room(room_of(file), name)


def room_of(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


def forbidden_room(room: str, name: str) -> str | None:
    package, _, rest = name.partition(".")
    target = rest.partition(".")[0]
    if package != "suture" or target not in RANK or target == room:
        return None
    if room == ROOT:
        return None if target in ROOT_MAY_KNOW else f"the package itself may not know {target}"
    if room == "__main__" or (room in FRONT_DOORS and target not in FRONT_DOORS):
        return None
    if room in FRONT_DOORS:
        return f"the front door {room} may not know the front door {target}"
    return None if RANK[target] < RANK[room] else f"{room} may not know {target}"


def test_every_room_is_in_the_order() -> None:
    rooms = {
        room_of(path.name)
        for path in SOURCE.iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.stem not in (ROOT, "__main__")
    }
    assert rooms <= RANK.keys()


def test_the_house_keeps_its_own_rules() -> None:
    assert violations(SOURCE) == []


@pytest.mark.parametrize(
    ("file", "code", "says"),
    [
        ("errors.py", "import suture.core.records", "errors may not know records"),
        ("ledger/x.py", "from suture.models import seam", "ledger may not know models"),
        ("sandbox/x.py", "from suture.models.seam import Model", "sandbox may not know models"),
        ("checks/x.py", "from suture import loop", "checks may not know loop"),
        ("checks/x.py", "from ..loop import graph", "checks may not know loop"),
        ("checks/x.py", "def f():\n    from suture.api import solve", "checks may not know api"),
        ("roles/x.py", "if TYPE_CHECKING:\n    from suture.loop import State", "roles may not know loop"),
        ("roles/x.py", "import importlib\nimportlib.import_module('suture.loop')", "roles may not know loop"),
        (
            "roles/x.py",
            "from importlib import import_module\nimport_module('suture.loop')",
            "roles may not know",
        ),
        ("roles/x.py", "__import__('suture.loop')", "roles may not know loop"),
        ("roles/x.py", "import suture\nsuture.loop.run()", "roles may not know loop"),
        ("cli/x.py", "import suture.interfaces.web", "the front door cli may not know the front door web"),
        (
            "cli/commands/serving/mcp.py",
            "import suture.interfaces.web",
            "the front door cli may not know the front door web",
        ),
        ("testing.py", "from suture.interfaces.cli import main", "the front door testing may not know"),
        ("__init__.py", "from suture.interfaces.cli import main", "the package itself may not know cli"),
        ("api.py", "from langgraph.graph import StateGraph", "only loop/ may use langgraph"),
        ("store/x.py", "from langgraph.graph import StateGraph", "only loop/ may use langgraph"),
        ("api.py", "import langgraph.checkpoint.memory", "only loop/, store/ may use langgraph.checkpoint"),
        (
            "roles/x.py",
            "from langchain_core.messages import HumanMessage",
            "only models/ may use langchain_core",
        ),
        ("loop/x.py", "import openai as o", "only models/ may use openai"),
        ("cli/x.py", "import subprocess", "may use subprocess"),
        ("cli/x.py", "from subprocess import run", "may use subprocess"),
        ("models/vendors/chat.py", "import subprocess", "may use subprocess"),
        ("workspace/texts.py", "import os\nos.fork()", "may use os.fork"),
        ("workspace/texts.py", "import os as o\no.execvp('a', ['a'])", "may use os.execvp"),
        ("workspace/texts.py", "from os import posix_spawn", "may use os.posix_spawn"),
        ("loop/x.py", "import asyncio\nasyncio.create_subprocess_exec('a')", "may use asyncio.create"),
        ("loop/x.py", "from asyncio import create_subprocess_shell as c", "may use asyncio.create"),
        (
            "loop/x.py",
            "import asyncio\nasyncio.get_running_loop().subprocess_exec(p, 'a')",
            "may use asyncio",
        ),
        (
            "loop/x.py",
            "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()",
            "may use concurrent",
        ),
    ],
)
def test_the_walker_sees_what_is_forbidden(tmp_path: Path, file: str, code: str, says: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code + "\n", "utf-8")
    found = violations(tmp_path)
    assert found
    assert all(entry.startswith(f"{file}:") and says in entry for entry in found)


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("records/x.py", "from suture.errors import UsageError"),
        ("loop/x.py", "from suture.judge import Suite\nfrom langgraph.graph import StateGraph"),
        ("store/x.py", "from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver"),
        ("models/vendors/chat.py", "import openai\nfrom suture.models.seam import Model"),
        ("models/embedded/server.py", "import subprocess"),
        ("sandbox/x.py", "import asyncio\nasyncio.create_subprocess_exec('a')"),
        ("cli/x.py", "from suture import __version__\nimport suture.bench\nimport suture.api"),
        ("cli/commands/serving/serve.py", "from suture.interfaces.web.serving import serve"),
        ("api.py", "import os\nos.path.join('fork', 'system')\nfrom suture.loop import run"),
        ("__init__.py", "def __getattr__(name):\n    from suture import api"),
    ],
)
def test_the_walker_leaves_the_rest_alone(tmp_path: Path, file: str, code: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code + "\n", "utf-8")
    assert violations(tmp_path) == []
