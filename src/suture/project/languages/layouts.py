"""The layout of new projects in each language, and how they are built, started and tested."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from suture.core.records import ProjectKind

Words = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ProjectLayout:
    """The layout of a new project, and the commands for it. `{name}` and `{entry}` stand for its own names.

    Attributes:
        module: File of a task that asks for a single function.
        entry: Entry file of a project, by its kind.
        manifest: Takes kind and name; returns the files that describe the project, path -> text.
        ignored: Lines of its `.gitignore`.
        build: Commands that must succeed before anything is started.
        manual_start: The same command as a person types it.
        load_check: Command that loads a library, and fails if the library offers nothing.
        tests: Command that runs its tests.
        manual_tests: The commands by which a person runs its tests, with one that installs what only tests need.
        test_file_command: Command that runs the tests of one file, `{entry}`.
        test_file: Path of generated tests.
        test_framework: The test framework of generated tests, as prompts name it.
        style: What the author of the code must know, in words.
        dependency_note: How a feature of an existing project requests packages, in words.
        function_note: What the author of a single function must know, in words; `{name}` is the function.
        crash_marker: Text in the output of a program that shows that it crashed.
        install: Command by which a person installs the packages that its manifest names.
        needs_packages: Whether its manifest names packages from the beginning.
        reserved_names: Matches names that a project cannot have.
    """

    module: str
    entry: Mapping[ProjectKind, str]
    manifest: Callable[[ProjectKind, str], Mapping[str, str]]
    ignored: Words
    build: tuple[Words, ...]
    start: Words
    manual_start: Words
    load_check: Words
    tests: Words
    manual_tests: tuple[Words, ...]
    test_file_command: Words
    test_file: str
    test_framework: str
    style: str
    dependency_note: str
    function_note: str
    crash_marker: str
    install: Words = ()
    needs_packages: bool = False
    reserved_names: re.Pattern[str] = re.compile(r"(?!)")


def fill_placeholders(words: Words, name: str, entry: str) -> Words:
    """Return a command with a project's name and entry file in place of the placeholders."""
    return tuple(word.replace("{name}", name).replace("{entry}", entry) for word in words)


def _python_manifest(kind: ProjectKind, name: str) -> Mapping[str, str]:
    lines = [
        "[project]",
        f'name = "{name}"',
        'version = "0.1.0"',
        'readme = "README.md"',
        'requires-python = ">=3.9"',
        *([] if kind == "library" else ["", "[project.scripts]", f'{name} = "{name}.__main__:main"']),
        "",
        "[build-system]",
        'requires = ["setuptools>=61"]',
        'build-backend = "setuptools.build_meta"',
        "",
        "[tool.setuptools]",
        f'packages = ["{name}"]',
        "",
        "[tool.pytest.ini_options]",
        'pythonpath = ["."]',
        'testpaths = ["tests"]',
    ]
    package = {} if kind == "library" else {f"{name}/__init__.py": ""}
    return {"pyproject.toml": "\n".join(lines) + "\n", **package}


def _entry_files(entry: str, library: str = "") -> Mapping[ProjectKind, str]:
    """Return the entry files of a layout; the library has the same one as the others if it is not given."""
    return {"web_app": entry, "data_pipeline": entry, "cli_tool": entry, "library": library or entry}


PYTHON_LAYOUT = ProjectLayout(
    module="solution.py",
    entry=_entry_files("{name}/__main__.py", library="{name}/__init__.py"),
    manifest=_python_manifest,
    ignored=("__pycache__/", "*.egg-info/", ".pytest_cache/", ".venv/", "*.db", "dist/"),
    build=(("python", "-m", "compileall", "-q", "{name}"),),
    start=("python", "-m", "{name}"),
    manual_start=("python", "-m", "{name}"),
    load_check=("python", "-c", "import sys, {name}; sys.exit(all(n[0] == '_' for n in dir({name})))"),
    tests=("python", "-m", "pytest", "-q"),
    manual_tests=(("python", "-m", "pip", "install", "pytest"), ("python", "-m", "pytest", "-q")),
    test_file_command=("python", "-m", "pytest", "-q", "{entry}"),
    test_file="tests/test_{name}.py",
    test_framework="pytest, and hypothesis where something must hold for every input",
    style=(
        "The package is `{name}`; import its modules by it, as in `from {name}.store import load`. Use the "
        "standard library where it will do; packages that are needed stand in `requirements.txt`, one a "
        "line. The `__main__.py` of a program has a function `main()`, and calls it where "
        '`__name__ == "__main__"`.'
    ),
    dependency_note=(
        "Packages that it needs and the project does not have yet stand in `requirements.txt`, one a line; "
        "nothing else does."
    ),
    function_note="",
    crash_marker="Traceback (most recent call last)",
    install=("python", "-m", "pip", "install", "-r", "requirements.txt"),
)


def _package_json(kind: ProjectKind, name: str, entry: str, runner: str) -> dict[str, Any]:
    package: dict[str, Any] = {
        "name": name.replace("_", "-"),
        "version": "0.1.0",
        "private": True,
        "type": "commonjs",
        "main": entry,
        "scripts": {"start": f"{runner} {entry}", "test": "node --test"},
    }
    if kind in ("cli_tool", "data_pipeline"):
        package["bin"] = {name.replace("_", "-"): entry}
    return package


