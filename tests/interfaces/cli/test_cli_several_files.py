"""`suture run` writes new code of several files into the user's folder, and `suture undo` removes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interfaces.cli.conftest import ReadFiles, Script, Suture

pytestmark = [pytest.mark.usefixtures("sandbox", "commands_with_bare_python"), pytest.mark.timeout(600)]
CART_CODE = "def total(prices):\n    return sum(prices)\n"
WRONG_CART_CODE = "def total(prices):\n    return len(prices)\n"
CLI_CODE = "from shop.cart import total\n\n\ndef main(argv):\n    return total([int(one) for one in argv])\n"
TEST_CODE = (
    "from shop.cart import total\nfrom shop.cli import main\n\n\n"
    "def test_total():\n    assert total([1, 2]) == 3\n\n\n"
    "def test_main():\n    assert main(['4', '5']) == 9\n"
)
TASK = (
    "Write shop/cart.py with total(prices) and shop/cli.py with main(argv). For example total([1, 2]) == 3."
)


def make_reply(**files: str) -> str:
    """Return a model reply with several files; `__` in a keyword stands for `/`."""
    return "\n".join(
        f"### {name.replace('__', '/')}.py\n```python\n{text}```" for name, text in files.items()
    )


@pytest.mark.heavy
def test_a_run_writes_all_files_into_a_folder_and_undo_removes_them(
    suture: Suture, script: Script, tmp_path: Path, read_files: ReadFiles
) -> None:
    model = script(
        make_reply(shop__cart=WRONG_CART_CODE, shop__cli=CLI_CODE),
        *[make_reply(shop__cart=CART_CODE, shop__cli=CLI_CODE)] * 3,
    )
    result = suture("run", TASK, "--into", "out", "--model", model)
    assert result.returncode == 0, result.stderr
    assert read_files(tmp_path / "out") == {
        "shop/cart.py": CART_CODE.encode(),
        "shop/cli.py": CLI_CODE.encode(),
    }
    assert "==> shop/cart.py <==\ndef total" in result.stdout
    assert "==> shop/cli.py <==\nfrom shop" in result.stdout
    assert "No check imports shop/cli.py, so nothing shows that they work." in result.stderr
    assert suture("verify", "last").returncode == 0

    replay = json.loads(suture("replay", "--json").stdout)
    assert replay["same"], replay

    undo = suture("undo", cwd=tmp_path / "out")
    assert undo.returncode == 0, undo.stderr
    assert (
        list((tmp_path / "out").iterdir()) == []
    )  # the folder itself stays, because it is the current folder
    assert suture("apply", "last", "--into", "again").returncode == 0
    assert read_files(tmp_path / "again").keys() == {"shop/cart.py", "shop/cli.py"}
    assert suture("undo", "last").returncode == 0
    assert not (tmp_path / "again").exists()


@pytest.mark.heavy
def test_a_run_writes_nothing_into_a_folder_with_an_existing_file(
    suture: Suture, script: Script, tmp_path: Path, read_files: ReadFiles
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "extra.py").write_text("mine\n")
    model = script(*[make_reply(shop__cart=CART_CODE, shop__cli=CLI_CODE, extra="x = 1\n")] * 3)
    result = suture("run", TASK, "--into", "out", "--model", model)
    assert result.returncode == 2
    assert "'extra.py' exists already" in result.stderr
    assert "nothing was written" in result.stderr
    assert read_files(tmp_path / "out") == {"extra.py": b"mine\n"}

    module_folder = tmp_path / "out" / "shop"
    module_folder.mkdir()
    (module_folder / "cli.py").write_text("mine too\n")
    second_run = suture("run", TASK, "--into", "out", "--model", model)
    assert (second_run.returncode, "candidate 1" in second_run.stderr) == (
        2,
        False,
    )  # refused before any attempt
    assert suture("run", TASK, "--into", "out/extra.py", "--model", model).returncode == 2
    assert suture("run", TASK, "--into", "out", "--apply", "--model", model).returncode == 2


@pytest.mark.heavy
def test_a_test_file_checks_two_new_modules(suture: Suture, script: Script, tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(TEST_CODE)
    broken_cli = CLI_CODE.replace("int(one)", "len(one)")
    replies = [
        make_reply(shop__cart=CART_CODE, shop__cli=broken_cli),
        *[make_reply(shop__cart=CART_CODE, shop__cli=CLI_CODE)] * 3,
    ]
    result = suture("run", "A small shop.", "--test", "test_shop.py", "--json", "--model", script(*replies))
    assert result.returncode == 0, result.stderr

    output = json.loads(result.stdout)
    assert output["candidate"]["files"] == {"shop/cart.py": CART_CODE, "shop/cli.py": CLI_CODE}
    assert len(output["verdict"]["outcomes"]) == 2
    assert output["unchecked"] == []
    assert suture("verify", "last").returncode == 0


def test_extra_files_of_a_reply_to_a_one_file_task_are_reported(suture: Suture, script: Script) -> None:
    text = f"```python\n{CART_CODE}```\n### extra.py\n```python\ndef more():\n    return 1\n```"
    result = suture("run", "Write total(prices). total([1, 2]) == 3", "--model", script(text))

    assert result.returncode == 0, result.stderr
    assert result.stdout == CART_CODE
    assert "extra.py" in result.stderr
    assert "--into FOLDER" in result.stderr
    assert "not taken from the reply: extra.py" in suture("show", "last").stdout


def test_unverified_files_are_not_written(suture: Suture, script: Script, tmp_path: Path) -> None:
    model = script(*[make_reply(a="x = 1\n", b="y = 2\n")] * 12)
    result = suture("run", "Write a.py and b.py.", "--into", "out", "--model", model)
    assert result.returncode == 1
    assert not (tmp_path / "out").exists()
    assert "as a diff for git apply" in result.stderr


def test_run_reads_the_task_from_a_file(suture: Suture, script: Script, tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("Write total(prices). total([1, 2]) == 3\n")
    result = suture("run", "--task-file", "task.md", "--model", script(f"```python\n{CART_CODE}```"))
    assert (result.returncode, result.stdout) == (0, CART_CODE), result.stderr

    mistake = suture("run", "task.md")
    assert (mistake.returncode, "--task-file task.md" in mistake.stderr) == (2, True)
    assert suture("run", "--task-file", "none.md").returncode == 2
    assert suture("run", "-", "--task-file", "task.md").returncode == 2
