"""What code can do that a person should know of before they take it over: a list of rules for each language.

These read text and run nothing. What becomes of a use that they find is for `suture.project.safety` to say.
"""

from suture.project.languages.safety_rules.rule import UNREADABLE, SafetyLevel, SafetyRule, UnsafeUse

__all__ = ["UNREADABLE", "SafetyLevel", "SafetyRule", "UnsafeUse"]
