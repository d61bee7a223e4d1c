"""Suture inside an editor: an agent by the Agent Client Protocol, and a language server.

`acp/` is the agent of `suture acp`, `lsp/` the server of `suture lsp`; neither knows the other. They start
runs as processes of their own, tell what their ledgers say, and change the user's files only where the user
accepts a verified change. This room needs the extra `editor`, whose packages nobody else imports.
"""

__all__: list[str] = []
