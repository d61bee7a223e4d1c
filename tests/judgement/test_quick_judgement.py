"""Judgements that run only what they need: recorded results of a base, and the tests that a change can affect."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgement.conftest import CART, RIGHT, TESTS, run_git
from suture.api.judging import JudgeOptions, judge
from suture.core.records.judgement import JudgedScope, Judgement
from suture.core.settings import Settings, load_settings
from suture.errors import UsageError
from suture.interfaces.ci.judgement_reports import render_markdown
from suture.interfaces.cli.app import app
from suture.interfaces.narrative.judgement_text import render_judgement
from suture.sandbox import Sandbox

pytestmark = pytest.mark.timeout(300)
Write = Callable[[Mapping[str, str | None]], Path]
FIXED = "test_cart.py::test_three_mugs_cost_three_times_as_much"
WRONG = RIGHT.replace("return goods + SHIPPING", "return goods")


class CountingSandbox:
    """A sandbox that counts the runs of pytest in it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.runs: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def run(self, request: Any) -> Any:
        if "pytest" in request.argv:
            self.runs.append(json.loads(request.stdin or b"{}"))
        return await self._sandbox.run(request)


@pytest.fixture
def settings(shop: Path, tmp_path: Path) -> Settings:
    """Settings whose cache belongs to one test."""
    settings = load_settings(shop).settings
    return settings.model_copy(
        update={
            "paths": settings.paths.model_copy(update={"cache": tmp_path / "cache"}),
            "judge": settings.judge.model_copy(update={"reuse_base": True}),
        }
    )


@pytest.fixture
def counting(sandbox: Sandbox) -> Any:
    """The sandbox, which counts."""
    return CountingSandbox(sandbox)


async def judge_quickly(root: Path, settings: Settings, sandbox: Any) -> Judgement:
    return await judge(root, JudgeOptions(settings=settings, sandbox=sandbox, quick=True))


@pytest.mark.asyncio
async def test_a_quick_judgement_runs_the_tests_that_ran_the_changed_function_and_says_so(
    write: Write, settings: Settings, counting: Any
) -> None:
    judgement = await judge_quickly(write({"cart.py": RIGHT}), settings, counting)
    assert (judgement.outcome, judgement.tests.fixed) == ("accepted", (FIXED,))
    assert (judgement.scope.kind, judgement.scope.ran, judgement.scope.total) == ("quick", 2, 4)
    assert (judgement.guards.changed, judgement.guards.not_run, judgement.guards.mistakes) == (1, {}, 0)
    assert render_judgement(judgement).startswith("Accepted (quick judgement, 2 of 4 tests ran).")
    assert render_markdown(judgement).startswith(
        "<!-- suture-judge -->\n**Accepted (quick judgement, 2 of 4 tests ran)**"
    )


@pytest.mark.asyncio
@pytest.mark.heavy
async def test_the_base_runs_once_for_two_judgements_and_again_when_a_file_of_it_differs(
    write: Write, shop: Path, settings: Settings, counting: Any
) -> None:
    first = await judge_quickly(write({"cart.py": RIGHT}), settings, counting)
    all_runs = len(counting.runs)
    counting.runs.clear()
    again = await judge_quickly(shop, settings, counting)
    assert (again.tests, again.outcome) == (first.tests, first.outcome)
    assert all(run["only"] for run in counting.runs)  # no run of all tests
    assert len(counting.runs) < all_runs
    counting.runs.clear()
    run_git(shop, "stash", "-q")
    write({"data.txt": "new"})
    run_git(shop, "add", "-A")
    run_git(shop, "commit", "-qm", "Data")
    await judge_quickly(write({"cart.py": RIGHT}), settings, counting)
    assert any(not run["only"] for run in counting.runs)


@pytest.mark.asyncio
@pytest.mark.heavy
async def test_a_recorded_result_that_no_longer_holds_rejects_nothing(
    write: Write, shop: Path, settings: Settings, sandbox: Sandbox, tmp_path: Path
) -> None:
    root = write({"cart.py": RIGHT})
    await judge_quickly(root, settings, sandbox)
    folder = settings.paths.cache / "judge"
    stale = {path.name.partition("-")[2]: path.read_bytes() for path in folder.iterdir()}
    shutil.rmtree(folder)
    run_git(shop, "stash", "-q")
    broken = TESTS.replace("cart_total([]) == 0", "cart_total([]) == 1")
    write({"test_cart.py": broken})
    run_git(shop, "commit", "-qam", "A test that fails now, as one does that depends on the date")
    write({"cart.py": RIGHT})
    expected = await judge_quickly(shop, settings, sandbox)
    for path in folder.iterdir():
        name = path.name.partition("-")[2]
        path.unlink() if name not in stale else path.write_bytes(stale[name])
    judgement = await judge_quickly(shop, settings, sandbox)
    assert judgement.tests == expected.tests
    assert "test_cart.py::test_nothing_costs_nothing" in judgement.tests.still_failing


