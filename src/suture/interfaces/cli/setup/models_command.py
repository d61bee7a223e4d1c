"""`suture models`: the embedded models and their weights, and what any model can do."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from suture.errors import ModelError
from suture.interfaces.cli.terminal.command_options import Assignments, Json, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    format_table,
    make_console,
    print_answer,
    print_json,
    print_note,
    print_raw,
    print_text,
    show_activity,
)
from suture.interfaces.narrative.plain_text import format_count
from suture.models import ModelProfile, Price
from suture.models.model_check import PROFILE_ATTRIBUTES, Feature, FeatureCheck, ModelCheck
from suture.models.profiles import ProfileOrigin

if TYPE_CHECKING:
    from suture.models.llama_server.server_process import LlamaServer, LlamaServerOptions


models_app = typer.Typer(
    name="models",
    help="Check a model; manage the embedded ones: list, pull, serve, path, rm.",
    no_args_is_help=True,
)

Name = Annotated[str, Argument(help="A model's name, as `suture models list` shows it.")]


@models_app.command("check")
@handle_errors
def check_command(
    name: Annotated[
        str | None,
        Argument(metavar="[PROVIDER:MODEL]", help="The model; default: the one that runs would use."),
    ] = None,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Send three small requests to a model; print what works and what Suture will use.

    The exit code is 0 if the model can be used, 3 if something is missing, and 6 if the provider fails.
    """
    from suture.api import run_sync
    from suture.models import choose_model
    from suture.models.model_check import open_and_check
    from suture.models.pricing import load_prices

    settings = load_command_settings(Path(), assignments, read_only=True, model__name=name).settings
    name = name or choose_model(settings)[0]
    price = load_prices(settings).find(name)
    print_note(f"sending three small requests to {name}")
    check = run_sync(open_and_check(settings, name))
    if as_json:
        print_json(check_as_json(check, price, settings.model.max_tokens))
        return
    tokens = sum(reply.prompt_tokens + reply.completion_tokens for reply in check.replies)
    print_text(f"What works, by {len(check.replies)} replies, {tokens:,} tokens, {check.seconds:.1f} s:")
    print_text(format_table(feature_rows(check)))
    print_text("\nWhat Suture will use:")
    print_text(
        format_table(
            (
                *profile_rows(check.profile, settings.model.max_tokens),
                ("price", price_text(price), ""),
            )
        )
    )
    for line in mismatch_lines(check.mismatches):
        print_text(f"\n{line}")


@models_app.command("list")
@handle_errors
def list_command(assignments: Assignments = None, as_json: Json = False) -> None:
    """List the models of the catalogue, and which of them are downloaded."""
    from suture.models import list_catalogue_models

    models, rows = [], []
    for model in list_catalogue_models(model_cache_folder(assignments)):
        entry, path = model.entry, str(model.path) if model.path else None
        models.append(
            {
                "name": entry.name,
                "size_bytes": entry.size_bytes,
                "licence": entry.licence,
                "path": path,
                "partial_bytes": model.partial_bytes,
            }
        )
        progress = f"{format_megabytes(model.partial_bytes)} downloaded" if model.partial_bytes else ""
        location = path or progress or "not downloaded"
        rows.append((entry.name, format_megabytes(entry.size_bytes), entry.licence, location))
    print_answer(models, format_table(rows), as_json=as_json)


@models_app.command("pull")
@handle_errors
def pull_command(name: Name, assignments: Assignments = None, as_json: Json = False) -> None:
    """Download a model's weights, verify them, and time threads on this machine; print their path."""
    from suture.models import pull_model

    settings = load_command_settings(Path(), assignments, read_only=True).settings
    token = settings.keys.huggingface
    with show_download() as (show_progress, show_message):
        path = pull_model(
            catalogue_name(name),
            settings.paths.cache,
            show_progress,
            show_message,
            token=token.get_secret_value() if token is not None else "",
        )
    if settings.model.threads is None:
        time_threads(path, settings.paths.cache)
    _print_path(name, path, as_json=as_json)


