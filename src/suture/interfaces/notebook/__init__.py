"""Suture in a notebook: `%load_ext suture`, then `%%heal` on a cell with asserts.

A cell becomes a small project, its asserts become tests, and the run is a separate process. The kernel
executes only what the user has written or accepted. This package needs the extra `notebook`, whose package
nothing else imports.
"""

__all__: list[str] = []
