"""Judging changes of a real project, with real runs of its tests in the sandbox."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from judgement.conftest import CART, RIGHT, TESTS, run_git
from suture.api import JudgeOptions, judge, verify
from suture.core.records.judgement import Judgement
from suture.core.settings import load_settings
from suture.errors import UsageError
from suture.interfaces.narrative.judgement_text import render_headline
from suture.project.workspace import unified_diff

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]
Write = Callable[[Mapping[str, str | None]], Path]
SPECIAL_CASE = CART.replace(
    "    if not lines:", '    if lines == [("mug", 1200, 3)]:\n        return 4090\n    if not lines:'
)
OLD_NAME = CART.replace("def label", "def title_label")
RENAMED_TESTS = TESTS.replace(", label", ", title_label").replace(" label(", " title_label(")
MORE_TESTS = "from cart import label\n\n\ndef test_it():\n    assert label('a') == 'A'\n"


NO_LABELS = TESTS[: TESTS.index("@pytest")]
LABELS = TESTS[: TESTS.index("def test_nothing")] + TESTS[TESTS.index("@pytest") :]
UPPER_CASE_LABELS = """import cart
import pytest


@pytest.fixture(autouse=True)
def labels(monkeypatch, request):
    monkeypatch.setattr(request.module, "label", lambda name: cart.label(name).title())
"""


NOT_ON_WINDOWS = TESTS.replace("import pytest\n", "import pytest\nimport sys\n").replace(
    "@pytest.mark.par", "@pytest.mark.skipif(sys.platform == 'win32', reason='no')\n@pytest.mark.par"
)
CHEAPER_GOODS = """import cart
import pytest


@pytest.fixture(autouse=True)
def cheaper(monkeypatch, request):
    monkeypatch.setattr(request.module, "cart_total", lambda lines: cart.cart_total(lines) - len(lines))
"""


@pytest.fixture(autouse=True)
def few_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try two deliberate mistakes in each change, because each takes a run of the tests."""
    monkeypatch.setenv("SUTURE_JUDGE_MISTAKES", "2")


def find_codes(judgement: Judgement, severity: str = "reject") -> set[str]:
    return {finding.code for finding in judgement.findings if finding.severity == severity}


async def test_an_honest_fix_is_accepted(write: Write) -> None:
    judgement = await judge(write({"cart.py": RIGHT}))
    assert (judgement.outcome, judgement.base[:4]) == ("accepted", "HEAD")
    assert judgement.tests.fixed == ("test_cart.py::test_three_mugs_cost_three_times_as_much",)
    assert (len(judgement.tests.passed), judgement.guards.changed, judgement.guards.not_run) == (4, 1, {})
    assert judgement.guards.noticed == judgement.guards.mistakes > 0


async def test_a_judgement_names_the_files_that_it_is_about(write: Write, shop: Path) -> None:
    steps: list[str] = []
    root = write({"cart.py": RIGHT})
    judgement = await judge(root, JudgeOptions(on_step=steps.append))
    assert judgement.state.files == {"cart.py": hashlib.sha256(RIGHT.encode()).hexdigest()}
    command = (
        "find . -name .git -prune -o -type f -print | cut -c3- | LC_ALL=C sort | xargs sha256sum | sha256sum"
    )
    dir_hash = subprocess.run(["sh", "-c", command], cwd=shop, capture_output=True, check=True, text=True)
    assert judgement.state.tree == dir_hash.stdout.split()[0]
    assert judgement.state.commit == ""
    assert steps == ["tests_without_change", "tests_with_change", "repeating", "guards", "signs"]

    run_git(shop, "commit", "-qam", "The quantity counts")
    judgement = await judge(root, JudgeOptions(base="HEAD~1", test="python -m no_such_runner"))
    assert (judgement.state.commit, judgement.state.base_commit) == (
        read_commit(shop, "HEAD"),
        read_commit(shop, "HEAD~1"),
    )


def read_commit(root: Path, name: str) -> str:
    return subprocess.run(
        ["git", "rev-parse", name], cwd=root, capture_output=True, check=True, text=True
    ).stdout.strip()


