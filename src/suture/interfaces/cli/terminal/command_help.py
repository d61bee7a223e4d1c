"""The help of a command: examples and the options that most people need come first."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING

from typer.core import TyperCommand

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "heal": ("suture heal --no-model", "suture heal shop --test 'pytest -q' --apply"),
    "judge": ("suture judge", "suture judge --base main --explain"),
    "watch": ("suture watch", "suture watch shop --apply --seconds 60"),
    "run": (
        "suture run \"Write a function roman(n). roman(4) == 'IV'\"",
        'suture run "A REST API for books" --project web_app --into books',
    ),
    "apply": ("suture apply", "suture apply 8ef0a1 --commit"),
    "undo": ("suture undo", "suture undo 8ef0a1"),
    "review": ("suture review", "suture review 8ef0a1"),
    "resume": ("suture resume --answer approve", 'suture resume --hint "The discount is a percentage."'),
    "show": ("suture show", "suture show 8ef0a1 --diff"),
    "history": ("suture history", "suture history --outcome healed --since 7d"),
    "metrics": ("suture metrics", "suture metrics --since 7d --model qwen"),
    "verify": ("suture verify last", "suture verify certificate.json --project shop"),
    "replay": ("suture replay", "suture replay 8ef0a1 --json"),
    "fork": ("suture fork last --model openai:gpt-4o", 'suture fork last --at 2 --hint "Look at round()."'),
    "quality": ("suture quality", "suture quality last --only complexity"),
    "doctor": ("suture doctor", "suture doctor --model openai:gpt-4o"),
    "self-check": ("suture self-check", "suture self-check --json"),
    "init": ("suture init", "suture init shop"),
    "trust": ("suture trust", "suture trust --list"),
    "completion": ('eval "$(suture completion bash)"', 'eval "$(suture completion zsh)"'),
    "ui": ("suture ui", "suture ui ~/projects --port 9000"),
    "mcp": ("suture mcp --root ~/projects", "suture mcp --http --port 8766"),
    "acp": ("suture acp", "suture acp --model openai:gpt-4o"),
    "lsp": ("suture lsp", "suture lsp --seconds 20"),
}
USUAL_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "heal": ("--test", "--hint", "--apply", "--no-model", "--model"),
    "judge": ("--base", "--patch", "--staged", "--test", "--explain"),
    "run": ("--test", "--apply", "--into", "--project", "--model"),
}
"""The options that are listed first, for commands with so many options that a reader would search for these."""


class CommandWithExamples(TyperCommand):
    """A command of the program whose help shows its summary, examples, common options, details and other options."""

    def format_help_text(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the summary and the examples."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(self._paragraphs()[0])
        with formatter.section("Examples"):
            for example in EXAMPLES[str(self.name)]:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the arguments, the common options, the details, and the other options."""
        usual = USUAL_OPTIONS.get(str(self.name))
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], "More options": []}
        for param in self.get_params(ctx):
            is_usual = usual is None or not {*param.opts}.isdisjoint(usual)
            title = "Options" if is_usual else "More options"
            if record := param.get_help_record(ctx):
                sections["Arguments" if param.param_type_name == "argument" else title].append(record)
        rest = sections.pop("More options")
        for title, records in sections.items():
            _write_section(title, records, formatter)
        for paragraph in self._paragraphs()[1:]:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(paragraph)
        _write_section("More options", rest, formatter)

    def _paragraphs(self) -> list[str]:
        return inspect.cleandoc(self.help or "").split("\n\n")


def _write_section(title: str, records: list[tuple[str, str]], formatter: HelpFormatter) -> None:
    if records:
        with formatter.section(title):
            formatter.write_dl(records)
