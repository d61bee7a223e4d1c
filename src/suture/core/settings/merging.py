"""All sources of settings, one over the other: as they are, and without what the project's files say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from suture.core.settings.aliases import read_aliases
from suture.core.settings.named_files import absolute_names, is_path, kind_of
from suture.core.settings.refusals import say_refusal, value_that_would_do
from suture.core.settings.schema import Settings, setting_fields
from suture.core.settings.sources import (
    Given,
    Layer,
    Variables,
    file_layer,
    flag_layer,
    project_layer,
    read_variables,
)
from suture.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Sources:
    """All sources, merged with the project's files and without them.

    Attributes:
        folder: The project's.
        environ: The environment.
        given: Dotted key -> what the strongest source says.
        notes: Lines the user should see.
        base_given: The same without the project's files.
        base: The settings by these alone.
    """

    folder: Path
    environ: Mapping[str, str]
    given: Layer
    notes: tuple[str, ...]
    base_given: Layer
    base: Settings


def read_sources(project: Path, flags: Mapping[str, object] | None, environ: Mapping[str, str]) -> Sources:
    """Read and merge them; raises as `load_settings` for a source that is wrong in itself.

    Args:
        project: The project's folder, or a file in it.
        flags: Dotted key -> value; `None` counts as not given.
        environ: The environment.
    """
    folder = (project if project.is_dir() else project.parent).absolute()
    users = _merged(_default_layer(environ), file_layer(user_file(environ), from_project=False))
    of_project = project_layer(folder)
    variables = read_variables(environ, folder)
    flag = flag_layer(flags or {})
    given, notes = _given(_merged(users, of_project), variables, flag)
    base_given, _ = _given(users, variables.without_project(), flag)
    return Sources(
        folder=folder,
        environ=environ,
        given=given,
        notes=notes,
        base_given=base_given,
        base=validated(base_given, environ),
    )


def _given(weak: Layer, variables: Variables, flag: Layer) -> tuple[Layer, tuple[str, ...]]:
    strong = _merged(*variables.own, flag)
    aliases, notes = _alias_layer(variables, strong, weak)
    return _merged(weak, aliases, strong), notes


def _merged(*layers: Layer) -> Layer:
    merged: Layer = {}
    for layer in layers:
        merged.update(layer)
    return merged


def _home(environ: Mapping[str, str]) -> Path:
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        return Path.home()
    except RuntimeError as fault:
        raise UsageError("no home folder is known here", remedy="set HOME") from fault


def user_file(environ: Mapping[str, str]) -> Path:
    """The user's own file of settings, there or not; raises `UsageError` where no home is known."""
    return (_xdg(environ, "XDG_CONFIG_HOME") or _home(environ) / ".config") / "suture" / "suture.toml"


def _xdg(environ: Mapping[str, str], name: str) -> Path | None:
    # The XDG base directory specification: a relative path is invalid and is ignored.
    path = Path(environ.get(name, ""))
    return path if path.is_absolute() else None


def _default_layer(environ: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for key, variable in (("paths.home", "XDG_STATE_HOME"), ("paths.cache", "XDG_CACHE_HOME")):
        base = _xdg(environ, variable)
        value = setting_fields()[key].default if base is None else base / "suture"
        origin = "default" if base is None else f"default under {variable}"
        layer[key] = Given(value=value, origin=origin, folder=_home(environ))
    return layer


def _alias_layer(variables: Variables, strong: Layer, weak: Layer) -> tuple[Layer, tuple[str, ...]]:
    holds = {**weak, **strong}.get("model.name")
    reading = read_aliases(
        {name: str(given.value) for name, given in variables.ancestors.items()},
        decided={key: given.origin for key, given in strong.items()},
        model=str(holds.value) if holds else Settings().model.name,
    )
    layer: Layer = {}
    for key, (variable, value) in reading.values.items():
        taken = reading.model_from if key == "model.name" else (variable,)
        sources = [variables.ancestors[name] for name in dict.fromkeys((variable, *taken))]
        # A name put together of the user's variable and the project's is the project's.
        source = next((one for one in sources if one.from_project), sources[0])
        layer[key] = Given(
            value=value, origin=source.origin, folder=source.folder, from_project=source.from_project
        )
    return layer, reading.notes


def validated(given: Layer, environ: Mapping[str, str]) -> Settings:
    """The settings that a layer gives, checked.

    Raises:
        UsageError: A value is wrong.
    """
    groups: dict[str, dict[str, Any]] = {}
    fields = setting_fields()
    for key, entry in given.items():
        group, _, name = key.partition(".")
        field = fields[key]
        groups.setdefault(group, {})[name] = _in_place(entry, field, environ)
        if isinstance(entry.value, bool) and field.annotation is not bool:  # pydantic would read it as 0 or 1
            raise UsageError(
                f"{key} from {entry.origin}: a number or a text is wanted, not {entry.value!r}",
                remedy=value_that_would_do(key),
            )
    try:
        return Settings.model_validate(groups)
    except ValidationError as fault:
        error = fault.errors()[0]
        key = ".".join(str(part) for part in error["loc"][:2])
        where = f"{key} from {given[key].origin}"
        # Not chained: the foreign error repeats the value, which may be a key.
        raise UsageError(
            say_refusal(where, error, error["input"], secret=key.startswith("keys.")),
            remedy=value_that_would_do(key),
        ) from None


def _in_place(entry: Given, field: FieldInfo, environ: Mapping[str, str]) -> object:
    """A value, with the files that it names where they are meant to be."""
    if is_path(field):
        return _absolute(entry, environ)
    kind = kind_of(field)
    return entry.value if kind is None else absolute_names(entry, field, kind)


def _absolute(entry: Given, environ: Mapping[str, str]) -> object:
    if not isinstance(entry.value, str | Path):
        return entry.value
    path = Path(entry.value)
    if path.parts[:1] == ("~",):
        path = _home(environ).joinpath(*path.parts[1:])
    return entry.folder / path.expanduser()
