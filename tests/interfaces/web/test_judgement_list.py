"""The list of judgements reads only what it shows, and leaves out answers that are damaged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from suture.interfaces.jobs import Job
from suture.interfaces.jobs.job import JobEnd
from suture.interfaces.web.judgement_routes import list_judgements
from suture.interfaces.web.web_service import WebService

ANSWER = {"ok": True, "outcome": "accepted", "headline": "Accepted", "facts": {}}


def make_ended_job(number: int, answer: dict[str, Any]) -> tuple[Job, JobEnd]:
    job = Job(
        id=f"j{number}",
        run=f"j{number}",
        kind="judge",
        request={"path": "/srv/cart"},
        flags={},
        caller="",
        created_s=float(number),
        tokens=0,
        seconds=1.0,
        key="",
        digest="",
    )
    return job, JobEnd(exit_code=0, answer=answer)


async def test_a_damaged_answer_does_not_hide_the_other_judgements() -> None:
    ends = [make_ended_job(1, ANSWER), make_ended_job(2, {"ok": True}), make_ended_job(3, ANSWER)]
    service = cast(WebService, SimpleNamespace(pool=SimpleNamespace(ends=lambda: ends)))

    page = await list_judgements(service, cast(Any, None), limit=1, offset=0)

    assert (page.total, [summary.id for summary in page.judgements]) == (2, ["j3"])
