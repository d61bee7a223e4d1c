"""The sandbox shows a project's installed packages. A missing package is an environment fault."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from requirements import Require
from suture.core.records import Candidate
from suture.core.settings import SandboxSettings
from suture.errors import PrerequisiteError
from suture.judge import Suite, check_candidate, prepare_suite, triage_failures
from suture.loop.intake.heal_task import build_heal_task
from suture.sandbox import BubblewrapSandbox, discover_programs, discover_toolchain

UNCHANGED = Candidate(files={}, origin="user")
TEST = "import test from 'node:test';\nimport twice from './twice.js';\nimport { two } from 'dep';\n" + (
    "test('two', () => { if (twice(1) !== two) throw new Error('wrong'); });\n"
)


def write_node_project(root: Path) -> Path:
    for name, text in {
        "package.json": '{"scripts": {"test": "tool && node --test"}, "dependencies": {"dep": "1"}}',
        "twice.js": "const { two } = require('dep');\nmodule.exports = (x) => x * two;\n",
        "twice.test.mjs": TEST,
        "node_modules/dep/package.json": '{"name": "dep", "version": "1.0.0", "main": "index.js"}',
        "node_modules/dep/index.js": "exports.two = 2;\n",
        "node_modules/dep/cli.js": "#!/usr/bin/env node\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "node_modules/dep/cli.js").chmod(0o755)
    (root / "node_modules/.bin").mkdir()
    (root / "node_modules/.bin/tool").symlink_to("../dep/cli.js")
    return root


async def make_suite(root: Path, sandbox: BubblewrapSandbox, test: str | None = None) -> Suite:
    task, snapshot = build_heal_task(root, test=test)
    assert not any(name.startswith("node_modules") for name in snapshot.files)
    programs = discover_programs(root, os.environ, task.language)
    return await prepare_suite(task, sandbox, SandboxSettings(), programs)


async def test_installed_packages_and_programs_are_available(
    sandbox: BubblewrapSandbox, require: Require, tmp_path: Path
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    suite = await make_suite(write_node_project(tmp_path), sandbox)
    verdict = await check_candidate(UNCHANGED, suite)
    assert verdict.all_passed, verdict.output


async def test_a_missing_package_is_an_environment_fault(
    sandbox: BubblewrapSandbox, require: Require, tmp_path: Path
) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    shutil.rmtree(write_node_project(tmp_path) / "node_modules")
    suite = await make_suite(tmp_path, sandbox, "node --test")
    triage = await triage_failures(suite, await check_candidate(UNCHANGED, suite))
    assert (triage.cause, "npm install" in triage.reason) == ("environment", True), triage


def write_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_missing_language_is_a_prerequisite_error(tmp_path: Path) -> None:
    write_program(tmp_path / "bin" / "go")  # a program inside the project is never trusted
    for path in ("", str(tmp_path / "none"), "bin", str(tmp_path / "bin")):
        with pytest.raises(PrerequisiteError, match="'go', which is not on PATH") as caught:
            discover_toolchain(tmp_path, {"PATH": path}, "go")
        assert caught.value.remedy
    assert discover_toolchain(tmp_path, {"PATH": ""}, "python") is None


def test_only_a_plain_installation_is_accepted_and_partly_shown(tmp_path: Path) -> None:
    home = tmp_path / "home" / "node-20"
    environ = {"PATH": str(write_program(home / "bin" / "node").parent)}

    with pytest.raises(PrerequisiteError, match="is not a plain installation"):
        discover_toolchain(None, environ, "javascript")
    (home / "lib" / "node_modules").mkdir(parents=True)
    toolchain = discover_toolchain(None, environ, "javascript")
    assert toolchain is not None
    assert sorted(toolchain.shown) == [str(home / "bin"), str(home / "lib" / "node_modules")]
    assert toolchain.folders == (str(home / "bin"),)


def test_a_link_to_node_modules_is_not_followed(tmp_path: Path, require: Require) -> None:
    require("node", shutil.which("node") is not None, "it is not on PATH")
    (tmp_path / "secret").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "node_modules").symlink_to(tmp_path / "secret")
    toolchain = discover_toolchain(tmp_path / "project", os.environ, "javascript")

    assert toolchain is not None
    assert str(tmp_path / "secret") not in str(toolchain.shown)
    assert "/node_modules" not in toolchain.shown.values()
