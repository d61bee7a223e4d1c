"""No text of a ledger, a project or a certificate controls the terminal, whichever command prints it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interfaces.cli.conftest import Cli
from interfaces.cli.real_terminal import Terminal
from suture.core.ledger import RawPayload, RunFolder
from suture.core.ledger.event import decode_event
from suture.core.records import Candidate, Task, encode_record

HOSTILE = (
    "\x1b]52;c;cHduZWQ=\x07\x1b]8;;http://x.example\x1b\\\x9b2J\x1b[2J"
    "\r\x08\u202e\u2066\u2028\x85 a\nverified: all"
)
"""Sequences for clipboard, link, erased screen, overwritten line, reversed text and every line ending."""
SAMPLE_LEDGERS = Path(__file__).parents[2] / "core" / "ledger" / "samples"
HASH_FIELDS = ("blob", "verdict", "settings", "task", "result")
RUN_ID = "20260101-000000000-abcdef"


def assert_harmless(text: str, *, at_a_terminal: bool = False) -> None:
    """Assert that a text contains no control character and no forged line."""
    if at_a_terminal:
        text = text.replace("\r\n", "\n")
    assert not [c for c in text if not (c.isprintable() or c in "\n\t")]
    assert not [line for line in text.split("\n") if line.startswith("verified: all")]


def text_paths(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each text in a JSON value, as a tuple of keys and indices."""
    if isinstance(value, str):
        yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from ((key, *rest) for rest in text_paths(part))


