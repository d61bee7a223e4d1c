"""Nonce mode: a test program and the candidate in one process, for tests that need live objects."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import get_module_name
from suture.judge.failures import render_failure, render_run_ending
from suture.judge.sandbox_programs import make_program_request
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.split.wire import BadFrame, dump, load
from suture.judge.tuning import MAX_FAULT_CHARS, NONCE_START_S
from suture.sandbox import Sandbox

FACT_TEXTS = ("call", "expected", "actual", "exception", "file")


async def run_with_nonce(
    sandbox: Sandbox,
    settings: SandboxSettings,
    files: Mapping[str, bytes],
    module: str,
    source: str,
    wall_s: float | None = None,
) -> ProgramOutcome:
    """Run a test program in the candidate's process; it passes only if the nonce comes back.

    Args:
        sandbox: Runs the program.
        settings: The sandbox limits.
        files: The candidate's project files.
        module: The path of the module whose names the program uses.
        source: The test program as Python source.
        wall_s: The time limit in seconds; the setting `check_timeout_s` by default.
    """
    limit_s = wall_s or settings.check_timeout_s
    nonce = secrets.token_hex(32)
    request = make_program_request("split.nonce_program", files, settings, wall_s=limit_s + NONCE_START_S)
    async with sandbox.open(request) as channel:
        await channel.send(dump({"nonce": nonce, "module": get_module_name(module), "source": source}))
        frame = await channel.receive(limit_s)
        ended = await channel.finish()
    outcome = _outcome(frame, nonce)
    if outcome is None:
        if ended.status == "timeout":
            fact = {"exception": render_failure("test_timeout", seconds=limit_s), "code": "test_timeout"}
            return ProgramOutcome(status="timeout", fact=fact)
        text = f"{render_failure('process_ended')} before the test did ({render_run_ending(ended)})"
        return ProgramOutcome(status="error", fact={"exception": text, "code": "process_ended"})
    return ProgramOutcome(status="passed" if outcome.get("passed") is True else "failed", fact=_fact(outcome))


def _outcome(frame: bytes | None, nonce: str) -> dict[str, Any] | None:
    try:
        message = load(frame) if frame is not None else {}
    except BadFrame:
        return None
    known = message.get("nonce")
    return message if isinstance(known, str) and hmac.compare_digest(known.encode(), nonce.encode()) else None


def _fact(outcome: dict[str, Any]) -> dict[str, Any]:
    reported = outcome.get("fact")
    if not isinstance(reported, dict):
        return {}
    fact: dict[str, Any] = {
        key: reported[key][:MAX_FAULT_CHARS] for key in FACT_TEXTS if isinstance(reported.get(key), str)
    }
    if type(reported.get("line")) is int:
        fact["line"] = reported["line"]
    return fact
