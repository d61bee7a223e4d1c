"""Install Python packages with pip: only wheels, because building a source archive would execute its code.

The user's own pip settings decide which index is used, and the index says on which servers it keeps its
files.
"""

from __future__ import annotations

import ast
import asyncio
import hashlib
import importlib.util
import ipaddress
import os
import re
import ssl
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urljoin

import httpx

from suture.core.safe_files import open_regular_file
from suture.sandbox import Mount, get_own_interpreter
from suture.sandbox.packages.client import (
    ADDRESS,
    NO_PIP,
    Client,
    filtered_environment,
    missing_client,
    run_client,
    unreachable_index,
)
from suture.sandbox.packages.index_proxy import Origin, parse_origin
from suture.sandbox.packages.installer import FETCHED, Installer, PackagesRefused, WorkFolder
from suture.sandbox.packages.network_access import (
    NetworkAccess,
    add_netrc_login,
    mounts_for_local_indexes,
    parse_origins,
    query_client_settings,
    read_certificates,
)
from suture.sandbox.tuning import (
    INDEX_PAGE_TIMEOUT_S,
    MAX_FILE_HOSTS,
    MAX_INDEX_PAGE_BYTES,
    MAX_INDEX_PAGES,
    MAX_REQUESTED_PACKAGES,
    MAX_REQUIREMENT_CHARS,
)

QUERY_CODE = """\
import runpy, sys
from pip._internal.models.index import PyPI
print(PyPI.simple_url, flush=True)
sys.argv = ["pip", "config", "list"]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Prints pip's default index, and then every setting, one per line."""
SETTING = re.compile(r"(?P<section>[\w:-]+)\.(?P<name>[\w-]+)=(?P<value>.+)")
SECTIONS = ("global", "download", ":env:")
"""Later sections take precedence over earlier ones."""
FORWARDED_SETTINGS = ("no-index", "trusted-host", "pre", "prefer-binary", "uploaded-prior-to")
LINK = re.compile(r"""(?:href=["']?|"url":\s*")([^"'#?\s>]+)""")


class NoAnswer(Exception):
    """Why an index does not answer, without its address, which may contain a login."""


async def find_pip_access(names: Sequence[str], work_folder: WorkFolder) -> NetworkAccess:
    """Return what pip may reach: the user's indexes, and the servers on which these say that they keep their
    files.

    Args:
        names: Packages of which at least one exists, as indexes write them.
        work_folder: Where pip runs.

    Raises:
        PrerequisiteError: Pip is missing, or no index answers.
    """
    output = await query_client_settings(
        "pip", (sys.executable, "-P", "-c", QUERY_CODE), work_folder.folder, filtered_environment()
    )
    default, _, rest = output.partition("\n")
    settings = parse_settings(rest)
    indexes = [settings.get("index-url") or default, *settings.get("extra-index-url", "").split()]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        indexes = []
    links = settings.get("find-links", "").split()
    path = settings.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE", "")
    certificate, files = read_certificates(path)
    access = NetworkAccess(
        origins=parse_origins([*indexes, *links], work_folder.hosts),
        variables=_variables(settings, indexes, links, certificate),
        files=files,
        mounts=mounts_for_local_indexes([*indexes, *links]),
        proxy=settings.get("proxy", ""),
    )
    trusted = settings.get("trusted-host", "").lower().split()
    named: set[Origin] = set()
    failures: list[str] = []
    for index in indexes:
        origin = parse_origin(index)
        if origin is None:
            continue
        verified = not {origin.host, f"{origin.host}:{origin.port}"} & {*trusted}
        try:
            page = await _read_any_page(
                add_netrc_login(index), names, access.proxy_for(origin), path if verified else None
            )
        except NoAnswer as fault:
            failures.append(f"{origin} ({fault})")
            continue
        named |= await _find_file_servers(origin, index, page, access)
    if failures and len(failures) == len(indexes) and not links:
        raise unreachable_index("pip", f"no page could be read from {', '.join(failures)}")
    return NetworkAccess(**{**vars(access), "origins": access.origins | named})


def parse_settings(output: str) -> Mapping[str, str]:
    """Return name -> value from the output of `pip config list`, as they apply to `pip download`."""
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in output.splitlines():
        match = SETTING.fullmatch(line)
        if match is not None and match["section"] in found:
            with suppress(ValueError, SyntaxError):
                found[match["section"]][match["name"]] = str(ast.literal_eval(match["value"])).strip()
    return {name: value for section in SECTIONS for name, value in found[section].items()}


