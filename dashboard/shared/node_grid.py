"""Nodes as cards: who holds their GPUs, and what cannot be given out. Every value is escaped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import streamlit as st

from dashboard.shared import format as text

# Paul Tol's muted scheme, safe for colour-blind eyes; teams beyond these share one more.
_TEAM_COLOURS = (
    "#332288",
    "#88CCEE",
    "#44AA99",
    "#117733",
    "#999933",
    "#DDCC77",
    "#CC6677",
    "#882255",
    "#AA4499",
)
OTHER_COLOUR = "#7A7A7A"
_HATCH = "repeating-linear-gradient(45deg,{0} 0 3px,transparent 3px 6px)"
# What is not held by a team; the words beside the colour say the same.
UNHELD = {
    "free": "background:transparent;box-shadow:inset 0 0 0 1px rgba(128,128,128,.6)",
    "fragmented": f"background:{_HATCH.format('#E69F00')};box-shadow:inset 0 0 0 1px #E69F00",
    "cordoned": f"background:{_HATCH.format('#9AA0A6')};box-shadow:inset 0 0 0 1px #9AA0A6",
    "unhealthy": "background:#B00020",
    "unpartitioned": f"background:{_HATCH.format('#332288')};box-shadow:inset 0 0 0 1px #332288",
}
MEANINGS = {
    "free": "free",
    "fragmented": "free, and of no use to anybody who waits",
    "cordoned": "free, on a node that takes no pods",
    "unhealthy": "unhealthy",
    "unpartitioned": "of MIG cards, in no instance",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """
    A node's GPUs: by team that holds them, and by what keeps the rest from being held.

    `notes` stand below the strip. `held` and `unheld` are GPUs; None where it is not known.
    """

    name: str
    model: str
    capacity: float
    held: Mapping[str, float] = field(default_factory=dict)
    unheld: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def colours(amounts: Mapping[str, float]) -> dict[str, str]:
    """
    A colour for each team, in the order of their names, so that a team keeps it between reloads.

    Where there are more teams than colours, those with the largest amounts have one each.

    >>> colours({"nlp": 8.0, "ads": 1.0})
    {'ads': '#332288', 'nlp': '#88CCEE'}
    """
    names = sorted(amounts, key=lambda name: (-amounts[name], text.natural(name)))[: len(_TEAM_COLOURS)]
    return dict(zip(sorted(names, key=text.natural), _TEAM_COLOURS, strict=False))


def others(amounts: Mapping[str, float], of_team: Mapping[str, str]) -> str:
    """
    What the teams without a colour of their own are called together; empty without any.

    >>> others({"nlp": 8.0, "ads": 1.0}, {"nlp": "#332288"})
    '1 other team'
    """
    number = len(amounts.keys() - of_team.keys())
    return text.count(number, "other team") if number else ""


def show(nodes: Sequence[Node], held: Mapping[str, float]) -> None:
    """
    Draw the legend, and the nodes model by model.

    Args:
        nodes: those of a page.
        held: GPUs by team, on all nodes, so that a team has one colour on all pages.
    """
    of_team = colours(held)
    shown = of_team | ({rest: OTHER_COLOUR} if (rest := others(held, of_team)) else {})
    st.html(_legend(shown, {kind for node in nodes for kind, count in node.unheld.items() if count}))
    for model in dict.fromkeys(node.model for node in nodes):
        cards = "".join(_card(node, of_team) for node in nodes if node.model == model)
        st.html(
            f'<p style="margin:.3rem 0;font-weight:600">{escape(model or "model not known")}</p>'
            f'<div role="list" style="display:grid;gap:.6rem;'
            f'grid-template-columns:repeat(auto-fill,minmax(15rem,1fr))">{cards}</div>'
        )


def _legend(of_team: Mapping[str, str], kinds: set[str]) -> str:
    styles = {f"held by {team}": f"background:{colour}" for team, colour in of_team.items()}
    styles |= {MEANINGS[kind]: style for kind, style in UNHELD.items() if kind in kinds}
    return '<div style="display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.9rem">' + "".join(
        f'<span><span style="display:inline-block;width:.9em;height:.9em;border-radius:2px;'
        f'vertical-align:-.1em;margin-right:.4em;{style}"></span>{escape(words)}</span>'
        for words, style in styles.items()
    ) + "</div>"  # fmt: skip


def _card(node: Node, of_team: Mapping[str, str]) -> str:
    parts = [
        (f"held by {team}", count, f"background:{of_team.get(team, OTHER_COLOUR)}")
        for team, count in node.held.items()
    ]
    parts += [(MEANINGS[kind], node.unheld.get(kind, 0.0), style) for kind, style in UNHELD.items()]
    shown = [(words, count, style) for words, count, style in parts if count > 0]
    strip = "".join(
        f'<span title="{escape(f"{text.gpus(count)} {words}")}" '
        f'style="flex:{count:.3f} 1 0;min-width:2px;border-radius:2px;{style}"></span>'
        for words, count, style in shown
    )
    said = ", ".join(f"{text.gpus(count)} {words}" for words, count, _ in shown)
    notes = "".join(f"<div>{escape(note)}</div>" for note in node.notes)
    return (
        f'<div role="listitem" aria-label="{escape(f"{node.name}: {said}")}" '
        'style="border:1px solid rgba(128,128,128,.3);border-radius:.4rem;padding:.4rem .6rem">'
        f'<div style="display:flex;justify-content:space-between"><strong>{escape(node.name)}</strong>'
        f'<span style="font-variant-numeric:tabular-nums">{text.gpus(sum(node.held.values()))} of '
        f"{text.gpus(node.capacity)} held</span></div>"
        f'<div style="display:flex;gap:2px;height:1.1rem;margin:.3rem 0">{strip}</div>'
        f'<div style="font-size:.85rem;opacity:.8">{notes}</div></div>'
    )
