"""Access control: roles at each route, foreign hosts and pages, and secrets that appear nowhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from interfaces.web.real_server import TASK, Server
from interfaces.web.uploaded_projects import BROKEN_PROJECT, zip_project

ROLES = ("viewer", "runner", "reviewer", "admin")
UNKNOWN_RUN, OTHER_UNKNOWN_RUN = "20260101-000000000-abcdef", "20260101-000000000-abcde0"
UNKNOWN_CANDIDATE = "0" * 64
API_KEY = "sk-the-servers-own-key-7f3a"


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route, the body to send, and the minimum role of a caller."""

    method: str
    path: str
    minimum_role: str
    body: object = None


ROUTES = (
    Route(method="GET", path="/v1/runs", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/events", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/diff", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/certificate", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/candidates", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/candidates/{UNKNOWN_CANDIDATE}", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/graph", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/steps/0", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/compare/{OTHER_UNKNOWN_RUN}", minimum_role="viewer"),
    Route(method="GET", path="/v1/benchmarks", minimum_role="viewer"),
    Route(method="GET", path="/v1/benchmarks/none", minimum_role="viewer"),
    Route(method="GET", path="/v1/caller", minimum_role="viewer"),
    Route(method="GET", path="/v1/projects", minimum_role="runner"),
    Route(method="GET", path=f"/v1/runs/{UNKNOWN_RUN}/files", minimum_role="viewer"),
    Route(method="GET", path="/v1/recipes", minimum_role="viewer"),
    Route(method="GET", path="/v1/models", minimum_role="viewer"),
    Route(method="GET", path="/v1/metrics", minimum_role="viewer"),
    Route(method="GET", path="/metrics", minimum_role="viewer"),
    Route(method="GET", path="/v1/doctor", minimum_role="admin"),
    Route(method="POST", path="/v1/archives", minimum_role="runner"),
    Route(method="POST", path="/v1/runs", minimum_role="runner", body={"kind": "nothing"}),
    Route(method="POST", path="/v1/judgements", minimum_role="runner", body={"base": "main"}),
    Route(method="GET", path="/v1/judgements", minimum_role="viewer"),
    Route(method="GET", path=f"/v1/judgements/{UNKNOWN_RUN}", minimum_role="viewer"),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/fork", minimum_role="runner", body={"at": 0}),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/replay", minimum_role="runner"),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/resume", minimum_role="runner"),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/verify", minimum_role="runner"),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/apply", minimum_role="admin"),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/rivals/2/apply", minimum_role="admin"),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/undo", minimum_role="admin"),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/pull-request", minimum_role="admin"),
    Route(method="POST", path=f"/v1/runs/{UNKNOWN_RUN}/cancel", minimum_role="runner"),
    Route(
        method="POST",
        path=f"/v1/runs/{UNKNOWN_RUN}/review",
        minimum_role="reviewer",
        body={"choice": "approve"},
    ),
)
PUBLIC_PATHS = ("/healthz", "/readyz")
OPENAPI_PATH = "/openapi.json"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server with a token for each role."""
    folder = tmp_path_factory.mktemp("access")
    # The server listens on all addresses, which it refuses to do without tokens.
    options = ("--host", "0.0.0.0", "--model", "none", "--set", "serve.hosts=suture.example")
    server = Server(folder, *options, environ={"OPENAI_API_KEY": API_KEY})
    tokens = {role: add_token(server, role) for role in ROLES}
    tokens["other"] = add_token(server, "runner", "other")
    (folder / "tokens").write_text(json.dumps(tokens))
    with server:
        server.url = server.url.replace("0.0.0.0", "127.0.0.1")
        yield server


@pytest.fixture(scope="module")
def tokens(server: Server) -> dict[str, str]:
    """Return the token of each role, and that of another runner."""
    role_tokens: dict[str, str] = json.loads((server.folder / "tokens").read_text())
    return role_tokens


def add_token(server: Server, role: str, name: str = "") -> str:
    """Add a token for a role, and return it."""
    result = server.command("token", "add", name or role, "--role", role)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def bearer(token: str) -> dict[str, str]:
    """Return the header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.heavy
def test_every_documented_route_is_tested(server: Server) -> None:
    document = server.get(OPENAPI_PATH).json()
    names = {
        f"judgements/{UNKNOWN_RUN}": "judgements/{judgement}",
        UNKNOWN_RUN: "{run}",
        OTHER_UNKNOWN_RUN: "{other}",
        UNKNOWN_CANDIDATE: "{candidate}",
        "steps/0": "steps/{step}",
        "rivals/2": "rivals/{number}",
    }
    names["benchmarks/none"] = "benchmarks/{name}"

    def pattern(path: str) -> str:
        for value, name in names.items():
            path = path.replace(value, name)
        return path

    expected_routes = {(route.method, pattern(route.path)) for route in ROUTES}
    expected_routes |= {("GET", path) for path in PUBLIC_PATHS}

    documented_routes = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }

    assert documented_routes == expected_routes


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_requires_its_minimum_role(
    server: Server, tokens: dict[str, str], route: Route, role: str
) -> None:
    response = server.call(route.method, route.path, headers=bearer(tokens[role]), json=route.body)
    if ROLES.index(role) < ROLES.index(route.minimum_role):
        assert response.status_code == 403
        assert route.minimum_role in response.json()["remedy"]
    else:
        assert response.status_code in (200, 400, 404, 409, 422), response.text


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer sut_nobody", "Basic {admin}", "{admin}", "Bearer {admin}x", "Bearer x{admin}"],
)
def test_a_request_without_a_valid_token_is_refused(
    server: Server, tokens: dict[str, str], route: Route, header: str
) -> None:
    headers = {"Authorization": header.format(**tokens)} if header else {}
    response = server.call(route.method, route.path, headers=headers, json=route.body)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", PUBLIC_PATHS)
