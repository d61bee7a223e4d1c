"""Roles that ask a model: typed inputs, a YAML prompt, a typed answer.

This room turns a task and facts into messages that fit, and a reply into files or into a record. It never
touches the sandbox, and it never decides anything: a reply with nothing usable in it is a `MalformedReply`,
not a success.
"""

from suture.roles.advisers.critic import CritiqueBrief, CritiqueReply, critique_draft
from suture.roles.advisers.debugger import (
    MOST_STEPS,
    AskDiagnosis,
    DebugBrief,
    DiagnosisReply,
    Investigation,
    diagnosis_draft,
    investigate,
)
from suture.roles.advisers.planner import MOST_SUBTASKS, PlanBrief, PlanReply, plan_draft
from suture.roles.advisers.reviewer import ReviewBrief, ReviewReply, review_draft
from suture.roles.advisers.summariser import MOST_LESSONS, LessonsBrief, LessonsReply, lessons_draft
from suture.roles.coding.coder import Brief, RepairBrief, WriteBrief, as_shown, coder_draft
from suture.roles.coding.coder_reply import files_from_reply
from suture.roles.coding.optimiser import OptimiseBrief, OptimiseGoal, optimise_draft, optimised_files
from suture.roles.coding.subtask_coder import SubtaskBrief, work_on
from suture.roles.prompting.fitting import Count, Draft, Fitted, PromptPart, fit
from suture.roles.prompting.prompt_book import (
    PromptBook,
    packaged_names,
    packaged_prompt,
    read_prompt,
)
from suture.roles.prompting.prompt_files import Prompt, parse_prompt, prompt_as_plain, prompt_as_yaml
from suture.roles.prompting.prompt_parts import EarlierAttempt, Hint, Sibling, Suspect, describe_fact
from suture.roles.testers.adversarial_tester import AdversarialBrief, adversarial_draft
from suture.roles.testers.property_tester import PropertyBrief, properties_from_reply, property_draft
from suture.roles.testers.spec_tester import SpecTestBrief, spec_test_draft
from suture.roles.testers.written_checks import UNTRIED, WrittenChecks, checks_from_reply
from suture.roles.tools.file_tools import InMemoryFiles, merged_work
from suture.roles.tools.react import AgentTool, AskDraft, OnStep, Trail

__all__ = [
    "MOST_LESSONS",
    "MOST_STEPS",
    "MOST_SUBTASKS",
    "UNTRIED",
    "AdversarialBrief",
    "AgentTool",
    "AskDiagnosis",
    "AskDraft",
    "Brief",
    "Count",
    "CritiqueBrief",
    "CritiqueReply",
    "DebugBrief",
    "DiagnosisReply",
    "Draft",
    "EarlierAttempt",
    "Fitted",
    "Hint",
    "InMemoryFiles",
    "Investigation",
    "LessonsBrief",
    "LessonsReply",
    "OnStep",
    "OptimiseBrief",
    "OptimiseGoal",
    "PlanBrief",
    "PlanReply",
    "Prompt",
    "PromptBook",
    "PromptPart",
    "PropertyBrief",
    "RepairBrief",
    "ReviewBrief",
    "ReviewReply",
    "Sibling",
    "SpecTestBrief",
    "SubtaskBrief",
    "Suspect",
    "Trail",
    "WriteBrief",
    "WrittenChecks",
    "adversarial_draft",
    "as_shown",
    "checks_from_reply",
    "coder_draft",
    "critique_draft",
    "describe_fact",
    "diagnosis_draft",
    "files_from_reply",
    "fit",
    "investigate",
    "lessons_draft",
    "merged_work",
    "optimise_draft",
    "optimised_files",
    "packaged_names",
    "packaged_prompt",
    "parse_prompt",
    "plan_draft",
    "prompt_as_plain",
    "prompt_as_yaml",
    "properties_from_reply",
    "property_draft",
    "read_prompt",
    "review_draft",
    "spec_test_draft",
    "work_on",
]
