"""The user's own settings of pip: which index, and on which servers that keeps its files."""
# FIXME doc of sandbox/packages/pip_installer: """Python's packages, by pip: wheels alone, since a source archive would run its own code to be built."""

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
    NO_CLIENT,
    Client,
    absent,
    out_of_reach,
    own_environment,
    run_client,
)
from suture.sandbox.packages.index_proxy import Origin, origin_of
from suture.sandbox.packages.installer import FETCHED, Installer, PackagesRefused, Place
from suture.sandbox.packages.network_access import (
    NetworkAccess,
    ask,
    certificates,
    origins_of,
    shown_folders,
    with_login,
)
from suture.sandbox.tuning import (
    INDEX_PAGE_TIMEOUT_S,
    MAX_FILE_HOSTS,
    MAX_INDEX_PAGE_BYTES,
    MAX_INDEX_PAGES,
    MAX_REQUESTED_PACKAGES,
    MAX_REQUIREMENT_CHARS,
)

TELL = """\
import runpy, sys
from pip._internal.models.index import PyPI
print(PyPI.simple_url, flush=True)
sys.argv = ["pip", "config", "list"]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Its index where the user has set none, and then every setting, a line each."""
SETTING = re.compile(r"(?P<section>[\w:-]+)\.(?P<name>[\w-]+)=(?P<value>.+)")
SECTIONS = ("global", "download", ":env:")
"""Later ones count before earlier ones."""
PASSED_ON = ("no-index", "trusted-host", "pre", "prefer-binary", "uploaded-prior-to")
LINK = re.compile(r"""(?:href=["']?|"url":\s*")([^"'#?\s>]+)""")


class NoAnswer(Exception):
    """Why an index does not answer, without an address: that may hold a login."""


async def pip_reach(names: Sequence[str], place: Place) -> NetworkAccess:
    """What pip may reach: the user's indexes, and the servers on which these say that they keep their files.

    Args:
        names: Packages of which at least one is there, as indexes write them.
        place: Where pip runs.

    Raises:
        PrerequisiteError: Pip is not there, or no index answers.
    """
    output = await ask("pip", (sys.executable, "-P", "-c", TELL), place.folder, own_environment())
    default, _, rest = output.partition("\n")
    settings = settings_in(rest)
    indexes = [settings.get("index-url") or default, *settings.get("extra-index-url", "").split()]
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        indexes = []
    links = settings.get("find-links", "").split()
    path = settings.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE", "")
    certificate, files = certificates(path)
    reach = NetworkAccess(
        origins=origins_of([*indexes, *links], place.hosts),
        variables=_variables(settings, indexes, links, certificate),
        files=files,
        shown=shown_folders([*indexes, *links]),
        proxy=settings.get("proxy", ""),
    )
    trusted = settings.get("trusted-host", "").lower().split()
    named: set[Origin] = set()
    silent: list[str] = []
    for index in indexes:
        origin = origin_of(index)
        if origin is None:
            continue
        verified = not {origin.host, f"{origin.host}:{origin.port}"} & {*trusted}
        try:
            page = await _pages(with_login(index), names, reach.proxy_for(origin), path if verified else None)
        except NoAnswer as fault:
            silent.append(f"{origin} ({fault})")
            continue
        named |= await _file_origins(origin, index, page, reach)
    if silent and len(silent) == len(indexes) and not links:
        raise out_of_reach("pip", f"no page could be read of {', '.join(silent)}")
    return NetworkAccess(**{**vars(reach), "origins": reach.origins | named})


def settings_in(output: str) -> Mapping[str, str]:
    """Name -> value, as `pip config list` tells them for `pip download`."""
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
        "INDEX_URL": with_login(indexes[0]) if indexes else "",
        "EXTRA_INDEX_URL": " ".join(map(with_login, indexes[1:])),
        "FIND_LINKS": " ".join(links),
        "CERT": certificate,
        **{name.upper().replace("-", "_"): settings.get(name, "") for name in PASSED_ON},
        "NO_CACHE_DIR": "1",
        "CONFIG_FILE": os.devnull,
    }
    return {f"PIP_{name}": value for name, value in variables.items() if value}


async def _file_origins(index: Origin, url: str, page: str, reach: NetworkAccess) -> frozenset[Origin]:
    """The servers that an index names on a page of its own; none that is nearer to this machine than it is.

    A package has no say in it: what one requires by an address is on no page of the index.
    """
    found: list[Origin] = []
    for link in LINK.findall(page):
        origin = origin_of(urljoin(f"{url.rstrip('/')}/x/", link))
        if origin is None or origin in found or origin in reach.origins or len(found) == MAX_FILE_HOSTS:
            continue
        secure = origin.scheme == "https" or index.scheme == "http"
        if secure and await _nearness(origin.host) <= await _nearness(index.host):
            found.append(origin)
    return frozenset(found)


async def _pages(url: str, names: Sequence[str], proxy: str, path: str | None) -> str:
    """The first page of some packages that an index has; empty where it has none.

    Raises:
        NoAnswer: It has not answered for any.
    """
    silence: NoAnswer | None = None
    answered = False
    for name in names[:MAX_INDEX_PAGES]:
        try:
            page = await _page(f"{url.rstrip('/')}/{name}/", proxy, path)
        except NoAnswer as fault:
            silence = fault
            continue
        if page:
            return page
        answered = True
    if silence is not None and not answered:
        raise silence
    return ""


