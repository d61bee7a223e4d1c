"""Heal in a CI pipeline: read the pipeline, check the gates, and deliver a heal.

This package owns `suture ci`. The api heals and verifies; this package judges no code itself. Names of
branches, titles, files and tests, and whatever tests print, are untrusted: they reach no shell, and reach
Markdown only through `markdown_summary`. A token is sent only to the service's own address.
"""

from suture.interfaces.ci.ci_pipeline import read_pipeline
from suture.interfaces.ci.delivery_gates import REFUSAL_TEXTS, Refusal
from suture.interfaces.ci.heal_report import REFUSED, HealReport
from suture.interfaces.ci.pipeline_delivery import check_open_heals, deliver_change, prepare_delivery
from suture.interfaces.ci.pipeline_heal import HealRequest, heal_in_pipeline, plan_heal

__all__ = [
    "REFUSAL_TEXTS",
    "REFUSED",
    "HealReport",
    "HealRequest",
    "Refusal",
    "check_open_heals",
    "deliver_change",
    "heal_in_pipeline",
    "plan_heal",
    "prepare_delivery",
    "read_pipeline",
]
