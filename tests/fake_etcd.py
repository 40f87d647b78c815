"""
What the fake API server serves: objects, their history by revision, and its misbehaviour.

It keeps them as etcd does and can do what real servers do to a reader: forget history, refuse,
fall silent, close, cut a line, repeat itself, be restored to an earlier revision.
"""

import copy
import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

JsonObject = dict[str, Any]
Body = JsonObject | msgspec.Raw


class Canned(NamedTuple):
    """An answer that replaces the next ordinary one; to a watch, to a list, or to either (None)."""

    status: int
    body: Body
    headers: dict[str, str]
    watch: bool | None = None


class Change(NamedTuple):
    """One entry of the history."""

    revision: int
    event_type: str
    body: Body


@dataclass(slots=True)
class Resource:
    objects: dict[str, Body] = field(default_factory=dict)
    history: list[Change] = field(default_factory=list)
    # Lines outside the history (bookmarks, errors), sent to streams that are open.
    extra: list[bytes] = field(default_factory=list)
    canned: list[Canned] = field(default_factory=list)
    forbidden: bool = False
    hidden: bool = False
    silent: bool = False
    slow: bool = False
    cut_lists: int = 0
    closings: int = 0
    cuts: int = 0
    replay: bool = False
    watches: int = 0
    opened: int = 0
    listed: int = 0


@dataclass(slots=True)
class Backup:
    """What a backup of etcd holds."""

    revision: int
    compacted: int
    resources: dict[str, tuple[dict[str, Body], list[Change]]]


