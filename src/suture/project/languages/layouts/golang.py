"""A new project in Go: one module whose root is the program, or the library."""

from __future__ import annotations

from collections.abc import Mapping

from suture.core.records import ProjectKind
from suture.project.languages.layouts.layout import ProjectLayout


def _manifest(kind: ProjectKind, name: str) -> Mapping[str, str]:
    return {"go.mod": f"module {name}\n\ngo 1.18\n"}


MAIN = "main.go"
GO_LAYOUT = ProjectLayout(
    module="solution.go",
    entry={"web_app": MAIN, "data_pipeline": MAIN, "cli_tool": MAIN, "library": "{name}.go"},
    manifest=_manifest,
    ignored=("/{name}", "*.test", "*.out", "*.db"),
    build=(("go", "build", "-o", "/tmp/built-{name}", "."),),
    start=("/tmp/built-{name}",),
    by_hand=("go", "run", "."),
    load=("go", "vet", "./..."),
    tests=("go", "test", "./..."),
    one_test=("go", "test", "./..."),
    test_file="{name}_test.go",
    tester="Go's testing package, with a table of cases",
    style=(
        "The module is `{name}`: a program is `package main` in the root, a library `package {name}` there. "
        "Use the standard library where it will do; modules that are needed stand in `go.mod`, which is then "
        "written whole, each with its exact version, and none that is indirect."
    ),
    adding=(
        "Modules that it needs and the project does not have yet stand in `go.mod`, each in a line `require "
        "MODULE VERSION`; nothing else of it is taken."
    ),
    single="It is `package solution`. Use the standard library alone.",
    crash="\ngoroutine ",
)
