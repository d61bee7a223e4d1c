"""No package outside of the ledger reads or writes raw events: it uses payload classes and their fields."""

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
    "interfaces/editor/lsp/diagnostics.py",
)
"""Where `.data` is a run's of MLflow, an answer's of a client of MCP, a diagnostic's of an editor."""
RAW = {"RawPayload", "encode_payload", "decode_payload", "create_event", "decode_event"}
"""Names that know the format of an event on disk."""
MAY_KNOW_RAW = {"interfaces/cli/terminal/live_view.py": {"RawPayload"}}
"""The live view only asks whether an event is of any kind at all."""


def outside() -> list[str]:
    paths = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return sorted(
        path.as_posix()
        for path in paths
        if not path.is_relative_to("core/ledger") and "own" not in path.parts
    )


def raw_events_in(name: str, source: str) -> Iterator[str]:
    """Each place of a module that knows how an event lies on disk, as `line: what`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str() as text) if text in CATALOGUE and "." in text:
                yield f"{node.lineno}: the kind {text!r}"
            case ast.Attribute(attr="data") if name not in OTHER_DATA:
                yield f"{node.lineno}: .data"
            case ast.Compare(left=ast.Attribute(attr="kind", value=ast.Name(id="event" | "e"))):
                yield f"{node.lineno}: the kind of an event is compared"
            case ast.Name(id=word) | ast.alias(name=word) if word in RAW - MAY_KNOW_RAW.get(name, set()):
                yield f"{getattr(node, 'lineno', 0)}: {word}"


@pytest.mark.parametrize("name", outside())
def test_no_module_outside_the_ledger_knows_a_raw_event(name: str) -> None:
    assert list(raw_events_in(name, (SOURCE / name).read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        'x = [e for e in events if e.kind == "moves.decided"]',
        'told = {"run.started": 1}',
        'event.data["moves"]',
        "from suture.core.ledger import RawPayload",
        'ledger.append(decode_payload("moves.decided", {}))',
    ],
)
def test_the_rule_sees_a_raw_event(source: str) -> None:
    assert list(raw_events_in("some.py", source))
