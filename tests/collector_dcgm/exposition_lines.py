"""Lines of the exposition format, of every kind that a parser may meet."""

import math

from hypothesis import strategies as st

from domain.window import LAST_KEPT_MS

LABEL_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name[:2] != "__"
)
# What breaks parsers: quotes, backslashes, newlines, braces, commas, hashes, equal signs.
LABEL_VALUES = st.text(
    alphabet=st.one_of(
        st.sampled_from('"\\\n{},=# \tn'), st.characters(exclude_categories=["Cs", "Cc", "Zl"])
    ),
    max_size=12,
)
SPACES = st.sampled_from(["", " ", "\t", "  "])
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["NaN", "+Inf", "-Inf", "Inf", "1e3", "1E-3", "-0", "+5", ".5", "5.", "0.985312"]),
)
STAMPS = st.none() | st.integers(0, LAST_KEPT_MS)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@st.composite
def sample_lines(draw: st.DrawFn, names: st.SearchStrategy[str]) -> str:
    labels = draw(st.dictionaries(LABEL_NAMES, LABEL_VALUES, min_size=1, max_size=4))
    order = draw(st.permutations(sorted(labels)))
    space = draw(SPACES)
    inner = f",{space}".join(f'{name}{space}={space}"{escaped(labels[name])}"' for name in order)
    inner += draw(st.sampled_from(["", ","]))
    stamp = draw(STAMPS)
    end = "" if stamp is None else f" {stamp}"
    return f"{draw(names)}{{{space}{inner}}} {draw(VALUES)}{end}"


OTHER_LINES = st.sampled_from(
    [
        "",
        "# HELP DCGM_FI_DEV_GPU_UTIL use {in} %.",
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
        "# a {comment} 1",
        "up 1",
    ]
)


def same(ours: float, theirs: float) -> bool:
    return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
