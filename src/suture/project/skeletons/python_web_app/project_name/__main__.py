"""Start the server. `HOST` and `PORT` say where it listens, `DATABASE` names its SQLite file."""

from __future__ import annotations

import os

from project_name.app import create_app


def main() -> None:
    """Serve until the process is stopped."""
    app = create_app(os.environ.get("DATABASE", "project_name.db"))
    app.run(host=os.environ.get("HOST", "127.0.0.1"), port=int(os.environ.get("PORT", "8000")))


if __name__ == "__main__":
    main()
