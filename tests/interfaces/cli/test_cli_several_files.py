"""New code of several files, from the reply to the user's folder and back: process, graph, sandbox."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Suture = Callable[..., subprocess.CompletedProcess[str]]
Script = Callable[..., str]
FilesOf = Callable[[Path], dict[str, bytes]]

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(600)]
CART = "def total(prices):\n    return sum(prices)\n"
WRONG = "def total(prices):\n    return len(prices)\n"
CLI = "from shop.cart import total\n\n\ndef main(argv):\n    return total([int(one) for one in argv])\n"
TESTS = (
    "from shop.cart import total\nfrom shop.cli import main\n\n\n"
    "def test_total():\n    assert total([1, 2]) == 3\n\n\n"
    "def test_main():\n    assert main(['4', '5']) == 9\n"
)
TASK = (
    "Write shop/cart.py with total(prices) and shop/cli.py with main(argv). For example total([1, 2]) == 3."
)


def reply(**files: str) -> str:
    return "\n".join(
        f"### {name.replace('__', '/')}.py\n```python\n{text}```" for name, text in files.items()
    )


@pytest.mark.heavy
def test_all_files_go_into_the_folder_and_come_back_out(
    suture: Suture, script: Script, tmp_path: Path, files_of: FilesOf
) -> None:
    model = script(reply(shop__cart=WRONG, shop__cli=CLI), *[reply(shop__cart=CART, shop__cli=CLI)] * 3)
    done = suture("run", TASK, "--into", "out", "--model", model)
    assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "out") == {"shop/cart.py": CART.encode(), "shop/cli.py": CLI.encode()}
    assert "==> shop/cart.py <==\ndef total" in done.stdout
    assert "==> shop/cli.py <==\nfrom shop" in done.stdout
    assert "No check imports shop/cli.py, so it is not known whether they work." in done.stderr
    assert suture("verify", "last").returncode == 0
    told = json.loads(suture("replay", "--json").stdout)
    assert told["same"], told
    undone = suture("undo", cwd=tmp_path / "out")
    assert undone.returncode == 0, undone.stderr
    assert list((tmp_path / "out").iterdir()) == []  # the folder itself stays, as somebody stands in it
    assert suture("apply", "last", "--into", "again").returncode == 0
    assert files_of(tmp_path / "again").keys() == {"shop/cart.py", "shop/cli.py"}
    assert suture("undo", "last").returncode == 0
    assert not (tmp_path / "again").exists()


@pytest.mark.heavy
def test_a_file_that_is_there_stays_and_nothing_is_written_beside_it(
    suture: Suture, script: Script, tmp_path: Path, files_of: FilesOf
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "extra.py").write_text("mine\n")
    model = script(*[reply(shop__cart=CART, shop__cli=CLI, extra="x = 1\n")] * 3)
    done = suture("run", TASK, "--into", "out", "--model", model)
    assert done.returncode == 2
    assert "'extra.py' exists already" in done.stderr
    assert "nothing was written" in done.stderr
    assert files_of(tmp_path / "out") == {"extra.py": b"mine\n"}
    there = tmp_path / "out" / "shop"
    there.mkdir()
    (there / "cli.py").write_text("mine too\n")
    early = suture("run", TASK, "--into", "out", "--model", model)
    assert (early.returncode, "try 1" in early.stderr) == (2, False)  # before anything was spent
    assert suture("run", TASK, "--into", "out/extra.py", "--model", model).returncode == 2
    assert suture("run", TASK, "--into", "out", "--apply", "--model", model).returncode == 2


@pytest.mark.heavy
def test_a_file_of_tests_for_two_modules_judges_both(suture: Suture, script: Script, tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(TESTS)
    broken = CLI.replace("int(one)", "len(one)")
    replies = [reply(shop__cart=CART, shop__cli=broken), *[reply(shop__cart=CART, shop__cli=CLI)] * 3]
    done = suture("run", "A small shop.", "--test", "test_shop.py", "--json", "--model", script(*replies))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["candidate"]["files"] == {"shop/cart.py": CART, "shop/cli.py": CLI}
    assert len(told["verdict"]["outcomes"]) == 2
    assert told["unchecked"] == []
    assert suture("verify", "last").returncode == 0


def test_what_one_file_was_asked_for_leaves_out_is_named(suture: Suture, script: Script) -> None:
    text = f"```python\n{CART}```\n### extra.py\n```python\ndef more():\n    return 1\n```"
    done = suture("run", "Write total(prices). total([1, 2]) == 3", "--model", script(text))
    assert done.returncode == 0, done.stderr
    assert done.stdout == CART
    assert "extra.py" in done.stderr
    assert "--into FOLDER" in done.stderr
    assert "not taken from the reply: extra.py" in suture("show", "last").stdout


def test_what_is_not_verified_is_not_written(suture: Suture, script: Script, tmp_path: Path) -> None:
    model = script(*[reply(a="x = 1\n", b="y = 2\n")] * 12)
    done = suture("run", "Write a.py and b.py.", "--into", "out", "--model", model)
    assert done.returncode == 1
    assert not (tmp_path / "out").exists()
    assert "as a diff for git apply" in done.stderr


def test_a_task_comes_from_a_file(suture: Suture, script: Script, tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("Write total(prices). total([1, 2]) == 3\n")
    done = suture("run", "--task-file", "task.md", "--model", script(f"```python\n{CART}```"))
    assert (done.returncode, done.stdout) == (0, CART), done.stderr
    slip = suture("run", "task.md")
    assert (slip.returncode, "--task-file task.md" in slip.stderr) == (2, True)
    assert suture("run", "--task-file", "none.md").returncode == 2
    assert suture("run", "-", "--task-file", "task.md").returncode == 2
