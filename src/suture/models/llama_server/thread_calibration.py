"""What this machine has for a model: cores and memory."""

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

from suture.core.safe_files import write_atomically
from suture.errors import ModelError
from suture.models.llama_server.server_process import ServerOptions, start_server


def usable_cores() -> int:
    """Physical cores that this process may use."""
    import psutil  # type: ignore[import-untyped]  # ships no type information

    return max(1, min(psutil.cpu_count(logical=False) or 1, len(os.sched_getaffinity(0))))


def available_bytes() -> int:
    """Memory that can be had without swapping."""
    import psutil

    return int(psutil.virtual_memory().available)


def cpu_name() -> str:
    """The processor's name, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


WORTHWHILE_GAIN = 1.1
"""More threads must bring at least this factor: each of them is taken from the sandbox."""
PROMPT = "def add(a, b):\n    return a + b\n\n" * 6
REPLY_TOKENS = 12
"""By taste: more would tell numbers of threads apart better, and the first use waits for it."""
BUSY = 0.5
"""Of the load average: what was measured beside so much other work is measured anew when that is over."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Tokens per second at one thread count: of writing a reply and of reading a prompt."""

    threads: int
    reply_tokens_per_s: float
    prompt_tokens_per_s: float


@dataclass(frozen=True, kw_only=True)
class MachineCalibration:
    """What was measured for one model file on one machine.

    Attributes:
        cpu: The processor's name.
        cores: Physical cores that this process may use.
        model_file: The name of the file of weights.
        engine: The version of xllamacpp, whose speed was measured.
        threads: The count for writing replies.
        batch_threads: The count for reading prompts.
        speeds: All that was measured.
        load: The machine's load average of a minute when that began.
    """

    cpu: str
    cores: int
    model_file: str
    engine: str
    threads: int
    batch_threads: int
    speeds: tuple[Speed, ...]
    load: float = 0.0


def calibrate(
    model_path: Path,
    cache: Path,
    *,
    measure: Callable[[Path, int], Speed] | None = None,
    load: float | None = None,
) -> MachineCalibration:
    """The cached calibration, or a new one (some seconds).

    Args:
        model_path: The weights, a GGUF file.
        cache: The folder `paths.cache`, where the measurement is kept.
        measure: Times one thread count; `measure_speed` unless a test says otherwise.
        load: The load average of now; the machine's where not given.

    Raises:
        ModelError: The server did not come up.
        StorageError: The answer cannot be stored.
    """
    known = read_calibration(model_path, cache)
    load = os.getloadavg()[0] if load is None else load
    if known is not None and (known.load <= BUSY or load > known.load / 2):
        return known
    speeds = measure_speeds(model_path, usable_cores(), measure or measure_speed)
    found = MachineCalibration(
        **_machine(model_path),
        threads=choose_threads({speed.threads: speed.reply_tokens_per_s for speed in speeds}),
        batch_threads=choose_threads({speed.threads: speed.prompt_tokens_per_s for speed in speeds}),
        speeds=speeds,
        load=round(load, 2),
    )
    others = [c for c in list_calibrations(cache) if _key(c) != _key(found)]
    entries = [asdict(calibration) for calibration in (*others, found)]
    write_atomically(_store(cache), json.dumps(entries, indent=1).encode())
    return found


def read_calibration(model_path: Path, cache: Path) -> MachineCalibration | None:
    """What was measured before for this file on this machine, if anything."""
    if importlib.util.find_spec("xllamacpp") is None:
        return None
    machine = tuple(_machine(model_path).values())
    return next((c for c in list_calibrations(cache) if _key(c) == machine), None)


def list_calibrations(cache: Path) -> tuple[MachineCalibration, ...]:
    """All that was ever measured; a damaged file counts as nothing measured."""
    try:
        entries = json.loads(_store(cache).read_bytes())
        return tuple(
            MachineCalibration(**{**entry, "speeds": tuple(Speed(**speed) for speed in entry["speeds"])})
            for entry in entries
        )
    except (OSError, ValueError, TypeError, KeyError):
        return ()


def measure_speed(model_path: Path, threads: int) -> Speed:
    """Load the model with so many threads and time a few tokens.

    Raises:
        ModelError: The server did not come up or did not answer.
    """
    import httpx

    options = ServerOptions(
        model_path=model_path, context_tokens=512, slots=1, threads=threads, batch_threads=threads
    )
    server = start_server(options)
    try:
        answer = httpx.post(
            f"{server.url}/completion",
            headers={"Authorization": f"Bearer {server.key}"},
            json={"prompt": PROMPT, "n_predict": REPLY_TOKENS, "temperature": 0, "ignore_eos": True},
            trust_env=False,
            timeout=120,
        )
        timings = answer.raise_for_status().json()["timings"]
    except httpx.HTTPError as fault:
        raise ModelError(f"the embedded model did not answer while it was timed: {fault}") from fault
    finally:
        server.stop()
    return Speed(
        threads=threads,
        reply_tokens_per_s=round(timings["predicted_per_second"], 1),
        prompt_tokens_per_s=round(timings["prompt_per_second"], 1),
    )


def measure_speeds(model_path: Path, cores: int, measure: Callable[[Path, int], Speed]) -> tuple[Speed, ...]:
    """Time 1, 2, 4 ... up to all cores, until it only gets worse."""
    speeds: list[Speed] = []
    threads = 1
    while threads <= cores:
        speeds.append(measure(model_path, threads))
        if len(speeds) > 1 and _slower(speeds[-1], speeds[-2]):
            break
        threads = cores if threads < cores < 2 * threads else 2 * threads
    return tuple(speeds)


def _slower(now: Speed, before: Speed) -> bool:
    return (
        now.reply_tokens_per_s < before.reply_tokens_per_s
        and now.prompt_tokens_per_s < before.prompt_tokens_per_s
    )


def choose_threads(rates: Mapping[int, float]) -> int:
    """The fastest count, where each step up must be worth its threads."""
    best = min(rates)
    for threads in sorted(rates):
        if rates[threads] >= rates[best] * WORTHWHILE_GAIN:
            best = threads
    return best


def _machine(model_path: Path) -> dict[str, Any]:
    return {
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "model_file": model_path.name,
        "engine": version("xllamacpp"),
    }


def _key(calibration: MachineCalibration) -> tuple[str, int, str, str]:
    return calibration.cpu, calibration.cores, calibration.model_file, calibration.engine


def _store(cache: Path) -> Path:
    return cache.expanduser() / "calibration.json"
