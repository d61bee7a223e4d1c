"""Every wall of ours does what the contract says; and a sandbox that does not is found out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from requirements import Require
from sandbox.engines import gvisor_host, podman_host
from suture.errors import SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, Sandbox
from suture.sandbox.conformance import BEHAVIOURS, Behaviour, Conformance, NotClaimed
from suture.sandbox.container import ContainerSandbox

WALLS: dict[str, tuple[str, Callable[[], Sandbox]]] = {
    "warm": ("bubblewrap", lambda: BubblewrapSandbox(mode="warm")),
    "spare": ("bubblewrap", lambda: BubblewrapSandbox(mode="spare")),
    "cold": ("bubblewrap", lambda: BubblewrapSandbox(mode="cold")),
    "container": ("container", lambda: ContainerSandbox(host=podman_host())),
    "gvisor": ("gvisor", lambda: ContainerSandbox(host=gvisor_host(), runtime="runsc")),
}
"""Name -> the word of `SUTURE_REQUIRE`, and what opens it."""


@pytest.fixture(scope="module", params=WALLS)
def conformance(request: pytest.FixtureRequest, require: Require) -> Iterator[Conformance]:
    requirement, open_wall = WALLS[request.param]
    with Conformance(open_wall) as suite:
        try:
            suite.check(BEHAVIOURS[0])
        except SandboxUnavailable as fault:
            require(requirement, False, f"{fault.message} ({fault.remedy})")
        yield suite


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=str)
def test_our_walls_conform(conformance: Conformance, behaviour: Behaviour) -> None:
    try:
        conformance.check(behaviour)
    except NotClaimed as reason:
        pytest.skip(str(reason))
