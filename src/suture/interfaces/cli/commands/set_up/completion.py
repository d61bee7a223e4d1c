"""`suture completion`: what a shell reads to complete our commands and flags."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from suture.interfaces.cli import COMPLETE_VARIABLE
from suture.interfaces.cli.terminal.faults import reports_faults


@reports_faults
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Whose language.")],
) -> None:
    """Print a script that makes a shell complete commands and flags.

    For bash, put `eval "$(suture completion bash)"` into ~/.bashrc; zsh likewise. For fish, write it into
    ~/.config/fish/completions/suture.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # in no `__all__`

    typer.echo(get_completion_script(prog_name="suture", complete_var=COMPLETE_VARIABLE, shell=shell))
