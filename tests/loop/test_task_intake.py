"""Tasks are built from the user's input."""

from __future__ import annotations

from pathlib import Path

import pytest

from project_files import write_files
from suture.core.records import Language
from suture.errors import UsageError
from suture.loop.intake.heal_task import build_heal_task
from suture.loop.intake.project_task import SAMPLE_PATH, ProjectRequest, build_project_task
from suture.loop.intake.write_task import build_write_task, example_task
from suture.project.workspace import is_protected


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("def f(x):\n    ...\n", "f"),
        ("import math\n\ndef helper(x):\n    return x\n\ndef main_one(x):\n    ...\n", "main_one"),
        ("class Stack:\n    pass\n", "Stack"),
        ("Write a function merge_intervals(items) that merges.", "merge_intervals"),
        ("Write a function called merge that merges.", "merge"),
        ("Write a function that adds two numbers: add_up(a, b).", "add_up"),
        ("Write a Python function `slugify(text)`.", "slugify"),
        ("Sort it.", None),
        ("Write a function in Python that adds", None),
        ("Write a function in Python that adds: add(1, 2) == 3", "add"),
        ("Write a function using recursion to compute the factorial", None),
        ("Create a class for stacks", None),
        ("Create a class Stack with push and pop", "Stack"),
        ("Write a Python function computing gcd(a, b)", "gcd"),
        ("Write a program that asks input() and prints", None),
        ("Implement a method of sorting", None),
        ("Write a function with name 'foo'", "foo"),
        ("Write a function returns the sum", None),
        ("Write a function `add` for numbers", "add"),
        ("Write a function fold_left that folds", "fold_left"),
        ("Write a recursive function and name it fact. fact(3) == 6", "fact"),
        ("Sort a list using quicksort. Do not use sorted(). qs([2,1]) == [1,2]", "qs"),
        ("Write a function sum(a, b).\n\nsum(1, 2) returns 3", "sum"),
        ("Write a function called when a user logs in. greet('x') -> 'hi x'", "greet"),
        ("Use parse(x) from before. Then top(3) => 4", "top"),
        ("Complete this:\n\ndef first(x):\n    ...\n\nIt uses helper(x).", "first"),
    ],
)
def test_the_entry_point_is_read_from_the_statement(statement: str, name: str | None) -> None:
    assert build_write_task(statement).entry_point == name


