"""A service that a task's tests need, such as a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

KNOWN_SERVICES = {"postgresql": 5432, "redis": 6379}
"""Service that Suture can start on its own -> the port on which it listens by default."""


@dataclass(frozen=True, kw_only=True)
class TaskService:
    """How to start a service inside the sandbox, before each run of the tests.

    Attributes:
        command: Command line for `/bin/sh` that runs it in the foreground, in the project's folder. Empty for one of
            `KNOWN_SERVICES`.
        port: The port of 127.0.0.1 on which it listens; 0 for the default of a known service.
        ready: Command line for `/bin/sh` that succeeds once it is ready. By default, it is ready when it listens on
            `port`.
        timeout_s: Wall-clock seconds until it must be ready.
        variables: Environment variables of the tests and of the service's own command.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}  # the settings hold this record

    command: str = ""
    port: int = 0
    ready: str = ""
    timeout_s: float = 30.0
    variables: Mapping[str, str] = field(default_factory=dict)
