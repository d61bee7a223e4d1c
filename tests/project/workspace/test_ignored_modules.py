"""Ignored modules that the project imports are copied, unless they may hold secrets."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.loop.intake.heal_task import build_heal_task
from suture.project.workspace import is_protected, take_snapshot
from suture.project.workspace.ignored_files import imported_names, module_name

TESTS = "from pkg import total\n\n\ndef test_total():\n    assert total([1]) == 1\n"


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.mark.parametrize(
    ("ignored", "path", "importing"),
    [
        ("_version.py\n", "src/pkg/_version.py", "from ._version import version\n"),
        ("version.py", "src/pkg/version.py", "from pkg.version import version as __version__\n"),
        ("*_pb2.py", "src/pkg/messages_pb2.py", "from pkg import (  # generated\n    messages_pb2,\n)\n"),
        ("*.so", "src/pkg/_fast.cpython-311-x86_64-linux-gnu.so", "import pkg._fast\n"),
        (
            "*.so",
            "src/pkg/_fast.abi3.so",
            "try:\n    from pkg._fast import add\nexcept ImportError:\n    raise\n",
        ),
        ("generated/", "src/pkg/generated/api.py", "from pkg.generated import api\n"),
        ("generated/", "src/pkg/generated/__init__.py", "from .generated import VALUE\n"),
        ("_fast.py", "src/pkg/_fast.py", "import importlib\nfast = importlib.import_module('pkg._fast')\n"),
    ],
)
def test_an_imported_ignored_module_is_copied_and_protected(
    tmp_path: Path, ignored: str, path: str, importing: str
) -> None:
    write_files(tmp_path, {".gitignore": ignored, "src/pkg/__init__.py": importing, path: "VALUE = 1\n"})
    write_files(
        tmp_path,
        {"src/pkg/sums.py": "def total(values):\n    return sum(values)\n", "tests/test_it.py": TESTS},
    )
    snapshot = take_snapshot(tmp_path)
    assert snapshot.files[path] == b"VALUE = 1\n"
    assert snapshot.built_files == (path,)
    assert not any(path in entry for entry in snapshot.skipped)

    task, _ = build_heal_task(tmp_path, test=BARE_PYTEST)
    assert path in task.files
    assert is_protected(path, task.protected)
    assert not is_protected("src/pkg/sums.py", task.protected)


def test_a_module_imported_by_an_ignored_module_is_copied(tmp_path: Path) -> None:
    write_files(
        tmp_path, {".gitignore": "_*.py\n!__init__.py\n", "pkg/__init__.py": "from pkg import _one\n"}
    )
    write_files(
        tmp_path, {"pkg/_one.py": "from pkg import _two\n", "pkg/_two.py": "x = 1\n", "pkg/_three.py": ""}
    )

    snapshot = take_snapshot(tmp_path)

    assert snapshot.built_files == ("pkg/_one.py", "pkg/_two.py")
    assert dict(snapshot.excluded_files) == {"pkg/_three.py": "ignored_not_imported"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pkg/local_settings.py", "DEBUG = True\n"),
        ("pkg/secrets_of_mine.py", "x = 1\n"),
        ("pkg/conf.py", "DB_PASSWORD = 'hunter2'\n"),
        ("pkg/conf.py", '    api_key = "k-123"\n'),
        ("secrets/prod.py", "x = 1\n"),
        ("pkg/my_token.py", "x = 1\n"),
        ("pkg/conf.py", "BOT_TOKEN = '123456:ABC-DEF1234ghIkl-zyx57W2v1u123ew11'\n"),
        ("pkg/conf.py", "PASSWORD: str = 'hunter2'\n"),
        ("pkg/conf.py", "password: 'Final[str]' = 'hunter2'\n"),
        ("pkg/conf.py", "DB = {'user': 'x', 'password': 'hunter2'}\n"),
        ("pkg/conf.py", "DB = dict(host='x', passwd = ('hunter2'))\n"),
        ("pkg/conf.py", "import os\nos.environ['API_KEY'] = 'k'\n"),
        ("pkg/conf.py", "import os\nos.environ.setdefault('DB_PASSWORD', \"hunter2\")\n"),
        ("pkg/conf.py", "SECRET_KEY = b'hunter2'\n"),
        ("pkg/conf.py", "password = (\n    'hunter2'\n)\n"),
        ("pkg/conf.py", "import base64\nSECRET = base64.b64decode(b'aHVudGVyMg==')\n"),
        ("pkg/conf.py", "class C:\n    def f(self, password='hunter2'): ...\n"),
        ("pkg/conf.py", "if (password := 'hunter2'): pass\n"),
        ("pkg/conf.py", "password = '''hunter2'''\n"),
        ("pkg/conf.py", "URL = 'postgres://me:hunter2@db.test/x'\n"),
        ("pkg/conf.py", "X = 'ghp_0123456789abcdefghijABCDEFGHIJ0123'\n"),
        ("pkg/conf.py", "ENCRYPTION_KEY = 'Zm9vYmFyYmF6MTIzNDU2'\n"),
        ("pkg/conf.py", "\ufeffpassword='hunter2'\n"),
        ("pkg/conf.py", "KEY = '''-----BEGIN RSA PRIVATE KEY-----\nMIIE\n'''\n"),
    ],
)
def test_ignored_files_with_secrets_are_excluded_and_reported(tmp_path: Path, path: str, text: str) -> None:
    name = Path(path).stem
    write_files(
        tmp_path, {".gitignore": f"{name}.py\n", "pkg/__init__.py": f"from pkg.{name} import *\n", path: text}
    )

    snapshot = take_snapshot(tmp_path)

    assert path not in snapshot.files
    assert dict(snapshot.excluded_files) == {path: "ignored_may_hold_secrets"}
    assert snapshot.skipped[path] == "ignored"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pkg/version.py", "version = '1.2.3'\n__key__ = version_tuple = (1, 2, 'g0123456789abcdef')\n"),
        ("pkg/parsetab.py", "tokens = ('NUMBER', 'PLUS')\n_lr = {'TOKEN':([0,1,],[2,3,])}\n"),
        ("pkg/tokenizer.py", "def tokenize(text, token='word'):\n    return text.split(token)\n"),
        ("pkg/messages_pb2.py", "D = b'\\n\\x08password\\x12\\x05token'\nkey = 'field'\n"),
        ("pkg/conf.py", "import os\npassword = os.environ.get('DB_PASSWORD')\napi_key = ''\n"),
        ("pkg/api.py", "def login(user: str, password: str, token: str = '') -> None: ...\n"),
    ],
)
def test_generated_modules_are_not_mistaken_for_secrets(tmp_path: Path, path: str, text: str) -> None:
    name = Path(path).stem
    write_files(
        tmp_path, {".gitignore": f"{name}.py\n", "pkg/__init__.py": f"from pkg.{name} import *\n", path: text}
    )
    assert take_snapshot(tmp_path).built_files == (path,)


@pytest.mark.parametrize(
    "text", ["passw" * 900_000, "key = ('" * 600_000, "a" * 5_000_000, "token:(" * 700_000]
)
def test_hostile_text_does_not_slow_the_search_for_secrets(tmp_path: Path, text: str) -> None:
    write_files(
        tmp_path,
        {".gitignore": "slow.py\n", "pkg/__init__.py": "from pkg import slow\n", "pkg/slow.py": text},
    )
    assert (
        "a.py" in take_snapshot(write_files(tmp_path, {"a.py": ""})).files
    )  # within the time limit of the test


def test_a_file_that_the_user_allows_is_copied(tmp_path: Path) -> None:
    write_files(tmp_path, {".gitignore": "conf.py\n", "a.py": "import conf\n", "conf.py": "PASSWORD = 'x'\n"})
    assert take_snapshot(tmp_path).built_files == ()
    assert take_snapshot(tmp_path, secrets=("conf.py",)).built_files == ("conf.py",)


def test_builds_environments_and_links_are_not_copied(tmp_path: Path) -> None:
    ignored = "build/\nenv/\nlink.py\nnotes.txt\n"
    write_files(
        tmp_path, {".gitignore": ignored, "pkg/__init__.py": "import core, link, env, notes\n", "core.py": ""}
    )
    write_files(
        tmp_path, {"build/lib/core.py": "", "env/pyvenv.cfg": "", "env/lib/core.py": "", "notes.txt": ""}
    )
    outside = write_files(tmp_path.parent / "outside", {"link.py": "secret"})

    (tmp_path / "link.py").symlink_to(outside / "link.py")

    assert set(take_snapshot(tmp_path).files) == {".gitignore", "core.py", "pkg/__init__.py"}


def test_a_module_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    write_files(tmp_path, {".gitignore": "*.so\n", "pkg/__init__.py": "from pkg import _large, _small\n"})
    write_files(tmp_path, {"pkg/_large.so": "x" * 3000, "pkg/_small.so": "x"})
    snapshot = take_snapshot(tmp_path, max_bytes=2000)
    assert snapshot.built_files == ("pkg/_small.so",)
    assert dict(snapshot.excluded_files) == {"pkg/_large.so": "ignored_too_large"}


def test_the_search_of_a_large_ignored_folder_is_bounded(tmp_path: Path) -> None:
    write_files(tmp_path, {".gitignore": "data/\n", "a.py": "from data import x2999\n"})
    write_files(tmp_path, {f"data/x{number}.py": "" for number in range(3000)})
    assert set(take_snapshot(tmp_path).files) == {".gitignore", "a.py"}


def test_imported_names_are_found() -> None:
    text = "import a.b as c, d\nfrom .e import (f,\n  g as h)\n    from . import i\nx = 'import no'\n"
    assert imported_names(text) >= {*"abdefghi"}
    assert not imported_names(text) & {"no", "x"}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a.py", "a"),
        ("a.so", "a"),
        ("a.cpython-312-darwin.so", "a"),
        ("a.pyi", ""),
        ("a-b.py", ""),
        ("liba.so.1", ""),
    ],
)
def test_file_names_give_module_names(file: str, name: str) -> None:
    assert module_name(file) == name


def test_ignored_folders_are_searched_to_a_maximum_depth(tmp_path: Path) -> None:
    near, far = "out/" + "d/" * 20 + "near.py", "out/" + "d/" * 200 + "far.py"
    write_files(tmp_path, {".gitignore": "out/\n", "a.py": "import near, far\n", near: "", far: ""})
    assert list(take_snapshot(tmp_path).excluded_files) == [near]


@pytest.mark.parametrize(
    ("source", "built", "content"),
    [
        ("pkg/de/texts.po", "pkg/de/texts.mo", "\0compiled"),
        ("pkg/style.scss", "pkg/style.css", "a { color: red }"),
        ("pkg/de/texts.po", "pkg/de/texts.mo", "\0Password: what a user reads"),
    ],
)
def test_data_built_from_a_neighbouring_file_is_copied_and_protected(
    tmp_path: Path, source: str, built: str, content: str
) -> None:
    write_files(
        tmp_path, {".gitignore": "*.mo\n*.css\n", "pkg/__init__.py": "", source: "text", built: content}
    )
    write_files(tmp_path, {"test_it.py": "def test_it(): ..."})
    snapshot = take_snapshot(tmp_path)
    assert snapshot.built_files == (built,)
    assert not any(built in entry for entry in snapshot.skipped)

    task, _ = build_heal_task(tmp_path, test=BARE_PYTEST)
    assert is_protected(built, task.protected)


@pytest.mark.parametrize(
    ("beside", "ignored", "content"),
    [
        ("pkg/other.po", "pkg/texts.mo", "\0compiled"),  # without a source
        ("po/texts.po", "pkg/texts.mo", "\0compiled"),  # its source is in another folder
        (
            "pkg/conf.py",
            "pkg/conf.ini",
            "x = 1",
        ),  # code builds nothing, and may read a private file
        ("pkg/conf.txt", "pkg/conf.ini", "[db]\npassword = hunter2"),
        ("pkg/conf.txt", "pkg/conf.ini", "API_TOKEN: abc"),
        ("pkg/prod.txt", "pkg/prod.env", "x = 1"),
        ("pkg/local.txt", "pkg/local.ini", "x = 1"),
        ("pkg/a.txt", "pkg/a.bin", "\0-----BEGIN RSA PRIVATE KEY-----"),
    ],
)
def test_other_ignored_data_is_left_out(tmp_path: Path, beside: str, ignored: str, content: str) -> None:
    ignore = "*.mo\n*.ini\n*.env\n*.bin\n"
    write_files(tmp_path, {".gitignore": ignore, "pkg/__init__.py": "", beside: "text", ignored: content})
    snapshot = take_snapshot(tmp_path)
    assert ignored not in snapshot.files
    assert ignored in snapshot.skipped


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_tracked_files_are_copied_despite_ignore_rules(tmp_path: Path) -> None:
    root = write_files(tmp_path / "project", {".gitignore": "*.log\nbuild/\n", "a.py": "", "secret.log": "x"})
    tracked = {"tests/data/a.log": "1", "tests/build/b.txt": "2", "build/lib/gone.txt": "3"}
    write_files(root, {**tracked, ".env": "X=1", "out.log": "made by a run", "build/made.txt": ""})
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "add", "--force", *tracked, ".env"], cwd=root, check=True)
    (root / "build/lib/gone.txt").unlink()
    outside = write_files(tmp_path / "outside", {"b.txt": "another user's"})
    snapshot = take_snapshot(root)
    assert set(snapshot.files) == {".gitignore", "a.py", "tests/data/a.log", "tests/build/b.txt"}
    assert "tests/data/a.log" not in snapshot.skipped

    shutil.rmtree(root / "tests/build")
    (root / "tests/build").symlink_to(outside)
    assert "tests/build/b.txt" not in take_snapshot(root).files
