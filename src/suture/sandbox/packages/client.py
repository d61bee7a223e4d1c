"""Run a package manager's client in its own sandbox, from which only its index can be reached."""

from __future__ import annotations

import asyncio
import netrc
import os
import re
import shutil
import signal
import stat
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from suture.core.safe_files import read_regular_file
from suture.errors import PrerequisiteError, SandboxError
from suture.sandbox import (
    BOX,
    WRITABLE_DIR,
    BubblewrapSandbox,
    Mount,
    ProgramLimits,
    RunRequest,
    get_own_interpreter,
)
from suture.sandbox.packages.index_proxy import HANDOVER_SOCKET, IndexProxy, Origin, parse_origin
from suture.sandbox.packages.installer import PackagesRefused, WorkFolder
from suture.sandbox.tuning import (
    CLIENT_TIMEOUT_S,
    MAX_CERTIFICATE_BYTES,
    MAX_CLIENT_MESSAGE_CHARS,
    SETTINGS_QUERY_TIMEOUT_S,
)

CLIENT_LIMITS = ProgramLimits(
    wall_s=CLIENT_TIMEOUT_S,
    cpu_s=CLIENT_TIMEOUT_S,
    memory_mb=64 << 10,  # of address space; Node reserves much of it
    total_memory_mb=3072,
    processes=256,
    file_mb=4096,
    open_files=1024,
    output_bytes=1 << 18,
)
"""Chosen by judgement; not measured."""
NO_PIP = "No module named pip"
"""What Python prints if the client is pip and is not installed."""
SECRET_VARIABLE = re.compile(r"_API_KEY$|^SUTURE_|DATABASE_URL$")
"""Matches the names of variables that a client does not get (see `filtered_environment`)."""
ADDRESS = re.compile(r"\b[a-z+]+://\S+|\bhost='[^']*'")
"""Replaced in messages: a client's output may name the index, and with it a password."""
PORT = 3128  # the usual port of HTTP proxies
"""The port on the sandbox's own loopback at which the client reaches the proxy."""
TEMP_DIR = ".temporary"
"""The client's TMPDIR, below its folder."""
ENTRY_CODE = f"""\
import os, socket, sys
if os.path.exists("{WRITABLE_DIR}/{HANDOVER_SOCKET}"):
    listener = socket.create_server(("127.0.0.1", {PORT}), backlog=128)
    with listener, socket.socket(socket.AF_UNIX) as host:
        host.connect("{WRITABLE_DIR}/{HANDOVER_SOCKET}")
        socket.send_fds(host, [b"d"], [listener.fileno()])
        host.recv(1)
os.chdir("{WRITABLE_DIR}")
os.makedirs(os.environ["TMPDIR"], exist_ok=True)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Runs before the client inside the sandbox: it passes a listening socket to the proxy (see `index_proxy.py`),
and waits until the proxy has it."""


@dataclass(frozen=True, kw_only=True)
class Client:
    """A package manager's program.

    Attributes:
        name: Its name in messages.
        argv: The start of its command inside the sandbox.
        host_argv: The start of its command on the host.
        mounts: The files of the client itself.
        folders: Folders of programs inside the sandbox, searched before the system's.
        variables: Environment variables that it always gets.
        unreachable: Matches its output if the index cannot be reached.
    """

    name: str
    argv: tuple[str, ...]
    host_argv: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()
    folders: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    unreachable: re.Pattern[str]


def guarded_module_code(module: str, *, may_start: bool = False) -> str:
    """Return code that runs a Python module in a process that can build no package, because it starts no other process.

    Args:
        may_start: Whether it may start processes that stay in its own folder. A build runs in that of its package.
    """
    is_allowed = 'event == "subprocess.Popen" and arguments[2] is None' if may_start else "False"
    return f"""\
import runpy, sys
def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.system"):
        if not ({is_allowed}):
            raise OSError("{module} may not build a package here")
sys.addaudithook(refuse)
runpy.run_module("{module}", run_name="__main__", alter_sys=True)
"""


