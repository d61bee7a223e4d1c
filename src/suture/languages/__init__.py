"""What a language is: how its commands are recognised and which interpreter they mean.

This room is plain data and plain functions over argument vectors. It starts no process and calls no model;
`suture.sandbox` finds interpreters and runs things.
"""

from suture.languages.interpreter import Interpreter
from suture.languages.python import is_pytest_command, program_environment, resolve_command

__all__ = ["Interpreter", "is_pytest_command", "program_environment", "resolve_command"]
