"""HTML and SVG as text in which nothing from outside can act as markup."""

from __future__ import annotations

import html

VOID = frozenset({"circle", "line", "path", "polyline", "rect", "meta"})


class Markup(str):
    """Text that is markup already; any other text is escaped where it is put into some."""


def element(tag: str, *children: str, **attributes: str | float) -> Markup:
    """An element of HTML or SVG as text.

    Args:
        tag: Its name.
        *children: What is inside: markup as it is, other text escaped.
        **attributes: Of the element; `_` stands for `-`, one at the end is dropped, numbers are rounded to
            tenths.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"' for name, value in attributes.items()
    )
    if tag in VOID and not children:
        return Markup(f"<{tag}{written}/>")
    return Markup(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*children: str) -> Markup:
    """Some markup and text after each other."""
    return Markup("".join(c if isinstance(c, Markup) else html.escape(c) for c in children))


def _value(value: str | float) -> str:
    return html.escape(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
