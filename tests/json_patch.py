"""A small JSON Patch (RFC 6902), of what our patches use: test and replace."""

import copy
from collections.abc import Sequence
from typing import Any

Json = Any


class TestFailedError(Exception):
    """A test of the patch found another value: the whole patch does nothing."""

    __test__ = False


def applied(patch: Sequence[Json], document: Json) -> Json:
    """The document after the patch; the given one stays as it is."""
    changed = copy.deepcopy(document)
    for operation in patch:
        parent, key = _resolved(changed, operation["path"])
        if operation["op"] == "test":
            # A number is no text: JSON keeps them apart (RFC 6902, 4.6).
            if type(parent[key]) is not type(operation["value"]) or parent[key] != operation["value"]:
                raise TestFailedError(operation)
        elif operation["op"] == "replace":
            parent[key] = operation["value"]
        else:
            raise AssertionError(operation)
    return changed


def differences(before: Json, after: Json, path: str = "") -> list[tuple[str, Json, Json]]:
    """Every value that is not the same: pointer, before, after."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return [
            found
            for key in before
            for found in differences(before[key], after[key], f"{path}/{_escaped(key)}")
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            found
            for index, (left, right) in enumerate(zip(before, after, strict=True))
            for found in differences(left, right, f"{path}/{index}")
        ]
    return [] if before == after else [(path, before, after)]


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _resolved(document: Json, pointer: str) -> tuple[Json, Any]:
    *steps, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for step in steps:
        document = document[int(step)] if isinstance(document, list) else document[step]
    key = int(last) if isinstance(document, list) else last
    try:
        document[key]
    except (KeyError, IndexError) as cause:
        raise TestFailedError(pointer) from cause
    return document, key
