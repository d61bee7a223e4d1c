"""Ranking: which of several repairs that pass the tests is most likely the right one."""
