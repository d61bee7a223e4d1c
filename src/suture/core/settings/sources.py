"""The sources of settings, `.env` files too, each read on its own; `loading` puts them in order."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.core.safe_files import parse_toml, read_plain
from suture.core.settings.aliases import is_alias
from suture.core.settings.schema import Settings, setting_fields
from suture.errors import UsageError

PREFIX = "SUTURE_"
SHORT_NAMES = {
    "SUTURE_DATABASE_URL": "store.url",
    "SUTURE_HOME": "paths.home",
    "SUTURE_LOG": "log.file",
    "SUTURE_MODEL": "model.name",
}
MOST_BYTES = 64 * 2**10
"""Of a file of settings; all of them together need a tenth of it."""
MOST_PYPROJECT_BYTES = 2**20
SPEAKS_OF_US = re.compile(r"""tool[ \t]*\.[ \t]*["']?suture|^[ \t]*\[[ \t]*tool[ \t]*\]""", re.MULTILINE)
"""Without it a `pyproject.toml` has no table of ours, and is not parsed."""
NOT_SETTINGS = frozenset({"SUTURE_DATA", "SUTURE_REQUIRE", "SUTURE_SCREENSHOTS"})
"""Variables that the test suite reads."""
OF_THE_ENVIRONMENT = frozenset({"DATABASE_URL"})
"""In a project's `.env` they are the project's own business."""

# One assignment; a quoted value may span lines. Bounded, and with one way to match: a file of quotes or of
# spaces must not keep us busy.
_ASSIGNMENT = re.compile(
    r"""
    ^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*
    (?:
        '(?P<single>[^']{0,4096})'[ \t]*(?:\#[^\n]*)?\r?$
      | "(?P<double>(?:[^"\\]|\\.){0,4096})"[ \t]*(?:\#[^\n]*)?\r?$
      | (?P<bare>[^\n]*)$
    )
    """,
    re.MULTILINE | re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"(?<=[ \t])#")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, kw_only=True)
class Given:
    """One value of one setting.

    Attributes:
        value: As it was written; not yet checked.
        origin: For people, such as `environment SUTURE_HOME`.
        folder: What a relative path is relative to.
        from_project: Whether the project's own files said so; they are trusted less than the user.
    """

    value: object
    origin: str
    folder: Path
    from_project: bool = False


Layer = dict[str, Given]
"""What one source says: dotted key -> value."""


@dataclass(frozen=True, kw_only=True)
class Variables:
    """The environment and the project's `.env`, in one.

    Attributes:
        own: `SUTURE_*` as settings, the weaker `.env` first.
        ancestors: The ancestors' variables by name; the environment beats `.env`.
    """

    own: tuple[Layer, ...]
    ancestors: Mapping[str, Given]

    def without_project(self) -> Variables:
        """The same without what the project's `.env` says."""
        own = tuple(
            {key: given for key, given in layer.items() if not given.from_project} for layer in self.own
        )
        ancestors = {name: given for name, given in self.ancestors.items() if not given.from_project}
        return Variables(own=own, ancestors=ancestors)


def variable_of(key: str) -> str:
    """The variable of a setting: `SUTURE_BUDGET_TOKENS` of `budget.tokens`."""
    return PREFIX + key.replace(".", "_").upper()


def flag_layer(flags: Mapping[str, object]) -> Layer:
    """What the command line or a caller says; `None` counts as not given.

    Raises:
        UsageError: There is no such setting.
    """
    layer: Layer = {}
    for key, value in flags.items():
        _require_known(key, "the flags")
        if value is not None:
            layer[key] = Given(value=value, origin="flag", folder=Path.cwd())
    return layer


def project_layer(folder: Path) -> Layer:
    """What a project's `pyproject.toml` says, and over it what its `suture.toml` says.

    Raises:
        UsageError: As `file_layer`.
    """
    return {
        **_layer(pyproject_table(folder), folder / "pyproject.toml", from_project=True),
        **file_layer(folder / "suture.toml", from_project=True),
    }


