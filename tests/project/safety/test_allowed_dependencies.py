"""New requirements: allowed packages, packages that need approval, and similar names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from suture.core.settings import SafetySettings
from suture.errors import UsageError
from suture.project.safety import Levels, resolve_levels, scan_change
from suture.project.safety.dependencies import find_similar_name, load_allowed
from suture.project.safety.manifests import find_requested_packages
from suture.project.safety.package_requirements import lowest_version


def requested_rules(path: str, text: str, levels: Levels | None = None) -> dict[str, str]:
    return {finding.code: finding.rule for finding in scan_change({}, {path: text}, levels or Levels())}


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
    assert requested_rules("requirements-dev.txt", text) == {
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
    ("versions", "lowest"),
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
def test_the_lowest_version_is_extracted(versions: str, lowest: str) -> None:
    assert lowest_version(versions) == lowest


def test_an_address_behind_blanks_or_in_another_file_is_found() -> None:
    text = f"flask{' ' * 2000}@ https://example.org/thing.whl\n-r https://example.org/more.txt\n"
    assert requested_rules("requirements.txt", text) == {
        "python: flask @ https://example.org/thing.whl": "dependency.outside-index",
        "python: -r https://example.org/more.txt": "dependency.outside-index",
    }


def test_all_tables_of_a_pyproject_are_read() -> None:
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
    rules = requested_rules("sub/pyproject.toml", text)

    names = {code.removeprefix("python: ").partition(" @ ")[0] for code in rules}

    assert names == {"builder-of-mine", "first", "second", "third", "fourth", "fifth"}
    assert rules["python: fifth @ git = https://example.org"] == "dependency.outside-index"


def test_packages_and_scripts_of_a_package_json_are_read() -> None:
    package = {
        "dependencies": {"express": "^4.19.2", "lodash": "^3.0.0", "expres": "1", "x": "user/repo"},
        "devDependencies": {"jest": "*", "y": "npm:left-pad@1", "z": "file:../z"},
        "scripts": {"test": "jest", "postinstall": "node steal.js"},
    }
    assert requested_rules("package.json", json.dumps(package, indent=1)) == {
        "javascript: lodash": "dependency.unlisted",
        "javascript: expres": "dependency.near-name",
        "javascript: x @ user/repo": "dependency.outside-index",
        "javascript: left-pad": "dependency.unlisted",
        "javascript: z @ file:../z": "dependency.outside-index",
        "javascript: postinstall": "dependency.install-script",
    }


def test_modules_of_a_go_mod_are_read() -> None:
    text = """module example.org/a
require github.com/google/uuid v1.6.0
require (
	github.com/gogle/uuid v1.0.0 // indirect
	example.org/b v0.1.0
)
replace example.org/c => ../c
"""
    assert requested_rules("go.mod", text) == {
        "go: github.com/gogle/uuid": "dependency.near-name",
        "go: example.org/b": "dependency.unlisted",
        "go: example.org/c @ ../c": "dependency.outside-index",
    }


def test_other_manifests_are_read_or_reported_as_unread() -> None:
    setup = """
from setuptools import setup
setup(name="a", install_requires=["flask", "left_pad"], extras_require={"x": ["thing @ git+https://e.org/t"]},
      tests_require=read("requirements.txt"))
