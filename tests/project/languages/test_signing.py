"""Reports are signed in a process of node that also runs the code under test."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from requirements import Require

PROBE = """
const seen = new Set(), found = [];
function walk(module) {
  if (!module || seen.has(module)) return;
  seen.add(module);
  found.push(String(module.filename));
  (module.children || []).forEach(walk);
}
walk(require.main);
Object.values(require.cache).forEach(walk);
found.push(...Object.keys(require.cache));
console.log(JSON.stringify(found.filter((name) => /reporters/.test(name))));
"""


@pytest.mark.parametrize("reporter", ["jest.cjs", "signing.cjs"])
def test_code_cannot_find_the_signing_module(reporter: str, require: Require, tmp_path: Path) -> None:
    node = shutil.which("node")
    require("node", node is not None, "it is not on PATH")
    folder = resources.files("suture.project.languages.reporters")
    (tmp_path / "main.js").write_text(f"require('{folder.joinpath(reporter)}');\nrequire('./probe.js');\n")
    (tmp_path / "probe.js").write_text(PROBE)
    request = json.dumps({"report": str(tmp_path / "report"), "key": "00" * 32})

    process = subprocess.run(
        [str(node), "main.js"],
        cwd=tmp_path,
        input=request,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert json.loads(process.stdout) == []
