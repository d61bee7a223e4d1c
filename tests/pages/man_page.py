"""The manual page `docs/suture.1`, generated from the commands' help by `python tests/write_pages.py`.

A wheel installs it below `share/man` of the environment, where `man suture` finds it; pipx links it from
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

FILES = (
    ("suture.toml", "A project's settings; before `suture trust` only harmless ones apply."),
    ("$XDG_CONFIG_HOME/suture/suture.toml", "Your own settings."),
    ("$XDG_STATE_HOME/suture", "Runs; SUTURE_HOME sets another folder."),
)
STATUS = (
    ("0", "Healed, or nothing to heal."),
    ("1", "Not healed."),
    ("2", "Usage error."),
    ("3", "A prerequisite is missing; the message says how to get it."),
    ("4", "The budget is exhausted."),
    ("5", "Waiting for a person."),
    ("6", "Internal or infrastructure error."),
    ("130", "Cancelled."),
)


def man_page() -> str:
    """Return the whole page in the format of man(7)."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    import typer

    from suture.interfaces.cli.app import SECTIONS, app

    root: Any = typer.main.get_command(app)
    yield '.TH SUTURE 1 "" "Suture" "User Commands"'
    yield from (".SH NAME", "suture \\- repair or write code until trusted tests pass")
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
    """Yield the section of a command with its options, or of each command in a group."""
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
    """Yield paragraphs as lines that do not start with a dot, which would start a macro."""
    for number, paragraph in enumerate((text or "").strip().split("\n\n")):
        if number:
            yield ".sp"
        yield _escaped(" ".join(paragraph.split()))


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped
