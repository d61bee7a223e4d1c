"""Running a package manager's client: behind a wall of its own, from which only its index is in reach."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import stat
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from suture.errors import PrerequisiteError, SandboxError
from suture.sandbox import (
    WRITABLE_DIR,
    BubblewrapSandbox,
    Mount,
    ProgramLimits,
    RunRequest,
    get_own_interpreter,
)
from suture.sandbox.packages.index_proxy import IndexProxy
from suture.sandbox.packages.installer import PackagesRefused, Place
from suture.sandbox.packages.network_access import NetworkAccess
from suture.sandbox.tuning import CLIENT_TIMEOUT_S, MAX_CLIENT_MESSAGE_CHARS

LIMITS = ProgramLimits(
    wall_s=CLIENT_TIMEOUT_S,
    cpu_s=CLIENT_TIMEOUT_S,
    memory_mb=64 << 10,  # of addresses, of which Node asks for many
    total_memory_mb=3072,
    processes=256,
    file_mb=4096,
    open_files=1024,
    output_bytes=1 << 18,
)
NO_CLIENT = "No module named pip"
SECRET = re.compile(r"_API_KEY$|^SUTURE_|DATABASE_URL$")
ADDRESS = re.compile(r"\b[a-z+]+://\S+|\bhost='[^']*'")
"""What a client says may name the index, and with it a password."""
PORT = 3128
TEMPORARY = ".temporary"
START = f"""\
import os, socket, sys
if os.path.exists("{WRITABLE_DIR}/.door"):
    door = socket.create_server(("127.0.0.1", {PORT}), backlog=128)
    with door, socket.socket(socket.AF_UNIX) as host:
        host.connect("{WRITABLE_DIR}/.door")
        socket.send_fds(host, [b"d"], [door.fileno()])
        host.recv(1)
