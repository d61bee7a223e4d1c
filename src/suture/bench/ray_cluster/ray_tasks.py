"""The same evaluation on many machines, as Ray tasks: back come the row and all that its run left behind.

A worker that is lost is replaced by Ray, and its task begins again there. What the lost one had drawn and not
returned back is drawn again; everything else comes from the pool, which stays with whoever started it all.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from suture.bench.replies.recordings import RecordedReply, read_draws
from suture.bench.replies.reply_pool import PooledModel, ReplyPool
from suture.bench.rows import BenchmarkRow
from suture.bench.running.evaluation import ABORTING_ERRORS, EvaluationJob, evaluate
from suture.core.settings import Settings, load_settings
from suture.core.settings.writing import encode_settings, restore_settings
from suture.errors import PrerequisiteError, SutureError
from suture.models import Model
from suture.sandbox import Sandbox, open_sandbox

ModelOpener = Callable[[Settings, str], Model]
RETRIES = 3
"""How often a task is begun again whose worker was lost."""
LOST = ("WorkerCrashedError", "NodeDiedError", "LocalRayletDiedError", "OutOfMemoryError", "ObjectLostError")
"""What Ray raises when it has tried so often; any other of its errors is of another kind."""


@dataclass(frozen=True, kw_only=True)
class RemoteJob:
    """What a worker gets.

    Attributes:
        job: The task and the arm.
        settings: The knobs as JSON, without keys and folders: those are the worker's own.
        draws: The replies that are known for this task.
        opener: Makes a model of its name; `None` where no model may be asked.
    """

    job: EvaluationJob
    settings: str
    draws: tuple[RecordedReply, ...]
    opener: ModelOpener | None


@dataclass(frozen=True, kw_only=True)
class RemoteResult:
    """What comes back: the row, the run's folder as a tar, new draws; or why there is nothing.

    An exception comes as its class, message and remedy, so that no class has to survive the journey.
    """

    row: BenchmarkRow | None = None
    run: bytes = b""
    draws: tuple[RecordedReply, ...] = ()
    refused: tuple[str, str, str] | None = None


class RayCluster:
    """A Ray cluster that evaluates; an asynchronous context.

    Args:
        address: Of the cluster, as `ray.init` takes it; `local` starts one here.
        home: Where the folders of runs go, below `runs`.
        settings: The knobs of every run.
        pool: Where known replies come from and new ones go.
        opener: Makes the workers' models; `None` where none may be asked.

    Raises:
        PrerequisiteError: Ray is not installed, or the cluster does not answer.
    """

    def __init__(
        self, address: str, *, home: Path, settings: Settings, pool: ReplyPool, opener: ModelOpener | None
    ) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as fault:
            raise PrerequisiteError("--ray needs Ray", remedy='pip install "suture[ray]"') from fault
        self._address = address
        self._home = home
        self._settings = json.dumps(encode_settings(settings))
        self._pool = pool
        self._opener = opener
        # Arms of one task ask for the same replies: one after the other they pay for each of them once.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __aenter__(self) -> RayCluster:
        try:
            self._ray.init(
                address=self._address, log_to_driver=False, include_dashboard=False if self._here else None
            )
        except (ConnectionError, RuntimeError, ValueError) as fault:
            raise PrerequisiteError(
                f"the cluster at {self._address!r} does not answer: {fault}",
                remedy="give the address that `ray start --head` printed, or `local`",
            ) from fault
        self._remote = self._ray.remote(max_retries=RETRIES, num_cpus=1)(run_remote_job)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ray.shutdown()

    @property
    def _here(self) -> bool:
        return self._address == "local"

    async def row(self, job: EvaluationJob) -> BenchmarkRow:
        """Evaluate somewhere; raises as `evaluate` does."""
        async with self._turns[job.problem.id]:
            remote_job = RemoteJob(
                job=job,
                settings=self._settings,
                draws=self._pool.draws_for(job.problem, job.model),
                opener=self._opener,
            )
            try:
                returned: RemoteResult = await self._remote.remote(remote_job)
            except self._ray.exceptions.RayError as fault:
                return job.row(fault=self._why(fault))
            for draw in returned.draws:
                self._pool.add(draw)
        if returned.refused is not None:
            kind, message, remedy = returned.refused
            raise next(known for known in ABORTING_ERRORS if known.__name__ == kind)(message, remedy=remedy)
        assert returned.row is not None
        if returned.run:
            _unpack(returned.run, self._home / "runs")
        return returned.row

    def _why(self, fault: BaseException) -> str:
        known = self._ray.exceptions
        if isinstance(fault, known.RayTaskError):  # raised there, such as by an import: not tried again
            return f"it failed on its worker: {_in_words(fault.cause)}"
        if isinstance(fault, tuple(getattr(known, name) for name in LOST)):
            return f"its worker was lost {RETRIES + 1} times: {_in_words(fault)}"
        return f"the cluster failed: {_in_words(fault)}"


def _in_words(fault: BaseException) -> str:
    """A fault in a line; where it quotes a traceback, what that ends with."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return ": ".join((type(fault).__name__, *lines[-1:]))


