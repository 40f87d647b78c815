"""Settings: where a value comes from, and how a wrong one is told."""

from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from api.auth import HeaderAuth
from api.viewer import Role
from domain.errors import SettingsError
from domain.policy import LEAST, LENGTHS, RATIOS, SHARES, Policy, QuotaRatio, Target
from domain.tenant import Subject
from domain.window import parse_instant
from domain.workload import ServiceClass
from service.cli.configuration import MASK, masked
from service.settings_file import load_settings


def written(folder: Path, text: str) -> Path:
    file = folder / "gpuledger.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_an_option_beats_a_variable_and_a_variable_beats_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "server: {port: 1, dashboard_port: 2, host: localhost}")
    variables = {"GPULEDGER_SERVER__PORT": "3", "GPULEDGER_SERVER__DASHBOARD_PORT": "4"}
    server = load_settings(file, environment=variables, overrides={"server.port": 5}).server
    assert (server.port, server.dashboard_port, server.host) == (5, 4, "localhost")


def test_a_variable_may_hold_a_list() -> None:
    variables = {"GPULEDGER_CLUSTERS": "[{name: north, context: admin@north}]"}
    assert load_settings(environment=variables).clusters[0].name == "north"


def test_variables_that_kubernetes_makes_for_a_service_are_not_settings() -> None:
    variables = {"GPULEDGER_SERVICE_HOST": "10.0.0.1", "GPULEDGER_PORT_8080_TCP_ADDR": "10.0.0.1"}
    assert load_settings(environment=variables) == load_settings()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("store: {data_dri: /x}", "store.data_dri: unknown key; did you mean store.data_dir?"),
        ("stroe: {}", "stroe: unknown key; did you mean store?"),
        ("port: 80", "port: unknown key; did you mean server.port?"),
        ("tenancy: {teams: [{form_label: team}]}", "tenancy.teams.0.form_label: unknown key; did you mean"),
        ("policy: {targets: {batch: {wiat: 5m}}}", "did you mean policy.targets.batch.wait?"),
        (
            "policy: {targets: {interactiv: {wait: 5m}}}",
            "policy.targets.interactiv: unknown key; did you mean policy.targets.interactive?",
        ),
        ("server: {port: high}", 'server.port = "high": expected a whole number, for example 8080'),
        ("policy: {window: 90}", "policy.window = 90: expected a duration, for example 5m, 24h or 7d"),
        ("policy: {window: -5m}", 'policy.window = "-5m": expected a duration'),
        ("auth: {mode: open}", 'auth.mode = "open": expected one of '),
        ("auth: {roles: {ops: root}}", 'auth.roles.ops = "root": expected one of '),
        ("tenancy: {service_classes: [{value: fast}]}", "expected a service class"),
        ("tenancy: {teams: [{queue: a}]}", "a rule with no value: expected one of value, from_label, "),
        (
            "tenancy: {teams: [{value: a, from_label: b}]}",
            "a rule with value and from_label: expected one of value, from_label, ",
        ),
        ("tenancy: {teams: [{value: a, valid_from: May}]}", 'valid_from = "May": expected an instant'),
        ("auth: {header: {trusted: [everyone]}}", "expected an address or network"),
        ("store: {memory_limit: lots}", 'store.memory_limit = "lots": expected a size with its unit'),
        (
            "clusters: [{name: a, context: x}, {name: b}, {name: a, context: y}]",
            'gpuledger.yaml, clusters.0.name and clusters.2.name are both "a": expected a name of its own',
        ),
        ("- 1", "expected a mapping with the keys store, server"),
        ("a: [", "line 1: not YAML"),
    ],
)
def test_a_wrong_setting_is_told_with_file_key_value_and_remedy(tmp_path: Path, text: str, says: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(SettingsError) as told:
        load_settings(file)
    assert says in str(told.value)


def test_a_wrong_variable_is_told_by_its_name() -> None:
    with pytest.raises(SettingsError, match=r"environment GPULEDGER_SERVER__PORT, server.port = \"x\""):
        load_settings(environment={"GPULEDGER_SERVER__PORT": "x"})
    with pytest.raises(SettingsError, match=r"GPULEDGER_STORE__DATADIR.*did you mean store.data_dir\?"):
        load_settings(environment={"GPULEDGER_STORE__DATADIR": "/x"})

    with pytest.raises(
        SettingsError, match=r"environment GPULEDGER_CLUSTERS, clusters.0.name and clusters.1"
    ):
        load_settings(environment={"GPULEDGER_CLUSTERS": "[{name: a}, {name: a}]"})


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no such file"):
        load_settings(tmp_path / "none.yaml")


def test_rules_and_targets_reach_the_domain(tmp_path: Path) -> None:
    text = """
    tenancy:
      teams:
        - {value: old, namespace: "ml-*", valid_to: 2026-01-01T00:00:00Z}
        - {from_namespace_label: team}
      renamed: {old: new}
    policy:
      targets: {interactive: {wait: 2m}}
    """
    settings = load_settings(written(tmp_path, text))
    tenancy, policy = settings.tenancy_rules(), settings.thresholds()
    subject = Subject(
        namespace="ml-a", namespace_labels={"team": "red"}, labels={}, queue="", priority_class=""
    )
    assert tenancy.team(subject, parse_instant("2025-12-31T00:00:00Z")) == "new"
    assert tenancy.team(subject, parse_instant("2026-01-01T00:00:00Z")) == "red"
    assert policy.targets[ServiceClass.INTERACTIVE].wait == timedelta(minutes=2)
    assert policy.targets[ServiceClass.INTERACTIVE].window == timedelta(hours=6)
    assert policy.targets[ServiceClass.BATCH].wait == timedelta(hours=1)


def test_a_dated_rename_reaches_the_domain(tmp_path: Path) -> None:
    text = "tenancy: {renamed: {old: new, vision: {name: perception, since: 2026-06-10T00:00:00Z}}}"
    tenancy = load_settings(written(tmp_path, text)).tenancy_rules()
    since_ms = parse_instant("2026-06-10T00:00:00Z")
    assert tenancy.renamed == {"old": "new", "vision": "perception"}
    assert tenancy.renamed_ms == {"vision": since_ms}
    # A month that ends with the rename ended under the old name.
    for name in ("vision", "perception"):
        told = [tenancy.called(name, at_ms) for at_ms in (since_ms, since_ms + 1)]
        assert told == ["vision", "perception"]
    assert tenancy.called("old", 1) == "new"


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [("b", "c", "'b' and 'c' are both called 'b'"), ("c", "c", "two names of 'c' end at one instant")],
)
def test_at_any_time_a_team_has_one_name_of_its_own(
    tmp_path: Path, first: str, second: str, told: str
) -> None:
    month = "05" if first == "b" else "06"
    text = f"""
    tenancy:
      renamed:
        a: {{name: {first}, since: 2026-{month}-01T00:00:00Z}}
        b: {{name: {second}, since: 2026-06-01T00:00:00Z}}
    """
    with pytest.raises(SettingsError, match=f"settings, tenancy: renamed: {told}"):
        load_settings(written(tmp_path, text)).tenancy_rules()