@pytest.mark.asyncio
@pytest.mark.heavy
async def test_tests_that_need_others_before_them_are_not_rejected_for_running_without(
    write: Write, settings: Settings, sandbox: Sandbox
) -> None:
    ordered = (
        "import cart\n\n\ndef test_first():\n    cart.SEEN = True\n\n\n"
        "def test_second():\n    assert cart.cart_total([]) == 0\n    assert cart.SEEN\n"
    )
    root = write({"test_order.py": ordered})
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", "Ordered")
    judgement = await judge_quickly(write({"cart.py": RIGHT}), settings, sandbox)
    assert (judgement.scope.ran, judgement.scope.total) == (3, 6)
    assert (judgement.ok, judgement.tests.newly_failing) == (True, ())
    assert judgement.tests.flaky == ("test_order.py::test_second",)


@pytest.mark.asyncio
@pytest.mark.heavy
async def test_a_function_that_makes_the_cases_of_a_test_affects_all_that_imports_it(
    write: Write, settings: Settings, sandbox: Sandbox
) -> None:
    cases = (
        "import pytest\nfrom names import all_names\n\n\n"
        '@pytest.mark.parametrize("name", all_names())\ndef test_a_name_is_short(name):\n    assert len(name) < 4\n'
    )
    names = "def all_names():\n    return ['mug']\n"
    root = write({"names.py": names, "test_names.py": cases})
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", "Names")
    judgement = await judge_quickly(write({"names.py": names.replace("]", ", 'teapot']")}), settings, sandbox)
    assert judgement.tests.newly_failing == ("test_names.py::test_a_name_is_short[teapot]",)
    assert judgement.scope == JudgedScope(kind="quick", ran=2, total=6)


@pytest.mark.asyncio
@pytest.mark.heavy
async def test_changed_tests_run_and_the_others_of_an_untouched_function_do_not(
    write: Write, settings: Settings, sandbox: Sandbox
) -> None:
    other = "from cart import label\n\n\ndef test_it():\n    assert label('a') == 'A'\n"
    root = write({"test_label.py": other, "test_total.py": TESTS, "test_cart.py": None})
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", "Two files")
    changed = other.replace("'a'", "'b'").replace("'A'", "'B'")
    judgement = await judge_quickly(write({"test_label.py": changed}), settings, sandbox)
    assert judgement.tests.unproving == ("test_label.py::test_it",)
    assert (judgement.scope.ran, judgement.scope.total) == (1, 5)


@pytest.mark.asyncio
@pytest.mark.heavy
@pytest.mark.parametrize(
    ("files", "ran"),
    [
        ({"README.md": "A shop."}, 0),
        ({"cart.py": CART.replace("SHIPPING = 490", "SHIPPING = 480 + 10")}, 4),
        ({"conftest.py": "X = 1\n"}, 4),
        ({"cart.py": "import json\n" + CART}, 0),
        ({"pytest.ini": "[pytest]\naddopts = --strict-markers\n"}, 4),
    ],
    ids=["a document", "a constant", "a conftest.py", "a new import", "configuration"],
)
async def test_what_a_change_can_affect_follows_from_where_it_is(
    write: Write, settings: Settings, sandbox: Sandbox, files: Mapping[str, str], ran: int
) -> None:
    judgement = await judge_quickly(write(files), settings, sandbox)
    assert (judgement.scope.kind, judgement.scope.ran, judgement.scope.total) == ("quick", ran, 4)
    assert judgement.ok


@pytest.mark.asyncio
@pytest.mark.heavy
@pytest.mark.parametrize("policy", ["reject", "remark"])
async def test_a_failing_affected_test_ends_a_complete_judgement_if_it_decides(
    write: Write, settings: Settings, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    judging = importlib.import_module("suture.loop.judgement.judge_change")
    for name, value in (("MIN_STOPPABLE_S", 0), ("MIN_STOPPABLE_TESTS", 4), ("MAX_FIRST_SHARE", 0.5)):
        monkeypatch.setattr(judging, name, value)
    if policy == "remark":
        judge_settings = settings.judge.model_copy(update={"remarks": ("test_newly_fails",)})
        settings = settings.model_copy(update={"judge": judge_settings})
    root = write({"cart.py": CART.replace("if not lines", "if lines")})
    judgement = await judge(root, JudgeOptions(settings=settings, sandbox=sandbox))
    assert judgement.tests.newly_failing == ("test_cart.py::test_nothing_costs_nothing",)
    if policy == "reject":
        assert judgement.scope == JudgedScope(kind="verdict_certain", ran=2, total=4)
        assert "2 of 4 ran, which suffices to reject the change: " in render_judgement(judgement)
    else:
        assert judgement.scope == JudgedScope(kind="all", ran=4, total=4)


@pytest.mark.heavy
def test_the_command_line_says_how_many_tests_ran_and_ends_by_the_verdict(write: Write) -> None:
    root = write({"cart.py": WRONG, "test_cart.py": TESTS})
    run_git(root, "commit", "-qam", "Without the shipping")
    write({"cart.py": RIGHT.replace("if not lines", "if lines")})
    result = CliRunner().invoke(app, ["judge", str(root), "--quick", "--json"])
    values = json.loads(result.stdout)
    assert (result.exit_code, values["ok"]) == (1, False)
    assert values["scope"] == {"kind": "quick", "ran": 2, "total": 4}
    assert values["headline"].startswith("Rejected (quick judgement, 2 of 4 tests ran): ")


@pytest.mark.asyncio
async def test_python_cannot_ask_for_a_certificate_of_a_quick_judgement(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="quick judgement gets no certificate"):
        await judge(shop, JudgeOptions(quick=True, certificate=tmp_path / "certificate.json"))
