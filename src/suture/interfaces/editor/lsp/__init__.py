"""The language server of `suture lsp`: failing tests as diagnostics, a verified change as an edit.

It keeps the findings of each folder's newest run in memory and nothing else: all of it is read from that
run's ledger.
"""

__all__: list[str] = []
