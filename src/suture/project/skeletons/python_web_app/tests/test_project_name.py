"""Entries of each resource can be created, read, changed and deleted, and wrong requests are refused."""

from __future__ import annotations

import pytest

from project_name.app import create_app, find_resources

SAMPLES = {str: "sample", int: 1, float: 1.5, bool: True, list: [], dict: {}}
WRONG_TYPE = {"not": "a plain value"}


@pytest.fixture
def database(tmp_path):
    return str(tmp_path / "test.db")


@pytest.fixture
def client(database):
    app = create_app(database)
    app.testing = True  # so that a fault ends a test with its traceback, and not with an answer 500
    return app.test_client()


def make_sample(resource):
    """Return valid values of a resource."""
    values = {name: SAMPLES.get(getattr(kind, "__origin__", kind)) for name, kind in resource.types.items()}
    return {**values, **getattr(resource.model, "EXAMPLE", {})}


def create(client, resource):
    """Create an entry and return it."""
    values = make_sample(resource)
    response = client.post(resource.path, json=values)
    if response.status_code != 201:
        pytest.fail(
            f"POST {resource.path} with {values} is answered with {response.status_code}: "
            f"{response.text.strip()} If these values are not allowed, give {resource.model.__name__} a dict "
            "EXAMPLE of values that are."
        )
    return response.json


def test_there_is_a_resource():
    if not find_resources():
        pytest.fail("resources.py has no dataclass.")


def test_a_created_entry_can_be_read(client):
    for resource in find_resources():
        entry = create(client, resource)
        assert {**make_sample(resource), "id": 1} == entry
        assert client.get(f"{resource.path}/1").json == entry
        assert client.get(resource.path).json == [entry]


def test_entries_outlive_the_server(client, database):
    for resource in find_resources():
        entry = create(client, resource)
        assert create_app(database).test_client().get(f"{resource.path}/1").json == entry


def test_an_entry_can_be_changed_and_deleted(client):
    for resource in find_resources():
        entry = create(client, resource)
        for send in (client.put, client.patch):
            assert send(f"{resource.path}/1", json=make_sample(resource)).json == entry
        assert client.delete(f"{resource.path}/1").status_code == 204
        assert client.get(f"{resource.path}/1").status_code == 404
        assert client.get(resource.path).json == []


def test_an_entry_of_only_the_required_fields_can_be_changed(client):
    for resource in find_resources():
        sample = make_sample(resource)
        values = {name: sample[name] for name in resource.required}
        response = client.post(resource.path, json=values)
        if response.status_code == 201:  # `__post_init__` may refuse an entry without the others
            assert client.patch(f"{resource.path}/1", json=values).json == response.json


def test_wrong_requests_are_refused(client):
    for resource in find_resources():
        sample = make_sample(resource)
        assert client.post(resource.path, data="no JSON").status_code == 400
        for name in resource.required:
            values = {key: value for key, value in sample.items() if key != name}
            assert client.post(resource.path, json=values).status_code == 400
        for name, kind in resource.types.items():
            wrong = [WRONG_TYPE] if kind in (str, int, float, bool) else []
            wrong += [2**63] if kind in (int, float) else []  # the database has no such integers
            for value in wrong:
                assert client.post(resource.path, json={**sample, name: value}).status_code == 400
        for send in (client.get, client.delete):
            for number in (999, 10**20):
                assert send(f"{resource.path}/{number}").status_code == 404