def test_health_probes_need_no_token(server: Server, path: str) -> None:
    assert server.get(path).status_code == 200


def test_a_runner_can_cancel_only_own_runs(server: Server, tokens: dict[str, str]) -> None:
    request = {"kind": "write", "task": TASK, "model": "none"}
    runs = [
        server.post("/v1/runs", request, headers=bearer(tokens["runner"])).json()["run"] for _ in range(4)
    ]
    other_responses = [
        server.post(f"/v1/runs/{run}/cancel", headers=bearer(tokens["other"])) for run in runs[2:]
    ]
    own_responses = [
        server.post(f"/v1/runs/{run}/cancel", headers=bearer(tokens["runner"])) for run in runs[2:3]
    ]
    admin_responses = [
        server.post(f"/v1/runs/{run}/cancel", headers=bearer(tokens["admin"])) for run in runs[3:]
    ]
    assert {response.status_code for response in other_responses} == {403}
    assert {response.status_code for response in [*own_responses, *admin_responses]} == {202}

    description = server.get(f"/v1/runs/{runs[2]}", headers=bearer(tokens["viewer"])).json()
    assert description["caller"] == "runner"


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
def test_an_unknown_host_name_is_refused(server: Server, tokens: dict[str, str], host: str) -> None:
    response = server.get("/v1/runs", headers={**bearer(tokens["admin"]), "Host": host})
    assert response.status_code in (400, 421), response.text
    assert "runs" not in response.text or "not called" in response.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:80", "SUTURE.example"])
def test_an_allowed_host_name_is_served(server: Server, tokens: dict[str, str], host: str) -> None:
    response = server.get("/v1/runs", headers={**bearer(tokens["viewer"]), "Host": host})
    assert response.status_code == 200


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
def test_a_request_of_a_foreign_page_is_refused(
    server: Server, tokens: dict[str, str], headers: dict[str, str]
) -> None:
    content = json.dumps({"kind": "write", "task": TASK})
    all_headers = {"Content-Type": "application/json", **bearer(tokens["admin"]), **headers}
    response = server.call("POST", "/v1/runs", content=content, headers=all_headers)
    assert response.status_code in (403, 415), response.text
    assert "access-control-allow-origin" not in response.headers


def test_a_foreign_page_cannot_read_a_response(server: Server, tokens: dict[str, str]) -> None:
    request = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    preflight = server.call("OPTIONS", "/v1/runs", headers=request)
    assert preflight.status_code == 405

    response = server.get("/v1/runs", headers={**bearer(tokens["viewer"]), "Origin": "http://localhost:3000"})
    assert "access-control-allow-origin" not in response.headers
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]


def test_a_body_that_is_too_long_is_refused(server: Server, tokens: dict[str, str]) -> None:
    long_body = json.dumps({"kind": "write", "task": "x" * 2**21})
    headers = {**bearer(tokens["runner"]), "Content-Type": "application/json"}
    assert server.call("POST", "/v1/runs", content=long_body, headers=headers).status_code == 413
    chunks = (long_body[start : start + 2**16].encode() for start in range(0, len(long_body), 2**16))
    assert server.call("POST", "/v1/runs", content=chunks, headers=headers).status_code == 413


@pytest.mark.parametrize(
    "path", ["/etc", "/", "..", "relative", "~", "/proc/self/cwd", "/root/.ssh", "\x00", "x" * 3000]
)
def test_a_folder_outside_the_roots_is_refused_without_details(
    server: Server, tokens: dict[str, str], path: str
) -> None:
    response = server.post("/v1/runs", {"kind": "heal", "path": path}, headers=bearer(tokens["admin"]))
    assert response.status_code == 403
    assert "is not a folder below an allowed root" in response.json()["detail"]


@pytest.mark.parametrize(
    "run", ["..", "%2e%2e", "last", "a" * 500, f"{UNKNOWN_RUN}%00", "..%2f..%2fetc%2fpasswd"]
)
def test_an_invalid_run_id_is_not_found(server: Server, tokens: dict[str, str], run: str) -> None:
    response = server.get(f"/v1/runs/{run}/diff", headers=bearer(tokens["admin"]))
    assert response.status_code in (404, 422)


def test_no_token_and_no_key_appears_anywhere(server: Server, tokens: dict[str, str]) -> None:
    """This test is the last of the file, because it searches the files that the other tests have left."""
    paths = [route.path for route in ROUTES if route.method == "GET"]
    texts = [server.get(path, headers=bearer(tokens["admin"])).text for path in (*paths, OPENAPI_PATH)]
    server.post("/v1/archives", headers=bearer(tokens["runner"]), content=zip_project(BROKEN_PROJECT))
    for path in server.folder.rglob("*"):
        if path.is_file() and path.name != "tokens":
            texts.append(path.read_text("utf-8", "replace"))

    secrets = [API_KEY, *tokens.values()]

    assert not [secret for secret in secrets for text in texts if secret in text]
    assert (server.home / "serve-tokens.json").stat().st_mode & 0o777 == 0o600
    assert (server.home / "jobs").stat().st_mode & 0o777 == 0o700
