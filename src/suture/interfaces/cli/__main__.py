"""`python -m suture.interfaces.cli` is `suture`."""

import sys

if __name__ == "__main__":
    # Python puts the current folder first, where a project's `json.py` would stand in for the real one.
    if not sys.flags.safe_path and sys.path:
        del sys.path[0]

    from suture.interfaces.cli import main

    main()
