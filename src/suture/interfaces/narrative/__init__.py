"""Text and JSON for everything a run does, rendered from its ledger and its folder.

This package is the one place that turns codes into words: event lines, endings, run stories and review
questions. Every interface renders through it, so that a run reads the same on a terminal, in an editor and on
the web page. It reads ledgers and decides nothing.
"""
