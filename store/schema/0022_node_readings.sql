-- Since when nothing is known of what a node's GPUs did.

-- One row per node of which a source of GPU metrics told, and stretch without a longer silence.
create view gpu_node_reading as
select cluster, source, node, start_ms, end_ms
from observed_stretch
where kind = 'GPU metrics' and node <> '';
