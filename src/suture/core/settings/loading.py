"""Merge all sources of settings into one `Settings`, and record where each value comes from.

Every source is a layer: dotted key, such as `budget.tokens` -> value. A stronger layer overrides a weaker one.
All sources are merged twice, with and without the project's own files, to see what the project changes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from suture.core.settings.aliases import provider_of, read_aliases
from suture.core.settings.rendering import (
    describe_invalid_value,
    format_value,
    get_setting,
    is_secret,
    key_of_error,
    nest_settings,
    setting_fields,
    suggest_value,
)
from suture.core.settings.schema import USER_ONLY_SETTINGS, Settings
from suture.core.settings.setting_sources import (
    Layer,
    SettingValue,
    Variables,
    file_layer,
    flag_layer,
    project_layer,
    read_variables,
    variable_name,
)
from suture.core.settings.trust import (
    PROMPTS_FOLDER,
    RequestedSetting,
    file_reference_in,
    is_harmless,
    is_path,
    is_trusted,
    make_references_absolute,
    prompt_files,
)
from suture.errors import UsageError

KEYLESS_PROVIDERS = frozenset({"huggingface", "local", "none", "scripted"})
"""Providers that never receive a key."""
HEADER_VARIABLE_ENDS = ("_custom_headers", "_org_id", "_project_id")
"""Ends of the names of environment variables that the providers' own libraries send in HTTP headers."""


@dataclass(frozen=True, kw_only=True)
class LoadedSettings:
    """Settings and where they come from.

    Attributes:
        origins: Dotted key -> where its value comes from, in words.
        notes: Lines to show to the user, each about a variable or a project's setting without effect.
    """

    settings: Settings
    origins: Mapping[str, str]
    notes: tuple[str, ...] = ()


def load_settings(
    project: Path,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    read_only: bool = False,
) -> LoadedSettings:
    """Read all sources and merge them.

    From the strongest to the weakest source: flags, `SUTURE_*` environment variables, the same variables in
    the project's `.env`, the ancestors' variables, the project's `suture.toml`, its `pyproject.toml`, the
    user's file, the defaults. Of the project's own files, only harmless values count until the user trusts
    the project.

    Args:
        project: The project's folder, or a file in it.
        flags: Dotted key -> value; a flag that is `None` counts as not given.
        environ: The environment; the process's own by default.
        read_only: Whether the command runs nothing and asks no model. Values that the project may not set
            are then ignored with a note, and are not an error.

    Raises:
        UsageError: A source cannot be read, a key is unknown, or a value is invalid. The project's files set
            what they may not set, or would send the user's key to an address of their choice.
        StorageError: The list of trusted projects is damaged.
    """
    sources = read_sources(project, flags, os.environ if environ is None else environ)
    ignores_untrusted = read_only or sources.base.project.untrusted == "ignore"
    if not ignores_untrusted:
        _refuse_user_only_settings(sources.given)
    requested = _requested_settings(sources)
    notes = sources.notes
    # Without `ignores_untrusted`, there are no user-only settings of the project left here.
    ignored_keys = {
        key for key, value in sources.given.items() if value.from_project and key in USER_ONLY_SETTINGS
    }
    if requested and not is_trusted(sources.base.paths.home, sources.folder):
        keys = ", ".join(dict.fromkeys(setting.key for setting in requested))
        if not ignores_untrusted:
            raise UsageError(
                f"the project's own files would set {keys}, which needs your trust in the project",
                remedy=f"look: suture trust {sources.folder}; or do without: --set project.untrusted=ignore",
            )
        ignored_keys |= {setting.key for setting in requested}
        notes = (*notes, f"the project's own files have no say in {keys}: it is not trusted (suture trust)")
    # Ignored keys have the values that they have without the project.
    layer = {key: value for key, value in sources.given.items() if key not in ignored_keys}
    layer |= {key: value for key, value in sources.base_given.items() if key in ignored_keys}
    settings = _validate(layer, sources.environ)
    _refuse_leaking_a_key(settings, layer, sources.environ)
    origins = {key: layer[key].origin if key in layer else "default" for key in setting_fields()}
    return LoadedSettings(settings=settings, origins=origins, notes=notes)


def find_requested_settings(
    project: Path, environ: Mapping[str, str] | None = None
) -> tuple[Path, tuple[RequestedSetting, ...]]:
    """Return `(state folder of the user, settings of the project's own files that need the user's trust)`.

    Raises:
        UsageError: As `load_settings`, and for a setting that no project may set, trusted or not.
    """
    sources = read_sources(project, {}, os.environ if environ is None else environ)
    _refuse_user_only_settings(sources.given)
    return sources.base.paths.home, _requested_settings(sources)


