"""Trusted modules of the host's, imported once for all children."""
# FIXME doc of sandbox/zygote/inside/server: """The zygote: a small trusted process that forks a child for each run, and never runs what it is given."""

from __future__ import annotations

import _socket  # `socket` itself is large
import gc
import importlib
import json
import os
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from suture.sandbox.execution.supervisor import deafen, exactly
from suture.sandbox.zygote.inside import kernel
from suture.sandbox.zygote.inside.child import Place, live
from suture.sandbox.zygote.inside.kernel import Kills, Sockets
from suture.sandbox.zygote.inside.relay import Host, HostGone, Relay, RelayBuffer


class Library:
    """Finds and loads modules that are held in memory.

    Args:
        sources: Module -> source.
    """

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder` has it."""
        below = any(other.startswith(name + ".") for other in self._sources)
        if name not in self._sources and not below:
            return None
        loader: Any = self
        return ModuleSpec(name, loader, origin=f"<{name}>", is_package=below)

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary one will do."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's source."""
        source = self._sources.get(module.__name__, "")
        exec(compile(source, f"<{module.__name__}>", "exec", dont_inherit=True), module.__dict__)


def take_library(sources: dict[str, str]) -> None:
    """Import modules, and leave no way to import more of them.

    Args:
        sources: Module -> source.
    """
    library: Any = Library(sources)
    sys.meta_path.insert(0, library)
    try:
        for name in sources:
            importlib.import_module(name)
    finally:
        sys.meta_path.remove(library)


GROWTH = 1.2
"""Times the memory that it started with: more, and it is not what it was."""
EVERYTHING = -1
"""As `kill` has it: all processes but the first one, which is us."""
SIGNAL_CODES = 128
"""As shells have it: 128 and the signal's number, for an exit status."""
INT_BYTES = 4
SLACK_PAGES = 1024
"""Pages that an allocator may keep for itself."""


class Zygote:
    """Serves the host's requests one after another, each in a child of its own.

    Args:
        host: The channel to the host, whose requests are served.
        code: The system call filter of every child.
        place: Where it stands: whether with namespaces of its own, and what its children find there.
        fd_socket: A socket by which it is given the ends of pipes.
    """

    def __init__(self, host: Host, code: bytes, place: Place, fd_socket: int | None = None) -> None:
        self._host = host
        self._fd_socket = fd_socket
        self._code = code
        self._place = place
        self._buffer = RelayBuffer()
        self._sockets = Sockets()
        self._state = observe()
        self._most_pages = int(kernel.resident_pages() * GROWTH) + SLACK_PAGES

    def serve(self) -> CodeType | None:
        """Serve until the host is gone; answers in a child that is to run Python code.

        Raises:
            HostGone: There is nobody left to serve.
        """
        self._host.send(b"h")
        while True:
            kind, size = self._host.wait_head()
            if kind in (b"q", b"n") or (kind == b"d" and self._fd_socket is not None):
                code = self._run(kind, size)
                if code is not None:
                    return code
            elif kind in (b"i", b"k", b"p", b"c"):  # these may come late for a child that has ended
                self._host.pass_over(size, self._buffer.chunk)
            else:
                raise HostGone

    def _run(self, kind: bytes, size: int) -> CodeType | None:
        has_read, read_all = os.pipe()
        ours: dict[int, bytes] = {}
        stdin: int | None = None
        if kind == b"d":
            child_fds = take_handles(self._fd_socket or 0)
        else:
            (stdin_read, stdin), (stdout, stdout_write) = os.pipe(), os.pipe()
            child_fds, ours = [stdin_read, stdout_write], {stdout: b"o"}
        if kind == b"n" and stdin is not None:
            os.close(stdin)
            stdin = None
        for output in (b"e", b"r"):
            read, write = os.pipe()
            ours[read] = output
            child_fds.append(write)
        kills = Kills(self._place.counts)
        try:
            pid = kernel.clone() if self._place.namespaces else os.fork()
        except OSError as fault:
            self._host.send(b"e", str(fault).encode())
            self._report_end(1, out_of_memory=False)
            raise HostGone from fault  # its request lies unread
        if pid == 0:
            # Not here: what a later child is forked from must never have held an earlier one's request.
            request = unpack(exactly(self._host.source, size))
            os.write(read_all, b"x")
            return live(request, child_fds, self._code, self._place)
        for handle in (*child_fds, read_all):
            os.close(handle)
        if not os.read(has_read, 1):
            raise HostGone  # what comes next is somewhere in the middle of a request
        os.close(has_read)
        if self._place.namespaces:
            Relay(self._host, self._buffer, pid, stdin, ours).run()
        else:
            Relay(self._host, self._buffer, EVERYTHING, stdin, ours, supervisor=pid).run()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status < 0 and not self._place.namespaces:
            status = SIGNAL_CODES - status  # here a program can reach its supervisor, and only it would
        out_of_memory = kills.grew()  # its supervisor may have been among those that were ended
        kills.close()
        self._report_end(status, out_of_memory=out_of_memory)
        return None

    def _report_end(self, status: int, *, out_of_memory: bool) -> None:
        ending = {"status": status, "starved": out_of_memory, "anomaly": self._anomaly()}
        self._host.send(b".", json.dumps(ending).encode())

    def _anomaly(self) -> str:
        state = observe()
        if state != self._state:
            return next(name for name in state if state[name] != self._state[name])
        if left := self._sockets.left():
            return f"sockets: {left}"  # their ports are taken for a minute
        pages = kernel.resident_pages()
        return f"memory: {pages} pages" if pages > self._most_pages else ""


def take_handles(fd_socket: int) -> list[int]:
    """The descriptors that the host has given: a program's stdin and stdout.

    Raises:
        HostGone: It gave something else.
    """
    way = _socket.socket(fileno=fd_socket)
    given = b"".join(message[2] for message in way.recvmsg(1, _socket.CMSG_SPACE(2 * INT_BYTES))[1])
    way.detach()  # an object that closes it must not live on in a child
    if len(given) != 2 * INT_BYTES:
        raise HostGone
    return [int.from_bytes(part, sys.byteorder) for part in (given[:INT_BYTES], given[INT_BYTES:])]


def unpack(content: bytes) -> dict[str, Any]:
    """A request as the host packed it."""
    size = int.from_bytes(content[:4], "big")
    request: dict[str, Any] = json.loads(content[4 : 4 + size])
    files, at = {}, 4 + size
    for path, length in request["files"]:
        files[path] = content[at : at + length]
        at += length
    request["files"] = files
    return request


def observe() -> dict[str, object]:
    """What no run may change."""
    with open("/proc/self/mountinfo", "rb", buffering=0) as file:
        mounts = file.readall()
    return {
        "mounts": mounts,
        "processes": processes(),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def processes() -> set[str]:
    """Every process in sight."""
    return {name for name in os.listdir("/proc") if name.isdigit()}


def preload(code: str) -> None:
    """Run code that every child is to find done; end where it leaves processes, which runs would share.

    Args:
        code: It may import a project's packages.
    """
    before = processes()
    with suppress(OSError):  # some backends make it only for the child
        os.chdir("/box")  # a plugin that notes the folder it is loaded in must note the program's
    exec(compile(code, "<preload>", "exec", dont_inherit=True), {"__name__": "preload"})
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    if left := processes() - before:
        sys.exit(f"what was preloaded has left {len(left)} processes behind")


def close_all_but(*kept: int | None) -> None:
    """Close what was inherited, such as the namespace that our launcher came through."""
    for handle in map(int, os.listdir("/proc/self/fd")):
        if handle > 2 and handle not in kept:
            with suppress(OSError):  # such as the one by which this was listed
                os.close(handle)


def hide() -> None:
    """Leave nothing of ours where a child's program would look."""
    os.environ.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "suture"]:
        del sys.modules[name]


def main() -> CodeType | None:
    """Take the first frame as the settings, then serve."""
    if sys.version_info < (3, 9):  # noqa: UP036 - a project's own interpreter may be older than ours
        sys.exit("this interpreter is too old to be forked from")
    host = Host(os.dup(0), os.dup(1))
    for handle in (0, 1):
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, handle)
        os.close(nothing)
    kernel.protect()
    deafen()
    try:
        settings = json.loads(exactly(host.source, host.wait_head()[1]))
        # A child closes low descriptors only, and a busy host's may be high.
        fd_socket = None if settings["fd_socket"] is None else os.dup(settings["fd_socket"])
        close_all_but(host.source, host.sink, fd_socket)
        hide()
        take_library(settings["modules"])
        preload(settings["preload"])
        gc.collect()
        gc.freeze()
        place = Place(settings["namespaces"], settings["covered"], settings["emptied"])
        if not place.namespaces and os.getpid() != 1:
            sys.exit("only the first process of a PID namespace may serve without namespaces for each run")
        return Zygote(host, bytes.fromhex(settings["filter"]), place, fd_socket).serve()
    except HostGone:
        sys.exit(0)
