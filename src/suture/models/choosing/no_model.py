"""`none`: a run that asks no model. What a search finds is all that it can find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from suture.errors import PrerequisiteError
from suture.models.seam import Message, Sampling

NO_MODEL = "none"
"""The value of `model.name` with which nobody is asked."""


class NoModel:
    """Stands where a model would; who asks it all the same is told so."""

    name = NO_MODEL

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> NoReturn:
        """Say that nobody is to be asked.

        Raises:
            PrerequisiteError: Always.
        """
        refuse_without_model("this recipe's helpers ask a model")

    async def close(self) -> None:
        """Do nothing: no connection is held."""


def refuse_without_model(why: str) -> NoReturn:
    """Say what cannot be done without a model.

    Args:
        why: What would ask one.

    Raises:
        PrerequisiteError: Always.
    """
    raise PrerequisiteError(
        f"{why}, and model.name is {NO_MODEL!r}", remedy="name a model with --model, as docs/models.md shows"
    )
