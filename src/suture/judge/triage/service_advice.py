"""Advice about services that tests miss: the setting that starts them inside the sandbox."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import basename

from suture.core.records import KNOWN_SERVICES

COMPOSE_FILES = ("docker-compose.yml", "docker-compose.yaml", "compose.yml", "compose.yaml")
IMAGE_RE = re.compile(rb"^\s*image:\s*[\"']?(?:[\w.:-]+/)*(?P<name>[\w.-]+)", re.MULTILINE)
"""An image that a compose file names, without its registry and its tag."""
IMAGES = {
    "postgres": "postgresql",
    "postgis": "postgresql",
    "pgvector": "postgresql",
    "redis": "redis",
    "valkey": "redis",
}
"""Name of an image -> the service in it that Suture can start on its own."""
PACKAGE_RE = re.compile(
    rb"\bpytest[-_](?P<plugin>postgresql|redis)\b|\btestcontainers(?:\[|\.)(?P<container>postgres|redis)|\b(?P<any>testcontainers)\b"
)
"""Python packages that start a service for tests."""
PORT_NAMES = {str(port): name for name, port in KNOWN_SERVICES.items()}


def advise_on_services(files: Mapping[str, bytes], port: str = "") -> str:
    """Return how to start the services that tests miss, by the names in a project's files.

    Args:
        port: The port of 127.0.0.1 on which nothing listens, if it is known.
    """
    sources, names = find_named_services(files)
    if port in PORT_NAMES:
        names = list(dict.fromkeys((PORT_NAMES[port], *names)))
    tables = [f"{name} = {{}}" for name in names]
    if not tables:
        tables = [f'NAME = {{command = "...", port = {port or "..."}}}']
    named = f"{' and '.join(sources)} name{'s' if len(sources) == 1 else ''} it; " if sources else ""
    return f"{named}to start it inside the sandbox, set project.services = {{{', '.join(tables)}}} (docs/layouts.md)"


def find_named_services(files: Mapping[str, bytes]) -> tuple[list[str], list[str]]:
    """Return (what names services: compose files and packages; the services of these that Suture can start)."""
    sources: list[str] = []
    names: list[str] = []
    for path, content in sorted(files.items()):
        if basename(path) in COMPOSE_FILES:
            sources.append(path)
            names += [IMAGES.get(match["name"].decode(), "") for match in IMAGE_RE.finditer(content)]
        elif path.endswith((".py", ".toml", ".txt", ".cfg")) and (match := PACKAGE_RE.search(content)):
            service = (match["plugin"] or match["container"] or b"").decode()
            sources.append(f"pytest-{service}" if match["plugin"] else "testcontainers")
            names.append(IMAGES.get(service, service))
    return list(dict.fromkeys(sources)), list(dict.fromkeys(filter(None, names)))
