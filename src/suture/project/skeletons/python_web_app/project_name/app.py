"""The HTTP interface: routes for each resource, with JSON as requests and responses."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Flask, abort, jsonify, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import IntegerConverter

from project_name import resources
from project_name.store import Table


class Resource:
    """A dataclass of `resources.py`, and what its routes and its table need to know of it."""

    def __init__(self, model: type) -> None:
        self.model = model
        hints = typing.get_type_hints(model)
        fields = [field for field in dataclasses.fields(model) if field.init and field.name != "id"]
        self.types: dict[str, Any] = {field.name: _strip_none(hints[field.name]) for field in fields}
        self.optional = {
            f.name for f in fields if _strip_none(hints[f.name]) is not hints[f.name] or f.default is None
        }
        missing = dataclasses.MISSING
        self.required = [f.name for f in fields if f.default is missing and f.default_factory is missing]
        self.path = getattr(model, "PATH", f"/{_plural(model.__name__)}")

    def read(self, given: Any, previous: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the values of an entry from the JSON of a request.

        Args:
            previous: The present entry, of which the request changes only some values.

        Raises:
            ValueError: The request is not valid; the message says why.
        """
        if not isinstance(given, dict):
            raise ValueError("the request must hold a JSON object")
        values = {name: value for name, value in {**(previous or {}), **given}.items() if name != "id"}
        for name, value in values.items():
            if name not in self.types:
                raise ValueError(f"there is no field {name!r}")
            if not (value is None and name in self.optional) and not _has_type(value, self.types[name]):
                raise ValueError(f"{name!r} must be of the type {self.types[name].__name__}")
        missing = [name for name in self.required if name not in values]
        if missing:
            raise ValueError(f"the field {missing[0]!r} is missing")
        own_id = {"id": 0} if any(f.name == "id" and f.init for f in dataclasses.fields(self.model)) else {}
        entry = self.model(**own_id, **values)  # `__post_init__` may refuse the values
        return {name: getattr(entry, name) for name in self.types}


def _strip_none(hint: Any) -> Any:
    """Return the type of a value that may also be `None`."""
    kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    return kinds[0] if type(None) in typing.get_args(hint) else hint


def _has_type(value: Any, kind: Any) -> bool:
    plain = typing.get_origin(kind) or kind
    if plain is Any or not isinstance(plain, type):
        return True
    if isinstance(value, bool):
        return plain is bool
    return isinstance(value, (int, float) if plain is float else plain)


def _plural(name: str) -> str:
    word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"


def find_resources() -> list[Resource]:
    """Return the resources in the order of their definition."""
    own = [value for value in vars(resources).values() if getattr(value, "__module__", "") == resources.__name__]
    return [Resource(value) for value in own if isinstance(value, type) and dataclasses.is_dataclass(value)]


class IdConverter(IntegerConverter):
    """The ids in paths: SQLite has no larger integers than those of 64 bits."""

    regex = r"\d{1,18}"


def create_app(database: str) -> Flask:
    """Return the application, with its data in the given SQLite file."""
    app = Flask("project_name")
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.url_map.converters["id"] = IdConverter
    found = find_resources()
    for resource in found:
        table = Table(database, resource.path.strip("/").replace("/", "_"), resource.types)
        app.register_blueprint(_make_routes(resource, table))
    app.add_url_rule("/", "index", lambda: jsonify({"resources": [resource.path for resource in found]}))
    app.register_error_handler(ValueError, lambda fault: (jsonify({"error": str(fault)}), 400))
    app.register_error_handler(OverflowError, lambda fault: (jsonify({"error": "a number is too large"}), 400))
    app.register_error_handler(HTTPException, lambda fault: (jsonify({"error": fault.description}), fault.code))
    return app


def _make_routes(resource: Resource, table: Table) -> Blueprint:
    """Return the routes that create, read, update and delete the entries of a resource."""
    routes = Blueprint(resource.path.strip("/").replace("/", "_"), __name__, url_prefix=resource.path)

    def find(number: int) -> dict[str, Any]:
        entry = table.find_entry(number)
        if entry is None:
            abort(404, f"there is no entry {number}")
        return entry

    @routes.get("")
    def list_entries() -> Any:
        wanted = [(name, value) for name, value in request.args.items() if name in resource.types]
        entries = table.list_entries()
        return jsonify([one for one in entries if all(str(one[name]) == value for name, value in wanted)])

    @routes.post("")
    def create_entry() -> Any:
        return jsonify(table.save_entry(resource.read(request.get_json(silent=True)))), 201

    @routes.get("/<id:number>")
    def read_entry(number: int) -> Any:
        return jsonify(find(number))

    @routes.put("/<id:number>")
    @routes.patch("/<id:number>")
    def update_entry(number: int) -> Any:
        previous = find(number)
        given = request.get_json(silent=True)
        values = resource.read(given, previous if request.method == "PATCH" else None)
        return jsonify(table.save_entry(values, number))

    @routes.delete("/<id:number>")
    def delete_entry(number: int) -> Any:
        find(number)
        table.delete_entry(number)
        return "", 204

    return routes
