"""Limits and intervals of the web service. Where no reason is given, they were chosen by judgement and not measured."""

POLL_S = 0.1
"""Seconds between two checks of the ledger's length; a person is watching."""
HEARTBEAT_S = 15.0
"""Interval of comments that keep proxies from closing a quiet stream."""
RETRY_MS = 1000
"""How long a browser waits before it reconnects."""
MAX_READ_BYTES = 2**20
"""How much of a ledger is read at once, so that a long ledger does not fill the server's memory."""
CLEANUP_INTERVAL_S = 3600.0
"""Seconds between two clean-ups of uploads, and the retry delay of a caller without a remaining share."""
SHUTDOWN_TIMEOUT_S = 5
"""Seconds that running responses may take after the server is stopped."""
HEAD_TIMEOUT_S = 30.0
"""Seconds that a client may take to send the head of a request, before its connection is closed."""
SHORT_HEAD_TIMEOUT_S = 2.0
"""Seconds in which a client must have sent its request head, while no descriptors are left for other clients."""
BODY_TIMEOUT_S = 600.0
"""Seconds that a client may take to send a body, such as an archive over a slow line."""
EXHAUSTION_PERIOD_S = 60.0
"""Seconds between two messages that no descriptors are left, and how long that is assumed after one."""
LISTEN_BACKLOG = 256
"""Connections that the kernel accepts before the server does."""
MAX_TOKEN_FILE_BYTES = 2**20
"""Some five thousand tokens; a larger file is damaged."""
MAX_KEY_CHARS = 200
"""Length of an idempotency key."""
MAX_VALIDATION_ERRORS = 5
"""Errors of one request that a response names."""
MAX_DIFF_BYTES = 64 * 2**20
"""The largest diff that is sent."""
MAX_CERTIFICATE_BYTES = 64 * 2**20
"""The largest certificate that is sent."""
MAX_FOLDERS = 500
"""Projects that the start page lists, whatever the roots hold."""
MAX_PROJECT_DEPTH = 2
"""How far below a root projects are looked for: `examples/broken` has depth 2."""
MAX_SCANNED_FOLDERS = 2000
"""Folders below one root that are looked at, some 50 ms of work."""
MAX_EDITABLE_FILES = 20
"""Files that the review form offers for editing."""
MAX_EDITABLE_CHARS = 200_000
"""Total length of the files that the review form offers for editing."""
