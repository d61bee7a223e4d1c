"""Cargo behind rustup is that of the toolchain, not the link to rustup."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.errors import PrerequisiteError
from suture.sandbox.runtimes.environments import follow_rustup


@pytest.fixture
def shim(tmp_path: Path) -> Path:
    """Create a link `cargo` to rustup, and two toolchains of which `stable-x` is the default."""
    programs = tmp_path / ".cargo" / "bin"
    programs.mkdir(parents=True)
    (programs / "rustup").touch()
    (programs / "cargo").symlink_to("rustup")
    for name in ("stable-x", "nightly-x"):
        (tmp_path / ".rustup" / "toolchains" / name / "bin").mkdir(parents=True)
        (tmp_path / ".rustup" / "toolchains" / name / "bin" / "cargo").touch()
    (tmp_path / ".rustup" / "settings.toml").write_text('default_toolchain = "stable-x"\n')
    return programs / "cargo"


def test_the_toolchain_is_the_default_or_that_of_the_environment(shim: Path, tmp_path: Path) -> None:
    toolchains = tmp_path / ".rustup" / "toolchains"
    assert follow_rustup(shim, {"HOME": str(tmp_path)}) == toolchains / "stable-x/bin/cargo"
    chosen = {"RUSTUP_HOME": str(tmp_path / ".rustup"), "RUSTUP_TOOLCHAIN": "nightly-x"}
    assert follow_rustup(shim, chosen) == toolchains / "nightly-x/bin/cargo"


def test_a_toolchain_that_is_not_installed_is_an_error(shim: Path, tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="rustup has no 'cargo' in its toolchain 'beta'") as caught:
        follow_rustup(shim, {"HOME": str(tmp_path), "RUSTUP_TOOLCHAIN": "beta"})
    assert caught.value.remedy == "unset RUSTUP_TOOLCHAIN"


def test_a_toolchain_may_be_named_without_its_platform(shim: Path, tmp_path: Path) -> None:
    chosen = {"HOME": str(tmp_path), "RUSTUP_TOOLCHAIN": "nightly"}
    assert follow_rustup(shim, chosen) == tmp_path / ".rustup/toolchains/nightly-x/bin/cargo"


def test_any_other_program_is_itself(tmp_path: Path) -> None:
    program = tmp_path / "cargo"
    program.touch()
    assert follow_rustup(program, {}) == program
