"""Suture as a Gradio Space: a broken module and its tests in, a verified change out; or a task in, code out.

Strangers send the code, so all of it runs behind the wall that the settings name, or nothing runs.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import gradio as gr

from suture.api import stream
from suture.api.prerequisites import Prerequisite, examine
from suture.errors import SutureError
from suture.core.ledger import find_run
from suture.models import pull_model
from suture.interfaces.narrative.brief import BriefTeller, brief_ending
from suture.interfaces.narrative.lines import printable
from suture.core.records import Result
from suture.core.settings import Settings, load_settings

RUN_SECONDS, RUN_ATTEMPTS, RUN_TOKENS = 180, 6, 4000
RUNS_AN_HOUR = 6
"""For each visitor; all visitors share one run at a time, and a queue of this many."""
QUEUE = 8
MOST_CHARACTERS = 20_000
HOUR_S = 3600
BROKEN = """def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2 - 1]
"""
TESTS = """from solution import median

def test_median():
    assert median([3, 1, 2]) == 2
    assert median([5]) == 5
"""


class Visitors:
    """Who has run how much within an hour; kept in memory alone."""

    def __init__(self) -> None:
        self._runs: dict[str, deque[float]] = defaultdict(deque)

    def refusal(self, visitor: str, now_s: float) -> str:
        """Why a visitor must wait, or nothing; where nothing, the run counts."""
        for known in [name for name, runs in self._runs.items() if now_s - runs[-1] > HOUR_S]:
            del self._runs[known]
        runs = self._runs[visitor]
        while runs and now_s - runs[0] > HOUR_S:
            runs.popleft()
        if len(runs) >= RUNS_AN_HOUR:
            left_min = (HOUR_S - now_s + runs[0]) / 60
            return f"{RUNS_AN_HOUR} runs an hour for each visitor; try again in {left_min:.0f} min"
        runs.append(now_s)
        return ""


def settings_of(home: Path) -> Settings:
    """The Space's settings: its variables, and what no visitor may exceed."""
    fixed = {
        "paths.home": str(home),
        "loop.autonomy": "full_auto",
        "budget.seconds": RUN_SECONDS,
        "budget.attempts": RUN_ATTEMPTS,
        "budget.tokens": RUN_TOKENS,
        "proof.seconds": 20,
    }
    if not os.environ.get("SUTURE_MODEL"):
        fixed |= {"model.name": "none", "models.coder": "none"}
    return load_settings(home, fixed, os.environ).settings


def missing(settings: Settings) -> list[Prerequisite]:
    """What the settings need and this machine lacks, a wall above all."""
    return [row for row in examine(settings) if row.needed and not row.ok]


async def told(task: str | Path, settings: Settings, **options: Any) -> AsyncIterator[tuple[str, str]]:
    """Carry a run out: what was said so far, and at the end its diff or code."""
    said: list[str] = []
    teller = BriefTeller()
    try:
        async for one in stream(task, settings=settings, **options):
            if isinstance(one, Result):
                ending = brief_ending(one, find_run(settings.paths.home, one.run_id), typed=False)
                said += [
                    line for line in ending if "suture " not in line
                ]  # commands are no visitor's to type
                code = one.candidate.files if one.candidate and not isinstance(task, Path) else {}
                yield printable("\n".join(said)), one.diff or "\n".join(code.values())
            elif lines := teller.tell(one):
                said += lines
                yield printable("\n".join(said)), ""
    except SutureError as fault:
        yield printable("\n".join([*said, f"{fault.message}. {fault.remedy}"])), ""


def project_at(folder: str, code: str, tests: str) -> Path:
    """A visitor's two files as a project."""
    Path(folder, "solution.py").write_text(code, "utf-8")
    Path(folder, "test_solution.py").write_text(tests, "utf-8")
    return Path(folder)


def build(settings: Settings) -> gr.Blocks:
    """The page."""
    visitors = Visitors()

    def admitted(request: gr.Request, *texts: str) -> None:
        if any(len(text) > MOST_CHARACTERS for text in texts) or not all(text.strip() for text in texts):
            raise gr.Error(f"each text has 1 to {MOST_CHARACTERS:,} characters")
        visitor = request.client.host if request.client else ""
        if refusal := visitors.refusal(visitor, time.time()):
            raise gr.Error(refusal)

    async def heal(code: str, tests: str, request: gr.Request) -> AsyncIterator[tuple[str, str]]:
        admitted(request, code, tests)
        with tempfile.TemporaryDirectory() as folder:
            async for shown in told(project_at(folder, code, tests), settings, test="python -m pytest -q"):
                yield shown

    async def write(task: str, request: gr.Request) -> AsyncIterator[tuple[str, str]]:
        admitted(request, task)
        async for shown in told(task, settings):
            yield shown

    with gr.Blocks(title="Suture", analytics_enabled=False) as page:
        gr.Markdown(
            "# Suture\nCode runs in a sandbox without network; a change counts when every test passes."
        )
        lacking = missing(settings)
        if lacking:
            gr.Markdown("**Nothing can be run here.** This machine lacks what Suture needs:")
            gr.Textbox(
                "\n".join(f"{row.name}: {row.detail}. {row.remedy}" for row in lacking),
                label="missing",
                lines=4,
            )
            return page
        with gr.Tab("Heal"):
            code = gr.Code(BROKEN, language="python", label="solution.py")
            tests = gr.Code(TESTS, language="python", label="test_solution.py")
            start = gr.Button("Heal", variant="primary")
            outputs = [gr.Textbox(label="What happens", lines=8), gr.Code(label="Diff")]
            start.click(
                heal, [code, tests], outputs, api_name="heal", concurrency_limit=1, concurrency_id="run"
            )
        if settings.model.name != "none":
            with gr.Tab("Write"):
                task = gr.Textbox(label="Task, with examples such as double(4) == 8", lines=4)
                begin = gr.Button("Write", variant="primary")
                outputs = [
                    gr.Textbox(label="What happens", lines=8),
                    gr.Code(language="python", label="Code"),
                ]
                begin.click(
                    write, [task], outputs, api_name="write", concurrency_limit=1, concurrency_id="run"
                )
    return page


def main() -> None:
    """Fetch the model where one is named, and serve the page."""
    settings = settings_of(Path(tempfile.mkdtemp(prefix="suture-space-")))
    name = settings.model.name
    if name.startswith("local:"):
        pull_model(name.removeprefix("local:"), settings.paths.cache)
    build(settings).queue(max_size=QUEUE).launch()


if __name__ == "__main__":
    main()
