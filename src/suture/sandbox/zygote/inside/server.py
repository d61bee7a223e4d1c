"""The zygote: a small trusted process that forks a child for each run, and never runs a program itself."""

from __future__ import annotations

import _socket  # importing `socket` itself loads much more
import gc
import importlib
import json
import os
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from suture.sandbox.execution.supervisor import read_exactly, reset_sigint
from suture.sandbox.zygote.inside import kernel
from suture.sandbox.zygote.inside.child import ChildSetup, run_child
from suture.sandbox.zygote.inside.kernel import OomKillCounter, SocketCounter
from suture.sandbox.zygote.inside.relay import Host, HostGone, Relay, RelayBuffer


class InMemoryImporter:
    """An importer of modules from `sources`: module name -> source."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        is_package = any(source_name.startswith(name + ".") for source_name in self._sources)
        if name not in self._sources and not is_package:
            return None
        loader: Any = self
        return ModuleSpec(name, loader, origin=f"<{name}>", is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> None:
        """Use the default module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's source."""
        source = self._sources.get(module.__name__, "")
        exec(compile(source, f"<{module.__name__}>", "exec", dont_inherit=True), module.__dict__)


def import_from_sources(sources: dict[str, str]) -> None:
    """Import all modules of `sources`, module name -> source, and leave no importer behind."""
    importer: Any = InMemoryImporter(sources)
    sys.meta_path.insert(0, importer)
    try:
        for name in sources:
            importlib.import_module(name)
    finally:
        sys.meta_path.remove(importer)


MAX_GROWTH = 1.2
SLACK_PAGES = 1024  # both are chosen by judgement
"""A zygote is replaced when it uses this many times the memory that it started with, plus these pages, which an
allocator may keep."""
ALL_PROCESSES = -1
"""For `kill`: all processes except PID 1, which is this one."""
SIGNAL_CODES = 128
"""As in shells: 128 plus the signal's number, as an exit status."""
FD_BYTES = 4
"""A descriptor in a socket message is a C `int`."""


class ZygoteServer:
    """Serves the host's requests one after another, each in a child of its own.

    Args:
        seccomp_filter: The system call filter of every child.
        fd_socket: The socket through which the host sends file descriptors.
    """

    def __init__(
        self, host: Host, seccomp_filter: bytes, setup: ChildSetup, fd_socket: int | None = None
    ) -> None:
        self._host = host
        self._fd_socket = fd_socket
        self._seccomp_filter = seccomp_filter
        self._setup = setup
        self._buffer = RelayBuffer()
        self._sockets = SocketCounter()
        self._state = observe_state()
        # A run happens in a child, so that its own memory does not count here.
        self._max_pages = int(kernel.resident_pages() * MAX_GROWTH) + SLACK_PAGES

    def serve(self) -> CodeType | None:
        """Serve until `HostGone`. Returns only in a child that is to run Python code, with that code."""
        self._host.send(b"h")
        while True:
            kind, size = self._host.wait_head()
            if kind in (b"q", b"n") or (kind == b"d" and self._fd_socket is not None):
                code = self._run(kind, size)
                if code is not None:
                    return code
            elif kind in (b"i", b"k", b"p", b"c"):  # these may arrive after their child has ended
                self._host.discard(size, self._buffer.chunk)
            else:
                raise HostGone

    def _run(self, kind: bytes, size: int) -> CodeType | None:
        """Serve one request; return code in the child that is to run it, and `None` in the zygote."""
        # The child writes to this pipe when it has read its request.
        request_read_fd, signal_fd = os.pipe()
        outputs: dict[int, bytes] = {}
        stdin: int | None = None
        if kind == b"d":
            child_fds = receive_fds(self._fd_socket or 0)
        else:
            (child_stdin, stdin), (stdout, child_stdout) = os.pipe(), os.pipe()
            child_fds, outputs = [child_stdin, child_stdout], {stdout: b"o"}
        if kind == b"n" and stdin is not None:
            os.close(stdin)
            stdin = None
        for output_kind in (b"e", b"r"):
            output_fd, child_output = os.pipe()
            outputs[output_fd] = output_kind
            child_fds.append(child_output)
        oom_kills = OomKillCounter(self._setup.kill_counts)
        try:
            pid = kernel.clone() if self._setup.namespaces else os.fork()
        except OSError as fault:
            self._host.send(b"e", str(fault).encode())
            self._report_end(1, out_of_memory=False)
            raise HostGone from fault  # the request is still unread in the pipe
        if pid == 0:
            # The child reads the request, because the memory that later children are forked from must never
            # hold it.
            request = unpack(read_exactly(self._host.source, size))
            os.write(signal_fd, b"x")
            return run_child(request, child_fds, self._seccomp_filter, self._setup)
        for child_fd in (*child_fds, signal_fd):
            os.close(child_fd)
        if not os.read(request_read_fd, 1):
            raise HostGone  # the stream is now in the middle of a request
        os.close(request_read_fd)
        if self._setup.namespaces:
            Relay(self._host, self._buffer, pid, stdin, outputs).run()
        else:
            Relay(self._host, self._buffer, ALL_PROCESSES, stdin, outputs, supervisor=pid).run()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status < 0 and not self._setup.namespaces:
            # without namespaces a program can kill its supervisor, and only it would
            status = SIGNAL_CODES - status
        out_of_memory = oom_kills.has_grown()  # the supervisor may be among the killed processes
        oom_kills.close()
        self._report_end(status, out_of_memory=out_of_memory)
        return None

    def _report_end(self, status: int, *, out_of_memory: bool) -> None:
        ending = {"status": status, "starved": out_of_memory, "anomaly": self._find_anomaly()}
        self._host.send(b".", json.dumps(ending).encode())

    def _find_anomaly(self) -> str:
        state = observe_state()
        if state != self._state:
            return next(name for name in state if state[name] != self._state[name])
        if remaining := self._sockets.count_sockets():
            return f"sockets: {remaining}"  # their ports stay taken for a minute
        pages = kernel.resident_pages()
        return f"memory: {pages} pages" if pages > self._max_pages else ""


