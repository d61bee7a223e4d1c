"""Suture inside a notebook: `%load_ext suture`, then `%%heal` on a cell with asserts.

A cell becomes a small project, its asserts the tests, and the run a process of its own; the kernel runs
nothing that the user has not written or taken over. This room needs the extra
`notebook`, whose package nobody else imports.
"""

__all__: list[str] = []
