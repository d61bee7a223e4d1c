"""Evaluate benchmark jobs on a Ray cluster. Each job returns its row, its run folder and its new replies.

Ray replaces a lost worker and starts its job again. Replies that the lost worker had received but not
returned are requested again; all others come from the reply pool, which stays with the driver.
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
MAX_RETRIES = 3
"""How often a job is started again after its worker was lost."""
LOST_WORKER_ERRORS = (
    "WorkerCrashedError",
    "NodeDiedError",
    "LocalRayletDiedError",
    "OutOfMemoryError",
    "ObjectLostError",
)
"""Names of Ray's exceptions for a worker that was lost too often."""


@dataclass(frozen=True, kw_only=True)
class RemoteJob:
    """What a worker receives.

    Attributes:
        settings: The settings as JSON, without keys and folders, which the worker has of its own.
        draws: The known replies for this task.
        opener: Opens a model by its name; `None` if no model may be called.
    """

    job: EvaluationJob
    settings: str
    draws: tuple[RecordedReply, ...]
    opener: ModelOpener | None


@dataclass(frozen=True, kw_only=True)
class RemoteResult:
    """What a worker returns: the row, the run folder as a tar archive, and new replies; or why it failed.

    An exception is returned as class name, message and remedy, so that no exception class must be pickled.
    """

    row: BenchmarkRow | None = None
    run: bytes = b""
    draws: tuple[RecordedReply, ...] = ()
    refused: tuple[str, str, str] | None = None


class RayTaskRunner:
    """A Ray cluster that evaluates jobs; an asynchronous context manager.

    Args:
        address: Address of the cluster, as for `ray.init`; `local` starts one here.
        home: Folder whose subfolder `runs` receives the run folders.
        pool: Provides known replies, and receives new ones.
        opener: Opens the workers' models; `None` if no model may be called.
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
        # Arms of one task need the same replies. One after the other, they pay for each reply once.
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __aenter__(self) -> RayTaskRunner:
        try:
            self._ray.init(
                address=self._address,
                log_to_driver=False,
                include_dashboard=False if self._is_local else None,
            )
        except (ConnectionError, RuntimeError, ValueError) as fault:
            raise PrerequisiteError(
                f"the cluster at {self._address!r} does not answer: {fault}",
                remedy="give the address that `ray start --head` printed, or `local`",
            ) from fault
        self._remote = self._ray.remote(max_retries=MAX_RETRIES, num_cpus=1)(run_remote_job)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ray.shutdown()

    @property
    def _is_local(self) -> bool:
        return self._address == "local"

    async def row(self, job: EvaluationJob) -> BenchmarkRow:
        """Evaluate a job on some worker; raises as `evaluate` does."""
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
                return job.row(fault=self._explain(fault))
            for draw in returned.draws:
                self._pool.add(draw)
        if returned.refused is not None:
            kind, message, remedy = returned.refused
            raise next(known for known in ABORTING_ERRORS if known.__name__ == kind)(message, remedy=remedy)
        assert returned.row is not None
        if returned.run:
            _unpack(returned.run, self._home / "runs")
        return returned.row

    def _explain(self, fault: BaseException) -> str:
        known = self._ray.exceptions
        if isinstance(fault, known.RayTaskError):
            # It was raised on the worker, such as by an import, and Ray does not retry that.
            return f"it failed on its worker: {_describe(fault.cause)}"
        if isinstance(fault, tuple(getattr(known, name) for name in LOST_WORKER_ERRORS)):
            return f"its worker was lost {MAX_RETRIES + 1} times: {_describe(fault)}"
        return f"the cluster failed: {_describe(fault)}"


def _describe(fault: BaseException) -> str:
    """Return an exception in one line; of a quoted traceback, the last line."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return ": ".join((type(fault).__name__, *lines[-1:]))


@dataclass
class _WorkerState:
    """What a worker process keeps from job to job."""

    settings: Settings
    sandbox: Sandbox
    judge: Sandbox
    models: dict[str, Model]
    runner: asyncio.Runner


_worker_states: dict[str, _WorkerState] = {}
"""Settings -> state. A Ray process serves many jobs, and opening a model or a sandbox takes time."""


def run_remote_job(remote_job: RemoteJob) -> RemoteResult:
    """Evaluate a job in a worker process."""
    state = _worker_states.get(remote_job.settings)
    if state is None:
        try:
            state = _worker_states[remote_job.settings] = _open(remote_job.settings)
        except ABORTING_ERRORS as fault:
            # Such as a machine without a sandbox. Ray would take a raised exception for a lost worker.
            return RemoteResult(refused=_encode_fault(fault))
    return state.runner.run(_run_job(remote_job, state))


def _open(plain: str) -> _WorkerState:
    settings = restore_settings(json.loads(plain), load_settings(Path.cwd()).settings)
    sandboxes = [
        open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache) for _ in range(2)
    ]
    return _WorkerState(
        settings=settings, sandbox=sandboxes[0], judge=sandboxes[1], models={}, runner=asyncio.Runner()
    )


async def _run_job(remote_job: RemoteJob, state: _WorkerState) -> RemoteResult:
    with tempfile.TemporaryDirectory(prefix="suture-bench-", ignore_cleanup_errors=True) as home:
        return await _evaluate_in(remote_job, state, Path(home))


async def _evaluate_in(remote_job: RemoteJob, state: _WorkerState, home: Path) -> RemoteResult:
    job, opener, drawn = remote_job.job, remote_job.opener, home / "drawn"
    paths = state.settings.paths.model_copy(update={"home": home})
    settings = state.settings.model_copy(update={"paths": paths})
    try:
        model: Model | None = None
        if opener is not None:
            model = state.models.get(job.model) or opener(state.settings, job.model)
            state.models[job.model] = model
        pool = ReplyPool(drawn, draws=remote_job.draws)
        answering = PooledModel(model, job.model, pool, job.problem, seed=job.seed)
        row = await evaluate(
            job, model=answering, settings=settings, sandbox=state.sandbox, judge=state.judge
        )
        run = _pack(home / "runs" / row.run) if row.run else b""
        return RemoteResult(row=row, run=run, draws=tuple(read_draws(drawn, [])))
    except ABORTING_ERRORS as fault:
        return RemoteResult(refused=_encode_fault(fault), draws=tuple(read_draws(drawn, [])))
    except Exception as fault:
        # As on one machine, a crash in one task becomes a row with a fault.
        lost = job.row(fault=f"{type(fault).__name__}: {fault}")
        return RemoteResult(row=lost, draws=tuple(read_draws(drawn, [])))


def _encode_fault(fault: SutureError) -> tuple[str, str, str]:
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
