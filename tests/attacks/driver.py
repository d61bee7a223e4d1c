"""Tries rows against one sandbox, in a process of its own and as whatever user that process is.

    python -m attacks.driver BACKEND

It reads numbers of rows, one a line, and answers each with a line of JSON: `outcome` (`passed`, `failed`,
`skipped`), `detail`, and for what was skipped `word`, as in `Skipped`. The first answer, to no question, says
whether the sandbox is there.
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

from attacks.backends import BACKENDS, BY_HAND, NO_SANDBOX, opened
from attacks.host_bait import Ground
from attacks.identities import CANARY
from attacks.matrix import ROWS
from attacks.trials import Failed, Row, Skipped, World, face
from suture.sandbox import RunRequest


def main(backend: str, *rest: str) -> None:
    """Serve, or hold one run for row 49."""
    if rest[:1] == ("--hold",):
        asyncio.run(hold(backend, rest[1]))
    else:
        with closing(Ground(os.environ[CANARY])) as ground:
            os.environ["HOME"] = ground.home
            with (ground.folder / "canary").open() as leaked:
                os.set_inheritable(leaked.fileno(), True)
                asyncio.run(serve(backend, ground))


async def serve(name: str, ground: Ground) -> None:
    backend = {**BACKENDS, **BY_HAND, **NO_SANDBOX}[name]
    try:
        sandbox, able = await opened(backend)
    except Skipped as reason:
        answer("skipped", str(reason), reason.word)
        return
    answer("passed")
    world = World(
        backend=name,
        sandbox=sandbox,
        another=backend.make,
        broken=backend.broken,
        able=able,
        ground=ground,
        marker=f"sx{secrets.token_hex(6)}",
        wall_s=backend.attack_s,
    )
    try:
        while line := await asyncio.to_thread(sys.stdin.readline):
            answer(*await outcome(ROWS[int(line)], world))
    finally:
        await sandbox.close()


async def outcome(row: Row, world: World) -> tuple[str, str, str]:
    if row.limit and row.limit not in world.able.limits:
        return "skipped", f"this sandbox says that it does not enforce {row.limit}", ""
    if row.needs and shutil.which(row.needs) is None:
        return "skipped", f"{row.needs} is not installed", row.needs
    try:
        await face(row, world)
    except Skipped as reason:
        return "skipped", str(reason), reason.word
    except Failed as fault:
        return "failed", str(fault), ""
    except Exception:  # whatever it is, it is this row's failure, and the next row must be tried
        return "failed", traceback.format_exc(), ""
    return "passed", "", ""


def answer(outcome: str, detail: str = "", word: str = "") -> None:
    print(json.dumps({"outcome": outcome, "detail": detail, "word": word}), flush=True)


async def hold(name: str, marker: str) -> None:
    request = RunRequest(argv=("/bin/sh", "-c", f"sleep 600 # {marker}"))
    await {**BACKENDS, **BY_HAND}[name].make().run(request)


if __name__ == "__main__":
    main(*sys.argv[1:])
