"""Projects that need packages, which the real pip and npm fetch after approval and the sandbox uses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from requirements import Require
from run_events import read_events
from scenario.test_whole_projects import list_passed_checks, write_project
from scenario.written_projects import reply
from suture.api import Review, ReviewAnswer, verify
from suture.core.ledger import find_run
from suture.core.ledger.kinds import PackagesInstalled
from suture.core.settings import PathSettings, SafetySettings, Settings
from suture.errors import PrerequisiteError
from suture.interfaces.narrative.review_text import render_review_question
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
MISTYPED_PACKAGE = reply(MAIN, ("requirements.txt", "text", "requets"))
MISSING_VERSION = reply(MAIN, ("requirements.txt", "text", "inflection==0.0.0.1"))
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
def cache_settings(settings: Settings, tmp_path: Path) -> Settings:
    """Settings with an empty package cache."""
    paths = PathSettings(home=tmp_path / "home", cache=tmp_path / "cache")
    return settings.model_copy(update={"paths": paths})


def list_installed_packages(settings: Settings, run: str) -> list[tuple[str, ...]]:
    events = read_events(settings.paths.home, run)
    return [event.payload.packages for event in events if isinstance(event.payload, PackagesInstalled)]


@pytest.mark.timeout(400)  # fetching packages is slow on a loaded machine
async def test_an_approved_python_package_is_fetched_locked_and_certified(
    cache_settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path, require: Require
) -> None:
    questions: list[str] = []
    asked: list[str] = []

    def answer(review: Review) -> ReviewAnswer:
        questions.extend(f"{fact.check_id} {fact.call}" for fact in review.facts)
        asked.append(render_review_question(review))
        is_near_name = any("near-name" in fact.check_id for fact in review.facts)
        return ReviewAnswer(choice="redirect", hint="no") if is_near_name else ReviewAnswer(choice="approve")

    target = tmp_path / "camel"
    replies = [MISTYPED_PACKAGE, MISSING_VERSION, CAMEL]

    try:
        result, model = await write_project(
            CAMEL_TASK, replies, cache_settings, sandbox, project="cli_tool", into=target, on_review=answer
        )
    except PrerequisiteError as fault:
        require("package-index", False, fault.message)

    assert result.outcome == "healed", result.reason
    assert "as the task shows: camel device_type (1)" in list_passed_checks(result)
    assert questions[0] == "safety: dependency.near-name python: requets"
    assert asked[-1].endswith("packages that are not on the allow list (python: inflection)?")
    prompt = model.calls[2].messages[-1].content
    assert "inflection==0.0.0.1" in prompt
    assert "://" not in prompt
    ((name,),) = list_installed_packages(cache_settings, result.run_id)
    assert name.startswith("inflection==0.5")
    lock = (target / "requirements.lock").read_text()
    assert lock.startswith(f"{name} --hash=sha256:")
    assert (target / "requirements.txt").read_text().strip() == "inflection>=0.5"
    assert "python -m pip install -r requirements.txt" in (target / "README.md").read_text()
    # The delivered lock file installs the packages that were judged.
    install = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", "requirements.lock"]
    cached = next((tmp_path / "cache" / "packages").iterdir())
    subprocess.run(
        [*install, "--target", str(tmp_path / "site")], cwd=target, check=True, capture_output=True
    )
    assert (tmp_path / "site" / "inflection").is_dir() == (cached / "site" / "inflection").is_dir()
    # Verification uses the cached packages and fetches none.
    certificate = find_run(cache_settings.paths.home, result.run_id).path / "certificate.json"
    findings = [finding async for finding in verify(certificate, settings=cache_settings, sandbox=sandbox)]
    assert all(finding.ok for finding in findings), findings
    shutil.rmtree(cached)
    with pytest.raises(PrerequisiteError, match="must not be fetched"):
        _ = [finding async for finding in verify(certificate, settings=cache_settings, sandbox=sandbox)]


@pytest.mark.timeout(400)  # npm is slow on a loaded machine
async def test_an_allowed_npm_package_is_fetched_and_locked(
    cache_settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    allowlist = tmp_path / "own.toml"
    allowlist.write_text('[javascript]\nms = ">=2.1"\ntsx = ""\n')
    safety = SafetySettings(approve_deps="allowlist", allowed_deps=allowlist)
    allowlist_settings = cache_settings.model_copy(update={"safety": safety})
    target = tmp_path / "millis"
    unlisted = MILLIS.replace('"ms"', '"mss"')

    try:
        result, model = await write_project(
            MILLIS_TASK,
            [unlisted, MILLIS, MILLIS_TESTS],
            allowlist_settings,
            sandbox,
            project="cli_tool",
            language="typescript",
            into=target,
        )
    except PrerequisiteError as fault:
        require("package-index", False, fault.message)

    assert result.outcome == "healed", result.reason
    assert "as the task shows: millis 2 days (1)" in list_passed_checks(result)
    assert "rule dependency" in model.calls[1].messages[-1].content
    locked = json.loads((target / "package-lock.json").read_text())["packages"]
    assert locked["node_modules/ms"]["integrity"].startswith("sha512-")
    assert not any("resolved" in package for package in locked.values())
    assert (target / "test" / "millis.test.ts").exists()


async def test_an_unreachable_index_ends_the_run_with_a_remedy(
    cache_settings: Settings, sandbox: BubblewrapSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    safety = SafetySettings(off=("dependency.*",))
    unchecked = cache_settings.model_copy(update={"safety": safety})

    with pytest.raises(PrerequisiteError, match="cannot reach its index") as caught:
        await write_project(CAMEL_TASK, [CAMEL], unchecked, sandbox, project="cli_tool")
    assert "--approve-deps never" in caught.value.remedy
    assert "127.0.0.1" not in caught.value.message
