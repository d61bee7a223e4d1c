"""Projects whose own `.venv` tries to make the sandbox show files of the user: each is refused or shows
nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
import venv
from collections.abc import Callable, Mapping
from pathlib import Path

from attacks.host_bait import Ground
from attacks.trials import Skipped, World, demand, request, shown
from suture.errors import PrerequisiteError, UsageError
from suture.sandbox import discover_interpreter, get_own_interpreter, mounts_for_interpreter

__all__ = ["PLANTED", "shown_by_a_planted_environment"]

LOOK = """
    import socket
    seen = 0
    for top in os.environ["LOOKS"].split(":"):
        for folder, _, names in os.walk(top, followlinks=True):
            for name in names:
                seen += 1
                path = os.path.join(folder, name)
                try: text = open(path, "rb").read(4096)
                except OSError: text = b""
                if FACTS["token"].encode() in text: lost("read", path)
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(1)
                    try: client.connect(path)
                    except OSError: continue
                    lost("answered", path)
    print("looked at", seen)
"""


def own_library() -> str:
    return "python" + ".".join(get_own_interpreter().version.split(".")[:2])


def relink(path: Path, to: str | Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
    path.symlink_to(to)


def past_a_link(env: Path, ground: Ground) -> None:
    """`bin/python -> d/../hop`, which is one file for the kernel and another for who reads the words."""
    real = get_own_interpreter().executable
    (env / "deep" / "er" / "bin").mkdir(parents=True)
    (env / "deep" / "er" / "hop").symlink_to(real)
    relink(env / "d", "deep/er/bin")
    relink(env / "bin" / "python", "../d/../hop")
    (env / "hop").symlink_to(ground.folder)


def a_whole_home(env: Path, ground: Ground) -> None:
    """As above, to a home folder that carries the marks of an installation's path."""
    past_a_link(env, ground)
    relink(env / "hop", ground.home)


def parts_elsewhere(name: str) -> Callable[[Path, Ground], None]:
    def plant(env: Path, ground: Ground) -> None:
        relink(env / name, ground.home)

    return plant


def the_whole_elsewhere(env: Path, ground: Ground) -> None:
    """`.venv` is a link to an environment in the user's home, next to whatever else lies there."""
    elsewhere = ground.folder / "home" / "environment"
    shutil.copytree(env, elsewhere, symlinks=True)
    (elsewhere / "lib" / "note").write_text(ground.token)
    shutil.rmtree(env)
    env.symlink_to(elsewhere)


def a_home_that_looks_like_one(env: Path, ground: Ground) -> None:
    """`home =` and the link agree on a folder in a home that holds a library's name and no library."""
    fake = ground.folder / "home" / "bin"
    fake.mkdir()
    shutil.copy2(get_own_interpreter().executable, fake / "python3")
    (ground.folder / "home" / "lib" / own_library()).mkdir(parents=True)
    (ground.folder / "home" / "lib" / own_library() / "key").write_text(ground.token)
    relink(env / "bin" / "python", fake / "python3")
    (env / "pyvenv.cfg").write_text(f"home = {fake}\n")


def a_library_part(env: Path, ground: Ground) -> None:
    """An installation within the project, whose library is a link to the user's files."""
    own = env.parent / "own"
    (own / "bin").mkdir(parents=True)
    shutil.copy2(get_own_interpreter().executable, own / "bin" / "python3")
    (own / "lib" / own_library()).mkdir(parents=True)
    (own / "lib" / own_library() / "os.py").touch()
    (own / "lib" / "libpython3.so").symlink_to(ground.folder / "canary")
    (own / "lib64").symlink_to(ground.folder)
    (own / "include").mkdir()
    (own / "include" / own_library()).symlink_to(ground.home)
    relink(env / "bin" / "python", own / "bin" / "python3")
    (env / "pyvenv.cfg").write_text(f"home = {own}/bin\n")


def a_pipe_and_a_socket(env: Path, ground: Ground) -> None:
    """What is no file and no folder, below what is shown."""
    os.mkfifo(env / "bin" / "pipe")
    os.link(ground.folder / "socket", env / "bin" / "socket")


def files_without_end(env: Path, ground: Ground) -> None:
    """What Suture itself reads: it must neither wait for ever nor read for ever."""
    packages = next((env / "lib").glob("python3.*/site-packages"))
    os.mkfifo(packages / "a.pth")
    (packages / "b.pth").symlink_to("/dev/zero")
    (packages / "c.pth").write_text(
        f"{ground.home}\n/root/.ssh\n{'x' * 5000}\na\0b\n{ground.folder}/socket\n"
    )
    relink(env / "pyvenv.cfg", "/dev/zero")


def a_ring(env: Path, _: Ground) -> None:
    relink(env / "bin" / "python", "python")
    relink(env / "lib64", "lib64")


def of_the_machine(to: str) -> Callable[[Path, Ground], None]:
    def plant(env: Path, _: Ground) -> None:
        relink(env / "include", to)

    return plant


PLANTED: Mapping[str, Callable[[Path, Ground], None]] = {
    "past a link": past_a_link,
    "a whole home": a_whole_home,
    "bin": parts_elsewhere("bin"),
    "lib": parts_elsewhere("lib"),
    "lib64": parts_elsewhere("lib64"),
    "lib32": parts_elsewhere("lib32"),
    "include": parts_elsewhere("include"),
    "pyvenv.cfg": parts_elsewhere("pyvenv.cfg"),
    "the whole elsewhere": the_whole_elsewhere,
    "a home that looks like one": a_home_that_looks_like_one,
    "a library's part": a_library_part,
    "a pipe and a socket": a_pipe_and_a_socket,
    "files without end": files_without_end,
    "a ring": a_ring,
    **{
        to: of_the_machine(to) for to in ("/", "/proc", "/proc/self/root", "/run", "/var/run", "/tmp", "/dev")
    },
}


async def shown_by_a_planted_environment(world: World) -> None:
    """Each of `PLANTED`, beside a plain environment that must work."""
    if world.backend not in ("warm", "spare", "cold"):
        raise Skipped("what is shown is chosen before a sandbox is, and is the same for each")
    for name, plant in {"plain": lambda env, ground: None, **PLANTED}.items():
        with tempfile.TemporaryDirectory(prefix="suture-planted-") as folder:
            Path(folder).chmod(0o755)
            env = Path(folder) / ".venv"
            venv.create(env, with_pip=False, symlinks=True)
            before = set(world.ground.folder.rglob("*"))
            try:
                plant(env, world.ground)
                await _look(world, Path(folder), name)
            finally:
                _clear(world.ground.folder, before)


def _clear(folder: Path, before: set[Path]) -> None:
    for path in sorted(set(folder.rglob("*")) - before, reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


async def _look(world: World, project: Path, name: str) -> None:
    try:
        interpreter = discover_interpreter(project, {"PATH": "/usr/bin:/bin"})
        mounts = mounts_for_interpreter(interpreter)
    except (PrerequisiteError, UsageError) as fault:
        demand(name != "plain", str(fault))
        demand(getattr(fault, "remedy", ""), f"{name}: no remedy: {fault}")
        return
    looks = f"{project}:{world.ground.folder}"
    result = await world.sandbox.run(request(world, LOOK, mounts=mounts, env={"LOOKS": looks}))
    demand(result.status == "ok" and b"looked at" in result.stdout, f"{name}: {shown(result)}")
    demand(b"BREACH" not in result.stdout, f"{name}: {shown(result)}")
