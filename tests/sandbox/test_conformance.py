"""Every built-in sandbox conforms to the contract."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest

from requirements import Require
from sandbox.engines import gvisor_host, podman_host
from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, Sandbox
from suture.sandbox.bubblewrap.launcher import find_bubblewraps
from suture.sandbox.conformance import BEHAVIOURS, Behaviour, Conformance, NotClaimed, Violation
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.e2b import E2bSandbox

SANDBOXES: dict[str, tuple[str, Callable[[], Sandbox]]] = {
    "warm": ("bubblewrap", lambda: BubblewrapSandbox(mode="warm")),
    "spare": ("bubblewrap", lambda: BubblewrapSandbox(mode="spare")),
    "cold": ("bubblewrap", lambda: BubblewrapSandbox(mode="cold")),
    "container": ("container", lambda: ContainerSandbox(host=podman_host())),
    "gvisor": ("gvisor", lambda: ContainerSandbox(host=gvisor_host(), runtime="runsc")),
}
"""Name -> the word of `SUTURE_REQUIRE`, and what opens it."""
E2B = "e2b"
"""Another machine's, as a local server of the service's protocol makes it."""


FALLS_SHORT = {
    "gvisor": {
        "only_regular_files_come_back": "this gVisor follows links to folders, inside the box",
        "wall_time_is_limited": "a box that is killed with its program brings no files back",
        "inodes_are_limited": "it takes the option that limits them, and does not keep it",
        "killing_everything_is_survived": "the program ends the box itself, like a broken sandbox",
    }
}
"""Known; what begins to hold must leave this list."""
NOW_AND_THEN = ("killing_everything_is_survived",)
"""Of these, what falls short only where the box's end is seen before the program's."""


HEAVY = ("cold", "container", "gvisor", E2B)
"""Back ends whose start is slow: each program of theirs waits for a process, a container or a kernel."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.heavy if name in HEAVY else ()) for name in (*SANDBOXES, E2B)
    ],
)
def conformance(request: pytest.FixtureRequest, require: Require) -> Iterator[tuple[str, Conformance]]:
    with ExitStack() as held:
        if request.param == E2B:
            requirement = "e2b-server"
            open_machine = partial(open_e2b_sandbox, held.enter_context(e2b_service(require)))
            suite = held.enter_context(Conformance(open_machine, interpreter="python3", mounts=False))
        else:
            requirement, open_one = SANDBOXES[request.param]
            suite = held.enter_context(Conformance(open_one))
        try:
            suite.check(BEHAVIOURS[0])
        except SandboxUnavailable as fault:
            require(requirement, False, f"{fault.message} ({fault.remedy})")
        yield request.param, suite


@contextmanager
def e2b_service(require: Require) -> Iterator[str]:
    """The address of a server, in a process of its own: what it holds is nothing of the suite's."""
    able = os.geteuid() == 0 and find_bubblewraps() and shutil.which("python3", path="/usr/bin")
    require("e2b-server", bool(able), "its machines need root, bubblewrap and /usr/bin/python3")
    command = (sys.executable, "-m", "sandbox.e2b_server")
    paths = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().decode().strip()
        finally:
            server.kill()


def open_e2b_sandbox(address: str) -> Sandbox:
    options = {"api_url": address, "sandbox_url": address, "http_version": "1.1"}
    return E2bSandbox(key="e2b_" + "0" * 40, options=options)


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=str)
def test_our_sandboxs_conform(conformance: tuple[str, Conformance], behaviour: Behaviour) -> None:
    name, suite = conformance
    known = FALLS_SHORT.get(name, {}).get(behaviour.name)
    try:
        suite.check(behaviour)
    except NotClaimed as reason:
        pytest.skip(str(reason))
    except (Violation, SandboxBroken):
        if known is None:
            raise
        pytest.xfail(known)
    assert known is None or behaviour.name in NOW_AND_THEN, f"{name} does this by now; take it from the list"
