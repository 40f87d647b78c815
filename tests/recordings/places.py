"""
Where what waits in a recording may stand, from the recorded objects themselves.

Written without the product's own code: it is what that is compared with.
"""

import gzip
import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.shared import shared

Json = dict[str, Any]


def first_written(recording: str, resource: str) -> Iterator[Json]:
    """Every object of a recorded resource as it was first seen; none where the resource was not recorded."""
    seen: set[str] = set()
    folder = shared(f"data/recorded/{recording}")
    for file in (*folder.glob(f"{resource}.list.json.*"), *folder.glob(f"{resource}.watch.ndjson.*")):
        with (gzip if file.suffix == ".gz" else lzma).open(file, "rt") as lines:
            for line in filter(str.strip, lines):
                read = json.loads(line)
                for written in read["items"] if "items" in read else [read["object"]]:
                    uid = written["metadata"].get("uid")
                    if uid and uid not in seen:
                        seen.add(uid)
                        yield written


@dataclass(frozen=True)
class Grounds:
    """
    Nodes with labels and taints; flavors by ClusterQueue and resource, and to which a LocalQueue leads;
    pod specs of what may wait, by uid and by name.
    """

    nodes: dict[str, tuple[dict[str, str], list[Json]]]
    flavors: dict[tuple[str, str], dict[str, Json]]
    specs: dict[str, Json]
    doors: dict[tuple[str, str], str]

    @classmethod
    def of(cls, recording: str) -> "Grounds":
        nodes = {
            node["metadata"]["name"]: (node["metadata"]["labels"], node["spec"].get("taints") or [])
            for node in first_written(recording, "nodes")
        }
        known = {
            flavor["metadata"]["name"]: flavor["spec"]
            for flavor in first_written(recording, "resourceflavors")
        }
        flavors: dict[tuple[str, str], dict[str, Json]] = {}
        for queue in first_written(recording, "clusterqueues"):
            for group in queue["spec"].get("resourceGroups") or ():
                for flavor in group["flavors"]:
                    for resource in flavor["resources"]:
                        shared_out = flavors.setdefault((queue["metadata"]["name"], resource["name"]), {})
                        shared_out[flavor["name"]] = known[flavor["name"]]
        specs: dict[str, Json] = {}
        for resource, of_pods in (
            ("jobs", ()),
            ("vcjobs", ("tasks",)),
            ("workloads", ("podSets",)),
            ("pods", None),
        ):
            for written in first_written(recording, resource):
                meta, spec = written["metadata"], written["spec"]
                if of_pods is not None:
                    parts = spec[of_pods[0]][0] if of_pods else spec
                    spec = parts["template"]["spec"]
                specs[meta["uid"]] = specs[f"{meta['namespace']}/{meta['name']}"] = spec
        doors = {
            (queue["metadata"]["namespace"], queue["metadata"]["name"]): queue["spec"]["clusterQueue"]
            for queue in first_written(recording, "localqueues")
        }
        return cls(nodes, flavors, specs, doors)

    def open_to(self, spec: Json, *, resource: str = "", queue: str = "", flavor: str = "") -> frozenset[str]:
        """
        Nodes on which a pod may stand.

        Under a ClusterQueue those of its flavors for the resource, or of the one that was given.
        """
        flavors = self.flavors.get((queue, resource))
        chosen = [{}] if flavors is None else [flavors[flavor]] if flavor else list(flavors.values())
        return frozenset(
            node for node in self.nodes if any(self._is_open(node, spec, of_flavor) for of_flavor in chosen)
        )

    def _is_open(self, node: str, spec: Json, flavor: Json) -> bool:
        labels, taints = self.nodes[node]
        wanted = [*(spec.get("nodeSelector") or {}).items(), *(flavor.get("nodeLabels") or {}).items()]
        tolerations = [*(spec.get("tolerations") or ()), *(flavor.get("tolerations") or ())]
        return all(labels.get(key) == value for key, value in wanted) and all(
            _borne(taint, tolerations) for taint in taints
        )


def _borne(taint: Json, tolerations: list[Json]) -> bool:
    if taint["effect"] == "PreferNoSchedule" or taint["key"].startswith("node.kubernetes.io/"):
        return True
    return any(
        one.get("key") == taint["key"]
        and (one.get("operator") == "Exists" or one.get("value") == taint.get("value"))
        for one in tolerations
    )