def time_threads(path: Path, cache: Path) -> None:
    """Measure the best number of threads now, so that no run has to; the weights are useful without it."""
    if importlib.util.find_spec("xllamacpp") is None:
        return
    from suture.models.llama_server.thread_calibration import TokenSpeed, calibrate_threads, measure_speed

    def measure_and_show(model: Path, threads: int) -> TokenSpeed:
        show(f"timing the model with {format_count(threads, 'thread')}")
        return measure_speed(model, threads)

    try:
        with show_activity("timing the model") as show:
            calibration = calibrate_threads(path, cache, measure=measure_and_show)
    except ModelError as fault:
        print_note(f"threads were not timed: {fault.message}")
        return
    threads = "1 thread is" if calibration.threads == 1 else f"{calibration.threads} threads are"
    print_note(f"{threads} the fastest on this machine")


@models_app.command("serve")
@handle_errors
def serve_command(
    name: Annotated[
        str | None,
        Argument(help="A model's name, as `suture models list` shows it; default: that of model.name."),
    ] = None,
    host: Annotated[str, Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option("--port", help="The port; 0 picks a free one.")] = 8080,
    assignments: Assignments = None,
    as_json: Json = False,
) -> None:
    """Serve a model at an OpenAI-compatible address until Ctrl-C; print the address and the key.

    The key is the setting keys.serve, or random if that is not set.
    """
    from suture.models import choose_model
    from suture.models.llama_server.shared_servers import serve_model

    settings = load_command_settings(Path(), assignments, read_only=True).settings
    model = catalogue_name(name or choose_model(settings)[0])

    def announce(server: LlamaServer, options: LlamaServerOptions) -> None:
        url = f"{server.url}/v1"
        if as_json:
            print_json({"model": model, "url": url, "key": server.key, "slots": options.slots})
        else:
            print_raw(f"OPENAI_BASE_URL={url}\nOPENAI_API_KEY={server.key}")
        capacity = f"{options.slots} requests at once, on {options.threads} threads"
        print_note(f"serving {model}, {capacity}; press Ctrl-C to stop")

    key = settings.keys.serve
    serve_model(
        model,
        settings,
        host=host,
        port=port,
        key=key.get_secret_value() if key is not None else None,
        on_ready=announce,
        on_restart=print_note,
    )


@models_app.command("path")
@handle_errors
def path_command(name: Name, assignments: Assignments = None, as_json: Json = False) -> None:
    """Print the path of a model's weights."""
    from suture.models import model_path

    path = model_path(catalogue_name(name), model_cache_folder(assignments))
    _print_path(name, path, as_json=as_json)


