"""Healing in a pipeline: what its service says of a change, the gates, and how a heal is handed over.

This room owns `suture ci`. It asks the api for the heal and for its verification, and judges no code itself.
Names of branches, titles, files and tests, and whatever tests print, are untrusted here: they reach no
shell, and Markdown by way of `markdown` alone. A token
goes to the service's own address alone.
"""

from suture.interfaces.ci.ci_pipeline import read_pipeline
from suture.interfaces.ci.delivery_gates import REFUSAL_TEXTS, Refusal
from suture.interfaces.ci.heal_report import REFUSED, HealReport
from suture.interfaces.ci.pipeline_delivery import check_open_heals, deliver, prepare_delivery
from suture.interfaces.ci.pipeline_heal import HealRequest, heal_in_pipeline, plan_heal

__all__ = [
    "REFUSAL_TEXTS",
    "REFUSED",
    "HealReport",
    "HealRequest",
    "Refusal",
    "check_open_heals",
    "deliver",
    "heal_in_pipeline",
    "plan_heal",
    "prepare_delivery",
    "read_pipeline",
]
