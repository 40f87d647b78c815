-- When sources of GPU metrics told of nodes.

-- One row per node and stretch of time in which a source of GPU metrics told of it.
create view read_node as
select cluster, node, start_ms, end_ms
from observed_stretch
where kind = 'GPU metrics' and node != '';
