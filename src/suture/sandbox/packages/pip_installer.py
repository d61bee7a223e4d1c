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
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urljoin

from suture.core.safe_files import open_regular_file
from suture.sandbox import Mount, get_own_interpreter, tuning
from suture.sandbox.packages.client import (
    ADDRESS,
    NO_PIP,
    Client,
    NetworkAccess,
    add_netrc_login,
    filtered_environment,
    guarded_module_code,
    missing_client,
    mounts_for_local_indexes,
    parse_origins,
    query_client_settings,
    read_certificates,
    run_client,
    unreachable_index,
)
from suture.sandbox.packages.index_proxy import Origin, parse_origin
from suture.sandbox.packages.installer import FETCHED, Installer, PackagesRefused, WorkFolder

QUERY_CODE = """\
import runpy, sys
from pip._internal.models.index import PyPI
print(PyPI.simple_url, flush=True)
sys.argv = ["pip", "config", "list"]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Prints pip's default index, and then every setting, one per line."""
# A line of `pip config list`: the section and the name of a setting, and its value as a Python literal.
SETTING = re.compile(r"(?P<section>[\w:-]+)\.(?P<name>[\w-]+)=(?P<value>.+)")
SECTIONS = ("global", "download", ":env:")
"""Later sections take precedence over earlier ones."""
FORWARDED_SETTINGS = ("no-index", "trusted-host", "pre", "prefer-binary", "uploaded-prior-to")
"""Settings of the user that are passed on as they are. They change which packages pip finds or accepts."""
LINK = re.compile(r"""(?:href=["']?|"url":\s*")([^"'#?\s>]+)""")
"""Matches the address of a file on a page of an index, in HTML or in JSON."""


class NoAnswer(Exception):
    """Why an index does not answer, without its address, which may contain a login."""


async def find_pip_access(names: Sequence[str], work_folder: WorkFolder) -> NetworkAccess:
    """Return what pip may reach: the user's indexes, and the servers on which they keep their files.

    An index names these servers on its pages, so the page of a package is read first.

    Args:
        names: Normalised names of packages, of which at least one exists.
        work_folder: Where pip runs.

    Raises:
        PrerequisiteError: Pip is missing, or no index answers.
    """
    output = await query_client_settings(
        "pip", (sys.executable, "-P", "-c", QUERY_CODE), work_folder.folder, filtered_environment()
    )
    default_index, _, settings_lines = output.partition("\n")
    settings = parse_settings(settings_lines)
    indexes = [settings.get("index-url") or default_index, *settings.get("extra-index-url", "").split()]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        indexes = []
    links = settings.get("find-links", "").split()
    certificate_path = settings.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE", "")
    certificate, files = read_certificates(certificate_path)
    access = NetworkAccess(
        origins=parse_origins([*indexes, *links], work_folder.hosts),
        variables=_variables(settings, indexes, links, certificate),
        files=files,
        mounts=mounts_for_local_indexes([*indexes, *links]),
        proxy=settings.get("proxy", ""),
    )
    trusted_hosts = settings.get("trusted-host", "").lower().split()
    file_servers: set[Origin] = set()
    failures: list[str] = []
    for index in indexes:
        origin = parse_origin(index)
        if origin is None:
            continue
        verified = not {origin.host, f"{origin.host}:{origin.port}"} & {*trusted_hosts}
        try:
            page = await _read_any_page(
                add_netrc_login(index),
                names,
                access.proxy_for(origin),
                certificate_path if verified else None,
            )
        except NoAnswer as fault:
            failures.append(f"{origin} ({fault})")
            continue
        file_servers |= await _find_file_servers(origin, index, page, access)
    # The links of `find-links` may hold the packages even if no index answers.
    if failures and len(failures) == len(indexes) and not links:
        raise unreachable_index("pip", f"no page could be read from {', '.join(failures)}")
    return replace(access, origins=access.origins | file_servers)


def parse_settings(output: str) -> Mapping[str, str]:
    """Return name -> value from the output of `pip config list`, as they apply to `pip download`."""
    sections: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in output.splitlines():
        match = SETTING.fullmatch(line)
        if match is not None and match["section"] in sections:
            with suppress(ValueError, SyntaxError):
                sections[match["section"]][match["name"]] = str(ast.literal_eval(match["value"])).strip()
    return {name: value for section in SECTIONS for name, value in sections[section].items()}


