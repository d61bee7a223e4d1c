"""The manual page `docs/suture.1`, made of the commands' help; `python tests/write_pages.py` writes it.

A wheel lays it where `man suture` looks: below `share/man` of the environment, from where pipx links it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

FILES = (
    ("suture.toml", "A project's settings, which decide little before `suture trust`."),
    ("$XDG_CONFIG_HOME/suture/suture.toml", "Your own settings."),
    ("$XDG_STATE_HOME/suture", "Runs; SUTURE_HOME names another folder."),
)
STATUS = (
    ("0", "Healed, or nothing to heal."),
    ("1", "Not healed."),
    ("2", "Usage."),
    ("3", "Something is missing; the message says how to get it."),
    ("4", "The budget is spent."),
    ("5", "Waiting for a person."),
    ("6", "A fault of the machinery."),
    ("130", "Cancelled."),
)


def man_page() -> str:
    """The whole page, in the language of man(7)."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    import typer

    from suture.interfaces.cli.app import SECTIONS, app

    root: Any = typer.main.get_command(app)
    yield '.TH SUTURE 1 "" "Suture" "User Commands"'
    yield from (".SH NAME", "suture \\- heal code until tests that can be trusted pass")
    yield from (".SH SYNOPSIS", ".B suture", "COMMAND [OPTION]... [ARGUMENT]...")
    yield from (".SH DESCRIPTION", *_text(root.help))
    for title, commands in SECTIONS.items():
        yield f".SH {title.upper()}"
        for name in commands:
            yield from _command(root.commands[name], f"suture {name}")
    for title, rows in (("EXIT STATUS", STATUS), ("FILES", FILES)):
        yield f".SH {title}"
        for name, text in rows:
            yield from (".TP", f".B {_escaped(name)}", *_text(text))


def _command(command: Any, name: str) -> Iterator[str]:
    """A command as a part of its own, with its options; of a group, each command in it."""
    parts = getattr(command, "commands", {})
    if parts:
        for part, inner in parts.items():
            yield from _command(inner, f"{name} {part}")
        return
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from (f".SS {_escaped(usage)}", *_text(command.help))
    for param in command.params:
        if record := param.get_help_record(context):
            flags, text = record
            yield from (".TP", f".B {_escaped(flags)}", *_text(text))


def _text(text: str | None) -> Iterator[str]:
    """Paragraphs as lines that begin with no dot, which would be a command of the page's language."""
    for number, paragraph in enumerate((text or "").strip().split("\n\n")):
        if number:
            yield ".sp"
        yield _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
