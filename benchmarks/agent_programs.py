"""How the programs of other agents are started: mini-swe-agent and aider, each from an environment of its own.

They run with your rights, outside any sandbox. None of them opens a browser, looks for updates or makes commits.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["agent_variables", "aider_command", "mini_command", "run_agent"]


def mini_command(programs: Path, model: str, message: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command of mini-swe-agent, from the environment `programs`/mini."""
    command = [str(programs / "mini" / "bin" / "mini"), "-m", f"openai/{model}", "-y", "-l", "0"]
    return [*command, "--exit-immediately", "-o", os.devnull, *options, "-t", message]


def aider_command(programs: Path, model: str, message: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command of aider, from the environment `programs`/aider."""
    fixed = "--yes-always --no-auto-commits --no-check-update --analytics-disable --no-show-model-warnings"
    fixed += " --no-gitignore --no-detect-urls --no-suggest-shell-commands"
    command = [str(programs / "aider" / "bin" / "aider"), "--model", f"openai/{model}", *fixed.split()]
    return [*command, *options, "--message", message]


def agent_variables(url: str) -> dict[str, str]:
    """Return the environment variables by which these programs use a server of OpenAI's protocol."""
    return {
        "OPENAI_API_KEY": os.environ.get("OPENAI_API_KEY", "none"),
        "OPENAI_API_BASE": url,
        "OPENAI_BASE_URL": url,
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "BROWSER": "true",  # aider opens pages about an error; this program ignores their addresses
    }


def run_agent(
    command: Sequence[str],
    folder: Path,
    *,
    home: Path,
    output: Path,
    variables: Mapping[str, str],
    first_on_path: Path,
    timeout_s: float,
) -> int | None:
    """Run a program in a folder; return its exit code, `None` if its time was up.

    Args:
        home: Its home folder, which is created if needed.
        output: The file for what it prints.
        first_on_path: The folder of the Python that the project's tests need.
    """
    home.mkdir(exist_ok=True)
    path = f"{first_on_path}:{os.environ.get('PATH', os.defpath)}"
    with output.open("wb") as lines:
        try:
            return subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=lines,
                stderr=lines,
                timeout=timeout_s,
                check=False,
                env={**os.environ, "HOME": str(home), "PATH": path, **variables},
            ).returncode
        except subprocess.TimeoutExpired:
            return None