def plant_text(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a copy of a JSON value with hostile text at one path."""
    copy = json.loads(json.dumps(value))
    *parent_keys, last = path
    part = copy
    for key in parent_keys:
        part = part[key]
    part[last] = HOSTILE + (part[last] if len(part[last]) < 200 else "")
    return copy


def is_valid_event(event: Any) -> bool:
    """Return whether Suture can decode an event."""
    try:
        parsed = decode_event(event, RUN_ID)
    except ValueError:
        return False
    return parsed is not None and not isinstance(parsed.payload, RawPayload)


def make_hostile_event(event: dict[str, Any]) -> dict[str, Any]:
    """Put hostile text into an event at every path where the event remains valid."""
    for path in list(text_paths(event["data"])):
        if path[-1] in HASH_FIELDS:
            continue  # a missing blob would hide the hostile text inside it
        changed = {**event, "data": plant_text(event["data"], path)}
        event = changed if is_valid_event(changed) else event
    return event


def write_hostile_run(home: Path, sample: str) -> RunFolder:
    """Write a run whose texts are all hostile, based on a sample ledger."""
    folder = RunFolder(home / "runs" / RUN_ID)
    folder.path.mkdir(parents=True)
    text = (SAMPLE_LEDGERS / f"{sample}.jsonl").read_text("utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    code = folder.save_json({"files": {f"a{HOSTILE}.py": HOSTILE}, "origin": "sample", "label": HOSTILE})
    for event in events:
        if event["kind"] == "candidate.proposed":
            event["data"]["blob"] = code
    unknown_event = {"seq": len(events), "time_s": 1.0, "kind": f"odd{HOSTILE}", "data": {HOSTILE: HOSTILE}}
    hostile_events = [*map(make_hostile_event, events), unknown_event]
    folder.ledger_path.write_text("".join(json.dumps(event) + "\n" for event in hostile_events), "ascii")
    (folder.path / "certificate.json").write_text(json.dumps({"format": HOSTILE, HOSTILE: 1}), "ascii")
    return folder


@pytest.fixture(params=["write", "heal"])
def run(request: pytest.FixtureRequest, home: Path) -> RunFolder:
    """Write a hostile run of each kind."""
    return write_hostile_run(home, request.param)


COMMANDS = (
    ("show",),
    ("show", "--list"),
    ("show", "--faults"),
    ("show", "--at", "1"),
    ("show", "--json"),
    ("history",),
    ("history", "--json"),
    ("replay",),
    ("resume",),
    ("review",),
    ("fork", "--at", "1"),
    ("undo", RUN_ID),
    ("quality",),
    ("verify", RUN_ID),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_prints_control_characters_of_a_ledger(
    command: tuple[str, ...], run: RunFolder, cli: Cli
) -> None:
    result = cli(*command)
    assert "this is a fault in Suture" not in result.output, result.output
    assert_harmless(result.output)


def test_show_prints_hostile_text_escaped_and_on_its_line(run: RunFolder, cli: Cli) -> None:
    output = cli("show").stdout
    assert "\\x1b]52;c;cHduZWQ=\\x07" in output
    assert "\\nverified: all" in output


@pytest.mark.parametrize("field", ["seq", "time_s", "kind", "data", "version"])
def test_an_error_that_quotes_a_damaged_line_is_escaped(field: str, run: RunFolder, cli: Cli) -> None:
    event = {"seq": 0, "time_s": 1.0, "kind": "run.started", "data": {}, field: [HOSTILE]}
    run.ledger_path.write_text(json.dumps(event) + "\n", "ascii")
    for command in COMMANDS:
        result = cli(*command)
        assert "this is a fault in Suture" not in result.output, result.output
        assert_harmless(result.output)


@pytest.mark.parametrize("command", ["history", "undo", "show --list"])
def test_a_damaged_run_does_not_hide_other_runs(command: str, home: Path, cli: Cli) -> None:
    write_hostile_run(home, "write")
    damaged = home / "runs" / f"{RUN_ID}-damaged" / "ledger.jsonl"
    damaged.parent.mkdir()
    damaged.write_text('{"seq":"x","time_s":1.0,"kind":"run.started"}\n')
    result = cli(*command.split())
    if command == "undo":
        assert "there is nothing to undo" in result.output
    else:
        assert result.exit_code == 0
        assert f"{RUN_ID}-damaged"[-6:] in result.output
        assert RUN_ID[-6:] in result.output


@pytest.mark.parametrize("command", ["show", "replay", "verify", "undo", "quality"])
def test_an_impossible_file_name_is_reported_as_an_unknown_run(command: str, home: Path, cli: Cli) -> None:
    write_hostile_run(home, "write")
    for name in ("a" * 5000, "a\0b"):
        result = cli(command, name)
        assert (result.exit_code, "no run called" in result.output) == (2, True), result.output


@pytest.mark.parametrize("command", [("heal",), ("trust",), ("config", "show", "--project")])
def test_an_impossible_project_name_is_a_usage_error(command: tuple[str, ...], cli: Cli) -> None:
    result = cli(*command, "a" * 5000)
    assert result.exit_code == 2, result.output


@pytest.mark.parametrize("state", [[1], "x", {"x": 1}])
def test_a_fork_without_its_state_is_reported_as_damaged(state: object, home: Path, cli: Cli) -> None:
    run = write_hostile_run(home, "write")
    first, *rest = run.ledger_path.read_text("ascii").splitlines()
    started = json.loads(first)
    started["data"] |= {
        "fork": {"run": "x", "step": 1, "state": run.save_json(state), "events": 1},
        "task": run.save_record(Task(statement="a", kind="write")),
        "settings": run.save_json({}),
    }
    run.ledger_path.write_text("\n".join([json.dumps(started), *rest, ""]), "ascii")

    result = cli("replay", RUN_ID)

    assert (result.exit_code, "is not a state of a run" in result.output) == (6, True), result.output


def test_undo_refuses_a_file_whose_old_content_is_not_recorded(home: Path, cli: Cli, tmp_path: Path) -> None:
    run = write_hostile_run(home, "heal")
    applied = {"root": str(tmp_path), "files": ["../elsewhere"], "undo": ""}
    events = [json.loads(line) for line in run.ledger_path.read_text("ascii").splitlines()]
    candidate = encode_record(Candidate(files={"a.py": "x"}, origin="user"))
    run_result = {
        "run_id": RUN_ID,
        "outcome": "healed",
        "reason": {"code": "checks_pass"},
        "candidate": candidate,
    }
    for event in events:
        if event["kind"] == "run.started":
            event["data"]["task"] = run.save_record(Task(statement="a", kind="write"))
        if event["kind"] == "run.finished":
            event["data"]["result"] = run.save_json(run_result)
    events.append({"seq": 900, "time_s": 1.0, "kind": "tree.applied", "data": applied})
    run.ledger_path.write_text("".join(json.dumps(event) + "\n" for event in events), "ascii")

    result = cli("undo", RUN_ID)

    assert (result.exit_code, "does not say what '../elsewhere' was" in result.output) == (6, True), (
        result.output
    )


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "9" * 400])
@pytest.mark.parametrize("field", ["money", "tokens"])
def test_an_invalid_number_in_a_budget_event_is_reported_as_damage(
    field: str, number: str, home: Path, cli: Cli
) -> None:
    run = write_hostile_run(home, "write")
    prefix = '{"seq":99,"time_s":1.0,"kind":"budget.reserved","data":{"what":"a","attempts":1,"tokens":1'
    fields = {"money": "0.0", field: number}
    numbers = "".join(f',"{name}":{value}' for name, value in fields.items())
    with run.ledger_path.open("a") as ledger:
        ledger.write(f"{prefix}{numbers}}}}}\n")

    result = cli("show", RUN_ID)

    assert (result.exit_code, "is damaged" in result.output) == (6, True), result.output


@pytest.mark.parametrize("option", ["--diff", "--full-diff"])
def test_a_diff_that_is_a_symbolic_link_is_not_shown(
    option: str, home: Path, cli: Cli, tmp_path: Path
) -> None:
    run = write_hostile_run(home, "write")
    (tmp_path / "key").write_text("PRIVATE")
    for name in ("result.diff", "full.diff"):
        (run.path / name).symlink_to(tmp_path / "key")

    result = cli("show", option)

    assert result.exit_code == 6
    assert "PRIVATE" not in result.output


def make_hostile_project(folder: Path) -> Path:
    """Create a project whose name and settings are hostile."""
    project = folder / f"project{HOSTILE.replace('/', '')}"
    project.mkdir()
    (project / "suture.toml").write_text(f"[model]\nname = {json.dumps('openai:' + HOSTILE)}\n", "utf-8")
    (project / "test_a.py").write_text("def test_a(): assert 0\n", "utf-8")
    return project


@pytest.mark.parametrize(
    "command",
    [
        ("trust",),
        ("trust", "--yes"),
        ("trust", "--revoke"),
        ("trust", "--list"),
        ("config", "show", "--project"),
        ("prompts", "list", "--project"),
        ("heal",),
    ],
    ids=" ".join,
)
def test_no_command_prints_control_characters_of_a_project(
    command: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    project = make_hostile_project(tmp_path)
    cli("trust", str(project), "--yes")
    result = cli(*command) if "--list" in command else cli(*command, str(project))
    assert "this is a fault in Suture" not in result.output, result.output
    assert_harmless(result.output)


@pytest.mark.parametrize(
    "arguments",
    [
        (HOSTILE,),
        ("show", HOSTILE),
        ("show", f"--{HOSTILE}"),
        ("show", "--at", HOSTILE),
        ("show", "--set", HOSTILE),
        ("show", "--set", f"model.name={HOSTILE}"),
        ("verify", HOSTILE),
        ("heal", HOSTILE),
        ("run", "--test", HOSTILE),
        ("doctor", "--model", HOSTILE),
    ],
    ids=lambda arguments: repr(arguments[:2])[:20],
)
def test_no_command_prints_control_characters_of_its_arguments(arguments: tuple[str, ...], cli: Cli) -> None:
    assert_harmless(cli(*arguments).output)


STRAY_OUTPUT = {
    "a warning": "import warnings; warnings.warn(TEXT)",
    "a log record": "import logging; logging.getLogger('somebody.else').warning('%s', TEXT)",
    "an error that nobody caught": "raise ValueError(TEXT)",
    "a thread's error": "from threading import Thread; t = Thread(target=int, args=[TEXT]); t.start()",
    "an error while something is freed": "class A:\n  def __del__(self): raise ValueError(TEXT)\nA()",
}


@pytest.mark.parametrize("source", STRAY_OUTPUT)
def test_output_of_libraries_and_threads_is_escaped(source: str) -> None:
    module = "suture.interfaces.cli.terminal.terminal_output"
    program = f"from {module} import escape_library_output as a\na()\nTEXT = {HOSTILE!r}\n"

    result = subprocess.run(
        [sys.executable, "-c", program + STRAY_OUTPUT[source]], capture_output=True, check=False
    )

    assert b"cHduZWQ=" in result.stderr
    assert not [c for c in result.stderr.decode() if not (c.isprintable() or c in "\n\t")]


@pytest.mark.parametrize("command", [("show",), ("show", "--list"), ("replay",), ("resume",)], ids=" ".join)
def test_control_characters_of_a_ledger_do_not_reach_a_real_terminal(
    command: tuple[str, ...], home: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    write_hostile_run(home, "heal")
    terminal = Terminal(list(command), {**environ, "TERM": "dumb"}, tmp_path)
    terminal.end()
    assert_harmless(terminal.screen, at_a_terminal=True)
