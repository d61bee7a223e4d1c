"""Which interpreter is chosen for a project, and which parts of it are mounted in the sandbox."""

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

from sandbox.sandbox_programs import write_script
from suture.errors import PrerequisiteError, UsageError
from suture.sandbox import (
    BubblewrapSandbox,
    Mount,
    RunRequest,
    discover_interpreter,
    get_own_interpreter,
    mounts_for_interpreter,
)
from suture.sandbox.mounts.mount_planning import plan_mounts
from suture.sandbox.runtimes.discovery import project_packages


def make_environment(folder: Path) -> Path:
    """Create a virtual environment of the running interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    return folder


def make_python(folder: Path, script: str) -> Path:
    """Write a program named `python` that runs a shell script."""
    folder.mkdir(parents=True)
    return write_script(folder / "python", script)


def test_interpreters_are_tried_in_order(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    active = make_environment(tmp_path / "active")
    shim = make_python(tmp_path / "shims", f'exec "{get_own_interpreter().executable}" "$@"')
    path_environ = {"PATH": f"{shim.parent}:/usr/bin:/bin"}

    own = discover_interpreter(project, {"PATH": str(tmp_path)})
    assert own.executable == sys.executable or own.prefix == sys.prefix
    assert "runs Suture" in own.origin

    shimmed = discover_interpreter(project, path_environ)
    assert shimmed.base_prefix == get_own_interpreter().base_prefix
    assert (Path(shimmed.executable).name.startswith("python"), str(shim) in shimmed.origin) == (True, True)

    activated = discover_interpreter(project, {**path_environ, "VIRTUAL_ENV": str(active)})
    assert (activated.prefix, activated.is_virtual) == (str(active), True)
    assert activated.executable == str(active / "bin" / "python")

    make_environment(project / ".venv")
    local = discover_interpreter(project, {**path_environ, "VIRTUAL_ENV": str(active)})
    assert (local.prefix, local.origin) == (str(project / ".venv"), "the project's .venv")
    assert local.version == "{}.{}.{}".format(*sys.version_info[:3])


def test_a_broken_project_environment_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to("/no/such/python")
    with pytest.raises(PrerequisiteError, match=r"project's \.venv") as caught:
        discover_interpreter(tmp_path, {})
    assert "venv" in caught.value.remedy


def test_programs_of_a_project_never_run_on_the_host(tmp_path: Path) -> None:
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


def test_a_failing_shim_is_ignored(tmp_path: Path) -> None:
    shim = make_python(tmp_path / "shims", "echo 'pyenv: python: command not found' >&2; exit 127")
    assert "runs Suture" in discover_interpreter(None, {"PATH": str(shim.parent)}).origin


def test_source_roots_are_read_from_pth_files(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    (tmp_path / "src").mkdir()
    packages = next((tmp_path / ".venv" / "lib").glob("python3*/site-packages"))
    (packages / "_it.pth").write_text(
        f"# comment\nimport os\n{tmp_path}/src\n{tmp_path}\n/usr/lib\n/nowhere\n"
    )

    assert discover_interpreter(tmp_path, {}).source_roots == ("src", ".")


def test_source_roots_are_read_from_editable_finder_modules(tmp_path: Path) -> None:
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


def test_only_known_parts_of_a_prefix_are_mounted(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    (tmp_path / ".venv" / "secret").write_text("x")
    sources = {mount.source for mount in mounts_for_interpreter(discover_interpreter(tmp_path, {}))}
    assert {str(tmp_path / ".venv" / part) for part in ("bin", "lib", "pyvenv.cfg")} <= sources
    assert not any("secret" in source or source == str(tmp_path / ".venv") for source in sources)


def test_a_part_linked_to_a_folder_outside_is_refused(tmp_path: Path) -> None:
    project, private = tmp_path / "project", tmp_path / "private"
    make_environment(project / ".venv")
    private.mkdir()
    (project / ".venv" / "lib64").unlink(missing_ok=True)
    (project / ".venv" / "lib64").symlink_to(private)

    with pytest.raises(PrerequisiteError, match="leads out"):
        mounts_for_interpreter(discover_interpreter(project, {}))


def make_installation(prefix: Path, library: str = "lib") -> Path:
    """Create an installation as uv unpacks one, beside files that do not belong to it."""
    version_name = "python{}.{}".format(*sys.version_info[:2])
    (prefix / "bin").mkdir(parents=True)
    shutil.copy2(get_own_interpreter().executable, prefix / "bin" / version_name)
    (prefix / "bin" / "python3").symlink_to(version_name)
    (prefix / library / version_name / "lib-dynload").mkdir(parents=True)
    (prefix / library / version_name / "os.py").touch()
    (prefix / library / f"lib{version_name}.so.1.0").touch()
    (prefix / library / "key.txt").write_text("secret")
    (prefix / "include" / "notes").mkdir(parents=True)
    return prefix / "bin" / version_name


def make_linked_environment(folder: Path, program: Path, home: Path) -> Path:
    """Create an environment whose interpreter is a link to `program` and whose configuration names `home`."""
    make_environment(folder)
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to(program)
    (folder / "pyvenv.cfg").write_text(f"home = {home}\n")
    return folder


def mount_targets(project: Path) -> set[str]:
    """Return the paths at which the project's interpreter is mounted."""
    return {mount.target for mount in mounts_for_interpreter(discover_interpreter(project, {}))}