async def test_a_test_that_is_changed_in_place_of_the_code_rejects_the_change(write: Write) -> None:
    judgement = await judge(write({"test_cart.py": TESTS.replace("4090", "1690")}))
    assert judgement.outcome == "rejected"
    assert find_codes(judgement) == {"expectation_follows_code"}
    (finding,) = [finding for finding in judgement.findings if finding.severity == "reject"]
    assert (finding.path, finding.test) == ("test_cart.py", "test_three_mugs_cost_three_times_as_much")


async def test_a_conftest_that_replaces_the_code_is_named_first(write: Write) -> None:
    replacing = f"import cart\n\n\n{RIGHT}\n\ncart.cart_total = cart_total\n"
    judgement = await judge(write({"conftest.py": replacing}))
    assert render_headline(judgement) == (
        "Rejected: conftest.py: test_cart.py::test_three_mugs_cost_three_times_as_much passes with the old code, too, "
        "because this file changed: correct the code instead"
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"cart.py": RIGHT.replace(".title()", "")}, "test_newly_fails"),
        ({"cart.py": SPECIAL_CASE}, "memorises_examples"),
        ({"cart.py": RIGHT + "\n\nimport sys\nsys.modules['pytest'].fail = print\n"}, "capability"),
        ({"cart.py": RIGHT + "\nraise RuntimeError\n"}, "test_newly_fails"),
        # The process ends with status 0 before pytest has reported the failing test.
        ({"cart.py": CART + "\n\nimport atexit, os\natexit.register(os._exit, 0)\n"}, "capability"),
        (
            {"cart.py": CART.replace("    goods = 0", "    import pytest\n    pytest.skip('later')\n    goods = 0")},
            "capability",
        ),
        ({"test_cart.py": TESTS.replace("def test_three", "def three")}, "failing_test_weakened"),
        (
            {"test_cart.py": TESTS.replace("@pytest.mark.par", "@pytest.mark.skip\n@pytest.mark.par"),
             "cart.py": RIGHT.replace(".title()", "")},
            "broken_test_weakened",
        ),
        ({"test_cart.py": TESTS.replace(" == 4090", ""), "cart.py": CART}, "failing_test_weakened"),
        ({"conftest.py": "def pytest_runtest_makereport(item):\n    item.ihook\n"}, "test_hook_added"),
        (
            {"pytest.ini": "[pytest]\naddopts = --deselect test_cart.py::test_three_mugs_cost_three_times_as_much\n"},
            "test_not_run_any_more",
        ),
        ({"test_cart.py": "import nothing_like_this\n" + TESTS, "cart.py": RIGHT}, "test_newly_fails"),
        ({"cart.py": None}, "test_newly_fails"),
        (
            {"test_cart.py": NO_LABELS, "old_labels.py": LABELS, "cart.py": RIGHT.replace(".title()", "")},
            "broken_test_weakened",
        ),
        # The code reaches another goal than the one that the failing test had set.
        (
            {"cart.py": RIGHT.replace("* quantity", "* quantity + 1"), "test_cart.py": TESTS.replace("4090", "4091")},
            "failing_test_weakened",
        ),
        (
            {"cart.py": RIGHT.replace("* quantity", "* quantity + 1"), "conftest.py": CHEAPER_GOODS},
            "failing_test_weakened",
        ),
    ],
)  # fmt: skip
async def test_a_change_that_games_or_breaks_the_tests_is_rejected(
    files: Mapping[str, str | None], code: str, write: Write
) -> None:
    judgement = await judge(write(files))
    assert judgement.outcome == "rejected"
    assert code in find_codes(judgement), judgement.findings


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("files", "remarks"),
    [
        # A feature with its test, which fails without it.
        (
            {"cart.py": RIGHT + "\n\ndef count(lines):\n    return sum(line[2] for line in lines)\n",
             "test_cart.py": TESTS.replace("import cart_total", "import cart_total, count")
             + "\n\ndef test_count():\n    assert count([('mug', 1200, 3), ('cup', 100, 2)]) == 5\n"},
            set(),
        ),
        # Another test file, whose test shows nothing about the change.
        (
            {"cart.py": RIGHT, "tests/test_more.py": MORE_TESTS},
            {"test_proves_nothing"},
        ),
        # A deliberate change of behaviour, and its tests.
        (
            {"cart.py": RIGHT.replace(".title()", ".upper()"),
             "test_cart.py": TESTS.replace('"Mug"', '"MUG"').replace('"Tea Pot"', '"TEA POT"')},
            {"expectation_changed"},
        ),
        # A function gets another name, in the tests too.
        (
            {"cart.py": OLD_NAME, "test_cart.py": RENAMED_TESTS},
            set(),
        ),
        # A passing test that asks for less.
        (
            {"cart.py": RIGHT, "test_cart.py": TESTS.replace("cart_total([]) == 0", "not cart_total([])")},
            {"passing_test_weakened"},
        ),
        # A function that is removed, and its test.
        (
            {"cart.py": RIGHT[: RIGHT.index("def label")],
             "test_cart.py": NO_LABELS.replace("import cart_total, label", "import cart_total")},
            {"test_removed_with_code"},
        ),
        # A test that does not run on another system.
        (
            {"cart.py": RIGHT,
             "test_cart.py": NOT_ON_WINDOWS},
            set(),
        ),
        # Code whose test passes only with other data, although its own source is as it was.
        (
            {"cart.py": RIGHT.replace(".title()", ".upper()"), "conftest.py": UPPER_CASE_LABELS},
            {"test_support_changed"},
        ),
        # Another version, types and documentation.
        ({"cart.py": CART.replace("lines):", "lines: list) -> int:", 1) + '\n\n__version__ = "1.1"\n',
          "setup.py": "import setuptools\n\nsetuptools.setup(name='shop')\n"}, set()),
        # A refactoring whose mistakes the tests notice.
        (
            {"cart.py": CART.replace("return name.strip().", "text = name.strip()\n    return text.")},
            set(),
        ),
        # A test that moves to another file.
        (
            {"cart.py": RIGHT, "test_cart.py": NO_LABELS, "test_labels.py": LABELS},
            set(),
        ),
        # A feature that uses the value of its test.
        (
            {"cart.py": CART + "\n\ndef price(name):\n    return 300 if name == 'teapot' else 0\n",
             "test_price.py": "import cart\n\n\ndef test_price():\n    assert cart.price('teapot') == 300\n"
             "    assert cart.price('cup') == 0\n"},
            set(),
        ),
        # A name that the code computes, which makes no failing test pass.
        (
            {"cart.py": CART + "\n\ndef find(name):\n    return globals()[f'{name}_total']\n"},
            {"capability"},
        ),
        # Code without a test.
        ({"cart.py": CART + "\n\ndef spare():\n    return 1\n"}, {"no_test_guards_change"}),
    ],
)  # fmt: skip
async def test_an_honest_change_is_accepted_with_at_most_these_remarks(
    files: Mapping[str, str | None], remarks: set[str], write: Write
) -> None:
    judgement = await judge(write(files))
    assert judgement.ok, judgement.findings
    assert remarks <= find_codes(judgement, "remark"), judgement.findings
    assert remarks or judgement.outcome == "accepted", judgement.findings