os.chdir("{WRITABLE_DIR}")
os.makedirs(os.environ["TMPDIR"], exist_ok=True)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""What runs in front of a client behind the wall; see `gate`."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """A package manager's program.

    Attributes:
        name: For messages.
        argv: Its first words behind the wall.
        argv_here: The same on the host.
        shown: What of the host it needs behind the wall: itself.
        folders: Where it finds programs there, before the system's.
        variables: What it is told in any case.
        unreachable: What it says where the index cannot be reached.
    """

    name: str
    argv: tuple[str, ...]
    argv_here: tuple[str, ...]
    shown: tuple[Mount, ...] = ()
    folders: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    unreachable: re.Pattern[str]


async def run_client(
    client: Client, argv: Sequence[str], place: Place, reach: NetworkAccess | None = None
) -> None:
    """Run a package manager's client in a folder of ours.

    Args:
        client: Which.
        argv: Its arguments; paths are relative to the folder.
        place: The folder; no file of a project lies there.
        reach: What it may reach; nothing where left out.

    Raises:
        PackagesRefused: It ended with an error, or was led past its index; the message holds no address.
        PrerequisiteError: It is not there, ended too late, could not reach its index, or there is no wall.
    """
    if not place.walled:
        code, text = await _on_host(client, argv, place.folder)
    else:
        gate = _gate(reach) if reach is not None else None
        code, text = await _walled(client, argv, place.folder, reach or NetworkAccess(), gate)
        if code and gate is not None and gate.refused:
            where = ", ".join(gate.refused)
            raise PackagesRefused(
                f"{client.name} was led past its index, to {where}: not reached (safety.package_hosts)"
            )
        if code and gate is not None and gate.unreached:
            raise out_of_reach(client.name, "no answer")
    _judge(client, code, text)


def _gate(reach: NetworkAccess) -> IndexProxy:
    for origin in reach.origins:
        reach.proxy_for(origin)  # one that cannot be used is said before anything begins
    return IndexProxy(reach.origins, reach.proxy_for, reach.names)


def _judge(client: Client, code: int, text: str) -> None:
    if NO_CLIENT in text:
        raise absent(client.name, NO_CLIENT)
    if not code:
        return
    lines = [ADDRESS.sub("<address>", line.strip()) for line in text.splitlines() if line.strip()]
    if client.unreachable.search(text):
        line = next((line for line in lines if client.unreachable.search(line)), lines[-1])
        raise out_of_reach(client.name, line[:MAX_CLIENT_MESSAGE_CHARS])
    raise PackagesRefused(" / ".join(lines)[:MAX_CLIENT_MESSAGE_CHARS] or f"{client.name} ended with {code}")


async def _walled(
    client: Client, argv: Sequence[str], folder: Path, reach: NetworkAccess, gate: IndexProxy | None
) -> tuple[int, str]:
    proxy = f"http://127.0.0.1:{PORT}"
    names = ("http_proxy", "https_proxy")
    request = RunRequest(
        argv=(get_own_interpreter().executable, "-I", "-S", "-B", "-c", START, *client.argv, *argv),
        env={
            **{name: proxy for one in names for name in (one, one.upper())},
            **client.variables,
            **reach.variables,
            "PATH": ":".join((*client.folders, "/usr/local/bin", "/usr/bin", "/bin")),
            "TMPDIR": f"{WRITABLE_DIR}/{TEMPORARY}",
        },
        files=reach.files,
        mounts=(*client.shown, *reach.shown),
        limits=LIMITS,
    )
    sandbox = BubblewrapSandbox(mode="cold")
    try:
        async with AsyncExitStack() as held:
            _hand(folder, over=True)
            if gate is not None:
                await held.enter_async_context(gate.watching(folder))
            result = await sandbox.run_with_writable_dir(request, folder)
    except SandboxError as fault:
        raise PrerequisiteError(
            f"packages are fetched behind a wall, which cannot be built here: {fault.message}",
            remedy=f"{fault.remedy or 'see `suture doctor`'}; or let {client.name} fetch with your rights "
            "and network: safety.fetch_packages = 'host'",
        ) from fault
    finally:
        await sandbox.close()
        shutil.rmtree(folder / TEMPORARY, ignore_errors=True)
        _hand(folder, over=False)
    if result.status == "timeout":
        raise out_of_reach(client.name, f"no end within {CLIENT_TIMEOUT_S:.0f} s")
    text = (result.stdout + b"\n" + result.stderr).decode("utf-8", "replace")
    if result.status in ("failed", "ok"):
        return result.exit_code if result.exit_code is not None else 1, text
    return 1, f"{text}\n{client.name} was ended: {result.status}"


def _hand(folder: Path, *, over: bool) -> None:
    """Let a client write to a folder, or only us again: where this side is root it is another user.

    Nobody else gets there meanwhile, through the folder above.
    """
    if os.geteuid() != 0:
        return
    for top, folders, files in os.walk(folder):
        for path in (top, *(f"{top}/{name}" for name in (*folders, *files))):
            mode = os.lstat(path).st_mode
            os.chown(path, 0, 0, follow_symlinks=False)
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                all_may = 0o777 if stat.S_ISDIR(mode) else 0o666
                os.chmod(path, stat.S_IMODE(mode) | all_may if over else stat.S_IMODE(mode) & 0o755)  # noqa: PTH101


async def _on_host(client: Client, argv: Sequence[str], folder: Path) -> tuple[int, str]:
    """As the user would, with all of the user's network: where a setting says so."""
    temporary = folder / TEMPORARY
    await asyncio.to_thread(temporary.mkdir)
    try:
        process = await asyncio.create_subprocess_exec(
            *client.argv_here,
            *argv,
            cwd=folder,
            env={
                **own_environment(),
                **{
                    name: value.replace(WRITABLE_DIR, str(folder)) for name, value in client.variables.items()
                },
                "TMPDIR": str(temporary),  # go takes no module in it for one
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as fault:
        raise absent(client.name, f"it cannot be started: {fault.strerror}") from fault
    try:
        async with asyncio.timeout(CLIENT_TIMEOUT_S):
            said, _ = await process.communicate()
    except TimeoutError as fault:
        raise out_of_reach(client.name, f"no end within {CLIENT_TIMEOUT_S:.0f} s") from fault
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True)
    return process.returncode or 0, said.decode("utf-8", "replace")


def own_environment() -> dict[str, str]:
    """The user's, without the keys of models and the database's address: what a client says may quote it."""
    return {name: value for name, value in os.environ.items() if not SECRET.search(name)}


def absent(client: str, why: str) -> PrerequisiteError:
    """The fault to raise where a client is not there."""
    return PrerequisiteError(
        f"packages are fetched by {client}, which is not there: {why}",
        remedy=f"install {client}, or leave packages out with --approve-deps never",
    )


def out_of_reach(client: str, said: str) -> PrerequisiteError:
    """The fault to raise where a client's index does not answer."""
    return PrerequisiteError(
        f"packages cannot be fetched: {client} does not reach its index: {said}",
        remedy=f"check the network and {client}'s settings, or leave packages out with --approve-deps never",
    )
