"""A task cut into parts, and which of them can be worked on at the same time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Plan", "Subtask"]


@dataclass(frozen=True, kw_only=True)
class Subtask:
    """One part of a task.

    Attributes:
        goal: What is to be done, in a sentence or two.
        needs: Numbers of the parts that must be done before, counted from 1.
    """

    goal: str
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The parts of a task.

    Attributes:
        subtasks: The parts; each needs only parts that stand before it.
    """

    subtasks: tuple[Subtask, ...]

    def __post_init__(self) -> None:
        """Refuse a plan that cannot be followed.

        Raises:
            ValueError: A part needs itself, a later part, or one that is not there.
        """
        for number, subtask in enumerate(self.subtasks, 1):
            odd = [need for need in subtask.needs if not 1 <= need < number]
            if odd:
                raise ValueError(f"part {number} needs {odd}, and may need only parts before it")

    @property
    def waves(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the parts in groups: those of one need none of each other, only of groups before."""
        depth: dict[int, int] = {}
        for number, subtask in enumerate(self.subtasks, 1):
            depth[number] = 1 + max((depth[need] for need in subtask.needs), default=-1)
        return tuple(
            tuple(number for number in depth if depth[number] == level)
            for level in range(max(depth.values(), default=-1) + 1)
        )
