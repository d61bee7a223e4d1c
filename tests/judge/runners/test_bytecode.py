"""Bytecode of the unchanged project is reused, but only for unchanged sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from judge.conftest import Prepare
from suture.judge.runners.pytest_runner import load_plugin, read_compiled_files

FILES = {
    "mod.py": "X = 1\n",
    "test_mod.py": (
        "import os\nimport mod\n\n"
        "def test_value():\n    assert mod.X == 1\n\n"
        "def test_is_compiled():\n    assert os.path.exists(mod.__cached__)\n"
    ),
}
SOURCES = {"a/b.py": b"x = 1\n", "a/c.py": b""}
HEAD = b'[["a/b.py", "b.cpython-311.pyc", 3], ["a/b.py", "b.cpython-311-pytest-9.pyc", 2]]\n'


def encode_files(files: dict[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


async def test_a_later_run_reuses_bytecode(prepare: Prepare) -> None:
    suite = await prepare(FILES)
    run = await suite.command.run(suite.task.files)
    assert {o.check_id: o.status for o in run.outcomes} == {
        "test_mod.py::test_value": "passed",
        "test_mod.py::test_is_compiled": "passed",
    }


async def test_a_change_of_equal_length_is_recompiled(prepare: Prepare) -> None:
    suite = await prepare(FILES)
    run = await suite.command.run(encode_files({**FILES, "mod.py": "X = 2\n"}))
    assert {o.check_id: o.status for o in run.outcomes} == {
        "test_mod.py::test_value": "failed",
        "test_mod.py::test_is_compiled": "failed",
    }


FORGING = """\
import atexit, glob, marshal

X = 0


def plant():
    for place in glob.glob("__pycache__/test_mod.*pytest*.pyc"):
        with open(place, "rb") as file:
            head = file.read(16)
        code = compile("def test_value(): pass\\ndef test_is_compiled(): pass\\n", "test_mod.py", "exec")
        with open(place, "wb") as file:
            file.write(head + marshal.dumps(code))


plant()
"""


async def test_forged_bytecode_of_a_test_is_not_kept(prepare: Prepare) -> None:
    suite = await prepare({**FILES, "mod.py": FORGING})
    await suite.command.run(suite.task.files)
    run = await suite.command.run(encode_files({**FILES, "mod.py": "X = 3\n"}))
    assert {o.check_id: o.status for o in run.outcomes}["test_mod.py::test_value"] == "failed"


PLUGIN_TEST = """\
from importlib.machinery import SourceFileLoader
from pathlib import Path


def test_plugin_is_compiled():
    (source,) = Path().glob("**/suture_report/watch.py")
    loader = SourceFileLoader("watch", str(source))
    loader.source_to_code = None
    assert loader.get_code("watch").co_filename == str(source)
"""


async def test_the_plugin_is_not_compiled_in_each_run(prepare: Prepare) -> None:
    suite = await prepare({"test_plugin.py": PLUGIN_TEST})
    run = await suite.command.run(suite.task.files)
    assert [outcome.status for outcome in run.outcomes] == ["passed"]


def test_bytecode_of_the_plugin_has_the_same_path_whatever_runs_suture(tmp_path: Path) -> None:
    program = "from suture.judge.runners.pytest_runner import load_plugin; print(*sorted(load_plugin()))"
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    arguments = [sys.executable, "-O", "-c", program]

    names = subprocess.run(
        arguments, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()

    assert names == sorted(load_plugin())
    assert all(not name.startswith("/") and ".opt-" not in name for name in names)


def test_bytecode_is_placed_beside_its_source() -> None:
    compiled_files = read_compiled_files(HEAD + b"abcde", SOURCES)
    assert compiled_files.select_unchanged(SOURCES) == {
        "a/__pycache__/b.cpython-311.pyc": b"abc",
        "a/__pycache__/b.cpython-311-pytest-9.pyc": b"de",
    }
    assert compiled_files.list_unchanged_sources(SOURCES) == ["a/b.py"]


def test_a_changed_source_gets_no_bytecode() -> None:
    compiled_files = read_compiled_files(HEAD + b"abcde", SOURCES)
    assert compiled_files.select_unchanged({**SOURCES, "a/b.py": b"x = 2\n"}) == {}
    assert compiled_files.list_unchanged_sources({"a/c.py": b""}) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no JSON\n",
        b"{}\n",
        b'[["a/b.py", "b.pyc", 30]]\nabc',
        b'[["a/b.py", "../b.pyc", 3]]\nabc',
        b'[["a/b.py", "c.cpython-311.pyc", 3]]\nabc',
        b'[["other.py", "other.pyc", 3]]\nabc',
        b'[["a/b.py", "b.pyc", -1]]\nabc',
        b'[["a/b.py", "b.py", 3]]\nabc',
    ],
)
def test_malformed_bytecode_files_are_ignored(content: bytes) -> None:
    assert read_compiled_files(content, SOURCES).by_source == {}