# Thresholds that cannot be set, each with the reason.
NOT_SET = {
    "job_kinds": "no threshold: the kinds of jobs of the section workloads",
    "budget_zone": "the zone of the section money",
}
# What another value of a threshold is, as it is written and as the policy has it.
OTHER: dict[str, tuple[Any, Any]] = {
    "targets": (
        {"batch": {"wait": "7h", "window": "9h"}},
        Policy().targets | {ServiceClass.BATCH: Target(wait=timedelta(hours=7), window=timedelta(hours=9))},
    ),
    "preemptible_classes": (["interactive"], (ServiceClass.INTERACTIVE,)),
    "protected_classes": (["interactive"], (ServiceClass.INTERACTIVE,)),
    "gpu_hour_budgets": ({"nlp": {"month": 500}}, {"nlp": {"month": 500.0}}),
    "alert_limits": ({"GpuIdle": 12}, {"GpuIdle": 12.0}),
    "money_budgets": ({"nlp": {"month": 500}}, {"nlp": {"month": 500.0}}),
    "serving_workloads": (["ml/chat-*"], ("ml/chat-*",)),
    "checkpoint_budgets": ({"gold": "7m"}, {"gold": timedelta(minutes=7)}),
    "quota_ratio": ("wastage", QuotaRatio.WASTAGE),
    "quota_gift_cap": (1.37, 1.37),
}


