"""Roles that advise: what they say informs, and decides nothing."""
