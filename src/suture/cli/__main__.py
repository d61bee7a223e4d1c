"""`python -m suture.cli` is `suture`."""

from suture.cli import main

if __name__ == "__main__":
    main()
