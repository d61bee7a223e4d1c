"""Whether the text of a module that git ignores gives something a name, or a shape, that only secrets have.

Read as text and not as Python: what is no Python of ours may still hold a key. In doubt it is a
secret, because its user can let it in by name.
"""

from __future__ import annotations

import re

__all__ = ["MOST_TEXT_BYTES", "holds_a_secret", "is_private_name"]

MOST_TEXT_BYTES = 4 * 2**20
"""Of a module that is looked through; generated ones are smaller."""
PRIVATE_NAME = re.compile(
    r"secret|passw|credential|(?:^|[_-])(?:tokens?|local|private|creds?)(?:[_-]|$)|api_?key", re.IGNORECASE
)

_GIVES = rb"""
    \w{0,60} ["'\])\s]{0,8}                           # the rest of the name, and what it stands in
    (?: :[^=\n"'{}]{0,80}= | :?= | [:,(] )            # a value, of a type, of a dict, of a call
    [\s(\[\\]{0,40} (?: [\w.]{0,60}(?:decode|fromhex|unhexlify|SecretStr|bytes|str)\( \s{0,40} )?
    [bBrRuUfF]{0,2} (?: \"{3} | '{3} | ["'] )
"""
NAMED = re.compile(
    rb"(?i:secret|passw|passphrase|credential|api_?key|access_?key|account_?key|signing_?key|auth_?token)"
    + _GIVES
    + rb"""[^"'\s]""",
    re.VERBOSE,
)
"""Something that is called a secret, and any text that is given to it."""
MAYBE_NAMED = re.compile(
    rb"(?i:token|pwd|auth|webhook|salt|(?<![a-z])dsn|_key|(?<![a-z])key|private)"
    + _GIVES
    + rb"""(?=[^"'\s]{0,200}\d)(?=[^"'\s]{0,200}[a-zA-Z])[^"'\s]{12,}["']""",
    re.VERBOSE,
)
"""Something that may be one, and a text that nobody would write by hand."""
SHAPES = re.compile(
    rb"(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|gh[pousr]_\w{30}|github_pat_\w{30}|glpat-[\w-]{20}"
    rb"|xox[abprs]-[\w-]{10}|\bsk-[\w-]{20}|\b[rs]k_live_\w{16}|\beyJ[\w-]{10,500}\.eyJ[\w-]{10}"
    rb"|\b[a-z][a-z0-9+.-]{2,20}://[^\s/:@\"'{}]{0,100}:[^\s/@\"'{}]{3,200}@"
    rb"|PRIVATE[ ]KEY-----"
)
"""Keys of services by the forms that their makers gave them, addresses with a password, private keys."""


def is_private_name(name: str) -> bool:
    """Whether a file or a folder of this name is kept for its secrets."""
    return bool(PRIVATE_NAME.search(name))


def holds_a_secret(content: bytes) -> bool:
    """Whether a text looks as if it held a secret; of one longer than `MOST_TEXT_BYTES` nobody knows."""
    return len(content) > MOST_TEXT_BYTES or any(
        pattern.search(content) for pattern in (SHAPES, NAMED, MAYBE_NAMED)
    )
