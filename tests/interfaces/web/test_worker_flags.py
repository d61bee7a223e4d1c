"""Which command-line settings of a server Ray workers get, since everyone in the cluster can see them."""

from __future__ import annotations

from suture.interfaces.jobs.ray_backend.ray_job_pool import worker_flags


def test_no_secret_and_no_folder_of_the_server_goes_to_its_workers() -> None:
    given = {
        "model.name": "openai:x",
        "budget.seconds": 60,
        "keys.openai": "sk-secret",
        "store.url": "postgresql://me:secret@db/x",
        "paths.home": "/srv",
        "serve.port": 1,
    }
    assert worker_flags(given, "team") == {
        "model.name": "openai:x",
        "budget.seconds": 60,
        "store.runs": "database",
        "store.namespace": "team",
    }
