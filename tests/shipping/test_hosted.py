"""The page of a Hugging Face Space and the notebook, run on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from requirements import Require
from suture.sandbox import Requirement

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, sys
from pathlib import Path
sys.path.insert(0, {spaces!r})
import app
from gradio_client import Client

settings = app.load_space_settings(Path({home!r}))
page = app.build(settings).queue(max_size=app.MAX_QUEUE)
_, address, _ = page.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
client = Client(address, verbose=False)
{visit}
page.close()
"""
HEAL_VISIT = """
text, diff = client.predict(app.BROKEN, app.TESTS, api_name="/heal")
assert "Healed" in text, text
assert "-    return ordered[len(ordered) // 2 - 1]" in diff, diff
assert "your tests do not decide" in text, text
assert "suture apply" not in text and " --" not in text, "a visitor has no command line: " + text
text, _ = client.predict(app.BROKEN, "x = 1", api_name="/heal")
assert "write a function `test_...`" in text, text
for refused in ("", "x" * (app.MAX_INPUT_CHARS + 1)):
    try:
        client.predict(refused, app.TESTS, api_name="/heal")
    except Exception as fault:
        assert "characters" in str(fault), fault
    else:
        raise SystemExit("the page accepted " + repr(refused[:9]))
limiter = app.RateLimiter()
assert not any(limiter.admit("a", float(now)) for now in range(app.MAX_RUNS_PER_HOUR))
assert "an hour" in limiter.admit("a", 100.0)
assert limiter.admit("b", 100.0) == ""
assert limiter.admit("a", 2 * app.HOUR_S) == ""
"""
REFUSED_VISIT = """
texts = [part["props"].get("value") for part in page.config["components"]]
assert any("Nothing can be run here" in str(text) for text in texts), texts
assert not page.config["dependencies"], "a page without a sandbox has a button"
"""

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def require_sandbox(require: Require, sandbox_requirement: Requirement) -> None:
    """Skip the test if there is no sandbox."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)


def run_visit(visit: str, tmp_path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(spaces=str(ROOT / "spaces"), home=str(tmp_path), visit=visit)
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "GRADIO_ANALYTICS_ENABLED": "False",
            "HF_HUB_OFFLINE": "1",
            **environ,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_visitor_heals_within_limits(tmp_path: Path) -> None:
    completed = run_visit(HEAL_VISIT, tmp_path)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_the_page_runs_nothing_without_a_sandbox(tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/nothing.sock"
    completed = run_visit(REFUSED_VISIT, tmp_path, SUTURE_SANDBOX_BACKEND="docker", DOCKER_HOST=nowhere)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_the_header_of_the_space_is_valid() -> None:
    _, header, _ = (ROOT / "spaces" / "README.md").read_text().split("---\n", 2)
    fields = yaml.safe_load(header)
    assert fields["sdk"] == "gradio"
    assert (ROOT / "spaces" / fields["app_file"]).is_file()
    assert len(fields["short_description"]) <= 60


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    path = ROOT / "notebooks" / "suture.ipynb"
    cells = json.loads(path.read_text())["cells"]

    assert not any(cell.get("outputs") for cell in cells), "commit the notebook without outputs"
    program = (
        "import nbformat, sys; from nbclient import NotebookClient; "
        "book = nbformat.read(sys.argv[1], 4); NotebookClient(book, timeout=250).execute(); "
        "print(nbformat.writes(book))"
    )
    environ = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    completed = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    assert "healed by nonce evidence" in completed.stdout
    assert "undone: averages.py" in completed.stdout
    assert " object at 0x" not in completed.stdout, "the output contains an object address"
