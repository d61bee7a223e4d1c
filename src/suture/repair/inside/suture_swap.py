"""A changed source in a process that has imported the old one: functions get new code where they are."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suture.repair.inside.suture_trial import ROOT
else:  # behind the wall these files stand alone
    from suture_trial import ROOT


class Swapper:
    """Knows the functions that live in this process.

    Args:
        texts: Path -> source, of files that will change.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self._live: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._old: dict[str, dict[Any, CodeType]] = {}
        files = {os.path.join(ROOT, path): path for path in texts}
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                path = files.get(os.path.abspath(thing.__code__.co_filename))
                if path is not None:
                    key = (path, thing.__code__.co_name, thing.__code__.co_firstlineno)
                    self._live.setdefault(key, []).append(thing)
        for path, text in texts.items():
            try:
                self._old[path] = dict(
                    codes_in(compile(text, os.path.join(ROOT, path), "exec", dont_inherit=True))
                )
            except (SyntaxError, ValueError):
                self._old[path] = {}

    def swap(self, path: str, text: str) -> bool:
        """Give the functions of a file their new code; false where that cannot be done in place."""
        new = dict(codes_in(compile(text, os.path.join(ROOT, path), "exec", dont_inherit=True)))
        for place, code in self._old[path].items():
            for function in self._live.get((path, code.co_name, code.co_firstlineno), ()):
                other = new.get(place)
                if other is None or other.co_freevars != function.__code__.co_freevars:
                    return False
                function.__code__ = other
        return True


def codes_in(code: CodeType, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], CodeType]]:
    """The code objects in one, each with its place: names from the outside in, and a number among equals."""
    counts: dict[str, int] = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            number = counts[constant.co_name] = counts.get(constant.co_name, 0) + 1
            inner = (*place, (constant.co_name, number))
            yield inner, constant
            yield from codes_in(constant, inner)
