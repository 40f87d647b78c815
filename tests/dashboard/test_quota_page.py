"""The page of quota proposals: what moves, why, whom it exposes, and the patch."""

from api.schemas import SCHEMAS
from dashboard.views.quota import verdict
from tests.api.test_answers_over_http import check
from tests.dashboard import fake_quota
from tests.dashboard.conftest import Open
from tests.dashboard.fake_api import Scenario
from tests.dashboard.test_pages import words

AT = "2026-11-30T00:00:00.000Z"


def test_the_fake_proposals_have_the_shape_of_real_ones() -> None:
    for found in fake_quota.proposals(AT):
        check(found, SCHEMAS["QuotaProposal"], at=found["id"])
        check(fake_quota.detail(found, AT), SCHEMAS["QuotaProposalDetail"], at=found["id"])


def test_a_proposal_is_shown_with_its_reason_its_evidence_and_whom_it_exposes(open_page: Open) -> None:
    app = open_page("quota", Scenario())
    assert not app.exception
    shown = words(app)
    for expected in (
        "3 quota changes wait for a decision: 4 GPUs less, 4 GPUs more; 1 running workload may be reclaimed.",
        "nlp: 40 to 36 GPUs",
        "its hell ratio was 30.0%",
        "Hell ratio 30.0 %",
        "Owed at week's end, GPU-h -4",
        "Evidence of week 2026-W48, 2026-11-23 00:00:00 UTC to 2026-11-30 00:00:00 UTC",
        "nlp/train-llm-7",
        "job?uid=uid-7",
        "4 GPUs of it from q-1",
        "No patch: drifted: the object says 32 GPU",
        "waits until that is over",
        "rejected",
        "(the cohort itself)",
    ):
        assert expected in shown, expected
    code = "\n".join(block.value for block in app.code)
    assert '"path": "/metadata/resourceVersion"' in code
    assert "kubectl patch clusterqueues.kueue.x-k8s.io nlp" in code


def test_without_proposals_the_page_says_when_there_will_be_some(open_page: Open) -> None:
    app = open_page("quota", Scenario(name="empty"))
    assert not app.exception
    assert "No quota change waits for a decision." in words(app)
    assert "when a week has ended" in words(app)


def test_one_change_is_told_in_the_singular() -> None:
    assert verdict([fake_quota.proposal(AT, exposed=[])]) == (
        "1 quota change waits for a decision: 4 GPUs less, 0 GPUs more."
    )


def test_a_failing_or_forbidden_api_is_told(open_page: Open) -> None:
    app = open_page("quota", Scenario(status=500))
    assert any("the store is closed" in error.value for error in app.error)
    app = open_page("quota", Scenario(status=403))
    assert any("Ask an admin" in warning.value for warning in app.warning)
