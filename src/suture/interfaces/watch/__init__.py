"""`suture watch`: run a project's tests after each change, and heal what breaks.

This package gets change notifications from the operating system, starts runs through the api one at a time,
and cancels a run when the user edits its files. It needs the extra `watch`, whose package nothing else
imports.
"""

__all__: list[str] = []
