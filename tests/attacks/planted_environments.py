"""Projects whose own `.venv` tries to make the sandbox mount files of the user; each is refused or mounts
nothing of them."""

from __future__ import annotations

import os
import shutil
import tempfile
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

from attacks.host_bait import HostBait
from attacks.trials import AttackContext, TrialSkipped, attack_request, check, describe_result
from suture.errors import PrerequisiteError, UsageError
from suture.sandbox import discover_interpreter, get_own_interpreter, mounts_for_interpreter

__all__ = ["PLANTERS", "try_planted_environments"]

SEARCH_FOR_SECRETS = """
    import socket
    searched = 0
    for top in os.environ["SEARCH_PATHS"].split(":"):
        for folder, _, names in os.walk(top, followlinks=True):
            for name in names:
                searched += 1
                path = os.path.join(folder, name)
                try: text = open(path, "rb").read(4096)
                except OSError: text = b""
                if FACTS["token"].encode() in text: lost("read", path)
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(1)
                    try: client.connect(path)
                    except OSError: continue
                    lost("answered", path)
    print("searched", searched)
"""


def library_name() -> str:
    """Return the name of the library folder of the running Python version."""
    return "python" + ".".join(get_own_interpreter().version.split(".")[:2])


def replace_with_link(path: Path, to: str | Path) -> None:
    """Replace a file or a folder with a link."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
    path.symlink_to(to)


def plant_link_past_a_link(environment: Path, bait: HostBait) -> None:
    """Plant `bin/python -> d/../hop`: the kernel follows the link `d`, and a reader of the text does not."""
    interpreter = get_own_interpreter().executable
    (environment / "deep" / "er" / "bin").mkdir(parents=True)
    (environment / "deep" / "er" / "hop").symlink_to(interpreter)
    replace_with_link(environment / "d", "deep/er/bin")
    replace_with_link(environment / "bin" / "python", "../d/../hop")
    (environment / "hop").symlink_to(bait.folder)


def plant_link_to_home(environment: Path, bait: HostBait) -> None:
    """Plant the same link to a home folder whose path resembles that of an installation."""
    plant_link_past_a_link(environment, bait)
    replace_with_link(environment / "hop", bait.home)


def plant_linked_part(name: str) -> Callable[[Path, HostBait], None]:
    """Return a function that replaces one part of an environment with a link to the user's home."""

    def plant(environment: Path, bait: HostBait) -> None:
        replace_with_link(environment / name, bait.home)

    return plant


def plant_linked_environment(environment: Path, bait: HostBait) -> None:
    """Make `.venv` a link to an environment in the user's home, beside the user's other files."""
    outside = bait.folder / "home" / "environment"
    shutil.copytree(environment, outside, symlinks=True)
    (outside / "lib" / "note").write_text(bait.token)
    shutil.rmtree(environment)
    environment.symlink_to(outside)


def plant_fake_installation(environment: Path, bait: HostBait) -> None:
    """Make `home =` and the link agree on a folder in the user's home that only resembles an installation."""
    fake_bin = bait.folder / "home" / "bin"
    fake_bin.mkdir()
    shutil.copy2(get_own_interpreter().executable, fake_bin / "python3")
    (bait.folder / "home" / "lib" / library_name()).mkdir(parents=True)
    (bait.folder / "home" / "lib" / library_name() / "key").write_text(bait.token)
    replace_with_link(environment / "bin" / "python", fake_bin / "python3")
    (environment / "pyvenv.cfg").write_text(f"home = {fake_bin}\n")


def plant_linked_library(environment: Path, bait: HostBait) -> None:
    """Plant an installation in the project whose library is a link to the user's files."""
    installation = environment.parent / "own"
    (installation / "bin").mkdir(parents=True)
    shutil.copy2(get_own_interpreter().executable, installation / "bin" / "python3")
    (installation / "lib" / library_name()).mkdir(parents=True)
    (installation / "lib" / library_name() / "os.py").touch()
    (installation / "lib" / "libpython3.so").symlink_to(bait.folder / "canary")
    (installation / "lib64").symlink_to(bait.folder)
    (installation / "include").mkdir()
    (installation / "include" / library_name()).symlink_to(bait.home)
    replace_with_link(environment / "bin" / "python", installation / "bin" / "python3")
    (environment / "pyvenv.cfg").write_text(f"home = {installation}/bin\n")


