"""A task that many tests of the command line use, with a correct and a wrong reply."""

from __future__ import annotations

TASK = "Write a function double(n) that doubles a number. For example:\n\n>>> double(4)\n8\n"
CORRECT_REPLY = "```python\ndef double(n):\n    return 2 * n\n```"
WRONG_REPLY = "```python\ndef double(n):\n    return n\n```"
