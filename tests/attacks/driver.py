"""Runs rows against one sandbox in a separate process, which may belong to another user.

    python -m attacks.driver BACKEND

The driver reads the numbers of rows, one a line, and answers each with a line of JSON: `outcome` (`passed`,
`failed` or `skipped`), `detail`, and `requirement` as in `TrialSkipped`. Its first answer, before any number,
says whether the sandbox is available.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import sys
import traceback
from contextlib import closing

from attacks.backends import BACKENDS, MANUAL_BACKENDS, NO_SANDBOX, open_backend
from attacks.host_bait import HostBait
from attacks.identities import CANARY
from attacks.matrix import ROWS
from attacks.trials import AttackContext, Row, TrialFailed, TrialSkipped, run_row
from suture.sandbox import RunRequest


def main(backend: str, *rest: str) -> None:
    """Serve rows, or, for row 49, run one program until this process is killed."""
    if rest[:1] == ("--hold",):
        asyncio.run(hold(backend, rest[1]))
    else:
        with closing(HostBait(os.environ[CANARY])) as bait:
            os.environ["HOME"] = bait.home
            with (bait.folder / "canary").open() as leaked:
                os.set_inheritable(leaked.fileno(), True)
                asyncio.run(serve(backend, bait))


async def serve(name: str, bait: HostBait) -> None:
    """Open a sandbox and run the rows whose numbers arrive on stdin."""
    backend = {**BACKENDS, **MANUAL_BACKENDS, **NO_SANDBOX}[name]
    try:
        sandbox, capabilities = await open_backend(backend)
    except TrialSkipped as reason:
        print_answer("skipped", str(reason), reason.requirement)
        return
    print_answer("passed")
    context = AttackContext(
        backend=name,
        sandbox=sandbox,
        open_another=backend.open,
        open_broken=backend.open_broken,
        capabilities=capabilities,
        bait=bait,
        marker=f"sx{secrets.token_hex(6)}",
        wall_s=backend.attack_timeout_s,
    )
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            print_answer(*await try_row(ROWS[int(line)], context))
    finally:
        await sandbox.close()


async def try_row(row: Row, context: AttackContext) -> tuple[str, str, str]:
    """Return the outcome of a row, its detail, and the requirement that it lacks."""
    if row.limit and row.limit not in context.capabilities.limits:
        return "skipped", f"this sandbox says that it does not enforce {row.limit}", ""
    if row.needs and shutil.which(row.needs) is None:
        return "skipped", f"{row.needs} is not installed", row.needs
    try:
        await run_row(row, context)
    except TrialSkipped as reason:
        return "skipped", str(reason), reason.requirement
    except TrialFailed as fault:
        return "failed", str(fault), ""
    except Exception:  # any exception is a failure of this row only
        return "failed", traceback.format_exc(), ""
    return "passed", "", ""


def print_answer(outcome: str, detail: str = "", requirement: str = "") -> None:
    """Answer the parent process with a line of JSON."""
    print(json.dumps({"outcome": outcome, "detail": detail, "requirement": requirement}), flush=True)


async def hold(name: str, marker: str) -> None:
    """Run a program that sleeps longer than this process will live."""
    request = RunRequest(argv=("/bin/sh", "-c", f"sleep 600 # {marker}"))
    await {**BACKENDS, **MANUAL_BACKENDS}[name].open().run(request)


if __name__ == "__main__":
    main(*sys.argv[1:])
