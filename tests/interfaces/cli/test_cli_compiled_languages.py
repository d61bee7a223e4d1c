"""Suture heals projects in Rust, C++ and Java, and shows the verdict on each test, without a search."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from interfaces.cli.conftest import Script, Suture

Require = Callable[[str, bool, str], None]
PROJECTS = Path(__file__).parent / "compiled_projects"
QUICK = ("--set", "certification.seconds=0")


def copy_project(name: str, folder: Path) -> Path:
    """Copy a project. The names of its files end with `.txt`, so that no tool takes them for code of this one."""
    for path in (PROJECTS / name).rglob("*.txt"):
        target = folder / path.relative_to(PROJECTS / name).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    return folder


def make_reply(project: Path, path: str, old: str, new: str) -> str:
    text = (project / path).read_text()
    assert old in text
    return f"### {path}\n```\n{text.replace(old, new)}```\n"


@pytest.fixture
def rust_environ() -> dict[str, str]:
    home = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup"))
    return {"RUSTUP_HOME": str(home)}


@pytest.fixture
def java_environ(tmp_path: Path, require: Require) -> dict[str, str]:
    """Return an environment with the user's Maven repository, in a home that the sandbox's user may read."""
    repository = Path.home() / ".m2" / "repository"
    jupiter = repository / "org/junit/jupiter/junit-jupiter/5.11.4/junit-jupiter-5.11.4.jar"
    surefire = (
        repository / "org/apache/maven/plugins/maven-surefire-plugin/3.2.5/maven-surefire-plugin-3.2.5.jar"
    )
    is_complete = bool(shutil.which("mvn")) and jupiter.is_file() and surefire.is_file()
    require("maven", is_complete, "Maven is missing, or JUnit and Surefire are not in ~/.m2")
    for folder, _, names in os.walk(repository):
        target = tmp_path / ".m2" / "repository" / Path(folder).relative_to(repository)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            try:
                os.link(Path(folder) / name, target / name)  # the repository may have gigabytes
            except OSError:
                shutil.copyfile(Path(folder) / name, target / name)
    return {"HOME": str(tmp_path)}


@pytest.mark.usefixtures("sandbox")
def test_a_rust_project_is_healed_test_by_test(
    suture: Suture, script: Script, tmp_path: Path, require: Require, rust_environ: dict[str, str]
) -> None:
    require("cargo", shutil.which("cargo") is not None, "it is not on PATH")
    project = copy_project("rust", tmp_path / "project")
    wrong = make_reply(project, "src/lib.rs", "a.max(b).min(c)", "a.min(b).max(c)")
    right = make_reply(project, "src/lib.rs", "a.max(b).min(c)", "a.max(b).min(a.min(b).max(c))")

    heal = suture(
        "heal", str(project), "--model", script(wrong, right), "--apply", "--json", *QUICK, env=rust_environ
    )

    assert heal.returncode == 0, heal.stderr
    output = json.loads(heal.stdout)
    assert (output["outcome"], output["evidence"]) == ("healed", "report")
    assert "a.min(b).max(c))" in (project / "src/lib.rs").read_text()
    show = suture("show", "last", env=rust_environ)
    assert "tests/order.rs::descending" in show.stdout
    assert "raised: assertion `left == right` failed left: 1 right: 2 (tests/order.rs line 3)" in show.stdout
    assert "Code that prints such a report could fake it" in show.stdout


@pytest.mark.usefixtures("sandbox")
def test_a_reply_that_changes_an_inline_test_of_rust_is_refused(
    suture: Suture, script: Script, tmp_path: Path, require: Require, rust_environ: dict[str, str]
) -> None:
    require("cargo", shutil.which("cargo") is not None, "it is not on PATH")
    project = copy_project("rust", tmp_path / "project")
    cheat = make_reply(project, "src/lib.rs", "assert_eq!(middle(1, 2, 3), 2);", "assert_eq!(2, 2);")

    heal = suture("heal", str(project), "--model", script(cheat), "--json", *QUICK, env=rust_environ)

    assert heal.returncode != 0
    assert "the reply changes tests in src/lib.rs" in heal.stderr


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("sandbox")
def test_a_cpp_project_is_healed_by_the_reports_of_ctest_and_googletest(
    suture: Suture, script: Script, tmp_path: Path, require: Require
) -> None:
    headers = Path("/usr/include/gtest/gtest.h")
    require("googletest", bool(shutil.which("ctest")) and headers.is_file(), "CTest or GoogleTest is missing")
    project = copy_project("cpp", tmp_path / "project")
    right = make_reply(project, "src/roman.cpp", '"VI"', '"IV"')

    heal = suture("heal", str(project), "--model", script(right), "--apply", "--json", *QUICK)

    assert heal.returncode == 0, heal.stderr
    output = json.loads(heal.stdout)
    # A plain program among the tests is judged by its exit status, and a result is worth its weakest test.
    assert (output["outcome"], output["evidence"]) == ("healed", "exit_status")
    show = suture("show", "last")
    assert "tests/roman_test.cpp::Roman.Subtracts" in show.stdout
    assert "(tests/roman_test.cpp line 7)" in show.stdout
    assert "ctest::smoke" in show.stdout


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("sandbox")
def test_a_java_project_is_healed_by_the_reports_of_maven(
    suture: Suture, script: Script, tmp_path: Path, require: Require, java_environ: dict[str, str]
) -> None:
    project = copy_project("java", tmp_path / "project")
    path = "src/main/java/shop/Discount.java"
    right = make_reply(project, path, "percent / 10;", "percent / 100;")

    heal = suture(
        "heal", str(project), "--model", script(right), "--apply", "--json", *QUICK, env=java_environ
    )

    assert heal.returncode == 0, heal.stderr
    output = json.loads(heal.stdout)
    assert (output["outcome"], output["evidence"]) == ("healed", "report")
    show = suture("show", "last", env=java_environ)
    assert "src/test/java/shop/DiscountTest.java::tenPercentOff" in show.stdout
    assert "src/test/java/shop/DiscountTest.java::Inner > full" in show.stdout


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("sandbox")
def test_a_java_project_is_healed_by_the_reports_of_gradle(
    suture: Suture, script: Script, tmp_path: Path, require: Require
) -> None:
    junit = Path("/usr/share/maven-repo/junit/junit")
    require(
        "gradle", bool(shutil.which("gradle")) and junit.is_dir(), "Gradle or the system's JUnit is missing"
    )
    project = copy_project("gradle", tmp_path / "project")
    right = make_reply(project, "src/main/java/shop/Discount.java", "percent / 10;", "percent / 100;")

    heal = suture("heal", str(project), "--model", script(right), "--apply", "--json", *QUICK)

    assert heal.returncode == 0, heal.stderr
    output = json.loads(heal.stdout)
    assert (output["outcome"], output["evidence"]) == ("healed", "report")
    assert "DiscountTest.java::tenPercentOff" in suture("show", "last").stdout
