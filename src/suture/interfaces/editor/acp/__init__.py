"""The agent of `suture acp`: sessions, prompts, progress updates, questions and accepted changes.

A session stores only its folder and the ids of its runs; what happened in them is read from their ledgers.
"""

__all__: list[str] = []
