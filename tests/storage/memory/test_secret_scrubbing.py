"""Secrets are not stored; code that only mentions them is."""

from __future__ import annotations

import pytest

from suture.storage.memory.secret_scrubbing import PLACEHOLDER, scrub_secrets

GITHUB = "ghp_" + "a1B2c3D4e5" * 4
JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
SECRETS = [
    ('password = "hunter2"', "hunter2"),
    ("DB_PASSWORD=hunter22 python app.py", "hunter22"),
    ('{"client_secret": "abcd1234"}', "abcd1234"),
    ('url = "postgres://bob:s3cretpw@host/db"', "s3cretpw"),
    ("Authorization: Bearer abcdefghijklmnop1234", "abcdefghijklmnop1234"),
    (f"push with {GITHUB} failed", GITHUB[-8:]),
    (f"token {JWT}", JWT[-12:]),
    ("AWS_ACCESS_KEY_ID AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7"),
    ("xoxb-" + "123456789012-abcdefghijkl", "abcdefghijkl"),
    ('key = "3f2a9c81d04e5b7f6a1c2d3e4f5a6b7c8d9e0f1a"', "9c81d04e5b"),
    ("-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE " + "KEY-----\n", "IBAAK"),
    ("-----BEGIN EC PRIVATE " + "KEY-----\nMIIEow\n(cut)", "MIIEow"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_replaced(text: str, secret: str) -> None:
    assert secret in text
    scrubbed = scrub_secrets(f"before\n{text}\nafter")
    assert secret not in scrubbed
    assert PLACEHOLDER in scrubbed
    assert scrubbed.startswith("before\n")


@pytest.mark.parametrize(
    "code",
    [
        "goods += price * quantity",
        "def f(token): return token.kind",
        "token = lexer.next()",
        "self.tokens = tokens[1:]",
        "api_key: str = None",
        'if password == "abc":',
        "for key in sorted(items, key=lambda item: item.value):",
        'assert tokenize("a b") == ["a", "b"]',
        "login(password=password)",
    ],
)
def test_code_that_mentions_secrets_is_unchanged(code: str) -> None:
    assert scrub_secrets(code) == code


def test_scrubbing_is_idempotent() -> None:
    scrubbed = scrub_secrets("\n".join(text for text, _ in SECRETS))
    assert scrub_secrets(scrubbed) == scrubbed
