"""The best thread count for the embedded model, measured when its weights are fetched, and never in a run.

On some virtual machines two threads generate four times slower than one, because each step waits for a core
that the host has given to another guest. The number of cores does not show that; timing a few tokens does.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from suture.core.processors import count_usable_cores
from suture.core.records import decode_record
from suture.core.safe_files import write_file_atomically
from suture.errors import ModelError
from suture.models.llama_server.server_process import LlamaServerOptions, start_llama_server
from suture.models.tuning import BUSY_LOAD, CALIBRATION_REPLY_TOKENS, CALIBRATION_TIMEOUT_S, MIN_THREAD_GAIN


def usable_cores() -> int:
    """Return how many physical cores this process may use."""
    import psutil  # type: ignore[import-untyped]  # ships no type information

    return max(1, min(psutil.cpu_count(logical=False) or 1, count_usable_cores()))


def cpu_name() -> str:
    """Return the processor's name as the system reports it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


PROMPT = "def add(a, b):\n    return a + b\n\n" * 6
"""Prompt that is evaluated while the speed is measured. Its length is chosen by judgement; not measured."""


@dataclass(frozen=True, kw_only=True)
class TokenSpeed:
    """Tokens per second at one thread count: generating a reply, and evaluating a prompt."""

    threads: int
    reply_tokens_per_s: float
    prompt_tokens_per_s: float


@dataclass(frozen=True, kw_only=True)
class ThreadCalibration:
    """The measurement of one model file on one machine.

    Attributes:
        cores: Physical cores that this process may use.
        engine: The version of xllamacpp.
        threads: Thread count for generating replies.
        batch_threads: Thread count for evaluating prompts.
        load: The machine's one-minute load average when the measurement began.
    """

    cpu: str
    cores: int
    model_file: str
    engine: str
    threads: int
    batch_threads: int
    speeds: tuple[TokenSpeed, ...]
    load: float = 0.0


def calibrate_threads(
    model_path: Path,
    cache: Path,
    *,
    measure: Callable[[Path, int], TokenSpeed] | None = None,
    load: float | None = None,
) -> ThreadCalibration:
    """Return the cached calibration, or measure a new one (some seconds).

    A calibration that was made on a busy machine is repeated once the load has fallen to half.

    Args:
        model_path: The weights, a GGUF file.
        cache: The folder `paths.cache`, where the measurement is stored.
        measure: Times one thread count; `measure_speed` by default.
        load: The current load average; the machine's by default.
    """
    cached = read_calibration(model_path, cache)
    load = os.getloadavg()[0] if load is None else load
    if cached is not None and (cached.load <= BUSY_LOAD or load > cached.load / 2):
        return cached
    speeds = measure_speeds(model_path, usable_cores(), measure or measure_speed)
    calibration = ThreadCalibration(
        **_machine_fields(model_path),
        threads=choose_threads({speed.threads: speed.reply_tokens_per_s for speed in speeds}),
        batch_threads=choose_threads({speed.threads: speed.prompt_tokens_per_s for speed in speeds}),
        speeds=speeds,
        load=round(load, 2),
    )
    # The same cache may hold calibrations of other models, and of other machines that share the folder.
    others = [stored for stored in list_calibrations(cache) if _key(stored) != _key(calibration)]
    entries = [asdict(stored) for stored in (*others, calibration)]
    write_file_atomically(_store_path(cache), json.dumps(entries, indent=1).encode())
    return calibration


def read_calibration(model_path: Path, cache: Path) -> ThreadCalibration | None:
    """Return the stored calibration of this file on this machine, or `None`."""
    if importlib.util.find_spec("xllamacpp") is None:
        return None
    machine = tuple(_machine_fields(model_path).values())
    return next((stored for stored in list_calibrations(cache) if _key(stored) == machine), None)


def read_threads(model_path: Path, cache: Path) -> tuple[int, int]:
    """Return the thread counts for generating replies and for evaluating prompts, without measuring.

    Without a calibration, half of the cores generate: with too many threads a reply takes several times as long, with
    too few at most twice.
    """
    calibration = read_calibration(model_path, cache)
    if calibration is not None:
        return calibration.threads, calibration.batch_threads
    cores = usable_cores()
    return max(1, cores // 2), cores


def list_calibrations(cache: Path) -> tuple[ThreadCalibration, ...]:
    """Return all stored calibrations; a damaged file counts as empty."""
    try:
        entries = json.loads(_store_path(cache).read_bytes())
        return tuple(decode_record(ThreadCalibration, entry) for entry in entries)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return ()


def measure_speed(model_path: Path, threads: int) -> TokenSpeed:
    """Load the model with a number of threads and time a few tokens."""
    import httpx

    options = LlamaServerOptions(
        # A small context, which loads faster; the prompt and the reply fit.
        model_path=model_path,
        context_tokens=512,
        slots=1,
        threads=threads,
        batch_threads=threads,
    )
    server = start_llama_server(options)
    try:
        response = httpx.post(
            f"{server.url}/completion",
            headers={"Authorization": f"Bearer {server.key}"},
            json={
                "prompt": PROMPT,
                "n_predict": CALIBRATION_REPLY_TOKENS,
                "temperature": 0,
                "ignore_eos": True,
            },
            trust_env=False,
            timeout=CALIBRATION_TIMEOUT_S,
        )
        timings = response.raise_for_status().json()["timings"]
    except httpx.HTTPError as fault:
        raise ModelError(f"the embedded model did not answer while it was timed: {fault}") from fault
    finally:
        server.stop()
    return TokenSpeed(
        threads=threads,
        reply_tokens_per_s=round(timings["predicted_per_second"], 1),
        prompt_tokens_per_s=round(timings["prompt_per_second"], 1),
    )


def measure_speeds(
    model_path: Path, cores: int, measure: Callable[[Path, int], TokenSpeed]
) -> tuple[TokenSpeed, ...]:
    """Time 1, 2, 4 ... up to all cores, until more threads are slower."""
    speeds: list[TokenSpeed] = []
    threads = 1
    while threads <= cores:
        speeds.append(measure(model_path, threads))
        if (
            len(speeds) > 1
            and speeds[-1].reply_tokens_per_s < speeds[-2].reply_tokens_per_s
            and speeds[-1].prompt_tokens_per_s < speeds[-2].prompt_tokens_per_s
        ):
            break
        # All cores are tried too if their number is not a power of two.
        threads = cores if threads < cores < 2 * threads else 2 * threads
    return tuple(speeds)


def choose_threads(tokens_per_s: Mapping[int, float]) -> int:
    """Return the fastest thread count of `tokens_per_s`; more threads must gain at least `MIN_THREAD_GAIN`."""
    best = min(tokens_per_s)
    for threads in sorted(tokens_per_s):
        if tokens_per_s[threads] >= tokens_per_s[best] * MIN_THREAD_GAIN:
            best = threads
    return best


def _machine_fields(model_path: Path) -> dict[str, Any]:
    return {
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "model_file": model_path.name,
        "engine": version("xllamacpp"),
    }


def _key(calibration: ThreadCalibration) -> tuple[str, int, str, str]:
    """Return what a calibration is for, in the order of `_machine_fields`."""
    return calibration.cpu, calibration.cores, calibration.model_file, calibration.engine


def _store_path(cache: Path) -> Path:
    return cache.expanduser() / "calibration.json"
