"""The command that installs Suture again with an optional part, from the place where this Suture came from."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

DISTRIBUTION = "suture"
"""The package's name on an index, which `pyproject.toml` sets."""
UV_RECEIPT = "uv-receipt.toml"
"""The file in which uv records what a tool's environment was made from."""
UV_SOURCES = ("url", "path", "directory", "editable")
"""Keys of the receipt that say where a package comes from, if not from an index."""
UV_TOOL_INSTALL = ["uv", "tool", "install"]


def format_install_command(extra: str = "") -> str:
    """Return the command that installs an extra of Suture into this environment.

    A checkout, a wheel or a repository from which this Suture was installed is named again, because an index may have
    another version, or none.

    Args:
        extra: The name of the extra; empty for Suture alone.
    """
    installer = _find_installer()
    additions: list[str] = []
    if installer == UV_TOOL_INSTALL:
        extra, additions = _read_uv_receipt(extra)
    try:
        arguments = _format_requirement(distribution(DISTRIBUTION), extra)
    except PackageNotFoundError:  # run from a source tree that is not installed
        arguments = ["-e", _add_extra(str(Path(__file__).parents[3]), extra)]
    return shlex.join([*installer, *arguments, *additions])


def _read_uv_receipt(extra: str) -> tuple[str, list[str]]:
    """Return what `uv tool install` is asked for besides Suture, so that it removes nothing.

    The command replaces the requirements of an installed tool. Its receipt records those that were asked for before.

    Returns:
        The old extras and the new one, separated by commas; and the options that keep other packages.
    """
    extras, additions = {extra} - {""}, []
    try:
        receipt = tomllib.loads((Path(sys.prefix) / UV_RECEIPT).read_text())
        for requirement in receipt["tool"]["requirements"]:
            name, recorded = requirement["name"], requirement.get("extras", [])
            if name == DISTRIBUTION:
                extras.update(recorded)
            else:
                source = next((requirement[key] for key in UV_SOURCES if key in requirement), None)
                address = f" @ {source}" if source else requirement.get("specifier", "")
                additions += ["--with", _add_extra(name, ",".join(recorded)) + address]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # a receipt that is damaged, or of another version of uv
    return ",".join(sorted(extras)), additions


def _format_requirement(installed: Distribution, extra: str) -> list[str]:
    """Return what an installer is asked for. Where a package came from is recorded as PEP 610 describes it."""
    name = _add_extra(DISTRIBUTION, extra)
    recorded = installed.read_text("direct_url.json")
    if recorded is None:  # it came from an index
        return [name]
    try:
        return _format_origin(json.loads(recorded), extra, _find_repository(installed))
    except (ValueError, LookupError, TypeError, AttributeError):  # the metadata are damaged
        return [name]


def _format_origin(origin: dict[str, Any], extra: str, repository: str) -> list[str]:
    """Return what names the place from which Suture was installed, or its repository if a file is gone."""
    name, url = _add_extra(DISTRIBUTION, extra), origin["url"]
    if version_control := origin.get("vcs_info"):
        revision = version_control.get("requested_revision")
        return [f"{name} @ {version_control['vcs']}+{url}{f'@{revision}' if revision else ''}"]
    path = Path(unquote(urlsplit(url).path))
    if url.startswith("file:") and not path.exists():
        return [f"{name} @ git+{repository}" if repository else name]
    if origin.get("dir_info", {}).get("editable"):
        return ["-e", _add_extra(str(path), extra)]
    return [f"{name} @ {url}"]


def _add_extra(requirement: str, extra: str) -> str:
    return f"{requirement}[{extra}]" if extra else requirement


def _find_repository(installed: Distribution) -> str:
    """Return the address of the source, which `pyproject.toml` sets; empty if the metadata lack it."""
    for entry in installed.metadata.get_all("Project-URL") or ():
        label, _, address = entry.partition(", ")
        if label == "Repository":
            return str(address)
    return ""


def _find_installer() -> list[str]:
    """Return the command that installs packages into the environment of this Python."""
    environment = Path(sys.prefix)
    if (environment / "pipx_metadata.json").is_file():
        return ["pipx", "install", "--force"]
    if (environment / UV_RECEIPT).is_file():
        return UV_TOOL_INSTALL
    if importlib.util.find_spec("pip") is None and shutil.which("uv") is not None:
        return ["uv", "pip", "install", "--python", sys.executable]
    found = shutil.which("pip")
    # `pip` may be another environment's, if this one is not activated.
    is_own = found is not None and Path(found).parent == Path(sys.executable).parent
    return ["pip", "install"] if is_own else [sys.executable, "-m", "pip", "install"]
