"""
The settings: one YAML file, `GPULEDGER_*` variables, nothing else.

A variable names its key with two underscores between the parts, `GPULEDGER_STORE__DATA_DIR`, and
wins over the file. Unknown keys are errors that name the nearest known one.
"""

import ipaddress
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, Field

from analytics.identity import NEVER_JOBS
from api.answers import format_length
from api.auth import Auth, HeaderAuth, NoAuth
from api.viewer import Role
from domain.calendar import billing_zone
from domain.errors import PolicyError, SettingsError
from domain.policy import Policy, QuotaRatio, Target
from domain.tenant import Rule, Tenancy
from domain.workload import ServiceClass
from service.alerting_settings import AlertingSettings
from service.checkpoint_settings import CheckpointSettings
from service.gpu_metrics_settings import GpuMetricsSettings
from service.money_settings import MoneySettings
from service.outside_settings import GatewaySettings, KueueMetricsSettings
from service.quota_settings import QuotaSettings
from service.setting_types import Duration, InstantMs, Network, Port, Section, Size


def default_data_dir() -> Path:
    """Where the store lies unless somebody says otherwise (XDG base directories)."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "gpuledger"


class StoreSettings(Section):
    """Where the books are kept. `memory_limit` is DuckDB's; without one half of the container's."""

    data_dir: Path = Field(default_factory=default_data_dir)
    memory_limit: Size | None = None


class ServerSettings(Section):
    """
    Where we answer, and as whom: `name` tells ledgers below one Prometheus or Alertmanager apart.

    `base_url` is the API's address as others reach it, `dashboard_url` the dashboard's with its path.
    """

    name: Annotated[str, Field(min_length=1)] = "gpuledger"
    host: str = "127.0.0.1"
    port: Port = 8080
    dashboard_port: Port = 8501
    base_url: str = ""
    dashboard_url: str = ""


class HeaderSettings(Section):
    """Which headers the authenticating proxy sends, and the file with its secret."""

    user_header: str = "X-Forwarded-User"
    groups_header: str = "X-Forwarded-Groups"
    secret_header: str = "X-Gpuledger-Proxy-Secret"  # noqa: S105 (the header's name)
    secret_file: Path | None = None
    trusted: tuple[Network, ...] = ()


class AuthSettings(Section):
    """Who may ask. `roles` maps a group to a role, `team_groups` a group to its teams."""

    mode: Literal["none", "header"] = "none"
    header: HeaderSettings = HeaderSettings()
    roles: dict[str, Role] = {}
    team_groups: dict[str, tuple[str, ...]] = {}
    token_file: Path | None = None


class RuleSettings(Section):
    """A rule as `domain.tenant.Rule`, with instants as texts."""

    value: str = ""
    from_label: str = ""
    from_namespace_label: str = ""
    namespace: str = "*"
    queue: str = "*"
    priority_class: str = "*"
    labels: dict[str, str] = {}
    namespace_labels: dict[str, str] = {}
    valid_from: InstantMs | None = None
    valid_to: InstantMs | None = None

    def rule(self) -> Rule:
        """The rule; raises PolicyError where it gives its value in no way or in two."""
        plain = self.model_dump(exclude={"valid_from", "valid_to"})
        return Rule(**plain, valid_from_ms=self.valid_from, valid_to_ms=self.valid_to)


def _rules_of_classes(rules: tuple[RuleSettings, ...]) -> tuple[RuleSettings, ...]:
    for rule in rules:
        if rule.value and rule.value not in set(ServiceClass):
            message = f"a service class ({', '.join(ServiceClass)}) as value, not {rule.value!r}"
            raise ValueError(message)
    return rules


class RenamedSettings(Section):
    """The present name of a team, and the instant since which it bears it."""

    name: str
    since: InstantMs


class TenancySettings(Section):
    """
    Rules for team, user, project and service class; the first that matches wins.

    `renamed` gives a team's present name by an earlier one; with the instant since which it counts,
    statements of months before keep the name of then.
    """

    teams: tuple[RuleSettings, ...] = ()
    users: tuple[RuleSettings, ...] = ()
    projects: tuple[RuleSettings, ...] = ()
    service_classes: Annotated[tuple[RuleSettings, ...], AfterValidator(_rules_of_classes)] | None = None
    renamed: dict[str, str | RenamedSettings] = {}

    def tenancy(self) -> Tenancy:
        """The rules in the words of the domain."""
        rules = {
            name: tuple(setting.rule() for setting in getattr(self, name) or ())
            for name in ("teams", "users", "projects")
        }
        if self.service_classes is not None:
            rules["service_classes"] = tuple(setting.rule() for setting in self.service_classes)
        dated = {old: new for old, new in self.renamed.items() if isinstance(new, RenamedSettings)}
        return Tenancy(
            **rules,
            renamed={old: new if isinstance(new, str) else new.name for old, new in self.renamed.items()},
            renamed_ms={old: new.since for old, new in dated.items()},
        )


def _kind_of_one_intent(kind: str) -> str:
    if kind in NEVER_JOBS:
        message = f"a kind whose objects are one workload each; {', '.join(sorted(NEVER_JOBS))} never are"
        raise ValueError(message)
    return kind


class WorkloadSettings(Section):
    """What is one workload. `job_kinds` are kinds beside Job, JobSet, RayJob and the others known."""

    job_kinds: tuple[Annotated[str, Field(min_length=1), AfterValidator(_kind_of_one_intent)], ...] = ()


class TargetSettings(Section):
    """What a service class was promised; what is left out keeps its default."""

    wait: Duration | None = None
    window: Duration | None = None


_POLICY = Policy()
Ratio = Annotated[float, Field(ge=0, le=1)]


class PolicySettings(Section):
    """Thresholds as `domain.policy.Policy`; lengths are texts such as 5m."""

    targets: dict[ServiceClass, TargetSettings] = {}
    window: Duration = _POLICY.window
    few_below: Annotated[int, Field(ge=1)] = _POLICY.few_below
    skew_tolerated: Duration = _POLICY.skew_tolerated
    slowdown_shortest_run: Duration = _POLICY.slowdown_shortest_run
    phantom_reservation_after: Duration = _POLICY.phantom_reservation_after
    cumulative_wait_factor: Annotated[int, Field(ge=1)] = _POLICY.cumulative_wait_factor
    debt_half_life: Duration = _POLICY.debt_half_life
    source_stale_after: Duration = _POLICY.source_stale_after
    event_source_stale_after: Duration = _POLICY.event_source_stale_after
    gpu_source_stale_after: Duration = _POLICY.gpu_source_stale_after
    gpu_source_gone_after: Duration = _POLICY.gpu_source_gone_after
    preemptible_classes: tuple[ServiceClass, ...] = _POLICY.preemptible_classes
    protected_classes: tuple[ServiceClass, ...] = _POLICY.protected_classes
    protection_window: Duration = _POLICY.protection_window
    scheduler_stalled_after: Duration = _POLICY.scheduler_stalled_after
    ageing_every: Duration = _POLICY.ageing_every
    ageing_ratio: Ratio = _POLICY.ageing_ratio
    gpu_hour_budgets: dict[str, dict[str, float]] = {}
    alert_limits: dict[str, float] = {}
    money_budgets: dict[str, dict[str, float]] = {}
    interactive_reserve_ratio: Ratio = _POLICY.interactive_reserve_ratio
    reserve_counts_preemptible: bool = _POLICY.reserve_counts_preemptible
    domination_ratio: Ratio = _POLICY.domination_ratio
    lint_one_class_ratio: Ratio = _POLICY.lint_one_class_ratio
    queue_cap_workloads: Annotated[int, Field(ge=1)] = _POLICY.queue_cap_workloads
    queue_cap_warn_ratio: Ratio = _POLICY.queue_cap_warn_ratio
    buy_held_ratio: Ratio = _POLICY.buy_held_ratio
    buy_productive_ratio: Ratio = _POLICY.buy_productive_ratio
    buy_wait: Duration = _POLICY.buy_wait
    buy_days: Annotated[int, Field(ge=1)] = _POLICY.buy_days
    buy_of_days: Annotated[int, Field(ge=1)] = _POLICY.buy_of_days
    erosion_from_ratio: Ratio = _POLICY.erosion_from_ratio
    startup_limit: Duration = _POLICY.startup_limit
    idle_below: Ratio = _POLICY.idle_below
    idle_after: Duration = _POLICY.idle_after
    resident_above: Ratio = _POLICY.resident_above
    least_samples: Ratio = _POLICY.least_samples
    serving_workloads: tuple[str, ...] = ()
    checkpoint_budgets: dict[str, Duration] = _POLICY.checkpoint_budgets
    long_run: Duration = _POLICY.long_run
    long_run_checkpoint_budget: Duration = _POLICY.long_run_checkpoint_budget
    assumed_checkpoint_interval: Duration = _POLICY.assumed_checkpoint_interval
    short_run: Duration = _POLICY.short_run
    quota_ratio: QuotaRatio = _POLICY.quota_ratio
    quota_tolerated_ratio: Ratio = _POLICY.quota_tolerated_ratio
    quota_penalty_slope: Annotated[float, Field(ge=0)] = _POLICY.quota_penalty_slope
    quota_largest_penalty: Ratio = _POLICY.quota_largest_penalty
    quota_step: Ratio = _POLICY.quota_step
    quota_floor: Ratio = _POLICY.quota_floor
    quota_gift_cap: Annotated[float, Field(ge=1)] = _POLICY.quota_gift_cap
    quota_good_weeks: Annotated[int, Field(ge=1)] = _POLICY.quota_good_weeks
    quota_least_gpu_hours: Annotated[float, Field(ge=0)] = _POLICY.quota_least_gpu_hours
    quota_least_coverage: Ratio = _POLICY.quota_least_coverage
    quota_proposal_expires_after: Duration = _POLICY.quota_proposal_expires_after

    def policy(self) -> Policy:
        """The thresholds in the words of the domain."""
        targets = dict(_POLICY.targets)
        for service_class, given in self.targets.items():
            usual = targets[service_class]
            targets[service_class] = Target(
                wait=given.wait or usual.wait, window=given.window or usual.window
            )
        return Policy(**{name: getattr(self, name) for name in type(self).model_fields if name != "targets"},
                      targets=targets)  # fmt: skip


class ClusterSettings(Section):
    """A cluster to watch. Without a kubeconfig: the one of the environment, or the pod's own account."""

    name: Annotated[str, Field(min_length=1)]
    kubeconfig: Path | None = None
    context: str | None = None


