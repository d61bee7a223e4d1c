"""`SelfHealingAgent`: the class of an ancestor project, which writes code for a specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suture.api.heal_and_solve import solve
from suture.api.options import WriteOptions
from suture.api.past_runs import fork_from_iteration, load_recorded_run
from suture.core.interruption import run_sync
from suture.core.records import Result, render_reason
from suture.core.settings import flags_from_arguments, load_settings
from suture.errors import UsageError
from suture.loop.review.questions import Reviewer


class SelfHealingAgent:
    """Write code for specifications.

    Args:
        model_provider: The provider, such as `openai`, `anthropic`, `ollama` or `local`.
        model_name: The provider's name of the model.
        max_iterations: Maximum number of attempts.
        on_review: Called where `autonomy` asks for a person, as in `WriteOptions`.
        options: `autonomy`, and the arguments of ancestor projects. Each of these works, or fails with an
            error that names its successor.

    Raises:
        UsageError: An argument is unknown, or has no successor.
    """

    def __init__(
        self,
        model_provider: str = "openai",
        model_name: str = "gpt-4",
        max_iterations: int = 5,
        on_review: Reviewer | None = None,
        **options: object,
    ) -> None:
        if max_iterations < 1:
            raise UsageError(f"max_iterations must be at least 1, not {max_iterations!r}")
        self.max_iterations = max_iterations
        self.on_review = on_review
        arguments = {
            "model_provider": model_provider,
            "model_name": model_name,
            "max_iterations": max_iterations,
            **options,
        }
        self.settings = load_settings(Path.cwd(), flags_from_arguments(arguments)).settings

    def run(self, specification: str) -> dict[str, Any]:
        """Write code for a specification.

        Returns:
            A mapping with `code`, `is_complete`, `iteration`, `specification`, `max_iterations`,
            `execution_output`, `execution_error`, `critic_feedback`, and `run_id`. `is_complete` is true only
            if every trusted check passed; without a trusted check it is false.

        Raises:
            UsageError: The specification is empty.
            PrerequisiteError: A key, a model or the sandbox is missing.
        """
        options = WriteOptions(settings=self.settings, on_review=self.on_review)
        return self._summarise(specification, run_sync(solve(specification, options)))

    def fork_from_iteration(
        self,
        iteration: int,
        run_id: str = "last",
        *,
        hint: str = "",
        candidate: str | Mapping[str, str] = "",
        **changes: object,
    ) -> dict[str, Any]:
        """Start a new run from a step of another one, with something changed.

        Args:
            iteration: The number of decisions that the run had carried out; 0 is before the first.
            run_id: The run: an id, or `last`.
            hint: A hint that the model gets from now on.
            candidate: Code to judge before anything else.
            changes: Arguments of this class that differ from those of the run.

        Returns:
            What `run` returns, for the new run.

        Raises:
            UsageError: There is no such run or step, or an argument is unknown.
        """
        forked = fork_from_iteration(
            run_id,
            iteration,
            changes=flags_from_arguments(changes),
            hint=hint,
            candidate=candidate,
            settings=self.settings,
            on_review=self.on_review,
        )
        result = run_sync(forked)
        specification = load_recorded_run(result.run_id, self.settings).task.statement
        return self._summarise(specification, result)

    def _summarise(self, specification: str, result: Result) -> dict[str, Any]:
        files = dict(result.candidate.files) if result.candidate else {}
        facts = result.verdict.counterexamples if result.verdict else ()
        return {
            "specification": specification,
            "code": "\n".join(files.values()),
            "execution_output": result.verdict.output if result.verdict else "",
            "execution_error": facts[0].exception or facts[0].actual if facts else "",
            "critic_feedback": "" if result.ok else render_reason(result.reason),
            "iteration": result.spend.attempts,
            "max_iterations": self.max_iterations,
            "is_complete": result.ok,
            "run_id": result.run_id,
        }
