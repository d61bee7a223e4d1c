"""A new project for Node: CommonJS or TypeScript, started by its entry file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suture.core.records import ProjectKind
from suture.project.languages.layouts.layout import ProjectLayout


def _package(kind: ProjectKind, name: str, entry: str, runner: str) -> dict[str, Any]:
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


def _manifest(kind: ProjectKind, name: str) -> Mapping[str, str]:
    return {"package.json": json.dumps(_package(kind, name, "src/index.js", "node"), indent=2) + "\n"}


def _typed_manifest(kind: ProjectKind, name: str) -> Mapping[str, str]:
    package = _package(kind, name, "src/index.ts", "tsx")
    package["scripts"]["test"] = "tsx --test test/*.test.ts"
    package["devDependencies"] = {"tsx": "^4"}
    options = {"target": "es2022", "module": "commonjs", "strict": True, "noEmit": True}
    return {
        "package.json": json.dumps(package, indent=2) + "\n",
        "tsconfig.json": json.dumps({"compilerOptions": options, "include": ["src"]}, indent=2) + "\n",
    }


PACKAGES = (
    "Use Node's own modules where they will do; a package that is needed stands in `package.json`, which is "
    "then written whole, with its version under `dependencies`."
)
MAIN = "src/index.js"
JAVASCRIPT_LAYOUT = ProjectLayout(
    module="solution.js",
    entry={"web_app": MAIN, "data_pipeline": MAIN, "cli_tool": MAIN, "library": MAIN},
    manifest=_manifest,
    ignored=("node_modules/", "*.log", ".env", "coverage/"),
    build=(("node", "--check", "{entry}"),),
    start=("node", "{entry}"),
    by_hand=("node", "{entry}"),
    load=("node", "-e", "process.exit(Object.keys(require('./{entry}')).length ? 0 : 1)"),
    tests=("node", "--test"),
    one_test=("node", "--test", "{entry}"),
    test_file="test/{name}.test.js",
    tester="node:test and node:assert",
    style=("It is CommonJS: `require` and `module.exports`. " + PACKAGES),
    adding=(
        "Packages that it needs and the project does not have yet stand in `package.json`, under "
        "`dependencies`; nothing else of it is taken."
    ),
    single="Export it: `module.exports = {{ {name} }}`.",
    crash="\n    at ",
)
TYPED = "src/index.ts"
TYPESCRIPT_LAYOUT = replace(
    JAVASCRIPT_LAYOUT,
    module="solution.ts",
    entry={"web_app": TYPED, "data_pipeline": TYPED, "cli_tool": TYPED, "library": TYPED},
    manifest=_typed_manifest,
    build=(),
    start=("tsx", "{entry}"),
    by_hand=("npx", "tsx", "{entry}"),
    load=("tsx", "-e", "import('./{entry}').then((m) => process.exit(Object.keys(m).length ? 0 : 1))"),
    tests=("tsx", "--test", "test/{name}.test.ts"),
    one_test=("tsx", "--test", "{entry}"),
    test_file="test/{name}.test.ts",
    style=(
        "It is TypeScript that `tsx` runs: `import` and `export`. "
        + PACKAGES
        + " `tsx` stays among its `devDependencies`."
    ),
    single="Export it: `export function {name}`.",
)
