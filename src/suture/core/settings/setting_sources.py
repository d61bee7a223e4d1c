"""Read the single sources of settings: flags, environment variables, `.env` and TOML files.

Each source becomes a layer, which `loading` merges: dotted key, such as `budget.tokens` -> value.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.core.safe_files import parse_toml, read_regular_file
from suture.core.settings.aliases import is_alias
from suture.core.settings.rendering import setting_fields, setting_groups
from suture.core.settings.schema import Settings
from suture.core.tuning import MAX_PYPROJECT_BYTES, MAX_SETTINGS_FILE_BYTES
from suture.errors import UsageError

PREFIX = "SUTURE_"
SHORT_NAMES = {
    "SUTURE_DATABASE_URL": "store.url",
    "SUTURE_HOME": "paths.home",
    "SUTURE_LOG": "log.file",
    "SUTURE_MODEL": "model.name",
}
SUTURE_TABLE = re.compile(r"""tool[ \t]*\.[ \t]*["']?suture|^[ \t]*\[[ \t]*tool[ \t]*\]""", re.MULTILINE)
"""A `pyproject.toml` that does not match has no table for Suture, and is not parsed."""
PROPOSER_VARIABLES = frozenset(
    f"SUTURE_{name}" for name in ("PROJECT", "TASK", "FACTS", "DIFF", "TURN", "FAILING", "TEST_COMMAND")
)
"""Variables of a run's proposer, which may be another Suture."""
OTHER_VARIABLES = frozenset({"SUTURE_DATA", "SUTURE_REQUIRE", "SUTURE_SCREENSHOTS"}) | PROPOSER_VARIABLES
"""Variables that are not settings. The test suite reads the first ones."""
ENVIRONMENT_ONLY = frozenset({"DATABASE_URL"})
"""Variables that mean something else in a project's `.env`, and are not read there."""

# One assignment; a quoted value may span lines. Each repetition is bounded and each string matches in only one way, so
# that a file of quotes or spaces cannot make the pattern slow.
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
class SettingValue:
    """A value that a source gives to a setting.

    Attributes:
        origin: Where it was written, in words, such as `environment SUTURE_HOME`.
        folder: The folder to which relative paths in the value are relative.
        from_project: Whether the project's own files set it. They are trusted less than the user.
    """

    value: object
    origin: str
    folder: Path
    from_project: bool = False


Layer = dict[str, SettingValue]
"""What one source sets: dotted key -> value."""


@dataclass(frozen=True, kw_only=True)
class Variables:
    """The variables of the environment and of the project's `.env`.

    Attributes:
        suture_layers: The settings of `SUTURE_*` variables: first those in `.env`, then those of the
            environment, which are stronger.
        ancestors: Name of an ancestor's variable -> value; the environment overrides `.env`.
    """

    suture_layers: tuple[Layer, ...]
    ancestors: Mapping[str, SettingValue]

    def without_project(self) -> Variables:
        """Return the variables of the environment alone."""
        layers = tuple(
            {key: value for key, value in layer.items() if not value.from_project}
            for layer in self.suture_layers
        )
        ancestors = {name: value for name, value in self.ancestors.items() if not value.from_project}
        return Variables(suture_layers=layers, ancestors=ancestors)


def variable_name(key: str) -> str:
    """Return the variable of a setting: `SUTURE_BUDGET_TOKENS` for `budget.tokens`."""
    return PREFIX + key.replace(".", "_").upper()


def flag_layer(flags: Mapping[str, object]) -> Layer:
    """Return the settings of the command line or of a caller; `None` counts as not given.

    Raises:
        UsageError: There is no such setting.
    """
    layer: Layer = {}
    for key, value in flags.items():
        _require_known(key, "the flags")
        if value is not None:
            layer[key] = SettingValue(value=value, origin="flag", folder=Path.cwd())
    return layer


def project_layer(folder: Path) -> Layer:
    """Return the settings of a project: those of its `suture.toml` override those of its `pyproject.toml`.

    Raises:
        UsageError: As `file_layer`.
    """
    return {
        **_table_layer(pyproject_table(folder), folder / "pyproject.toml", from_project=True),
        **file_layer(folder / "suture.toml", from_project=True),
    }


