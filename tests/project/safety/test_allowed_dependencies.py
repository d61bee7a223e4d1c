"""Packages that new code requires: allowed ones, questions to the user, and similar names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suture.core.settings import SafetySettings
from suture.errors import UsageError
from suture.project.safety import Levels, resolve_levels, scan_change
from suture.project.safety.dependencies import find_similar_name, load_allowed
from suture.project.safety.manifests import find_requested_packages, lowest_version


def asked_of(path: str, text: str, levels: Levels | None = None) -> dict[str, str]:
    return {one.code: one.rule for one in scan_change({}, {path: text}, levels or Levels())}


def test_requirements_are_read_line_by_line() -> None:
    text = """# ours
Flask>=2.3,<4  # the web
requests[socks]==2.32.0 ; python_version > "3.8"
-r more.txt
reqeusts
left_pad==1
flask==0.5
thing @ https://example.org/thing.whl
git+https://example.org/a.git
--extra-index-url https://example.org/simple
./local
"""
    assert asked_of("requirements-dev.txt", text) == {
        "python: -r more.txt": "dependency.unread",
        "python: reqeusts": "dependency.near-name",
        "python: left-pad": "dependency.unlisted",
        "python: flask": "dependency.unlisted",
        "python: thing @ https://example.org/thing.whl": "dependency.outside-index",
        "python: git+https://example.org/a.git": "dependency.outside-index",
        "python: --extra-index-url https://example.org/simple": "dependency.outside-index",
        "python: ./local": "dependency.outside-index",
    }


@pytest.mark.parametrize(
    ("versions", "least"),
    [
        ("", ""),
        ("*", ""),
        (">=2,<4", "2"),
        (" (>= 2)", "2"),
        ("~=2.2", "2.2"),
        ("<2", "0"),
        ("!=9,==0.12", "0.12"),
        (" --hash=sha256:99 ==0.1", "0.1"),
        ("==3,==0.2", "0.2"),
        ("^1.2.3", "1.2.3"),
        ("1.x", "1"),
        ("^2 || ^1", "1"),
        ("2 || <1", "0"),
        ("1.2 - 2", "1.2"),
    ],
)
def test_the_lowest_version_is_what_counts(versions: str, least: str) -> None:
    assert lowest_version(versions) == least


def test_an_address_hides_neither_behind_blanks_nor_in_another_file() -> None:
    text = f"flask{' ' * 2000}@ https://example.org/thing.whl\n-r https://example.org/more.txt\n"
    assert asked_of("requirements.txt", text) == {
        "python: flask": "dependency.outside-index",
        "python: -r https://example.org/more.txt": "dependency.outside-index",
    }


def test_a_pyproject_asks_in_all_its_tables() -> None:
    text = """
[build-system]
requires = ["hatchling", "builder-of-mine"]
[project]
dependencies = ["click", "first"]
[project.optional-dependencies]
web = ["second", "flask"]
[dependency-groups]
dev = ["third", {include-group = "more"}]
[tool.poetry.dependencies]
python = "^3.11"
fourth = "^1"
fifth = {git = "https://example.org"}
"""
    found = asked_of("sub/pyproject.toml", text)
    names = {code.removeprefix("python: ") for code in found}
    assert names == {"builder-of-mine", "first", "second", "third", "fourth", "fifth"}
    assert found["python: fifth"] == "dependency.outside-index"


def test_a_package_json_asks_for_packages_and_scripts() -> None:
    package = {
        "dependencies": {"express": "^4.19.2", "lodash": "^3.0.0", "expres": "1", "x": "user/repo"},
        "devDependencies": {"jest": "*", "y": "npm:left-pad@1", "z": "file:../z"},
        "scripts": {"test": "jest", "postinstall": "node steal.js"},
    }
    assert asked_of("package.json", json.dumps(package, indent=1)) == {
        "javascript: lodash": "dependency.unlisted",
        "javascript: expres": "dependency.near-name",
        "javascript: x": "dependency.outside-index",
        "javascript: left-pad": "dependency.unlisted",
        "javascript: z": "dependency.outside-index",
        "javascript: postinstall": "dependency.install-script",
    }


def test_a_go_mod_asks_for_modules() -> None:
    text = """module example.org/a
require github.com/google/uuid v1.6.0
require (
	github.com/gogle/uuid v1.0.0 // indirect
	example.org/b v0.1.0
)
replace example.org/c => ../c
"""
    assert asked_of("go.mod", text) == {
        "go: github.com/gogle/uuid": "dependency.near-name",
        "go: example.org/b": "dependency.unlisted",
        "go: example.org/c": "dependency.outside-index",
    }


def test_every_other_place_that_asks_is_read_or_named() -> None:
    setup = """
from setuptools import setup
setup(name="a", install_requires=["flask", "left_pad"], extras_require={"x": ["thing @ git+https://e.org/t"]},
      tests_require=read("requirements.txt"))
