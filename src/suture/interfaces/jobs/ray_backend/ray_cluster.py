"""A Ray cluster as a place for jobs: one named, detached actor each, so that Ray queues and restarts them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from suture.errors import PrerequisiteError, StorageError
from suture.interfaces.jobs.ray_backend.ray_worker import RayWorker

NAMESPACE = "suture"
"""Ray's own, for names of actors."""


class RayCluster:
    """A connection to a cluster. Its methods may block while the cluster does not answer.

    Args:
        address: As `ray.init` takes it.
        owner: A word before the names of our actors there.

    Raises:
        PrerequisiteError: Ray is not installed, or the cluster does not answer.
    """

    def __init__(self, address: str, owner: str) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as fault:
            raise PrerequisiteError(
                "serve.executor = ray needs Ray", remedy='pip install "suture[ray]"'
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

    def place(self, job: str, flags: Mapping[str, object]) -> None:
        """Have a job done, unless it is being done: Ray takes a name once.

        Raises:
            StorageError: The cluster failed.
        """
        options = {"name": self._name(job), "get_if_exists": True, "lifetime": "detached"}
        try:
            self._worker.options(**options, max_restarts=-1, num_cpus=1).remote(job, dict(flags))
        except (self._ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError) as fault:
            raise _failed(fault) from fault

    def placed(self) -> set[str]:
        """The ids of the jobs that wait or are done there.

        Raises:
            StorageError: The cluster failed.
        """
        try:
            names = self._ray.util.list_named_actors()
        except (self._ray.exceptions.RayError, ConnectionError, RuntimeError) as fault:
            raise _failed(fault) from fault
        return {name.removeprefix(self._name("")) for name in names if name.startswith(self._name(""))}

    def close(self) -> None:
        """Leave the cluster; its work goes on."""
        self._ray.shutdown()

    def _name(self, job: str) -> str:
        return f"{self._owner}:{job}"


def _failed(fault: BaseException) -> StorageError:
    said = str(fault).strip().partition("\n")[0]
    return StorageError(f"the Ray cluster failed: {type(fault).__name__}: {said}", remedy="see `ray status`")
