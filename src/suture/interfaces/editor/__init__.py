"""Suture in an editor: an agent of the Agent Client Protocol, and a language server.

`acp/` is the agent of `suture acp` and `lsp/` the server of `suture lsp`; neither imports the other. Both
start runs in their own processes, show what the ledgers say, and change the user's files only after the user
accepts a verified change. This package needs the extra `editor`, whose packages nothing else imports.
"""

__all__: list[str] = []
