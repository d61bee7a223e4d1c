"""The page: files of this package. It holds no data; what it shows it asks the other routes."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter, Response

from suture.interfaces.web.problems import Refused

router = APIRouter(include_in_schema=False)
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text becomes markup or code, whatever a script of ours may do by mistake.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
PAGE = files("suture.interfaces.web") / "page"
NAMES = frozenset(file.name for file in PAGE.iterdir() if file.name.rpartition(".")[2] in TYPES)


@router.get("/")
async def page() -> Response:
    """The page itself; anybody may have it, as it says nothing of any run."""
    return _file("index.html")


@router.get("/page/{name}")
async def part(name: str) -> Response:
    """A script or style of the page."""
    return _file(name)


def _file(name: str) -> Response:
    if name not in NAMES:
        raise Refused(404, f"the page has no file {name!r:.80}", remedy="see /")
    kind = TYPES[name.rpartition(".")[2]]
    headers = {"Content-Security-Policy": POLICY, "Content-Type": kind}
    return Response((PAGE / name).read_bytes(), headers=headers)
