"""The prompts that come with Suture, and those of a project that stand in their place."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from suture.agents.prompting.prompt_files import Prompt, parse_prompt
from suture.core.safe_files import read_text_file
from suture.errors import UsageError

MAX_BYTES = 256_000


class PromptBook:
    """The prompts of one run: each is read once, when it is first needed.

    A new book reads the files anew, so that a change counts from the next run on, and never in the middle.

    Args:
        folder: Holds `<role>.yaml` files that stand in the place of ours; it need not exist.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._read: dict[str, Prompt] = {}

    def load(self, name: str) -> Prompt:
        """The prompt of a role: the project's own, else ours.

        Raises:
            UsageError: There is no such role, or the project's file does not fit it.
        """
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _load(self, name: str) -> Prompt:
        packaged = packaged_prompt(name)
        path = self.folder / f"{name}.yaml" if self.folder else None
        return packaged if path is None or not path.exists() else read_prompt(path, name)

    def strangers(self) -> Iterator[Path]:
        """Files in the folder that are no role's prompt, and so are never read."""
        if self.folder is not None and self.folder.is_dir():
            roles = {f"{name}.yaml" for name in packaged_names()}
            yield from (path for path in sorted(self.folder.iterdir()) if path.name not in roles)


def packaged_names() -> tuple[str, ...]:
    """The roles that have a prompt, sorted."""
    folder = files("suture.agents") / "prompts"
    return tuple(sorted(item.name.removesuffix(".yaml") for item in folder.iterdir()))


def packaged_prompt(name: str) -> Prompt:
    """The prompt that comes with Suture.

    Raises:
        UsageError: There is no such role.
    """
    import yaml

    names = packaged_names()
    if name not in names:
        close = get_close_matches(name, names, n=1)
        raise UsageError(
            f"there is no prompt called {name!r}",
            remedy=f"did you mean {close[0]!r}?" if close else f"one of {', '.join(names)}",
        )
    source = files("suture.agents") / "prompts" / f"{name}.yaml"
    return parse_prompt(yaml.safe_load(source.read_text("utf-8")), "packaged")


def read_prompt(path: Path, name: str) -> Prompt:
    """A role's prompt from a file of a user.

    Raises:
        UsageError: There is no such role, or the file cannot be read, is no YAML or does not fit the role.
    """
    return parse_prompt(_read_yaml(path), str(path), packaged_prompt(name))


def _read_yaml(path: Path) -> Any:
    import yaml

    content = read_text_file(path, MAX_BYTES, "the prompt")
    try:
        return yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as fault:
        raise UsageError(f"{path}: it is no YAML: {' '.join(str(fault).split())}") from fault
