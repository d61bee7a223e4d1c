"""Stand-ins for answers that are nan or infinite, so that a test cannot overlook them.

Every `<` and `>` with nan is false. So a test that looks for errors that are too large, as in
`if abs(f(x) - 2) > 1e-9: errors.append(x)`, finds none if the answer is nan, or if the test computes nan from
an infinite answer. With these stand-ins such a comparison raises, unless the test's source mentions such numbers.

Runs inside the sandbox, in the judge.
"""

from __future__ import annotations

import cmath
import re
from collections.abc import Callable
from typing import Any

NAN_RE = re.compile(r"\bnan\b|is_?nan|isfinite", re.IGNORECASE)
"""Text by which a test shows that it expects nan."""
INFINITY_RE = re.compile(r"\binf(inity)?\b|is_?inf|\de\+?\d{3}", re.IGNORECASE)
"""Text by which a test shows that it expects infinite numbers, such as `float("inf")` or `1e999`."""
COMPLEX_ARITHMETIC = (
    "abs", "add", "mul", "neg", "pos", "pow", "sub", "truediv", "radd", "rmul", "rpow", "rsub", "rtruediv",
)  # fmt: skip
FLOAT_ARITHMETIC = (
    *COMPLEX_ARITHMETIC, "divmod", "floordiv", "mod", "rdivmod", "rfloordiv", "rmod", "round",
)  # fmt: skip


class UnorderedComparison(Exception):
    """A test compared nan with something by `<` or `>`."""


class InfiniteNumber(float):
    """An infinite number that behaves like a float, except that nan computed from it is `NotANumber`."""


class NotANumber(float):
    """nan for a test that does not mention nan: arithmetic works, but `<` and `>` raise."""

    def _refuse(self, other: object) -> bool:
        raise UnorderedComparison(
            "the answer is nan, or leads to it, which is neither less nor more than anything"
        )

    __lt__ = __le__ = __gt__ = __ge__ = _refuse


class NonFiniteComplex(complex):
    """A complex number with a part that is nan or infinite; its parts and results are stand-ins too."""

    @property
    def real(self) -> float:
        """The real part."""
        part: float = guard_number(complex(self).real)
        return part

    @property
    def imag(self) -> float:
        """The imaginary part."""
        part: float = guard_number(complex(self).imag)
        return part


STAND_INS = (InfiniteNumber, NotANumber, NonFiniteComplex)


def guard_number(number: Any) -> Any:
    """Return the stand-in for a number that is nan or infinite, and anything else as it is."""
    if type(number) is float and not cmath.isfinite(number):
        return NotANumber(number) if number != number else InfiniteNumber(number)
    if type(number) is complex and not cmath.isfinite(number):
        return NonFiniteComplex(number)
    if type(number) is tuple:  # the result of divmod
        return tuple(map(guard_number, number))
    return number


def _guard_nan(number: Any) -> Any:
    return guard_number(number) if cmath.isnan(number) else number


def _keep_number(number: Any) -> Any:
    return number


def choose_number_guard(source: str) -> Callable[[Any], Any]:
    """Return the function that turns an answered float or complex number into what a test gets.

    Args:
        source: The test's source. Numbers that it mentions reach the test as they are.
    """
    if NAN_RE.search(source):
        return _keep_number
    return _guard_nan if INFINITY_RE.search(source) else guard_number


def write_number(number: Any) -> list[Any]:
    """Return the JSON of a stand-in's number; see wire.py."""
    if isinstance(number, complex):
        plain = complex(number)
        return ["c", plain.real.hex(), plain.imag.hex()]
    return ["f", number.hex()]


def _make_operator(base: type, name: str) -> Any:
    """Return an operator of a number type whose result is a stand-in again if it is not finite."""
    base_operator = getattr(base, name)

    def compute(self: Any, *operands: Any) -> Any:
        result = base_operator(self, *operands)
        if result is NotImplemented and type(operands[0]) is complex and hasattr(complex, name):
            result = getattr(complex, name)(complex(self), *operands)
        return guard_number(result)

    return compute


for _class in STAND_INS:
    _base, _names = (complex, COMPLEX_ARITHMETIC) if _class is NonFiniteComplex else (float, FLOAT_ARITHMETIC)
    for _name in _names:
        setattr(_class, f"__{_name}__", _make_operator(_base, f"__{_name}__"))
