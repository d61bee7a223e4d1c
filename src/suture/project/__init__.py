"""The user's project as data: languages, parsing, the static safety scan, snapshots, diffs, applying, git."""
