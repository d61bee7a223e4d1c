"""Bad input ends in one line, a remedy and the documented exit code, and no file changes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from suture.interfaces.cli.terminal.error_reporting import report_error

Cli = Callable[..., Result]
FilesOf = Callable[[Path], dict[str, bytes]]

TASK = "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n"
ASK = "--model scripted:right.json"
TEST = '--test "python -m pytest -q"'
DAMAGED, BARE = "20260101-000000000-bbbbbb", "20260102-000000000-cccccc"

# Arguments, as a shell reads them; the exit code; a part of the message.
ROWS: tuple[tuple[str, int, str], ...] = (
    # The program itself
    ("haal", 2, "Did you mean 'heal'?"),
    ("--nope", 2, "--nope"),
    # run
    ("run", 2, "there is no task"),
    ('run ""', 2, "empty"),
    ("run -", 2, "empty"),
    ("run x y", 2, "(y)"),
    ("run x --example", 2, "--example"),
    ("run x --modle y", 2, "--model"),
    ("run x --test nowhere.py", 2, "'nowhere.py' does not exist"),
    ("run x --test empty", 2, "is a folder"),
    (f"run x --test latin.py {ASK}", 2, "latin.py"),
    (f"run x --test broken.py {ASK}", 2, "not Python at line"),
    (f"run x --test pipe {ASK}", 2, "regular file"),
    ("run x --test dangling " + ASK, 2, "dangling"),
    (f"run x --test empty.txt {ASK}", 2, "holds no test"),
    ("run x --set loop.sample=1", 2, "did you mean loop.samples?"),
    ("run x --set loop.samples=-1", 2, "at least 1"),
    ("run x --set loop.samples=many", 2, "whole number"),
    ("run x --set nothing", 2, "KEY=VALUE"),
    ("run x --set =3", 2, "KEY=VALUE"),
    (f"run x --recipe gready {ASK}", 2, "did you mean 'greedy'?"),
    (f"run x --recipe broken.json {ASK}", 2, "name a .toml file"),
    (f"run x --recipe broken.toml {ASK}", 2, "broken.toml"),
    ("run x --attempts 0", 2, "budget.attempts"),
    ("run x --attempts many", 2, "--attempts"),
    ("run x --tokens -3", 2, "budget.tokens"),
    ("run x --seconds nan", 2, "budget.seconds"),
    ("run x --money -1", 2, "budget.money"),
    ('run x --model ""', 2, "provider:model"),
    ("run x --model qwen", 2, "provider:model"),
    ("run x --model opanai:x", 2, "did you mean openai:x?"),
    ("run x --model openai:", 2, "provider:model"),
    ("run x --model local:qwen", 2, "qwen2.5-coder-1.5b"),
    ("run x --model scripted:nowhere.json", 2, "no such file"),
    ("run x --model scripted:broken.json", 2, "is not JSON"),
    ("run x --model scripted:none.json", 2, "list of replies"),
    ("run x --model scripted:one.json", 2, "entry 1"),
    ("run x --model scripted:empty", 2, "regular file"),
    ("run x --autonomy sometimes", 2, "review_all"),
    ("run x --verbose --quiet", 2, "exclude each other"),
    (f"run x --replies nobody {ASK}", 2, "no run called 'nobody'"),
    ("run x --model local:qwen2.5-coder-1.5b", 3, "suture models pull"),
    # run --project
    (f'run "" --project library {ASK}', 2, "empty"),
    (f"run x --project website {ASK}", 2, "there is no kind of project 'website'"),
    (f"run x --project cli_tool --language cobol {ASK}", 2, "there is no language 'cobol'"),
    (f"run x --language go {ASK}", 2, "give --test FILE"),
    (f"run x --project cli_tool --into broken.py {ASK}", 2, "broken.py"),
    (f"run x --project cli_tool --into full {ASK}", 2, "README.md"),
    (f"run x --existing nowhere {ASK}", 2, "'nowhere' is not a folder"),
    (f"run x --existing broken.py {ASK}", 2, "'broken.py' is not a folder"),
    (f"run x --existing untested --project web_app {ASK}", 2, "leave out --project"),
    (f"run x --existing empty {ASK}", 2, "--language"),
    (f"run x --project data_pipeline --sample nowhere.csv {ASK}", 2, "'nowhere.csv' does not exist"),
    (f"run x --project data_pipeline --sample pipe {ASK}", 2, "regular file"),
    (f"run x --project cli_tool --sample empty.txt {ASK}", 2, "for a data pipeline"),
    (f"run x --sample empty.txt {ASK}", 2, "for a data pipeline"),
    (f"run x --project library --test right.json {ASK}", 2, "test"),
    ("run x --project library --approve-deps maybe", 2, "safety.approve_deps"),
    # heal
    ("heal nowhere", 2, "'nowhere' does not exist"),
    ('heal ""', 2, "'' does not exist"),
    (f"heal {'l' * 5000}", 2, "does not exist"),
    (f"heal empty {ASK}", 2, "holds no Python code"),
    (f"heal untested {ASK}", 2, "--test"),
    (f"heal odd {ASK}", 2, "its name is not printable text"),
    (f"heal untested/notes.txt {ASK}", 2, "holds no Python code"),
    (f"heal pipe {ASK}", 2, "neither a folder"),
    (f"heal dangling {ASK}", 2, "dangling"),
    ('heal untested --test ""', 2, "the test command is empty"),
    (f'heal untested --test "\'open" {ASK}', 2, "close the quote"),
    (f'heal untested --test "a | b" {ASK}', 2, "sh -c"),
    (f"heal untested {TEST} --python nowhere", 2, "the Python 'nowhere' does not exist"),
    (f"heal untested {TEST} --python empty", 2, "is a folder"),
    (f"heal untested {TEST} --python latin.py", 2, "is not executable"),
    ('heal untested --proposer ""', 2, "the proposer's command is empty"),
    ("heal untested --issue nowhere", 2, "no such file"),
    ("heal untested --issue empty", 2, "regular file"),
    (f"heal untested {TEST} --patch latin.py", 2, "exists already"),
    (f"heal untested {TEST} --patch nowhere/a.patch {ASK}", 2, "no folder"),
    (f"heal untested {TEST} --apply --commit", 2, "exclude each other"),
    (f"heal untested {TEST} --commit {ASK}", 2, "git init"),
    (f"heal untested {TEST} --since HEAD~9 {ASK}", 2, "git"),
    (f'heal untested {TEST} --only "no*" {ASK}', 2, "no file may change"),
    ("heal untested --no-model --model openai:x", 2, "exclude each other"),
    ("heal --aply", 2, "--apply"),
    ("heal . --ask", 2, "terminal"),
    ("heal typed", 2, "budget.attempts"),
    ("heal torn", 2, "is not TOML"),
    ("heal unknown", 2, "did you mean budget.attempts?"),
    # Inspecting runs
    ("show nobody", 2, "suture show --list"),
    ('show ""', 2, "empty"),
    ("show 2026", 2, "2 runs"),
    ("show last --at many", 2, "--at"),
    ("show last --at 3", 2, "step"),
    ("show a b", 2, "(b)"),
    (f"show {BARE} --diff", 2, "no diff"),
    ("history --limit 0", 2, "--limit"),
    ("history extra", 2, "(extra)"),
    ("quality nobody", 2, "no run called"),
    (f"quality {BARE}", 2, "how it began"),
    ("verify nobody", 2, "no run called"),
    (f"verify {BARE}", 2, "no certificate"),
    ("verify broken.json", 1, "not a certificate"),
    ("verify one.json", 1, "rejected"),
    # Continuing runs
    (f"show {DAMAGED}", 6, "ledger.jsonl"),
    (f"replay {DAMAGED}", 6, "ledger.jsonl"),
    (f"resume {DAMAGED}", 6, "ledger.jsonl"),
    (f"replay {BARE}", 2, "start it again"),
    (f"resume {BARE} --answer maybe", 2, "start it again"),
    ("resume nobody", 2, "no run called"),
    (f"fork {BARE} --at 1", 2, "start it again"),
    ("fork last --at -1", 2, "--at"),
    (f"review {BARE}", 2, "is not waiting for an answer"),
    ("apply nobody", 2, "no run called"),
    ("apply --commit --branch b", 2, "exclude each other"),
    ("undo nobody", 2, "no run called"),
    (f"undo {BARE}", 2, "changed nothing of yours"),
    # Setting up
    ("doctor --set x=1", 2, "no setting 'x'"),
    ("self-check --set x=1", 2, "no setting 'x'"),
    ("init nowhere", 2, "name the project's folder"),
    ("init untested/notes.txt", 2, "name the project's folder"),
    ("init typed", 2, "suture config set"),
    ("trust nowhere", 2, "name the project's folder"),
    ("trust --list --yes", 2, "exclude each other"),
    ("completion csh", 2, "'fish'"),
    ("config set budget.attempts many", 2, "whole number"),
    ("config set nothing 1", 2, "no setting 'nothing'"),
    ("config set budget.attempts", 2, "VALUE"),
    ("config get x", 2, "Did you mean 'set'?"),
    ("serve nothing", 2, "nothing"),
    ("serve --port many", 2, "--port"),
    ("serve --host 0.0.0.0", 2, "token add"),
    ("serve --set sandbox.backend=unsafe-subprocess", 2, "without a sandbox"),
    ("ci heal nowhere", 2, "no folder at 'nowhere'"),
    ("ci heal . --test ''", 2, "test command is empty"),
    ("ci heal . --python nowhere", 2, "'nowhere' does not exist"),
    ("ci heal . --set ci.max_lines=0", 2, "ci.max_lines"),
    ("ci heal . --set ci.evidence=luck", 2, "ci.evidence"),
    ("ci heal empty", 2, "no git repository"),
    ("ci heal empty --dry-run", 2, "no git repository"),
    ("ci deliver nowhere", 2, "'nowhere/certificate.json' does not exist"),
    ("ci deliver empty --project nowhere", 2, "no folder at 'nowhere'"),
    ("ci deliver empty --set ci.delivery=mail", 2, "ci.delivery"),
    ("ui --port many", 2, "--port"),
    ("ui nowhere --port 0", 2, "no folder at 'nowhere'"),
    ("serve --root latin.py --port 0", 2, "no folder at 'latin.py'"),
    ("mcp --root nowhere", 2, "no folder at 'nowhere'"),
    ("watch nowhere", 2, "no folder at 'nowhere'"),
    ("watch latin.py", 2, "no folder at"),
    ("watch . --test ''", 2, "test command is empty"),
    ("watch . --set nothing", 2, "KEY=VALUE"),
    ("watch empty", 2, "error:"),
    ("mcp extra", 2, "(extra)"),
    ("mcp --http --port 0", 2, "--port"),
    ("mcp --http --host 0.0.0.0", 2, "suture serve"),
    ("mcp --set sandbox.minimum_level=none", 2, "without a sandbox"),
    ("acp extra", 2, "(extra)"),
    ("acp --set sandbox.minimum_level=none", 2, "without a sandbox"),
    ("lsp extra", 2, "(extra)"),
    ("lsp --seconds 0", 2, "--seconds"),
    ("lsp --set sandbox.backend=unsafe-subprocess", 2, "without a sandbox"),
    ("serve token nothing", 2, "nothing"),
    ("serve token add a --role king", 2, "viewer"),
    ("serve token add a/b", 2, "not a valid token name"),
    ("serve token remove nobody", 2, "no token named"),
    ("serve token list extra", 2, "(extra)"),
    ("db nothing", 2, "nothing"),
    ("db check --set x=1", 2, "no setting 'x'"),
    ("db rebuild extra", 2, "(extra)"),
    ("memory nothing", 2, "nothing"),
    ("memory show nothing-like-it", 2, "nothing-like-it"),
    ("memory import nowhere.jsonl", 2, "nowhere.jsonl"),
    ("memory search", 2, "missing argument"),
    ("metrics extra", 2, "(extra)"),
    ("metrics --since yesterdy", 2, "yesterdy"),
    ("models pull nobody", 2, "qwen2.5-coder-1.5b"),
    ("models path nobody", 2, "qwen2.5-coder-1.5b"),
    ("models path qwen2.5-coder-0.5b", 3, "suture models pull"),
    ("models rm nobody", 2, "qwen2.5-coder-1.5b"),
    ("models serve nobody", 2, "qwen2.5-coder-1.5b"),
    ("models nothing", 2, "nothing"),
    ("prompts show nobody", 2, "coder"),
    ("prompts check extra", 2, "(extra)"),
    ("recipes show nobody", 2, "adaptive"),
    ("recipes show", 2, "NAME"),
    # Measuring
    ("bench nothing", 2, "nothing"),
    ("bench run", 2, "name"),
    ("bench run x --dataset nothing", 2, "humaneval"),
    (f"bench run x --dataset suture --arm nothing {ASK}", 2, "adaptive"),
    ("bench report nobody", 2, "suture bench run"),
    ("bench compare nobody", 2, "B"),
    ("bench compare nobody other", 2, "suture bench run"),
    ("bench regrade nobody", 2, "suture bench run"),
    ("bench track nobody", 2, "suture bench run"),
    ("bench gate nowhere.json", 2, "RUN"),
)


@pytest.fixture
def places(tmp_path: Path, home: Path) -> Path:
    """Create a folder with every file that the rows name."""
    for folder in ("empty", "untested", "typed", "torn", "unknown", "full"):
        (tmp_path / folder).mkdir()
    texts = {
        "untested/code.py": "x = 1\n",
        "untested/notes.txt": "words\n",
        "full/README.md": "mine\n",
        "typed/suture.toml": '[budget]\nattempts = "many"\n',
        "torn/suture.toml": "[budget\n",
        "unknown/suture.toml": "[budgets]\nattempts = 3\n",
        "broken.py": "def f(:\n",
        "broken.json": "{\n",
        "broken.toml": "[\n",
        "none.json": "[]",
        "one.json": "[1]",
        "right.json": '["```python\\ndef double(n):\\n    return 2 * n\\n```"]',
        "empty.txt": "",
    }
    for path, text in texts.items():
        (tmp_path / path).write_text(text)
    (tmp_path / "latin.py").write_bytes(b"\xff\xfe\x00bad")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "two\nlines.py").write_text("x = 1\n")
    (tmp_path / "dangling").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    ledgers = {DAMAGED: '{"seq": 0, "time_s": "soon", "kind": "run_started", "data": {}}\n', BARE: "torn\n"}
    for run, line in ledgers.items():
        (home / "runs" / run).mkdir(parents=True)
        (home / "runs" / run / "ledger.jsonl").write_text(line)
    return tmp_path


@pytest.mark.parametrize(("line", "code", "words"), ROWS, ids=[row[0][:60] for row in ROWS])
def test_bad_input_is_an_exit_code_and_a_remedy(
    cli: Cli, places: Path, files_of: FilesOf, line: str, code: int, words: str
) -> None:
    before = files_of(places / "untested")
    done = cli(*shlex.split(line), stdin="")
    said = done.stderr + (done.stdout if code == 1 else "")
    assert done.exit_code == code, said
    assert words in said
    assert "Traceback" not in said
    assert "a fault in Suture" not in said
    assert code == 1 or done.stdout == ""
    assert len([text for text in said.splitlines() if text.lower().startswith("error: ")]) <= 1
    assert code == 1 or "\n  try: " in said
    assert "Usage: " not in said
    assert files_of(places / "untested") == before


def test_a_recipe_that_is_none_is_refused_before_a_run_is_announced(cli: Cli, places: Path) -> None:
    for line in (f"run x --recipe nope {ASK}", "heal untested --no-model --recipe broken.toml"):
        said = cli(*shlex.split(line), stdin="").stderr.splitlines()
        assert said[0].startswith("error: "), said
        assert said[1].startswith("  try: "), said


def test_every_command_has_rows() -> None:
    from write_pages import all_commands

    tried = {line.split()[0] for line, _, _ in ROWS}
    assert {command.split()[0] for command in all_commands()} <= tried
    assert len(ROWS) >= 80


@pytest.mark.parametrize(
    ("module", "remedy"),
    [("fastapi.routing", "suture[serve]"), ("xllamacpp", "suture[local]"), ("yaml", "suture")],
)
def test_a_package_that_is_missing_is_named_with_what_brings_it(
    capsys: pytest.CaptureFixture[str], module: str, remedy: str
) -> None:
    fault = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert report_error(fault, debug=False) == 3
    package = module.partition(".")[0]
    assert capsys.readouterr().err == (
        f'error: this needs the package {package!r}\n  try: pip install "{remedy}"\n'
    )
