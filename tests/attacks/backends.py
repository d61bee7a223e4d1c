"""The sandboxes that the attacks are run against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from attacks.trials import ATTACK_S, PATIENT_S, Skipped
from sandbox.engines import gvisor_host, podman_host
from suture.errors import SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, Capabilities, Sandbox, StartMode
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.unsafe_subprocess import UnsafeSubprocess

__all__ = ["BACKENDS", "BY_HAND", "NO_SANDBOX", "Backend", "opened"]

NOWHERE = "unix:///no/such/socket"


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A sandbox to be tried.

    Attributes:
        requirement: The word of `SUTURE_REQUIRE` that makes its absence a failure.
        make: Opens one.
        broken: Opens one that cannot work here.
        identities: As whom it is tried.
        mode: What its capabilities must say; where they say otherwise it is absent.
        attack_s: The time limit of an attack's programs.
    """

    requirement: str
    make: Callable[[], Sandbox]
    broken: Callable[[], Sandbox]
    identities: tuple[str, ...]
    mode: StartMode
    attack_s: float = ATTACK_S


def bubblewrap(mode: StartMode, *identities: str) -> Backend:
    return Backend(
        requirement="bubblewrap",
        make=lambda: BubblewrapSandbox(mode=mode),
        broken=lambda: BubblewrapSandbox(find=tuple, mode=mode),
        identities=identities,
        mode=mode,
    )


# For an ordinary user, a program in the sandbox has that user's id for the host: the harder case. Root gives
# up its id before it builds a sandbox, in each mode on its own code path. A container engine is a service,
# so its containers do not depend on who asks for them.
BACKENDS = {
    "warm": bubblewrap("warm", "root", "ordinary"),
    "spare": bubblewrap("spare", "root", "ordinary"),
    "cold": bubblewrap("cold", "root", "ordinary"),
    "container": Backend(
        requirement="container",
        make=lambda: ContainerSandbox(host=podman_host()),
        broken=lambda: ContainerSandbox(host=NOWHERE, environ={}),
        identities=("root",),
        mode="warm",
    ),
}

BY_HAND = {
    "gvisor": Backend(
        requirement="gvisor",
        make=lambda: ContainerSandbox(host=gvisor_host(), runtime="runsc"),
        broken=lambda: ContainerSandbox(host=NOWHERE, environ={}, runtime="runsc"),
        identities=("root",),
        mode="spare",
        attack_s=PATIENT_S,  # each program waits for a kernel of its own
    ),
}
"""Each program starts a kernel of its own, so that the list takes minutes (see `attacks.manual_start`)."""

NO_SANDBOX = {
    "none": Backend(
        requirement="",
        make=lambda: UnsafeSubprocess(notice=lambda: None),
        broken=lambda: UnsafeSubprocess(notice=lambda: None),
        identities=("ordinary",),
        mode="cold",
    )
}
"""What is no sandbox, to see that attacks get through where there is none."""


async def opened(backend: Backend) -> tuple[Sandbox, Capabilities]:
    """A sandbox and what it says of itself, which must be what it is tried as.

    Raises:
        Skipped: It is not there, or not in this mode.
    """
    try:
        sandbox = backend.make()
        found = await sandbox.capabilities()
    except SandboxUnavailable as fault:
        raise Skipped(str(fault), backend.requirement) from fault
    if found.mode != backend.mode:
        raise Skipped(f"no {backend.mode} wall: {found.reason}", backend.requirement)
    return sandbox, found