def _print_path(name: str, path: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": catalogue_name(name), "path": str(path)})
    else:
        print_raw(str(path))


@models_app.command("rm")
@handle_errors
def rm_command(name: Name, assignments: Assignments = None, as_json: Json = False) -> None:
    """Delete a model's weights."""
    from suture.models import remove_model

    freed_bytes = remove_model(catalogue_name(name), model_cache_folder(assignments))
    if as_json:
        print_json({"name": catalogue_name(name), "freed_bytes": freed_bytes})
    elif freed_bytes:
        print_note(f"{format_megabytes(freed_bytes)} freed")
    else:
        print_note(f"{catalogue_name(name)} was not downloaded")


def model_cache_folder(assignments: list[str] | None) -> Path:
    """Return the folder of the weights."""
    return load_command_settings(Path(), assignments, read_only=True).settings.paths.cache


def catalogue_name(name: str) -> str:
    """Return the catalogue's name of a model that may be written as a setting: `local:NAME`."""
    return name.removeprefix("local:")


def format_megabytes(size_bytes: int) -> str:
    """Return a size for people in units of 10**6 bytes, as download pages show it."""
    return f"{size_bytes / 1e6:,.0f} MB"


@contextmanager
def show_download() -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """Yield `(show_progress, show_message)`; the first takes the bytes done and the bytes in total.

    A terminal gets a progress bar, anything else gets lines.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = make_console(stderr=True)
    printed_tenth = -1

    def print_each_tenth(done_bytes: int, total_bytes: int) -> None:
        nonlocal printed_tenth
        tenth = 10 * done_bytes // max(total_bytes, 1)
        if tenth > printed_tenth:
            printed_tenth = tenth
            print_note(f"{format_megabytes(done_bytes)} of {format_megabytes(total_bytes)}")

    if not console.is_terminal:
        yield print_each_tenth, print_note
        return
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("fetching", total=None)
        yield (
            lambda done_bytes, total_bytes: bar.update(task, completed=done_bytes, total=total_bytes),
            lambda message: console.print(message),
        )


FEATURE_LABELS: Mapping[Feature, str] = {
    "text": "text",
    "streaming": "streaming",
    "thinking": "thinking",
    "tools": "tools",
    "parallel_tools": "parallel calls",
    "structured_output": "JSON by schema",
    "prompt_cache": "prompt cache",
}
ORIGIN_LABELS: Mapping[ProfileOrigin, str] = {
    "default": "default",
    "provider": "the provider",
    "family": "the model's family",
    "size": "the size in its name",
    "langchain": "LangChain's profiles",
    "setting": "a setting",
}
PROFILE_LABELS: Mapping[str, str] = {
    "is_capable": "capable",
    "context_tokens": "context",
    "max_output_tokens": "longest reply",
    "tools": "tools",
    "structured_output": "JSON by schema",
    "reasoning": "thinking",
    "reasoning_effort": "reasoning effort",
    "thinking_tokens": "room for thinking",
    "prefill": "begun replies",
    "stop": "stop sequences",
    "prompt_cache": "prompt cache",
    "rejected_parameters": "refused parameters",
}
"""Attribute of a profile -> its name on screen, in the order of the screen."""
TOKEN_VALUES = ("context_tokens", "max_output_tokens", "thinking_tokens")
WORKS = {True: "works", False: "no", None: "not known"}


def feature_rows(check: ModelCheck) -> Iterator[tuple[str, str, str]]:
    """Yield (feature, whether it works, what was observed)."""
    for feature in check.features:
        yield FEATURE_LABELS[feature.feature], WORKS[feature.works], feature.detail


def profile_rows(profile: ModelProfile, max_tokens: int | None) -> Iterator[tuple[str, str, str]]:
    """Yield (ability, value, where the value comes from).

    Args:
        profile: The model's profile.
        max_tokens: The setting `model.max_tokens`.
    """
    for name, label in PROFILE_LABELS.items():
        yield label, _format_value(name, getattr(profile, name)), ORIGIN_LABELS[profile.origins[name]]
    origin = "the limits above" if max_tokens is None else "a setting"
    yield "answer", f"up to {max_tokens or profile.answer_tokens:,} tokens", origin


def _format_value(name: str, value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in TOKEN_VALUES:
        return f"{value:,} tokens"
    if isinstance(value, frozenset):
        return ", ".join(sorted(value)) or "none"
    return str(value) or "the provider's default"


def mismatch_lines(mismatches: tuple[FeatureCheck, ...]) -> Iterator[str]:
    """Yield what to set where the profile is wrong."""
    for check in mismatches:
        value = str(check.works).lower()
        label = FEATURE_LABELS[check.feature]
        yield (
            f"{label}: {'works' if check.works else 'does not work'}, which the profile does not say; "
            f"set model.profile.{PROFILE_ATTRIBUTES[check.feature]} = {value}"
        )


def price_text(price: Price | None) -> str:
    """Return a price in words."""
    if price is None:
        return "unknown (model.prices sets it)"
    cached = "" if price.cached_input is None else f", ${price.cached_input:g} from the cache"
    return f"${price.input:g} in{cached}, ${price.output:g} out, per million tokens"


def check_as_json(check: ModelCheck, price: Price | None, max_tokens: int | None) -> dict[str, Any]:
    """Return a check as JSON values."""
    profile = check.profile
    values = {each.name: getattr(profile, each.name) for each in fields(profile) if each.name != "origins"}
    values["rejected_parameters"] = sorted(profile.rejected_parameters)
    return {
        "model": check.model,
        "usable": True,
        "features": {
            feature.feature: {"works": feature.works, "detail": feature.detail} for feature in check.features
        },
        "profile": {
            name: {"value": value, "origin": profile.origins[name]} for name, value in values.items()
        },
        "answer_tokens": max_tokens or profile.answer_tokens,
        "price": None
        if price is None
        else {
            "input": price.input,
            "output": price.output,
            "cached_input": price.cached_input,
            "cache_write": price.cache_write,
        },
        "suggestions": list(mismatch_lines(check.mismatches)),
        "calls": len(check.replies),
        "prompt_tokens": sum(reply.prompt_tokens for reply in check.replies),
        "completion_tokens": sum(reply.completion_tokens for reply in check.replies),
        "seconds": round(check.seconds, 2),
    }
