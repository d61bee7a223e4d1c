"""Ray workers get few settings of their server, because everyone in the cluster can see them."""

from __future__ import annotations

from suture.interfaces.jobs.ray_backend.ray_job_pool import worker_flags


def test_workers_get_no_secrets_and_no_folders_of_the_server() -> None:
    settings = {
        "model.name": "openai:x",
        "budget.seconds": 60,
        "keys.openai": "sk-secret",
        "store.url": "postgresql://me:secret@db/x",
        "paths.home": "/srv",
        "serve.port": 1,
    }
    assert worker_flags(settings, "team") == {
        "model.name": "openai:x",
        "budget.seconds": 60,
        "store.runs": "database",
        "store.namespace": "team",
    }
