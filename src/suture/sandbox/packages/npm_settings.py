"""The user's own settings of npm: which registries, and what they ask of who comes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from suture.core.safe_files import read_plain
from suture.sandbox import BOX, KEPT
from suture.sandbox.packages.client import TEMPORARY, own_environment
from suture.sandbox.packages.installer import Place
from suture.sandbox.packages.reach import Reach, ask, certificates, origins_of

REGISTRY = re.compile(r"registry|@[^:]+:registry")
LOGIN = re.compile(r"//(?P<server>[^/\s]+)(?:/\S*)?:(?:_authToken|_auth|_password|username)")
OF_ENVIRONMENT = re.compile(r"npm_config_(?P<name>//.+)", re.IGNORECASE)
VARIABLE = re.compile(r"\$\{(\w+)\}")
FILE_BYTES = 1 << 20


async def npm_reach(npm: tuple[str, ...], place: Place) -> Reach:
    """What npm may reach: the user's registries. Where one keeps its archives elsewhere, the user names that.

    Args:
        npm: The program on this machine.
        place: Where it runs.

    Raises:
        PrerequisiteError: It is not there.
    """
    output = await ask("npm", (*npm, "config", "list", "--json"), place.folder, own_environment())
    settings = _object(output)
    registries = {name: str(url) for name, url in settings.items() if REGISTRY.fullmatch(name) and url}
    path = settings.get("cafile") or os.environ.get("NODE_EXTRA_CA_CERTS", "")
    certificate, files = certificates(str(path))
    lines = [f"{name}={url}" for name, url in registries.items()]
    origins = origins_of(registries.values(), place.hosts)
    lines += [f"{name}={value}" for name, value in _logins(settings) if _server(name) in map(str, origins)]
    lines += [f"cafile={certificate}"] if certificate else []
    lines += ["strict-ssl=false"] if settings.get("strict-ssl") is False else []
    return Reach(
        origins=origins,
        variables={
            "npm_config_cache": f"{KEPT}/{TEMPORARY}/npm",
            "npm_config_globalconfig": f"{BOX}/none",
            "npm_config_noproxy": "",
            **({"NODE_EXTRA_CA_CERTS": certificate} if certificate else {}),
        },
        files={**files, ".npmrc": "".join(f"{line}\n" for line in lines).encode()},
        proxy=str(settings.get("https-proxy") or settings.get("proxy") or ""),
    )


def _object(output: str) -> Mapping[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _logins(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What registries ask of who comes; npm does not tell that, but it stands in the user's files."""
    for key in ("globalconfig", "userconfig"):
        content = read_plain(Path(str(settings.get(key) or "/nonexistent")), FILE_BYTES, follow=True)
        yield from _set_in((content or b"").decode("utf-8", "replace").splitlines())
    for name, value in os.environ.items():
        match = OF_ENVIRONMENT.fullmatch(name)
        if match is not None and LOGIN.fullmatch(match["name"]):
            yield match["name"], value


def _server(login: str) -> str:
    """The server that a login is for, as an `Origin` is written."""
    match = LOGIN.fullmatch(login)
    return match["server"].lower() if match is not None else ""


def _set_in(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, _, value = line.partition("=")
        if LOGIN.fullmatch(name.strip()):
            yield name.strip(), VARIABLE.sub(lambda match: os.environ.get(match[1], ""), value.strip())