@pytest.mark.parametrize("library", ["lib", "lib64"])
def test_only_needed_parts_of_an_installation_are_mounted(tmp_path: Path, library: str) -> None:
    local = tmp_path / "local"
    program = make_installation(local, library)
    make_linked_environment(tmp_path / "p" / ".venv", local / "bin" / "python3", local / "bin")
    targets = mount_targets(tmp_path / "p")

    assert {path for path in targets if path.startswith(f"{local}/")} == {
        str(program),
        str(local / "bin" / "python3"),
        str(local / library / program.name),
        str(local / library / f"lib{program.name}.so.1.0"),
    }


def test_a_home_that_is_not_an_installation_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    (victim / "bin").mkdir(parents=True)
    (victim / "lib" / "python3.11").mkdir(parents=True)
    (victim / "lib" / "key.txt").write_text("secret")
    shutil.copy2(get_own_interpreter().executable, victim / "bin" / "python3")
    make_installation(tmp_path / "local")
    own = Path(get_own_interpreter().executable)
    installation = tmp_path / "p" / "own"
    program = make_installation(installation)

    for number, (target, home) in enumerate(
        [
            (own, victim / "bin"),  # a real interpreter with an unrelated home
            (own, tmp_path / "local" / "bin"),
            (own, Path("bin")),
            (victim / "bin" / "python3", victim / "bin"),  # a `python` without a standard library
        ]
    ):
        make_linked_environment(tmp_path / f"p{number}" / ".venv", target, home)
        with pytest.raises(PrerequisiteError, match="one Python installation"):
            discover_interpreter(tmp_path / f"p{number}", {})

    # An installation inside the project that contains a link to a file of the user.
    (installation / "lib" / "libpython3.so").symlink_to(victim / "lib" / "key.txt")
    make_linked_environment(tmp_path / "p" / ".venv", program, installation / "bin")
    with pytest.raises(PrerequisiteError, match="leads out"):
        mount_targets(tmp_path / "p")


def test_a_part_linked_to_the_installation_is_refused(tmp_path: Path) -> None:
    local = tmp_path / "local"
    program = make_installation(local)
    folder = make_linked_environment(tmp_path / "p" / ".venv", program, local / "bin")
    shutil.rmtree(folder / "include", ignore_errors=True)
    (folder / "include").symlink_to(local)

    with pytest.raises(PrerequisiteError, match="leads out"):
        mount_targets(tmp_path / "p")


def test_the_home_may_be_a_folder_of_links_to_interpreters(tmp_path: Path) -> None:
    program = make_installation(tmp_path / "uv" / "python")
    links = tmp_path / "local" / "bin"
    links.mkdir(parents=True)
    (links / program.name).symlink_to(program)
    make_linked_environment(tmp_path / "p" / ".venv", links / program.name, links)
    interpreter = discover_interpreter(tmp_path / "p", {})

    assert interpreter.base_prefix == str(tmp_path / "uv" / "python")

    targets = mount_targets(tmp_path / "p")
    assert str(links / program.name) in targets
    assert not any(path in targets for path in (str(links), str(tmp_path / "local")))


def test_an_environment_made_of_copies_is_discovered(tmp_path: Path) -> None:
    venv.create(tmp_path / ".venv", with_pip=False, symlinks=False)
    assert discover_interpreter(tmp_path, {}).base_prefix == get_own_interpreter().base_prefix


def test_the_whole_library_of_a_conda_environment_is_mounted(tmp_path: Path) -> None:
    conda = tmp_path / ".venv"
    program = make_installation(conda)
    (conda / "bin" / "python").symlink_to(program.name)
    (conda / "lib" / program.name / "site-packages").mkdir()

    assert str(conda / "lib") not in mount_targets(tmp_path)

    (conda / "conda-meta").mkdir()
    assert str(conda / "lib") in mount_targets(tmp_path)


