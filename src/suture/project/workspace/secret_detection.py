"""Which files of a project may hold secrets of its user, by name, by how they begin, and by a module's text.

The names are facts after gitrob's list of sensitive files (as shhgit carries it on), without those that
programs need to run and with what has come up since, and after what the manuals of frameworks and services
call the file for one machine's own keys, worded here anew. A fixture is no secret: one that lies
among the tests and is committed exactly as it is.

A module that git ignores is read as text and not as Python: what is no Python of ours may still hold a key.
In doubt it is a secret, because its user can let it in by name.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.project.languages import BUILT_IN_LANGUAGES
from suture.project.workspace.globs import parse_globs
from suture.project.workspace.repository import open_repository

_TEXTS = ("json", "yml", "yaml", "toml", "ini", "cfg", "conf", "txt", "csv", "xml", "properties", "env")

SECRET_FILES: tuple[str, ...] = (
    # Variables, and what programs keep of passwords.
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".git-credentials", ".pgpass", ".my.cnf"),
    *(".mylogin.cnf", ".npmrc", ".pypirc", "pip.conf", ".htpasswd", ".htdigest", ".dockercfg"),
    *("**/.docker/config.json", "**/.cargo/credentials*", "**/.gem/credentials", ".s3cfg", ".boto"),
    *(".databrickscfg", "kaggle.json", ".esmtprc", ".msmtprc", ".fetchmailrc", "**/.config/gh/hosts.yml"),
    *("sftp-config.json", ".ftpconfig", ".remote-sync.json", "filezilla.xml", "recentservers.xml"),
    *(".*_history", ".vault-token", ".vault_pass*", "vault_pass*", ".terraformrc", "terraform.rc"),
    *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", "credentials.tfrc.json", ".rhosts"),
    *("pip.ini", ".condarc", "pgpass.conf", "rclone.conf", ".rediscli_auth", ".sentryclirc", "ngrok.yml"),
    *("**/.m2/settings*.xml", "settings-security.xml", "**/.bundle/config", "**/huggingface/token"),
    *("**/.huggingface/token", "stored_tokens", "*.agilekeychain", "newrelic.ini", "newrelic.yml"),
    # What frameworks keep beside the code for one machine alone.
    *(
        "local.settings.json",
        "appsettings.development.json",
        "appsettings.*local.json",
        ".runtimeconfig.json",
    ),
    *(".dev.vars", ".dev.vars.*", "**/.kamal/secrets*", "database.yml", "profiles.yml", "airflow.cfg"),
    *("local.properties", "keystore.properties", "key.properties", "signing.properties", "*.pubxml.user"),
    *("jupyter_*_config.json", "datasources.local.xml", "webservers.xml", "robomongo.json", "sftp.json"),
    *("localsettings.php", "wp-config.php", ".mcp.json", "**/.cursor/mcp.json", "oai_config_list*"),
    *(".aider.conf.yml", "claude_desktop_config.json", "**/io.datasette.llm/keys.json"),
    # Folders.
    *(".aws/", ".azure/", ".ssh/", ".gnupg/", ".kube/", ".gcloud/", ".password-store/", ".snowsql/"),
    *("**/.config/gcloud/", ".oci/", ".aliyun/", ".bluemix/", ".doctl/", ".fly/", ".secrets/", ".mc/"),
    # Keys and what they are kept in.
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.pkcs12", "*.ppk", "*.jks", "*.jceks", "*.bks"),
    *("*.keystore", "*.keychain", "*.kdb", "*.kdbx", "*.psafe3", "*.ovpn", "secring.*"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519"),
    # Accounts of services.
    *("service-account*.json", "service_account*.json", "serviceaccount*.json", "*firebase*adminsdk*.json"),
    *("application_default_credentials.json", "client_secret*.json", "rootkey.csv", "*accesskeys.csv"),
    *("kubeconfig", "*.kubeconfig", "*.publishsettings", "*.cscfg", "auth.json", "*.token", "token.pickle"),
    *("credentials", "credentials.db", ".secrets"),
    *(
        f"{name}.{text}"
        for name in (
            *("credential*", "*[-_.]credentials", "secret", "secrets"),
            "*[-_.]secret",
            "*[-_.]secrets",
            ".secret",
            ".secrets",
        )
        for text in _TEXTS
    ),
    *(f"{name}.{text}" for name in ("token", "tokens", "password", "passwords") for text in _TEXTS),
)
"""Globs as in a `.gitignore`, for names in small letters."""

NOT_SECRET: tuple[str, ...] = (
    *("*.example", "*.sample", "*.template", "*.dist", "*.pub"),
    *("*.example.*", "*.sample.*", "*.template.*"),
    *("*.pyi", *(f"*{ending}" for facts in BUILT_IN_LANGUAGES.values() for ending in facts.extensions)),
)
"""What is no secret whatever else its name says: examples, public halves, code."""

_NAMES = parse_globs((*SECRET_FILES, *(f"!{glob}" for glob in NOT_SECRET)))
_COPY = re.compile(r"(?:~|\.(?:bak|backup|old|orig|save))\Z")
"""How editors and people call the copy of a file beside it."""
_HEAD_BYTES = 4096
_LARGEST_ACCOUNT_BYTES = 64 * 2**10


def has_secret_name(path: str, *, is_folder: bool) -> bool:
    """Whether the name of a file or folder says that secrets are kept there.

    Args:
        path: Relative to the project's root.
        is_folder: Whether it is a folder.
    """
    name = path.lower() if is_folder else _COPY.sub("", path.lower())
    for one in {path.lower(), name}:
        _NAMES.steps_left = len(path) * 100_000  # a list of ours cannot run dry
        if _NAMES.verdict(one, is_folder=is_folder):
            return True
    return False


def is_private_key(content: bytes) -> bool:
    """Whether a file is a private key, or the account of a service with one, whatever it is called."""
    head = content[:_HEAD_BYTES].removeprefix(codecs.BOM_UTF8).lstrip()
    first = head.partition(b"\n")[0]
    if first.startswith(b"-----BEGIN ") and b"PRIVATE KEY" in first:
        return True
    if head.startswith((b"PuTTY-User-Key-File", b"openssh-key-v1")):
        return True
    is_account = head.startswith(b"{") and len(content) <= _LARGEST_ACCOUNT_BYTES
    return is_account and b'"service_account"' in content and b'"private_key"' in content


def unchanged_since_commit(root: Path, files: Mapping[str, bytes]) -> frozenset[str]:
    """Those of some files that the last commit of the project's repository holds with the same content.

    Args:
        root: The project's folder.
        files: Path relative to it -> content.
    """
    try:
        repository = open_repository(root)
        held = repository.blobs_at(repository.head(), files)
    except (PrerequisiteError, StorageError, UsageError):
        return frozenset()
    return frozenset(path for path, blob in held.items() if blob == _blob_of(files[path], len(blob)))


def _blob_of(content: bytes, digits: int) -> str:
    """The name that git gives a content, in a repository whose names have so many digits."""
    algorithm = "sha256" if digits == 64 else "sha1"
    return hashlib.new(algorithm, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


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


def may_hold_secret(content: bytes) -> bool:
    """Whether a text looks as if it held a secret; of one longer than `MOST_TEXT_BYTES` nobody knows."""
    return len(content) > MOST_TEXT_BYTES or any(
        pattern.search(content) for pattern in (SHAPES, NAMED, MAYBE_NAMED)
    )


GIVEN_PLAINLY = re.compile(
    rb"^[^\n#;]{0,80}(?i:secret|passw|passphrase|credential|token|api_?key|access_?key|private)\w{0,40}"
    rb"[ \t]{0,8}[:=][ \t]{0,8}[^\s]",
    re.MULTILINE,
)
"""A line of settings that gives something called a secret a value, without quotes."""


def assigns_secret(content: bytes) -> bool:
    """Whether a text that is no code has a line that gives a secret its value."""
    return bool(GIVEN_PLAINLY.search(content))
