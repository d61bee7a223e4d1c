"""TypeScript that tsx runs: the search heals a project, and a model writes a function."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from project_files import write_files
from repos.runner_trials import install_package
from requirements import Require
from suture.api import HealOptions, WriteOptions, heal, solve
from suture.core.settings import BudgetSettings, ModelSettings, PathSettings, Settings
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

PACKAGE = '{"name": "ranges", "type": "module", "scripts": {"test": "tsx --test test/*.test.ts"}}'
CODE = """\
export interface Range { from: number; to: number }

export function merge(ranges: Range[]): Range[] {
  const sorted = [...ranges].sort((a, b) => a.from - b.from);
  const out: Range[] = [];
  for (const range of sorted) {
    const last = out[out.length - 1];
    if (last && range.from > last.to) {
      last.to = Math.max(last.to, range.to);
    } else {
      out.push({ ...range });
    }
  }
  return out;
}
"""
TESTS = """\
import test from "node:test";
import assert from "node:assert/strict";
import { merge, type Range } from "../src/ranges.ts";

const merged = (...pairs: [number, number][]) => merge(pairs.map(([from, to]): Range => ({ from, to })));

test("what overlaps", () => assert.deepEqual(merged([1, 3], [2, 6]), [{ from: 1, to: 6 }]));
test("what touches", () => assert.deepEqual(merged([1, 2], [2, 3]), [{ from: 1, to: 3 }]));
test("what is apart", () => assert.equal(merged([5, 6], [1, 2]).length, 2));
test("nothing", () => assert.deepEqual(merge([]), []));
"""


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Path:
    """A project with tsx, which npm installs without running package scripts."""
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    project = tmp_path_factory.mktemp("ranges")
    write_files(project, {"package.json": PACKAGE, "src/ranges.ts": CODE, "test/ranges.test.ts": TESTS})
    require("tsx", install_package(project, "tsx@4", timeout_s=100), "npm could not fetch it")
    return project


@pytest.mark.heavy
@pytest.mark.timeout(400)
async def test_the_search_heals_a_typescript_project(
    ranges: Path, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    settings = Settings(
        paths=PathSettings(home=tmp_path / "home"),
        model=ModelSettings(name="none"),
        budget=BudgetSettings(seconds=250),
    )

    result = await heal(ranges, HealOptions(settings=settings, sandbox=sandbox, apply=True))

    assert (result.outcome, result.evidence) == ("healed", "nonce"), result.reason
    assert result.spend.tokens == 0
    assert "range.from > last.to" not in (ranges / "src/ranges.ts").read_text()
    assert (ranges / "test/ranges.test.ts").read_text() == TESTS


async def test_a_typescript_function_is_written(
    ranges: Path, sandbox: BubblewrapSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ranges)  # tsx is installed there
    code = "export function tag<T extends { id: number }>(x: T): string {\n  return `#${x.id}`;\n}"

    result = await solve(
        'function tag<T extends { id: number }>(x: T): string\ntag({ id: 7 }) === "#7"',
        WriteOptions(
            language="typescript",
            settings=Settings(paths=PathSettings(home=tmp_path / "home"), budget=BudgetSettings(seconds=250)),
            model=ScriptedModel([f"```typescript\n{code}\n```"]),
            sandbox=sandbox,
        ),
    )

    assert (result.outcome, result.evidence) == ("healed", "split"), result.reason