class ScheduleSettings(Section):
    """How often what is due is done."""

    measure_every_seconds: Annotated[int, Field(ge=1, le=3600)] = 15


class KeepingSettings(Section):
    """
    What is kept, and in how much room.

    Reading pauses while the disk has less free than `min_free`. `journal_size` is the most that the
    journal of each cluster may take; without it there is none. `spill_dir` takes what queries cannot
    hold in memory. Workloads that ended before `retention` are dropped; without it none.
    """

    min_free: Size = "200MB"
    journal_size: Size | None = None
    spill_dir: Path | None = None
    retention: Duration | None = None


class Settings(Section):
    """Everything that can be set."""

    store: StoreSettings = Field(default_factory=StoreSettings)
    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    tenancy: TenancySettings = TenancySettings()
    policy: PolicySettings = PolicySettings()
    workloads: WorkloadSettings = WorkloadSettings()
    money: MoneySettings = MoneySettings()
    quota: QuotaSettings = QuotaSettings()
    clusters: tuple[ClusterSettings, ...] = ()
    gpu_metrics: tuple[GpuMetricsSettings, ...] = ()
    checkpoints: CheckpointSettings = CheckpointSettings()
    kueue_metrics: tuple[KueueMetricsSettings, ...] = ()
    gateways: tuple[GatewaySettings, ...] = ()
    alerting: AlertingSettings = AlertingSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    keeping: KeepingSettings = KeepingSettings()

    @property
    def store_file(self) -> Path:
        """The DuckDB file."""
        return self.store.data_dir / "gpuledger.duckdb"

    @property
    def dashboard_url(self) -> str:
        """The dashboard's address as others reach it; without one in the settings, on this machine."""
        given = self.server.dashboard_url.rstrip("/")
        return given or f"http://{self.server.host}:{self.server.dashboard_port}"

    @property
    def serve_file(self) -> Path:
        """Where a running `serve` says how to reach it."""
        return self.store.data_dir / "serve.json"

    @property
    def reports_dir(self) -> Path:
        """Where the weekly reports lie."""
        return self.store.data_dir / "reports"

    @property
    def orders_dir(self) -> Path:
        """Where a running `serve` is told what to do with the books."""
        return self.store.data_dir / "orders"

    def tenancy_rules(self) -> Tenancy:
        """The rules of the site; raises SettingsError."""
        try:
            return self.tenancy.tenancy()
        except PolicyError as cause:
            message = f"settings, tenancy: {cause}"
            raise SettingsError(message) from cause

    def thresholds(self) -> Policy:
        """The thresholds of the site; raises SettingsError."""
        try:
            return replace(
                self.policy.policy(),
                job_kinds=frozenset(self.workloads.job_kinds),
                budget_zone=billing_zone(self.money.zone),
            )
        except PolicyError as cause:
            message = f"settings, {cause}"
            raise SettingsError(message) from cause

    def token(self) -> str:
        """The service token, empty without one."""
        return "" if self.auth.token_file is None else read_secret(self.auth.token_file, "auth.token_file")

    def _team_tokens(self) -> dict[str, str]:
        """The token of each team that may tell of checkpoints."""
        return {
            team: read_secret(path, f"checkpoints.token_files.{team}")
            for team, path in self.checkpoints.token_files.items()
        }

    def authentication(self) -> Auth:
        """Who may ask; raises SettingsError where a secret is missing."""
        if self.auth.mode == "none":
            return NoAuth()
        header = self.auth.header
        if header.secret_file is None:
            message = (
                'auth.mode = "header": expected auth.header.secret_file, a file with the proxy\'s secret'
            )
            raise SettingsError(message)
        return HeaderAuth(
            secret=read_secret(header.secret_file, "auth.header.secret_file"),
            user_header=header.user_header,
            groups_header=header.groups_header,
            secret_header=header.secret_header,
            trusted=tuple(ipaddress.ip_network(network) for network in header.trusted),
            roles=self.auth.roles,
            team_groups=self.auth.team_groups,
            token=self.token(),
            team_tokens=self._team_tokens(),
        )


def read_secret(path: Path, key: str) -> str:
    """
    The one line of a secret's file.

    Raises:
        SettingsError: the file cannot be read, or is empty.
    """
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as cause:
        message = f'{key} = "{path}": cannot be read ({cause}); expected a file with the secret in one line'
        raise SettingsError(message) from cause
    if not secret:
        message = f'{key} = "{path}": the file is empty; expected the secret in one line'
        raise SettingsError(message)
    return secret


def plain(value: Any) -> Any:
    """Settings as they are written in YAML: lengths as 5m, paths as texts."""
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, dict):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, tuple):
        return [plain(member) for member in value]
    if isinstance(value, timedelta):
        return format_length(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
