"""Rules about what code can do that a person should know before accepting it, one list per language.

The functions here read source and run nothing. `suture.project.safety` decides what happens with a use that
they find.
"""

from suture.project.languages.safety_rules.rule import UNREADABLE, SafetyLevel, SafetyRule, UnsafeUse

__all__ = ["UNREADABLE", "SafetyLevel", "SafetyRule", "UnsafeUse"]
