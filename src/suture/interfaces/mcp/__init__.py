"""The server of `suture mcp`: Suture as tools of other agents, by the Model Context Protocol.

This room starts runs as processes of their own, tells what their ledgers say, and asks the client where a run
asks a person. It keeps no state: between two calls there is only the run's folder. It needs the extra `mcp`,
whose package nobody else imports.
"""

__all__: list[str] = []
