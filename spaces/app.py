"""Suture as a Gradio Space: repair a module by its tests, or write code for a task.

The code comes from strangers, so it runs only inside the sandbox that the settings name.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from pathlib import Path

import gradio as gr

from suture.api import HealOptions, WriteOptions, stream
from suture.api.prerequisites import examine_machine
from suture.core.ledger import find_run
from suture.core.records import Result
from suture.core.settings import Settings, load_settings
from suture.errors import SutureError
from suture.interfaces.narrative.plain_text import escape_unprintable
from suture.interfaces.narrative.run_progress_text import ProgressNarrator, render_short_result
from suture.models import pull_model
from suture.sandbox import Requirement

RUN_SECONDS, RUN_ATTEMPTS, RUN_TOKENS = 180, 6, 4000
MAX_RUNS_PER_HOUR = 6
"""Runs of one visitor."""
MAX_QUEUE = 8
"""Visitors who wait; one run at a time is carried out for all of them."""
MAX_INPUT_CHARS = 20_000
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


class RateLimiter:
    """Limits the runs per hour of each visitor. Its counts are kept only in memory."""

    def __init__(self) -> None:
        self._runs: dict[str, deque[float]] = defaultdict(deque)

    def admit(self, visitor: str, now_s: float) -> str:
        """Count a run of a visitor; return the refusal if there were too many, else an empty string."""
        for known in [name for name, runs in self._runs.items() if now_s - runs[-1] > HOUR_S]:
            del self._runs[known]
        runs = self._runs[visitor]
        while runs and now_s - runs[0] > HOUR_S:
            runs.popleft()
        if len(runs) >= MAX_RUNS_PER_HOUR:
            left_min = (HOUR_S - now_s + runs[0]) / 60
            return f"{MAX_RUNS_PER_HOUR} runs an hour for each visitor; try again in {left_min:.0f} min"
        runs.append(now_s)
        return ""


def load_space_settings(home: Path) -> Settings:
    """Return the settings of the Space: those of its environment, and limits that no visitor may exceed."""
    fixed = {
        "paths.home": str(home),
        "loop.autonomy": "full_auto",
        "budget.seconds": RUN_SECONDS,
        "budget.attempts": RUN_ATTEMPTS,
        "budget.tokens": RUN_TOKENS,
        "certification.seconds": 20,
    }
    if not os.environ.get("SUTURE_MODEL"):
        fixed |= {"model.name": "none", "models.coder": "none"}
    return load_settings(home, fixed, os.environ).settings


def find_missing(settings: Settings) -> list[Requirement]:
    """Return what a run needs and this machine lacks."""
    return [found for found in examine_machine(settings) if found.needed and not found.ok]


async def show_run(task: str | Path, options: HealOptions | WriteOptions) -> AsyncIterator[tuple[str, str]]:
    """Carry out a run. Yield its progress so far, with its diff or code at the end."""
    assert options.settings is not None
    shown: list[str] = []
    narrator = ProgressNarrator(suggest_commands=False)
    try:
        async for item in stream(task, options):
            if isinstance(item, Result):
                folder = find_run(options.settings.paths.home, item.run_id)
                shown += render_short_result(item, folder, suggest_commands=False)
                code = item.candidate.files if item.candidate and not isinstance(task, Path) else {}
                yield escape_unprintable("\n".join(shown)), item.diff or "\n".join(code.values())
            elif lines := narrator.lines_for(item):
                shown += lines
                yield escape_unprintable("\n".join(shown)), ""
    except SutureError as fault:
        yield escape_unprintable("\n".join([*shown, f"{fault.message}. {fault.remedy}"])), ""


def write_project(folder: str, code: str, tests: str) -> Path:
    """Write the two files of a visitor into a folder, and return it as a project."""
    Path(folder, "solution.py").write_text(code, "utf-8")
    Path(folder, "test_solution.py").write_text(tests, "utf-8")
    return Path(folder)


def build(settings: Settings) -> gr.Blocks:
    """Return the page."""
    limiter = RateLimiter()

    def check_input(request: gr.Request, *texts: str) -> None:
        if any(len(text) > MAX_INPUT_CHARS for text in texts) or not all(text.strip() for text in texts):
            raise gr.Error(f"each text has 1 to {MAX_INPUT_CHARS:,} characters")
        visitor = request.client.host if request.client else ""
        if refusal := limiter.admit(visitor, time.time()):
            raise gr.Error(refusal)

    async def heal(code: str, tests: str, request: gr.Request) -> AsyncIterator[tuple[str, str]]:
        check_input(request, code, tests)
        with tempfile.TemporaryDirectory() as folder:
            options = HealOptions(settings=settings, test="python -m pytest -q")
            async for shown in show_run(write_project(folder, code, tests), options):
                yield shown

    async def write(task: str, request: gr.Request) -> AsyncIterator[tuple[str, str]]:
        check_input(request, task)
        async for shown in show_run(task, WriteOptions(settings=settings)):
            yield shown

    with gr.Blocks(title="Suture", analytics_enabled=False) as page:
        gr.Markdown(
            "# Suture\nCode runs in a sandbox without network; a change counts when every test passes."
        )
        missing = find_missing(settings)
        if missing:
            gr.Markdown("**Nothing can be run here.** This machine lacks what Suture needs:")
            gr.Textbox(
                "\n".join(f"{found.name}: {found.detail}. {found.remedy}" for found in missing),
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
    """Download the local model if the settings name one, and serve the page."""
    settings = load_space_settings(Path(tempfile.mkdtemp(prefix="suture-space-")))
    name = settings.model.name
    if name.startswith("local:"):
        pull_model(name.removeprefix("local:"), settings.paths.cache)
    build(settings).queue(max_size=MAX_QUEUE).launch()


if __name__ == "__main__":
    main()
