"""Read manifests: files that say which packages a project requires.

Besides packages, the module finds scripts that run during an installation, and settings of package clients that
choose another index. What cannot be read is reported, because it could require anything.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from suture.project.python_source.parsing import parse_module
from suture.project.safety.package_requirements import (
    NUMBER,
    OUTSIDE_INDEX,
    REQUIREMENTS_FILE,
    Ecosystem,
    PackageRequirement,
    index_requirements,
    lowest_version,
    outside_index,
    parse_requirements,
    render_value,
    required_file,
    table_requirements,
    unreadable,
)
from suture.project.tuning import (
    MAX_MANIFEST_CHARS,
    MAX_MANIFEST_PACKAGES,
    MAX_QUOTED_REQUIREMENT_CHARS,
    MAX_REQUIREMENT_CHARS,
)

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
    """Yield dependencies that the build reads from other files, unless those are themselves manifests."""
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


SETUPTOOLS_LISTS = ("install_requires", "setup_requires", "tests_require", "extras_require")
"""Arguments and settings of setuptools that hold lists of packages."""


def in_requirements(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages of a requirements file."""
    yield from parse_requirements(text.replace("\\\n", " ").splitlines())


def in_setup_py(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages in literal lists of a `setup.py`. Code that computes lists is not run."""
    tree = parse_module(text)
    if tree is None:
        raise ValueError("it is not valid Python")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg in SETUPTOOLS_LISTS:
                yield from _literal_requirements(keyword.arg, keyword.value)
            elif keyword.arg is None and _called(node.func) == "setup":
                yield unreadable("python", "setup.py", "it computes its arguments")


def _called(function: ast.expr) -> str:
    """Return the last name of what is called: `setup` of `setuptools.setup(...)`."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _literal_requirements(name: str, value: ast.expr) -> Iterator[PackageRequirement]:
    """Yield the packages of one list, or of a dictionary of lists, by the name of its argument."""
    try:
        lists = ast.literal_eval(value)
    except ValueError:
        yield unreadable("python", "setup.py", f"it computes {name}")
        return
    for words in lists.values() if isinstance(lists, dict) else [lists]:
        yield from parse_requirements(map(str, words.splitlines() if isinstance(words, str) else words))


def in_setup_cfg(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages in setuptools' lists."""
    table = configparser.RawConfigParser(strict=False)
    table.read_string(text)
    lists = [table.get("options", name, fallback="") for name in SETUPTOOLS_LISTS]
    if table.has_section("options.extras_require"):
        lists += [value for _, value in table.items("options.extras_require")]
    yield from parse_requirements("\n".join(lists).splitlines())


def in_pipfile(text: str) -> Iterator[PackageRequirement]:
    """Yield the packages and the sources of a `Pipfile`."""
    for name, value in tomllib.loads(text).items():
        if name == "source":
            yield from index_requirements(*value)
        # Every other table of a Pipfile is a group of packages, whatever its name is.
        elif name not in ("requires", "pipenv", "scripts", "pipfile"):
            yield from table_requirements(value)


def in_client_settings(text: str) -> Iterator[PackageRequirement]:
    """Yield each setting of a package client, because it may name another index or enable scripts."""
    for line in text.splitlines():
        if line.strip() and line.strip()[0] not in "#;[":  # no comment, and no heading of a section
            yield outside_index("python", line.strip())


INSTALL_SCRIPTS = ("preinstall", "install", "postinstall", "prepare", "prepublish")
"""Scripts of `package.json` that npm runs automatically during an installation."""
NPM_TABLES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
"""Tables of `package.json` that request packages."""
Reader = Callable[[str], Iterable[PackageRequirement]]


def find_requested_packages(path: str, text: str) -> tuple[PackageRequirement, ...]:
    """Return what a file requires; empty if it is not a manifest. Unreadable parts are reported as such.

    Args:
        path: Path of the file, for its name.
        text: Content of the file, not trusted.
    """
    name = PurePosixPath(path).name
    reader = _READERS.get(name) or (in_requirements if REQUIREMENTS_FILE.fullmatch(path) else None)
    if reader is None:
        return ()
    ecosystem = ECOSYSTEM_BY_FILE.get(name, "python")
    if len(text) > MAX_MANIFEST_CHARS:
        return (unreadable(ecosystem, name, f"more than {MAX_MANIFEST_CHARS:,} characters"),)
    try:
        packages = list(islice(reader(text), MAX_MANIFEST_PACKAGES + 1))
    except (ValueError, RecursionError, TypeError, AttributeError, KeyError, configparser.Error):
        return (unreadable(ecosystem, name, "it is not in the format of such a file"),)
    if len(packages) > MAX_MANIFEST_PACKAGES:
        too_many = unreadable(ecosystem, name, f"more than {MAX_MANIFEST_PACKAGES} packages")
        packages[MAX_MANIFEST_PACKAGES - 1 :] = [too_many]
    lines = text.splitlines()
    return tuple(_with_line(package, lines) for package in packages)


def _with_line(package: PackageRequirement, lines: list[str]) -> PackageRequirement:
    """Return a requirement with the number of the first line that contains its name."""
    return replace(package, line=next((n for n, line in enumerate(lines, 1) if package.name in line), 1))


def _npm_settings(text: str) -> Iterator[PackageRequirement]:
    for setting in in_client_settings(text):
        yield outside_index("javascript", setting.name)


def _package_json(text: str) -> Iterator[PackageRequirement]:
    package: Mapping[str, Any] = json.loads(text)
    tables = [package.get(kind, {}) for kind in (*NPM_TABLES, "overrides", "resolutions")]
    for table in (*tables, package.get("pnpm", {}).get("overrides", {})):
        for name, value in _flat(table):
            yield _npm_requirement(name, str(value)[:MAX_REQUIREMENT_CHARS])
    for hook in INSTALL_SCRIPTS:
        if package.get("scripts", {}).get(hook):
            yield PackageRequirement(ecosystem="javascript", name=hook, is_install_script=True)


def _flat(table: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and versions. An override may contain overrides for the requirements of a package."""
    for name, value in table.items():
        # `.` is the package itself, `a@1` one version of a package, and `**/a` (yarn) a package at any depth.
        package = parent if name == "." else re.sub(r"(?<=.)@[^/]*$", "", name.rpartition("/**/")[2])
        if isinstance(value, dict):
            yield from _flat(value, package)
        else:
            yield package, value


def _npm_requirement(name: str, versions: str) -> PackageRequirement:
    """Return one entry of a table of packages in a `package.json`."""
    # `owner/name` is a repository on GitHub.
    if OUTSIDE_INDEX.search(versions) or re.fullmatch(r"[\w.-]+/[\w.-]+(?:#.*)?", versions):
        return outside_index("javascript", name, versions)
    if versions.startswith("npm:"):
        alias_target = versions.removeprefix("npm:")
        return PackageRequirement(
            ecosystem="javascript", name=alias_target.rpartition("@")[0] or alias_target
        )
    # `$` in an override means the version that the project requires anyway.
    version = "" if versions.startswith("$") else lowest_version(versions)
    return PackageRequirement(ecosystem="javascript", name=name, version=version)


def _go_mod(text: str) -> Iterator[PackageRequirement]:
    """Yield the modules, tools and replacements of a `go.mod` or a `go.work`."""
    block = ""
    for line in text.splitlines():
        # Go reads `require(` and quoted paths, too.
        words = re.sub(r"([()])", r" \1 ", line.partition("//")[0]).split()
        words = [word.strip('"`') for word in words]
        if words[-1:] == ["("] and len(words) == 2:
            block = words[0]
        elif words == [")"]:
            block = ""
        elif words:
            directive, arguments = (block, words) if block else (words[0], words[1:])
            yield from _go_directive(directive, arguments)


def _go_directive(directive: str, arguments: list[str]) -> Iterator[PackageRequirement]:
    """Yield what one directive of a `go.mod` or `go.work` requires."""
    if directive == "require" and len(arguments) > 1:
        number = NUMBER.search(arguments[1])
        yield PackageRequirement(ecosystem="go", name=arguments[0], version=number[0] if number else "")
    elif directive == "tool" and arguments:
        yield PackageRequirement(ecosystem="go", name=arguments[0])  # `go tool` builds it and runs it
    elif directive == "replace" and len(arguments) > 1:
        yield outside_index("go", arguments[0], " ".join(arguments[1:]).removeprefix("=> "))
    # A workspace may use only modules inside the project.
    elif directive == "use" and arguments and (".." in arguments[0] or arguments[0].startswith("/")):
        yield outside_index("go", arguments[0])


_READERS: Mapping[str, Reader] = {
    "pyproject.toml": in_pyproject,
    "setup.py": in_setup_py,
    "setup.cfg": in_setup_cfg,
    "Pipfile": in_pipfile,
    "package.json": _package_json,
    "go.mod": _go_mod,
    "go.work": _go_mod,
    **dict.fromkeys(("pip.conf", "pip.ini", "uv.toml"), in_client_settings),
    **dict.fromkeys((".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmrc", "bunfig.toml"), _npm_settings),
}
ECOSYSTEM_BY_FILE: Mapping[str, Ecosystem] = {
    "go.mod": "go",
    "go.work": "go",
    **dict.fromkeys((name for name, reader in _READERS.items() if reader is _npm_settings), "javascript"),
    "package.json": "javascript",
}
