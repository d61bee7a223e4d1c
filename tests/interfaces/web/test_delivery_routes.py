"""Applying a change through the server: the server responds meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.routing import APIRoute

from project_runs import CHANGE, add_healed_run, write_healed_project
from suture.api.delivery import transactions
from suture.core.ledger import Ledger, RunFolder
from suture.core.settings import Settings
from suture.errors import UsageError
from suture.interfaces.web import judgement_routes, read_routes, run_routes
from suture.interfaces.web.request_guard import LOCAL
from suture.interfaces.web.run_routes import apply_change
from suture.interfaces.web.run_views import run_details
from suture.interfaces.web.web_service import WebService, import_loop


def test_the_server_responds_while_an_apply_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "LOCK_TIMEOUT_S", 0.5)
    healed = write_healed_project(tmp_path)
    other = RunFolder(healed.home / "runs" / add_healed_run(healed.root, healed.home, CHANGE))
    settings = Settings.model_validate(
        {"paths": {"home": str(healed.home)}, "serve": {"roots": [str(tmp_path)]}}
    )
    unused: Any = SimpleNamespace(find_last_job=lambda _: None)
    service = WebService(settings=settings, pool=unused, tokens=unused, archives=unused, needs_token=False)
    responses = 0

    async def serve() -> None:
        nonlocal responses
        applying = asyncio.ensure_future(apply_change(healed.run_id, service, LOCAL))
        while not applying.done():
            await asyncio.sleep(0.01)
            responses += 1
        await applying

    with (
        Ledger(other.ledger_path) as ledger,
        transactions.project_change(other, healed.root, "apply", ledger),
        pytest.raises(UsageError, match="another process is changing this project"),
    ):
        asyncio.run(serve())
    assert responses > 5


@pytest.mark.parametrize("place", ["served", "elsewhere", "a copy by the server"])
def test_a_change_that_the_server_cannot_apply_comes_with_the_reason_and_the_command(
    tmp_path: Path, place: str
) -> None:
    home = tmp_path / "home"
    root = home / "archives" / "one" if place == "a copy by the server" else tmp_path / "shop"
    root.mkdir(parents=True)
    run = RunFolder(home / "runs" / add_healed_run(root, home, CHANGE))
    roots = [str(root)] if place == "served" else []
    settings = Settings.model_validate({"paths": {"home": str(home)}, "serve": {"roots": roots}})
    unused: Any = SimpleNamespace(
        find_last_job=lambda _: None, find_active_job=lambda _: None, find_owner=lambda _: None
    )

    details = run_details(unused, run, settings)

    assert details.can_apply == (place == "served")
    reason = details.why_not_applicable
    assert ([str(root) in reason, reason.endswith(f"suture apply {run.id}")] == [True, True]) == (
        place == "elsewhere"
    )
    assert bool(reason) == (place == "elsewhere")


def test_only_routes_that_need_nothing_of_the_loop_are_answered_before_it_is_imported() -> None:
    """Two threads that import parts of the loop at the same time break each other: "ImportError: this is a bug"."""
    early = {route.path for route in read_routes.early_router.routes if isinstance(route, APIRoute)}

    assert early == {"/v1/runs", "/v1/caller"}
    for module in (read_routes, run_routes, judgement_routes):
        assert import_loop in [dependency.dependency for dependency in module.router.dependencies]
