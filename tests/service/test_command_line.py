"""The commands on a small store: what they print, where, and with which code they end."""

import io
import json
from pathlib import Path

import polars as pl
import pytest

from dashboard.shared import data, frame
from domain.facts import Batch, ObjectKind, SetAside, SourceMark
from domain.policy import Policy
from service import children
from service.cli import run
from service.cli.options import Given
from service.runtime import Runtime
from service.settings_file import load_settings
from service.wastage import Wastage
from store.embedded import Store
from tests.build import Books, busy_morning, make_workload

COMMANDS = (
    "demo", "up", "serve", "dashboard", "import", "metrics", "workloads", "pending", "report", "chargeback",
    "alerts", "quota", "rules", "grafana", "doctor", "config", "backup", "restore", "rebuild", "forget",
    "retire",
)  # fmt: skip


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    store = Store.open(folder / "gpuledger.duckdb")
    busy_morning().write(store)
    Wastage(store, Policy()).refresh("north", 0)
    store.close()
    return folder


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    told = capsys.readouterr().out
    assert [name for name in COMMANDS if f"  {name} " not in told] == []
    for name in COMMANDS:
        assert run([name, "--help"]) == 0, name


def test_metrics_are_listed_with_unit_and_definition(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["metrics", "--data-dir", str(data_dir)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "UNIT", "DEFINITION"]
    assert any(line.startswith("queue_wait_seconds ") for line in lines)


def test_a_value_is_shown_with_its_marks_and_explained(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [
        "metrics",
        "queue_wait_seconds",
        "--by",
        "class",
        "--class",
        "interactive",
        "--data-dir",
        str(data_dir),
    ]
    # r-wait has waited since 9:30; the data ends at 12:00.
    assert run([*asked, "--as-of", "2026-03-02T11:44:00Z"]) == 0
    printed = capsys.readouterr()
    assert ">= 2 h 14 m *" in printed.out
    assert "window 1d, 11 % of the window was observed" in printed.err  # 9:00 to 11:44
    assert "fewer than five" in printed.err


def test_who_waits_for_quota_is_listed_with_our_order_where_kueue_told_none(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["pending", "--as-of", "2026-03-02T11:00:00Z", "--data-dir", str(data_dir)]
    assert run(asked) == 0
    printed = capsys.readouterr()
    head, *lines = [line.split() for line in printed.out.splitlines()]
    assert head[:4] == ["QUEUE", "AHEAD", "BY-OUR-ORDER", "NAMESPACE"]
    # Each is the first of its queue.
    assert [(line[0], line[1], line[2], line[4]) for line in lines] == [
        ("main", "-", "0", "r-wait"),
        ("side", "-", "0", "b-wait"),
    ]
    assert "2 of 2 workloads that wait for quota" in printed.err
    assert "Kueue was not asked for the order" in printed.err


def test_without_an_instant_the_answer_is_about_the_end_of_the_data(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["workloads", "-o", "json", "--data-dir", str(data_dir)]) == 0
    assert json.loads(capsys.readouterr().out)["as_of"] == "2026-03-02T12:00:01.000Z"


def test_the_formats_have_the_same_rows(data_dir: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    asked = ["workloads", "--team", "red", "--sort", "uid", "--data-dir", str(data_dir), "-o"]

    def printed(form: str) -> bytes:
        assert run([*asked, form]) == 0
        return capfdbinary.readouterr().out

    uids = [row["uid"] for row in json.loads(printed("json"))["rows"]]
    assert uids == ["r-done", "r-wait"]
    assert pl.read_csv(io.BytesIO(printed("csv")))["uid"].to_list() == uids
    assert pl.read_parquet(io.BytesIO(printed("parquet")))["uid"].to_list() == uids
    for form in ("table", "wide"):
        assert [line.split()[0].decode() for line in printed(form).splitlines()[1:]] == uids


def test_one_workload_is_shown_with_spans_and_pods(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["workloads", "r-done", "--data-dir", str(data_dir)]) == 0
    told = capsys.readouterr().out
    assert "WAITED           10 m" in told
    assert "CAUSE" in told
    assert "not known" in told
    assert ">= 0" not in told
    assert "r-done-2" in told


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["metrics", "queue_wait"], 2, "did you mean 'queue_wait_seconds'?"),
        (["metrics", "held_gpus", "--by", "colour"], 2, "colour"),
        (["metrics", "--as-of", "yesterday"], 2, "RFC 3339"),
        (["metrics", "-o", "xml"], 2, "expected one of table, wide, json, csv, parquet"),
        (["metrics", "--window", "long"], 2, "duration 'long'"),
        (["metrics", "--no-such-option"], 2, "No such option"),
        (["workloads", "none"], 2, "workload 'none'"),
        (["workloads", "--state", "asleep"], 2, "--state 'asleep'"),
        (["import", "k8s", "a", "b", "--cluster", "c"], 2, "one folder at a time"),
        (["import", "k8s", "/no/such/folder"], 3, "/no/such/folder"),
        (["serve", "--host", "0.0.0.0"], 2, "loopback"),  # noqa: S104 (refused)
        (["no-such-command"], 2, "No such command"),
    ],
)
def test_an_error_is_one_line_on_stderr_and_a_code(
    data_dir: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    where = [] if arguments[0].startswith("no-") else ["--data-dir", str(data_dir)]
    assert run([*arguments, *where]) == code
    printed = capsys.readouterr()
    errors = [line for line in printed.err.splitlines() if line.startswith("gpuledger: ")]
    assert printed.out == ""
    assert len(errors) == 1
    assert says in errors[0]


def test_a_store_that_is_not_there_is_data_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["workloads", "--data-dir", str(tmp_path)]) == 3
    assert "there is no store yet" in capsys.readouterr().err
    assert not (tmp_path / "gpuledger.duckdb").exists()


def test_a_taken_port_is_a_part_that_cannot_be_reached(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(data_dir) as runtime:
        port = runtime.url.rpartition(":")[2]
        assert run(["serve", "--port", port, "--data-dir", str(tmp_path / "other")]) == 5
    assert "choose another --port" in capsys.readouterr().err


def serving(data_dir: Path, **more: object) -> Runtime:
    overrides = {"store.data_dir": data_dir, "server.port": 0, **more}
    return Runtime(load_settings(overrides=overrides))


def test_a_running_serve_is_asked_instead_of_its_store(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["workloads", "--team", "red", "-o", "json", "--data-dir", str(data_dir)]
    detail = ["workloads", "r-done", "-o", "json", "--data-dir", str(data_dir)]
    values = ["metrics", "queue_wait_seconds", "--by", "class", "--window", "2h", "-o", "json", "--data-dir"]
    empty = [[*asked[:1], f"--{label}", "", *asked[3:]] for label in ("team", "queue", "class")]
    commands = (asked, detail, [*values, str(data_dir)], *empty)

    def printed() -> list[str]:
        said = []
        for command in commands:
            assert run(command) == 0
            said.append(capsys.readouterr().out)
        return said

    from_store = printed()
    # An empty value asks for what has no such label: here everything has one.
    assert [json.loads(said)["total"] for said in from_store[-3:]] == [0, 0, 0]
    with serving(data_dir):
        assert (data_dir / "serve.json").exists()
        assert printed() == from_store
        assert run(["workloads", "none", "--data-dir", str(data_dir)]) == 2
        capsys.readouterr()
        # What would be another address is told of as the name that it is.
        for words, says in (
            (["why", "red/none"], "workload 'red/none': there is none; `gpuledger workloads` lists them"),
            (["workloads", "red/none"], "workload 'red/none': there is none"),
            (["workloads", ".."], "workload '..': there is none"),
            (["metrics", "a/b"], "metric 'a/b': there is none; `gpuledger metrics` lists them"),
            (["quota", "show", "a/b"], "proposal 'a/b': there is none; `gpuledger quota list` lists them"),
            (["chargeback", "show", "2026/03"], "month '2026/03': expected year and month"),
            (["chargeback", "export", "--month", "2026/03"], "month '2026/03': expected year and month"),
        ):
            assert run([*words, "--data-dir", str(data_dir)]) == 2
            assert says in capsys.readouterr().err
        assert run(["import", "k8s", ".", "--data-dir", str(data_dir)]) == 3
        assert run(["doctor", "--data-dir", str(data_dir)]) == 0
    assert not (data_dir / "serve.json").exists()


def test_a_serve_behind_a_proxy_answers_the_command_line_with_the_token_only(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("between us")
    (tmp_path / "token").write_text("for programs")
    config = tmp_path / "gpuledger.yaml"
    config.write_text(f"auth: {{mode: header, token_file: {tmp_path}/token}}")
    more = {"auth.mode": "header", "auth.header.secret_file": tmp_path / "secret"}
    with serving(data_dir, **more, **{"auth.token_file": tmp_path / "token"}):
        asked = ["workloads", "--data-dir", str(data_dir)]
        assert run(asked) == 4
        assert run([*asked, "--config", str(config)]) == 0
    assert "no identity" in capsys.readouterr().err


def test_a_runtime_exports_what_it_measured(data_dir: Path) -> None:
    with serving(data_dir) as runtime:
        text = runtime.exporter.text().decode()
        assert "gpuledger_queue_depth_workloads{" in text
        assert runtime.store.history("queue_depth_workloads", start_ms=0, end_ms=2**62) != []


def test_doctor_says_what_to_do_without_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--data-dir", str(tmp_path)]) == 0
    assert "gpuledger import k8s FOLDER" in capsys.readouterr().out


def test_rules_go_to_standard_output_or_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules"]) == 0
    printed = capsys.readouterr().out
    assert run(["rules", "--file", str(tmp_path / "rules.yml")]) == 0
    assert (tmp_path / "rules.yml").read_text() == printed
    assert "gpuledger_queue_wait_seconds" in printed


def test_links_of_rules_lead_where_the_settings_say_or_where_the_options_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gpuledger.yaml"
    config.write_text(
        "alerting: {runbooks_url: 'https://book.example'}\nserver: {dashboard_url: 'https://gpu.example'}"
    )
    options = ["--runbooks-url", "https://other.example/books", "--dashboard-url", "https://other.example"]
    for given, book, page in (
        ([], "https://book.example/GpuIdle.md", "https://gpu.example/"),
        (options, "https://other.example/books/GpuIdle.md", "https://other.example/"),
    ):
        assert run(["rules", "--config", str(config), *given]) == 0
        printed = capsys.readouterr().out
        assert f"runbook_url: {book}\n" in printed
        assert page in printed


def test_config_shows_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "gpuledger.yaml"
    config.write_text("policy: {window: 7d}")
    assert run(["config", "show", "--config", str(config)]) == 0
    assert "window: 1w" in capsys.readouterr().out
    assert run(["config", "check", "--config", str(config)]) == 0
    config.write_text("policy: {alert_limits: {GpuIdel: 5}}")
    assert run(["config", "check", "--config", str(config)]) != 0
    assert "policy.alert_limits.GpuIdel: expected one of" in capsys.readouterr().err
    config.write_text("policy: {widnow: 7d}")
    assert run(["config", "check", "--config", str(config)]) == 2
    assert "did you mean policy.window?" in capsys.readouterr().err


def test_a_kubeconfig_and_a_context_stand_for_one_cluster_of_that_contexts_name(tmp_path: Path) -> None:
    config = tmp_path / "gpuledger.yaml"
    config.write_text("clusters: [{name: elsewhere}]")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{current-context: north, contexts: []}")

    def clusters(**given: object) -> list[tuple[str, Path | None, str | None]]:
        settings = Given(config=config, **given).settings()  # type: ignore[arg-type]
        return [(cluster.name, cluster.kubeconfig, cluster.context) for cluster in settings.clusters]

    assert clusters() == [("elsewhere", None, None)]
    assert clusters(kubeconfig=kubeconfig) == [("north", kubeconfig, "north")]
    assert clusters(kubeconfig=kubeconfig, context="south") == [("south", kubeconfig, "south")]
    assert clusters(context="south") == [("south", None, "south")]
    given = Given(kubeconfig=kubeconfig, context="south").arguments()
    assert given == ["--kubeconfig", str(kubeconfig), "--context", "south"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read"),
        ("{", "not YAML"),
        ("kind: Config", "name one of its contexts with --context"),
    ],
)
@pytest.mark.parametrize("command", ["serve", "up"])
def test_a_kubeconfig_that_names_no_cluster_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, says: str, command: str
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    if content is not None:
        kubeconfig.write_text(content)
    assert run([command, "--kubeconfig", str(kubeconfig), "--data-dir", str(tmp_path / "data")]) == 2
    assert says in capsys.readouterr().err


def test_a_workload_shows_the_name_of_who_took_its_place(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["workloads", "r-done", "--data-dir", str(data_dir)]) == 0
    told = capsys.readouterr().out
    assert "PREEMPTED-BY" in told
    assert "blue/b-run" in told


def test_doctor_says_plainly_what_was_set_aside_and_what_was_never_read(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(data_dir / "gpuledger.duckdb")
    cause = "quantity '8x': expected a number"
    aside = SetAside(source="Node", because=cause, sample="", count=7, observed_ms=1)
    error = "no_permission: nodes is forbidden"
    never = SourceMark(kind=ObjectKind.NODE, resource_version="", epoch=0, seen_ms=0, last_error=error)
    store.append(Batch(cluster="north", marks={ObjectKind.NODE: never}, set_aside=[aside]))
    store.close()
    assert run(["doctor", "--data-dir", str(data_dir)]) == 0
    told = capsys.readouterr().out
    assert (
        f"north/Node: 7 set aside, a quantity that is no number, is negative, or is too large ({cause})"
        in told
    )
    assert "-> Correct the object with kubectl edit" in told
    assert "north/Node cannot be read: no_permission: nodes is forbidden" in told
    assert "1 source of 1 cluster was read" in told


def test_the_dashboard_is_told_the_names_of_the_viewers_headers() -> None:
    settings = load_settings(overrides={"auth.header.user_header": "X-User"})
    environment = children.dashboard_environment(settings, api_url="http://127.0.0.1:1")
    assert environment["GPULEDGER_API_URL"] == "http://127.0.0.1:1"
    assert data.identity({"X-User": "ada", "X-Forwarded-User": "eve"}, environment) == (("X-User", "ada"),)


def test_skewed_stamps_are_counted_by_doctor_and_told_with_the_workload(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(data_dir / "gpuledger.duckdb")
    books = Books(cluster="south")
    make_workload(books, "odd", skewed="bound 90 s before the submission")
    books.write(store)
    store.close()
    assert run(["doctor", "--data-dir", str(data_dir)]) == 0
    told = capsys.readouterr().out
    assert "south/skewed stamps: 1 set aside, workloads whose stamps lie before their submission" in told
    assert "policy.skew_tolerated" in told
    assert run(["workloads", "odd", "--data-dir", str(data_dir)]) == 0
    told = capsys.readouterr().out
    assert "bound 90 s before the submission; no figure counts it" in told
    assert "WAITED           -" in told


def test_the_dashboard_is_told_that_a_sample_is_played() -> None:
    settings = load_settings()
    still = children.dashboard_environment(settings, api_url="http://127.0.0.1:1")
    played = children.dashboard_environment(settings, api_url="http://127.0.0.1:1", played=True)
    assert played.keys() - still.keys() == {frame.PLAYED}
    assert load_settings(environment={frame.PLAYED: "1"}) == settings
