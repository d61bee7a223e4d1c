"""What `suture doctor` tells about the sandbox."""

from __future__ import annotations

import asyncio

from suture.errors import SandboxError
from suture.sandbox.bubblewrap import BubblewrapSandbox
from suture.sandbox.diagnosis import Finding, kernel_findings

__all__ = ["diagnose_sandbox"]


def diagnose_sandbox(sandbox: BubblewrapSandbox | None = None) -> list[Finding]:
    """Try the sandbox for real and tell what is there and what is missing.

    Not for use inside a running event loop.

    Args:
        sandbox: Which one; by default the one that a run would use.
    """
    return [*kernel_findings(), asyncio.run(_try(sandbox or BubblewrapSandbox()))]


async def _try(sandbox: BubblewrapSandbox) -> Finding:
    try:
        path = await sandbox.choose()
        able = await sandbox.capabilities()
    except SandboxError as fault:
        return Finding(name="bubblewrap", ok=False, detail=fault.message, remedy=fault.remedy)
    finally:
        await sandbox.close()
    mode = able.mode if able.mode == "warm" else f"cold, a wall for each run: {able.reason}"
    return Finding(name="bubblewrap", ok=True, detail=f"{path} works ({mode})")
