"""What runs on other people's machines: a Space's page, and a notebook; here on this one, for real."""

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
VISIT = """
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
HEAL = """
said, diff = client.predict(app.BROKEN, app.TESTS, api_name="/heal")
assert "Healed" in said, said
assert "-    return ordered[len(ordered) // 2 - 1]" in diff, diff
assert "other changes pass them too" in said, said
assert "suture apply" not in said and " --" not in said, "a visitor has no command line: " + said
said, _ = client.predict(app.BROKEN, "x = 1", api_name="/heal")
assert "write a function `test_...`" in said, said
for refused in ("", "x" * (app.MAX_INPUT_CHARS + 1)):
    try:
        client.predict(refused, app.TESTS, api_name="/heal")
    except Exception as fault:
        assert "characters" in str(fault), fault
    else:
        raise SystemExit("it took " + repr(refused[:9]))
limiter = app.RateLimiter()
assert not any(limiter.admit("a", float(now)) for now in range(app.MAX_RUNS_PER_HOUR))
assert "an hour" in limiter.admit("a", 100.0)
assert limiter.admit("b", 100.0) == ""
assert limiter.admit("a", 2 * app.HOUR_S) == ""
"""
REFUSED = """
texts = [part["props"].get("value") for part in page.config["components"]]
assert any("Nothing can be run here" in str(text) for text in texts), texts
assert not page.config["dependencies"], "a page without a wall has something to press"
"""

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def walled(require: Require, sandbox_requirement: Requirement) -> None:
    """Skip where there is no sandbox."""
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)


def visited(visit: str, tmp_path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    program = VISIT.format(spaces=str(ROOT / "spaces"), home=str(tmp_path), visit=visit)
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
    done = visited(HEAL, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_a_wall_the_page_says_so_and_runs_nothing(tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/nothing.sock"
    done = visited(REFUSED, tmp_path, SUTURE_SANDBOX_BACKEND="docker", DOCKER_HOST=nowhere)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_header_is_one_that_a_space_reads() -> None:
    _, header, _ = (ROOT / "spaces" / "README.md").read_text().split("---\n", 2)
    told = yaml.safe_load(header)
    assert told["sdk"] == "gradio"
    assert (ROOT / "spaces" / told["app_file"]).is_file()
    assert len(told["short_description"]) <= 60


def test_the_notebook_runs_top_to_bottom(tmp_path: Path) -> None:
    path = ROOT / "notebooks" / "suture.ipynb"
    cells = json.loads(path.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells), "commit it without outputs"
    run = (
        "import nbformat, sys; from nbclient import NotebookClient; "
        "book = nbformat.read(sys.argv[1], 4); NotebookClient(book, timeout=250).execute(); "
        "print(nbformat.writes(book))"
    )
    environ = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", run, str(path)],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "healed by nonce evidence" in done.stdout
    assert "undone: averages.py" in done.stdout
    assert " object at 0x" not in done.stdout, "a reader can do nothing with it"
