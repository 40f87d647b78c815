"""
Jobs that a pod names in its labels.

Between a pod and the user's job may stand an object that nobody saw: the Job of a JobSet, the
RayCluster of a RayJob.
"""

from collections.abc import Mapping

from domain.objects import Owner


def labelled_owner(labels: Mapping[str, str]) -> Owner | None:
    """
    The highest job that the labels name; its uid is empty where they tell its name only.

    >>> labelled_owner({"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "x"}).name
    'x'
    """
    job_set = labels.get("jobset.sigs.k8s.io/jobset-uid", "")
    if job_set:
        name = labels.get("jobset.sigs.k8s.io/jobset-name", "")
        return Owner(api_group="jobset.x-k8s.io", kind="JobSet", name=name, uid=job_set)
    if labels.get("ray.io/originated-from-crd") == "RayJob":
        name = labels.get("ray.io/originated-from-cr-name", "")
        return Owner(api_group="ray.io", kind="RayJob", name=name, uid="")
    return None