async def run_client(
    client: Client, argv: Sequence[str], work_folder: WorkFolder, access: NetworkAccess | None = None
) -> None:
    """Run a package manager's client in one of Suture's folders.

    Of a project, the folder holds at most the manifest and a lock, and only for a run in the sandbox also the package
    manager's settings, because they may name plugins, which would otherwise run with the user's rights.

    Args:
        argv: Its arguments; paths are relative to the folder.
        access: What it may reach; nothing if omitted.

    Raises:
        PackagesRefused: The client ended with an error, or was led past its index. The message contains no address.
        PrerequisiteError: The client is missing, timed out, could not reach its index, or no sandbox can be built.
    """
    if not work_folder.sandboxed:
        code, text = await _run_on_host(client, argv, work_folder.folder)
    else:
        proxy = None
        if access is not None:
            for origin in access.origins:
                access.proxy_for(origin)  # raises for a proxy that cannot be used, before anything begins
            proxy = IndexProxy(access.origins, access.proxy_for, access.host_aliases)
        code, text = await _run_in_sandbox(client, argv, work_folder.folder, access or NetworkAccess(), proxy)
        # A client that succeeded did not need the servers that were refused or did not answer.
        if code and proxy is not None and proxy.refused:
            servers = ", ".join(proxy.refused)
            raise PackagesRefused(
                f"{client.name} was led past its index, to {servers}, which is blocked (safety.package_hosts)"
            )
        if code and proxy is not None and proxy.unreachable:
            raise unreachable_index(client.name, "no answer")
    _raise_for_output(client, code, text)


def _raise_for_output(client: Client, code: int, text: str) -> None:
    """Raise the exception that fits what a client printed; nothing if it succeeded."""
    if NO_PIP in text:
        raise missing_client(client.name, NO_PIP)
    if not code:
        return
    lines = [ADDRESS.sub("<address>", line.strip()) for line in text.splitlines() if line.strip()]
    if client.unreachable.search(text):
        line = next((line for line in lines if client.unreachable.search(line)), lines[-1])
        raise unreachable_index(client.name, line[:MAX_CLIENT_MESSAGE_CHARS])
    raise PackagesRefused(
        " / ".join(lines)[:MAX_CLIENT_MESSAGE_CHARS] or f"{client.name} ended with exit code {code}"
    )


async def _run_in_sandbox(
    client: Client, argv: Sequence[str], folder: Path, access: NetworkAccess, proxy: IndexProxy | None
) -> tuple[int, str]:
    proxy_url = f"http://127.0.0.1:{PORT}"
    proxy_variables = (
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "YARN_HTTP_PROXY",
        "YARN_HTTPS_PROXY",
    )
    request = RunRequest(
        argv=(get_own_interpreter().executable, "-I", "-S", "-B", "-c", ENTRY_CODE, *client.argv, *argv),
        env={
            **dict.fromkeys(proxy_variables, proxy_url),
            **client.variables,
            **access.variables,
            "PATH": ":".join((*client.folders, "/usr/local/bin", "/usr/bin", "/bin")),
            "TMPDIR": f"{WRITABLE_DIR}/{TEMP_DIR}",
        },
        files=access.files,
        mounts=(*client.mounts, *access.mounts),
        limits=CLIENT_LIMITS,
    )
    sandbox = BubblewrapSandbox(mode="cold")
    try:
        async with AsyncExitStack() as stack:
            _set_permissions(folder, writable=True)
            if proxy is not None:
                await stack.enter_async_context(proxy.serve_folder(folder))
            result = await sandbox.run_with_writable_dir(request, folder)
    except SandboxError as fault:
        raise PrerequisiteError(
            f"packages are fetched in a sandbox, which cannot be built here: {fault.message}",
            remedy=f"{fault.remedy or 'run `suture doctor`'}; or let {client.name} fetch with your rights "
            "and network: safety.fetch_packages = 'host'",
        ) from fault
    finally:
        await sandbox.close()
        shutil.rmtree(folder / TEMP_DIR, ignore_errors=True)
        _set_permissions(folder, writable=False)
    if result.status == "timeout":
        raise unreachable_index(client.name, f"not finished within {CLIENT_TIMEOUT_S:.0f} s")
    text = (result.stdout + b"\n" + result.stderr).decode("utf-8", "replace")
    if result.status in ("failed", "ok"):
        return result.exit_code if result.exit_code is not None else 1, text
    return 1, f"{text}\n{client.name} was ended: {result.status}"