@pytest.mark.usefixtures("bubblewrap_works")
async def test_real_environments_run_in_the_sandbox(tmp_path: Path) -> None:
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
            expected_stdout = f"{interpreter.prefix} {interpreter.base_prefix}\n".encode()
            assert (result.status, result.stdout) == ("ok", expected_stdout), result.stderr
    finally:
        await sandbox.close()


@pytest.mark.usefixtures("bubblewrap_works")
async def test_environments_of_pyenv_uv_and_conda_run_in_the_sandbox(tmp_path: Path) -> None:
    """The mounted parts of an installation in a home folder are enough to run it."""
    own = get_own_interpreter()
    version = ".".join(own.version.split(".")[:2])
    home = tmp_path / "home"
    sandbox = BubblewrapSandbox()
    code = "import json, sqlite3, sys; print(sys.prefix, sys.base_prefix)"

    try:
        for kind in (".pyenv/versions/3", ".local/share/uv/python/cpython-3", "miniconda3"):
            base = home / kind
            shutil.copytree(own.base_prefix, base, symlinks=True, ignore=ignore_unneeded_parts(version))
            if kind == "miniconda3":
                (base / "conda-meta").mkdir()
            project = tmp_path / kind.replace("/", "-")
            make_linked_environment(project / ".venv", base / "bin" / f"python{version}", base / "bin")
            interpreter = discover_interpreter(project, {})
            result = await sandbox.run(
                RunRequest(
                    argv=(interpreter.executable, "-c", code), mounts=mounts_for_interpreter(interpreter)
                )
            )
            expected_stdout = f"{project}/.venv {base}\n".encode()
            assert (result.status, result.stdout) == ("ok", expected_stdout), (kind, result.stderr)
    finally:
        await sandbox.close()


def ignore_unneeded_parts(version: str) -> Callable[[str, list[str]], set[str]]:
    """Return an `ignore` function for `copytree` that skips what an interpreter does not need to start."""
    unneeded = {"site-packages", "test", "idlelib", "ensurepip", "pkgconfig", "share", "__pycache__"}
    return lambda folder, names: {
        name for name in names if name in unneeded or (name.startswith("python3.") and version not in name)
    }


def test_a_project_cannot_expose_a_home_or_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    program = make_installation(home)
    make_linked_environment(tmp_path / "p" / ".venv", program, home / "bin")
    assert discover_interpreter(tmp_path / "p", {}).base_prefix == str(home)

    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(PrerequisiteError, match="a home folder") as caught:
        discover_interpreter(tmp_path / "p", {})
    assert "activate" in caught.value.remedy

    monkeypatch.setenv("HOME", str(home / "below"))

    with pytest.raises(PrerequisiteError, match="a home folder"):
        discover_interpreter(tmp_path / "p", {})
    with tempfile.TemporaryDirectory(dir="/dev/shm") as project:
        make_linked_environment(Path(project, ".venv"), program, home / "bin")
        with pytest.raises(PrerequisiteError, match="lies in /tmp"):
            discover_interpreter(Path(project), {})


def test_an_installation_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    program = make_installation(tmp_path / "theirs")
    make_linked_environment(tmp_path / "p" / ".venv", program, tmp_path / "theirs" / "bin")
    discover_interpreter(tmp_path / "p", {})
    os.chown(tmp_path / "theirs", 54321, 54321)

    with pytest.raises(PrerequisiteError, match="another user"):
        discover_interpreter(tmp_path / "p", {})

    os.chown(tmp_path / "p", 54321, 54321)  # the owner of the project may use an own installation
    discover_interpreter(tmp_path / "p", {})


def test_an_activated_environment_may_lie_outside_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = make_installation(tmp_path / "home")
    environment = make_linked_environment(tmp_path / "environments" / "p", program, tmp_path / "home" / "bin")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / ".venv").symlink_to(environment)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    with pytest.raises(PrerequisiteError, match="leads out of the project") as caught:
        discover_interpreter(tmp_path / "p", {"VIRTUAL_ENV": str(tmp_path / "home")})
    assert "activate" in caught.value.remedy
    for active in (environment, tmp_path / "p" / ".venv"):
        interpreter = discover_interpreter(tmp_path / "p", {"VIRTUAL_ENV": str(active)})
        assert (interpreter.prefix, interpreter.project) == (str(tmp_path / "p" / ".venv"), "")
        mounts_for_interpreter(interpreter)


