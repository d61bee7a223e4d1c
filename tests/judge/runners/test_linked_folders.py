"""Links to folders of the project exist when its tests run."""

from __future__ import annotations

from pathlib import Path

from prepared_suites import prepare_python_suite
from project_files import write_files
from suture.core.records import Candidate
from suture.judge import check_candidate
from suture.judge.trials.baseline import run_baseline
from suture.project.workspace import is_protected
from suture.sandbox import Sandbox

WRONG = "def area(a, b):\n    return a + b\n"


def make_project(folder: Path) -> Path:
    (folder / "src").symlink_to("real/inner")
    return write_files(
        folder,
        {
            "real/inner/shape.py": WRONG,
            "pytest.ini": "[pytest]\npythonpath = src\n",
            "tests/test_shape.py": "from shape import area\n\ndef test_area():\n    assert area(3, 4) == 12\n",
        },
    )


async def test_code_behind_a_link_is_judged_by_its_own_path(tmp_path: Path, sandbox: Sandbox) -> None:
    suite, command = await prepare_python_suite(make_project(tmp_path), sandbox)
    base = await check_candidate(Candidate(files={}, origin="user"), suite)
    (fact,) = base.counterexamples
    assert (fact.expected, fact.actual) == ("12", "7")

    right = Candidate(files={"real/inner/shape.py": WRONG.replace("+", "*")}, origin="sample")
    assert (await check_candidate(right, suite)).all_passed
    assert is_protected("src/shape.py", suite.task.protected)

    spectrum = await run_baseline(command, ["real/inner/shape.py"], base.failed, 60)
    (failing,) = spectrum.failing
    assert 2 in failing.lines["real/inner/shape.py"]
