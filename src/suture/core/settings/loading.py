"""One `Settings` out of all sources, each value with its origin."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from suture.core.settings.aliases import read_aliases, scheme_of
from suture.core.settings.rendering import say_refusal, shown, value_that_would_do
from suture.core.settings.schema import THE_USERS_ALONE, Settings, setting_fields
from suture.core.settings.sources import (
    Given,
    Layer,
    Variables,
    file_layer,
    flag_layer,
    project_layer,
    read_variables,
    variable_of,
)
from suture.core.settings.trust import (
    PROMPTS_FOLDER,
    RequestedSetting,
    absolute_names,
    is_harmless,
    is_path,
    is_trusted,
    kind_of,
    prompt_files,
)
from suture.errors import UsageError

KEYLESS = frozenset({"huggingface", "local", "none", "scripted"})
"""Providers that are never sent a key."""
HEADERS = ("_custom_headers", "_org_id", "_project_id")
"""Ends of variables whose values the providers' own libraries send along."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """Settings and how they came to be.

    Attributes:
        settings: All of them, checked.
        origins: Dotted key -> where its value comes from, for people.
        notes: Lines the user should see: variables that have no effect, and why.
    """

    settings: Settings
    origins: Mapping[str, str]
    notes: tuple[str, ...] = ()


def load_settings(
    project: Path,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    looks: bool = False,
) -> Loaded:
    """Read every source and merge them.

    A flag beats a `SUTURE_*` variable, which beats the same name in the project's `.env`, an ancestor's
    variable, the project's `suture.toml`, its `pyproject.toml`, the user's file, the default. Of what a
    project's files say only what is harmless counts until the user trusts it.

    Args:
        project: The project's folder, or a file in it.
        flags: Dotted key -> value; `None` counts as not given.
        environ: The environment; the process's own where not given.
        looks: Nothing is run and nobody is asked by these settings: what a project may not set is passed over
            and noted, instead of refused.

    Raises:
        UsageError: A source cannot be read, a key is unknown, a value is wrong, the project's files set what
            they may not, or ask for the user's key to be sent to an address of their choice.
        StorageError: The list of trusted projects is damaged.
    """
    read = read_sources(project, flags, os.environ if environ is None else environ)
    ignores = looks or read.base.project.untrusted == "ignore"
    if not ignores:
        _refuse_what_is_the_users(read.given)
    requested = _requested(read)
    given, notes = read.given, read.notes
    if requested and not is_trusted(read.base.paths.home, read.folder):
        keys = ", ".join(dict.fromkeys(one.key for one in requested))
        if not ignores:
            raise UsageError(
                f"the project's own files would set {keys}, which takes your trust in the project",
                remedy=f"look: suture trust {read.folder}; or do without: --set project.untrusted=ignore",
            )
        given = _without({one.key for one in requested}, read)
        notes = (*notes, f"the project's own files have no say in {keys}: it is not trusted (suture trust)")
    never = {key for key, one in given.items() if one.from_project and key in THE_USERS_ALONE}
    given = {**given, **{key: one for key, one in _without(never, read).items() if key in never}}
    given = {key: one for key, one in given.items() if key not in never or not one.from_project}
    settings = validated(given, read.environ)
    _refuse_leaking_a_key(settings, given, read.environ)
    origins = {key: given[key].origin if key in given else "default" for key in setting_fields()}
    return Loaded(settings=settings, origins=origins, notes=notes)


def requested_settings(
    project: Path, environ: Mapping[str, str] | None = None
) -> tuple[Path, tuple[RequestedSetting, ...]]:
    """The user's folder of state, and all that a project's own files would decide and may only where trusted.

    Args:
        project: The project's folder.
        environ: The environment; the process's own where not given.

    Raises:
        UsageError: As `load_settings`; also for what no project may set, trusted or not.
    """
    read = read_sources(project, {}, os.environ if environ is None else environ)
    _refuse_what_is_the_users(read.given)
    return read.base.paths.home, _requested(read)


def _requested(read: Sources) -> tuple[RequestedSetting, ...]:
    """What the project's files would change beyond what is harmless."""
    with_project = validated(
        {key: one for key, one in read.given.items() if key not in THE_USERS_ALONE or not one.from_project},
        read.environ,
    )
    found = []
    for key, one in read.given.items():
        before, after = _value(read.base, key), _value(with_project, key)
        if one.from_project and key not in THE_USERS_ALONE and not is_harmless(key, before, after):
            found.append(
                RequestedSetting(key=key, before=shown(before), after=shown(after), origin=one.origin)
            )
    prompts = sorted(prompt_files(read.folder)) if read.base.paths.prompts is None else []
    if prompts:
        key = PROMPTS_FOLDER.as_posix()
        origin = str(read.folder / PROMPTS_FOLDER)
        found.append(
            RequestedSetting(key=key, before="prompts of ours", after=", ".join(prompts), origin=origin)
        )
    return tuple(found)


def _without(refused: Collection[str], read: Sources) -> Layer:
    kept = {key: one for key, one in read.given.items() if key not in refused}
    return {**kept, **{key: one for key, one in read.base_given.items() if key in refused}}


def _value(settings: Settings, key: str) -> object:
    group, _, field = key.partition(".")
    return getattr(getattr(settings, group), field)


def _refuse_what_is_the_users(given: Layer) -> None:
    """A project that could say how it is walled in would be walled in by its author's choice."""
    for key in THE_USERS_ALONE:
        if key in given and given[key].from_project:
            raise UsageError(
                f"{key} from {given[key].origin}: a project's own files have no say in this",
                remedy=f"set {variable_of(key)} in your environment, or {key} in your own settings file",
            )


def _refuse_leaking_a_key(settings: Settings, given: Layer, environ: Mapping[str, str]) -> None:
    address = given.get("model.base_url")
    scheme = scheme_of(settings.model.name)
    if address is None or not address.from_project or scheme in KEYLESS:
        return
    if scheme in ("ollama", "auto") and not environ.get("OLLAMA_API_KEY"):
        return  # Ollama's client sends that one, if any; `auto` may find Ollama at this address
    # Of a provider that we hold no key of, the provider's own library may find one in the environment.
    adds_headers = any(f"{scheme}{more}".upper() in environ for more in HEADERS)
    known = f"keys.{scheme}" in setting_fields() and not adds_headers
    key = given.get(f"keys.{scheme}")
    if (known and key is None) or (key is not None and key.from_project):
        return
    whose = f"your key ({key.origin})" if key is not None else f"your key for {scheme!r}"
    raise UsageError(
        f"the project's own files ({address.origin}) would send {whose} to {shown(address.value)!r}",
        remedy="if you trust that address, set SUTURE_MODEL_BASE_URL in your environment",
    )


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
