"""Jobs: every workload, filtered, sorted and paged by the API."""

import streamlit as st

from dashboard.shared import data, filters, frame, jobs_table
from dashboard.shared import format as text

LEAD = "Every workload that asks GPUs. The address holds the filters: send it as a link."
PAGE_SIZE = 25
SORTS = {
    "": "newest first",
    "submitted_at": "oldest first",
    "-queue_wait_seconds": "longest queue wait first",
    "-waiting_seconds": "longest wait now first",
    "-requeue_wait_seconds": "longest waiting again first",
    "-preemptions": "most preempted first",
    "-requested_gpus": "most GPUs first",
    "-gpu_seconds": "most GPU time first",
    "-wasted_gpu_hours": "most wasted first",
}


def main() -> None:
    """Draw the page."""
    frame.page("Jobs", LEAD, _draw)


def _draw() -> None:
    asked = _filters()
    listed = data.workloads({**asked, "page": str(filters.page_number()), "page_size": str(PAGE_SIZE)})
    pages = max(1, -(-listed.total // PAGE_SIZE))
    frame.hints(listed.hints)
    if not listed.total:
        st.info("No workload matches these filters. Set one of them to *all*.")
    elif not listed.items:
        st.info(f"Page {listed.page} does not exist: there are {text.count(pages, 'page')}.")
    else:
        targets = data.metric("wait_target_seconds", by=("service_class",), asked=filters.asked())
        jobs_table.show(listed.items, targets, caption="workloads")
    first = (listed.page - 1) * PAGE_SIZE + 1
    range_text = f"{first} to {first + len(listed.items) - 1} of " if listed.items else ""
    st.caption(f"{range_text}{text.count(listed.total, 'workload')} · {text.age(listed.as_of, data.now())}")
    filters.pages(pages)


def _filters() -> dict[str, str]:
    known = data.metric("queue_wait_seconds", by=("cluster", "queue"), asked=filters.asked())
    waiting = data.metric("queue_depth_workloads", by=("cluster", "queue"), asked=filters.asked())
    rows = (*known.by("cluster", "queue"), *waiting.by("cluster", "queue"))
    teams = [row["team"] for row in data.get("teams", filters.asked())["rows"]]
    # Whose work it is is chosen by a link, for example of the page of waste.
    user = filters.from_url("user")
    columns = st.columns([2, 2, 2, 2, 2, 3, *([2] if user else [])])
    with columns[0]:
        state = filters.fixed(
            "State",
            "state",
            {"": "all", filters.WAITING: "waiting", **{state: state for state in filters.STATES}},
        )
    with columns[1]:
        team = filters.choice("Team", "team", teams)
    with columns[2]:
        queue = filters.choice("Queue", "queue", [row.labels["queue"] or text.NO_QUEUE for row in rows])
    with columns[3]:
        service_class = filters.service_class()
    with columns[4]:
        cluster = filters.choice("Cluster", "cluster", [row.labels["cluster"] for row in rows])
    with columns[5]:
        sort = filters.fixed("Order", "sort", SORTS)
    if user:
        with columns[6]:
            user = filters.choice("User", "user", [user])
    return filters.asked(
        state=filters.states_asked(state),
        team=team,
        user=user,
        queue=queue,
        service_class=service_class,
        cluster=cluster,
        sort=sort,
    )


if __name__ == "__main__":
    main()