class FakeEtcd:
    """Paths of resources are those of the API: `/api/v1/pods`."""

    def __init__(self, *, page_limit: int = 500, cluster_uid: str = "cluster-1") -> None:
        self.page_limit = page_limit
        self.cluster_uid = cluster_uid
        self.gone_as_http = False
        self.replays_once = False
        self.expired_tokens = 0
        self.expired_body: Body = status_body(410, "Expired")
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.authorizations: list[str] = []
        # (API group, resource) that the account may read; None allows all. What it was denied.
        self.granted: set[tuple[str, str]] | None = None
        self.denied: set[str] = set()
        self.changed = threading.Condition()  # its lock may be taken again
        self.stopping = False
        # What Kueue's visibility API tells by queue; None: not installed. Its status, where it is not 200.
        self.pending: dict[str, list[JsonObject]] | None = None
        self.pending_status = 200
        # The same by "namespace/name" of the local queues that the account may ask for.
        self.pending_locally: dict[str, list[JsonObject]] = {}
        self._revision = 100
        self._compacted = 0
        self._resources: dict[str, Resource] = {}

    # --- what is installed and what it holds

    def serve(self, *paths: str) -> None:
        """Install resources."""
        with self.changed:
            for path in paths:
                self._resources.setdefault(path, Resource())

    def remove(self, path: str) -> None:
        """Take a resource away, as when its CRD is deleted; its watches end."""
        with self.changed:
            self._resources.pop(path)
            self.changed.notify_all()

    def apply(self, path: str, body: JsonObject) -> str:
        """Create or change the object of that uid; gives its resourceVersion."""
        with self.changed:
            resource = self._resources[path]
            self._revision += 1
            stored = copy.deepcopy(body)
            stored["metadata"]["resourceVersion"] = str(self._revision)
            uid = stored["metadata"]["uid"]
            event_type = "MODIFIED" if uid in resource.objects else "ADDED"
            resource.objects[uid] = stored
            resource.history.append(Change(self._revision, event_type, stored))
            self.changed.notify_all()
            return str(self._revision)

    def delete(self, path: str, uid: str) -> None:
        """Delete an object."""
        with self.changed:
            resource = self._resources[path]
            self._revision += 1
            last = self._plain(copy.deepcopy(resource.objects.pop(uid)))
            last["metadata"]["resourceVersion"] = str(self._revision)
            resource.history.append(Change(self._revision, "DELETED", last))
            self.changed.notify_all()

    # --- what it does to a reader

    def compact(self) -> None:
        """Forget the history: a watch from before now gets a 410."""
        with self.changed:
            self._compacted = self._revision
            for resource in self._resources.values():
                resource.history.clear()

    def bookmark(self, path: str, revision: int | None = None) -> str:
        """Send a bookmark to the open watches."""
        with self.changed:
            at = str(self._revision if revision is None else revision)
            self._extra(path, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": at}}})
            return at

    def send_error(self, path: str, code: int, reason: str) -> None:
        """Send an ERROR line, at HTTP 200, to the open watches and end them."""
        with self.changed:
            self._extra(path, {"type": "ERROR", "object": status_body(code, reason)})
            self._resources[path].closings += 1

    def send_line(self, path: str, line: bytes) -> None:
        """Send any bytes as a line to the open watches."""
        with self.changed:
            self._resources[path].extra.append(line)
            self.changed.notify_all()

    def close_watches(self, path: str) -> None:
        """End the open watches in good order."""
        with self.changed:
            self._resources[path].closings += 1
            self.changed.notify_all()

    def cut_watches(self, path: str) -> None:
        """Break the open watches in the middle of a line."""
        with self.changed:
            self._resources[path].cuts += 1
            self.changed.notify_all()

    def silence(self, path: str, *, silent: bool = True) -> None:
        """Keep watches open and say nothing, as a dead peer does."""
        with self.changed:
            self._resources[path].silent = silent
            self.changed.notify_all()

    def slow_down(self, path: str, *, slow: bool = True) -> None:
        """Send every line in pieces."""
        with self.changed:
            self._resources[path].slow = slow

    def cut_next_lists(self, path: str, lists: int) -> None:
        """Break off so many lists in the middle."""
        with self.changed:
            self._resources[path].cut_lists += lists

    def forbid(self, path: str, *, forbidden: bool = True) -> None:
        """Answer 403."""
        with self.changed:
            self._resources[path].forbidden = forbidden

    def hide(self, path: str) -> None:
        """Take its CRD away, before an account that may read only some things: 403, not 404."""
        with self.changed:
            self._resources[path].forbidden = self._resources[path].hidden = True

    def replay_on_reconnect(self, path: str) -> None:
        """Let a new watch begin with all changes since the last list, whatever version it asks for."""
        with self.changed:
            self._resources[path].replay = True

    def answer_next(self, path: str, status: int, reason: str, **headers: str) -> None:
        """Replace the next answer for a resource; headers are spelt with underscores."""
        with self.changed:
            spelt = {name.replace("_", "-"): value for name, value in headers.items()}
            self._resources[path].canned.append(Canned(status, status_body(status, reason), spelt))

    def answer_next_with(self, path: str, canned: Canned) -> None:
        """Replace the next answer of its sort."""
        with self.changed:
            self._resources[path].canned.append(canned)

    def backup(self) -> Backup:
        """What `restore` brings back."""
        with self.changed:
            held = {
                path: (copy.deepcopy(resource.objects), list(resource.history))
                for path, resource in self._resources.items()
            }
            return Backup(self._revision, self._compacted, held)

    def restore(self, state: Backup) -> None:
        """Go back to a backup: the revision falls, and watches end."""
        with self.changed:
            self._revision, self._compacted = state.revision, state.compacted
            for path, (objects, history) in state.resources.items():
                resource = self._resources[path]
                resource.objects, resource.history = copy.deepcopy(objects), list(history)
                resource.closings += 1
            self.changed.notify_all()

    # --- what a test may ask

    def held(self, path: str, uid: str) -> JsonObject:
        """An object as it is now."""
        with self.changed:
            return self._plain(self._resources[path].objects[uid])

    def listing_now(self, path: str, *, limit: int) -> JsonObject:
        """The first page of a list."""
        with self.changed:
            page = self.listing(self._resources[path], {"limit": str(limit)})
            assert page is not None
            return page

    def asked(self, path: str, *, watch: bool) -> list[dict[str, str]]:
        """The queries of the lists or watches of a resource so far."""
        with self.changed:
            return [query for at, query in self.requests if at == path and ("watch" in query) == watch]

    def open_watches(self, path: str) -> int:
        """Watches of a resource that are open now."""
        with self.changed:
            return self._resources[path].watches

    def opened(self, path: str) -> int:
        """Watches of a resource that were opened so far."""
        with self.changed:
            return self._resources[path].opened

    def has_canned(self, path: str) -> bool:
        """Whether an answer to a watch waits to be given."""
        with self.changed:
            return any(canned.watch is not False for canned in self._resources[path].canned)

    # --- used by the handler, which holds `changed`

    def denies(self, verb: str, path: str) -> bool:
        """Whether the account may not do that; discovery is allowed to everybody."""
        root, *parts = path.strip("/").split("/")
        group, rest = ("", parts[1:]) if root == "api" else (parts[0] if parts else "", parts[2:])
        if self.granted is None or (verb == "GET" and not rest):
            return False
        namespaced = len(rest) > 2 and rest[0] == "namespaces"
        resource = "/".join([rest[2], *rest[4:]]) if namespaced else "/".join([*rest[:1], *rest[2:]])
        allowed = verb == "GET" and (group, resource) in self.granted
        if not allowed:
            self.denied.add(f"{verb} {group}/{resource}")
        return not allowed

    def resource(self, path: str) -> Resource | None:
        """The resource at a path."""
        return self._resources.get(path)

    def canned(self, resource: Resource, *, watch: bool) -> Canned | None:
        """What replaces the answer to this question, if anything; it is given once."""
        found = next((one for one in resource.canned if one.watch in (watch, None)), None)
        if found is not None:
            resource.canned.remove(found)
        return found

    def list_version(self, resource: Resource) -> str:  # noqa: ARG002 - all resources share one
        """The version of a list that is made now."""
        return str(self._revision)

    def listing(self, resource: Resource, query: dict[str, str]) -> JsonObject | None:
        """One page; None when its token has expired."""
        token = query.get("continue", "")
        if token and self.expired_tokens:
            self.expired_tokens -= 1
            return None
        revision, start = (token.split(":")) if token else (self.list_version(resource), "0")
        limit = min(int(query.get("limit") or 1 << 30), self.page_limit) if "limit" in query else 1 << 30
        resource.listed = int(revision)
        everything = list(resource.objects.values())
        end = int(start) + limit
        metadata = {"resourceVersion": revision}
        if end < len(everything):
            metadata["continue"] = f"{revision}:{end}"
        return {"kind": "List", "metadata": metadata, "items": everything[int(start) : end]}

    def visibility(self, path: str) -> tuple[int, JsonObject] | None:
        """What the visibility API answers at a path; None where it has nothing to do with it."""
        root = "/apis/visibility.kueue.x-k8s.io"
        if self.pending is None or not path.startswith(root):
            return None
        match path.removeprefix(root).strip("/").split("/"):
            case [""]:
                return 200, {"kind": "APIGroup", "versions": [{"version": "v1beta1"}, {"version": "v1beta2"}]}
            case [_]:
                return 200, {
                    "resources": [{"name": "clusterqueues"}, {"name": "clusterqueues/pendingworkloads"}]
                }
            case ["v1beta2", "clusterqueues", queue, "pendingworkloads"] if self.pending_status != 200:
                return self.pending_status, status_body(self.pending_status, f"no {queue}")
            case ["v1beta2", "clusterqueues", queue, "pendingworkloads"] if queue in self.pending:
                return 200, {"kind": "PendingWorkloadsSummary", "items": self.pending[queue]}
            case ["v1beta2", "namespaces", namespace, "localqueues", queue, "pendingworkloads"]:
                items = self.pending_locally.get(f"{namespace}/{queue}")
                if items is None:
                    return 403, status_body(403, f"no {namespace}/{queue}")
                return 200, {"kind": "PendingWorkloadsSummary", "items": items}
        return 404, status_body(404, "NotFound")

    def is_gone(self, revision: int) -> bool:
        """Whether the history from that revision on is forgotten."""
        return revision < self._compacted

    def discovery(self, path: str) -> JsonObject | None:
        """What `/apis/<group>`, `/apis/<group>/<version>`, `/api/v1` and `/version` answer."""
        if path == "/version":
            return {"major": "1", "minor": "33", "gitVersion": "v1.33.1"}
        seen = [at for at, resource in self._resources.items() if not resource.hidden]
        served = [(at.rsplit("/", 1)[0], at.rsplit("/", 1)[1]) for at in seen]
        names = [name for prefix, name in served if prefix == path]
        if names:
            return {"kind": "APIResourceList", "resources": [{"name": name} for name in names]}
        versions = sorted({prefix for prefix, _ in served if prefix.rsplit("/", 1)[0] == path})
        if not versions or path == "/api":
            return None
        return {
            "kind": "APIGroup",
            "versions": [
                {"groupVersion": v.removeprefix("/apis/"), "version": v.rsplit("/", 1)[1]} for v in versions
            ],
        }

    def _extra(self, path: str, line: JsonObject) -> None:
        self._resources[path].extra.append(msgspec.json.encode(line))
        self.changed.notify_all()

    @staticmethod
    def _plain(body: Body) -> JsonObject:
        return body if isinstance(body, dict) else msgspec.json.decode(body, type=dict[str, Any])


def status_body(code: int, reason: str) -> JsonObject:
    """The Status object of an error."""
    message = f"fake {reason}"
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