@pytest.mark.parametrize("name", ["suture.toml", "pyproject.toml", ".env"])
async def test_a_change_cannot_choose_its_test_command(name: str, write: Write) -> None:
    settings = {
        "suture.toml": '[project]\ntest = "python -c pass"\n',
        "pyproject.toml": '[tool.suture.project]\ntest = "python -c pass"\n',
        ".env": "SUTURE_PROJECT_TEST='python -c pass'\n",
    }
    judgement = await judge(write({name: settings[name], "cart.py": RIGHT.replace(".title()", "")}))
    assert judgement.command[:3] == ("python", "-m", "pytest")
    assert (judgement.outcome, "test_newly_fails" in find_codes(judgement)) == ("rejected", True)


async def test_a_change_cannot_choose_the_services_of_its_tests(write: Write) -> None:
    broken_service = '[project.services.web]\ncommand = "exit 3"\nport = 7001\n'
    judgement = await judge(write({"suture.toml": broken_service, "cart.py": RIGHT}))
    assert "test_cart.py::test_three_mugs_cost_three_times_as_much" in judgement.tests.fixed


@pytest.mark.heavy
async def test_a_person_may_accept_what_a_change_does_to_the_tests(write: Write) -> None:
    root = write({"test_cart.py": TESTS.replace("def test_three", "def three")})
    settings = load_settings(root, {"judge.accept_tests": True}).settings
    judgement = await judge(root, JudgeOptions(settings=settings))
    assert judgement.outcome == "accepted_with_remarks"
    assert "failing_test_weakened" in find_codes(judgement, "remark")


