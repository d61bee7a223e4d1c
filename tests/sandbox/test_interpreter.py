"""Which interpreter `python` means."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from requirements import Require
from suture.errors import PrerequisiteError, UsageError
from suture.sandbox import (
    BubblewrapSandbox,
    Mount,
    Requirement,
    RunRequest,
    discover_interpreter,
    get_own_interpreter,
    mounts_for_interpreter,
)
from suture.sandbox.mounts.mount_planning import plan_mounts
from suture.sandbox.runtimes.discovery import project_packages


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
    shim = make_python(tmp_path / "shims", f'exec "{get_own_interpreter().executable}" "$@"')
    environ = {"PATH": f"{shim.parent}:/usr/bin:/bin"}

    own = discover_interpreter(project, {"PATH": str(tmp_path)})
    assert own.executable == sys.executable or own.prefix == sys.prefix
    assert "runs Suture" in own.origin

    shimmed = discover_interpreter(project, environ)
    assert shimmed.base_prefix == get_own_interpreter().base_prefix
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
    with pytest.raises(PrerequisiteError, match="one Python installation"):
        discover_interpreter(tmp_path, {})
    (tmp_path / ".venv").rename(tmp_path / "refused")
    make_environment(tmp_path / ".venv")
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


def test_editable_installs_that_are_found_by_a_table(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    (tmp_path / "lib" / "deep").mkdir(parents=True)
    packages = next((tmp_path / ".venv" / "lib").glob("python3*/site-packages"))
    tables = {
        "it": f"MAPPING: dict[str, str] = {{'it': '{tmp_path}/it', 'a.b': '{tmp_path}/lib/a/b'}}",
        "old": f"MAPPING = {{'old': '{tmp_path}/lib/deep/old', 'renamed': '{tmp_path}/lib/other'}}",
        "out": "MAPPING: dict[str, str] = {'x': '/usr/lib/x', 'y': 1, **here, 'z': '/z'}",
        "torn": "MAPPING: dict[str, str] = {",
        "none": "MAPPING: dict[str, str]",
    }
    for name, table in tables.items():
        (packages / f"__editable___{name}_1_finder.py").write_text(f"import os\n{table}\n")
    assert discover_interpreter(tmp_path, {}).source_roots == (".", "lib", "lib/deep")


def test_only_the_parts_of_a_prefix_are_shown(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    (tmp_path / ".venv" / "secret").write_text("x")
    sources = {mount.source for mount in mounts_for_interpreter(discover_interpreter(tmp_path, {}))}
    assert {str(tmp_path / ".venv" / part) for part in ("bin", "lib", "pyvenv.cfg")} <= sources
    assert not any("secret" in source or source == str(tmp_path / ".venv") for source in sources)


def test_a_part_that_leads_out_is_refused(tmp_path: Path) -> None:
    project, private = tmp_path / "project", tmp_path / "private"
    make_environment(project / ".venv")
    private.mkdir()
    (project / ".venv" / "lib64").unlink(missing_ok=True)
    (project / ".venv" / "lib64").symlink_to(private)
    with pytest.raises(PrerequisiteError, match="leads out"):
        mounts_for_interpreter(discover_interpreter(project, {}))


def make_installation(prefix: Path, library: str = "lib") -> Path:
    """An installation as uv unpacks one, next to what is none of its business."""
    name = "python{}.{}".format(*sys.version_info[:2])
    (prefix / "bin").mkdir(parents=True)
    shutil.copy2(get_own_interpreter().executable, prefix / "bin" / name)
    (prefix / "bin" / "python3").symlink_to(name)
    (prefix / library / name / "lib-dynload").mkdir(parents=True)
    (prefix / library / name / "os.py").touch()
    (prefix / library / f"lib{name}.so.1.0").touch()
    (prefix / library / "key.txt").write_text("secret")
    (prefix / "include" / "notes").mkdir(parents=True)
    return prefix / "bin" / name


def base_environment(folder: Path, program: Path, home: Path) -> Path:
    make_environment(folder)
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to(program)
    (folder / "pyvenv.cfg").write_text(f"home = {home}\n")
    return folder


def targets(project: Path) -> set[str]:
    return {mount.target for mount in mounts_for_interpreter(discover_interpreter(project, {}))}


@pytest.mark.parametrize("library", ["lib", "lib64"])
def test_of_an_installation_only_what_python_needs_is_shown(tmp_path: Path, library: str) -> None:
    local = tmp_path / "local"
    program = make_installation(local, library)
    base_environment(tmp_path / "p" / ".venv", local / "bin" / "python3", local / "bin")
    shown = targets(tmp_path / "p")
    assert {path for path in shown if path.startswith(f"{local}/")} == {
        str(program),
        str(local / "bin" / "python3"),
        str(local / library / program.name),
        str(local / library / f"lib{program.name}.so.1.0"),
    }


def test_a_home_that_is_no_installation_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (victim / "bin").mkdir(parents=True)
    (victim / "lib" / "python3.11").mkdir(parents=True)
    (victim / "lib" / "key.txt").write_text("secret")
    shutil.copy2(get_own_interpreter().executable, victim / "bin" / "python3")
    make_installation(tmp_path / "local")
    own = Path(get_own_interpreter().executable)
    planted = tmp_path / "p" / "own"
    program = make_installation(planted)
    for at, (to, home) in enumerate(
        [
            (own, victim / "bin"),  # a real interpreter, and a home that has nothing to do with it
            (own, tmp_path / "local" / "bin"),
            (own, Path("bin")),
            (victim / "bin" / "python3", victim / "bin"),  # its own `python`, and no standard library
        ]
    ):
        base_environment(tmp_path / f"p{at}" / ".venv", to, home)
        with pytest.raises(PrerequisiteError, match="one Python installation"):
            discover_interpreter(tmp_path / f"p{at}", {})
    # An installation of its own that holds a link to what is not.
    (planted / "lib" / "libpython3.so").symlink_to(victim / "lib" / "key.txt")
    base_environment(tmp_path / "p" / ".venv", program, planted / "bin")
    with pytest.raises(PrerequisiteError, match="leads out"):
        targets(tmp_path / "p")


def test_a_part_that_leads_into_the_installation_is_refused(tmp_path: Path) -> None:
    local = tmp_path / "local"
    program = make_installation(local)
    folder = base_environment(tmp_path / "p" / ".venv", program, local / "bin")
    shutil.rmtree(folder / "include", ignore_errors=True)
    (folder / "include").symlink_to(local)
    with pytest.raises(PrerequisiteError, match="leads out"):
        targets(tmp_path / "p")


def test_a_folder_of_links_to_interpreters_may_be_home(tmp_path: Path) -> None:
    program = make_installation(tmp_path / "uv" / "python")
    links = tmp_path / "local" / "bin"
    links.mkdir(parents=True)
    (links / program.name).symlink_to(program)
    base_environment(tmp_path / "p" / ".venv", links / program.name, links)
    found = discover_interpreter(tmp_path / "p", {})
    assert found.base_prefix == str(tmp_path / "uv" / "python")
    shown = targets(tmp_path / "p")
    assert str(links / program.name) in shown
    assert not any(path in shown for path in (str(links), str(tmp_path / "local")))


def test_an_environment_of_copies_is_read(tmp_path: Path) -> None:
    venv.create(tmp_path / ".venv", with_pip=False, symlinks=False)
    assert discover_interpreter(tmp_path, {}).base_prefix == get_own_interpreter().base_prefix


def test_condas_libraries_are_its_own(tmp_path: Path) -> None:
    conda = tmp_path / ".venv"
    program = make_installation(conda)
    (conda / "bin" / "python").symlink_to(program.name)
    (conda / "lib" / program.name / "site-packages").mkdir()
    assert str(conda / "lib") not in targets(tmp_path)
    (conda / "conda-meta").mkdir()
    assert str(conda / "lib") in targets(tmp_path)


async def test_real_environments_still_run(
    tmp_path: Path, sandbox_requirement: Requirement, require: Require
) -> None:
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    make_environment(tmp_path / ".venv")
    sandbox = BubblewrapSandbox()
    code = "import ctypes, json, sqlite3, ssl, sys, sysconfig, zlib; print(sys.prefix, sys.base_prefix)"
    try:
        for interpreter in (discover_interpreter(tmp_path, {}), get_own_interpreter()):
            result = await sandbox.run(
                RunRequest(
                    argv=(interpreter.executable, "-c", code), mounts=mounts_for_interpreter(interpreter)
                )
            )
            told = f"{interpreter.prefix} {interpreter.base_prefix}\n".encode()
            assert (result.status, result.stdout) == ("ok", told), result.stderr
    finally:
        await sandbox.close()


async def test_real_environments_of_every_kind_run(
    tmp_path: Path, sandbox_requirement: Requirement, require: Require
) -> None:
    """Below a home, as pyenv, uv and conda have them: what is shown suffices to run."""
    require(
        "bubblewrap", sandbox_requirement.ok, f"{sandbox_requirement.detail} ({sandbox_requirement.remedy})"
    )
    own = get_own_interpreter()
    version = ".".join(own.version.split(".")[:2])
    home = tmp_path / "home"
    sandbox = BubblewrapSandbox()
    code = "import json, sqlite3, sys; print(sys.prefix, sys.base_prefix)"
    try:
        for kind in (".pyenv/versions/3", ".local/share/uv/python/cpython-3", "miniconda3"):
            base = home / kind
            shutil.copytree(own.base_prefix, base, symlinks=True, ignore=only_library(version))
            (base / "conda-meta").mkdir() if kind == "miniconda3" else None
            project = tmp_path / kind.replace("/", "-")
            base_environment(project / ".venv", base / "bin" / f"python{version}", base / "bin")
            found = discover_interpreter(project, {})
            result = await sandbox.run(
                RunRequest(argv=(found.executable, "-c", code), mounts=mounts_for_interpreter(found))
            )
            told = f"{project}/.venv {base}\n".encode()
            assert (result.status, result.stdout) == ("ok", told), (kind, result.stderr)
    finally:
        await sandbox.close()


def only_library(version: str) -> Callable[[str, list[str]], set[str]]:
    """For `copytree`: leaves the parts of an installation that an interpreter does not need to start."""
    left = {"site-packages", "test", "idlelib", "ensurepip", "pkgconfig", "share", "__pycache__"}
    return lambda folder, names: {
        name for name in names if name in left or (name.startswith("python3.") and version not in name)
    }


def test_a_project_chooses_no_home_and_no_folder_of_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    program = make_installation(home)
    base_environment(tmp_path / "p" / ".venv", program, home / "bin")
    assert discover_interpreter(tmp_path / "p", {}).base_prefix == str(home)
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(PrerequisiteError, match="a home folder") as caught:
        discover_interpreter(tmp_path / "p", {})
    assert "activate" in caught.value.remedy
    monkeypatch.setenv("HOME", str(home / "below"))
    with pytest.raises(PrerequisiteError, match="a home folder"):
        discover_interpreter(tmp_path / "p", {})
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        base_environment(Path(elsewhere, ".venv"), program, home / "bin")
        with pytest.raises(PrerequisiteError, match="lies in /tmp"):
            discover_interpreter(Path(elsewhere), {})


def test_an_installation_of_another_users_is_not_shown(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    program = make_installation(tmp_path / "theirs")
    base_environment(tmp_path / "p" / ".venv", program, tmp_path / "theirs" / "bin")
    discover_interpreter(tmp_path / "p", {})
    os.chown(tmp_path / "theirs", 54321, 54321)
    with pytest.raises(PrerequisiteError, match="another user"):
        discover_interpreter(tmp_path / "p", {})
    os.chown(tmp_path / "p", 54321, 54321)  # whose project it is may show their own
    discover_interpreter(tmp_path / "p", {})


def test_an_environment_that_the_user_activated_is_the_users_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make_installation(tmp_path / "home")
    elsewhere = base_environment(tmp_path / "environments" / "p", program, tmp_path / "home" / "bin")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / ".venv").symlink_to(elsewhere)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(PrerequisiteError, match="leads out of the project") as caught:
        discover_interpreter(tmp_path / "p", {"VIRTUAL_ENV": str(tmp_path / "home")})
    assert "activate" in caught.value.remedy
    for active in (elsewhere, tmp_path / "p" / ".venv"):
        found = discover_interpreter(tmp_path / "p", {"VIRTUAL_ENV": str(active)})
        assert (found.prefix, found.project) == (str(tmp_path / "p" / ".venv"), "")
        mounts_for_interpreter(found)


def test_mounts_show_link_targets_and_never_links(tmp_path: Path) -> None:
    program = make_installation(tmp_path / "uv" / "3.11.7")
    (tmp_path / "uv" / "3.11").symlink_to("3.11.7")
    minor = tmp_path / "uv" / "3.11" / "bin"
    base_environment(tmp_path / "p" / ".venv", minor / program.name, minor)
    found = mounts_for_interpreter(discover_interpreter(tmp_path / "p", {}))
    assert {mount.source for mount in found} == {os.path.realpath(mount.source) for mount in found}
    assert (str(program), str(minor / program.name)) in {(mount.source, mount.target) for mount in found}


def test_a_link_that_means_another_thing_to_the_kernel_is_refused(tmp_path: Path) -> None:
    env = make_environment(tmp_path / "p" / ".venv")
    (env / "deep" / "bin").mkdir(parents=True)
    (env / "deep" / "hop").symlink_to(get_own_interpreter().executable)
    (env / "d").symlink_to("deep/bin")
    (tmp_path / "private").mkdir()
    (env / "hop").symlink_to(tmp_path / "private")
    (env / "bin" / "python").unlink()
    (env / "bin" / "python").symlink_to("../d/../hop")
    with pytest.raises(PrerequisiteError, match="does not lead to its interpreter"):
        targets(tmp_path / "p")


def test_sockets_and_pipes_in_mounts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make_environment(tmp_path / "p" / ".venv")
    os.mkfifo(env / "lib" / "pipe")
    with pytest.raises(PrerequisiteError, match="socket, a pipe or a device"):
        targets(tmp_path / "p")
    (env / "lib" / "pipe").unlink()
    folder = next(env.glob("lib/python3.*/site-packages"))
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(folder)  # a socket's address has 107 bytes
        listener.bind("s")
        with pytest.raises(PrerequisiteError, match="socket, a pipe or a device"):
            targets(tmp_path / "p")
        with pytest.raises(UsageError, match="neither a file nor a folder"):
            plan_mounts([Mount(source=str(folder / "s"), target="/opt/s")])
    modules = tmp_path / "node_modules" / "x"
    modules.mkdir(parents=True)
    os.mkfifo(modules / "pipe")
    with pytest.raises(PrerequisiteError, match="socket, a pipe or a device"):
        project_packages(tmp_path, "node_modules")


def test_files_of_a_project_are_read_neither_for_ever_nor_through_pipes(tmp_path: Path) -> None:
    env = make_environment(tmp_path / ".venv")
    packages = next(env.glob("lib/python3.*/site-packages"))
    os.mkfifo(packages / "a.pth")
    (packages / "b.pth").symlink_to("/dev/zero")
    (packages / "c.pth").mkdir()
    (packages / "d.pth").write_text(f"{tmp_path}\n{'x' * 5000}\n/root/.ssh/x\n")
    (packages / "f.pth").write_text("a\0b\n")
    (packages / "e.pth").symlink_to("e.pth")
    assert discover_interpreter(tmp_path, {}).source_roots == (".",)
    nul = b"home = \xff\0/usr/bin\n"
    for put in (os.mkfifo, lambda p: p.symlink_to("/dev/zero"), lambda p: p.write_bytes(nul), Path.mkdir):
        (env / "pyvenv.cfg").unlink()
        put(env / "pyvenv.cfg")
        with pytest.raises(PrerequisiteError, match="one Python installation"):
            discover_interpreter(tmp_path, {})
        if (env / "pyvenv.cfg").is_dir():
            return


async def test_an_environment_based_on_the_python_that_runs_suture(tmp_path: Path) -> None:
    """Our own programs show all of its `bin`; a link of the environment's into it is no second mount."""
    own = sys.base_prefix
    env = make_environment(tmp_path / "p" / ".venv")
    (env / "bin" / "python").unlink()
    (env / "bin" / "python").symlink_to(f"{own}/bin/python3")
    both = (
        *mounts_for_interpreter(get_own_interpreter()),
        *mounts_for_interpreter(discover_interpreter(tmp_path / "p", {})),
    )
    planned = {mount.target for mount in plan_mounts(both)}
    assert f"{own}/bin/python3" not in planned
    with pytest.raises(UsageError, match="lies below"):
        plan_mounts([*both, Mount(source=str(tmp_path), target=f"{env}/lib/x")])