@dataclass(frozen=True, kw_only=True)
class MergedSources:
    """All sources, merged both with and without the project's files.

    Attributes:
        given: Dotted key -> value of the strongest source that sets it.
        base_given: The same as `given`, as if the project had no files of its own.
        base: The validated settings of `base_given`.
    """

    folder: Path
    environ: Mapping[str, str]
    given: Layer
    notes: tuple[str, ...]
    base_given: Layer
    base: Settings


def read_sources(
    project: Path, flags: Mapping[str, object] | None, environ: Mapping[str, str]
) -> MergedSources:
    """Read and merge all sources. Raises as `load_settings` for a source that is invalid in itself."""
    folder = (project if project.is_dir() else project.parent).absolute()
    user_layer = {**_default_layer(environ), **file_layer(user_file(environ), from_project=False)}
    variables = read_variables(environ, folder)
    flag_values = flag_layer(flags or {})
    given, notes = _merge_variables({**user_layer, **project_layer(folder)}, variables, flag_values)
    base_given, _ = _merge_variables(user_layer, variables.without_project(), flag_values)
    return MergedSources(
        folder=folder,
        environ=environ,
        given=given,
        notes=notes,
        base_given=base_given,
        base=_validate(base_given, environ),
    )


def user_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's own settings file, which may be missing.

    Raises:
        UsageError: The user has no known home folder.
    """
    return (_xdg_folder(environ, "XDG_CONFIG_HOME") or _home(environ) / ".config") / "suture" / "suture.toml"


def _merge_variables(weak: Layer, variables: Variables, flags: Layer) -> tuple[Layer, tuple[str, ...]]:
    strong: Layer = {}
    for layer in (*variables.suture_layers, flags):
        strong.update(layer)
    aliases, notes = _alias_layer(variables, strong, weak)
    return {**weak, **aliases, **strong}, notes


def _home(environ: Mapping[str, str]) -> Path:
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        return Path.home()
    except RuntimeError as fault:
        raise UsageError("no home folder is known here", remedy="set HOME") from fault


def _xdg_folder(environ: Mapping[str, str], name: str) -> Path | None:
    # The XDG base directory specification: a relative path is invalid and is ignored.
    path = Path(environ.get(name, ""))
    return path if path.is_absolute() else None


def _default_layer(environ: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for key, variable in (("paths.home", "XDG_STATE_HOME"), ("paths.cache", "XDG_CACHE_HOME")):
        base = _xdg_folder(environ, variable)
        value = setting_fields()[key].default if base is None else base / "suture"
        origin = "default" if base is None else f"default under {variable}"
        layer[key] = SettingValue(value=value, origin=origin, folder=_home(environ))
    return layer


def _alias_layer(variables: Variables, strong: Layer, weak: Layer) -> tuple[Layer, tuple[str, ...]]:
    model = {**weak, **strong}.get("model.name")
    reading = read_aliases(
        {name: str(given.value) for name, given in variables.ancestors.items()},
        decided={key: given.origin for key, given in strong.items()},
        model=str(model.value) if model else Settings().model.name,
    )
    layer: Layer = {}
    for key, (variable, value) in reading.values.items():
        names = reading.model_from if key == "model.name" else (variable,)
        sources = [variables.ancestors[name] for name in dict.fromkeys((variable, *names))]
        # A model that is named by a variable of the user and one of the project counts as the project's.
        source = next((source for source in sources if source.from_project), sources[0])
        layer[key] = SettingValue(
            value=value, origin=source.origin, folder=source.folder, from_project=source.from_project
        )
    return layer, reading.notes


def _validate(given: Layer, environ: Mapping[str, str]) -> Settings:
    """Return the settings that a layer makes.

    Raises:
        UsageError: A value is invalid.
    """
    values: dict[str, object] = {}
    all_fields = setting_fields()
    for key, value in given.items():
        field = all_fields[key]
        values[key] = _resolve_files(value, field, environ)
        takes_bool = bool in (field.annotation, *get_args(field.annotation))
        if isinstance(value.value, bool) and not takes_bool:  # pydantic would read it as 0 or 1
            raise UsageError(
                f"{key} from {value.origin} must be a number or text, not {value.value!r}",
                remedy=suggest_value(key),
            )
    try:
        return Settings.model_validate(nest_settings(values))
    except ValidationError as fault:
        error = fault.errors()[0]
        key = key_of_error(error["loc"])
        inner = [part for part in error["loc"][key.count(".") + 1 :] if isinstance(part, str)]  # of a table
        where = f"{'.'.join((key, *inner))} from {given[key].origin}"
        # `from None`, because pydantic's error repeats the value, which may be a key.
        raise UsageError(
            describe_invalid_value(where, error, error["input"], secret=is_secret(key)),
            remedy=suggest_value(key),
        ) from None


def _resolve_files(entry: SettingValue, field: FieldInfo, environ: Mapping[str, str]) -> object:
    """Return the value of a setting in which file names are absolute.

    A relative name is relative to the folder of the file that sets it.
    """
    if is_path(field):
        return _absolute_path(entry, environ)
    reference = file_reference_in(field)
    return entry.value if reference is None else make_references_absolute(entry, field, reference)


def _absolute_path(entry: SettingValue, environ: Mapping[str, str]) -> object:
    if not isinstance(entry.value, str | Path):
        return entry.value
    path = Path(entry.value)
    if path.parts[:1] == ("~",):
        path = _home(environ).joinpath(*path.parts[1:])
    return entry.folder / path.expanduser()


def _requested_settings(sources: MergedSources) -> tuple[RequestedSetting, ...]:
    """Return what the project's files would change beyond what is harmless.

    Settings that no project may set are not part of it: trust does not help there.
    """
    layer = {
        key: value
        for key, value in sources.given.items()
        if key not in USER_ONLY_SETTINGS or not value.from_project
    }
    with_project = _validate(layer, sources.environ)
    requested = []
    for key, value in layer.items():
        before, after = get_setting(sources.base, key), get_setting(with_project, key)
        if value.from_project and not is_harmless(key, before, after):
            requested.append(
                RequestedSetting(
                    key=key, before=format_value(before), after=format_value(after), origin=value.origin
                )
            )
    prompts = sorted(prompt_files(sources.folder)) if sources.base.paths.prompts is None else []
    if prompts:
        requested.append(
            RequestedSetting(
                key=PROMPTS_FOLDER.as_posix(),
                before="the built-in prompts",
                after=", ".join(prompts),
                origin=str(sources.folder / PROMPTS_FOLDER),
            )
        )
    return tuple(requested)


def _refuse_user_only_settings(given: Layer) -> None:
    """Refuse a project that chooses, for example, the sandbox that is to confine it."""
    for key in USER_ONLY_SETTINGS:
        if key in given and given[key].from_project:
            raise UsageError(
                f"{key} from {given[key].origin}: a project's own files have no say in this",
                remedy=f"set {variable_name(key)} in your environment, or {key} in your own settings file",
            )


def _refuse_leaking_a_key(settings: Settings, given: Layer, environ: Mapping[str, str]) -> None:
    """Refuse to send the user's key to an address that the project's files chose."""
    _refuse_key_for("model.base_url", settings.model.name, "", given, environ)
    roles = (name.removesuffix("_base_url") for name in type(settings.models).model_fields)
    for role in roles:
        if f"models.{role}_base_url" in given:
            model = getattr(settings.models, role) or settings.model.name
            _refuse_key_for(f"models.{role}_base_url", model, f"models.{role}_key", given, environ)


def _refuse_key_for(
    address_setting: str, model: str, key_setting: str, given: Layer, environ: Mapping[str, str]
) -> None:
    """Refuse one address of the project's files if the user's key would be sent there.

    Args:
        address_setting: The setting with the address.
        model: The model that is called there, as `provider:model`.
        key_setting: The setting with the key for this address alone; empty if there is none.
        given: The values of all sources.

    Raises:
        UsageError: The address would get the user's key.
    """
    address = given.get(address_setting)
    provider = provider_of(model)
    if address is None or not address.from_project or provider in KEYLESS_PROVIDERS:
        return
    if provider in ("ollama", "auto") and not environ.get("OLLAMA_API_KEY"):
        return  # Ollama's client sends only this key; `auto` may find Ollama at this address
    # The libraries of other providers may find a key, or headers, in the environment on their own.
    adds_headers = any(f"{provider}{end}".upper() in environ for end in HEADER_VARIABLE_ENDS)
    is_known = f"keys.{provider}" in setting_fields() and not adds_headers
    key = given.get(key_setting) or given.get(f"keys.{provider}")
    if (is_known and key is None) or (key is not None and key.from_project):
        return
    whose = f"your key ({key.origin})" if key is not None else f"your key for {provider!r}"
    raise UsageError(
        f"the project's own files ({address.origin}) would send {whose} to {format_value(address.value)!r}",
        remedy=f"if you trust that address, set {variable_name(address_setting)} in your environment",
    )
