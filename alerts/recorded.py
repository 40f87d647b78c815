"""What the rules record of ledgers themselves, by the names under which alerts ask for it."""

from typing import Final

# The prefix of our series stands here once more: an expression is for Prometheus, as it reads it.
MEASURED: Final = "gpuledger_measured_timestamp_seconds"
# For how long a ledger is missed that tells nothing any more: over a weekend.
SILENT_FOR: Final = "3d"
# What alerts/rules.py records of those, by ledger and cluster.
SILENT: Final = f"ledger_cluster:{MEASURED}:silent_max_last{SILENT_FOR}"
# What it records of their own alerts, which stay as they were while their ledger is silent.
SOURCE_AGE: Final = "ledger_cluster:gpuledger_source_seen_timestamp_seconds:age_max_last"
SOUNDING: Final = "ledger_alarm:gpuledger_alarm:max_last"
OF_THE_LEDGER: Final = {
    SOURCE_AGE: "time() - max by (ledger, cluster) (gpuledger_source_seen_timestamp_seconds)",
    SOUNDING: "max by (ledger, alarm) (gpuledger_alarm)",
}
# Clusters that no ledger reads in time: the age of what was read last.
UNREAD: Final = "cluster:gpuledger_source_seen_timestamp_seconds:unread_max_last"
UNREAD_AGE: Final = "time() - max by (cluster) (gpuledger_source_seen_timestamp_seconds)"
