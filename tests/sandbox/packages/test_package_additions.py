"""Which new packages a candidate requests, and how they are written into the project's own manifest."""

from __future__ import annotations

import json

import pytest

from suture.sandbox.packages import PackagesRefused
from suture.sandbox.packages.additions.go_adder import GoAdder
from suture.sandbox.packages.additions.node_adder import NodeAdder
from suture.sandbox.packages.additions.python_adder import PythonAdder, insert_pins, is_pinned

PYPROJECT = """# The shop's own.
[project]
name = "shop"   # no other
dependencies = [
    "requests>=2",  # the web
    "click",
]

[tool.pytest.ini_options]
addopts = "-q"
"""
POETRY = '[tool.poetry]\nname = "shop"\n\n[tool.poetry.dependencies]\npython = "^3.11"\nrequests = "^2"\n'
PACKAGE_JSON = """{
    "name": "shop",
    "scripts": {
        "test": "node --test"
    },
    "dependencies": {
        "alpha": "^1.0.0",
        "omega": "^1.0.0"
    }
}
"""
GO_MOD = """module shop // ours

go 1.18

require (
\texample.org/alpha v1.0.0 // the first
\texample.org/omega v1.0.0
)

require example.org/gamma v1.0.0 // indirect
"""


def make_files(**texts: str) -> dict[str, bytes]:
    """Return files by name; `__` in a keyword stands for a dot."""
    return {name.replace("__", "."): text.encode() for name, text in texts.items()}


@pytest.mark.parametrize(
    "requested_files",
    [
        {"requirements.txt": "inflection>=0.5"},
        {"pyproject.toml": PYPROJECT.replace("click", "inflection>=0.5")},
    ],
)
def test_a_requirement_is_added_to_the_list_in_pyproject(requested_files: dict[str, str]) -> None:
    base = make_files(pyproject__toml=PYPROJECT)
    new = PythonAdder().find_requested(base, requested_files)
    assert new == ("inflection>=0.5",)
    written = PythonAdder().write_manifest(base, new)
    assert written == PYPROJECT.replace('    "click",\n', '    "click",\n    "inflection>=0.5",\n')


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('[project]\nname = "x"\ndependencies = []\n', '[project]\nname = "x"\ndependencies = ["alpha"]\n'),
        (
            '[project]\nname = "x"\ndependencies = ["b"]\n[tool.x]\ny = 1\n',
            '[project]\nname = "x"\ndependencies = ["b", "alpha"]\n[tool.x]\ny = 1\n',
        ),
        ('[project]\nname = "x"\n', '[project]\nname = "x"\ndependencies = ["alpha"]\n'),
        (POETRY, POETRY + 'alpha = "*"\n'),
    ],
)
def test_a_requirement_is_added_to_other_forms_of_pyproject(text: str, written: str) -> None:
    base = make_files(pyproject__toml=text)
    assert PythonAdder().find_requested(base, {"requirements.txt": "alpha\n"}) == ("alpha",)
    assert PythonAdder().write_manifest(base, ["alpha"]) == written


def test_a_requirement_is_added_to_requirements_txt() -> None:
    base = make_files(requirements__txt="# ours\nrequests>=2\r\n-e .", pyproject__toml="[tool.x]\ny = 1\n")
    requested_text = "# ours\nrequests>=3\n-e .\nalpha"

    assert PythonAdder().find_requested(base, {"requirements.txt": requested_text}) == ("alpha",)
    assert PythonAdder().write_manifest(base, ["alpha"]) == "# ours\nrequests>=2\r\n-e .\r\nalpha\r\n"
    assert PythonAdder().write_manifest(make_files(main__py=""), ["alpha"]) == "alpha\n"

    dynamic = '[project]\nname = "x"\ndynamic = ["dependencies"]\n'
    assert (
        PythonAdder().manifest_path(make_files(pyproject__toml=dynamic, setup__cfg="")) == "requirements.txt"
    )


@pytest.mark.parametrize(
    "line", ["-e ../x", "-r more.txt", "x @ https://example.org/x.whl", "--index-url http://x"]
)
def test_foreign_sources_are_refused(line: str) -> None:
    with pytest.raises(PackagesRefused):
        PythonAdder().find_requested(make_files(pyproject__toml=PYPROJECT), {"requirements.txt": line})


def test_a_manifest_with_hashes_is_not_changed() -> None:
    base = make_files(requirements__txt="requests==2.0 --hash=sha256:00\n")
    with pytest.raises(PackagesRefused, match="was generated from is unknown"):
        PythonAdder().write_manifest(base, ["alpha"])


