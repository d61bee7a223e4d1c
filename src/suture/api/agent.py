"""A specification in, code out: the class that an ancestor promised its users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from suture.api.carrying_out import run_sync
from suture.api.solving import solve
from suture.errors import UsageError
from suture.settings import flags_from_arguments, load_settings

__all__ = ["SelfHealingAgent"]


class SelfHealingAgent:
    """A specification in, code out: the interface that an ancestor promised its users.

    Args:
        model_provider: Such as `openai`, `anthropic`, `ollama`, `local`.
        model_name: The provider's name of the model.
        max_iterations: Attempts before it gives up.
        options: Other arguments that ancestors took; each works, or fails naming its successor.

    Raises:
        UsageError: An argument is unknown, or has no successor.
    """

    def __init__(
        self,
        model_provider: str = "openai",
        model_name: str = "gpt-4",
        max_iterations: int = 5,
        **options: object,
    ) -> None:
        if max_iterations < 1:
            raise UsageError(f"max_iterations must be at least 1, not {max_iterations!r}")
        given = {"model_provider": model_provider, "model_name": model_name, "max_iterations": max_iterations}
        self.max_iterations = max_iterations
        self.settings = load_settings(Path.cwd(), flags_from_arguments({**given, **options})).settings

    def run(self, specification: str) -> dict[str, Any]:
        """Write code for a specification.

        Returns:
            A mapping with `code`, `is_complete`, `iteration`, `specification`, `max_iterations`,
            `execution_output`, `execution_error`, `critic_feedback`, and `run_id`. `is_complete` is true only
            when every trusted check passed; without any check to trust it is false.

        Raises:
            UsageError: The specification is empty.
            PrerequisiteError: A key, a model or the sandbox is missing.
        """
        result = run_sync(solve(specification, settings=self.settings))
        files = dict(result.candidate.files) if result.candidate else {}
        facts = result.verdict.counterexamples if result.verdict else ()
        return {
            "specification": specification,
            "code": "\n".join(files.values()),
            "execution_output": result.verdict.output if result.verdict else "",
            "execution_error": facts[0].exception or facts[0].got if facts else "",
            "critic_feedback": "" if result.ok else result.reason,
            "iteration": result.spend.attempts,
            "max_iterations": self.max_iterations,
            "is_complete": result.ok,
            "run_id": result.run_id,
        }
