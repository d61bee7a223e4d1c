"""Nonce mode: a test program beside the candidate in one process, for tests that need live objects."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import module_name
from suture.judge.sandbox_programs import make_program_request
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.split.wire import BadFrame, dump, load
from suture.sandbox import Sandbox

FACT_TEXTS = ("call", "expected", "got", "exception", "file")
MOST_TEXT = 4000
"""Characters; the code under test may have written it."""


async def run_in_one_process(
    sandbox: Sandbox,
    settings: SandboxSettings,
    files: Mapping[str, bytes],
    module: str,
    source: str,
    wall_s: float | None = None,
) -> ProgramOutcome:
    """Run a test program in a candidate's process; it passes only if the nonce comes back.

    Args:
        sandbox: Where programs run.
        settings: The group `sandbox`: time and memory for each program.
        files: The candidate's project.
        module: The path of the module whose names the program uses.
        source: The test program, as Python source.
        wall_s: Seconds for it; the settings' `check_wall_s` where it is left out.
    """
    limit_s = wall_s or settings.check_wall_s
    nonce = secrets.token_hex(32)
    request = make_program_request("split.nonce_program", files, settings, wall_s=limit_s + 5)
    async with sandbox.open(request) as channel:
        await channel.send(dump({"nonce": nonce, "module": module_name(module), "source": source}))
        frame = await channel.receive(limit_s)
        ended = await channel.finish()
    outcome = _outcome(frame, nonce)
    if outcome is None:
        if ended.status == "timeout":
            return ProgramOutcome(
                status="timeout", fact={"exception": f"the test did not end within {limit_s:g} s"}
            )
        how = f"signal {ended.signal}" if ended.signal is not None else f"exit code {ended.exit_code}"
        return ProgramOutcome(
            status="error", fact={"exception": f"the program ended before the test did ({how})"}
        )
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
        key: reported[key][:MOST_TEXT] for key in FACT_TEXTS if isinstance(reported.get(key), str)
    }
    if type(reported.get("line")) is int:
        fact["line"] = reported["line"]
    return fact
