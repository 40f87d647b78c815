"""The dashboard: which pages there are. Streamlit runs this file for every view."""

import streamlit as st

PAGES = (
    st.Page("views/home.py", title="Home", default=True),
    st.Page("views/queues.py", title="Queues", url_path="queues"),
    st.Page("views/jobs.py", title="Jobs", url_path="jobs"),
    # Reached from the tables: without a workload it has nothing to show.
    st.Page("views/job.py", title="Job", url_path="job", visibility="hidden"),
    st.Page("views/cluster.py", title="Cluster", url_path="cluster"),
    st.Page("views/fairness.py", title="Fairness", url_path="fairness"),
    st.Page("views/waste.py", title="Waste", url_path="waste"),
    st.Page("views/policy.py", title="Policy", url_path="policy"),
    st.Page("views/capacity.py", title="Capacity", url_path="capacity"),
    st.Page("views/quota.py", title="Quota", url_path="quota"),
    st.Page("views/chargeback.py", title="Chargeback", url_path="chargeback"),
    st.Page("views/alerts.py", title="Alerts", url_path="alerts"),
    st.Page("views/sources.py", title="Sources", url_path="sources"),
    st.Page("views/definitions.py", title="Help", url_path="definitions"),
)


def main() -> None:
    """Run the page that the address names."""
    # An emoji: icons by name would be fetched from the internet.
    st.set_page_config(page_title="gpuledger", page_icon="📒", layout="wide")
    st.navigation(list(PAGES), position="top").run()


if __name__ == "__main__":
    main()