def _variables(
    settings: Mapping[str, str], indexes: Sequence[str], links: Iterable[str], certificate: str
) -> dict[str, str]:
    """Return the variables that give pip the user's settings, and no configuration file."""
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
    """Return the servers that an index names on a page, except those closer to this machine than the index.

    So an index on the internet cannot direct the client into the user's private network. A package has no
    influence on this: a requirement with an address is on no page of the index.
    """
    servers: list[Origin] = []
    for link in LINK.findall(page):
        # A link may be relative to the page of its package; the package's own name does not matter.
        origin = parse_origin(urljoin(f"{url.rstrip('/')}/x/", link))
        if (
            origin is None
            or origin in servers
            or origin in access.origins
            or len(servers) == tuning.MAX_FILE_HOSTS
        ):
            continue
        is_secure = origin.scheme == "https" or index.scheme == "http"
        if is_secure and await _measure_proximity(origin.host) <= await _measure_proximity(index.host):
            servers.append(origin)
    return frozenset(servers)


async def _read_any_page(url: str, names: Sequence[str], proxy: str, certificate_path: str | None) -> str:
    """Return the first page that an index has for one of the packages; empty if it has none.

    Raises `NoAnswer` if the index has not answered for any package.
    """
    last_failure: NoAnswer | None = None
    answered = False
    for name in names[: tuning.MAX_INDEX_PAGES]:
        try:
            page = await _read_page(f"{url.rstrip('/')}/{name}/", proxy, certificate_path)
        except NoAnswer as fault:
            last_failure = fault
            continue
        if page:
            return page
        answered = True
    if last_failure is not None and not answered:
        raise last_failure
    return ""


async def _read_page(url: str, proxy: str, certificate_path: str | None) -> str:
    """Return the beginning of a page; empty if it does not exist. No redirect is followed.

    `certificate_path` is empty for the usual certificates, and `None` to accept any server. Raises `NoAnswer`
    if the index does not answer, or answers with its own fault.
    """
    import httpx  # 0.1 s of processor time, and few runs install a package

    accept = {"accept": "application/vnd.pypi.simple.v1+html, text/html;q=0.9"}
    content = bytearray()
    try:
        if certificate_path:
            verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=certificate_path)
        else:
            verify = certificate_path is not None
        async with (
            asyncio.timeout(tuning.INDEX_PAGE_TIMEOUT_S),
            httpx.AsyncClient(
                verify=verify, proxy=proxy or None, trust_env=False, timeout=tuning.INDEX_PAGE_TIMEOUT_S
            ) as client,
            client.stream("GET", url, headers=accept) as response,
        ):
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > tuning.MAX_INDEX_PAGE_BYTES:
                    break
            status = response.status_code
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as fault:
        raise NoAnswer(ADDRESS.sub("<address>", str(fault)) or type(fault).__name__) from fault
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise NoAnswer(f"status {status}")
    return content.decode("utf-8", "replace") if status == HTTPStatus.OK else ""


async def _measure_proximity(host: str) -> int:
    """Return how close a server is: 2 for this machine, 1 for a private network, 0 for the internet.

    A server whose name this machine cannot resolve is known to the user's proxy only; it counts as the internet.
    """
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), None)
    except OSError:
        return 0
    # An IPv6 address may have a zone after `%`, as in `fe80::1%eth0`.
    addresses = [
        ipaddress.ip_address(str(socket_address[0]).partition("%")[0]) for *_, socket_address in entries
    ]
    return max(
        2 if address.is_loopback or address.is_unspecified else int(not address.is_global)
        for address in addresses
    )


OPTIONS = (
    "--only-binary=:all:",
    "--no-input",
    "--disable-pip-version-check",
    "--retries=1",
    "--timeout=15",
    "-q",
)
"""Options of every call: only wheels are installed, and no question is asked."""
UNREACHABLE = re.compile(
    r"Retrying \(|NewConnectionError|Max retries|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
    r"|name resolution"
    r"|\b(?:401|403|407|429|5\d\d) (?:Client|Server) Error"
)
"""Matches pip's output if an index cannot be reached."""
PIP_CODE = guarded_module_code("pip")
"""Lets pip build no source archive. `--only-binary` alone does not prevent that: it does not apply to an address that
a wheel requires."""
PIP_MOUNT = "/pip-client"
"""Where the sandbox mounts pip."""
MOUNTED_PIP_CODE = f"import sys\nsys.path.insert(0, {PIP_MOUNT!r})\n{PIP_CODE}"
"""Runs pip in a process that can start no other, in the sandbox, where pip itself is mounted."""
BOUNDS = "bounds.txt"
"""The file with the version bounds of the allow list, as constraints."""
PROTECTED_MODULES = ("pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize", "suture_report")
"""Modules, besides Python's own, that no package may replace."""


