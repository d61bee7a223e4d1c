"""`python -m suture.interfaces.cli` runs `suture`."""

import sys

if __name__ == "__main__":
    # Python puts the current folder first on sys.path, where a project's `json.py` would shadow the real one.
    if not sys.flags.safe_path and sys.path:
        del sys.path[0]

    from suture.interfaces.cli import main

    main()