def _javascript_manifest(kind: ProjectKind, name: str) -> Mapping[str, str]:
    return {"package.json": json.dumps(_package_json(kind, name, "src/index.js", "node"), indent=2) + "\n"}


def _typescript_manifest(kind: ProjectKind, name: str) -> Mapping[str, str]:
    package = _package_json(kind, name, "src/index.ts", "tsx")
    package["scripts"]["test"] = "tsx --test test/*.test.ts"
    package["devDependencies"] = {"tsx": "^4"}
    options = {"target": "es2022", "module": "commonjs", "strict": True, "noEmit": True}
    return {
        "package.json": json.dumps(package, indent=2) + "\n",
        "tsconfig.json": json.dumps({"compilerOptions": options, "include": ["src"]}, indent=2) + "\n",
    }


NODE_PACKAGES_NOTE = (
    "Use Node's own modules where they will do; a package that is needed stands in `package.json`, which is "
    "then written whole, with its version under `dependencies`."
)
JAVASCRIPT_LAYOUT = ProjectLayout(
    module="solution.js",
    entry=_entry_files("src/index.js"),
    manifest=_javascript_manifest,
    ignored=("node_modules/", "*.log", ".env", "coverage/"),
    build=(("node", "--check", "{entry}"),),
    start=("node", "{entry}"),
    manual_start=("node", "{entry}"),
    load_check=("node", "-e", "process.exit(Object.keys(require('./{entry}')).length ? 0 : 1)"),
    tests=("node", "--test"),
    manual_tests=(("node", "--test"),),
    test_file_command=("node", "--test", "{entry}"),
    test_file="test/{name}.test.js",
    test_framework="node:test and node:assert",
    style=("It is CommonJS: `require` and `module.exports`. " + NODE_PACKAGES_NOTE),
    dependency_note=(
        "Packages that it needs and the project does not have yet stand in `package.json`, under "
        "`dependencies`; nothing else of it is taken."
    ),
    function_note="Export it: `module.exports = {{ {name} }}`.",
    crash_marker="\n    at ",
    install=("npm", "install"),
)
TYPESCRIPT_LAYOUT = replace(
    JAVASCRIPT_LAYOUT,
    module="solution.ts",
    entry=_entry_files("src/index.ts"),
    manifest=_typescript_manifest,
    build=(),
    start=("tsx", "{entry}"),
    manual_start=("npx", "tsx", "{entry}"),
    load_check=("tsx", "-e", "import('./{entry}').then((m) => process.exit(Object.keys(m).length ? 0 : 1))"),
    tests=("tsx", "--test", "test/{name}.test.ts"),
    manual_tests=(("npm", "test"),),
    test_file_command=("tsx", "--test", "{entry}"),
    test_file="test/{name}.test.ts",
    style=(
        "It is TypeScript that `tsx` runs: `import` and `export`. "
        + NODE_PACKAGES_NOTE
        + " `tsx` stays among its `devDependencies`."
    ),
    function_note="Export it: `export function {name}`.",
    needs_packages=True,
)


def _go_manifest(kind: ProjectKind, name: str) -> Mapping[str, str]:
    return {"go.mod": f"module {name}\n\ngo 1.18\n"}


GO_RESERVED_NAME = re.compile(
    # The keywords that Python does not have, and the one package name that the go command ignores.
    r"case|chan|const|default|defer|fallthrough|func|go|goto|interface|map|package|range|select|struct|switch|type|var"
    r"|documentation"
    # The go command builds `x_windows.go` only on Windows, and `x_test.go` only for tests.
    r"|.*_(test|aix|android|darwin|dragonfly|freebsd|hurd|illumos|ios|js|linux|nacl|netbsd|openbsd|plan9|solaris"
    r"|wasip1|windows|zos|386|amd64|amd64p32|arm|armbe|arm64|arm64be|loong64|mips|mipsle|mips64|mips64le|mips64p32"
    r"|mips64p32le|ppc|ppc64|ppc64le|riscv|riscv64|s390|s390x|sparc|sparc64|wasm)"
)
"""Matches names that a Go project cannot have, because its package and files get the same name."""
GO_LAYOUT = ProjectLayout(
    module="solution.go",
    entry=_entry_files("main.go", library="{name}.go"),
    manifest=_go_manifest,
    ignored=("/{name}", "*.test", "*.out", "*.db"),
    build=(("go", "build", "-o", "/tmp/built-{name}", "."),),
    start=("/tmp/built-{name}",),
    manual_start=("go", "run", "."),
    load_check=("go", "vet", "./..."),
    tests=("go", "test", "./..."),
    manual_tests=(("go", "test", "./..."),),
    test_file_command=("go", "test", "./..."),
    test_file="{name}_test.go",
    test_framework="Go's testing package, with a table of cases",
    style=(
        "The module is `{name}`: a program is `package main` in the root, a library `package {name}` there. "
        "Use the standard library where it will do; modules that are needed stand in `go.mod`, which is then "
        "written whole, each with its exact version, and none that is indirect."
    ),
    dependency_note=(
        "Modules that it needs and the project does not have yet stand in `go.mod`, each in a line `require "
        "MODULE VERSION`; nothing else of it is taken."
    ),
    function_note="It is `package solution`. Use the standard library alone.",
    crash_marker="\ngoroutine ",
    reserved_names=GO_RESERVED_NAME,
)
