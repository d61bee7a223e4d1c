"""Each skeleton is a program whose tests pass with its example, and fail for one reason without it."""

from __future__ import annotations

import importlib.util
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repos.runner_trials import install_package
from requirements import Require
from suture.core.records import Language, ProjectKind
from suture.loop.intake.project_task import SAMPLE_PATH, SAMPLE_ROWS
from suture.project.languages import LANGUAGES
from suture.project.skeletons import Skeleton, find_skeleton

KINDS: tuple[ProjectKind, ...] = ("cli_tool", "web_app", "data_pipeline", "library")
# TypeScript needs `tsx`, which npm fetches.
MARKS: dict[Language, tuple[pytest.MarkDecorator, ...]] = {
    "python": (),
    "javascript": (),
    "typescript": (pytest.mark.heavy,),
    "go": (),
}
SKELETONS = tuple(
    pytest.param((language, kind), marks=marks, id=f"{language}-{kind}")
    for language, marks in MARKS.items()
    for kind in KINDS
)
SLOW_CLIENT_TEST = """package main

import (
	"io"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

func TestASlowRequestDoesNotStopOthers(t *testing.T) {
	app := newApp(openTestStore(t, filepath.Join(t.TempDir(), "test.json")))
	body, client := io.Pipe()
	go app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", body))
	if _, err := client.Write([]byte("{")); err != nil { // now the request is being read
		t.Fatal(err)
	}
	app.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if server := newServer("", app); server.ReadHeaderTimeout == 0 || server.ReadTimeout == 0 {
		t.Error("a slow client keeps its connection for ever")
	}
}
"""


@pytest.fixture(scope="module")
def tsx(tmp_path_factory: pytest.TempPathFactory, require: Require) -> Path:
    """The program `tsx`, installed in a folder of its own."""
    folder = tmp_path_factory.mktemp("tsx")
    require("tsx", install_package(folder, "tsx@4"), "npm could not fetch it")
    return folder / "node_modules" / ".bin" / "tsx"


@pytest.fixture(params=SKELETONS)
def skeleton(
    request: pytest.FixtureRequest, tmp_path: Path, require: Require, monkeypatch: pytest.MonkeyPatch
) -> Skeleton:
    """Each skeleton, written to a folder with the files that every new project has."""
    language, kind = request.param
    if (language, kind) == ("python", "web_app"):
        require("flask", importlib.util.find_spec("flask") is not None, "it is not installed beside Suture")
    if language == "typescript":
        programs = request.getfixturevalue("tsx").parent
        monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    elif language != "python":
        program = {"javascript": "node", "go": "go"}[language]
        require(program, shutil.which(program) is not None, "it is not on PATH")
    found = find_skeleton(language, kind, name="demo", sample=SAMPLE_PATH)
    assert found is not None
    manifest = LANGUAGES[language].layout.manifest(kind, "demo")
    for path, text in {**manifest, **found.files, SAMPLE_PATH: SAMPLE_ROWS}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return found


