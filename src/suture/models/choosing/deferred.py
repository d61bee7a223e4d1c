"""A model that is missing is an error when it is asked, not before: a cheaper repair may do without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from suture.errors import PrerequisiteError
from suture.models.choosing.providers import open_named
from suture.models.seam import Message, Model, Sampling
from suture.settings.schema import Settings

__all__ = ["MissingModel", "open_or_defer"]


class MissingModel:
    """Stands for a model whose key, package or weights are missing.

    Args:
        name: `provider:model`.
        fault: What is missing.
    """

    def __init__(self, name: str, fault: PrerequisiteError) -> None:
        self.name = name
        self._fault = fault

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> NoReturn:
        """Say what is missing.

        Raises:
            PrerequisiteError: Always.
        """
        raise self._fault

    async def close(self) -> None:
        """Nothing is held."""


def open_or_defer(settings: Settings, name: str) -> Model:
    """As `open_named`, but what is missing for the model is said when it is asked.

    Args:
        settings: The knobs.
        name: `provider:model`.

    Raises:
        UsageError: The name means nothing.
    """
    try:
        return open_named(settings, name)
    except PrerequisiteError as fault:
        return MissingModel(name, fault)
