"""Access control: each role at each route, foreign hosts and pages, and tokens that appear nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from interfaces.web.real_server import TASK, Server
from interfaces.web.uploaded_projects import BROKEN, zipped

ROLES = ("viewer", "runner", "reviewer", "admin")
NOBODY, OTHER = "20260101-000000000-abcdef", "20260101-000000000-abcde0"
NONE = "0" * 64
KEY = "sk-the-servers-own-key-7f3a"


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route, what is sent there, and the least role that may."""

    method: str
    path: str
    least: str
    plain: object = None


ROUTES = (
    Route(method="GET", path="/v1/runs", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/events", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/diff", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/certificate", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/candidates", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/candidates/{NONE}", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/graph", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/steps/0", least="viewer"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/compare/{OTHER}", least="viewer"),
    Route(method="GET", path="/v1/benchmarks", least="viewer"),
    Route(method="GET", path="/v1/benchmarks/none", least="viewer"),
    Route(method="GET", path="/v1/caller", least="viewer"),
    Route(method="GET", path="/v1/projects", least="runner"),
    Route(method="GET", path=f"/v1/runs/{NOBODY}/files", least="viewer"),
    Route(method="GET", path="/v1/recipes", least="viewer"),
    Route(method="GET", path="/v1/models", least="viewer"),
    Route(method="GET", path="/v1/metrics", least="viewer"),
    Route(method="GET", path="/metrics", least="viewer"),
    Route(method="GET", path="/v1/doctor", least="admin"),
    Route(method="POST", path="/v1/archives", least="runner"),
    Route(method="POST", path="/v1/runs", least="runner", plain={"kind": "nothing"}),
    Route(method="POST", path=f"/v1/runs/{NOBODY}/fork", least="runner", plain={"at": 0}),
    Route(method="POST", path=f"/v1/runs/{NOBODY}/replay", least="runner"),
    Route(method="POST", path=f"/v1/runs/{NOBODY}/resume", least="runner"),
    Route(method="POST", path=f"/v1/runs/{NOBODY}/verify", least="runner"),
    Route(method="POST", path=f"/v1/runs/{NOBODY}/cancel", least="runner"),
    Route(method="POST", path=f"/v1/runs/{NOBODY}/review", least="reviewer", plain={"choice": "approve"}),
)
OPEN = ("/healthz", "/readyz")
DOCUMENT = "/openapi.json"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("access")
    # It listens to all addresses, which it does for nobody without tokens.
    options = ("--host", "0.0.0.0", "--model", "none", "--set", "serve.hosts=suture.example")
    server = Server(folder, *options, environ={"OPENAI_API_KEY": KEY})
    tokens = {role: made_token(server, role) for role in ROLES}
    tokens["other"] = made_token(server, "runner", "other")
    (folder / "tokens").write_text(json.dumps(tokens))
    with server:
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        yield server


@pytest.fixture(scope="module")
def tokens(server: Server) -> dict[str, str]:
    plain: dict[str, str] = json.loads((server.folder / "tokens").read_text())
    return plain


def made_token(server: Server, role: str, name: str = "") -> str:
    done = server.command("token", "add", name or role, "--role", role)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.heavy
def test_every_route_is_in_the_table(server: Server) -> None:
    document = server.get(DOCUMENT).json()
    names = {NOBODY: "{run}", OTHER: "{other}", NONE: "{candidate}", "steps/0": "steps/{step}"}
    names["benchmarks/none"] = "benchmarks/{name}"

    def pattern(path: str) -> str:
        for value, name in names.items():
            path = path.replace(value, name)
        return path

    known = {(route.method, pattern(route.path)) for route in ROUTES}
    known |= {("GET", path) for path in OPEN}
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == known


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_role_may_do_what_it_may(server: Server, tokens: dict[str, str], route: Route, role: str) -> None:
    answer = server.call(route.method, route.path, headers=bearer(tokens[role]), json=route.plain)
    if ROLES.index(role) < ROLES.index(route.least):
        assert answer.status_code == 403
        assert route.least in answer.json()["remedy"]
    else:
        assert answer.status_code in (200, 400, 404, 409, 422), answer.text


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer sut_nobody", "Basic {admin}", "{admin}", "Bearer {admin}x", "Bearer x{admin}"],
)
def test_without_a_token_of_ours_nothing_is_served(
    server: Server, tokens: dict[str, str], route: Route, header: str
) -> None:
    headers = {"Authorization": header.format(**tokens)} if header else {}
    answer = server.call(route.method, route.path, headers=headers, json=route.plain)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", OPEN)
def test_probes_take_no_token(server: Server, path: str) -> None:
    assert server.get(path).status_code == 200


