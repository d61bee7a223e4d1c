"""The command that installs Suture again with an optional part, from the place where this Suture came from."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

DISTRIBUTION = "suture"
"""The package's name on an index, which `pyproject.toml` sets."""


def format_install_command(extra: str = "") -> str:
    """Return the command that installs an extra of Suture into this environment.

    A checkout, a wheel or a repository from which this Suture was installed is named again, because an index may have
    another version, or none.

    Args:
        extra: The name of the extra; empty for Suture alone.
    """
    try:
        arguments = _format_requirement(distribution(DISTRIBUTION), extra)
    except PackageNotFoundError:  # run from a source tree that is not installed
        arguments = ["-e", _add_extra(str(Path(__file__).parents[3]), extra)]
    return shlex.join([*_find_installer(), *arguments])


def _format_requirement(installed: Distribution, extra: str) -> list[str]:
    """Return what an installer is asked for. Where a package came from is recorded as PEP 610 describes it."""
    name = _add_extra(DISTRIBUTION, extra)
    recorded = installed.read_text("direct_url.json")
    if recorded is None:  # it came from an index
        return [name]
    origin: dict[str, Any] = json.loads(recorded)
    url = origin["url"]
    if version_control := origin.get("vcs_info"):
        revision = version_control.get("requested_revision")
        return [f"{name} @ {version_control['vcs']}+{url}{f'@{revision}' if revision else ''}"]
    path = Path(unquote(urlsplit(url).path))
    if url.startswith("file:") and not path.exists():
        return [f"{name} @ git+{_find_repository(installed)}"]
    if origin.get("dir_info", {}).get("editable"):
        return ["-e", _add_extra(str(path), extra)]
    return [f"{name} @ {url}"]


def _add_extra(requirement: str, extra: str) -> str:
    return f"{requirement}[{extra}]" if extra else requirement


def _find_repository(installed: Distribution) -> str:
    """Return the address of the source, which `pyproject.toml` sets."""
    addresses: dict[str, str] = dict(
        entry.split(", ", 1) for entry in installed.metadata.get_all("Project-URL") or ()
    )
    return addresses["Repository"]


def _find_installer() -> list[str]:
    """Return the command that installs packages into the environment of this Python."""
    environment = Path(sys.prefix)
    if (environment / "pipx_metadata.json").is_file():
        return ["pipx", "install", "--force"]
    if (environment / "uv-receipt.toml").is_file():
        return ["uv", "tool", "install"]
    if importlib.util.find_spec("pip") is None and shutil.which("uv") is not None:
        return ["uv", "pip", "install", "--python", sys.executable]
    found = shutil.which("pip")
    # `pip` may be another environment's, if this one is not activated.
    is_own = found is not None and Path(found).parent == Path(sys.executable).parent
    return ["pip", "install"] if is_own else [sys.executable, "-m", "pip", "install"]