def pyproject_table(folder: Path) -> Mapping[str, object]:
    """Return the table `tool.suture` of a project's `pyproject.toml`; empty if there is none.

    Raises:
        UsageError: The file seems to have such a table, and is not valid TOML.
    """
    path = folder / "pyproject.toml"
    text = pyproject_text(folder)
    if not SUTURE_TABLE.search(text):
        return {}  # errors in the rest of the file do not concern Suture
    try:
        tool = parse_toml(text).get("tool")
    except ValueError as fault:
        raise UsageError(f"{str(path)!r} is not TOML: {fault}", remedy="fix that line") from fault
    table = tool.get("suture", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{str(path)!r}: tool.suture is no table", remedy="such as [tool.suture.budget]")
    return table


def pyproject_text(folder: Path) -> str:
    """Return the text of a project's `pyproject.toml`; empty if it cannot be read."""
    try:
        content = read_regular_file(folder / "pyproject.toml", MAX_PYPROJECT_BYTES, follow=True) or b""
    except OSError:
        return ""
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")


def file_layer(path: Path, *, from_project: bool) -> Layer:
    """Return the settings of a `suture.toml`; a missing file sets nothing.

    Raises:
        UsageError: The file cannot be read, or names something that is not a setting.
    """
    text = read_settings_text(path)
    try:
        tables = parse_toml(text)
    except ValueError as fault:
        raise UsageError(f"{str(path)!r} is not TOML: {fault}", remedy="fix that line") from fault
    return _table_layer(tables, path, from_project=from_project)


def _table_layer(tables: Mapping[str, object], path: Path, *, from_project: bool) -> Layer:
    layer: Layer = {}
    for group, table in tables.items():
        entries = dict(_flatten(group, table)) if isinstance(table, dict) else {}
        if not isinstance(table, dict) or (not entries and group not in Settings.model_fields):
            _require_known(group, repr(str(path)))
        for key, value in entries.items():
            _require_known(key, repr(str(path)))
            layer[key] = SettingValue(
                value=value, origin=str(path), folder=path.parent, from_project=from_project
            )
    return layer


def _flatten(group: str, table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield (dotted key, value) of each setting in the table of a group."""
    for name, value in table.items():
        key = f"{group}.{name}"
        if isinstance(value, dict) and key in setting_groups():
            yield from _flatten(key, value)
        else:
            yield key, value


def read_variables(environ: Mapping[str, str], project: Path) -> Variables:
    """Read the environment and the project's `.env`. An empty variable counts as not set.

    Raises:
        UsageError: A `SUTURE_*` variable is not a setting, or `.env` cannot be read.
    """
    path = project / ".env"
    dotenv = parse_dotenv(
        read_settings_text(path),
        lambda name: _is_read(name) and name not in ENVIRONMENT_ONLY,
        source=repr(str(path)),
    )
    environment = {name: value for name, value in environ.items() if _is_read(name)}
    layers: list[Layer] = []
    ancestors: dict[str, SettingValue] = {}
    for variables, source, folder, from_project in (
        (dotenv, str(path), project, True),
        (environment, "environment", Path.cwd(), False),
    ):
        values = {
            name: SettingValue(
                value=value, origin=f"{source} {name}", folder=folder, from_project=from_project
            )
            for name, value in variables.items()
            if value.strip()
        }
        layers.append(_suture_layer(values, source))
        ancestors.update((name, value) for name, value in values.items() if is_alias(name))
    return Variables(suture_layers=tuple(layers), ancestors=ancestors)


def _is_read(name: str) -> bool:
    return name.startswith(PREFIX) or is_alias(name)


def _suture_layer(values: Mapping[str, SettingValue], source: str) -> Layer:
    """Return the settings that `SUTURE_*` variables set."""
    keys_by_variable = {variable_name(key): key for key in setting_fields()} | SHORT_NAMES
    layer: Layer = {}
    for name, value in values.items():
        if is_alias(name) or name in OTHER_VARIABLES:
            continue
        if name not in keys_by_variable:
            raise UsageError(
                f"{source}: there is no setting {name}", remedy=_suggest_name(name, list(keys_by_variable))
            )
        key = keys_by_variable[name]
        if key in layer and layer[key].value != value.value:
            raise UsageError(
                f"{name} and {layer[key].origin} set {key} to different values", remedy="unset one"
            )
        layer[key] = value
    return layer


def _require_known(key: str, source: str) -> None:
    keys = setting_fields()
    if key not in keys:
        raise UsageError(f"{source}: there is no setting {key!r}", remedy=_suggest_name(key, list(keys)))


def _suggest_name(name: str, valid_names: list[str]) -> str:
    """Return a remedy for an unknown name: the same field of another group, or the most similar name."""
    same_field = [valid for valid in valid_names if valid.rpartition(".")[2] == name.rpartition(".")[2]]
    suggestions = same_field or difflib.get_close_matches(name, valid_names, n=1, cutoff=0.6)
    return f"did you mean {suggestions[0]}?" if suggestions else "`suture config show` lists them"


def read_settings_text(path: Path) -> str:
    """Return the text of a settings file; empty if there is none.

    Raises:
        UsageError: It cannot be read, is too long or is not text.
    """
    try:
        # Anything but a regular file counts as missing: `.env` may be a virtual environment.
        content = read_regular_file(path, MAX_SETTINGS_FILE_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"{str(path)!r} cannot be read: {os.strerror(fault.errno or 0)}") from fault
    if content is None:
        return ""
    if len(content) > MAX_SETTINGS_FILE_BYTES:
        raise UsageError(
            f"{str(path)!r} is longer than {MAX_SETTINGS_FILE_BYTES // 2**10} KiB, which no settings need"
        )
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        raise UsageError(f"{str(path)!r} is not UTF-8 text") from fault


def parse_dotenv(text: str, is_read: Callable[[str], bool], *, source: str = ".env") -> dict[str, str]:
    r"""Read the variables that Suture uses from a `.env` file. Lines for other programs are skipped.

    In double quotes, `\n`, `\r` and `\t` are escapes, and a backslash before any other character stands for
    that character. Nothing is interpolated. If a name occurs twice, the last value counts.

    Args:
        is_read: Returns whether Suture uses a variable of this name. Others are skipped.

    Raises:
        UsageError: A value that Suture uses has an opening quote and no closing one.
    """
    values: dict[str, str] = {}
    for match in _ASSIGNMENT.finditer(text):
        name = match["name"]
        if not is_read(name):
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