def _variables(
    settings: Mapping[str, str], indexes: Sequence[str], links: Iterable[str], certificate: str
) -> dict[str, str]:
    variables = {
        "INDEX_URL": add_netrc_login(indexes[0]) if indexes else "",
        "EXTRA_INDEX_URL": " ".join(map(add_netrc_login, indexes[1:])),
        "FIND_LINKS": " ".join(links),
        "CERT": certificate,
        **{name.upper().replace("-", "_"): settings.get(name, "") for name in FORWARDED_SETTINGS},
        "NO_CACHE_DIR": "1",
        "CONFIG_FILE": os.devnull,
    }
    return {f"PIP_{name}": value for name, value in variables.items() if value}


async def _find_file_servers(index: Origin, url: str, page: str, access: NetworkAccess) -> frozenset[Origin]:
    """Return the servers that an index names on one of its pages, except those closer to this machine than
    the index.

    A package has no influence on this: a requirement with an address is on no page of the index.
    """
    found: list[Origin] = []
    for link in LINK.findall(page):
        origin = parse_origin(urljoin(f"{url.rstrip('/')}/x/", link))
        if origin is None or origin in found or origin in access.origins or len(found) == MAX_FILE_HOSTS:
            continue
        secure = origin.scheme == "https" or index.scheme == "http"
        if secure and await _measure_proximity(origin.host) <= await _measure_proximity(index.host):
            found.append(origin)
    return frozenset(found)


async def _read_any_page(url: str, names: Sequence[str], proxy: str, path: str | None) -> str:
    """Return the first page that an index has for one of the packages; empty if it has none.

    Raises:
        NoAnswer: It has not answered for any package.
    """
    last_failure: NoAnswer | None = None
    answered = False
    for name in names[:MAX_INDEX_PAGES]:
        try:
            page = await _read_page(f"{url.rstrip('/')}/{name}/", proxy, path)
        except NoAnswer as fault:
            last_failure = fault
            continue
        if page:
            return page
        answered = True
    if last_failure is not None and not answered:
        raise last_failure
    return ""


async def _read_page(url: str, proxy: str, path: str | None) -> str:
    """Return the beginning of a page; empty if it does not exist. No redirect is followed.

    Args:
        url: The page.
        proxy: The proxy to use; empty for none.
        path: The certificates that identify the server; empty for the usual ones, `None` to accept any.

    Raises:
        NoAnswer: The index does not answer, or answers with a fault of its own.
    """
    accept = {"accept": "application/vnd.pypi.simple.v1+html, text/html;q=0.9"}
    content = bytearray()
    try:
        verify = ssl.create_default_context(cafile=path) if path else path is not None
        async with (
            asyncio.timeout(INDEX_PAGE_TIMEOUT_S),
            httpx.AsyncClient(
                verify=verify, proxy=proxy or None, trust_env=False, timeout=INDEX_PAGE_TIMEOUT_S
            ) as client,
            client.stream("GET", url, headers=accept) as answer,
        ):
            async for chunk in answer.aiter_bytes():
                content += chunk
                if len(content) > MAX_INDEX_PAGE_BYTES:
                    break
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as fault:
        raise NoAnswer(ADDRESS.sub("<address>", str(fault)) or type(fault).__name__) from fault
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise NoAnswer(f"status {status}")
    return content.decode("utf-8", "replace") if status == HTTPStatus.OK else ""


async def _measure_proximity(host: str) -> int:
    """Return how close a server is: 2 for this machine, 1 for a private network, 0 for the internet.

    A server that cannot be resolved here is known to the user's proxy only.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), None)
    except OSError:
        return 0
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    return max(2 if one.is_loopback or one.is_unspecified else int(not one.is_global) for one in addresses)


OPTIONS = (
    "--only-binary=:all:",
    "--no-input",
    "--disable-pip-version-check",
    "--retries=1",
    "--timeout=15",
    "-q",
)
UNREACHABLE = re.compile(
    r"Retrying \(|NewConnectionError|Max retries|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
    r"|name resolution"
    r"|\b(?:401|403|407|429|5\d\d) (?:Client|Server) Error"
)
PIP_CODE = """\
import runpy, sys
def refuse(event, _):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.system"):
        raise OSError("pip may start no program here")
sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Runs pip in a process that can start no other. `--only-binary` does not apply to an address that a wheel
requires, and what lies there would be built, which executes it."""
PIP_MOUNT = "/pip-client"
MOUNTED_PIP_CODE = f"import sys\nsys.path.insert(0, {PIP_MOUNT!r})\n{PIP_CODE}"
BOUNDS = "bounds.txt"
PROTECTED_MODULES = ("pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize", "suture_report")
"""Modules, besides Python's own, that no package may replace."""


