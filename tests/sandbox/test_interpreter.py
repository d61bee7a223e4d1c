"""Which interpreter `python` means."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from suture.errors import PrerequisiteError
from suture.sandbox import discover_interpreter, interpreter_mounts, own_interpreter


def make_environment(folder: Path) -> Path:
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


def make_python(folder: Path, script: str) -> Path:
    folder.mkdir(parents=True)
    program = folder / "python"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return program


def test_the_order(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    active = make_environment(tmp_path / "active")
    shim = make_python(tmp_path / "shims", f'exec "{own_interpreter().executable}" "$@"')
    environ = {"PATH": f"{shim.parent}:/usr/bin:/bin"}

    own = discover_interpreter(project, {"PATH": str(tmp_path)})
    assert own.executable == sys.executable or own.prefix == sys.prefix
    assert "runs Suture" in own.origin

    shimmed = discover_interpreter(project, environ)
    assert shimmed.base_prefix == own_interpreter().base_prefix
    assert (Path(shimmed.executable).name.startswith("python"), str(shim) in shimmed.origin) == (True, True)

    activated = discover_interpreter(project, {**environ, "VIRTUAL_ENV": str(active)})
    assert (activated.prefix, activated.is_virtual) == (str(active), True)
    assert activated.executable == str(active / "bin" / "python")

    make_environment(project / ".venv")
    local = discover_interpreter(project, {**environ, "VIRTUAL_ENV": str(active)})
    assert (local.prefix, local.origin) == (str(project / ".venv"), "the project's .venv")
    assert local.version == "{}.{}.{}".format(*sys.version_info[:3])


def test_a_broken_environment_is_named_and_never_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to("/no/such/python")
    with pytest.raises(PrerequisiteError, match=r"project's \.venv") as caught:
        discover_interpreter(tmp_path, {})
    assert "venv" in caught.value.remedy


def test_a_projects_own_programs_never_run_on_the_host(tmp_path: Path) -> None:
    trap = f"touch {tmp_path}/sprung; exit 1"
    make_environment(tmp_path / ".venv")
    (tmp_path / ".venv" / "bin" / "python").unlink()
    program = make_python(tmp_path / "trap", trap)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(program)
    packages = next((tmp_path / ".venv" / "lib").glob("python3*/site-packages"))
    (packages / "trap.pth").write_text(f"import os; os.system('touch {tmp_path}/sprung')\n")
    discover_interpreter(tmp_path, {})
    (tmp_path / ".venv").rename(tmp_path / "other")
    discover_interpreter(tmp_path, {"PATH": f"{program.parent}:trap"})
    assert not (tmp_path / "sprung").exists()


def test_a_shim_that_answers_nothing_is_no_python(tmp_path: Path) -> None:
    shim = make_python(tmp_path / "shims", "echo 'pyenv: python: command not found' >&2; exit 127")
    assert "runs Suture" in discover_interpreter(None, {"PATH": str(shim.parent)}).origin


def test_editable_installs_are_found(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    (tmp_path / "src").mkdir()
    packages = next((tmp_path / ".venv" / "lib").glob("python3*/site-packages"))
    (packages / "_it.pth").write_text(
        f"# comment\nimport os\n{tmp_path}/src\n{tmp_path}\n/usr/lib\n/nowhere\n"
    )
    assert discover_interpreter(tmp_path, {}).source_roots == ("src", ".")


def test_only_the_parts_of_a_prefix_are_shown(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    (tmp_path / ".venv" / "secret").write_text("x")
    sources = {mount.source for mount in interpreter_mounts(discover_interpreter(tmp_path, {}))}
    assert {str(tmp_path / ".venv" / part) for part in ("bin", "lib", "pyvenv.cfg")} <= sources
    assert not any("secret" in source or source == str(tmp_path / ".venv") for source in sources)


def test_a_part_that_leads_out_is_refused(tmp_path: Path) -> None:
    project, private = tmp_path / "project", tmp_path / "private"
    make_environment(project / ".venv")
    private.mkdir()
    (project / ".venv" / "lib64").unlink(missing_ok=True)
    (project / ".venv" / "lib64").symlink_to(private)
    with pytest.raises(PrerequisiteError, match="leads out"):
        interpreter_mounts(discover_interpreter(project, {}))
