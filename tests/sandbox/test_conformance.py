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
from sandbox.conformance import BEHAVIOURS, Behaviour, Conformance, NotClaimed, Violation
from sandbox.engines import gvisor_host, podman_host
from suture.errors import SandboxBroken, SandboxUnavailable
from suture.sandbox import BubblewrapSandbox, Sandbox
from suture.sandbox.bubblewrap.launcher import find_bubblewraps
from suture.sandbox.container import ContainerSandbox
from suture.sandbox.e2b import E2bSandbox

SANDBOXES: dict[str, tuple[str, Callable[[], Sandbox]]] = {
    "warm": ("bubblewrap", lambda: BubblewrapSandbox(mode="warm")),
    "spare": ("bubblewrap", lambda: BubblewrapSandbox(mode="spare")),
    "cold": ("bubblewrap", lambda: BubblewrapSandbox(mode="cold")),
    "container": ("container", lambda: ContainerSandbox(host=podman_host())),
    "gvisor": ("gvisor", lambda: ContainerSandbox(host=gvisor_host(), runtime="runsc")),
}
"""Name -> the word of `SUTURE_REQUIRE` that demands it, and its factory."""
E2B = "e2b"
"""E2B, against a local server of its protocol."""


KNOWN_FAILURES = {
    "gvisor": {
        "only_regular_files_come_back": "this gVisor follows links to folders inside the container",
        "wall_time_is_limited": "no files are collected from a container that is killed with its program",
        "inodes_are_limited": "gVisor accepts the option that limits inodes and ignores it",
        "killing_everything_is_survived": "the program ends the container, which looks like a broken sandbox",
    }
}
"""Sandbox -> behaviour -> why it fails; a behaviour that begins to hold must leave this list."""
INTERMITTENT_FAILURES = ("killing_everything_is_survived",)
"""Known failures that occur only if the end of the container is noticed before that of the program."""


SLOW_BACKENDS = ("cold", "container", "gvisor", E2B)
"""Sandboxes that start slowly: each of their programs waits for a process, a container or a kernel."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.heavy if name in SLOW_BACKENDS else ())
        for name in (*SANDBOXES, E2B)
    ],
)
def conformance(request: pytest.FixtureRequest, require: Require) -> Iterator[tuple[str, Conformance]]:
    """The name of a sandbox and the conformance suite that tests it."""
    with ExitStack() as stack:
        if request.param == E2B:
            requirement = "e2b-server"
            open_machine = partial(open_e2b_sandbox, stack.enter_context(run_e2b_server(require)))
            suite = stack.enter_context(Conformance(open_machine, interpreter="python3", mounts=False))
        else:
            requirement, open_sandbox = SANDBOXES[request.param]
            suite = stack.enter_context(Conformance(open_sandbox))
        try:
            suite.check(BEHAVIOURS[0])
        except SandboxUnavailable as fault:
            require(requirement, False, f"{fault.message} ({fault.remedy})")
        yield request.param, suite


@contextmanager
def run_e2b_server(require: Require) -> Iterator[str]:
    """Run a local E2B server in a separate process, so that the suite does not count its descriptors."""
    is_supported = os.geteuid() == 0 and find_bubblewraps() and shutil.which("python3", path="/usr/bin")
    require("e2b-server", bool(is_supported), "its machines need root, bubblewrap and /usr/bin/python3")
    command = (sys.executable, "-m", "sandbox.e2b_server")
    paths = os.pathsep.join(path for path in sys.path if path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().decode().strip()
        finally:
            server.kill()


def open_e2b_sandbox(address: str) -> Sandbox:
    """Open a sandbox of the E2B server at this address."""
    options = {"api_url": address, "sandbox_url": address, "http_version": "1.1"}
    return E2bSandbox(key="e2b_" + "0" * 40, options=options)


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=str)
def test_built_in_sandboxes_conform(conformance: tuple[str, Conformance], behaviour: Behaviour) -> None:
    name, suite = conformance
    known = KNOWN_FAILURES.get(name, {}).get(behaviour.name)
    try:
        suite.check(behaviour)
    except NotClaimed as reason:
        pytest.skip(str(reason))
    except (Violation, SandboxBroken):
        if known is None:
            raise
        pytest.xfail(known)

    assert known is None or behaviour.name in INTERMITTENT_FAILURES, (
        f"{name} now does this; remove it from KNOWN_FAILURES"
    )
