"""The stream of a run's events has a reply that is being written, and how far a search is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from suture.core.ledger import RunFolder
from suture.interfaces.jobs.job_execution import ReplyFile, SearchFile
from suture.interfaces.web.run_views import stream_events
from suture.search import SearchProgress


def test_the_reply_that_a_model_is_writing_is_streamed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    reply_file = ReplyFile(folder)
    reply_file.show(1, "def double(n):\n")
    reply_file.show(2, "a second reply, at the same time")

    async def read_replies() -> list[str]:
        replies = []
        stream = stream_events(folder, is_active=lambda: True, is_stopping=lambda: False, with_text=True)
        async for event in stream:
            if event.startswith(b"event: reply\n"):
                replies.append(json.loads(event.partition(b"data: ")[2]))
                reply_file.show(1, None)
            if len(replies) == 2:
                break
        return replies

    assert asyncio.run(asyncio.wait_for(read_replies(), 60)) == ["def double(n):\n", ""]


def test_how_far_a_search_is_is_streamed_each_time_it_changes(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    SearchFile(folder).show(SearchProgress(tried=214, best=1, targets=3))

    async def read_progress() -> list[dict[str, object]]:
        progress = []
        stream = stream_events(folder, is_active=lambda: True, is_stopping=lambda: False, with_text=True)
        async for event in stream:
            if event.startswith(b"event: search\n"):
                progress.append(json.loads(event.partition(b"data: ")[2]))
                SearchFile(folder).show(SearchProgress(tried=300, best=3, targets=3))
            if len(progress) == 2:
                break
        return progress

    assert asyncio.run(asyncio.wait_for(read_progress(), 60)) == [
        {"tried": 214, "best": "passes 1 of 3 failing tests"},
        {"tried": 300, "best": "passes 3 of 3 failing tests"},
    ]
