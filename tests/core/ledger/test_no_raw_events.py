"""Packages outside the ledger use payload classes and their fields, never raw events."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import suture
from suture.core.ledger import CATALOGUE

SOURCE = Path(suture.__file__).parent
OTHER_DATA = (
    "bench/mlflow_tracking/mlflow_runs.py",
    "interfaces/mcp/client_questions.py",
    "interfaces/editor/lsp/run_findings.py",
)
"""Modules where `.data` belongs to an MLflow run, an MCP client's answer or an editor's diagnostic."""
RAW_EVENT_NAMES = {"RawPayload", "encode_payload", "decode_payload", "create_event", "decode_event"}
"""Names that know the format of an event on disk."""
ALLOWED_RAW_NAMES = {"interfaces/cli/terminal/live_view.py": {"RawPayload"}}
"""The live view only checks whether an event has a known kind."""


def list_outside_modules() -> list[str]:
    paths = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return sorted(
        path.as_posix()
        for path in paths
        if not path.is_relative_to("core/ledger") and "own" not in path.parts
    )


def find_raw_events(name: str, source: str) -> Iterator[str]:
    """Yield each use of the event format on disk in a module, as `line: what`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str() as text) if text in CATALOGUE and "." in text:
                yield f"{node.lineno}: the kind {text!r}"
            case ast.Attribute(attr="data") if name not in OTHER_DATA:
                yield f"{node.lineno}: .data"
            case ast.Compare(left=ast.Attribute(attr="kind", value=ast.Name(id="event" | "e"))):
                yield f"{node.lineno}: the kind of an event is compared"
            case ast.Name(id=word) | ast.alias(name=word) if word in RAW_EVENT_NAMES - ALLOWED_RAW_NAMES.get(
                name, set()
            ):
                yield f"{getattr(node, 'lineno', 0)}: {word}"


def test_no_module_outside_the_ledger_uses_raw_events() -> None:
    modules = list_outside_modules()
    found = {name: list(find_raw_events(name, (SOURCE / name).read_text("utf-8"))) for name in modules}

    assert len(modules) > 100
    assert {name: uses for name, uses in found.items() if uses} == {}


@pytest.mark.parametrize(
    "source",
    [
        'x = [e for e in events if e.kind == "moves.decided"]',
        'counts = {"run.started": 1}',
        'event.data["moves"]',
        "from suture.core.ledger import RawPayload",
        'ledger.append(decode_payload("moves.decided", {}))',
    ],
)
def test_the_rule_finds_raw_events(source: str) -> None:
    assert list(find_raw_events("some.py", source))