def _set_permissions(folder: Path, *, writable: bool) -> None:
    """Let a client write to a folder, or take that permission back.

    This is needed only if Suture is root, because the client is then another user. No other user can reach the folder
    in the meantime, because the folder above it is private.
    """
    if os.geteuid() != 0:
        return
    for top, folders, files in os.walk(folder):
        for path in (top, *(f"{top}/{name}" for name in (*folders, *files))):
            mode = os.lstat(path).st_mode
            os.chown(path, 0, 0, follow_symlinks=False)
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                for_all = 0o777 if stat.S_ISDIR(mode) else 0o666
                os.chmod(path, stat.S_IMODE(mode) | for_all if writable else stat.S_IMODE(mode) & 0o755)  # noqa: PTH101


async def _run_on_host(client: Client, argv: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run the client as the user would, with all of the user's network. Only a setting permits this."""
    temp_folder = folder / TEMP_DIR
    await asyncio.to_thread(temp_folder.mkdir)
    variables = {name: value.replace(WRITABLE_DIR, str(folder)) for name, value in client.variables.items()}
    # With a TMPDIR of its own, go does not take temporary files in the folder for modules.
    variables["TMPDIR"] = str(temp_folder)
    try:
        process = await asyncio.create_subprocess_exec(
            *client.host_argv,
            *argv,
            cwd=folder,
            env={**filtered_environment(), **variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as fault:
        raise missing_client(client.name, f"it cannot be started: {fault.strerror}") from fault
    try:
        async with asyncio.timeout(CLIENT_TIMEOUT_S):
            output, _ = await process.communicate()
    except TimeoutError as fault:
        raise unreachable_index(client.name, f"not finished within {CLIENT_TIMEOUT_S:.0f} s") from fault
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await asyncio.to_thread(shutil.rmtree, temp_folder, ignore_errors=True)
    return process.returncode or 0, output.decode("utf-8", "replace")


def filtered_environment() -> dict[str, str]:
    """Return the user's environment without model keys and the database's address.

    A client's output may quote its environment.
    """
    return {name: value for name, value in os.environ.items() if not SECRET_VARIABLE.search(name)}


def missing_client(client: str, reason: str) -> PrerequisiteError:
    """Return the exception to raise if a client is missing."""
    return PrerequisiteError(
        f"packages are fetched by {client}, which is missing: {reason}",
        remedy=f"install {client}, or leave packages out with --approve-deps never",
    )


def unreachable_index(client: str, output: str) -> PrerequisiteError:
    """Return the exception to raise if a client's index does not answer."""
    return PrerequisiteError(
        f"packages cannot be fetched: {client} cannot reach its index: {output}",
        remedy=f"check the network and {client}'s settings, or leave packages out with --approve-deps never",
    )


CERTIFICATES_NAME = "certificates.pem"


@dataclass(frozen=True, kw_only=True)
class NetworkAccess:
    """What a client may reach, and the settings with which it does so.

    Attributes:
        origins: The servers of its index, and further ones that the user has named.
        variables: Environment variables.
        files: Path in its home -> content: the user's settings that contain a key, certificates.
        mounts: Mounts of local folders that are an index.
        proxy: The proxy that the user has configured for this client; empty for that of the environment.
        host_aliases: Host name that the client uses -> the real host.
    """

    origins: frozenset[Origin] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    proxy: str = ""
    host_aliases: Mapping[str, str] = field(default_factory=dict)

    def proxy_for(self, origin: Origin) -> str:
        """Return the user's proxy for a server; empty if there is none.

        Raises:
            PrerequisiteError: The proxy does not speak plain HTTP.
        """
        proxy = self.proxy
        if not proxy and not urllib.request.proxy_bypass(origin.host):
            proxy = urllib.request.getproxies().get(origin.scheme, "")
        scheme, separator, _ = proxy.partition("://")
        if separator and scheme.lower() != "http":  # a login would be sent there unencrypted
            raise PrerequisiteError(
                f"packages are fetched in a sandbox, which cannot use a {scheme}:// proxy",
                remedy="name a proxy that begins with http://, or let packages be fetched with your rights "
                "and network: safety.fetch_packages = 'host'",
            )
        return proxy if not proxy or separator else f"http://{proxy}"


async def query_client_settings(
    client: str, argv: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> str:
    """Return what a client prints about its own settings. It runs on the host, in an empty folder.

    Raises:
        PrerequisiteError: The client is missing, or does not answer.
    """
    reason = ""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=folder,
            env=dict(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(SETTINGS_QUERY_TIMEOUT_S):
                output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode == 0:
            return output.decode("utf-8", "replace")
        reason = f"it ended with {process.returncode}"
    except TimeoutError:
        reason = f"no answer within {SETTINGS_QUERY_TIMEOUT_S:.0f} s"
    except OSError as fault:
        reason = f"it cannot be started: {fault.strerror}"
    raise PrerequisiteError(
        f"packages are fetched by {client}, which does not print its settings: {reason}",
        remedy=f"install {client}, or leave packages out with --approve-deps never",
    )


def parse_origins(urls: Iterable[str], hosts: Iterable[str]) -> frozenset[Origin]:
    """Return the servers of addresses, and those that the user has named, as `HOST` or `HOST:PORT`."""
    origins = map(parse_origin, (*urls, *(f"https://{host}" for host in hosts)))
    return frozenset(origin for origin in origins if origin is not None)


def _local_folder(address: str) -> Path | None:
    """Return the folder that a `file:` address or a plain path means; `None` if it is not a local folder."""
    path = Path(unquote(urlsplit(address).path) if address.startswith("file:") else address)
    return path if path.is_absolute() and path.is_dir() else None


def mounts_for_local_indexes(addresses: Iterable[str]) -> tuple[Mount, ...]:
    """Return mounts for indexes on this machine.

    The pages of an index in a folder `simple` link to files next to that folder, so the parent is shown. If the
    parent is the root or `/tmp`, or contains the user's home, only the index is shown, because the client must
    not see what else is there.
    """
    home = Path.home().resolve()
    mounts: set[str] = set()
    for folder in filter(None, map(_local_folder, addresses)):
        resolved, parent = folder.resolve(), folder.resolve().parent
        is_private = parent == Path("/") or home.is_relative_to(parent) or parent == Path("/tmp")
        mounts.add(str(resolved if is_private or not (parent / "simple").is_dir() else parent))
        if resolved != folder:  # the client's settings name the link
            mounts.add(str(folder))
    return tuple(Mount(source=folder, target=folder) for folder in sorted(mounts))


def add_netrc_login(url: str) -> str:
    """Return an address with the name and password that the user's `.netrc` has for its server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or "@" in parts.netloc:
        return url
    with suppress(OSError, netrc.NetrcParseError):
        login_entry = netrc.netrc(os.environ.get("NETRC")).authenticators(parts.hostname or "")
        if login_entry is not None:
            name, _, password = login_entry
            login = f"{quote(name, safe='')}:{quote(password or '', safe='')}@"
            return urlunsplit(parts._replace(netloc=login + parts.netloc))
    return url


def read_certificates(path: str) -> tuple[str, dict[str, bytes]]:
    """Return `(path inside the sandbox, files to write there)` for the certificates at `path`.

    Both are empty if `path` is.

    Raises:
        PrerequisiteError: The certificates cannot be read.
    """
    if not path:
        return "", {}
    content = read_regular_file(Path(path), MAX_CERTIFICATE_BYTES, follow=True)
    if not content:
        raise PrerequisiteError(
            f"the certificates of the package index cannot be read: {path!r}",
            remedy="name one certificate file in the settings of pip, npm or Go",
        )
    return f"{BOX}/{CERTIFICATES_NAME}", {CERTIFICATES_NAME: content}
