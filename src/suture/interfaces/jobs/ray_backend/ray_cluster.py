"""A Ray cluster that executes jobs, each in a named, detached actor that Ray queues and restarts."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from suture.core.installation import format_install_command
from suture.errors import PrerequisiteError, StorageError
from suture.interfaces.jobs.ray_backend.ray_worker import RayWorker

NAMESPACE = "suture"
"""Ray's namespace for the names of actors."""


class RayCluster:
    """A connection to a cluster. Its methods can block while the cluster does not answer.

    Args:
        address: The address, as `ray.init` takes it.
        owner: The prefix of the names of our actors: the namespace of the shared runs.
    """

    def __init__(self, address: str, owner: str) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as fault:
            raise PrerequisiteError(
                "serve.executor = ray needs Ray", remedy=format_install_command("ray")
            ) from fault
        try:
            self._ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError) as fault:
            raise PrerequisiteError(
                f"the cluster at {address!r} does not answer: {fault}",
                remedy="set serve.ray_address to what `ray start --head` printed",
            ) from fault
        self._owner = owner
        self._worker = self._ray.remote(RayWorker)

    def start_job(self, job: str, flags: Mapping[str, object]) -> None:
        """Start a job on the cluster, unless it is already there: Ray accepts a name only once."""
        options = {"name": self._actor_name(job), "get_if_exists": True, "lifetime": "detached"}
        try:
            self._worker.options(**options, max_restarts=-1, num_cpus=1).remote(job, dict(flags))
        except (self._ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError) as fault:
            raise _cluster_error(fault) from fault

    def list_jobs(self) -> set[str]:
        """Return the ids of the jobs that are waiting or running on the cluster."""
        try:
            names = self._ray.util.list_named_actors()
        except (self._ray.exceptions.RayError, ConnectionError, RuntimeError) as fault:
            raise _cluster_error(fault) from fault
        prefix = self._actor_name("")
        return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}

    def close(self) -> None:
        """Disconnect from the cluster; its jobs continue."""
        self._ray.shutdown()

    def _actor_name(self, job: str) -> str:
        return f"{self._owner}:{job}"


def _cluster_error(fault: BaseException) -> StorageError:
    reason = str(fault).strip().partition("\n")[0]
    return StorageError(
        f"the Ray cluster failed: {type(fault).__name__}: {reason}", remedy="see `ray status`"
    )