"""
    assert asked_of("setup.py", setup) == {
        "python: left-pad": "dependency.unlisted",
        "python: thing @ git+https://e.org/t": "dependency.outside-index",
        "python: setup.py": "dependency.unread",
    }
    cfg = "[options]\ninstall_requires =\n    click\n    first\n[options.extras_require]\nx = second\n"
    assert set(asked_of("setup.cfg", cfg)) == {"python: first", "python: second"}
    pipfile = "[[source]]\nurl = 'https://e.org/s'\n[packages]\nfirst = {git = 'x'}\n[dev]\nsecond = '*'\n"
    assert asked_of("Pipfile", pipfile) == {
        "python: https://e.org/s": "dependency.outside-index",
        "python: first": "dependency.outside-index",
        "python: second": "dependency.unlisted",
    }
    over = {"express": {".": "^4.19.2", "first@1": "1"}, "second": "npm:left-pad@1", "third": "file:../t"}
    package = {
        "overrides": over,
        "resolutions": {"a/**/fourth": "1"},
        "pnpm": {"overrides": {"fifth": "x/y"}},
    }
    assert asked_of("package.json", json.dumps(package)) == {
        "javascript: first": "dependency.unlisted",
        "javascript: left-pad": "dependency.unlisted",
        "javascript: third": "dependency.outside-index",
        "javascript: fourth": "dependency.unlisted",
        "javascript: fifth": "dependency.outside-index",
    }
    npmrc = "; ours\nregistry=https://e.org/\nignore-scripts=false\n"
    rules = asked_of("sub/.npmrc", npmrc)
    assert rules == dict.fromkeys(
        ("javascript: registry=https://e.org/", "javascript: ignore-scripts=false"),
        "dependency.outside-index",
    )
    conf = "[global]\nindex-url = https://e.org/simple\n"
    assert set(asked_of("pip.conf", conf).values()) == {"dependency.outside-index"}
    lines = "-r more-requirements.txt\n-c constraints.txt\n-r other.list\n--requirement=../requirements.txt\n"
    assert asked_of("requirements.txt", lines) == dict.fromkeys(
        ("python: -r other.list", "python: --requirement=../requirements.txt"), "dependency.unread"
    )


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("requirements.txt", "flask\n" * 40_000, "more than 200,000 characters"),
        ("package.json", '{"a": "' + "x" * 200_000 + '"}', "more than 200,000 characters"),
        ("requirements.txt", "flask\n" * 501, "more than 500 packages"),
        ("package.json", "{", "not in the format of such a file"),
        ("Pipfile", "[packages", "not in the format of such a file"),
        ("setup.py", "def", "not in the format of such a file"),
    ],
)
def test_an_unreadable_requirement_is_a_question_with_the_reason(name: str, text: str, why: str) -> None:
    (found,) = scan_change({}, {name: text}, Levels())
    assert (found.rule, found.level) in (("dependency.unread", "ask"),)
    assert why in found.reason


def test_an_existing_requirement_is_not_new_but_its_replacement_is() -> None:
    before = {"requirements.txt": "mine>=1\n"}
    assert scan_change(before, {"requirements.txt": "mine>=2\nflask\n"}, Levels()) == ()
    (found,) = scan_change(before, {"requirements.txt": "flask\nother\n"}, Levels())
    assert (found.code, found.level, found.line) == ("python: other", "ask", 2)


def test_settings_say_who_approves_and_by_which_list(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[python]\nMy_Tool = ">=2"\n')
    only = resolve_levels(SafetySettings(approve_deps="allowlist", allowed_deps=own))
    found = scan_change({}, {"requirements.txt": "my-tool==2.1\nmytool\nflask\n"}, only)
    assert {(one.code, one.level, one.rule) for one in found} == {
        ("python: mytool", "block", "dependency.near-name"),
        ("python: flask", "block", "dependency.unlisted"),
    }
    never = resolve_levels(SafetySettings(approve_deps="never"))
    (found_now,) = scan_change({}, {"requirements.txt": "flask\n"}, never)
    assert found_now.level == "block"
    off = resolve_levels(SafetySettings(off=("dependency.*",)))
    assert scan_change({}, {"requirements.txt": "nobody-knows\n"}, off) == ()


@pytest.mark.parametrize(
    "text",
    ["[python", "[rust]\na = ''\n", '[python]\na = "two"\n', "[python]\na = 3\n", "python = 1\n"],
)
def test_a_list_that_is_none_is_an_error_with_a_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(UsageError, match=r"own\.toml"):
        load_allowed(tmp_path / "own.toml")
    with pytest.raises(UsageError, match="is no file"):
        load_allowed(tmp_path / "none.toml")


def test_names_are_near_where_a_letter_or_two_differ() -> None:
    known = dict.fromkeys(("requests", "python-dateutil", "flask", "pip", "ws"), "")
    assert find_similar_name("requsets", known) == "requests"
    assert find_similar_name("pythondateutil", known) == "python-dateutil"
    assert find_similar_name("flaskk", known) == "flask"
    assert find_similar_name("falsk", known) == "flask"
    assert find_similar_name("pop", known) == ""
    assert find_similar_name("wx", known) == ""
    assert find_similar_name("flasher", known) == ""


@pytest.mark.heavy
@pytest.mark.parametrize(
    "name",
    ["requirements.txt", "pyproject.toml", "package.json", "go.mod", "setup.py", "setup.cfg", "Pipfile"],
)
@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "[" * 50_000, "\0", "{}", "a\n" * 90_000, "//" * 50_000, "[project]\ndependencies = 3\n"],
)
def test_a_hostile_manifest_is_read_to_its_end(name: str, text: str) -> None:
    assert len(find_requested_packages(name, text)) <= 500
    assert len(scan_change({}, {name: text}, Levels())) <= 200