async def _page(url: str, proxy: str, path: str | None) -> str:
    """The beginning of a page; empty where there is none. No redirect is followed.

    Args:
        url: The page.
        proxy: The way there; empty where there is none.
        path: The certificates to know the server by; empty for the usual ones, `None` for any.

    Raises:
        NoAnswer: The index does not answer, or only of a fault of its own.
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


async def _nearness(host: str) -> int:
    """How near a server is: 2 for this machine, 1 for a network of its own, 0 for the world.

    One that is not known by its name here is known to the user's proxy.
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
ALONE = """\
import runpy, sys
def refuse(event, _):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.system"):
        raise OSError("pip may start no program here")
sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
"""Pip in a process that can start no other: `--only-binary` does not hold for an address that a wheel
requires, and what lies there would be built, which is to run it."""
SHOWN_AS = "/pip-client"
SHOWN = f"import sys\nsys.path.insert(0, {SHOWN_AS!r})\n{ALONE}"
BOUNDS = "bounds.txt"
NO_PLACE = ("pytest", "_pytest", "pluggy", "sitecustomize", "usercustomize", "suture_report")
"""Beside Python's own modules, what no package may stand in for."""


class Pip(Installer):
    """Packages of `requirements.txt`."""

    manifest = "requirements.txt"
    lock = "requirements.lock"
    folder = "site"

    def wanted(self, manifest: str) -> tuple[str, ...]:
        """See `Installer`."""
        from packaging.requirements import InvalidRequirement, Requirement

        found: list[str] = []
        for line in manifest.replace("\\\n", " ").splitlines():
            text = re.sub(r"(?:^|\s)#.*|(?<=\S)\s+--hash=\S+", "", line.strip()).strip()
            if "$" in text:  # pip would put the user's environment in its place
                raise PackagesRefused(
                    f"{self.manifest}: {text[:MAX_REQUIREMENT_CHARS]!r} has a sign that no package has"
                )
            if not text:
                continue
            try:
                asked = Requirement(text[: MAX_REQUIREMENT_CHARS + 1])
            except InvalidRequirement as fault:
                raise PackagesRefused(
                    f"{self.manifest}: {text[:MAX_REQUIREMENT_CHARS]!r} is no package of an index with its versions"
                ) from fault
            if asked.url or len(text) > MAX_REQUIREMENT_CHARS:
                raise PackagesRefused(f"{self.manifest}: {asked.name!r} comes from past the index")
            found.append(str(asked))
        if len(found) > MAX_REQUESTED_PACKAGES:
            raise PackagesRefused(f"{self.manifest} asks for more than {MAX_REQUESTED_PACKAGES} packages")
        return tuple(found)

    async def resolve(self, wanted: Sequence[str], place: Place) -> str:
        """See `Installer`. Nothing is installed; the wheels are left for `install`."""
        from packaging.requirements import Requirement
        from packaging.utils import canonicalize_name

        names = [canonicalize_name(Requirement(one).name) for one in wanted]
        reach = await pip_reach(names, place) if place.walled else None
        bounds = [f"{name} {versions}" for name, versions in place.bounds.items() if versions]
        (place.folder / BOUNDS).write_text("\n".join(bounds))
        argv = ["download", *OPTIONS, *_of(place.python), "--constraint", BOUNDS, "--dest", FETCHED, "--"]
        await run_client(_client(), [*argv, *wanted], place, reach)
        return "".join(sorted(_locked(place.folder / FETCHED)))

    async def install(self, wanted: Sequence[str], lock: str, place: Place) -> None:
        """See `Installer`. Nothing is in reach: the wheels are those that `resolve` left."""
        (place.folder / self.lock).write_text(lock)
        argv = [*OPTIONS, *_of(place.python), "--no-deps", "--require-hashes", "-r", self.lock]
        offline = ("--no-index", "--find-links", FETCHED, "--no-compile", "--target", self.folder)
        await run_client(_client(), ["install", *argv, *offline], place)
        own = {*sys.stdlib_module_names, *NO_PLACE}
        taken = sorted({path.name.partition(".")[0] for path in (place.folder / self.folder).iterdir()} & own)
        if taken:
            raise PackagesRefused(f"a package of {', '.join(wanted)} takes the place of {', '.join(taken)}")

    def versions(self, lock: str) -> Mapping[str, str]:
        """See `Installer`."""
        pairs = (name.partition("==") for name in self.names(lock, Path()))
        return {name: version for name, _, version in pairs}

    def names(self, lock: str, folder: Path) -> tuple[str, ...]:
        """See `Installer`."""
        return tuple(line.split()[0] for line in lock.splitlines() if "==" in line)


def _of(python: str) -> tuple[str, ...]:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    return () if python == own else ("--python-version", python)


def _locked(wheels: Path) -> Iterator[str]:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    for wheel in wheels.glob("*.whl"):
        file = open_regular_file(wheel)  # a client might have left a link
        if file is None:
            continue
        try:
            name, version, _, _ = parse_wheel_filename(wheel.name)
        except InvalidWheelFilename as fault:
            raise PackagesRefused(
                f"the index has a wheel of no usual name: {wheel.name[:MAX_REQUIREMENT_CHARS]!r}"
            ) from fault
        digest = hashlib.sha256()
        with file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        yield f"{name}=={version} --hash=sha256:{digest.hexdigest()}\n"


def _client() -> Client:
    """The pip of this environment; behind the wall it runs on the installation below.

    Raises:
        PrerequisiteError: It is not there.
    """
    found = importlib.util.find_spec("pip")
    if found is None or found.origin is None:
        raise absent("pip", NO_CLIENT)
    return Client(
        name="pip",
        argv=(get_own_interpreter().executable, "-I", "-B", "-c", SHOWN),
        argv_here=(sys.executable, "-P", "-c", ALONE),
        shown=(Mount(source=str(Path(found.origin).parent), target=f"{SHOWN_AS}/pip"),),
        variables={"PIP_USER": "0"},  # it excludes `--target`
        unreachable=UNREACHABLE,
    )
