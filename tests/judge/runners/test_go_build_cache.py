"""Go's standard library is compiled once. Runs use it and add their imports, but cannot change it."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from requirements import CachingSandbox, Require
from suture.core.settings import SandboxSettings
from suture.judge.runners.go_build_cache import MOUNT_POINT, add_go_build_cache
from suture.judge.sandbox_programs import make_test_limits
from suture.project.languages import Interpreter, program_environment
from suture.sandbox import (
    BOX,
    Requirement,
    RunRequest,
    RunResult,
    discover_programs,
    mounts_for_interpreter,
)

SETTINGS = SandboxSettings()
POISON = """package own

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOwn(t *testing.T) {
	for _, root := range []string{os.Getenv("GOCACHE"), "/go-library"} {
		_ = filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() && !strings.HasSuffix(path, "trim.txt") {
				_ = os.WriteFile(path, []byte("poison"), 0o644)
				_ = os.Remove(path)
			}
			return nil
		})
	}
	if Own(1) != "1" {
		t.Fatal(Own(1))
	}
}
"""
FILES = {
    "go.mod": b"module example.org/own\n\ngo 1.16\n",
    "own.go": b'package own\n\nimport "fmt"\n\nfunc Own(n int) string { return fmt.Sprint(n) }\n',
    "own_test.go": POISON.encode(),
}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A sandbox, and Go without a compiled library."""

    sandbox: CachingSandbox
    programs: Interpreter

    async def add_cache(self, files: dict[str, bytes]) -> Interpreter:
        return await add_go_build_cache(self.programs, files, self.sandbox, SETTINGS)

    async def run(self, programs: Interpreter, *argv: str) -> RunResult:
        request = RunRequest(
            argv=argv,
            files=FILES,
            env=program_environment(programs, BOX),
            mounts=mounts_for_interpreter(programs),
            limits=make_test_limits(SETTINGS, 100, "go"),
        )
        return await self.sandbox.run(request)


@pytest.fixture
async def machine(bubblewrap: Requirement, require: Require, tmp_path: Path) -> AsyncIterator[Machine]:
    require("bubblewrap", bubblewrap.ok, bubblewrap.detail)
    require("go", shutil.which("go") is not None, "it is not on PATH")
    environ = {"VIRTUAL_ENV": sys.prefix, "PATH": os.environ["PATH"]}
    sandbox = CachingSandbox(tmp_path)
    yield Machine(sandbox=sandbox, programs=discover_programs(None, environ, "go"))
    await sandbox.close()


def hash_files(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


async def test_runs_use_the_cache_and_cannot_change_it(machine: Machine) -> None:
    """`go test -x` prints the programs that it starts: none for the standard library, however often it runs."""
    cached_programs = await machine.add_cache(FILES)
    assert cached_programs.toolchain is not None
    assert f"{MOUNT_POINT}/bin" in cached_programs.toolchain.folders

    (folder,) = (
        Path(here) for here, there in cached_programs.toolchain.shown.items() if there == MOUNT_POINT
    )
    before = hash_files(folder)
    assert sum(name.startswith("entries/") for name in before) > 20

    for _ in range(2):
        result = await machine.run(cached_programs, "go", "test", "-x", "./...")
        assert result.status == "ok", result.stderr[-2000:]
        started = [line for line in result.stderr.splitlines() if b"/compile " in line or b"/vet " in line]
        assert 0 < len(started) <= 3, result.stderr[-2000:]
        assert hash_files(folder) == before
    assert await machine.add_cache(FILES) == cached_programs
    assert hash_files(folder) == before

    extended_files = {**FILES, "more.go": b'package own\n\nimport _ "html"\nimport _ "no/such/package"\n'}
    assert await machine.add_cache(extended_files) == cached_programs

    extended = hash_files(folder)
    assert {name: extended[name] for name in before if name != "packages"}.items() <= before.items()
    assert len(extended) > len(before)
    assert {"html", "no/such/package"} <= {*(folder / "packages").read_text().split()}


async def test_a_sandbox_without_a_cache_runs_go_unchanged(machine: Machine) -> None:
    machine.sandbox.cache = None
    assert await machine.add_cache(FILES) is machine.programs