def test_mount_sources_are_never_links(tmp_path: Path) -> None:
    program = make_installation(tmp_path / "uv" / "3.11.7")
    (tmp_path / "uv" / "3.11").symlink_to("3.11.7")
    minor = tmp_path / "uv" / "3.11" / "bin"
    make_linked_environment(tmp_path / "p" / ".venv", minor / program.name, minor)
    mounts = mounts_for_interpreter(discover_interpreter(tmp_path / "p", {}))

    assert {mount.source for mount in mounts} == {os.path.realpath(mount.source) for mount in mounts}
    assert (str(program), str(minor / program.name)) in {(mount.source, mount.target) for mount in mounts}


def test_a_link_that_the_kernel_resolves_differently_is_refused(tmp_path: Path) -> None:
    environment = make_environment(tmp_path / "p" / ".venv")
    (environment / "deep" / "bin").mkdir(parents=True)
    (environment / "deep" / "hop").symlink_to(get_own_interpreter().executable)
    (environment / "d").symlink_to("deep/bin")
    (tmp_path / "private").mkdir()
    (environment / "hop").symlink_to(tmp_path / "private")
    (environment / "bin" / "python").unlink()
    (environment / "bin" / "python").symlink_to("../d/../hop")

    with pytest.raises(PrerequisiteError, match="does not lead to its interpreter"):
        mount_targets(tmp_path / "p")


def test_sockets_and_pipes_are_not_mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = make_environment(tmp_path / "p" / ".venv")
    os.mkfifo(environment / "lib" / "pipe")
    with pytest.raises(PrerequisiteError, match="socket, a pipe or a device"):
        mount_targets(tmp_path / "p")

    (environment / "lib" / "pipe").unlink()
    folder = next(environment.glob("lib/python3.*/site-packages"))

    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(folder)  # a socket's address has 107 bytes
        listener.bind("s")
        with pytest.raises(PrerequisiteError, match="socket, a pipe or a device"):
            mount_targets(tmp_path / "p")
        with pytest.raises(UsageError, match="neither a file nor a folder"):
            plan_mounts([Mount(source=str(folder / "s"), target="/opt/s")])

    modules = tmp_path / "node_modules" / "x"
    modules.mkdir(parents=True)
    os.mkfifo(modules / "pipe")

    with pytest.raises(PrerequisiteError, match="socket, a pipe or a device"):
        project_packages(tmp_path, "node_modules")


def test_endless_files_and_pipes_do_not_block_discovery(tmp_path: Path) -> None:
    environment = make_environment(tmp_path / ".venv")
    packages = next(environment.glob("lib/python3.*/site-packages"))
    os.mkfifo(packages / "a.pth")
    (packages / "b.pth").symlink_to("/dev/zero")
    (packages / "c.pth").mkdir()
    (packages / "d.pth").write_text(f"{tmp_path}\n{'x' * 5000}\n/root/.ssh/x\n")
    (packages / "f.pth").write_text("a\0b\n")
    (packages / "e.pth").symlink_to("e.pth")

    assert discover_interpreter(tmp_path, {}).source_roots == (".",)

    config_with_nul = b"home = \xff\0/usr/bin\n"

    for create in (
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.write_bytes(config_with_nul),
        Path.mkdir,
    ):
        (environment / "pyvenv.cfg").unlink()
        create(environment / "pyvenv.cfg")
        with pytest.raises(PrerequisiteError, match="one Python installation"):
            discover_interpreter(tmp_path, {})
        if (environment / "pyvenv.cfg").is_dir():
            return


async def test_a_link_into_the_own_interpreter_is_not_mounted_twice(tmp_path: Path) -> None:
    """Suture's own interpreter mounts its whole `bin`, so a file in it needs no mount of its own."""
    own = sys.base_prefix
    environment = make_environment(tmp_path / "p" / ".venv")
    (environment / "bin" / "python").unlink()
    (environment / "bin" / "python").symlink_to(f"{own}/bin/python3")
    mounts = (
        *mounts_for_interpreter(get_own_interpreter()),
        *mounts_for_interpreter(discover_interpreter(tmp_path / "p", {})),
    )
    targets = {mount.target for mount in plan_mounts(mounts)}

    assert f"{own}/bin/python3" not in targets
    with pytest.raises(UsageError, match="lies below"):
        plan_mounts([*mounts, Mount(source=str(tmp_path), target=f"{environment}/lib/x")])
