"""The sandboxes that the attacks are run against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from attacks.trials import ATTACK_TIMEOUT_S, BENIGN_TIMEOUT_S, TrialSkipped
from sandbox.engines import gvisor_host, podman_host
from suture.errors import SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, Capabilities, Sandbox, StartMode
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess

__all__ = ["BACKENDS", "MANUAL_BACKENDS", "NO_SANDBOX", "Backend", "open_backend"]

NOWHERE = "unix:///no/such/socket"


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A sandbox that the attacks are run against.

    Attributes:
        requirement: The word of `SUTURE_REQUIRE` that makes its absence a failure.
        open: Opens the sandbox.
        open_broken: Opens a sandbox of the same kind that cannot work.
        identities: The users as whom it is attacked.
        mode: The start mode that its capabilities must have; otherwise the back end counts as absent.
        attack_timeout_s: The time limit of an attack's programs, in seconds.
    """

    requirement: str
    open: Callable[[], Sandbox]
    open_broken: Callable[[], Sandbox]
    identities: tuple[str, ...]
    mode: StartMode
    attack_timeout_s: float = ATTACK_TIMEOUT_S


def bubblewrap(mode: StartMode, *identities: str) -> Backend:
    """Return the back end of bubblewrap in one mode."""
    return Backend(
        requirement="bubblewrap",
        open=lambda: BubblewrapSandbox(mode=mode),
        open_broken=lambda: BubblewrapSandbox(find=tuple, mode=mode),
        identities=identities,
        mode=mode,
    )


# An ordinary user is the harder case: outside the sandbox, its programs have that user's id. Root changes its
# id before it starts a sandbox, and each mode has its own code for that. A container engine is a service, so
# its containers do not depend on the user who requests them.
BACKENDS = {
    "warm": bubblewrap("warm", "root", "ordinary"),
    "spare": bubblewrap("spare", "root", "ordinary"),
    "cold": bubblewrap("cold", "root", "ordinary"),
    "container": Backend(
        requirement="container",
        open=lambda: ContainerSandbox(host=podman_host()),
        open_broken=lambda: ContainerSandbox(host=NOWHERE, environ={}),
        identities=("root",),
        mode="warm",
    ),
}

MANUAL_BACKENDS = {
    "gvisor": Backend(
        requirement="gvisor",
        open=lambda: ContainerSandbox(host=gvisor_host(), runtime="runsc"),
        open_broken=lambda: ContainerSandbox(host=NOWHERE, environ={}, runtime="runsc"),
        identities=("root",),
        mode="spare",
        attack_timeout_s=BENIGN_TIMEOUT_S,  # each program waits for its own kernel
    ),
}
"""Each program starts its own kernel, so that the list takes minutes (see `attacks.manual_run`)."""

NO_SANDBOX = {
    "none": Backend(
        requirement="",
        open=lambda: UnsafeSubprocess(notice=lambda: None),
        open_broken=lambda: UnsafeSubprocess(notice=lambda: None),
        identities=("ordinary",),
        mode="cold",
    )
}
"""No sandbox at all, to show that the attacks succeed without one."""


async def open_backend(backend: Backend) -> tuple[Sandbox, Capabilities]:
    """Open a sandbox and return it with its capabilities, which must have the expected mode.

    Raises:
        TrialSkipped: The sandbox is not available in this mode.
    """
    try:
        sandbox = backend.open()
        capabilities = await sandbox.capabilities()
    except SandboxUnavailable as fault:
        raise TrialSkipped(str(fault), backend.requirement) from fault
    if capabilities.mode != backend.mode:
        raise TrialSkipped(f"no {backend.mode} sandbox: {capabilities.reason}", backend.requirement)
    return sandbox, capabilities
