"""A new feature of a project needs a package, which is approved, fetched, used, recorded and undone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from requirements import Require
from sandbox.packages.local_index import Index, build_wheel, publish_npm_package, publish_wheel
from sandbox.packages.test_go_modules import proxy
from scenario.test_whole_projects import write_project
from scenario.written_projects import reply
from suture.api import Review, ReviewAnswer, apply, undo, verify
from suture.core.ledger import find_run, read_ledger
from suture.core.ledger.kinds import PackagesInstalled
from suture.core.records import Result
from suture.core.settings import (
    BudgetSettings,
    CertificationSettings,
    PathSettings,
    RepairSettings,
    SafetySettings,
    Settings,
)
from suture.errors import UsageError
from suture.sandbox import BubblewrapSandbox

pytestmark = pytest.mark.heavy

__all__ = ["proxy"]
PYPROJECT = """# The shop's own.
[project]
name = "shop"
dependencies = [
    "pytest",  # to test it
]

[tool.pytest.ini_options]
addopts = "-q"
"""
OLD_TEST = "from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
NEW_TEST = "from cart import sign\n\n\ndef test_sign():\n    assert sign('sale') == 'SALE!'\n"
CART = "def total(prices):\n    return sum(prices)\n"
CART_WITH_SIGN = """import shouting


def total(prices):
    return sum(prices)


def sign(text):
    return shouting.shout(text)
"""
REWRITTEN_PYPROJECT = """[tool.pytest.ini_options]
addopts = "--collect-only"

[project]
name = "x"
dependencies = ["shouting>=1"]
"""
SHOP = {"pyproject.toml": PYPROJECT, "cart.py": CART, "tests/test_cart.py": OLD_TEST}
TASK = "Let sign shout a text, with the package shouting."


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a run with enough attempts for two replies, without repairs, and with few mutants."""
    return Settings(
        paths=PathSettings(home=tmp_path / "home", cache=tmp_path / "cache"),
        repair=RepairSettings(enabled=False),
        budget=BudgetSettings(attempts=8, seconds=400),
        certification=CertificationSettings(mutants=4, seconds=300),
    )


