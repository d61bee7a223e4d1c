"""The server of `suture mcp`: tools for other agents, by the Model Context Protocol.

This package starts runs in their own processes, returns what their ledgers say, and forwards a run's
questions to the client. It keeps no state: between two calls there is only the run's folder. It needs the
extra `mcp`, whose package nothing else imports.
"""

__all__: list[str] = []
