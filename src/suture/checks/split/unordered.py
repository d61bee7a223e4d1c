"""nan, for a test that does not speak of it: it can be computed with, and refuses to be less or more.

Runs behind the wall, in the judge. nan makes every `<` and `>` false, so a test that looks for what is too
large finds nothing.
"""

from __future__ import annotations

import re
from typing import Any

NAN_RE = re.compile(r"\bnan\b|is_?nan|isfinite", re.IGNORECASE)
ARITHMETIC = (
    "abs",
    "add",
    "divmod",
    "floordiv",
    "mod",
    "mul",
    "neg",
    "pos",
    "pow",
    "round",
    "sub",
    "truediv",
)
REFLECTED = ("radd", "rdivmod", "rfloordiv", "rmod", "rmul", "rpow", "rsub", "rtruediv")


class Unordered(Exception):
    """nan was asked whether it is less or more than something."""


class NotANumber(float):
    """A nan that stays one of its kind, and has no order."""

    def _refuse(self, other: object) -> bool:
        raise Unordered("the answer is nan, which is neither less nor more than anything")

    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def _staying(name: str) -> Any:
    plain = getattr(float, name)

    def compute(self: NotANumber, *others: Any) -> Any:
        found = plain(self, *others)
        return self if type(found) is float and found != found else found

    return compute


for _name in (*ARITHMETIC, *REFLECTED):
    setattr(NotANumber, f"__{_name}__", _staying(f"__{_name}__"))


def speaks_of_nan(source: str) -> bool:
    """Whether a test knows that there is such a thing."""
    return NAN_RE.search(source) is not None
