"""The types of single settings: how a string becomes a value, and which values are refused."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from suture.core.records.judgement import FindingCode
from suture.core.records.task_service import KNOWN_SERVICES, TaskService

MAX_SERVICE_START_S = 600
"""Longer than any database takes to start; each run of the tests may wait as long. Chosen by judgement."""


@dataclass(frozen=True)
class FileReference:
    """Marks a string setting that can name a file.

    Attributes:
        kind: How to recognise a file: a `recipe` ends in `.toml`, a `model` is written like `scripted:FILE`.
    """

    kind: Literal["recipe", "model"]


def _split_names(value: object) -> object:
    """Return a list that a variable or a flag gives as one comma-separated string; else the value itself."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def parse_table(value: object) -> object:
    """Return a table that an environment variable or a flag gives as an inline table of TOML; else the value itself."""
    try:
        return tomllib.loads(f"table = {value}")["table"] if isinstance(value, str) else value
    except (tomllib.TOMLDecodeError, RecursionError) as fault:
        raise ValueError('it is an inline table, such as {"openai:my-model" = {tools = false}}') from fault


def _check_address(text: str | None) -> str | None:
    """Return an HTTP address if requests can be sent to it.

    Raises:
        ValueError: It is not such an address. The message does not quote it, because it may contain a
            password.
    """
    if text is None:
        return None
    parts = urlsplit(text)  # raises a ValueError itself for an incomplete IPv6 address
    if not text.isprintable() or " " in text or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            "an address begins with http:// or https:// and a host, such as http://127.0.0.1:8000/v1"
        )
    if "?" in text or "#" in text:  # the path of a request is appended to the address
        raise ValueError("an address has no `?` and no `#`; put a key into the group `keys` instead")
    if not 0 < (parts.port or 80) < 65536:  # reading `port` raises a ValueError for most wrong ports
        raise ValueError("there is no such port")
    return text


def _check_key(key: SecretStr | None) -> SecretStr | None:
    """Return a key without surrounding white space.

    Raises:
        ValueError: It cannot be sent in an HTTP header. Without this check, the HTTP library would quote the
            key in its error message.
    """
    plain = key.get_secret_value().strip() if key is not None else ""
    if not (plain.isascii() and plain.isprintable()) or " " in plain:
        raise ValueError("a key is one word of ASCII letters, digits and signs")
    return SecretStr(plain) if key is not None else None


def _check_services(services: Mapping[str, TaskService]) -> Mapping[str, TaskService]:
    """Return services if they can be started.

    Raises:
        ValueError: One of them cannot.
    """
    for name, service in services.items():
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
            raise ValueError(f"a service's name has up to 40 letters, digits, `_` and `-`, unlike {name!r}")
        if name not in KNOWN_SERVICES and not service.command:
            raise ValueError(
                f"{name}: say how to start it with `command` ({', '.join(KNOWN_SERVICES)} need none)"
            )
        if service.command and not (service.port or service.ready):
            raise ValueError(f"{name}: say with `port` or `ready` how to see that it is ready")
        if not 0 <= service.port < 65536:
            raise ValueError(f"{name}: there is no port {service.port}")
        if not 0 < service.timeout_s <= MAX_SERVICE_START_S:
            raise ValueError(f"{name}: timeout_s is more than 0 and at most {MAX_SERVICE_START_S}")
    return services


def _check_finding_codes(names: tuple[str, ...]) -> tuple[str, ...]:
    if names == ("none",):  # as the description of the setting shows an empty list
        return ()
    known = get_args(FindingCode)
    for name in names:
        if name not in known:
            similar = difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {similar[0]!r}?" if similar else "docs/judge.md lists the codes"
            raise ValueError(f"there is no finding {name!r}; {advice}")
    return names


Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
FindingNames = Annotated[Names, AfterValidator(_check_finding_codes)]
Address = Annotated[str | None, AfterValidator(_check_address)]
Services = Annotated[Mapping[str, TaskService], BeforeValidator(parse_table), AfterValidator(_check_services)]
Key = Annotated[SecretStr | None, AfterValidator(_check_key)]
ModelName = Annotated[str, FileReference("model")]
ModelNameOrNone = Annotated[str | None, FileReference("model")]
ModelNames = Annotated[Names, FileReference("model")]
RoleTemperature = Annotated[
    float | None, Field(ge=0, le=2, description="Sampling temperature of the role, unless it is greedy.")
]
RoleMaxTokens = Annotated[int | None, Field(ge=16, description="Max tokens of one answer of the role.")]
RoleAddress = Annotated[
    Address, Field(description="Address of the server of the role's model, if it has one of its own.")
]
RoleKey = Annotated[Key, Field(description="Key for that server. By default, the provider's key.")]
