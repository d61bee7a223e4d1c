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
EXAMPLES = 6
"""Of each route: enough for each part of a request to be odd once; many more were tried by hand."""
SLOW = ("/v1/doctor",)
"""It looks at the whole machine, and takes no arguments."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("openapi")
    with Server(
        folder, "--model", "none", "--set", "serve.queue=1", "--set", "serve.max_concurrent_runs=1"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def schema(server: Server) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{server.url}/openapi.json")


@pytest.mark.heavy
def test_every_answer_is_as_the_document_says(schema: schemathesis.BaseSchema, server: Server) -> None:
    tried = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()

        @settings(
            max_examples=1 if operation.path in SLOW else EXAMPLES,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        )
        @given(case=operation.as_strategy())
        def as_declared(case: Any) -> None:
            case.call_and_validate(checks=CHECKS, timeout=PATIENCE_S)

        as_declared()
        tried += 1
    assert tried >= 20
    assert "Traceback" not in server.words()