"""
    assert requested_rules("setup.py", setup) == {
        "python: left-pad": "dependency.unlisted",
        "python: thing @ git+https://e.org/t": "dependency.outside-index",
        "python: setup.py": "dependency.unread",
    }

    cfg = "[options]\ninstall_requires =\n    click\n    first\n[options.extras_require]\nx = second\n"
    assert set(requested_rules("setup.cfg", cfg)) == {"python: first", "python: second"}

    pipfile = "[[source]]\nurl = 'https://e.org/s'\n[packages]\nfirst = {git = 'x'}\n[dev]\nsecond = '*'\n"
    assert requested_rules("Pipfile", pipfile) == {
        "python: https://e.org/s": "dependency.outside-index",
        "python: first @ git = x": "dependency.outside-index",
        "python: second": "dependency.unlisted",
    }

    overrides = {
        "express": {".": "^4.19.2", "first@1": "1"},
        "second": "npm:left-pad@1",
        "third": "file:../t",
    }
    package = {
        "overrides": overrides,
        "resolutions": {"a/**/fourth": "1"},
        "pnpm": {"overrides": {"fifth": "x/y"}},
    }
    assert requested_rules("package.json", json.dumps(package)) == {
        "javascript: first": "dependency.unlisted",
        "javascript: left-pad": "dependency.unlisted",
        "javascript: third @ file:../t": "dependency.outside-index",
        "javascript: fourth": "dependency.unlisted",
        "javascript: fifth @ x/y": "dependency.outside-index",
    }

    npmrc = "; ours\nregistry=https://e.org/\nignore-scripts=false\n"
    rules = requested_rules("sub/.npmrc", npmrc)
    assert rules == dict.fromkeys(
        ("javascript: registry=https://e.org/", "javascript: ignore-scripts=false"),
        "dependency.outside-index",
    )

    conf = "[global]\nindex-url = https://e.org/simple\n"
    assert set(requested_rules("pip.conf", conf).values()) == {"dependency.outside-index"}

    lines = "-r more-requirements.txt\n-c constraints.txt\n-r other.list\n--requirement=../requirements.txt\n"
    assert requested_rules("requirements.txt", lines) == dict.fromkeys(
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
def test_an_unreadable_manifest_needs_approval_with_the_reason(name: str, text: str, why: str) -> None:
    (finding,) = scan_change({}, {name: text}, Levels())
    assert (finding.rule, finding.level) == ("dependency.unread", "ask")
    assert why in finding.reason


def test_only_new_requirements_are_reported() -> None:
    before = {"requirements.txt": "mine>=1\n"}
    assert scan_change(before, {"requirements.txt": "mine>=2\nflask\n"}, Levels()) == ()
    (finding,) = scan_change(before, {"requirements.txt": "flask\nother\n"}, Levels())
    assert (finding.code, finding.level, finding.line) == ("python: other", "ask", 2)


def test_settings_choose_the_approval_and_the_allowlist(tmp_path: Path) -> None:
    allowlist = tmp_path / "own.toml"
    allowlist.write_text('[python]\nMy_Tool = ">=2"\n')
    allow_only = resolve_levels(SafetySettings(approve_deps="allowlist", allowed_deps=allowlist))
    findings = scan_change({}, {"requirements.txt": "my-tool==2.1\nmytool\nflask\n"}, allow_only)
    assert {(finding.code, finding.level, finding.rule) for finding in findings} == {
        ("python: mytool", "block", "dependency.near-name"),
        ("python: flask", "block", "dependency.unlisted"),
    }

    never_levels = resolve_levels(SafetySettings(approve_deps="never"))
    (finding,) = scan_change({}, {"requirements.txt": "flask\n"}, never_levels)
    assert finding.level == "block"

    without_rules = resolve_levels(SafetySettings(off=("dependency.*",)))
    assert scan_change({}, {"requirements.txt": "nobody-knows\n"}, without_rules) == ()


@pytest.mark.parametrize(
    "text",
    ["[python", "[rust]\na = ''\n", '[python]\na = "two"\n', "[python]\na = 3\n", "python = 1\n"],
)
def test_an_invalid_allowlist_is_a_usage_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(UsageError, match=r"own\.toml"):
        load_allowed(tmp_path / "own.toml")
    with pytest.raises(UsageError, match="is no file"):
        load_allowed(tmp_path / "none.toml")


def test_names_that_differ_by_a_letter_or_two_are_similar() -> None:
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
def test_a_hostile_manifest_is_read_completely(name: str, text: str) -> None:
    assert len(find_requested_packages(name, text)) <= 500
    assert len(scan_change({}, {name: text}, Levels())) <= 200
