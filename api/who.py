"""`GET /api/v1/viewer`: for whom the API takes the caller, so that a page offers what the role may do."""

from typing import Any, Final

from api import formats
from api.schemas import TEXT, list_of
from api.viewer import Role, Viewer

PATH: Final = "/api/v1/viewer"


def record(viewer: Viewer) -> dict[str, Any]:
    """The viewer; teams matter for a researcher only."""
    return {"name": viewer.name, "role": str(viewer.role), "teams": sorted(viewer.teams)}


def operation() -> dict[str, Any]:
    """The route in the words of OpenAPI."""
    told = {
        "name": TEXT,
        "role": {"type": "string", "enum": [str(role) for role in Role]},
        "teams": list_of(TEXT) | {"description": "The viewer's own; they matter for a researcher only."},
    }
    schema = {"type": "object", "properties": told, "required": list(told)}
    problems = {formats.PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        "operationId": "viewer",
        "summary": "For whom the API takes the caller: name, role and teams",
        "responses": {
            "200": {"description": "The viewer", "content": {formats.JSON: {"schema": schema}}},
            "401": {"description": "Nobody is asking", "content": problems},
        },
    }
