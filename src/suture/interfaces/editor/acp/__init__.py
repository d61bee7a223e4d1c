"""The agent of `suture acp`: sessions, what a prompt asks for, steps told, questions asked, changes accepted.

Of a session nothing is kept but its folder and which runs it had: what happened in them is their ledgers'.
"""

__all__: list[str] = []
