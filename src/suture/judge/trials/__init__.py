"""Candidates tried behind the wall: processes that have imported the project, and what they say."""