def test_a_runner_stops_only_runs_of_their_own(server: Server, tokens: dict[str, str]) -> None:
    asked = {"kind": "write", "task": TASK, "model": "none"}
    runs = [server.post("/v1/runs", asked, headers=bearer(tokens["runner"])).json()["run"] for _ in range(4)]
    others = [server.post(f"/v1/runs/{run}/cancel", headers=bearer(tokens["other"])) for run in runs[2:]]
    mine = [server.post(f"/v1/runs/{run}/cancel", headers=bearer(tokens["runner"])) for run in runs[2:3]]
    admins = [server.post(f"/v1/runs/{run}/cancel", headers=bearer(tokens["admin"])) for run in runs[3:]]
    assert {answer.status_code for answer in others} == {403}
    assert {answer.status_code for answer in [*mine, *admins]} == {202}
    shown = server.get(f"/v1/runs/{runs[2]}", headers=bearer(tokens["viewer"])).json()
    assert shown["caller"] == "runner"


HOSTS = (
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "suture.example.evil.example",
    "evil@localhost",
    "localhost/evil",
    "localhost:port",
    "[::1",
    "0x7f000001",
    "2130706433",
    "0.0.0.0",
    "",
)


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_is_not_ours_is_refused(server: Server, tokens: dict[str, str], host: str) -> None:
    answer = server.get("/v1/runs", headers={**bearer(tokens["admin"]), "Host": host})
    assert answer.status_code in (400, 421), answer.text
    assert "runs" not in answer.text or "not called" in answer.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:80", "SUTURE.example"])
def test_a_name_of_ours_is_served(server: Server, tokens: dict[str, str], host: str) -> None:
    answer = server.get("/v1/runs", headers={**bearer(tokens["viewer"]), "Host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://evil.example@localhost"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
    ],
    ids=str,
)
def test_a_page_of_somebody_else_may_ask_nothing(
    server: Server, tokens: dict[str, str], headers: dict[str, str]
) -> None:
    content = json.dumps({"kind": "write", "task": TASK})
    sent = {"Content-Type": "application/json", **bearer(tokens["admin"]), **headers}
    answer = server.call("POST", "/v1/runs", content=content, headers=sent)
    assert answer.status_code in (403, 415), answer.text
    assert "access-control-allow-origin" not in answer.headers


def test_no_page_elsewhere_may_read_an_answer(server: Server, tokens: dict[str, str]) -> None:
    asked = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    before = server.call("OPTIONS", "/v1/runs", headers=asked)
    assert before.status_code == 405
    answer = server.get("/v1/runs", headers={**bearer(tokens["viewer"]), "Origin": "http://localhost:3000"})
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


def test_a_body_that_is_too_long_is_refused(server: Server, tokens: dict[str, str]) -> None:
    long = json.dumps({"kind": "write", "task": "x" * 2**21})
    headers = {**bearer(tokens["runner"]), "Content-Type": "application/json"}
    assert server.call("POST", "/v1/runs", content=long, headers=headers).status_code == 413
    pieces = (long[start : start + 2**16].encode() for start in range(0, len(long), 2**16))
    assert server.call("POST", "/v1/runs", content=pieces, headers=headers).status_code == 413


@pytest.mark.parametrize(
    "path", ["/etc", "/", "..", "relative", "~", "/proc/self/cwd", "/root/.ssh", "\x00", "x" * 3000]
)
def test_a_folder_outside_the_roots_is_refused_and_not_told_about(
    server: Server, tokens: dict[str, str], path: str
) -> None:
    answer = server.post("/v1/runs", {"kind": "heal", "path": path}, headers=bearer(tokens["admin"]))
    assert answer.status_code == 403
    assert "is not a folder below an allowed root" in answer.json()["detail"]


@pytest.mark.parametrize("run", ["..", "%2e%2e", "last", "a" * 500, f"{NOBODY}%00", "..%2f..%2fetc%2fpasswd"])
def test_what_is_no_run_is_not_looked_for(server: Server, tokens: dict[str, str], run: str) -> None:
    answer = server.get(f"/v1/runs/{run}/diff", headers=bearer(tokens["admin"]))
    assert answer.status_code in (404, 422)


def test_no_token_and_no_key_is_told_anywhere(server: Server, tokens: dict[str, str]) -> None:
    """Last in this file: it looks at what all tests before it have left."""
    paths = [route.path for route in ROUTES if route.method == "GET"]
    told = [server.get(path, headers=bearer(tokens["admin"])).text for path in (*paths, DOCUMENT)]
    server.post("/v1/archives", headers=bearer(tokens["runner"]), content=zipped(BROKEN))
    for path in server.folder.rglob("*"):
        if path.is_file() and path.name != "tokens":
            told.append(path.read_text("utf-8", "replace"))
    secrets = [KEY, *tokens.values()]
    assert not [secret for secret in secrets for text in told if secret in text]
    assert (server.home / "serve-tokens.json").stat().st_mode & 0o777 == 0o600
    assert (server.home / "jobs").stat().st_mode & 0o777 == 0o700
