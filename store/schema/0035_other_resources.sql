-- What pods ask beside GPUs, and what nodes have of it: docs/adr/0057.

-- As JSON by resource name, as a scheduler counts: CPU in thousandths, all else in whole units. '' where
-- nobody tells. What each pod of the part asks; what the pod asks; what the node has for pods.
alter table workload_shape add column others varchar default '';
alter table pod_device add column others varchar default '';
alter table node_device add column others varchar default '';

-- What the pod asks beside GPUs, whether it asks GPUs or not: memory in bytes, and all but CPU (milli_cpus)
-- and memory as above. null, and '', where nobody tells.
alter table holding add column memory_bytes bigint;
alter table holding add column other_asks varchar default '';

-- The new columns are filled by cutting all lives anew.
delete from watermark
where job = 'lives';
