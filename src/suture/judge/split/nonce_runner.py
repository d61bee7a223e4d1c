"""The host's side of nonce mode, which runs a test program and the candidate in one process.

Nonce mode is for tests that need live objects: objects that are more than data, such as a result whose
methods the test calls. The split verdict cannot run these, because only data crosses between its processes.

A nonce is a random text that nobody can guess. The host sends it before the candidate is loaded, and the
program sends it back after the test's last statement. So a candidate that ends the process early, or that
writes an outcome of its own, does not pass. A candidate that reads the process's memory can find the nonce;
that is why verdicts list the checks that were run this way.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

from suture.core.settings import SandboxSettings
from suture.judge.extraction.program_plans import ProgramPlan, get_module_name
from suture.judge.failures import render_failure, render_run_ending
from suture.judge.sandbox_programs import make_program_request
from suture.judge.split.split_runner import ProgramOutcome
from suture.judge.split.wire import BadFrame, dump, load
from suture.judge.tuning import MAX_FAULT_CHARS, NONCE_GRACE_S
from suture.sandbox import Sandbox

FACT_TEXTS = ("call", "expected", "actual", "exception", "file")
"""The fields of a reported fact that are text."""


async def run_with_nonce(
    sandbox: Sandbox,
    settings: SandboxSettings,
    files: Mapping[str, bytes],
    module: str,
    program: ProgramPlan,
    wall_s: float | None = None,
) -> ProgramOutcome:
    """Run a test program and the candidate in one process; the program passes only if the nonce comes back.

    Args:
        module: The path of the module whose names the program uses.
        wall_s: The time limit in seconds; the setting `check_timeout_s` by default.
    """
    limit_s = wall_s or settings.check_timeout_s
    nonce = secrets.token_hex(32)
    # The host's wait of `limit_s` is the test's limit. The sandbox's own limit only backs it up.
    request = make_program_request("split.nonce_program", files, settings, wall_s=limit_s + NONCE_GRACE_S)
    async with sandbox.open(request) as channel:
        names = {name: dict(target) for name, target in program.names.items()}
        message = {"module": get_module_name(module), "source": program.source, "names": names}
        await channel.send(dump({"nonce": nonce, **message}))
        frame = await channel.receive(limit_s)
        run_result = await channel.finish()
    outcome = _read_outcome(frame, nonce)
    if outcome is None:
        if run_result.status == "timeout":
            text = render_failure("test_timeout", seconds=limit_s)
            return ProgramOutcome(status="timeout", fact={"exception": text, "code": "test_timeout"})
        text = f"{render_failure('process_ended')} before the test did ({render_run_ending(run_result)})"
        return ProgramOutcome(status="error", fact={"exception": text, "code": "process_ended"})
    return ProgramOutcome(
        status="passed" if outcome.get("passed") is True else "failed", fact=_read_fact(outcome)
    )


def _read_outcome(frame: bytes | None, nonce: str) -> dict[str, Any] | None:
    """Return the message with the outcome; `None` if it is malformed or does not contain the nonce."""
    try:
        message = load(frame) if frame is not None else {}
    except BadFrame:
        return None
    claimed_nonce = message.get("nonce")
    if not isinstance(claimed_nonce, str):
        return None
    return message if hmac.compare_digest(claimed_nonce.encode(), nonce.encode()) else None


def _read_fact(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the reported fact that have the right type; the candidate may have written it."""
    reported = outcome.get("fact")
    if not isinstance(reported, dict):
        return {}
    fact: dict[str, Any] = {
        key: reported[key][:MAX_FAULT_CHARS] for key in FACT_TEXTS if isinstance(reported.get(key), str)
    }
    if type(reported.get("line")) is int:
        fact["line"] = reported["line"]
    return fact