@dataclass
class _WorkerState:
    """What one worker process keeps from task to task."""

    settings: Settings
    sandbox: Sandbox
    judge: Sandbox
    models: dict[str, Model]
    runner: asyncio.Runner


_worker_states: dict[str, _WorkerState] = {}
"""By the settings: a process of Ray serves many tasks, and a model or a wall takes its time to open."""


def run_remote_job(remote_job: RemoteJob) -> RemoteResult:
    """A worker's part: the same `evaluate` as everywhere."""
    there = _worker_states.get(remote_job.settings)
    if there is None:
        try:
            there = _worker_states[remote_job.settings] = _open(remote_job.settings)
        except ABORTING_ERRORS as fault:
            # Such as a machine without a sandbox: raised here it would be taken for a lost worker.
            return RemoteResult(refused=_as_plain(fault))
    return there.runner.run(_run_job(remote_job, there))


def _open(plain: str) -> _WorkerState:
    settings = restore_settings(json.loads(plain), load_settings(Path.cwd()).settings)
    sandboxes = [
        open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache) for _ in range(2)
    ]
    return _WorkerState(
        settings=settings, sandbox=sandboxes[0], judge=sandboxes[1], models={}, runner=asyncio.Runner()
    )


async def _run_job(remote_job: RemoteJob, there: _WorkerState) -> RemoteResult:
    with tempfile.TemporaryDirectory(prefix="suture-bench-", ignore_cleanup_errors=True) as home:
        return await _evaluated(remote_job, there, Path(home))


async def _evaluated(remote_job: RemoteJob, there: _WorkerState, home: Path) -> RemoteResult:
    job, opener, drawn = remote_job.job, remote_job.opener, home / "drawn"
    paths = there.settings.paths.model_copy(update={"home": home})
    settings = there.settings.model_copy(update={"paths": paths})
    try:
        model: Model | None = None
        if opener is not None:
            model = there.models.get(job.model) or opener(there.settings, job.model)
            there.models[job.model] = model
        pool = ReplyPool(drawn, draws=remote_job.draws)
        answering = PooledModel(model, job.model, pool, job.problem, seed=job.seed)
        row = await evaluate(
            job, model=answering, settings=settings, sandbox=there.sandbox, judge=there.judge
        )
        run = _pack(home / "runs" / row.run) if row.run else b""
        return RemoteResult(row=row, run=run, draws=tuple(read_draws(drawn, [])))
    except ABORTING_ERRORS as fault:
        return RemoteResult(refused=_as_plain(fault), draws=tuple(read_draws(drawn, [])))
    except Exception as fault:
        # The edge, as on one machine: a crash in one task is a line of the table.
        lost = job.row(fault=f"{type(fault).__name__}: {fault}")
        return RemoteResult(row=lost, draws=tuple(read_draws(drawn, [])))


def _as_plain(fault: SutureError) -> tuple[str, str, str]:
    kind = next(known.__name__ for known in ABORTING_ERRORS if isinstance(fault, known))
    return kind, fault.message, fault.remedy


def _pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return packed.getvalue()


def _unpack(packed: bytes, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as tar:
        tar.extractall(target, filter="data")