def plant_pipe_and_socket(environment: Path, bait: HostBait) -> None:
    """Plant a pipe and a socket in a folder that is mounted."""
    os.mkfifo(environment / "bin" / "pipe")
    os.link(bait.folder / "socket", environment / "bin" / "socket")


def plant_endless_files(environment: Path, bait: HostBait) -> None:
    """Plant pipes and endless files where Suture itself reads; it must neither block nor read for ever."""
    packages = next((environment / "lib").glob("python3.*/site-packages"))
    os.mkfifo(packages / "a.pth")
    (packages / "b.pth").symlink_to("/dev/zero")
    (packages / "c.pth").write_text(f"{bait.home}\n/root/.ssh\n{'x' * 5000}\na\0b\n{bait.folder}/socket\n")
    replace_with_link(environment / "pyvenv.cfg", "/dev/zero")


def plant_link_cycle(environment: Path, _: HostBait) -> None:
    """Plant links that refer to themselves."""
    replace_with_link(environment / "bin" / "python", "python")
    replace_with_link(environment / "lib64", "lib64")


def plant_link_to_system_folder(to: str) -> Callable[[Path, HostBait], None]:
    """Return a function that plants a link to a folder of the system."""

    def plant(environment: Path, _: HostBait) -> None:
        replace_with_link(environment / "include", to)

    return plant


PLANTERS: Mapping[str, Callable[[Path, HostBait], None]] = {
    "a link past a link": plant_link_past_a_link,
    "a link to a home folder": plant_link_to_home,
    "bin": plant_linked_part("bin"),
    "lib": plant_linked_part("lib"),
    "lib64": plant_linked_part("lib64"),
    "lib32": plant_linked_part("lib32"),
    "include": plant_linked_part("include"),
    "pyvenv.cfg": plant_linked_part("pyvenv.cfg"),
    "a linked environment": plant_linked_environment,
    "a fake installation": plant_fake_installation,
    "a linked library": plant_linked_library,
    "a pipe and a socket": plant_pipe_and_socket,
    "endless files": plant_endless_files,
    "a link cycle": plant_link_cycle,
    **{
        to: plant_link_to_system_folder(to)
        for to in ("/", "/proc", "/proc/self/root", "/run", "/var/run", "/tmp", "/dev")
    },
}


async def try_planted_environments(context: AttackContext) -> None:
    """Try each of `PLANTERS`, and a plain environment that must work."""
    if context.backend not in ("warm", "spare", "cold"):
        raise TrialSkipped("mounts are chosen before the sandbox is, and are the same for each one")
    for name, plant in {"plain": lambda environment, bait: None, **PLANTERS}.items():
        with tempfile.TemporaryDirectory(prefix="suture-planted-") as folder:
            Path(folder).chmod(0o755)
            environment = Path(folder) / ".venv"
            venv.create(environment, with_pip=False, symlinks=True)
            before = set(context.bait.folder.rglob("*"))
            try:
                plant(environment, context.bait)
                await check_environment(context, Path(folder), name)
            finally:
                remove_planted_files(context.bait.folder, before)


def remove_planted_files(folder: Path, before: set[Path]) -> None:
    """Remove everything that was added to a folder."""
    for path in sorted(set(folder.rglob("*")) - before, reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


async def check_environment(context: AttackContext, project: Path, name: str) -> None:
    """Require that the environment of a project is refused or exposes no secret."""
    try:
        interpreter = discover_interpreter(project, {"PATH": "/usr/bin:/bin"})
        mounts = mounts_for_interpreter(interpreter)
    except (PrerequisiteError, UsageError) as fault:
        check(name != "plain", str(fault))
        check(getattr(fault, "remedy", ""), f"{name}: no remedy: {fault}")
        return
    search_paths = f"{project}:{context.bait.folder}"
    result = await context.sandbox.run(
        attack_request(context, SEARCH_FOR_SECRETS, mounts=mounts, env={"SEARCH_PATHS": search_paths})
    )
    check(result.status == "ok" and b"searched" in result.stdout, f"{name}: {describe_result(result)}")
    check(b"BREACH" not in result.stdout, f"{name}: {describe_result(result)}")