def publish_shouting(index: Index) -> None:
    """Publish the Python package that the new feature needs."""
    code = "def shout(text):\n    return text.upper() + '!'\n"
    publish_wheel(index, "shouting", build_wheel("shouting", code=code))


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a folder and return the folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def read_files(folder: Path) -> dict[str, str]:
    """Return the text of each file of a project, without installed packages and caches."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not {"node_modules", "__pycache__", ".pytest_cache"} & set(path.parts)
    }


def list_installed_packages(settings: Settings, result: Result) -> list[tuple[str, ...]]:
    """Return the sets of packages that the ledger of a run records as installed."""
    events = read_ledger(find_run(settings.paths.home, result.run_id).ledger_path).events
    return [event.payload.packages for event in events if isinstance(event.payload, PackagesInstalled)]


async def apply_feature(
    task: str, text: str, settings: Settings, sandbox: BubblewrapSandbox, shop: Path, test: Path
) -> Result:
    """Let a reply add a feature to a project, approve its package, and apply the result."""
    result, _ = await write_project(
        task,
        [text],
        settings,
        sandbox,
        existing=shop,
        test=test,
        apply=True,
        on_review=lambda _: ReviewAnswer(choice="approve"),
    )
    assert result.outcome == "healed", result.reason
    return result


async def require_verified(settings: Settings, sandbox: BubblewrapSandbox, result: Result) -> None:
    """Verify the certificate of a run."""
    certificate = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    claims = [claim async for claim in verify(certificate, settings=settings, sandbox=sandbox)]
    assert [claim for claim in claims if not claim.ok] == []


@pytest.mark.timeout(400)
async def test_a_python_feature_adds_a_package(
    index: Index, settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    publish_shouting(index)
    before = {**SHOP, "requirements.lock": ""}
    shop = write_files(tmp_path / "shop", before)
    test = write_files(tmp_path, {"test_sign.py": NEW_TEST}) / "test_sign.py"
    reviewed_facts: list[str] = []

    def answer(review: Review) -> ReviewAnswer:
        reviewed_facts.extend(f"{fact.check_id} {fact.call}" for fact in review.facts)
        return ReviewAnswer(choice="approve")

    unavailable_version = reply(
        ("cart.py", "python", CART_WITH_SIGN), ("requirements.txt", "text", "shouting==9.9")
    )
    correct_reply = reply(
        ("cart.py", "python", CART_WITH_SIGN), ("pyproject.toml", "toml", REWRITTEN_PYPROJECT)
    )
    result, model = await write_project(
        TASK,
        [unavailable_version, correct_reply],
        settings,
        sandbox,
        existing=shop,
        test=test,
        apply=True,
        on_review=answer,
    )

    assert result.outcome == "healed", result.reason
    assert set(reviewed_facts) == {"safety: dependency.unlisted python: shouting"}

    second_prompt = model.calls[1].messages[-1].content
    assert "shouting==9.9" in second_prompt
    assert "://" not in second_prompt
    assert list_installed_packages(settings, result) == [("shouting==1.0",)]

    after = read_files(shop)

    assert after["cart.py"].strip() == CART_WITH_SIGN.strip()
    assert after["pyproject.toml"] == PYPROJECT.replace("it\n", 'it\n    "shouting>=1",\n'), (
        "nothing else may change"
    )
    assert after["requirements.lock"].startswith("shouting==1.0 --hash=sha256:")
    assert after["tests/test_cart.py"] == OLD_TEST
    assert "requirements.txt" not in after
    assert any("install them" in warning for warning in result.warnings), result.warnings

    await require_verified(settings, sandbox, result)
    undo(result.run_id, settings=settings)
    assert read_files(shop) == before


@pytest.mark.timeout(400)
async def test_the_lock_of_uv_is_delivered_with_the_feature(
    index: Index,
    settings: Settings,
    sandbox: BubblewrapSandbox,
    tmp_path: Path,
    require: Require,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple/")
    require("uv", shutil.which("uv") is not None, "it is not on PATH")
    publish_shouting(index)
    pyproject = '[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = []\n'
    before = {"pyproject.toml": pyproject, "cart.py": CART, "tests/test_cart.py": OLD_TEST}
    shop = write_files(tmp_path / "shop", before)
    subprocess.run(["uv", "lock", "--quiet"], cwd=shop, check=True)
    old_lock = (shop / "uv.lock").read_text()
    test = write_files(tmp_path, {"test_sign.py": NEW_TEST}) / "test_sign.py"
    correct_reply = reply(("cart.py", "python", CART_WITH_SIGN), ("requirements.txt", "text", "shouting>=1"))
    result = await apply_feature(TASK, correct_reply, settings, sandbox, shop, test)
    assert not any("update uv.lock" in warning for warning in result.warnings), result.warnings
    assert 'name = "shouting"\nversion = "1.0"' in (shop / "uv.lock").read_text()
    subprocess.run(["uv", "lock", "--check", "--quiet"], cwd=shop, check=True)

    await require_verified(settings, sandbox, result)
    undo(result.run_id, settings=settings)
    assert (shop / "uv.lock").read_text() == old_lock


@pytest.mark.timeout(400)
async def test_an_allowed_package_needs_no_approval_and_is_applied_later(
    index: Index, settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    publish_shouting(index)
    shop = write_files(tmp_path / "shop", SHOP)
    test = write_files(tmp_path, {"test_sign.py": NEW_TEST}) / "test_sign.py"
    allow_list = write_files(tmp_path, {"allowed.toml": '[python]\nshouting = "<2"\n'}) / "allowed.toml"
    allowlist_settings = settings.model_copy(
        update={"safety": SafetySettings(approve_deps="allowlist", allowed_deps=allow_list)}
    )
    reply_with_package = reply(
        ("cart.py", "python", CART_WITH_SIGN), ("requirements.txt", "text", "shouting")
    )
    result, _ = await write_project(
        TASK, [reply_with_package], allowlist_settings, sandbox, existing=shop, test=test
    )

    assert result.outcome == "healed", result.reason
    assert read_files(shop) == SHOP

    await apply(result.run_id, into=tmp_path / "copy", settings=allowlist_settings)
    extended_pyproject = PYPROJECT.replace("it\n", 'it\n    "shouting",\n')

    assert read_files(tmp_path / "copy") == {
        **SHOP,
        **read_files(tmp_path / "copy"),
        "pyproject.toml": extended_pyproject,
    }

    undo(result.run_id, settings=allowlist_settings)
    assert not (tmp_path / "copy").exists()

    await apply(result.run_id, settings=allowlist_settings)
    assert (shop / "pyproject.toml").read_text() == extended_pyproject
    with pytest.raises(UsageError, match="would be overwritten"):
        await write_project(TASK, [reply_with_package], allowlist_settings, sandbox, existing=shop, into=shop)


async def test_a_package_outside_the_allow_list_is_not_fetched(
    index: Index, settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    publish_shouting(index)
    shop = write_files(tmp_path / "shop", SHOP)
    reply_with_package = reply(
        ("cart.py", "python", CART_WITH_SIGN), ("requirements.txt", "text", "shouting")
    )
    allowlist_settings = settings.model_copy(update={"safety": SafetySettings(approve_deps="allowlist")})

    result, model = await write_project(
        TASK, [reply_with_package, reply_with_package], allowlist_settings, sandbox, existing=shop, apply=True
    )

    assert result.outcome != "healed"
    assert "rule dependency" in model.calls[1].messages[-1].content
    assert index.requested_paths == []
    assert read_files(shop) == SHOP


PACKAGE_JSON = """{
    "name": "shop",
    "scripts": {
        "test": "node --test"
    },
    "dependencies": {
        "old": "^1.0.0"
    }
}
"""
JS_TEST = """const test = require("node:test");
const assert = require("node:assert");
const { total } = require("../cart");
test("total", () => assert.strictEqual(total([1, 2]), 3));
"""
JS_NEW_TEST = """const test = require("node:test");
const assert = require("node:assert");
const { sign } = require("../cart");
test("sign", () => assert.strictEqual(sign("sale"), "SALE!"));
"""
JS_CART = """const old = require("old");
module.exports = { total: (prices) => prices.reduce((sum, one) => sum + one, old) };
"""
JS_CART_WITH_SIGN = """const old = require("old");
const shout = require("shouting");
module.exports = { total: (prices) => prices.reduce((sum, one) => sum + one, old), sign: shout };
"""


@pytest.mark.timeout(500)  # npm on a loaded machine
async def test_a_node_feature_adds_a_package_and_updates_the_lock(
    index: Index, settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    publish_npm_package(index, "old", "module.exports = 0;\n")
    publish_npm_package(index, "shouting", "module.exports = (text) => text.toUpperCase() + '!';\n")
    dist = json.loads(index.pages["/npm/old"])["versions"]["1.0.0"]["dist"]
    packages = {
        "": {"name": "shop", "dependencies": {"old": "^1.0.0"}},
        "node_modules/old": {"version": "1.0.0", "resolved": dist["tarball"], "integrity": dist["integrity"]},
    }
    lock = {"name": "shop", "lockfileVersion": 3, "requires": True, "packages": packages}
    before = {
        "package.json": PACKAGE_JSON,
        "package-lock.json": json.dumps(lock, indent=2) + "\n",
        "cart.js": JS_CART,
        "test/cart.test.js": JS_TEST,
    }
    shop = write_files(tmp_path / "shop", before)
    write_files(
        shop,
        {
            "node_modules/old/package.json": '{"name": "old"}',
            "node_modules/old/index.js": "module.exports = 0;",
        },
    )
    test = write_files(tmp_path, {"sign.test.js": JS_NEW_TEST}) / "sign.test.js"
    rewritten_package_json = '{"scripts": {"test": "true"}, "dependencies": {"shouting": "^1.0.0"}}'
    correct_reply = reply(
        ("cart.js", "javascript", JS_CART_WITH_SIGN), ("package.json", "json", rewritten_package_json)
    )
    result = await apply_feature(TASK, correct_reply, settings, sandbox, shop, test)
    assert list_installed_packages(settings, result) == [("shouting@1.0.0",)]

    after = read_files(shop)
    assert after["package.json"] == PACKAGE_JSON.replace(
        '"^1.0.0"', '"^1.0.0",\n        "shouting": "^1.0.0"'
    )

    locked_packages = json.loads(after["package-lock.json"])["packages"]
    assert locked_packages["node_modules/old"] == packages["node_modules/old"]
    assert locked_packages["node_modules/shouting"]["integrity"].startswith("sha512-")

    await require_verified(settings, sandbox, result)
    undo(result.run_id, settings=settings)
    assert read_files(shop) == before


GO_MOD = "module shop // ours\n\ngo 1.18\n"
GO_TEST = """package shop