def test_examples_in_the_statement_become_visible_checks() -> None:
    task = build_write_task("Write add(a, b).\n\n>>> add(1, 2)\n3\n")
    assert [check.provenance for check in task.checks] == ["visible"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose root configures the tests of its folder `shop`."""
    return write_files(
        tmp_path,
        {
            ".git/HEAD": "",
            "conftest.py": "",
            "pytest.ini": "[pytest]\n",
            "other/code.py": "a = 1\n",
            "shop/price.py": "a = 1\n",
            "shop/rate.py": "a = 1\n",
            "shop/tests/test_price.py": "def test_a(): pass\n",
        },
    )


def test_files_above_a_folder_that_decide_its_tests_belong_to_the_task(repository: Path) -> None:
    task, snapshot = build_heal_task(repository / "shop")
    assert snapshot.root == repository
    assert {"conftest.py", "pytest.ini", "shop/price.py"} <= task.files.keys()
    assert task.test_command == ("env", "-C", "shop", "python", "-m", "pytest", "-q")
    protected = {path for path in task.files if is_protected(path, task.protected)}
    assert protected == task.files.keys() - {"shop/price.py", "shop/rate.py"}


def test_globs_and_commands_are_relative_to_the_folder_that_was_named(repository: Path) -> None:
    task, _ = build_heal_task(
        repository / "shop", test="pytest tests/test_price.py", only=["price.py"], protect=["/rate.py"]
    )
    assert task.test_command == ("env", "-C", "shop", "pytest", "tests/test_price.py")
    assert [path for path in task.files if is_protected(path, task.writable)] == ["shop/price.py"]
    assert is_protected("shop/rate.py", task.protected)


@pytest.mark.parametrize("removed", [".git/HEAD", "conftest.py"])
def test_a_folder_whose_tests_nothing_above_decides_is_the_whole_project(
    repository: Path, removed: str
) -> None:
    (repository / removed).unlink()
    (repository / "pytest.ini").unlink()
    if removed == ".git/HEAD":
        (repository / ".git").rmdir()
    task, snapshot = build_heal_task(repository / "shop")
    assert snapshot.root == repository / "shop"
    assert set(task.files) == {"price.py", "rate.py", "tests/test_price.py"}


def test_a_wrapper_of_one_test_command_is_reported_by_that_command(tmp_path: Path) -> None:
    files = {"Makefile": "check:\n\tRATE=2 pytest spec.py\n", "spec.py": "", "code.py": "a = 1\n"}
    task, _ = build_heal_task(write_files(tmp_path, files), test="make check")
    assert task.test_command == ("env", "RATE=2", "pytest", "spec.py")
    assert task.test_origin == "make check runs it"
    assert [path for path in task.files if not is_protected(path, task.protected)] == ["code.py"]


@pytest.mark.parametrize(
    ("path", "test"), [("test_rate.py", None), ("a/tests/test_b.py", None), ("c.py", "pytest c.py")]
)
def test_code_beside_its_tests_in_one_file_may_change(path: str, test: str | None, tmp_path: Path) -> None:
    text = "def rate(a):\n    return a\n\ndef test_rate():\n    assert rate(1) == 2\n"
    task, _ = build_heal_task(write_files(tmp_path, {path: text}), test=test, protect=["own.py"])
    assert not is_protected(path, task.protected)
    assert is_protected("a/tests/test_other.py", task.protected)
    assert is_protected("own.py", task.protected)
    task, _ = build_heal_task(write_files(tmp_path, {"shop.py": "def total():\n    return 1\n"}), test=test)
    assert is_protected(path, task.protected)


def test_inline_tests_of_rust_leave_all_code_writable(tmp_path: Path) -> None:
    code = "pub fn one() -> i64 { 2 }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn one() {}\n}\n"
    sources = {"src/lib.rs": "mod a;\nmod b;\n", "src/a.rs": code, "src/b.rs": code}
    write_files(
        tmp_path, {**sources, "build.rs": code, "Cargo.toml": "", "tests/it.rs": "#[test]\nfn it() {}\n"}
    )
    task, _ = build_heal_task(tmp_path)
    writable = [path for path in task.files if not is_protected(path, task.protected)]
    assert sorted(writable) == sorted(sources)


def test_of_two_files_with_code_and_tests_in_a_folder_each_may_change(tmp_path: Path) -> None:
    text = "def rate(a):\n    return a\n\ndef test_rate():\n    assert rate(1) == 2\n"
    mixed = ["tests/test_a.py", "tests/test_b.py"]
    write_files(tmp_path, {**dict.fromkeys(mixed, text), "tests/data.json": "{}"})
    task, _ = build_heal_task(tmp_path, test="pytest")
    assert [path for path in sorted(task.files) if not is_protected(path, task.protected)] == mixed


def test_tests_without_code_are_no_project(tmp_path: Path) -> None:
    text = (
        "import pytest\n\n@pytest.fixture\ndef one():\n    return 1\n\ndef test_one(one):\n    assert one\n"
    )
    with pytest.raises(UsageError, match="there is no code to heal"):
        build_heal_task(write_files(tmp_path, {"test_one.py": text}))


@pytest.mark.parametrize("path", ["src/inv/stock.py", "src/inv"])
def test_code_without_tests_beside_it_names_its_project(path: str, tmp_path: Path) -> None:
    code = "def can_sell(count, wanted):\n    return count > wanted\n"
    tests = "def test_one():\n    assert True\n"
    project = write_files(
        tmp_path / "shop",
        {"pyproject.toml": "", "src/inv/stock.py": code, "src/inv/other.py": code, "tests/test_a.py": tests},
    )
    with pytest.raises(UsageError, match="holds no tests") as raised:
        build_heal_task(project / path)
    inner = path if path.endswith(".py") else f"{path}/"
    assert raised.value.remedy is not None
    assert raised.value.remedy.endswith(f"shop --only {inner}")
    task, _ = build_heal_task(project, only=[inner])
    assert is_protected("src/inv/stock.py", task.writable)


def test_a_file_without_tests_names_its_folder(tmp_path: Path) -> None:
    tests = "from cart import total\n\ndef test_one():\n    assert total(1) == 1\n"
    write_files(tmp_path, {"cart.py": "def total(n):\n    return n\n", "test_cart.py": tests})
    with pytest.raises(UsageError, match=r"cart\.py' holds no tests") as raised:
        build_heal_task(tmp_path / "cart.py")
    assert (raised.value.remedy or "").endswith("--only cart.py")
    with pytest.raises(UsageError, match=r"no code to heal in '.*test_cart\.py'"):
        build_heal_task(tmp_path / "test_cart.py")


def test_an_empty_task_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="empty"):
        build_write_task("  \n")


@pytest.mark.parametrize(
    ("statement", "language"),
    [
        ("Write f(n). f(1) == 2, and f( 1 ) returns 'x'", "python"),
        ("Write function f(n). f(1) === 2 and f(1) === 3", "javascript"),
    ],
)
def test_a_call_with_two_results_is_a_usage_error(statement: str, language: Language) -> None:
    with pytest.raises(UsageError, match=r"contradict each other: f\(1\) .* and f\(1\) "):
        build_write_task(statement, language=language)


@pytest.mark.parametrize(
    "statement",
    [
        "Write next_id(). next_id() == 1 and next_id() == 2",
        "Write hit(name).\n>>> hit('a')\n1\n>>> hit('a')\n2\n",
        "Write half(n). half(4) == 2 and half(4) == 2.0",
    ],
)
def test_a_result_that_may_change_is_no_contradiction(statement: str) -> None:
    assert len(build_write_task(statement).checks) == 2


def test_a_pytest_file_names_the_module_and_the_entry_point(tmp_path: Path) -> None:
    test = tmp_path / "test_merge.py"
    test.write_text(
        "import pytest\nfrom tools.merge import merge_all\n\ndef test_it():\n    assert merge_all([]) == []\n"
    )
    (tmp_path / "conftest.py").write_text("")
    task = build_write_task("Merge them.", test=test)

    assert (task.module, task.entry_point) == ("tools/merge.py", "merge_all")
    assert task.test_command == ("python", "-m", "pytest", "-q", "test_merge.py")
    assert set(task.files) == {"test_merge.py", "conftest.py"}


def test_a_file_of_plain_asserts_becomes_user_checks(tmp_path: Path) -> None:
    test = tmp_path / "checks.py"
    test.write_text("assert add(1, 2) == 3\nassert add(0, 0) == 0\n")
    task = build_write_task("Write add(a, b).", test=test)
    assert [check.provenance for check in task.checks] == ["user", "user"]
    assert task.test_command == ()


@pytest.mark.parametrize("text", ["x = 1\n", ""])
def test_a_test_file_without_a_test_is_a_usage_error(tmp_path: Path, text: str) -> None:
    test = tmp_path / "checks.py"
    test.write_text(text)
    with pytest.raises(UsageError, match="holds no test"):
        build_write_task("Write add(a, b).", test=test)


def test_a_pytest_file_that_imports_nothing_is_a_usage_error(tmp_path: Path) -> None:
    test = tmp_path / "test_x.py"
    test.write_text("def test_x():\n    assert True\n")
    with pytest.raises(UsageError, match="imports no module"):
        build_write_task("Write it.", test=test)


def test_a_missing_test_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        build_write_task("Write it.", test=tmp_path / "none.py")


def test_healing_needs_code_and_tests(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no code to heal"):
        build_heal_task(tmp_path)
    (tmp_path / "a.py").write_text("a = 1\n")
    with pytest.raises(UsageError, match="no tests"):
        build_heal_task(tmp_path)
    task, _ = build_heal_task(tmp_path, test="python check.py --all")
    assert task.test_command == ("python", "check.py", "--all")
    (tmp_path / "test_a.py").write_text("def test_a(): pass\n")
    assert build_heal_task(tmp_path)[0].test_command == ("python", "-m", "pytest", "-q")


def test_the_example_task_has_checks() -> None:
    task = example_task()
    assert task.entry_point == "merge_intervals"
    assert len(task.checks) == 4


@pytest.mark.parametrize("command", ["pytest 'x", 'python -c "x', "pytest \\"])
def test_an_open_quote_is_a_usage_error(tmp_path: Path, command: str) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    with pytest.raises(UsageError, match="close the quote"):
        build_heal_task(tmp_path, test=command)


@pytest.mark.parametrize(
    "command",
    [
        "pytest || true",
        "pytest; true",
        "pytest|cat",
        "pytest > log",
        'pytest "$(ls)" $(ls)',
        "pytest `ls`",
        "pytest &",
    ],
)
def test_shell_syntax_is_a_usage_error_that_names_the_shell(tmp_path: Path, command: str) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    with pytest.raises(UsageError, match="sh -c '"):
        build_heal_task(tmp_path, test=command)


@pytest.mark.parametrize("command", ["PYTHONPATH=. pytest -k ab", ["PYTHONPATH=.", "pytest", "-k", "ab"]])
def test_a_leading_variable_is_set_by_env(tmp_path: Path, command: str | list[str]) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    task, _ = build_heal_task(tmp_path, test=command)
    assert task.test_command == ("env", "PYTHONPATH=.", "pytest", "-k", "ab")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'cd . && ./check'", ("sh", "-c", "cd . && ./check")),
        ("env A=1 pytest", ("env", "A=1", "pytest")),
        ("pytest -k'a or (b and c)' 't.py::t[x|y]'", ("pytest", "-ka or (b and c)", "t.py::t[x|y]")),
        ("pytest t.py::t[(1)] a\\;b", ("pytest", "t.py::t[(1)]", "a;b")),
    ],
)
def test_commands_without_shell_syntax_are_split_into_words(
    tmp_path: Path, command: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    assert build_heal_task(tmp_path, test=command)[0].test_command == words


@pytest.mark.parametrize(
    ("command", "protected_path"),
    [
        ("python -m pytest -q trials.py", "trials.py"),
        ("pytest ./trials.py::test_one", "trials.py"),
        ("python check.py --all", "check.py"),
        ("sh -c 'python check.py && true'", "check.py"),
        ("./run.sh", "run.sh"),
        ("python -m unittest qa.core.TestAdd.test_one", "qa/core.py"),
        ("python -m unittest -k add qa.core", "qa/core.py"),
        ("python -m check", "check.py"),
        ("python -m qa", "qa/__main__.py"),
        ("python [a]*.py", "[a]*.py"),
    ],
)
def test_the_file_named_by_the_test_command_is_protected(
    tmp_path: Path, command: str, protected_path: str
) -> None:
    (tmp_path / "qa" / "sub").mkdir(parents=True)
    names = (
        "trials.py",
        "check.py",
        "run.sh",
        "qa/core.py",
        "qa/__main__.py",
        "[a]*.py",
        "add.py",
        "qa/sub/trials.py",
    )
    for name in names:
        (tmp_path / name).write_text("")
    task, _ = build_heal_task(tmp_path, test=command)

    assert {name for name in names if is_protected(name, task.protected)} == {protected_path}


def test_an_absolute_path_in_the_command_is_protected(tmp_path: Path) -> None:
    for name in ("trials.py", "add.py"):
        (tmp_path / name).write_text("")
    task, snapshot = build_heal_task(tmp_path, test=["python", str(tmp_path.resolve() / "trials.py")])
    assert [name for name in snapshot.files if is_protected(name, task.protected)] == ["trials.py"]


@pytest.mark.parametrize(
    "command", ["pytest -k add", "pytest -m add", "python -m pytest -m add", "python -m unittest -k add"]
)
def test_options_that_look_like_modules_protect_nothing(tmp_path: Path, command: str) -> None:
    (tmp_path / "add.py").write_text("")
    task, _ = build_heal_task(tmp_path, test=command)
    assert not is_protected("add.py", task.protected)


def test_a_command_that_names_the_whole_code_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("assert False\n")
    with pytest.raises(UsageError, match=r"main\.py.*file of their own"):
        build_heal_task(tmp_path, test="python main.py")


def find_subject(folder: Path, imports: str, name: str = "test_y.py") -> tuple[str, str | None]:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(f"{imports}\n\ndef test_a():\n    assert True\n")
    task = build_write_task("Add them", test=folder / name)
    return task.module, task.entry_point


def test_the_subject_is_not_a_library_conftest_or_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_subject(tmp_path, "import no_such_frame as pd\nfrom calc import add") == ("calc.py", "add")
    assert find_subject(tmp_path, "from conftest import mk\nfrom calc import add") == ("calc.py", "add")
    assert find_subject(tmp_path, "from calc import add\nfrom tests.tools import mk") == ("calc.py", "add")
    assert find_subject(tmp_path, "from calc import add\nimport yaml") == ("calc.py", "add")
    assert find_subject(tmp_path, "from calc import *") == ("calc.py", None)


def test_the_subject_exists_or_is_named_like_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calc.py").write_text("")

    assert find_subject(tmp_path, "from calc import add\nimport no_such_frame") == ("calc.py", "add")
    assert find_subject(tmp_path, "from . import calc") == ("calc.py", None)
    imports = "from merge import merge_all\nfrom calc import add\nimport no_such_frame"
    assert find_subject(tmp_path, imports, "test_merge.py") == ("merge.py", "merge_all")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "cart.py").write_text("")
    assert find_subject(tmp_path, "from shop import cart") == ("shop/cart.py", None)


def test_a_subject_in_the_folder_of_the_test_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "calc.py").write_text("")
    assert find_subject(tmp_path, "from calc import add", "sub/test_y.py") == ("sub/calc.py", "add")


@pytest.mark.parametrize("source", ["def test_x(:\n", "def test_x():\n    x = " + "-" * 60000 + "1\n"])
def test_a_test_file_that_is_not_python_is_a_usage_error(tmp_path: Path, source: str) -> None:
    (tmp_path / "test_x.py").write_text(source)
    with pytest.raises(UsageError, match="is not Python"):
        build_write_task("Write it.", test=tmp_path / "test_x.py")


def test_sample_data_is_not_written_into_an_existing_pipeline(tmp_path: Path) -> None:
    package = tmp_path / "rows"
    (package / "rows").mkdir(parents=True)
    (package / "rows" / "__main__.py").write_text("print()\n")
    task = build_project_task("Let it skip rows.", ProjectRequest(kind="data_pipeline", existing=package))

    assert task.project is not None
    assert not task.project.is_new
    assert SAMPLE_PATH in task.files
    assert SAMPLE_PATH in task.given_files  # a given file is never written into the user's project
    new_task = build_project_task("Turn rows into sums.", ProjectRequest(kind="data_pipeline"))
    assert new_task.project is not None
    assert new_task.project.is_new
    assert SAMPLE_PATH not in new_task.given_files
