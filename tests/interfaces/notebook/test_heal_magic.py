"""Cells as projects, and `%%heal` in a real kernel that nbclient drives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from interfaces.web.real_server import make_environ, write_scripted_model
from suture.errors import UsageError
from suture.interfaces.notebook.cell_project import CODE_FILE, EARLIER_FILE, TESTS_FILE, make_cell_project

BROKEN_CELL = """\
def total(prices):
    return sum(prices) + START + 1

assert total([1, 2]) == (
    3
)
assert total([]) == START"""
CORRECT_CELL = BROKEN_CELL.replace(" + 1", "")


def test_a_cell_is_split_into_code_tests_and_values_of_earlier_cells() -> None:
    def twice(n: int) -> int:
        return 2 * n

    source = "import math\n\ndef area(r):\n    return twice(math.pi) * r ** TWO\n\nassert area(0) == 0; \n"

    project = make_cell_project(source, {"twice": len, "TWO": 2, "unused": object(), "area": twice})

    assert project.files[EARLIER_FILE] == "TWO = 2\n\nfrom builtins import len as twice\n"
    assert project.files[CODE_FILE].startswith("from earlier_cells import TWO, twice\nimport math\n")
    assert "\nassert" not in project.files[CODE_FILE]
    assert project.files[TESTS_FILE] == (
        "from cell import area\n\n\ndef test_line_6():\n    assert area(0) == 0; \n"
    )
    assert project.restore_cell(project.files[CODE_FILE]) == source.rstrip("\n")
    assert (
        project.restore_cell("def area(r):\n    return 0\n")
        == "def area(r):\n    return 0\nassert area(0) == 0; "
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("!ls\nassert True", "is not plain Python"),
        ("def f(:\n", "is not plain Python at line 1 below %%heal: invalid syntax .fix that first"),
        ("x = 1", "no assert"),
        ("x = 1; assert x", "more than an assert"),
        ("assert thing", "'thing' comes from another cell"),
    ],
)
def test_a_cell_that_cannot_be_tested_is_refused(source: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_cell_project(source, {"thing": object()})


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the environment of a kernel, and return the kernel's folder."""
    for name, value in make_environ(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    return tmp_path


async def run_cells(folder: Path, *sources: str, fails: bool = False) -> list[Any]:
    """Run the cells in a real kernel and return them with their outputs."""
    nbformat_v4: Any = nbformat.v4  # the module has no types
    notebook = nbformat_v4.new_notebook(cells=[nbformat_v4.new_code_cell(source) for source in sources])
    client = NotebookClient(
        notebook,
        timeout=250,
        kernel_name="python3",
        allow_errors=fails,
        resources={"metadata": {"path": str(folder)}},
    )
    await client.async_execute()
    return list(notebook.cells)


def cell_html(cell: Any) -> str:
    """Return the HTML output of a cell."""
    return "".join(output["data"].get("text/html", "") for output in cell.outputs if "data" in output)


@pytest.mark.heavy
@pytest.mark.usefixtures("sandbox")
@pytest.mark.timeout(300)
async def test_a_cell_is_healed_in_a_real_kernel(kernel: Path) -> None:
    inspection = (
        "import json, pathlib\n"
        "from suture.judge.certificates import certificate\n"
        "last = sorted(pathlib.Path('home/runs').iterdir())[0]\n"
        "certificate.parse_certificate((last / 'certificate.json').read_bytes())"
    )
    cells = await run_cells(
        kernel,
        "%load_ext suture",
        "START = 0",
        f"%%heal --model none\n{BROKEN_CELL}",
        inspection,
        f"%%heal --model none\n{CORRECT_CELL}",
        "print(total([20, 22]))",
    )
    output_text = cell_html(cells[2])
    assert "<strong>healed</strong>" in output_text
    assert "-    return sum(prices) + START + 1" in output_text

    payload = "".join(str(output.get("text", "")) for output in cells[2].outputs)
    assert "Your code: 2 of 2 fail" in payload
    assert "<strong>certificate</strong>" in cell_html(cells[3])
    assert "test_line_4" in cell_html(cells[3])
    assert cells[5].outputs[0]["text"] == "42\n"  # a cell whose asserts hold runs and defines its names


@pytest.mark.heavy
@pytest.mark.usefixtures("sandbox")
@pytest.mark.timeout(300)
async def test_markup_in_model_code_is_shown_as_text(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUTURE_REPAIR_ENABLED", "false")  # otherwise a small edit might heal the cell
    reply = "```python\ndef shout(s):\n    return s.upper() + '<img src=x onerror=alert(1)>'\n```"
    model = write_scripted_model(kernel, reply)
    cell = "def shout(s):\n    return None\n\nassert shout('a').startswith('A')"
    cells = await run_cells(kernel, "%load_ext suture", f"%%heal --model {model}\n{cell}")

    output_text = cell_html(cells[1])

    assert "&lt;img src=x onerror=alert(1)&gt;" in output_text
    assert "<img" not in output_text


@pytest.mark.usefixtures("sandbox")
@pytest.mark.timeout(300)
async def test_bad_input_is_reported_without_a_traceback(kernel: Path) -> None:
    cells = await run_cells(
        kernel,
        "%load_ext suture",
        "%%heal --model none\nx = 1",
        "%%heal --colour red\nassert True",
        "%%heal --model 'none\nassert True",
        fails=True,
    )
    for cell, message in zip(
        cells[1:], ("no assert", "unrecognized arguments", "No closing quotation"), strict=True
    ):
        output_text = "".join(str(output.get("text", "")) for output in cell.outputs)
        assert message in output_text, cell.outputs
        assert "Traceback" not in output_text
