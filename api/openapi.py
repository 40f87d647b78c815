"""The description of the API, made from the table of routes."""

from collections.abc import Sequence

from api import checkpoints, closing, who
from api.exports import route as export
from api.formats import PROBLEM
from api.parameters import Parameter
from api.routes import ApiRoute
from api.schemas import INSTANT, SCHEMAS, TEXT, Schema, list_of


def describe(routes: Sequence[ApiRoute], *, base_url: str, version: str) -> Schema:
    """An OpenAPI 3.1 document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "gpuledger", "version": version},
        "servers": [{"url": base_url}] if base_url else [],
        "paths": {route.path: {"get": _operation(route)} for route in routes}
        | {checkpoints.PATH: {"post": checkpoints.operation(TEXT, INSTANT)}}
        | {closing.PATH: {"post": closing.operation()}}
        | {export.PATH: {"get": _export()}}
        | {who.PATH: {"get": who.operation()}},
        "components": {"schemas": SCHEMAS},
    }


def _export() -> Schema:
    return export.operation() | {"parameters": _parameters(export.PARAMETERS, "month")}


def _operation(route: ApiRoute) -> Schema:
    shapes = {"application/json": {"schema": {"$ref": f"#/components/schemas/{route.schema}"}}}
    content = {offer.media_type: shapes.get(offer.media_type, {}) for offer in route.formats}
    problem = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = {"400": "The question is wrong", "401": "Nobody is asking", "403": "Not yours to see"}
    refusals |= {"404": "There is none"} if route.path_parameter else {}
    refusals |= {"406": "No such format", "500": "The question could not be answered"}
    return {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": _parameters(route.parameters, route.path_parameter),
        "responses": {"200": {"description": "The answer", "content": content}}
        | {status: {"description": text, "content": problem} for status, text in refusals.items()},
    }


def _parameters(parameters: Sequence[Parameter], path_parameter: str) -> list[Schema]:
    in_path = [{"name": path_parameter, "in": "path", "required": True, "schema": TEXT}]
    in_query = [
        {
            "name": parameter.name,
            "in": "query",
            "description": parameter.description,
            "schema": list_of(parameter.schema) if parameter.many else parameter.schema,
        }
        | ({"style": "form", "explode": False} if parameter.many else {})
        for parameter in parameters
    ]
    return (in_path if path_parameter else []) + in_query
