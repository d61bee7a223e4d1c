"""No text of a ledger, a project or a certificate controls the terminal, whichever command prints it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from interfaces.cli.real_terminal import Terminal
from suture.core.ledger import RawPayload, RunFolder
from suture.core.ledger.event import decode_event
from suture.core.records import Candidate, Task, encode_record

HOSTILE = (
    "\x1b]52;c;cHduZWQ=\x07\x1b]8;;http://x.example\x1b\\\x9b2J\x1b[2J"
    "\r\x08\u202e\u2066\u2028\x85 a\nverified: all"
)
"""Clipboard, link, erased screen, overwritten line, turned text, line ends of every kind."""
SAMPLE_LEDGERS = Path(__file__).parents[2] / "core" / "ledger" / "samples"
HASHES = ("blob", "verdict", "settings", "task", "result")
Cli = Callable[..., Result]
RUN = "20260101-000000000-abcdef"


def assert_harmless(text: str, *, at_a_terminal: bool = False) -> None:
    if at_a_terminal:
        text = text.replace("\r\n", "\n")
    assert not [c for c in text if not (c.isprintable() or c in "\n\t")]
    assert not [line for line in text.split("\n") if line.startswith("verified: all")]


def places_of_text(value: Any) -> Iterator[tuple[Any, ...]]:
    """Where in a JSON value a text lies."""
    if isinstance(value, str):
        yield ()
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from ((key, *rest) for rest in places_of_text(inner))


def planted(value: Any, where: tuple[Any, ...]) -> Any:
    """The value with a hostile text in one place."""
    copy = json.loads(json.dumps(value))
    *way, last = where
    inner = copy
    for key in way:
        inner = inner[key]
    inner[last] = HOSTILE + (inner[last] if len(inner[last]) < 200 else "")
    return copy


def understood(event: Any) -> bool:
    try:
        parsed = decode_event(event, RUN)
    except ValueError:
        return False
    return parsed is not None and not isinstance(parsed.payload, RawPayload)


def hostile_event(event: dict[str, Any]) -> dict[str, Any]:
    """An event with hostile text wherever it may hold any and is still understood."""
    for where in list(places_of_text(event["data"])):
        if where[-1] in HASHES:
            continue  # what is not found would hide what lies behind it
        tried = {**event, "data": planted(event["data"], where)}
        event = tried if understood(tried) else event
    return event


def planted_run(home: Path, sample: str) -> RunFolder:
    """Write a run in which every text is hostile."""
    folder = RunFolder(home / "runs" / RUN)
    folder.path.mkdir(parents=True)
    text = (SAMPLE_LEDGERS / f"{sample}.jsonl").read_text("utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    code = folder.save_json({"files": {f"a{HOSTILE}.py": HOSTILE}, "origin": "sample", "label": HOSTILE})
    for event in events:
        if event["kind"] == "candidate.proposed":
            event["data"]["blob"] = code
    odd = {"seq": len(events), "time_s": 1.0, "kind": f"odd{HOSTILE}", "data": {HOSTILE: HOSTILE}}
    told = [*map(hostile_event, events), odd]
    folder.ledger_path.write_text("".join(json.dumps(event) + "\n" for event in told), "ascii")
    (folder.path / "certificate.json").write_text(json.dumps({"format": HOSTILE, HOSTILE: 1}), "ascii")
    return folder


@pytest.fixture(params=["write", "heal"])
def run(request: pytest.FixtureRequest, home: Path) -> RunFolder:
    return planted_run(home, request.param)


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
    ("undo", RUN),
    ("quality",),
    ("verify", RUN),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_ledger_steers_no_terminal(command: tuple[str, ...], run: RunFolder, cli: Cli) -> None:
    done = cli(*command)
    assert "this is a fault in Suture" not in done.output, done.output
    assert_harmless(done.output)


def test_show_says_all_of_it_and_keeps_each_text_on_its_line(run: RunFolder, cli: Cli) -> None:
    shown = cli("show").stdout
    assert "\\x1b]52;c;cHduZWQ=\\x07" in shown
    assert "\\nverified: all" in shown


@pytest.mark.parametrize("field", ["seq", "time_s", "kind", "data", "version"])
def test_an_error_that_quotes_a_damaged_line_is_harmless(field: str, run: RunFolder, cli: Cli) -> None:
    event = {"seq": 0, "time_s": 1.0, "kind": "run.started", "data": {}, field: [HOSTILE]}
    run.ledger_path.write_text(json.dumps(event) + "\n", "ascii")
    for command in COMMANDS:
        done = cli(*command)
        assert "this is a fault in Suture" not in done.output, done.output
        assert_harmless(done.output)


@pytest.mark.parametrize("command", ["history", "undo", "show --list"])
def test_one_damaged_run_hides_no_other(command: str, home: Path, cli: Cli) -> None:
    planted_run(home, "write")
    damaged = home / "runs" / f"{RUN}-damaged" / "ledger.jsonl"
    damaged.parent.mkdir()
    damaged.write_text('{"seq":"x","time_s":1.0,"kind":"run.started"}\n')
    done = cli(*command.split())
    if command == "undo":
        assert "there is nothing to undo" in done.output
    else:
        assert (done.exit_code, f"{RUN}-damaged" in done.output) == (0, True)
        assert "damaged" in done.output


@pytest.mark.parametrize("command", ["show", "replay", "verify", "undo", "quality"])
def test_a_name_that_no_file_can_have_is_a_run_that_is_not_there(command: str, home: Path, cli: Cli) -> None:
    planted_run(home, "write")
    for name in ("a" * 5000, "a\0b"):
        done = cli(command, name)
        assert (done.exit_code, "no run called" in done.output) == (2, True), done.output


@pytest.mark.parametrize("command", [("heal",), ("trust",), ("config", "show", "--project")])
def test_a_text_that_no_file_can_be_called_is_the_users_to_mend(command: tuple[str, ...], cli: Cli) -> None:
    done = cli(*command, "a" * 5000)
    assert done.exit_code == 2, done.output


@pytest.mark.parametrize("state", [[1], "x", {"x": 1}])
def test_a_fork_without_its_state_is_damage(state: object, home: Path, cli: Cli) -> None:
    run = planted_run(home, "write")
    first, *rest = run.ledger_path.read_text("ascii").splitlines()
    started = json.loads(first)
    started["data"] |= {
        "fork": {"run": "x", "step": 1, "state": run.save_json(state), "events": 1},
        "task": run.save_record(Task(statement="a", kind="write")),
        "settings": run.save_json({}),
    }
    run.ledger_path.write_text("\n".join([json.dumps(started), *rest, ""]), "ascii")
    done = cli("replay", RUN)
    assert (done.exit_code, "is not a state of a run" in done.output) == (6, True), done.output


def test_undo_takes_back_nothing_that_a_run_does_not_tell(home: Path, cli: Cli, tmp_path: Path) -> None:
    run = planted_run(home, "heal")
    told = {"root": str(tmp_path), "files": ["../elsewhere"], "undo": ""}
    events = [json.loads(line) for line in run.ledger_path.read_text("ascii").splitlines()]
    candidate = encode_record(Candidate(files={"a.py": "x"}, origin="user"))
    result = {"run_id": RUN, "outcome": "healed", "reason": {"code": "checks_pass"}, "candidate": candidate}
    for event in events:
        if event["kind"] == "run.started":
            event["data"]["task"] = run.save_record(Task(statement="a", kind="write"))
        if event["kind"] == "run.finished":
            event["data"]["result"] = run.save_json(result)
    events.append({"seq": 900, "time_s": 1.0, "kind": "tree.applied", "data": told})
    run.ledger_path.write_text("".join(json.dumps(event) + "\n" for event in events), "ascii")
    done = cli("undo", RUN)
    assert (done.exit_code, "does not say what '../elsewhere' was" in done.output) == (6, True), done.output


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "9" * 400])
@pytest.mark.parametrize("field", ["money", "tokens"])
def test_a_number_that_no_budget_can_be_counted_with_is_damage(
    field: str, number: str, home: Path, cli: Cli
) -> None:
    run = planted_run(home, "write")
    reserved = '{"seq":99,"time_s":1.0,"kind":"budget.reserved","data":{"what":"a","attempts":1,"tokens":1'
    fields = {"money": "0.0", field: number}
    given = "".join(f',"{name}":{value}' for name, value in fields.items())
    with run.ledger_path.open("a") as ledger:
        ledger.write(f"{reserved}{given}}}}}\n")
    done = cli("show", RUN)
    assert (done.exit_code, "is damaged" in done.output) == (6, True), done.output


@pytest.mark.parametrize("option", ["--diff", "--full-diff"])
def test_a_diff_that_is_a_link_is_not_shown(option: str, home: Path, cli: Cli, tmp_path: Path) -> None:
    run = planted_run(home, "write")
    (tmp_path / "key").write_text("PRIVATE")
    for name in ("result.diff", "full.diff"):
        (run.path / name).symlink_to(tmp_path / "key")
    done = cli("show", option)
    assert done.exit_code == 6
    assert "PRIVATE" not in done.output


def project_of(folder: Path) -> Path:
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
def test_a_project_steers_no_terminal(command: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    project = project_of(tmp_path)
    cli("trust", str(project), "--yes")
    done = cli(*command) if "--list" in command else cli(*command, str(project))
    assert "this is a fault in Suture" not in done.output, done.output
    assert_harmless(done.output)


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
def test_an_argument_that_a_script_passes_on_steers_no_terminal(arguments: tuple[str, ...], cli: Cli) -> None:
    assert_harmless(cli(*arguments).output)


STRAY = {
    "a warning": "import warnings; warnings.warn(TEXT)",
    "a log record": "import logging; logging.getLogger('somebody.else').warning('%s', TEXT)",
    "an error that nobody caught": "raise ValueError(TEXT)",
    "a thread's error": "from threading import Thread; t = Thread(target=int, args=[TEXT]); t.start()",
    "an error while something is freed": "class A:\n  def __del__(self): raise ValueError(TEXT)\nA()",
}


@pytest.mark.parametrize("how", STRAY)
def test_what_libraries_and_threads_write_is_harmless_too(how: str) -> None:
    module = "suture.interfaces.cli.terminal.terminal_output"
    program = f"from {module} import escape_library_output as a\na()\nTEXT = {HOSTILE!r}\n"
    done = subprocess.run([sys.executable, "-c", program + STRAY[how]], capture_output=True, check=False)
    assert b"cHduZWQ=" in done.stderr
    assert not [c for c in done.stderr.decode() if not (c.isprintable() or c in "\n\t")]


@pytest.mark.parametrize("command", [("show",), ("show", "--list"), ("replay",), ("resume",)], ids=" ".join)
def test_at_a_terminal(command: tuple[str, ...], home: Path, environ: dict[str, str], tmp_path: Path) -> None:
    planted_run(home, "heal")
    terminal = Terminal(list(command), {**environ, "TERM": "dumb"}, tmp_path)
    terminal.end()
    assert_harmless(terminal.screen, at_a_terminal=True)