class Pip(Installer):
    """The packages of `requirements.txt`."""

    manifest = "requirements.txt"
    lock = "requirements.lock"
    folder = "site"

    def parse_manifest(self, manifest: str) -> tuple[str, ...]:
        """See `Installer`."""
        from packaging.requirements import InvalidRequirement, Requirement

        requirements: list[str] = []
        for line in manifest.replace("\\\n", " ").splitlines():
            # The hashes are left out, because `resolve` computes them from the wheels.
            text = re.sub(r"(?:^|\s)#.*|(?<=\S)\s+--hash=\S+", "", line.strip()).strip()
            if "$" in text:  # pip would insert the user's environment variables
                raise PackagesRefused(
                    f"{self.manifest}: {text[: tuning.MAX_REQUIREMENT_CHARS]!r} contains '$'"
                )
            if not text:
                continue
            try:
                requirement = Requirement(text[: tuning.MAX_REQUIREMENT_CHARS + 1])
            except InvalidRequirement as fault:
                raise PackagesRefused(
                    f"{self.manifest}: {text[: tuning.MAX_REQUIREMENT_CHARS]!r} is not a package with version bounds"
                ) from fault
            if requirement.url or len(text) > tuning.MAX_REQUIREMENT_CHARS:
                raise PackagesRefused(f"{self.manifest}: {requirement.name!r} does not come from the index")
            requirements.append(str(requirement))
        if len(requirements) > tuning.MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(
                f"{self.manifest} asks for more than {tuning.MAX_REQUESTED_PACKAGES} packages"
            )
        return tuple(requirements)

    async def resolve(self, requirements: Sequence[str], work_folder: WorkFolder) -> str:
        """See `Installer`. Nothing is installed; the wheels are left for `install`."""
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name

        names = [canonicalize_name(Requirement(requirement).name) for requirement in requirements]
        access = await find_pip_access(names, work_folder) if work_folder.sandboxed else None
        bounds = [f"{name} {versions}" for name, versions in work_folder.bounds.items() if versions]
        (work_folder.folder / BOUNDS).write_text("\n".join(bounds))
        options = [*OPTIONS, *_version_options(work_folder.python)]
        argv = ["download", *options, "--constraint", BOUNDS, "--dest", FETCHED, "--", *requirements]
        await run_client(_client(), argv, work_folder, access)
        return "".join(sorted(_lock_lines(work_folder.folder / FETCHED)))

    async def install(self, requirements: Sequence[str], lock: str, work_folder: WorkFolder) -> None:
        """See `Installer`. No server can be reached: the wheels are those that `resolve` left."""
        (work_folder.folder / self.lock).write_text(lock)
        options = [*OPTIONS, *_version_options(work_folder.python), "--no-deps", "--require-hashes"]
        offline = ["--no-index", "--find-links", FETCHED, "--no-compile", "--target", self.folder]
        await run_client(_client(), ["install", *options, "-r", self.lock, *offline], work_folder)
        # The name before the dot is the module, of a file `six.py` as of a folder.
        installed = {path.name.partition(".")[0] for path in (work_folder.folder / self.folder).iterdir()}
        conflicts = sorted(installed & {*sys.stdlib_module_names, *PROTECTED_MODULES})
        if conflicts:
            raise PackagesRefused(
                f"a package of {', '.join(requirements)} would replace {', '.join(conflicts)}"
            )

    def versions(self, lock: str) -> Mapping[str, str]:
        """See `Installer`."""
        pairs = (name.partition("==") for name in self.names(lock, Path()))
        return {name: version for name, _, version in pairs}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """See `Installer`."""
        return tuple(line.split()[0] for line in lock.splitlines() if "==" in line)


def _version_options(python: str) -> tuple[str, ...]:
    """Return pip's options for wheels of a Python other than its own."""
    own_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return () if python == own_version else ("--python-version", python)


def _lock_lines(wheels: Path) -> Iterator[str]:
    """Yield a line of the lock, with name, version and hash, for each wheel in a folder."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    for wheel in wheels.glob("*.whl"):
        file = open_regular_file(wheel)  # the client may have left a link
        if file is None:
            continue
        try:
            name, version, _, _ = parse_wheel_filename(wheel.name)
        except InvalidWheelFilename as fault:
            raise PackagesRefused(
                f"the index has a wheel with an invalid name: {wheel.name[: tuning.MAX_REQUIREMENT_CHARS]!r}"
            ) from fault
        digest = hashlib.sha256()
        with file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        yield f"{name}=={version} --hash=sha256:{digest.hexdigest()}\n"


def _client() -> Client:
    """Return the pip of this environment. Inside the sandbox it runs on the base installation."""
    spec = importlib.util.find_spec("pip")
    if spec is None or spec.origin is None:
        raise missing_client("pip", NO_PIP)
    return Client(
        name="pip",
        argv=(get_own_interpreter().executable, "-I", "-B", "-c", MOUNTED_PIP_CODE),
        host_argv=(sys.executable, "-P", "-c", PIP_CODE),
        mounts=(Mount(source=str(Path(spec.origin).parent), target=f"{PIP_MOUNT}/pip"),),
        variables={"PIP_USER": "0"},  # it excludes `--target`
        unreachable=UNREACHABLE,
    )
