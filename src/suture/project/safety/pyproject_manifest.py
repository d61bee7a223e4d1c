"""Read a `pyproject.toml`: the packages and indexes in the standard tables and in those of the package tools."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from suture.project.safety.package_requirements import (
    PackageRequirement,
    index_requirements,
    outside_index,
    parse_requirements,
    render_value,
    required_file,
    table_requirements,
    unreadable,
)
from suture.project.tuning import MAX_QUOTED_REQUIREMENT_CHARS

UV_LISTS = (
    "dev-dependencies",
    "constraint-dependencies",
    "override-dependencies",
    "build-constraint-dependencies",
)
"""Settings of uv that hold lists of requirements."""
INDEX_OPTIONS = (
    "index-url", "extra-index-url", "default-index", "find-links", "no-index", "index-strategy",
    "allow-insecure-host", "trusted-host",
)  # fmt: skip
"""Settings of uv that choose where packages come from."""


def in_pyproject(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages and the indexes in the tables of a `pyproject.toml`, including those of the tools."""
    table = tomllib.loads(text)
    project, tools = table.get("project", {}), table.get("tool", {})
    yield from _lists(
        project.get("dependencies", []),
        table.get("build-system", {}).get("requires", []),
        *project.get("optional-dependencies", {}).values(),
        *table.get("dependency-groups", {}).values(),
    )
    yield from _dynamic_dependencies(project, tools)
    yield from _uv_tables(tools.get("uv", {}))
    yield from _poetry_tables(tools.get("poetry", {}))
    pdm, hatch, rye = (tools.get(tool, {}) for tool in ("pdm", "hatch", "rye"))
    yield from _lists(*pdm.get("dev-dependencies", {}).values(), rye.get("dev-dependencies", []))
    yield from table_requirements(pdm.get("resolution", {}).get("overrides", {}))
    yield from index_requirements(*pdm.get("source", []), *rye.get("sources", []))
    for environment in hatch.get("envs", {}).values():
        for key in ("dependencies", "extra-dependencies"):
            yield from _lists(environment.get(key, []))


def _lists(*lists: Iterable[Any]) -> Iterator[PackageRequirement]:
    """Yield the requirements in lists of words. A table in such a list may only include another group."""
    for words in lists:
        yield from parse_requirements(word for word in words if isinstance(word, str))
        for word in words:
            if not isinstance(word, str) and set(word) != {"include-group"}:
                yield unreadable(
                    "python", str(word)[:MAX_QUOTED_REQUIREMENT_CHARS], "it is not a requirement"
                )


def _dynamic_dependencies(
    project: Mapping[str, Any], tools: Mapping[str, Any]
) -> Iterator[PackageRequirement]:
    """Yield dependencies that the build reads from other files, unless those are manifests by themselves."""
    dynamic = tools.get("setuptools", {}).get("dynamic", {})
    sources = [dynamic.get("dependencies", {}), *dynamic.get("optional-dependencies", {}).values()]
    for source in sources:
        files = source.get("file", [])
        for path in [files] if isinstance(files, str) else files:
            required = required_file(path, f"file = {path}")
            if required is not None:
                yield required
    if {"dependencies", "optional-dependencies"} & set(project.get("dynamic", [])):
        for name, hook in tools.get("hatch", {}).get("metadata", {}).get("hooks", {}).items():
            yield unreadable("python", name, f"a build hook computes the dependencies: {render_value(hook)}")


def _uv_tables(uv: Mapping[str, Any]) -> Iterator[PackageRequirement]:
    """Yield the packages, their sources and the indexes in uv's tables."""
    yield from _lists(*(uv.get(name, []) for name in UV_LISTS))
    yield from _lists(*uv.get("extra-build-dependencies", {}).values())
    for name, sources in uv.get("sources", {}).items():
        for source in sources if isinstance(sources, list) else [sources]:
            yield outside_index("python", name, render_value(source))
    yield from index_requirements(*uv.get("index", []))
    for table in (uv, uv.get("pip", {})):
        for option in INDEX_OPTIONS:
            if option in table:
                yield outside_index("python", option, render_value(table[option]))


def _poetry_tables(poetry: Mapping[str, Any]) -> Iterator[PackageRequirement]:
    """Yield the packages, the plugins and the indexes in Poetry's tables."""
    tables = [poetry, *poetry.get("group", {}).values()]
    for table in tables:
        for key in ("dependencies", "dev-dependencies"):
            packages = table.get(key, {})
            # The entry `python` bounds the version of Python itself.
            yield from table_requirements({name: packages[name] for name in packages if name != "python"})
    yield from table_requirements(poetry.get("requires-plugins", {}))
    yield from index_requirements(*poetry.get("source", []))