def pyproject_table(folder: Path) -> Mapping[str, object]:
    """The table `tool.suture` of a project's `pyproject.toml`; empty where there is none.

    Raises:
        UsageError: The file speaks of such a table, and cannot be read.
    """
    path = folder / "pyproject.toml"
    text = pyproject_text(folder)
    if not SPEAKS_OF_US.search(text):
        return {}  # whatever else is wrong with it is not for us to say
    try:
        tool = parse_toml(text).get("tool")
    except ValueError as fault:
        raise UsageError(f"{str(path)!r} is not TOML: {fault}", remedy="mend that line") from fault
    table = tool.get("suture", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{str(path)!r}: tool.suture is no table", remedy="such as [tool.suture.budget]")
    return table


def pyproject_text(folder: Path) -> str:
    """The text of a project's `pyproject.toml`, as far as it can be read."""
    try:
        content = read_plain(folder / "pyproject.toml", MOST_PYPROJECT_BYTES, follow=True) or b""
    except OSError:
        return ""
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def file_layer(path: Path, *, from_project: bool) -> Layer:
    """What a `suture.toml` says; a missing file says nothing.

    Raises:
        UsageError: The file cannot be read, or names something that is no setting.
    """
    text = settings_text(path)
    try:
        tables = parse_toml(text)
    except ValueError as fault:
        raise UsageError(f"{str(path)!r} is not TOML: {fault}", remedy="mend that line") from fault
    return _layer(tables, path, from_project=from_project)


def _layer(tables: Mapping[str, object], path: Path, *, from_project: bool) -> Layer:
    layer: Layer = {}
    for group, table in tables.items():
        entries = (
            {f"{group}.{name}": value for name, value in table.items()} if isinstance(table, dict) else {}
        )
        if not isinstance(table, dict) or (not entries and group not in Settings.model_fields):
            _require_known(group, repr(str(path)))
        for key, value in entries.items():
            _require_known(key, repr(str(path)))
            layer[key] = Given(value=value, origin=str(path), folder=path.parent, from_project=from_project)
    return layer


def read_variables(environ: Mapping[str, str], project: Path) -> Variables:
    """Read the environment and the project's `.env`. An empty variable counts as not set.

    Raises:
        UsageError: A `SUTURE_*` name is no setting, or `.env` cannot be read.
    """
    path = project / ".env"
    dotenv = parse_dotenv(settings_text(path), _is_ours_in_a_file, source=repr(str(path)))
    outer = {name: value for name, value in environ.items() if _is_ours(name)}
    own: list[Layer] = []
    ancestors: dict[str, Given] = {}
    for variables, place, folder, from_project in (
        (dotenv, str(path), project, True),
        (outer, "environment", Path.cwd(), False),
    ):
        given = {
            name: Given(value=value, origin=f"{place} {name}", folder=folder, from_project=from_project)
            for name, value in variables.items()
            if value.strip()
        }
        own.append(_own_layer(given, place))
        ancestors.update((name, value) for name, value in given.items() if is_alias(name))
    return Variables(own=tuple(own), ancestors=ancestors)


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX) or is_alias(name)


def _is_ours_in_a_file(name: str) -> bool:
    return _is_ours(name) and name not in OF_THE_ENVIRONMENT


def _own_layer(given: Mapping[str, Given], place: str) -> Layer:
    names = {variable_of(key): key for key in setting_fields()} | SHORT_NAMES
    layer: Layer = {}
    for name, value in given.items():
        if is_alias(name) or name in NOT_SETTINGS:
            continue
        if name not in names:
            raise UsageError(f"{place}: there is no setting {name}", remedy=_suggestion(name, list(names)))
        key = names[name]
        if key in layer and layer[key].value != value.value:
            raise UsageError(f"{name} and {layer[key].origin} say two things of {key}", remedy="unset one")
        layer[key] = value
    return layer


def _require_known(key: str, place: str) -> None:
    keys = setting_fields()
    if key not in keys:
        raise UsageError(f"{place}: there is no setting {key!r}", remedy=_suggestion(key, list(keys)))


def _suggestion(name: str, known: list[str]) -> str:
    same_field = [key for key in known if key.rpartition(".")[2] == name.rpartition(".")[2]]
    close = same_field or difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else "`suture config show` lists them"


def settings_text(path: Path) -> str:
    """A file of settings as text; empty where there is none.

    Raises:
        UsageError: It cannot be read, is too long or is no text.
    """
    try:
        content = read_plain(path, MOST_BYTES, follow=True)  # a virtual environment may be called `.env`
    except OSError as fault:
        raise UsageError(f"{str(path)!r} cannot be read: {os.strerror(fault.errno or 0)}") from fault
    if content is None:
        return ""
    if len(content) > MOST_BYTES:
        raise UsageError(f"{str(path)!r} is longer than {MOST_BYTES // 2**10} KiB, which no settings need")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        raise UsageError(f"{str(path)!r} is not UTF-8 text") from fault


def parse_dotenv(text: str, wanted: Callable[[str], bool], *, source: str = ".env") -> dict[str, str]:
    """Read the variables that are ours; lines of other programs are passed over, also odd ones.

    Double quotes know a backslash before `n`, `r`, `t` and any other character; nothing is
    interpolated. The last of equal names wins.

    Args:
        text: The content of the `.env` file.
        wanted: Whether a name is ours.
        source: What to call the file in an error.

    Raises:
        UsageError: A value of ours has an opening quote and no closing one.
    """
    values: dict[str, str] = {}
    for match in _ASSIGNMENT.finditer(text):
        name = match["name"]
        if not wanted(name):
            continue
        if match["double"] is not None:
            values[name] = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), match["double"])
        elif match["single"] is not None:
            values[name] = match["single"]
        elif match["bare"].startswith(("'", '"')):
            raise UsageError(f"{source}: the value of {name} has an opening quote and no closing one")
        else:
            values[name] = _COMMENT.split(f" {match['bare']}", maxsplit=1)[0].strip(" \t\r")
    return values