@pytest.mark.parametrize(
    ("lock", "expected"),
    [
        ("alpha==1.0\nomega==1.0\n", "alpha==1.0\nbeta==1.0\nomega==1.0\n"),
        (
            "# by pip-compile\nalpha==1.0 \\\n    --hash=sha256:aa\n    # via -r requirements.in\n",
            "# by pip-compile\nalpha==1.0 \\\n    --hash=sha256:aa\n    # via -r requirements.in\n"
            "beta==1.0 \\\n    --hash=sha256:bb\n",
        ),
        ("omega==1.0 --hash=sha256:aa\n", "beta==1.0 --hash=sha256:bb\nomega==1.0 --hash=sha256:aa\n"),
    ],
)
def test_pins_are_inserted_in_the_style_of_the_lock(lock: str, expected: str) -> None:
    assert insert_pins(lock, ["beta==1.0 --hash=sha256:bb"]) == expected
    assert insert_pins(expected, ["beta==2.0 --hash=sha256:dd"]) == expected
    assert is_pinned(lock)
    assert not is_pinned(lock + "loose>=1\n")


def test_a_dependency_is_inserted_in_order_into_package_json() -> None:
    base = make_files(package__json=PACKAGE_JSON)
    requested_text = (
        '{"scripts": {"test": "true"}, "dependencies": {"alpha": "*", "beta": "^2"}, "jest": {"bail": 1}}'
    )
    new = NodeAdder().find_requested(base, {"package.json": requested_text})

    assert new == ("dependencies beta@^2",)

    written = NodeAdder().write_manifest(base, new)
    assert written == PACKAGE_JSON.replace('"^1.0.0",\n', '"^1.0.0",\n        "beta": "^2",\n', 1)

    with_zeta = NodeAdder().write_manifest(base, ["dependencies zeta@^2"])
    assert with_zeta == PACKAGE_JSON.replace('"omega": "^1.0.0"', '"omega": "^1.0.0",\n        "zeta": "^2"')

    with_dev_dependency = NodeAdder().write_manifest(base, ["devDependencies zeta@^2"])
    assert with_dev_dependency == PACKAGE_JSON.replace(
        "    }\n}", '    },\n    "devDependencies": {\n        "zeta": "^2"\n    }\n}'
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{"a": ["ü"]}', '{\n  "a": [\n    "ü"\n  ],\n  "dependencies": {\n    "beta": "^2"\n  }\n}'),
        ('{\n\t"dependencies": {}\n}\n', '{\n\t"dependencies": {\n\t\t"beta": "^2"\n\t}\n}\n'),
        (
            '{\r\n    "a": "\\ud83d"\r\n}',
            '{\r\n    "a": "\\ud83d",\r\n    "dependencies": {\r\n        "beta": "^2"\r\n    }\r\n}',
        ),
        ("{}\n", '{\n  "dependencies": {\n    "beta": "^2"\n  }\n}\n'),
    ],
)
def test_package_json_is_written_as_npm_writes_it(text: str, written: str) -> None:
    assert NodeAdder().write_manifest({"package.json": text.encode()}, ["dependencies beta@^2"]) == written


def test_unsorted_dependencies_stay_in_their_order() -> None:
    base = make_files(package__json='{"dependencies": {"omega": "*", "alpha": "*"}}')

    written = NodeAdder().write_manifest(base, ["dependencies beta@^2"])

    assert list(json.loads(written)["dependencies"]) == ["omega", "alpha", "beta"]


@pytest.mark.parametrize(
    "base",
    [
        make_files(index__js=""),
        make_files(package__json='{"workspaces": ["a"]}'),
        make_files(package__json="{}", **{"package-lock__json": '{"lockfileVersion": 1}'}),
        {**make_files(package__json="{}"), "npm-shrinkwrap.json": b"{}"},
    ],
)
def test_unsupported_node_projects_are_refused(base: dict[str, bytes]) -> None:
    with pytest.raises(PackagesRefused, match="without workspaces"):
        NodeAdder().write_manifest(base, ["dependencies zeta@^2"])


def test_npm_dependencies_outside_the_index_are_refused() -> None:
    requested_text = '{"dependencies": {"alpha": "git+https://example.org/x", "beta": "file:../x"}}'
    with pytest.raises(PackagesRefused, match="beta"):
        NodeAdder().find_requested(make_files(package__json=PACKAGE_JSON), {"package.json": requested_text})


def test_a_requirement_is_inserted_into_the_block_of_go_mod() -> None:
    base = make_files(go__mod=GO_MOD)
    requested_text = (
        "module evil\n\nreplace example.org/alpha => ../x\n\n"
        "require example.org/alpha v9.0.0\nrequire example.org/beta v1.1.0\n"
        "require example.org/delta v1.0.0 // indirect\n"
    )
    new = GoAdder().find_requested(base, {"go.mod": requested_text})

    assert new == ("example.org/beta v1.1.0",)

    written = GoAdder().write_manifest(base, new)
    assert written == GO_MOD.replace("first\n", "first\n\texample.org/beta v1.1.0\n")

    without_requirements = GoAdder().write_manifest(make_files(go__mod="module shop"), new)
    assert without_requirements == "module shop\n\nrequire example.org/beta v1.1.0\n"
    with pytest.raises(PackagesRefused):
        GoAdder().find_requested(base, {"go.mod": "require example.org/beta latest\n"})
    with pytest.raises(PackagesRefused, match="vendor"):
        GoAdder().write_manifest({**base, "vendor/modules.txt": b""}, new)