import "testing"

func TestTotal(t *testing.T) {
	if Total(1, 2) != 3 {
		t.Fatal()
	}
}
"""
GO_NEW_TEST = """package shop

import "testing"

func TestSign(t *testing.T) {
	if Sign() != "a word" {
		t.Fatal(Sign())
	}
}
"""
GO_CART = "package shop\n\nfunc Total(a, b int) int { return a + b }\n"
GO_CART_WITH_SIGN = """package shop

import "example.org/alpha"

func Total(a, b int) int { return a + b }

func Sign() string { return alpha.Word() }
"""


@pytest.mark.timeout(500)  # several builds by go on a loaded machine
async def test_a_go_feature_adds_a_module(
    proxy: Index, settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    before = {"go.mod": GO_MOD, "cart.go": GO_CART, "cart_test.go": GO_TEST}
    shop = write_files(tmp_path / "shop", before)
    test = write_files(tmp_path, {"sign_test.go": GO_NEW_TEST}) / "sign_test.go"
    correct_reply = reply(
        ("cart.go", "go", GO_CART_WITH_SIGN),
        ("go.mod", "text", "module evil\n\nrequire example.org/alpha v1.0.0\n"),
    )
    result = await apply_feature(
        "Let Sign say the word of example.org/alpha.", correct_reply, settings, sandbox, shop, test
    )

    after = read_files(shop)
    assert after["go.mod"].startswith(GO_MOD)
    assert "require example.org/alpha v1.0.0\n" in after["go.mod"]
    assert "example.org/beta v1.1.0 // indirect" in after["go.mod"]
    assert "example.org/beta v1.1.0 h1:" in after["go.sum"]

    await require_verified(settings, sandbox, result)
    undo(result.run_id, settings=settings)
    assert read_files(shop) == before