def other(name: str) -> tuple[Any, Any]:
    usual = getattr(Policy(), name)
    by_type: dict[type, tuple[Any, Any]] = {
        timedelta: ("7h", timedelta(hours=7)), bool: (not usual, not usual), int: (6, 6), float: (0.37, 0.37),
    }  # fmt: skip
    return OTHER[name] if name in OTHER else by_type[type(usual)]


@pytest.mark.parametrize("name", [field.name for field in fields(Policy) if field.name not in NOT_SET])
def test_every_threshold_is_set_by_its_key_of_the_section_policy(name: str) -> None:
    written, meant = other(name)
    assert meant != getattr(Policy(), name)
    policy = load_settings(overrides={f"policy.{name}": written}).thresholds()
    told = {field.name: getattr(policy, field.name) for field in fields(Policy)}
    assert told == {field.name: getattr(Policy(), field.name) for field in fields(Policy)} | {name: meant}


@pytest.mark.parametrize("name", [*LENGTHS, *RATIOS, *SHARES, *LEAST])
def test_a_threshold_that_makes_no_sense_is_told_by_its_key(name: str) -> None:
    wrong = "0s" if name in LENGTHS else -1
    with pytest.raises(SettingsError, match=rf"policy\.{name} = "):
        load_settings(overrides={f"policy.{name}": wrong})


def test_what_only_the_policy_refuses_is_told_as_a_setting() -> None:
    with pytest.raises(SettingsError, match=r"settings, policy\.idle_below = 0.*a share above 0"):
        load_settings(overrides={"policy.idle_below": 0})


def test_secrets_come_from_files_and_are_never_shown(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("between us\n")
    (tmp_path / "token").write_text("for programs\n")
    text = f"""
    auth:
      mode: header
      header: {{secret_file: {tmp_path}/secret}}
      token_file: {tmp_path}/token
      roles: {{gpu-admins: admin}}
    server: {{base_url: "https://me:pass@gpu.example"}}
    """
    settings = load_settings(written(tmp_path, text))
    auth = settings.authentication()
    assert isinstance(auth, HeaderAuth)
    assert (auth.secret, auth.token, auth.roles) == ("between us", "for programs", {"gpu-admins": Role.ADMIN})
    for shown in (str(masked(settings)), repr(auth), repr(settings.auth)):
        assert "between us" not in shown
        assert "for programs" not in shown
    assert masked(settings)["auth"]["header"]["secret"] == MASK
    assert "pass@" not in masked(settings)["server"]["base_url"]


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_secret_that_is_missing_or_empty_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "secret").write_text(content)
    overrides = {"auth.mode": "header", "auth.header.secret_file": str(tmp_path / "secret")}
    with pytest.raises(SettingsError, match=r"auth\.header\.secret_file"):
        load_settings(overrides=overrides).authentication()


def test_header_mode_without_a_secret_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"expected auth\.header\.secret_file"):
        load_settings(overrides={"auth.mode": "header"}).authentication()


def test_a_kind_of_job_may_be_added_but_none_below_which_each_pod_is_a_workload(tmp_path: Path) -> None:
    file = tmp_path / "gpuledger.yaml"
    file.write_text("workloads: {job_kinds: [SparkApplication]}")
    assert load_settings(file).thresholds().job_kinds == {"SparkApplication"}
    file.write_text("workloads: {job_kinds: [Deployment]}")
    with pytest.raises(SettingsError, match="expected a kind whose objects are one workload each"):
        load_settings(file)
