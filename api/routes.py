"""The table of routes: what each takes and gives. The app and `/openapi.json` are made from it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from starlette.requests import Request

from api import parameters
from api.answers import Answers, Listing, Question, Record, metric_record, range_record
from api.formats import DOCUMENT_FORMATS, TABLE_FORMATS, Format
from api.parameters import Parameter
from api.reports import REPORTS
from api.reports.report import made
from domain.errors import UsageError

Answer: TypeAlias = Callable[[Answers, Request], Record | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRoute:
    """
    One route under `/api/v1`. `answer` gives None where there is nothing by that name (404).

    `schema` names the shape of its JSON in `api/openapi.py`.
    """

    path: str
    name: str
    summary: str
    schema: str
    answer: Answer
    parameters: Sequence[Parameter] = ()
    path_parameter: str = ""
    formats: Sequence[Format] = TABLE_FORMATS


def _metrics(answers: Answers, _: Request) -> Record:
    rows = [metric_record(metric) for metric in answers.registry().values()]
    return Listing(as_of_ms=None, rows=rows, total=len(rows), page_size=max(len(rows), 1)).document()


def _metric(answers: Answers, request: Request) -> Record | None:
    question = _question(answers, request)
    return None if question is None else answers.metric(request.path_params["name"], question).document()


def _metric_range(answers: Answers, request: Request) -> Record | None:
    question = _question(answers, request)
    if question is None:
        return None
    instants = parameters.instants(request.query_params, answers.as_of_ms(None))
    found = answers.metric_at(request.path_params["name"], question, instants)
    return range_record(found, timedelta(milliseconds=instants.step_ms))


def _question(answers: Answers, request: Request) -> Question | None:
    """What is asked of the metric that the path names; None where there is none of that name."""
    metric = answers.registry().get(request.path_params["name"])
    if metric is None:
        return None
    question = parameters.metric_question(request.query_params)
    parameters.check_labels(question.by or (), (*metric.dimensions, *metric.extra_labels))
    return question


def _workloads(answers: Answers, request: Request) -> Record:
    return answers.workloads(parameters.list_question(request.query_params)).document()


def _workload(answers: Answers, request: Request) -> Record | None:
    return answers.workload(request.path_params["uid"], parameters.as_of(request.query_params))


def _why(answers: Answers, request: Request) -> Record | None:
    return answers.why(request.path_params["uid"], parameters.as_of(request.query_params))


def _pending_workloads(answers: Answers, request: Request) -> Record:
    return answers.pending_workloads(parameters.list_question(request.query_params)).document()


def _chargeback(answers: Answers, request: Request) -> Record:
    return answers.chargeback(
        request.path_params["month"], parameters.statement_question(request.query_params)
    )


def _quota_proposals(answers: Answers, request: Request) -> Record:
    return answers.quota_proposals(parameters.as_of(request.query_params)).document()


def _quota_proposal(answers: Answers, request: Request) -> Record | None:
    return answers.quota_proposal(request.path_params["id"], parameters.as_of(request.query_params))


def _teams(answers: Answers, request: Request) -> Record:
    return answers.teams(parameters.as_of(request.query_params)).document()


def _sources(answers: Answers, request: Request) -> Record:
    return answers.sources(parameters.as_of(request.query_params)).document()


def _gpu_faults(answers: Answers, request: Request) -> Record:
    return answers.gpu_faults(parameters.as_of(request.query_params)).document()


def _kueue_checks(answers: Answers, _: Request) -> Record:
    return answers.kueue_checks_of().document()


def _alerts(answers: Answers, request: Request) -> Record:
    return answers.alerts(parameters.report_question(request.query_params)).document()


def _reports(_: Answers, __: Request) -> Record:
    rows = [
        {"name": report.name, "title": report.title, "question": report.question}
        for report in REPORTS.values()
    ]
    return Listing(as_of_ms=None, rows=rows, total=len(rows), page_size=max(len(rows), 1)).document()


def _report(answers: Answers, request: Request) -> Record | None:
    report = REPORTS.get(request.path_params["name"])
    if report is None:
        return None
    return made(report, answers, parameters.report_question(request.query_params))


ROUTES = (
    ApiRoute(
        path="/api/v1/metrics",
        name="metrics",
        summary="Every metric with its definition",
        schema="MetricList",
        answer=_metrics,
    ),
    ApiRoute(
        path="/api/v1/metrics/{name}",
        name="metric",
        summary="The values of a metric at an instant",
        schema="MetricAnswer",
        answer=_metric,
        parameters=parameters.METRIC_PARAMETERS,
        path_parameter="name",
    ),
    ApiRoute(
        path="/api/v1/metrics/{name}/range",
        name="metric_range",
        summary="The values of a metric at evenly spaced instants",
        schema="MetricRange",
        answer=_metric_range,
        parameters=parameters.RANGE_PARAMETERS,
        path_parameter="name",
    ),
    ApiRoute(
        path="/api/v1/workloads",
        name="workloads",
        summary="Workloads that ask GPUs, as they stood at an instant",
        schema="WorkloadList",
        answer=_workloads,
        parameters=parameters.LIST_PARAMETERS,
    ),
    ApiRoute(
        path="/api/v1/workloads/{uid}",
        name="workload",
        summary="One workload with its spans and attempts",
        schema="WorkloadDetail",
        answer=_workload,
        parameters=(parameters.AS_OF,),
        path_parameter="uid",
        formats=DOCUMENT_FORMATS,
    ),
    ApiRoute(
        path="/api/v1/workloads/{uid}/why",
        name="why",
        summary="Why one workload waits: the reasons with evidence and remedy, and who holds what it needs",
        schema="WorkloadWhy",
        answer=_why,
        parameters=(parameters.AS_OF,),
        path_parameter="uid",
        formats=DOCUMENT_FORMATS,
    ),
    ApiRoute(
        path="/api/v1/pending-workloads",
        name="pending_workloads",
        summary="Workloads that wait for quota, in Kueue's own order of its queues, beside ours",
        schema="PendingWorkloadList",
        answer=_pending_workloads,
        parameters=parameters.PENDING_PARAMETERS,
    ),
    ApiRoute(
        path="/api/v1/chargeback/{month}",
        name="chargeback",
        summary="The statement of a month: GPU-hours by team, what they were good for, and their cost",
        schema="Statement",
        answer=_chargeback,
        parameters=parameters.STATEMENT_PARAMETERS,
        path_parameter="month",
    ),
    ApiRoute(
        path="/api/v1/quota/proposals",
        name="quota_proposals",
        summary="Quota changes that are proposed, with their evidence and whom they expose",
        schema="QuotaProposalList",
        answer=_quota_proposals,
        parameters=(parameters.AS_OF,),
    ),
    ApiRoute(
        path="/api/v1/quota/proposals/{id}",
        name="quota_proposal",
        summary="One quota proposal with its patch, its inverse and its history",
        schema="QuotaProposalDetail",
        answer=_quota_proposal,
        parameters=(parameters.AS_OF,),
        path_parameter="id",
        formats=DOCUMENT_FORMATS,
    ),
    ApiRoute(
        path="/api/v1/teams",
        name="teams",
        summary="Teams that have submitted work",
        schema="TeamList",
        answer=_teams,
        parameters=(parameters.AS_OF,),
    ),
    ApiRoute(
        path="/api/v1/sources",
        name="sources",
        summary="What is read, per cluster and kind, and how fresh it is",
        schema="SourceList",
        answer=_sources,
        parameters=(parameters.AS_OF,),
    ),
    ApiRoute(
        path="/api/v1/gpu-faults",
        name="gpu_faults",
        summary="What happened to GPUs, the newest first: XIDs, remap failures, other drivers",
        schema="GpuFaultList",
        answer=_gpu_faults,
        parameters=(parameters.AS_OF,),
    ),
    ApiRoute(
        path="/api/v1/kueue-checks",
        name="kueue_checks",
        summary="Kueue's own figures of its queues beside ours, as they were compared last",
        schema="KueueCheckList",
        answer=_kueue_checks,
    ),
    ApiRoute(
        path="/api/v1/alerts",
        name="alerts",
        summary="What fires, what is pending and what fired in the window, with what that rests on",
        schema="AlertList",
        answer=_alerts,
        parameters=parameters.REPORT_PARAMETERS,
    ),
    ApiRoute(
        path="/api/v1/reports",
        name="reports",
        summary="Every report with the question that it answers",
        schema="ReportList",
        answer=_reports,
    ),
    ApiRoute(
        path="/api/v1/reports/{name}",
        name="report",
        summary="A report: sentences to read first, then tables of figures",
        schema="Report",
        answer=_report,
        parameters=parameters.REPORT_PARAMETERS,
        path_parameter="name",
        formats=DOCUMENT_FORMATS,
    ),
)


def missing(route: ApiRoute, answers: Answers, request: Request) -> str:
    """What to say of a name that does not exist."""
    given = request.path_params[route.path_parameter]
    if route.name == "report":
        return f"report {given!r}: {parameters.nearest(given, list(REPORTS))}"
    if route.path_parameter == "id":
        return f"proposal {given!r}: there is none that you may see; /api/v1/quota/proposals lists them"
    if route.path_parameter == "name":
        return f"metric {given!r}: {parameters.nearest(given, list(answers.registry()))}"
    return f"workload {given!r}: there is none that you may see; /api/v1/workloads lists them"


def check(route: ApiRoute, request: Request) -> None:
    """
    Refuse unknown parameters.

    Raises:
        UsageError: names the nearest known parameter.
    """
    try:
        parameters.check_known(request.query_params, route.parameters)
    except UsageError as cause:
        message = f"{route.path}: {cause}"
        raise UsageError(message) from cause
