"""Bad input ends with one line, a remedy and the documented exit code, and no file changes."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from interfaces.cli.conftest import Cli, ReadFiles
from suture.core.installation import format_install_command
from suture.interfaces.cli.terminal.command_options import require_python
from suture.interfaces.cli.terminal.error_reporting import report_error

MODEL_OPTION = "--model scripted:right.json"
TEST_OPTION = '--test "python -m pytest -q"'
DAMAGED_RUN, TORN_RUN = "20260101-000000000-bbbbbb", "20260102-000000000-cccccc"

# Arguments as typed in a shell, the exit code, and a part of the message.
CASES: tuple[tuple[str, int, str], ...] = (
    # The program itself
    ("haal", 2, "Did you mean 'heal'?"),
    ("haal", 2, "`suture -h` lists the commands"),
    ("ci haal", 2, "`suture ci -h` lists the commands"),
    ("--nope", 2, "--nope"),
    # run
    ("run", 2, "there is no task"),
    ('run ""', 2, "empty"),
    ("run -", 2, "empty"),
    (
        f'run "Write f(n). f(1) == 2 and f(1) == 3" {MODEL_OPTION}',
        2,
        "two examples of the task contradict each other: f(1) == 2 and f(1) == 3",
    ),
    ("run x y", 2, "(y)"),
    ("run x --example", 2, "--example"),
    (f"run x --into / {MODEL_OPTION}", 2, "'/' is the root of the file system"),
    ("run x --modle y", 2, "--model"),
    ("run x --test nowhere.py", 2, "'nowhere.py' does not exist"),
    ("run x --test empty", 2, "is a folder"),
    (f"run x --test latin.py {MODEL_OPTION}", 2, "it is no UTF-8 text (byte "),
    (f"run x --test broken.py {MODEL_OPTION}", 2, "not Python at line"),
    (f"run x --test pipe {MODEL_OPTION}", 2, "regular file"),
    ("run x --test dangling " + MODEL_OPTION, 2, "dangling"),
    (f"run x --test empty.txt {MODEL_OPTION}", 2, "holds no test"),
    ("run x --set loop.sample=1", 2, "did you mean loop.samples?"),
    ("run x --set loop.samples=-1", 2, "at least 1"),
    ("run x --set loop.samples=many", 2, "whole number"),
    ("run x --set nothing", 2, "KEY=VALUE"),
    ("run x --set =3", 2, "KEY=VALUE"),
    (f"run x --recipe gready {MODEL_OPTION}", 2, "did you mean 'greedy'?"),
    (f"run x --recipe broken.json {MODEL_OPTION}", 2, "name a .toml file"),
    (f"run x --recipe broken.toml {MODEL_OPTION}", 2, "broken.toml"),
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
    (f"run x --replies nobody {MODEL_OPTION}", 2, "no run called 'nobody'"),
    ("run x --model local:qwen2.5-coder-1.5b", 3, "suture models pull"),
    # run --project
    (f'run "" --project library {MODEL_OPTION}', 2, "empty"),
    (f"run x --project website {MODEL_OPTION}", 2, "there is no kind of project 'website'"),
    (f"run x --project flask {MODEL_OPTION}", 2, "use --project web_app"),
    (f"run x --project argparse {MODEL_OPTION}", 2, "use --project cli_tool"),
    (f"run x --project cli_tool --language cobol {MODEL_OPTION}", 2, "there is no language 'cobol'"),
    (f"run x --language go {MODEL_OPTION}", 2, "give --test FILE"),
    (f"run x --project cli_tool --into broken.py {MODEL_OPTION}", 2, "broken.py"),
    (f"run x --project cli_tool --into full {MODEL_OPTION}", 2, "README.md"),
    (f"run x --existing nowhere {MODEL_OPTION}", 2, "'nowhere' is not a folder"),
    (f"run x --existing broken.py {MODEL_OPTION}", 2, "'broken.py' is not a folder"),
    (f"run x --existing untested --project web_app {MODEL_OPTION}", 2, "leave out --project"),
    (f"run x --existing empty {MODEL_OPTION}", 2, "--language"),
    (f"run x --project data_pipeline --sample nowhere.csv {MODEL_OPTION}", 2, "'nowhere.csv' does not exist"),
    (f"run x --project data_pipeline --sample pipe {MODEL_OPTION}", 2, "regular file"),
    (f"run x --project cli_tool --sample empty.txt {MODEL_OPTION}", 2, "for a data pipeline"),
    (f"run x --sample empty.txt {MODEL_OPTION}", 2, "for a data pipeline"),
    (f"run x --project library --test right.json {MODEL_OPTION}", 2, "test"),
    ("run x --project library --approve-deps maybe", 2, "safety.approve_deps"),
    # heal
    ("heal nowhere", 2, "'nowhere' does not exist"),
    ('heal ""', 2, "'' does not exist"),
    (f"heal {'l' * 5000}", 2, "does not exist"),
    (f"heal empty {MODEL_OPTION}", 2, "there is no code to heal in"),
    (f"heal untested {MODEL_OPTION}", 2, "--test"),
    (f"heal odd {MODEL_OPTION}", 2, "its name is not printable text"),
    (f"heal untested/notes.txt {MODEL_OPTION}", 2, "there is no code to heal in"),
    (f"heal pipe {MODEL_OPTION}", 2, "neither a folder"),
    (f"heal dangling {MODEL_OPTION}", 2, "dangling"),
    ('heal untested --test ""', 2, "the test command is empty"),
    (f'heal untested --test "\'open" {MODEL_OPTION}', 2, "close the quote"),
    (f'heal untested --test "a | b" {MODEL_OPTION}', 2, "sh -c"),
    (f"heal untested {TEST_OPTION} --python nowhere", 2, "the Python 'nowhere' does not exist"),
    (f"heal untested {TEST_OPTION} --python empty", 2, "is a folder without bin/python"),
    (f"heal untested {TEST_OPTION} --python latin.py", 2, "is not executable"),
    ('heal untested --proposer ""', 2, "the proposer's command is empty"),
    ("heal untested --issue nowhere", 2, "no such file"),
    ("heal untested --issue empty", 2, "regular file"),
    (f"heal untested {TEST_OPTION} --patch latin.py", 2, "exists already"),
    (f"heal untested {TEST_OPTION} --patch nowhere/a.patch {MODEL_OPTION}", 2, "no folder"),
    (f"heal untested {TEST_OPTION} --apply --commit", 2, "exclude each other"),
    (f"heal untested {TEST_OPTION} --commit {MODEL_OPTION}", 2, "git init"),
    (f"heal untested {TEST_OPTION} --since HEAD~9 {MODEL_OPTION}", 2, "git"),
    (f'heal untested {TEST_OPTION} --only "no*" {MODEL_OPTION}', 2, "no file may change"),
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
    (f"show {TORN_RUN} --diff", 2, "no diff"),
    ("history --limit 0", 2, "--limit"),
    ("history extra", 2, "(extra)"),
    ("quality nobody", 2, "no run called"),
    (f"quality {TORN_RUN}", 2, "how it began"),
    ("judge nowhere", 2, "nothing at"),
    ("judge untested", 2, "no git repository"),
    ("judge --patch missing.diff", 2, "missing.diff"),
    ("judge --staged --base main", 2, "exclude each other"),
    ("judge --watch --certificate judgement.json", 2, "exclude each other"),
    ("judge --quick --attest statement.json", 2, "exclude each other"),
    ("judge --quick --certificate judgement.json", 2, "exclude each other"),
    ("judge untested --patch broken.json", 2, "does not apply"),
    ("verify nobody", 2, "no run called"),
    ("verify nothing.json", 2, "there is no file"),
    (f"verify {TORN_RUN}", 2, "no certificate"),
    ("verify broken.json", 1, "not a certificate"),
    ("verify one.json", 1, "not confirmed"),
    # Continuing runs
    (f"show {DAMAGED_RUN}", 6, "ledger.jsonl"),
    (f"replay {DAMAGED_RUN}", 6, "ledger.jsonl"),
    (f"resume {DAMAGED_RUN}", 6, "ledger.jsonl"),
    (f"replay {TORN_RUN}", 2, "start it again"),
    (f"resume {TORN_RUN} --answer maybe", 2, "start it again"),
    ("resume nobody", 2, "no run called"),
    (f"fork {TORN_RUN} --at 1", 2, "start it again"),
    ("fork last --at -1", 2, "--at"),
    ("fork last --seconds 30", 2, "try: --set budget.seconds=VALUE"),
    (f"review {TORN_RUN}", 2, "is not waiting for an answer"),
    ("apply nobody", 2, "no run called"),
    ("apply --commit --branch b", 2, "exclude each other"),
    ("undo nobody", 2, "no run called"),
    (f"undo {TORN_RUN}", 2, "changed nothing of yours"),
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
    (f"bench run x --dataset suture --arm nothing {MODEL_OPTION}", 2, "adaptive"),
    ("bench report nobody", 2, "suture bench run"),
    ("bench compare nobody", 2, "B"),
    ("bench compare nobody other", 2, "suture bench run"),
    ("bench regrade nobody", 2, "suture bench run"),
    ("bench track nobody", 2, "suture bench run"),
    ("bench gate nowhere.json", 2, "RUN"),
)


@pytest.fixture
def input_files(tmp_path: Path, home: Path) -> Path:
    """Create a folder with every file that the cases name."""
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
    ledgers = {
        DAMAGED_RUN: '{"seq": 0, "time_s": "soon", "kind": "run_started", "data": {}}\n',
        TORN_RUN: "torn\n",
    }
    for run, content in ledgers.items():
        (home / "runs" / run).mkdir(parents=True)
        (home / "runs" / run / "ledger.jsonl").write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message_part"), CASES, ids=[row[0][:60] for row in CASES]
)
def test_bad_input_ends_with_its_exit_code_and_a_remedy(
    cli: Cli, input_files: Path, read_files: ReadFiles, arguments: str, exit_code: int, message_part: str
) -> None:
    before = read_files(input_files / "untested")
    result = cli(*shlex.split(arguments), stdin="")

    message = result.stderr + (result.stdout if exit_code == 1 else "")

    assert result.exit_code == exit_code, message
    assert message_part in message
    assert "Traceback" not in message
    assert "a fault in Suture" not in message
    assert exit_code == 1 or result.stdout == ""
    assert len([text for text in message.splitlines() if text.lower().startswith("error: ")]) <= 1
    assert exit_code == 1 or "\n  try: " in message
    assert "Usage: " not in message
    assert read_files(input_files / "untested") == before


def test_an_invalid_recipe_is_refused_before_a_run_is_announced(cli: Cli, input_files: Path) -> None:
    for arguments in (f"run x --recipe nope {MODEL_OPTION}", "heal untested --no-model --recipe broken.toml"):
        message = cli(*shlex.split(arguments), stdin="").stderr.splitlines()
        assert message[0].startswith("error: "), message
        assert message[1].startswith("  try: "), message


@pytest.mark.parametrize("path", ["empty", "untested/notes.txt"])
def test_a_folder_without_code_is_refused_before_a_run_is_announced(
    cli: Cli, input_files: Path, path: str
) -> None:
    message = cli(*shlex.split(f"heal {path} {MODEL_OPTION}"), stdin="").stderr.splitlines()
    assert message[0].startswith("error: there is no code to heal"), message


def test_every_command_has_cases_of_bad_input() -> None:
    from write_pages import all_commands

    tested = {arguments.split()[0] for arguments, _, _ in CASES}
    assert {command.split()[0] for command in all_commands()} <= tested
    assert len(CASES) >= 80


@pytest.mark.parametrize(
    ("module", "extra"), [("fastapi.routing", "serve"), ("xllamacpp", "local"), ("yaml", "")]
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    capsys: pytest.CaptureFixture[str], module: str, extra: str
) -> None:
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert report_error(error, debug=False) == 3
    package = module.partition(".")[0]
    assert capsys.readouterr().err == (
        f"error: this needs the package {package!r}\n  try: {format_install_command(extra)}\n"
    )


def test_the_folder_of_an_environment_names_its_python(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    require_python(tmp_path)
    require_python(tmp_path / "bin" / "python")
    require_python(None)
