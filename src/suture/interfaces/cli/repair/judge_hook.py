"""Answer a coding agent's hook: tell the agent why its change is rejected, so that it goes on instead of ending.

Claude Code and Codex (event `Stop`) and Gemini CLI (event `AfterAgent`) start a program with a JSON document on stdin
and read a JSON document from stdout. `{"decision": "block", "reason": ...}` makes the agent continue with the reason
as its next instruction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suture.core.records import content_hash
from suture.core.records.judgement import Judgement
from suture.core.safe_files import write_file_atomically
from suture.errors import UsageError

MAX_HOOK_INPUT_CHARS = 4 * 2**20
MAX_BLOCKS = 3
"""How often one session of an agent is told to go on. After that a person has to look."""
MAX_REASONS = 10
"""Findings that the agent is told. Chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class HookCall:
    """What an agent tells its hook.

    Attributes:
        folder: The agent's working folder; `None` if it names none.
        session: Identifies the agent's session; empty if it names none.
    """

    folder: Path | None
    session: str


def read_hook_call(text: str) -> HookCall:
    """Read the document that an agent sends to its hook.

    Raises:
        UsageError: It is not a JSON object.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise UsageError(
            "stdin holds no JSON of a hook", remedy="--hook is for the hooks of coding agents (docs/judge.md)"
        ) from fault
    if not isinstance(values, dict):
        raise UsageError("stdin holds no JSON object of a hook")
    folder = values.get("cwd")
    return HookCall(
        folder=Path(folder) if isinstance(folder, str) and folder else None,
        session=str(values.get("session_id") or ""),
    )


def answer_hook(judgement: Judgement, reasons: str, call: HookCall, home: Path) -> Mapping[str, Any]:
    """Return the answer to the agent, and count it if it makes the agent go on.

    Args:
        reasons: Why the change is rejected, for the agent.
        home: Suture's folder, in which the sessions are counted.
    """
    counter = home / "judge-hooks" / content_hash([call.session])[:16]
    if judgement.outcome != "rejected":
        counter.unlink(missing_ok=True)
        return {}
    blocks = _read_count(counter)
    if blocks >= MAX_BLOCKS:
        note = f"Suture still rejects the change after {blocks} attempts. {reasons}"
        return {"systemMessage": note}
    counter.parent.mkdir(parents=True, exist_ok=True)
    write_file_atomically(counter, str(blocks + 1).encode())
    return {"decision": "block", "reason": reasons}


def _read_count(counter: Path) -> int:
    try:
        return int(counter.read_text("ascii")[:4])
    except (OSError, ValueError):
        return 0
