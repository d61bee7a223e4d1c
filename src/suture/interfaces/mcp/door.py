"""What the server works with, and which folders a client may name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mcp.server.mcpserver.exceptions import ToolError

from suture.core.settings import Settings
from suture.errors import SutureError


@dataclass(frozen=True, kw_only=True)
class Door:
    """What the server works with.

    Attributes:
        settings: Its own.
        flags: Those of them that were said on the command line, for the processes of its runs.
        roots: Folders in which projects may be healed, where the client names none of its own.
    """

    settings: Settings
    flags: Mapping[str, object]
    roots: tuple[Path, ...] = ()

    @property
    def home(self) -> Path:
        """Where runs are kept."""
        return self.settings.paths.home


def refused(fault: SutureError) -> ToolError:
    """A fault of ours as the protocol has it: in the command line's words, with the remedy."""
    return ToolError(f"{fault.message}; try: {fault.remedy}" if fault.remedy else fault.message)


def folder_of(uri: str) -> Path | None:
    """The folder that a `file:` address names; `None` where it names none of this machine."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return Path(unquote(parts.path))


def allowed(path: str, roots: Sequence[Path]) -> Path:
    """A folder that a client may have healed, without links on the way to it.

    Args:
        path: As the client names it.
        roots: The folders that it may name folders of.

    Raises:
        ToolError: It lies below none of them. Whether it is there is not told.
    """
    try:
        real = Path(path).resolve(strict=True)
        bases = [root.expanduser().resolve() for root in roots]
    except (OSError, ValueError, RuntimeError):
        bases = []
    if (
        not Path(path).is_absolute()
        or not any(real.is_relative_to(base) for base in bases)
        or not real.is_dir()
    ):
        fault = f"{path!r:.200} is no folder below an allowed root"
        if not roots:
            way = "have the client name its roots, or start the server as `suture mcp --root FOLDER`"
            raise ToolError(f"{fault}: there are none; try: {way}")
        raise ToolError(f"{fault}; try: the whole path of one below: {', '.join(map(str, roots))}")
    return real
