"""Runs that exist already: read from their folders, resumed, or forked."""
