"""The layers of `src/suture`: imports point downward, and each outside library has one package that uses it.

The order is that of docs/architecture.md. Imports inside functions and imports for types count too.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from architecture.source_imports import SOURCE, source_files

PACKAGES = (
    "errors",
    "core",
    "project",
    "models",
    "mutation",
    "sandbox",
    "storage",
    "judge",
    "search",
    "agents",
    "loop",
    "api",
    "bench",
    "interfaces",
)
"""From the bottom up: each package may import the packages before it."""
TOP_LEVEL_MODULES = ("pytest_plugin", "testing")
"""Entry points that may import every package."""
LOADED_BY_ROOT = ("api", "core", "interfaces")
"""What `suture/__init__.py` loads when one of its public names is used."""

SHARED_INTERFACES = ("ci", "jobs", "narrative")
"""Parts of `interfaces` that the others build on; `ci` delivers to code hosts. Only the command line imports all parts,
to start them."""

ALLOWED_USERS = {
    "langgraph": ("loop/", "interfaces/langgraph/"),  # the interface's graph is for other people's graphs
    "langgraph.checkpoint": ("loop/", "storage/"),
    "langgraph.types": ("loop/", "storage/", "interfaces/langgraph/"),
    "langchain_core.language_models": ("models/", "api/"),  # a caller may pass a chat model to the api
    "langchain_core.runnables": ("models/", "loop/"),  # the type of the graph's configuration
    "langchain_core": ("models/",),
    "langchain_anthropic": ("models/",),
    "langchain_ollama": ("models/",),
    "langchain_openai": ("models/",),
    "anthropic": ("models/",),
    "ollama": ("models/",),
    "openai": ("models/",),
    "tenacity": ("models/",),
    "torch": ("models/",),
    "transformers": ("models/",),
    "xllamacpp": ("models/",),
    "huggingface_hub": ("models/", "storage/memory/", "bench/datasets/"),
    "mlflow": ("bench/",),
    "opentelemetry": ("storage/tracing/",),
    "alembic": ("storage/",),
    "pgvector": ("storage/",),
    "psycopg": ("storage/",),
    "sqlalchemy": ("storage/",),
    "fastapi": ("interfaces/web/",),
    "prometheus_client": ("interfaces/web/",),
    "starlette": ("interfaces/web/",),
    "uvicorn": ("interfaces/web/",),
    "anyio": ("interfaces/mcp/",),
    "mcp": ("interfaces/mcp/",),
    "mcp_types": ("interfaces/mcp/",),
    "acp": ("interfaces/editor/",),
    "lsprotocol": ("interfaces/editor/",),
    "pygls": ("interfaces/editor/",),
    "IPython": ("interfaces/notebook/",),
    "watchfiles": ("interfaces/watch/",),
}
"""Library -> the packages that may import it. The longest matching name decides."""


def find_violation(file: str, name: str) -> str | None:
    """Return why `file` (a path below `src/suture`) must not use `name`, or `None` where it may."""
    library = max(
        (known for known in ALLOWED_USERS if f"{name}.".startswith(f"{known}.")), key=len, default=""
    )
    if library:
        users = ALLOWED_USERS[library]
        return None if file.startswith(users) else f"only {', '.join(users)} may import {library}"
    root, _, rest = name.partition(".")
    if root != "suture" or not rest:
        return None
    package, target = file.split("/")[0].removesuffix(".py"), rest.split(".")[0]
    if package == "__init__":
        return (
            None if target in LOADED_BY_ROOT or target.startswith("_") else f"suture may not import {target}"
        )
    if package in TOP_LEVEL_MODULES or target not in PACKAGES:
        return f"{package} may not import {target}" if target in TOP_LEVEL_MODULES else None
    if package == target == "interfaces":
        return find_interface_violation(file.split("/")[1], rest.split(".")[1:2])
    if package != target and PACKAGES.index(target) > PACKAGES.index(package):
        return f"{package} may not import {target}"
    return None


def find_interface_violation(part: str, target: list[str]) -> str | None:
    if part == "cli" or not target or target[0] in (part, *SHARED_INTERFACES):
        return None
    return f"interfaces/{part} may not import interfaces/{target[0]}"


def find_violations(source: Path) -> list[str]:
    """Return every forbidden import below `source`, as `file:line: reason`."""
    return [
        f"{file.path}:{line}: {reason}"
        for file in source_files(source)
        for line, name in file.imported_names
        if (reason := find_violation(file.path, name))
    ]


def test_every_package_has_a_layer() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert packages | modules == {*PACKAGES, *TOP_LEVEL_MODULES}


def test_imports_point_downward() -> None:
    assert find_violations(SOURCE) == []


@pytest.mark.parametrize(
    ("file", "code", "reason"),
    [
        ("errors.py", "import suture.core.records", "errors may not import core"),
        ("judge/x.py", "from suture import loop", "judge may not import loop"),
        ("judge/x.py", "from ..loop import graph", "judge may not import loop"),
        ("judge/x.py", "def f():\n    from suture.api import solve", "judge may not import api"),
        ("agents/x.py", "if TYPE_CHECKING:\n    from suture.loop import State", "agents may not import loop"),
        (
            "agents/x.py",
            "import importlib\nimportlib.import_module('suture.loop')",
            "agents may not import loop",
        ),
        ("agents/x.py", "import suture\nsuture.loop.run()", "agents may not import loop"),
        (
            "interfaces/mcp/x.py",
            "import suture.interfaces.web",
            "interfaces/mcp may not import interfaces/web",
        ),
        ("api/x.py", "from suture.testing import ScriptedModel", "api may not import testing"),
        (
            "storage/x.py",
            "from langgraph.graph import StateGraph",
            "only loop/, interfaces/langgraph/ may import langgraph",
        ),
        ("loop/x.py", "import openai as o", "only models/ may import openai"),
    ],
)
def test_a_forbidden_import_is_reported(tmp_path: Path, file: str, code: str, reason: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{code}\n")
    violations = find_violations(tmp_path)
    assert violations
    assert all(reason in violation for violation in violations)


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("core/x.py", "from suture.errors import UsageError"),
        ("loop/x.py", "from suture.judge import Suite\nfrom langgraph.graph import StateGraph"),
        ("storage/x.py", "from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver"),
        ("interfaces/cli/x.py", "import suture.bench\nfrom suture.interfaces.web import app"),
        ("__init__.py", "def __getattr__(name):\n    from suture import api"),
    ],
)
def test_an_allowed_import_is_not_reported(tmp_path: Path, file: str, code: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{code}\n")
    assert find_violations(tmp_path) == []


def test_the_documented_path_of_a_heal_names_files_that_exist() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    path_of_a_heal = page.partition("## The path of one heal\n")[2]
    paths = set(re.findall(r"`((?:\w+/)+\w+\.py)`", path_of_a_heal))
    assert paths
    assert [path for path in sorted(paths) if not (SOURCE / path).is_file()] == []


def test_class_names_are_unique() -> None:
    places: dict[str, list[str]] = {}
    for file in source_files(SOURCE):
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(file.path)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
