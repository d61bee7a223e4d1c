"""Attempt polyglot exercises twice with Suture, mini-swe-agent or aider, on one server and with equal tokens.

    suture models serve qwen2.5-coder-1.5b --port 8377 --set model.slots=1  # prints the key
    SUTURE_DATA=... python benchmarks/exercism_tracks.py TASKS  # then npm install, as it says
    OPENAI_API_KEY=KEY python benchmarks/polyglot_agents.py TASKS --arm suture --first 2
    OPENAI_API_KEY=KEY python benchmarks/polyglot_agents.py TASKS --arm mini --first 2 --programs ~/agents
    python benchmarks/polyglot_agents.py TASKS  # prints the table so far

Each arm gets the instructions and the stubs. If the exercise's tests fail on what it wrote, it gets a second attempt,
with the tests and what they printed. The tests grade in Suture's sandbox, the same way for each arm, and only the
files of the stubs count. A proxy counts calls and tokens. It refuses calls when the tokens of a task are spent, or half
of them in the first attempt; that ends the attempt. `suture` makes the attempts of `suture bench tasks`, with one reply
each. mini-swe-agent and aider are installed in PROGRAMS/mini and PROGRAMS/aider, and run with your rights, outside any
sandbox: read what they did in OUT/ARM. The same command continues after a stop.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent_programs import agent_variables, aider_command, mini_command, run_agent
from model_proxy import Counts, counting_proxy
from script_exit import run_script

from suture.bench.folder_tasks import (
    AttemptRow,
    load_polyglot_tasks,
    measure_folder,
    summarise_rows,
    take_first,
)
from suture.bench.folder_tasks.folder_task import AttemptTools, UnusableTask
from suture.bench.folder_tasks.measuring import read_folder_rows
from suture.bench.folder_tasks.polyglot import AttemptResult, PolyglotTask
from suture.bench.running.benchmark_plan import describe_environment
from suture.core.records import Outcome, Verdict
from suture.core.settings import BudgetSettings, Settings
from suture.core.settings.schema import ModelSettings
from suture.errors import SutureError
from suture.interfaces.cli.bench.tasks_command import print_row, render_summaries
from suture.models.providers.connections import connect_openai
from suture.models.providers.error_mapping import ModelTarget
from suture.models.providers.langchain_model import LangChainModel
from suture.project.languages import LANGUAGES
from suture.project.workspace import decode_text

ARMS = ("suture", "mini", "aider")
SECOND_ATTEMPT = (
    "{statement}\n\nThe files are written, but tests fail. The tests are correct: do not change them. "
    "`{command}` runs them, and printed:\n\n{output}\n\nCorrect {files} so that all tests pass."
)
MINI_OPTIONS = "--model-class litellm_textbased -c mini_textbased.yaml -c model.model_kwargs.temperature=0"
"""The small model writes no tool calls, so it gets mini-swe-agent's configuration without them."""
AIDER_OPTIONS = "--edit-format whole --no-git --no-stream --no-pretty --max-chat-history-tokens 32768"
"""The format that aider itself chooses for a model that it does not know, and no summary of the ended chat."""
MAX_REPLY_TOKENS = 1_024
"""Longest reply of each arm: Suture's own limit for small models, which may repeat themselves without end."""
MAX_OUTPUT_LINES = 50
"""Lines of the tests' output in the second attempt, as in aider's own benchmark."""


