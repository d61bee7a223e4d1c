"""The language server of `suture lsp`: failing tests as diagnostics, a verified change as an edit.

It keeps only the findings of each folder's newest run in memory, all read from that run's ledger.
"""

__all__: list[str] = []
