"""A run's question, and a verified change, as permission requests: what the user picks is the answer."""

from __future__ import annotations

from pathlib import Path

from acp.helpers import text_block, tool_content, update_tool_call
from acp.interfaces import Client
from acp.schema import AllowedOutcome, PermissionOption, ToolCallUpdate

from suture.api import Review
from suture.core.ledger import RunFolder
from suture.core.records import Candidate
from suture.interfaces.editor.acp.telling import diffs_of, task_if_there
from suture.interfaces.narrative.lines import markdown
from suture.interfaces.narrative.review_json import review_as_text

STEP = (
    PermissionOption(option_id="approve", name="Yes", kind="allow_once"),
    PermissionOption(option_id="reject", name="No, something else", kind="reject_once"),
    PermissionOption(option_id="abort", name="Stop the run", kind="reject_always"),
)
DIFFERENCE = (
    PermissionOption(option_id="first", name="The first", kind="allow_once"),
    PermissionOption(option_id="second", name="The second", kind="allow_once"),
    PermissionOption(option_id="neither", name="Neither", kind="reject_once"),
    PermissionOption(option_id="unsure", name="I do not know", kind="reject_once"),
)
CHANGE = (
    PermissionOption(option_id="apply", name="Write it into my files", kind="allow_once"),
    PermissionOption(option_id="leave", name="Leave my files as they are", kind="reject_once"),
)


async def answer_to(client: Client, session: str, review: Review, root: Path) -> str:
    """What the user picks as the answer to a question; empty where they pick nothing."""
    diffs = diffs_of(review.candidate, review.task, root)[0] if review.candidate is not None else []
    update = update_tool_call(
        f"{review.run_id}-{review.key[:16]}",
        title=markdown(review.asked, 200),
        kind="edit" if diffs else "other",
        status="pending",
        content=[tool_content(text_block(markdown(review_as_text(review)))), *diffs],
    )
    return await _picked(client, session, update, DIFFERENCE if review.difference is not None else STEP)


async def accepts(client: Client, session: str, folder: RunFolder, change: Candidate, root: Path) -> bool:
    """Whether the user wants a verified change written into their files."""
    diffs, places = diffs_of(change, task_if_there(folder), root)
    update = update_tool_call(
        f"{folder.id}-change",
        title="Write the verified change",
        kind="edit",
        status="pending",
        content=diffs,
        locations=places,
    )
    return await _picked(client, session, update, CHANGE) == "apply"


async def _picked(
    client: Client, session: str, update: ToolCallUpdate, options: tuple[PermissionOption, ...]
) -> str:
    call = ToolCallUpdate(**update.model_dump(exclude={"session_update"}))
    said = (await client.request_permission(session, call, list(options))).outcome
    known = {option.option_id for option in options}
    return said.option_id if isinstance(said, AllowedOutcome) and said.option_id in known else ""