@dataclass(frozen=True, kw_only=True)
class LimitedTask:
    """An exercise that an arm attempts through the counting proxy.

    Attributes:
        wanted: The arguments of the command line.
        url: The proxy's base URL.
        counts: What went through the proxy, in all tasks.
    """

    exercise: PolyglotTask
    wanted: argparse.Namespace
    url: str
    counts: Counts

    @property
    def id(self) -> str:
        """The exercise's id."""
        return self.exercise.id

    @property
    def content_hash(self) -> str:
        """Hash of everything that defines the exercise."""
        return self.exercise.content_hash

    @property
    def max_attempts(self) -> int:
        """Number of attempts that the benchmark allows."""
        return self.exercise.max_attempts

    async def measure(self, tools: AttemptTools) -> tuple[AttemptRow, ...]:
        """Attempt the exercise, and once more if its tests fail; see `FolderTask.measure`."""
        spent_before, limit = self.counts.tokens, tools.settings.budget.tokens

        async def attempt(code: Mapping[str, str], verdict: Verdict | None) -> AttemptResult:
            self.counts.max_tokens = spent_before + (limit // 2 if verdict is None else limit)
            before, started_s = replace(self.counts), time.monotonic()
            written, row = await self._attempt(Path(folder), tools, code, verdict)
            if self.counts.failed > before.failed:
                raise UnusableTask("the model's server failed")
            return written, replace(
                row,
                calls=self.counts.calls - before.calls,
                prompt_tokens=self.counts.prompt_tokens - before.prompt_tokens,
                completion_tokens=self.counts.reply_tokens - before.reply_tokens,
                seconds=time.monotonic() - started_s,
            )

        with tempfile.TemporaryDirectory(prefix="polyglot-", ignore_cleanup_errors=True) as folder:
            return await self.exercise.measure_attempts(tools, attempt)

    async def _attempt(
        self, folder: Path, tools: AttemptTools, code: Mapping[str, str], verdict: Verdict | None
    ) -> AttemptResult:
        """Let the arm attempt the exercise once; other agents work in `folder`."""
        if self.wanted.arm != "suture":
            outcome = self._run_other_agent(folder, verdict)
            return self._read_code(folder), AttemptRow(run="", outcome=outcome, reward=0.0)
        before = replace(self.counts)
        try:
            return await self.exercise.attempt(code, verdict, tools)
        except SutureError:
            if self.counts.refused > before.refused:
                return {}, AttemptRow(run="", outcome="budget_exhausted", reward=0.0)
            if self.counts.rejected > before.rejected:
                return {}, AttemptRow(run="", outcome="stuck", reward=0.0)
            raise

    def _run_other_agent(self, folder: Path, verdict: Verdict | None) -> Outcome:
        """Start the agent in the exercise's folder, which has the tests only after the first attempt."""
        project, exercise, message = folder / "project", self.exercise, self.exercise.statement
        if verdict is None:
            _write_files(project, {**exercise.support, **exercise.stubs})
        else:
            _write_files(project, exercise.tests)
            packages = LANGUAGES[exercise.language].packages
            if packages and (exercise.root / packages).is_dir() and not (project / packages).exists():
                (project / packages).symlink_to((exercise.root / packages).resolve())
            output = "\n".join(verdict.output.splitlines()[:MAX_OUTPUT_LINES])
            command = shlex.join(exercise.find_test_command())
            files = " and ".join(f"`{path}`" for path in exercise.stubs)
            message = SECOND_ATTEMPT.format(statement=message, command=command, output=output, files=files)
        log, before = (
            f"{exercise.id.replace('/', '-')}-{1 if verdict is None else 2}.txt",
            replace(self.counts),
        )
        exit_code = run_agent(
            self._command(message),
            project,
            home=folder / "home",
            output=self.wanted.out / self.wanted.arm / log,
            variables=agent_variables(self.url),
            first_on_path=Path(sys.executable).parent,
            timeout_s=self.wanted.seconds,
        )
        if exit_code is None or self.counts.refused > before.refused:
            return "budget_exhausted"
        if (self.counts.calls, self.counts.rejected) == (before.calls, before.rejected):
            raise UnusableTask(f"{self.wanted.arm} called no model; its exit code is {exit_code}")
        return "healed" if exit_code == 0 else "stuck"

    def _command(self, message: str) -> list[str]:
        programs, model = self.wanted.programs.absolute(), self.wanted.model.partition(":")[2]
        if self.wanted.arm == "mini":
            return mini_command(programs, model, message, MINI_OPTIONS.split())
        return aider_command(programs, model, message, [*AIDER_OPTIONS.split(), *self.exercise.stubs])

    def _read_code(self, folder: Path) -> dict[str, str]:
        """Return the files to write as the agent left them; one that it deleted is left out."""
        files = {path: folder / "project" / path for path in self.exercise.stubs}
        return {path: decode_text(file.read_bytes()) for path, file in files.items() if file.is_file()}


def _write_files(root: Path, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def main() -> int:
    """Measure an arm if one is named, and print the table of what is measured so far."""
    wanted = _parse_arguments()
    if wanted.arm is not None:
        asyncio.run(measure_arm(take_first(load_polyglot_tasks(wanted.tasks), wanted.first), wanted))
    rows = [replace(row, model=arm) for arm in ARMS for row in read_folder_rows(wanted.out / arm)]
    print(render_summaries(summarise_rows(rows)))
    return 0


async def measure_arm(exercises: Sequence[PolyglotTask], wanted: argparse.Namespace) -> None:
    """Measure what one arm does on exercises, and print each result."""
    budget = BudgetSettings(tokens=wanted.tokens, seconds=wanted.seconds)
    settings = Settings(model=ModelSettings(name=wanted.model), budget=budget)
    environment = {**describe_environment([], settings), "command": shlex.join(sys.argv)}
    with counting_proxy(wanted.server) as (url, counts):
        counts.max_reply_tokens = MAX_REPLY_TOKENS
        model = open_served_model(wanted.model, url, settings)
        tasks = [LimitedTask(exercise=each, wanted=wanted, url=url, counts=counts) for each in exercises]
        try:
            await measure_folder(
                tasks, wanted.out / wanted.arm, settings, model, environment=environment, on_row=print_row
            )
        finally:
            await model.close()


def open_served_model(name: str, url: str, settings: Settings) -> LangChainModel:
    """Return a model of Suture's catalogue at a server that runs already; Suture treats it as the embedded one."""
    timeout_s = settings.model.timeout_s
    connect = partial(
        connect_openai,
        name.partition(":")[2],
        key=os.environ.get("OPENAI_API_KEY", "none"),
        base_url=url,
        timeout_s=timeout_s,
        prefill_body={},  # as for the embedded model
    )
    return LangChainModel(
        ModelTarget(name=name), connect, seed=settings.model.seed, timeout_s=timeout_s, retries=0
    )


def _parse_arguments() -> argparse.Namespace:
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    add = parser.add_argument
    add("tasks", type=Path, help="folder of the exercises")
    add("--arm", choices=ARMS, help="the program that attempts the exercises; default: only print the table")
    add("--first", type=int, default=2, help="only the first exercises of each language, by name")
    add("--server", default="http://127.0.0.1:8377/v1", help="the base URL of the model's server")
    add("--model", default="local:qwen2.5-coder-1.5b", help="the model that it serves")
    add("--tokens", type=int, default=8_000, help="tokens of prompts and replies for a task")
    add("--seconds", type=float, default=600, help="seconds of one attempt of another agent")
    add("--programs", type=Path, default=Path("agents"), help="folder of the agents' environments")
    add("--out", type=Path, default=Path("polyglot_agents"), help="folder of the results")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run_script(main))