def run_tests(skeleton: Skeleton, folder: Path) -> subprocess.CompletedProcess[str]:
    python = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    commands = {
        "py": python,
        "js": ["node", "--test"],
        "ts": ["tsx", "--test", "test/demo.test.ts"],
        "go": ["go", "test", "./..."],
    }
    command = commands[skeleton.file.rpartition(".")[2]]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def run_program(skeleton: Skeleton, folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    commands = {
        "py": [sys.executable, "-m", "demo"],
        "js": ["node", "src/index.js"],
        "ts": ["tsx", "src/index.ts"],
        "go": ["go", "run", "."],
    }
    command = [*commands[skeleton.file.rpartition(".")[2]], *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_its_tests_pass_with_the_example(skeleton: Skeleton, tmp_path: Path) -> None:
    (tmp_path / skeleton.file).write_text(skeleton.example)

    completed = run_tests(skeleton, tmp_path)

    assert completed.returncode == 0, completed.stdout


def test_its_tests_fail_with_an_empty_file(skeleton: Skeleton, tmp_path: Path) -> None:
    completed = run_tests(skeleton, tmp_path)

    assert completed.returncode == 1, completed.stdout
    assert "ModuleNotFoundError" not in completed.stdout


def test_its_tests_leave_the_users_data_alone(
    skeleton: Skeleton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / skeleton.file).write_text(skeleton.example)
    own_data = tmp_path / "own.json"
    own_data.write_text("{}")
    monkeypatch.setenv("DEMO_FILE", str(own_data))
    monkeypatch.setenv("DATABASE", str(own_data))

    completed = run_tests(skeleton, tmp_path)

    assert completed.returncode == 0, completed.stdout
    assert own_data.read_text() == "{}"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.csv",
            "x,y\n01234,0049170\n1_0,+49170\n-1.5,1e3\n0,.5\n",
            ["01234", "0049170", "1_0", "+49170", -1.5, 1000.0, 0, 0.5],
        ),
        ("a.csv", "x,y\na\u2028b,1\n", ["a\u2028b", 1]),
        ("a.jsonl", '{"x": "a\u2028b"}\n\n{"x": 1}\n', ["a\u2028b", 1]),
    ],
)
def test_the_cells_of_a_table_keep_what_they_hold(
    name: str, text: str, expected: list[object], tmp_path: Path
) -> None:
    skeleton = find_skeleton("python", "data_pipeline", name="demo")
    assert skeleton is not None
    (tmp_path / "tables.py").write_text(skeleton.files["demo/tables.py"])
    (tmp_path / name).write_text(text, encoding="utf-8")

    rows = runpy.run_path(str(tmp_path / "tables.py"))["read_rows"](str(tmp_path / name))

    assert [cell for row in rows for cell in row.values()] == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("An API for books", True),
        ("a REST service", True),
        ("People post messages, and the rest of them are shown as HTML pages", False),
        ("A website to get the weather", False),
    ],
)
def test_the_rest_skeleton_is_not_for_every_web_page(statement: str, expected: bool) -> None:
    skeleton = find_skeleton("python", "web_app", name="demo")
    assert skeleton is not None

    assert skeleton.suits(statement) is expected


def test_no_placeholder_is_left(skeleton: Skeleton) -> None:
    texts = [*skeleton.files, *skeleton.files.values(), skeleton.rules, skeleton.readme, skeleton.example]

    assert not [text for text in texts if "project_name" in text.lower() or "sample_path" in text]


@pytest.mark.parametrize(
    ("language", "kind", "honest_code"),
    [
        ("python", "cli_tool", 'def add(name):\n    """Add a plant to the garden."""\n'),
        ("python", "web_app", "@dataclass\nclass Plant:\n    name: str\n    watered: bool = False\n"),
        ("python", "library", 'def water(plant):\n    """Water a plant."""\n'),
        ("python", "data_pipeline", "def process(rows):\n    return [row['tax'] for row in rows]\n"),
        ("javascript", "cli_tool", 'module.exports = { add: { help: "Add a plant.", run() {} } };\n'),
        ("javascript", "web_app", "module.exports = { plants: { fields: { name: String } } };\n"),
        ("typescript", "library", "export function water(plant: string): void {}\n"),
        ("typescript", "data_pipeline", "export const processRows = (rows) => rows.map((row) => row.tax);\n"),
        ("go", "web_app", 'type Plant struct {\n\tName string `json:"name"`\n}\n'),
        ("go", "library", "func Water(plant string) {}\n"),
    ],
)
def test_a_reply_about_the_example_is_recognised(
    language: Language, kind: ProjectKind, honest_code: str
) -> None:
    skeleton = find_skeleton(language, kind, name="demo")
    assert skeleton is not None

    assert skeleton.repeats_example(skeleton.example, "A tool to track my garden")
    assert not skeleton.repeats_example(honest_code, "A tool to track my garden")
    assert not skeleton.repeats_example(skeleton.example, skeleton.example_task)