def receive_fds(fd_socket: int) -> list[int]:
    """Receive two file descriptors from the host: a program's stdin and stdout.

    Raises:
        HostGone: The host sent something else.
    """
    receiver = _socket.socket(fileno=fd_socket)
    messages = receiver.recvmsg(1, _socket.CMSG_SPACE(2 * FD_BYTES))[1]
    receiver.detach()  # an object that closes the descriptor must not live on in a child
    content = b"".join(message[2] for message in messages)
    if len(content) != 2 * FD_BYTES:
        raise HostGone
    return [int.from_bytes(part, sys.byteorder) for part in (content[:FD_BYTES], content[FD_BYTES:])]


def unpack(content: bytes) -> dict[str, Any]:
    """Decode a request."""
    size = int.from_bytes(content[:4], "big")
    request: dict[str, Any] = json.loads(content[4 : 4 + size])
    files, start = {}, 4 + size
    for path, length in request["files"]:
        files[path] = content[start : start + length]
        start += length
    request["files"] = files
    return request


def observe_state() -> dict[str, object]:
    """Return what no run may change."""
    with open("/proc/self/mountinfo", "rb", buffering=0) as file:
        mounts = file.readall()
    return {"mounts": mounts, "processes": list_processes(), "descriptors": len(os.listdir("/proc/self/fd"))}


def list_processes() -> set[str]:
    """Return the ids of every visible process."""
    return {name for name in os.listdir("/proc") if name.isdigit()}


def preload(code: str) -> None:
    """Run code whose effects every child inherits; it may import a project's packages.

    Exits if the code leaves processes behind, which all runs would share.
    """
    before = list_processes()
    with suppress(OSError):  # some back ends create /box only for the child
        os.chdir("/box")  # a plugin that stores the current folder when it is imported must see the program's
    exec(compile(code, "<preload>", "exec", dont_inherit=True), {"__name__": "preload"})
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    if remaining := list_processes() - before:
        sys.exit(f"the preloaded code left {len(remaining)} processes behind")


def close_all_but(*kept_fds: int | None) -> None:
    """Close inherited descriptors, such as the mount namespace through which the launcher came."""
    for open_fd in map(int, os.listdir("/proc/self/fd")):
        if open_fd > 2 and open_fd not in kept_fds:
            with suppress(OSError):  # for example the descriptor of this listing
                os.close(open_fd)


def remove_traces() -> None:
    """Remove Suture's environment and modules from where a program would look."""
    os.environ.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "suture"]:
        del sys.modules[name]


def main() -> CodeType | None:
    """Read the settings from the first frame, then serve."""
    if sys.version_info < (3, 9):  # noqa: UP036 - a project's interpreter may be older than Suture's
        sys.exit("this interpreter is too old to be forked from")
    host = Host(os.dup(0), os.dup(1))
    for standard_fd in (0, 1):
        null_fd = os.open(os.devnull, os.O_RDWR)
        os.dup2(null_fd, standard_fd)
        os.close(null_fd)
    kernel.forbid_inspection()
    reset_sigint()
    try:
        settings = json.loads(read_exactly(host.source, host.wait_head()[1]))
        # Moved to a low number, because a child closes low descriptors only, and a busy host's may be high.
        fd_socket = None if settings["fd_socket"] is None else os.dup(settings["fd_socket"])
        close_all_but(host.source, host.sink, fd_socket)
        remove_traces()
        import_from_sources(settings["modules"])
        preload(settings["preload"])
        gc.collect()
        gc.freeze()
        setup = ChildSetup(settings["namespaces"], settings["covered"], settings["hidden_folders"])
        # `ALL_PROCESSES`, by which such a run is ended, would otherwise include this process.
        if not setup.namespaces and os.getpid() != 1:
            sys.exit("without namespaces for each run, a zygote must be PID 1 of its namespace")
        return ZygoteServer(host, bytes.fromhex(settings["filter"]), setup, fd_socket).serve()
    except HostGone:
        sys.exit(0)