class Pip(Installer):
    """The packages of `requirements.txt`."""

    manifest = "requirements.txt"
    lock = "requirements.lock"
    folder = "site"

    def wanted(self, manifest: str) -> tuple[str, ...]:
        """See `Installer`."""
        from packaging.requirements import InvalidRequirement, Requirement

        found: list[str] = []
        for line in manifest.replace("\\\n", " ").splitlines():
            text = re.sub(r"(?:^|\s)#.*|(?<=\S)\s+--hash=\S+", "", line.strip()).strip()
            if "$" in text:  # pip would insert the user's environment variables
                raise PackagesRefused(f"{self.manifest}: {text[:MAX_REQUIREMENT_CHARS]!r} contains '$'")
            if not text:
                continue
            try:
                requirement = Requirement(text[: MAX_REQUIREMENT_CHARS + 1])
            except InvalidRequirement as fault:
                raise PackagesRefused(
                    f"{self.manifest}: {text[:MAX_REQUIREMENT_CHARS]!r} is not a package with version bounds"
                ) from fault
            if requirement.url or len(text) > MAX_REQUIREMENT_CHARS:
                raise PackagesRefused(f"{self.manifest}: {requirement.name!r} does not come from the index")
            found.append(str(requirement))
        if len(found) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{self.manifest} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(found)

    async def resolve(self, wanted: Sequence[str], work_folder: WorkFolder) -> str:
        """See `Installer`. Nothing is installed; the wheels are left for `install`."""
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name

        names = [canonicalize_name(Requirement(one).name) for one in wanted]
        access = await find_pip_access(names, work_folder) if work_folder.sandboxed else None
        bounds = [f"{name} {versions}" for name, versions in work_folder.bounds.items() if versions]
        (work_folder.folder / BOUNDS).write_text("\n".join(bounds))
        argv = [
            "download",
            *OPTIONS,
            *_version_options(work_folder.python),
            "--constraint",
            BOUNDS,
            "--dest",
            FETCHED,
            "--",
        ]
        await run_client(_client(), [*argv, *wanted], work_folder, access)
        return "".join(sorted(_lock_lines(work_folder.folder / FETCHED)))

    async def install(self, wanted: Sequence[str], lock: str, work_folder: WorkFolder) -> None:
        """See `Installer`. Nothing can be reached: the wheels are those that `resolve` left."""
        (work_folder.folder / self.lock).write_text(lock)
        argv = [
            *OPTIONS,
            *_version_options(work_folder.python),
            "--no-deps",
            "--require-hashes",
            "-r",
            self.lock,
        ]
        offline = ("--no-index", "--find-links", FETCHED, "--no-compile", "--target", self.folder)
        await run_client(_client(), ["install", *argv, *offline], work_folder)
        own = {*sys.stdlib_module_names, *PROTECTED_MODULES}
        conflicts = sorted(
            {path.name.partition(".")[0] for path in (work_folder.folder / self.folder).iterdir()} & own
        )
        if conflicts:
            raise PackagesRefused(f"a package of {', '.join(wanted)} would replace {', '.join(conflicts)}")

    def versions(self, lock: str) -> Mapping[str, str]:
        """See `Installer`."""
        pairs = (name.partition("==") for name in self.names(lock, Path()))
        return {name: version for name, _, version in pairs}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """See `Installer`."""
        return tuple(line.split()[0] for line in lock.splitlines() if "==" in line)


def _version_options(python: str) -> tuple[str, ...]:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    return () if python == own else ("--python-version", python)


def _lock_lines(wheels: Path) -> Iterator[str]:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    for wheel in wheels.glob("*.whl"):
        file = open_regular_file(wheel)  # the client may have left a link
        if file is None:
            continue
        try:
            name, version, _, _ = parse_wheel_filename(wheel.name)
        except InvalidWheelFilename as fault:
            raise PackagesRefused(
                f"the index has a wheel with an invalid name: {wheel.name[:MAX_REQUIREMENT_CHARS]!r}"
            ) from fault
        digest = hashlib.sha256()
        with file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        yield f"{name}=={version} --hash=sha256:{digest.hexdigest()}\n"


def _client() -> Client:
    """Return the pip of this environment. Inside the sandbox it runs on the base installation.

    Raises:
        PrerequisiteError: It is missing.
    """
    found = importlib.util.find_spec("pip")
    if found is None or found.origin is None:
        raise missing_client("pip", NO_PIP)
    return Client(
        name="pip",
        argv=(get_own_interpreter().executable, "-I", "-B", "-c", MOUNTED_PIP_CODE),
        host_argv=(sys.executable, "-P", "-c", PIP_CODE),
        mounts=(Mount(source=str(Path(found.origin).parent), target=f"{PIP_MOUNT}/pip"),),
        variables={"PIP_USER": "0"},  # it excludes `--target`
        unreachable=UNREACHABLE,
    )
