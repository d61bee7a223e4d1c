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

from suture.bench.replies.reply_pool import PooledModel, RecordedReply, ReplyPool, read_draws
from suture.bench.rows import BenchmarkRow
from suture.bench.running.evaluation import ABORTING_ERRORS, EvaluationJob, evaluate
from suture.core.installation import format_install_command
from suture.core.settings import Settings, load_settings
from suture.core.settings.setting_changes import encode_settings, restore_settings
from suture.errors import PrerequisiteError, SutureError
from suture.models import Model
from suture.sandbox import Sandbox, open_sandbox

ModelOpener = Callable[[Settings, str], Model]
"""Opens a model by its name, `provider:model`."""
MAX_RETRIES = 3
"""Maximum number of times that a job is started again after its worker was lost. Chosen by judgement; not measured."""
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
    """A job as a worker receives it.

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
    """The result of a job as a worker returns it.

    Attributes:
        run: The run folder as a tar archive; empty if there was no run.
        draws: The replies that the worker received.
        aborting_error: (class name, message, remedy) of an error that ends the benchmark, so that no
            exception class must be pickled.
    """

    row: BenchmarkRow | None = None
    run: bytes = b""
    draws: tuple[RecordedReply, ...] = ()
    aborting_error: tuple[str, str, str] | None = None


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
            raise PrerequisiteError("--ray needs Ray", remedy=format_install_command("ray")) from fault
        self._address = address
        self._home = home
        self._settings = json.dumps(encode_settings(settings))
        self._pool = pool
        self._opener = opener
        # Arms of one task need the same replies. If they run one after the other, each reply is paid for once.
        self._locks_by_task: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __aenter__(self) -> RayTaskRunner:
        try:
            self._ray.init(
                address=self._address,
                log_to_driver=False,
                # A cluster that is started only for this benchmark needs no dashboard.
                include_dashboard=False if self._address == "local" else None,
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

    async def row(self, job: EvaluationJob) -> BenchmarkRow:
        """Evaluate a job on some worker; raises as `evaluate` does."""
        async with self._locks_by_task[job.problem.id]:
            remote_job = RemoteJob(
                job=job,
                settings=self._settings,
                draws=self._pool.draws_for(job.problem, job.model),
                opener=self._opener,
            )
            try:
                result: RemoteResult = await self._remote.remote(remote_job)
            except self._ray.exceptions.RayError as fault:
                return job.row(fault=self._explain(fault))
            for draw in result.draws:
                self._pool.add(draw)
        if result.aborting_error is not None:
            name, message, remedy = result.aborting_error
            error_class = next(error for error in ABORTING_ERRORS if error.__name__ == name)
            raise error_class(message, remedy=remedy)
        assert result.row is not None
        if result.run:
            _unpack(result.run, self._home / "runs")
        return result.row

    def _explain(self, fault: BaseException) -> str:
        ray_exceptions = self._ray.exceptions
        if isinstance(fault, ray_exceptions.RayTaskError):
            # The job raised the error on the worker, such as by an import, and Ray does not retry that.
            return f"it failed on its worker: {_describe(fault.cause)}"
        if isinstance(fault, tuple(getattr(ray_exceptions, name) for name in LOST_WORKER_ERRORS)):
            return f"its worker was lost {MAX_RETRIES + 1} times: {_describe(fault)}"
        return f"the cluster failed: {_describe(fault)}"


def _describe(fault: BaseException) -> str:
    """Return an exception in one line; if its text quotes a traceback, only the last line of it."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return ": ".join((type(fault).__name__, *lines[-1:]))


@dataclass
class _WorkerState:
    """What a worker process keeps between jobs."""

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
            return RemoteResult(aborting_error=_encode_fault(fault))
    with tempfile.TemporaryDirectory(prefix="suture-bench-", ignore_cleanup_errors=True) as home:
        return state.runner.run(_evaluate_in(remote_job, state, Path(home)))


def _open(settings_json: str) -> _WorkerState:
    settings = restore_settings(json.loads(settings_json), load_settings(Path.cwd()).settings)
    sandbox, judge = (
        open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache) for _ in range(2)
    )
    return _WorkerState(settings=settings, sandbox=sandbox, judge=judge, models={}, runner=asyncio.Runner())


async def _evaluate_in(remote_job: RemoteJob, state: _WorkerState, home: Path) -> RemoteResult:
    """Evaluate a job with a temporary home; its new replies are stored there too, so that none is lost."""
    job, opener, new_replies = remote_job.job, remote_job.opener, home / "drawn"
    paths = state.settings.paths.model_copy(update={"home": home})
    settings = state.settings.model_copy(update={"paths": paths})
    try:
        model: Model | None = None
        if opener is not None:
            model = state.models.get(job.model) or opener(state.settings, job.model)
            state.models[job.model] = model
        pool = ReplyPool(new_replies, draws=remote_job.draws)
        pooled_model = PooledModel(model, job.model, pool, job.problem, seed=job.seed)
        row = await evaluate(
            job, model=pooled_model, settings=settings, sandbox=state.sandbox, judge=state.judge
        )
        run = _pack(home / "runs" / row.run) if row.run else b""
        return RemoteResult(row=row, run=run, draws=tuple(read_draws(new_replies, [])))
    except ABORTING_ERRORS as fault:
        return RemoteResult(aborting_error=_encode_fault(fault), draws=tuple(read_draws(new_replies, [])))
    except Exception as fault:
        # As on one machine, a crash in one task becomes a row with a fault.
        row = job.row(fault=f"{type(fault).__name__}: {fault}")
        return RemoteResult(row=row, draws=tuple(read_draws(new_replies, [])))


def _encode_fault(fault: SutureError) -> tuple[str, str, str]:
    name = next(error.__name__ for error in ABORTING_ERRORS if isinstance(fault, error))
    return name, fault.message, fault.remedy


def _pack(folder: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(folder, arcname=folder.name)
    return buffer.getvalue()


def _unpack(archive: bytes, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        tar.extractall(target, filter="data")
