"""Recorded model replies: files of recordings, and a pool that all arms of a benchmark share."""
