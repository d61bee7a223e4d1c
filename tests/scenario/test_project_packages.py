"""Projects that need packages: approved, fetched by the real pip and npm, locked, and used in the sandbox."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from requirements import Require
from scenario.test_whole_projects import facts, make
from scenario.written_projects import reply
from suture.api import Review, ReviewAnswer, verify
from suture.core.ledger import find_run, read_ledger
from suture.core.ledger.kinds import PackagesInstalled
from suture.core.settings import PathSettings, SafetySettings, Settings
from suture.errors import PrerequisiteError
from suture.sandbox import BubblewrapSandbox

pytestmark = pytest.mark.heavy

CAMEL_TASK = """A CLI that writes words in camel case.

    $ camel device_type
    DeviceType
"""
CAMEL_MAIN = """
import sys

import inflection


def main():
    if sys.argv[1:] in ([], ["--help"]):
        print("usage: camel WORD")
    else:
        print(inflection.camelize(sys.argv[1]))


if __name__ == "__main__":
    main()
"""
MAIN = ("camel/__main__.py", "python", CAMEL_MAIN)
MISTYPED = reply(MAIN, ("requirements.txt", "text", "requets"))
NOWHERE = reply(MAIN, ("requirements.txt", "text", "inflection==0.0.0.1"))
CAMEL = reply(MAIN, ("requirements.txt", "text", "inflection>=0.5"))
MILLIS_TASK = """A TypeScript CLI that turns spans of time into milliseconds.

    $ millis "2 days"
    172800000
"""
MILLIS_MAIN = """
import ms from "ms";
import { usage } from "./usage";

const span: string | undefined = process.argv[2];
if (span === undefined || span === "--help") {
  console.log(usage());
} else {
  console.log(ms(span as ms.StringValue));
}
"""
MILLIS_PACKAGE = {
    "name": "millis",
    "private": True,
    "scripts": {"start": "tsx src/index.ts"},
    "dependencies": {"ms": "^2.1.3"},
    "devDependencies": {"tsx": "^4"},
}
MILLIS = reply(
    ("src/index.ts", "typescript", MILLIS_MAIN),
    ("src/usage.ts", "typescript", "export function usage(): string {\n  return 'usage: millis SPAN';\n}"),
    ("package.json", "json", json.dumps(MILLIS_PACKAGE)),
)
MILLIS_TESTS = """```typescript
import test from "node:test";
import assert from "node:assert";
import { usage } from "../src/usage";

test("it says how", () => assert.match(usage(), /millis/));
```
"""


@pytest.fixture
def caching(settings: Settings, tmp_path: Path) -> Settings:
    """Settings with a cache of the test's own: nothing was fetched before."""
    paths = PathSettings(home=tmp_path / "home", cache=tmp_path / "cache")
    return settings.model_copy(update={"paths": paths})


def installed_in(settings: Settings, run: str) -> list[tuple[str, ...]]:
    events = read_ledger(find_run(settings.paths.home, run).ledger_path).events
    return [one.payload.packages for one in events if isinstance(one.payload, PackagesInstalled)]


@pytest.mark.timeout(400)  # a fetch by a loaded machine
async def test_a_cli_that_needs_a_package(
    caching: Settings, sandbox: BubblewrapSandbox, tmp_path: Path, require: Require
) -> None:
    asked: list[str] = []

    def answer(review: Review) -> ReviewAnswer:
        asked.extend(f"{fact.check_id} {fact.call}" for fact in review.facts)
        near = any("near-name" in fact.check_id for fact in review.facts)
        return ReviewAnswer(choice="redirect", hint="no") if near else ReviewAnswer(choice="approve")

    into = tmp_path / "camel"
    replies = [MISTYPED, NOWHERE, CAMEL]
    try:
        result, model = await make(
            CAMEL_TASK, replies, caching, sandbox, project="cli_tool", into=into, on_review=answer
        )
    except PrerequisiteError as fault:
        require("package-index", False, fault.message)
    assert result.outcome == "healed", result.reason
    assert "as the task shows: camel device_type (1)" in facts(result)
    assert asked[0] == "safety: dependency.near-name python: requets"
    prompt = model.calls[2].messages[-1].content
    assert "inflection==0.0.0.1" in prompt
    assert "://" not in prompt
    ((name,),) = installed_in(caching, result.run_id)
    assert name.startswith("inflection==0.5")
    lock = (into / "requirements.lock").read_text()
    assert lock.startswith(f"{name} --hash=sha256:")
    assert (into / "requirements.txt").read_text().strip() == "inflection>=0.5"
    # What is handed over can be installed as it was judged.
    again = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", "requirements.lock"]
    kept = next((tmp_path / "cache" / "packages").iterdir())
    subprocess.run([*again, "--target", str(tmp_path / "site")], cwd=into, check=True, capture_output=True)
    assert (tmp_path / "site" / "inflection").is_dir() == (kept / "site" / "inflection").is_dir()
    # Its certificate is replayed with the packages that are kept, and fetches none.
    certificate = find_run(caching.paths.home, result.run_id).path / "certificate.json"
    found = [one async for one in verify(certificate, settings=caching, sandbox=sandbox)]
    assert all(one.ok for one in found), found
    shutil.rmtree(kept)
    with pytest.raises(PrerequisiteError, match="must not be fetched"):
        _ = [one async for one in verify(certificate, settings=caching, sandbox=sandbox)]


@pytest.mark.timeout(400)  # npm on a loaded machine
async def test_a_typescript_cli_with_a_package_of_npm(
    caching: Settings, sandbox: BubblewrapSandbox, tmp_path: Path, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    own = tmp_path / "own.toml"
    own.write_text('[javascript]\nms = ">=2.1"\ntsx = ""\n')
    safety = SafetySettings(approve_deps="allowlist", allowed_deps=own)
    chosen = caching.model_copy(update={"safety": safety})
    into = tmp_path / "millis"
    unlisted = MILLIS.replace('"ms"', '"mss"')
    try:
        result, model = await make(
            MILLIS_TASK,
            [unlisted, MILLIS, MILLIS_TESTS],
            chosen,
            sandbox,
            project="cli_tool",
            language="typescript",
            into=into,
        )
    except PrerequisiteError as fault:
        require("package-index", False, fault.message)
    assert result.outcome == "healed", result.reason
    assert "as the task shows: millis 2 days (1)" in facts(result)
    assert "rule dependency" in model.calls[1].messages[-1].content
    locked = json.loads((into / "package-lock.json").read_text())["packages"]
    assert locked["node_modules/ms"]["integrity"].startswith("sha512-")
    assert not any("resolved" in one for one in locked.values())
    assert (into / "test" / "millis.test.ts").exists()


async def test_an_index_out_of_reach_ends_the_run_with_a_remedy(
    caching: Settings, sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    safety = SafetySettings(off=("dependency.*",))
    chosen = caching.model_copy(update={"safety": safety})
    with pytest.raises(PrerequisiteError, match="cannot reach its index") as raised:
        await make(CAMEL_TASK, [CAMEL], chosen, sandbox, project="cli_tool")
    assert "--approve-deps never" in raised.value.remedy
    assert "127.0.0.1" not in raised.value.message
