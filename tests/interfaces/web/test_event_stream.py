"""The stream of a run's events: the reply that a model is writing is part of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from suture.core.ledger import RunFolder
from suture.interfaces.jobs.job_execution import ReplyFile
from suture.interfaces.web.run_views import stream_events


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
