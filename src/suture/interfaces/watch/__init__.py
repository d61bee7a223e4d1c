"""`suture watch`: a project's tests run again with each change, and what breaks is healed at once.

This room hears of changes from the operating system, starts runs through the api, one at a time, and stops
one under whose hands the user goes on writing. It needs the extra `watch`, whose package nobody else imports.
"""

__all__: list[str] = []