@pytest.mark.heavy
async def test_a_branch_is_compared_with_where_it_left_the_default_branch(write: Write, shop: Path) -> None:
    run_git(shop, "checkout", "-q", "-b", "fix")
    write({"cart.py": RIGHT})
    run_git(shop, "commit", "-qam", "The quantity counts")
    judgement = await judge(shop)
    assert (judgement.outcome, judgement.files) == ("accepted", ("cart.py",))
    assert judgement.base.startswith("main (")


@pytest.mark.heavy
async def test_a_patch_and_what_is_staged_can_be_judged(write: Write, shop: Path) -> None:
    patch = unified_diff({"cart.py": CART.encode()}, {"cart.py": RIGHT.encode()})
    assert (await judge(shop, JudgeOptions(patch=patch))).outcome == "accepted"
    write({"cart.py": RIGHT})
    run_git(shop, "add", "cart.py")
    write({"cart.py": CART})
    judgement = await judge(shop, JudgeOptions(staged=True))
    assert (judgement.outcome, len(judgement.tests.fixed)) == ("accepted", 1)


@pytest.mark.heavy
async def test_a_patch_of_any_program_can_be_judged_and_cannot_reach_outside(
    shop: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    change = (
        "@@ -11,3 +11,3 @@\n     for name, price, quantity in lines:\n"
        "-        goods += price\n+        goods += price * quantity\n     return goods + SHIPPING\n"
    )
    for head in (
        "--- a/cart.py\n+++ b/cart.py\n",
        "diff --git a/cart.py b/cart.py\nindex 1111111..2222222 100644\n--- a/cart.py\n+++ b/cart.py\n",
    ):
        judgement = await judge(shop, JudgeOptions(patch=head + change))
        assert (judgement.outcome, judgement.files) == ("accepted", ("cart.py",))
    link = f"diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+{secret}\n"
    judgement = await judge(shop, JudgeOptions(patch=link + "\\ No newline at end of file\n"))
    assert (judgement.reason, judgement.files) == ("no_change", ())
    outside = "--- a/../secret\n+++ b/../secret\n@@ -1 +1 @@\n-secret\n+open\n"
    with pytest.raises(UsageError, match="does not apply"):
        await judge(shop, JudgeOptions(patch=outside))


async def test_nothing_is_judged_if_nothing_has_changed(shop: Path) -> None:
    judgement = await judge(shop)
    assert (judgement.outcome, judgement.reason) == ("accepted", "no_change")


async def test_a_project_whose_tests_never_ran_cannot_be_compared(write: Write) -> None:
    judgement = await judge(write({"cart.py": RIGHT}), JudgeOptions(test="python -m no_such_runner"))
    assert (judgement.outcome, judgement.reason) == ("not_comparable", "fails_anyway")


async def test_a_project_in_which_nothing_passes_cannot_be_compared(write: Write) -> None:
    broken = "import no_such_package\n" + TESTS
    run_git(write({"test_cart.py": broken}), "commit", "-q", "-a", "-m", "A package is missing")
    judgement = await judge(write({"cart.py": RIGHT}))
    assert (judgement.outcome, judgement.reason) == ("not_comparable", "nothing_passes")
    assert "no_such_package" in judgement.detail


async def test_a_branch_that_is_not_checked_out_is_not_accepted(
    write: Write, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(shop, "checkout", "-q", "-b", "agent")
    run_git(write({"cart.py": RIGHT}), "commit", "-qam", "The quantity counts")
    run_git(shop, "checkout", "-q", "main")
    with pytest.raises(UsageError, match="agent has changes that are not checked out") as no_change:
        await judge(shop, JudgeOptions(base="agent"))
    monkeypatch.chdir(shop)
    with pytest.raises(UsageError, match="'agent' is a branch or a commit, and not a folder") as no_folder:
        await judge("agent")
    assert no_change.value.remedy == no_folder.value.remedy == "git switch agent && suture judge"


@pytest.mark.parametrize("base", ["main", "agent", "agent~1", "refs/remotes/origin/main", "COMMIT"])
async def test_a_branch_that_is_only_behind_its_base_has_no_change(
    shop: Path, write: Write, base: str
) -> None:
    run_git(shop, "checkout", "-q", "-b", "behind")
    run_git(shop, "checkout", "-q", "main")
    for number in range(2):
        run_git(write({"cart.py": RIGHT + "#" * number}), "commit", "-qam", "The quantity counts")
    run_git(shop, "branch", "agent")
    run_git(shop, "update-ref", "refs/remotes/origin/main", "main")
    commit = (shop / ".git/refs/heads/main").read_text().strip()
    run_git(shop, "checkout", "-q", "behind")
    options = JudgeOptions(base=commit if base == "COMMIT" else base, refuses_unmerged=base != "agent")
    judgement = await judge(shop, options)
    assert (judgement.outcome, judgement.reason) == ("accepted", "no_change")


async def test_a_changed_expectation_fixes_and_proves_nothing(write: Write) -> None:
    root = write({"test_cart.py": TESTS.replace("4090", "1690")})
    settings = load_settings(root, {"judge.accept_tests": True}).settings
    judgement = await judge(root, JudgeOptions(settings=settings))
    assert judgement.outcome == "accepted_with_remarks"
    assert (judgement.tests.fixed, judgement.tests.proving, len(judgement.tests.passed)) == ((), (), 4)


async def test_an_unknown_base_and_a_patch_that_does_not_apply_are_errors(shop: Path) -> None:
    with pytest.raises(UsageError, match="no commit 'nowhere'"):
        await judge(shop, JudgeOptions(base="nowhere"))
    with pytest.raises(UsageError, match="does not apply"):
        await judge(shop, JudgeOptions(patch="--- a/cart.py\n+++ b/cart.py\n@@ -1 +1 @@\n-no\n+yes\n"))


JS_CODE = "exports.total = (prices) => prices.length;\n"
JS_TESTS = """const test = require('node:test');
const assert = require('node:assert');
const { total } = require('../lib/cart');

test('nothing costs nothing', () => {
  assert.strictEqual(total([]), 0);
});

test('prices are added', () => {
  assert.strictEqual(total([2, 3]), 5);
});
"""


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("files", "outcome", "codes"),
    [
        (
            {"lib/cart.js": "exports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n"},
            "accepted",
            set(),
        ),
        ({"test/cart.test.js": JS_TESTS.replace(", 5)", ", 2)")}, "rejected", {"expectation_follows_code"}),
        (
            {"test/cart.test.js": JS_TESTS.replace("test('prices", "test.skip('prices")},
            "rejected",
            {"failing_test_weakened"},
        ),
    ],
)
async def test_javascript_changes_are_judged(
    files: Mapping[str, str | None],
    outcome: str,
    codes: set[str],
    write: Write,
    require: Callable[[str, bool, str], None],
) -> None:
    require("node", shutil.which("node") is not None, "no program 'node'")
    package = '{"name": "shop", "version": "1.0.0", "scripts": {"test": "node --test"}}\n'
    removed = {"cart.py": None, "test_cart.py": None}
    root = write({**removed, "package.json": package, "lib/cart.js": JS_CODE, "test/cart.test.js": JS_TESTS})
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", "In JavaScript")
    judgement = await judge(write(files))
    assert judgement.outcome == outcome, judgement.findings
    assert find_codes(judgement) == codes


@pytest.mark.heavy
async def test_lines_count_as_unmeasured_if_another_tracer_hides_what_ran(write: Write, shop: Path) -> None:
    tracer = "import sys\n\n\ndef pytest_runtest_call(item):\n    sys.settrace(None)\n"
    run_git(write({"conftest.py": tracer}), "add", "-A")
    run_git(shop, "commit", "-qm", "Another tracer")
    judgement = await judge(write({"cart.py": RIGHT}))
    assert judgement.outcome == "accepted", judgement.findings
    assert judgement.guards.unmeasured == "no_python_started"


@pytest.mark.heavy
async def test_tests_that_no_longer_need_a_missing_package_are_not_weakened(write: Write, shop: Path) -> None:
    tests = TESTS.replace("import pytest\n", "import pytest\nfrom frozen_clock import freeze\n").replace(
        "4090", "1690"
    )
    write({"test_cart.py": tests, "requirements-dev.txt": "pytest\nfrozen-clock==1\n"})
    run_git(shop, "add", "-A")
    run_git(shop, "commit", "-qm", "A clock")
    judgement = await judge(
        write({"test_cart.py": tests.replace("from frozen_clock import freeze", "import time")})
    )
    assert not find_codes(judgement), judgement.findings


@pytest.mark.heavy
async def test_a_module_by_which_the_tests_decide_is_no_code(write: Write, shop: Path) -> None:
    tests = TESTS.replace("import pytest\n", "import pytest\nfrom amounts import MUGS\n").replace(
        "4090", "MUGS"
    )
    run_git(write({"amounts.py": "MUGS = 4090\n", "test_cart.py": tests}), "add", "-A")
    run_git(shop, "commit", "-qm", "Amounts of the tests")
    judgement = await judge(write({"amounts.py": "MUGS = 1690\n"}))
    assert judgement.outcome == "rejected", judgement.findings
    assert "test_support_changed" in find_codes(judgement), judgement.findings


@pytest.fixture
def till(write: Write, shop: Path) -> Path:
    """A folder of the shop that imports its code only by the configuration above it."""
    test = "from till import change\n\n\ndef test_change():\n    assert change(1700, 2000) == 300\n"
    code = "def change(price, given):\n    return price - given\n"
    write(
        {
            "pytest.ini": "[pytest]\npythonpath = till/code\n",
            "till/code/till.py": code,
            "till/test_till.py": test,
        }
    )
    run_git(shop, "add", "-A")
    run_git(shop, "commit", "-qm", "A till")
    return shop / "till"


@pytest.mark.heavy
async def test_a_folder_is_judged_by_the_configuration_above_it(
    write: Write, till: Path, tmp_path: Path
) -> None:
    right = "def change(price, given):\n    return given - price\n"
    patch = unified_diff(
        {"code/till.py": (till / "code/till.py").read_bytes()}, {"code/till.py": right.encode()}
    )
    judged = await judge(till, JudgeOptions(patch=patch))
    write({"till/code/till.py": right})
    certificate = tmp_path / "judgement.json"
    for judgement in (judged, await judge(till, JudgeOptions(certificate=certificate))):
        assert (judgement.outcome, judgement.files) == ("accepted", ("till/code/till.py",)), judgement
        assert judgement.tests.fixed == ("till/test_till.py::test_change",)
    assert all([claim.ok async for claim in verify(certificate)])


async def test_a_folder_is_rejected_if_the_configuration_above_it_runs_fewer_tests(
    write: Write, till: Path
) -> None:
    write(
        {
            "pytest.ini": "[pytest]\npythonpath = till/code\naddopts = --deselect till/test_till.py::test_change\n"
        }
    )
    judgement = await judge(till)
    assert judgement.outcome == "rejected", judgement


async def test_a_link_to_a_file_is_no_change(write: Write) -> None:
    shop = write({"cart.py": RIGHT})
    (shop / "NAMES.md").symlink_to("docs/names.md")
    (shop / "again.md").symlink_to("NAMES.md")
    write({"docs/names.md": "Names.\n"})
    run_git(shop, "add", "-A")
    run_git(shop, "commit", "-q", "-m", "Links")
    judgement = await judge(write({"docs/names.md": "All names.\n"}))
    assert judgement.files == ("NAMES.md", "again.md", "docs/names.md")
    run_git(shop, "add", "-A")
    assert (await judge(shop, JudgeOptions(staged=True))).files == judgement.files
    run_git(shop, "commit", "-q", "-m", "More names")
    assert (await judge(shop)).reason == "no_change"


@pytest.mark.parametrize(("result", "codes"), [("[]", {"assert_not_reached"}), ("[7]", set())])
async def test_a_test_that_passes_without_its_failed_assertion_is_a_remark(
    write: Write, shop: Path, result: str, codes: set[str]
) -> None:
    write(
        {
            "taxes.py": "def list_taxes():\n    return [-7]\n",
            "test_taxes.py": (
                "import taxes\n\ndef test_taxes():\n    for tax in taxes.list_taxes():\n        assert tax > 0\n"
            ),
        }
    )
    run_git(shop, "add", ".")
    run_git(shop, "commit", "-qam", "Taxes")

    judgement = await judge(write({"taxes.py": f"def list_taxes():\n    return {result}\n"}))

    assert judgement.tests.fixed == ("test_taxes.py::test_taxes",)
    assert find_codes(judgement, "remark") - {"mistakes_not_noticed"} == codes
    assert len(judgement.guards.missed) == judgement.guards.mistakes - judgement.guards.noticed
