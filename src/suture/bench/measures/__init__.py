"""Metrics of arms and the statistics behind them, computed from rows with the standard library alone."""
