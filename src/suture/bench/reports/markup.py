"""HTML and SVG as text in which nothing from outside can act as markup."""

from __future__ import annotations

import html

VOID = frozenset({"circle", "line", "path", "polyline", "rect", "meta"})
"""Elements without content, which have no end tag."""


class Markup(str):
    """Text that is markup already; `element` and `joined` escape any other text."""


def element(tag: str, *children: str, **attributes: str | float) -> Markup:
    """Return an element of HTML or SVG with its children.

    In names of attributes `_` stands for `-`, and one at the end is dropped, as in `class_`. Numbers are
    rounded to tenths.
    """
    attribute_text = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"' for name, value in attributes.items()
    )
    if tag in VOID and not children:
        return Markup(f"<{tag}{attribute_text}/>")
    return Markup(f"<{tag}{attribute_text}>{joined(*children)}</{tag}>")


def joined(*children: str) -> Markup:
    """Return markup and escaped text one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(child) for child in children))


def _value(value: str | float) -> str:
    return html.escape(value) if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
