"""The type of the `require` fixture, for annotations."""

from collections.abc import Callable

__all__ = ["Require"]

Require = Callable[[str, bool, str], None]
"""`require(name, available, reason)`: skips, or fails where `SUTURE_REQUIRE` names the tool."""
