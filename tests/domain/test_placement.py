"""What keeps a pod from a node, by the rules of Kubernetes' own scheduler."""

import pytest

from domain.placement import Placement, Rule, Toleration

LABELS = {"pool": "h100", "gpus": "8"}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        (Rule(key="pool", operator="In", values=("a100", "h100")), True),
        (Rule(key="pool", operator="In", values=("a100",)), False),
        (Rule(key="zone", operator="In", values=("a",)), False),
        (Rule(key="pool", operator="NotIn", values=("h100",)), False),
        (Rule(key="zone", operator="NotIn", values=("a",)), True),
        (Rule(key="pool", operator="Exists"), True),
        (Rule(key="pool", operator="DoesNotExist"), False),
        (Rule(key="gpus", operator="Gt", values=("7",)), True),
        (Rule(key="gpus", operator="Lt", values=("8",)), False),
        (Rule(key="pool", operator="Gt", values=("7",)), False),
        (Rule(key="metadata.name", operator="In", values=("n1",)), True),
    ],
)
def test_a_rule_of_affinity(rule: Rule, *, holds: bool) -> None:
    assert Placement(terms=((rule,),)).allows("n1", LABELS, []) is holds


def test_one_term_is_enough_and_all_its_rules_are_needed() -> None:
    good, bad = Rule(key="pool", operator="Exists"), Rule(key="zone", operator="Exists")
    assert Placement(terms=((bad,), (good,))).allows("n1", LABELS, [])
    assert not Placement(terms=((good, bad),)).allows("n1", LABELS, [])


@pytest.mark.parametrize(
    ("taint", "toleration", "holds"),
    [
        ("team=nlp:NoSchedule", None, False),
        ("team=nlp:NoExecute", None, False),
        ("team=nlp:PreferNoSchedule", None, True),
        ("node.kubernetes.io/unschedulable=:NoSchedule", None, True),
        ("team=nlp:NoSchedule", ("team", "Equal", "nlp", ""), True),
        ("team=nlp:NoSchedule", ("team", "Equal", "ads", ""), False),
        ("team=nlp:NoSchedule", ("team", "Exists", "", "NoSchedule"), True),
        ("team=nlp:NoSchedule", ("team", "Exists", "", "NoExecute"), False),
        ("team=nlp:NoSchedule", ("", "Exists", "", ""), True),
        ("team=:NoSchedule", ("team", "Equal", "", ""), True),
    ],
)
def test_a_taint_keeps_off_who_does_not_bear_it(
    taint: str, toleration: tuple[str, str, str, str] | None, *, holds: bool
) -> None:
    names = ("key", "operator", "value", "effect")
    borne = (Toleration(**dict(zip(names, toleration, strict=True))),) if toleration else ()
    assert Placement(tolerations=borne).allows("n1", {}, [taint]) is holds
