"""New files that tests would import in place of the standard library, a plugin, a dependency or the project's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import pytest

from judge.conftest import PYTEST, PYTHON, Prepare
from judge.runners.signed import sign_event
from suture.core.records import Candidate, Task
from suture.core.settings import SandboxSettings
from suture.judge import Suite, check_candidate, find_protected_files, prepare_suite
from suture.judge.runners.pytest_report import read_report
from suture.sandbox import Sandbox

pytestmark = pytest.mark.timeout(180)
CODE = "def total(numbers):\n    return len(numbers)\n"
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
OUTSIDE = ("decimal", "anyio", "pytest_timeout", "yaml", "google/protobuf", "_pytest")
"""A module of the standard library, plugins of pytest, dependencies, one of them in a namespace, and pytest."""
ADD_FOLDER = (
    "import sys\nfrom pathlib import Path\n"
    "sys.path.insert(0, str(Path(__file__).parent / 'support' / 'code'))\n"
)
LAYOUTS: Mapping[str, tuple[Mapping[str, str], tuple[str, ...], tuple[str, ...]]] = {
    "a folder that conftest.py adds": (
        {"conftest.py": ADD_FOLDER, "support/code/shop.py": CODE, "checks/test_shop.py": TEST},
        ("", "support/code/", "checks/"),
        ("shop.py", "checks/shop.py", "src/shop.py", "support/code/shop/__init__.py"),
    ),
    "a configured folder": (
        {"pytest.ini": "[pytest]\npythonpath = lib\n", "lib/shop.py": CODE, "checks/test_shop.py": TEST},
        ("", "lib/", "checks/"),
        ("shop/__init__.py", "lib/shop/__init__.py"),
    ),
    "an editable source folder": (
        {"src/shop/__init__.py": CODE, "src/shop/prices.py": CODE, "checks/test_shop.py": TEST},
        ("", "src/", "checks/"),
        ("shop.py", "checks/shop/__init__.py", "src/shop/prices/__init__.py"),
    ),
}
"""Layout -> the project's files, the folders on its search path, and files that would replace its own modules."""
HONEST = ("fresh.py", "src/fresh.py", "checks/fresh/__init__.py", "docs/decimal.py", "google/own/more.py")


async def prepare_layout(name: str, sandbox: Sandbox, settings: SandboxSettings) -> Suite:
    files = {path: text.encode() for path, text in LAYOUTS[name][0].items()}
    task = Task(statement="", kind="heal", files=files, test_command=tuple(PYTEST.split()))
    return await prepare_suite(task, sandbox, settings, replace(PYTHON, source_roots=("src",)))


@pytest.mark.parametrize(
    "layout", [pytest.param(name, marks=[pytest.mark.heavy] * bool(n)) for n, name in enumerate(LAYOUTS)]
)
async def test_no_new_file_takes_a_name_on_the_search_path(
    layout: str, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_layout(layout, sandbox, sandbox_settings)
    _, folders, own = LAYOUTS[layout]
    names = [f"{name}{ending}" for name in OUTSIDE for ending in (".py", "/__init__.py")]
    new = {*own, *(f"{folder}{name}" for folder, name in product(folders, names))}

    assert set(find_protected_files(dict.fromkeys((*new, *HONEST), ""), suite)) == new


@pytest.mark.heavy
@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_verdict_leaves_out_a_file_that_would_run_in_place_of_a_module(
    layout: str, sandbox: Sandbox, sandbox_settings: SandboxSettings
) -> None:
    suite = await prepare_layout(layout, sandbox, sandbox_settings)
    forged = "import builtins\nbuiltins.len = sum\n"
    for folder, name in product(LAYOUTS[layout][1], ("anyio.py", "decimal.py")):
        candidate = Candidate(files={f"{folder}{name}": forged}, origin="sample")
        verdict = await check_candidate(candidate, suite)
        assert not verdict.all_passed
        assert [note.subjects for note in verdict.notes if note.code == "protected_file"] == [
            (f"{folder}{name}",)
        ]


async def test_a_requested_module_may_have_any_free_place_in_a_package(prepare: Prepare) -> None:
    suite = await prepare(
        {"pkg/__init__.py": "", "pkg/calc.py": CODE, "test_calc.py": "def test_it(): pass\n"}
    )
    new = ("pkg/json.py", "pkg/decimal/__init__.py", "other/json.py", "more.py")
    assert find_protected_files(dict.fromkeys(new, ""), suite) == ()
    requested = replace(suite, task=replace(suite.task, kind="write", module="queue.py"))
    assert find_protected_files({"queue.py": ""}, requested) == ()
    assert find_protected_files({"queue.py": ""}, suite) == ("queue.py",)


async def test_tests_that_leave_the_process_in_a_removed_folder_are_reported(prepare: Prepare) -> None:
    leave = "import os, sys\n\ndef test_it(tmp_path):\n    sys.path += ['', 1, '\\0']\n    sys.modules['odd'] = 1\n"
    test = f"{leave}    os.chdir(tmp_path)\n    os.rmdir(tmp_path)\n"
    suite = await prepare({"calc.py": CODE, "test_calc.py": test})
    assert (await check_candidate(Candidate(files={}, origin="sample"), suite)).all_passed


@pytest.mark.parametrize(
    ("imports", "is_sound"),
    [
        ({"search_path": [".", "src"], "loaded": [["shop", "src/shop.py"], ["yaml", ""]]}, True),
        ({"search_path": "src", "loaded": []}, False),
        ({"search_path": [1], "loaded": []}, False),
        ({"search_path": [], "loaded": [["shop"]]}, False),
        ({"search_path": [], "loaded": {"shop": "src/shop.py"}}, False),
    ],
)
def test_a_report_with_another_form_of_the_search_path_ends_there(
    imports: Mapping[str, object], is_sound: bool
) -> None:
    key = b"k" * 32
    events = sign_event(key, 0, event="items", ids=["a"], **imports) + sign_event(key, 1, event="end", exit=0)
    report = read_report(events, key)
    assert (report.exit_code == 0) == is_sound
    assert report.search_path == (frozenset((".", "src")) if is_sound else frozenset())
