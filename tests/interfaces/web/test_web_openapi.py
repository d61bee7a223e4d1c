"""The service follows its OpenAPI document: generated requests cause no fault and no undeclared response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from interfaces.web.real_server import PATIENCE_S, Server

pytestmark = pytest.mark.timeout(300)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MAX_EXAMPLES = 6
"""The examples of each route: enough that each part of a request is unusual once."""
SLOW_PATHS = ("/v1/doctor",)
"""The paths that get one example: they inspect the whole machine and take no arguments."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server that does not need a model."""
    folder = tmp_path_factory.mktemp("openapi")
    with Server(
        folder, "--model", "none", "--set", "serve.queue=1", "--set", "serve.max_concurrent_runs=1"
    ) as started_server:
        yield started_server


@pytest.fixture(scope="module")
def schema(server: Server) -> schemathesis.BaseSchema:
    """Load the OpenAPI document of the server."""
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


@pytest.mark.heavy
def test_every_response_conforms_to_the_openapi_document(
    schema: schemathesis.BaseSchema, server: Server
) -> None:
    operation_count = 0
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()

        @settings(
            max_examples=1 if operation.path in SLOW_PATHS else MAX_EXAMPLES,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(case=operation.as_strategy())
        def check_operation(case: Any) -> None:
            case.call_and_validate(checks=CHECKS, timeout=PATIENCE_S)

        check_operation()
        operation_count += 1

    assert operation_count >= 20
    assert "Traceback" not in server.read_stderr()
