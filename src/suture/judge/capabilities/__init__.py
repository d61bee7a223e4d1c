"""The capability rule: what a change newly uses of the test machinery and of the interpreter.

Tests and code often share a process. Code that reaches for what decides the verdict could pass wrong tests, so a
change that newly does so is never certified plainly. A use is new only if the same file did not have this
capability before. Texts are analysed and nothing is run, so a name is found if
constants determine it, and otherwise the computation itself is reported.
"""

from suture.judge.capabilities.new_uses import (
    find_change_capabilities,
    find_file_capabilities,
    is_rule_relevant,
)

__all__ = ["find_change_capabilities", "find_file_capabilities", "is_rule_relevant"]
