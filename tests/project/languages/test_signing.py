"""Reports are signed in a process of node that also runs the code under test."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from requirements import Require
from suture.judge.runners.signed_lines import streams, verified_events

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


HOSTILE = {
    "hash functions": """
const crypto = require('node:crypto'), { Hmac } = crypto;
for (const name of ['createHmac', 'createHash']) crypto[name] = take;
for (const name of ['update', 'digest']) Hmac.prototype[name] = take;""",
    "the native hash": """
const hmac = require('node:crypto').createHmac('sha256', 'x');
const native = Object.getPrototypeOf(hmac[Object.getOwnPropertySymbols(hmac)[0]]);
for (const name of Object.getOwnPropertyNames(native)) try { native[name] = take; } catch { }""",
    "JSON": """
JSON.stringify = () => '{"event":"forged"}';
Object.prototype.toJSON = Array.prototype.toJSON = String.prototype.toJSON = () => 'forged';""",
    "files": """
const fs = require('node:fs');
for (const name of Object.keys(fs)) if (typeof fs[name] === 'function') fs[name] = take;""",
    "buffers and iterators": """
Buffer.from = take;
Array.prototype[Symbol.iterator] = Array.prototype.map = Array.prototype.join = Array.prototype.push = take;
Reflect.apply = Reflect.ownKeys = Function.prototype.call = Function.prototype.apply = take;
Array.isArray = Object.keys = take;""",
}
"""What code that shares the process of the writer changes."""
WRITER = """
const signing = require('%(signing)s');
const report = signing.openReport();
const { name, key } = report.delegate('a');
const inner = signing.createWriter(report.path, key, name);
const taken = [];
function take(...given) { taken.push(...given.map(String)); throw new Error('taken'); }
%(hostile)s
report.write({ event: 'begin', names: ['a', 'b'], line: undefined, none: null, more: { at: 1, is: true } });
inner.write({ event: 'outcome' });
report.write({ event: 'end' });
"""


@pytest.mark.parametrize("changed", HOSTILE)
def test_code_that_changes_what_writing_needs_changes_no_line(
    changed: str, require: Require, tmp_path: Path
) -> None:
    node = shutil.which("node")
    require("node", node is not None, "it is not on PATH")
    signing = resources.files("suture.project.languages.reporters").joinpath("signing.cjs")
    (tmp_path / "main.js").write_text(WRITER % {"signing": signing, "hostile": HOSTILE[changed]})
    key, report = bytes(range(32)), tmp_path / "report"
    request = json.dumps({"report": str(report), "key": key.hex()})

    subprocess.run([str(node), "main.js"], cwd=tmp_path, input=request, text=True, check=True, timeout=60)

    written = streams(report.read_bytes(), key)
    first, last = verified_events(*written[""])
    assert first == {
        "event": "begin",
        "names": ["a", "b"],
        "line": None,
        "none": None,
        "more": {"at": 1, "is": True},
    }
    assert last == {"event": "end"}
    assert [*verified_events(*written["a.0"])] == [{"event": "outcome"}]


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
