"""Heal in a CI pipeline: read the pipeline, check the gates, deliver a heal, and answer comments on it.

This package owns `suture ci`. The api heals and verifies; this package judges no code itself. Names of
branches, titles, files and tests, and whatever tests print, are untrusted: they reach no shell, and reach
Markdown only through `markdown_summary`. A token is sent only to the service's own address.
"""

from suture.interfaces.ci.branch_issue import read_report, update_branch_issue
from suture.interfaces.ci.ci_checkout import read_remote
from suture.interfaces.ci.ci_pipeline import Pipeline, read_pipeline
from suture.interfaces.ci.code_host import DeliveredChange
from suture.interfaces.ci.comment_commands import (
    CommandReply,
    CommentCommand,
    OfferedHeal,
    read_comment_command,
    render_reply,
    respond_to_command,
)
from suture.interfaces.ci.delivery_gates import REFUSAL_TEXTS, Refusal
from suture.interfaces.ci.github import GitHub
from suture.interfaces.ci.heal_report import REFUSED, HealReport
from suture.interfaces.ci.pipeline_delivery import (
    check_open_heals,
    deliver_change,
    open_github,
    open_host,
    prepare_delivery,
    prepare_run_delivery,
    require_change,
)
from suture.interfaces.ci.pipeline_heal import HealRequest, heal_in_pipeline, plan_heal

__all__ = [
    "REFUSAL_TEXTS",
    "REFUSED",
    "CommandReply",
    "CommentCommand",
    "DeliveredChange",
    "GitHub",
    "HealReport",
    "HealRequest",
    "OfferedHeal",
    "Pipeline",
    "Refusal",
    "check_open_heals",
    "deliver_change",
    "heal_in_pipeline",
    "open_github",
    "open_host",
    "plan_heal",
    "prepare_delivery",
    "prepare_run_delivery",
    "read_comment_command",
    "read_pipeline",
    "read_remote",
    "read_report",
    "render_reply",
    "require_change",
    "respond_to_command",
    "update_branch_issue",
]
