"""Shorten strings so that the part that matters stays."""

from __future__ import annotations


def shorten_pair(left: str, right: str, max_chars: int, lead_chars: int | None = None) -> tuple[str, str]:
    """Return two strings, or the parts of them around the first difference if they are long.

    Args:
        lead_chars: Characters before the difference that are kept; by default a third of `max_chars`.
    """
    if max(len(left), len(right)) <= max_chars:
        return left, right
    shortest = min(len(left), len(right))
    difference = next((at for at in range(shortest) if left[at] != right[at]), shortest)
    start = max(0, difference - (max_chars // 3 if lead_chars is None else lead_chars))

    def cut(text: str) -> str:
        end = start + max_chars
        return ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")

    return cut(left), cut(right)