def test_a_typescript_skeleton_is_the_javascript_one_with_types() -> None:
    javascript, typescript = (
        find_skeleton(language, "web_app", name="demo") for language in ("javascript", "typescript")
    )
    assert javascript is not None
    assert typescript is not None

    assert {path.replace(".js", ".ts") for path in javascript.files} == {*typescript.files}
    assert "constructor(path)" in javascript.files["src/store.js"]
    assert "constructor(path: string)" in typescript.files["src/store.ts"]
    assert not [text for text in (*javascript.files.values(), *typescript.files.values()) if "/*:" in text]


@pytest.mark.parametrize("skeleton", [("python", "web_app")], indirect=True)
def test_the_tests_of_a_web_application_show_where_it_raises(skeleton: Skeleton, tmp_path: Path) -> None:
    faulty = skeleton.example.replace("if self.height < 0:", "if self.depth < 0:")
    (tmp_path / skeleton.file).write_text(faulty)

    completed = run_tests(skeleton, tmp_path)

    assert completed.returncode == 1
    assert "AttributeError: 'Plant' object has no attribute 'depth'" in completed.stdout


@pytest.mark.parametrize(
    "skeleton",
    [pytest.param((language, "cli_tool"), marks=marks) for language, marks in MARKS.items()],
    indirect=True,
)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["measure", "Ash", "-5.5"], "Ash: -5.5 cm\n"),
        (["-.5", "-5.5"], "-.5: -5.5 cm\n"),
        (["measure", "--", "--ash", "-5.5"], "--ash: -5.5 cm\n"),
    ],
)
def test_a_command_takes_negative_numbers_and_words_after_two_dashes(
    skeleton: Skeleton, tmp_path: Path, words: list[str], expected: str
) -> None:
    example = skeleton.example.partition("def tallest")[0]  # so that each language has a single command
    (tmp_path / skeleton.file).write_text(example)

    completed = run_program(skeleton, tmp_path, words)

    assert completed.stdout == expected, completed.stderr


@pytest.mark.parametrize("skeleton", [("go", "cli_tool")], indirect=True)
@pytest.mark.parametrize(
    "words",
    [
        ["measure", "--unit=cm", "Ash", "-5.5"],
        ["measure", "--unit", "-1", "--", "Ash", "-5.5"],
        ["measure", "Ash", "-5.5", "--unit=cm"],
    ],
)
def test_options_of_a_go_program_stand_between_arguments(
    skeleton: Skeleton, tmp_path: Path, words: list[str]
) -> None:
    example = skeleton.example.replace("Run:", 'Options: Options{"unit": "m"},\nRun:')
    (tmp_path / skeleton.file).write_text(example)

    assert run_program(skeleton, tmp_path, words).stdout == "Ash: -5.5 cm\n"


@pytest.mark.parametrize("skeleton", [("go", "web_app")], indirect=True)
def test_a_slow_client_does_not_stop_a_go_server(skeleton: Skeleton, tmp_path: Path) -> None:
    (tmp_path / "slow_test.go").write_text(SLOW_CLIENT_TEST)
    command = ["go", "test", "-timeout", "10s", "-run", "TestASlow", "."]

    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert completed.returncode == 0, completed.stdout


@pytest.mark.parametrize(
    ("skeleton", "default", "empty_default"),
    [
        (("javascript", "web_app"), "default: 0", "required: false"),
        (("javascript", "web_app"), "default: 0", "default: null"),
        pytest.param(("typescript", "web_app"), "default: 0", "required: false", marks=MARKS["typescript"]),
        (("python", "web_app"), "height: float = 0.0", "height: float = None"),
    ],
    indirect=["skeleton"],
)
def test_an_entry_with_an_empty_field_can_be_changed(
    skeleton: Skeleton, tmp_path: Path, default: str, empty_default: str
) -> None:
    assert default in skeleton.example
    example = skeleton.example.replace(default, empty_default).replace(
        "self.height < 0", "(self.height or 0) < 0"
    )
    (tmp_path / skeleton.file).write_text(example)

    completed = run_tests(skeleton, tmp_path)

    assert completed.returncode == 0, completed.stdout
