-- Pods that were refused when their controller tried to make them: derived of Events by the stage `denials`.

-- One row per sighting of an Event that tells of refusals: how many more there were. team: of the namespace,
-- which counts where the owner is no workload that we know. Of a quota, what was asked, used and allowed.
create table denial (
    cluster varchar not null,
    owner_uid varchar not null,
    owner_kind varchar not null,
    owner_name varchar not null,
    namespace varchar not null,
    team varchar not null,
    denied_by varchar not null,
    rule varchar not null,
    text varchar not null,
    requested varchar not null,
    used varchar not null,
    limited varchar not null,
    count bigint not null,
    at_ms bigint not null
);

-- One row per sighting, with the workload that waits for its pods ('' where its owner is none that we know).
create view pod_denial as
select
    denial.* exclude (team),
    coalesce(workload.team, denial.team) as team,
    coalesce(member.workload_uid, '') as workload_uid
from denial
left join member on denial.cluster = member.cluster and denial.owner_uid = member.object_uid
left join workload on denial.cluster = workload.cluster and member.workload_uid = workload.workload_uid
where coalesce(workload.requested_micro_gpus > 0, true) and coalesce(workload.skewed, '') = '';
