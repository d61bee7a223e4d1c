"""The file by which the process of a judgement tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from suture.core.records.judgement import JudgeStep
from suture.interfaces.narrative.judgement_text import STEP_TEXTS


def make_step_writer(path: str) -> Callable[[JudgeStep], None] | None:
    """Return a function that appends each step to a file, which the process that shows the progress reads."""
    if not path:
        return None

    def write_step(step: JudgeStep) -> None:
        with Path(path).open("a", encoding="ascii") as file:
            file.write(f"{step}\n")

    return write_step


def read_judge_steps(path: Path) -> list[JudgeStep]:
    """Return the steps of a judgement that have begun; none if the file is not there yet."""
    lines = (
        path.read_text("ascii").split("\n")[:-1] if path.is_file() else []
    )  # the last line may be incomplete
    return [step for line in lines for step in STEP_TEXTS if step == line]
