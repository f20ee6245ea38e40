"""What a claim comes to: agrees, near or differs, by the rules of the design ("Honest
experiments")."""

from dataclasses import dataclass, replace
from numbers import Real

AGREES, NEAR, DIFFERS = "agrees", "near", "differs"
# Verdicts that are not evidence: the paper's own formula evaluated again, and a figure that
# calibrates the simulated machine.
FORMULA, CALIBRATION = "formula", "calibration"
AGREES_RATIO = 1.25  # within 25 %, whichever of the two is larger
NEAR_RATIO = 2.0


@dataclass(frozen=True)
class Value:
    """One of a claim's own numbers. paper: a number, or a range's least and most."""
    name: str
    here: float
    paper: object
    unit: str


def values(unit, here, paper, names=()):
    """Several of one unit; the names say what each is of. Of a unit such as "% more" the first word
    counts."""
    unit = unit.split()[0].replace("times", "x")
    return tuple(Value(*one, unit) for one in zip(names or [""] * len(here), here, paper,
                                                  strict=True))


@dataclass
class Judgement:
    paper: str
    here: str
    verdict: str
    note: str = ""
    id: str = ""
    where: str = ""
    values: tuple = ()


def without_evidence(judgement, word):
    """The judgement under that word. The note says what the rule gives."""
    note = f"By the rule: {judgement.verdict}. {judgement.note}".rstrip()
    return replace(judgement, verdict=word, note=note)


def of_ratio(here, paper):
    """Two numbers of the same meaning. Zero agrees with zero alone."""
    if here == paper:
        return AGREES
    if here * paper <= 0:
        return DIFFERS
    ratio = max(here / paper, paper / here)
    return AGREES if ratio <= AGREES_RATIO else NEAR if ratio <= NEAR_RATIO else DIFFERS


def of_gain(here, paper):
    """How many times as much: a gain is no loss, however close the numbers are."""
    return DIFFERS if (here - 1) * (paper - 1) <= 0 else of_ratio(here, paper)


def below(here, bound):
    """The paper says "less than": only less agrees, up to twice as much is near."""
    return AGREES if here < bound else NEAR if here < bound * NEAR_RATIO else DIFFERS


def above(here, bound):
    return AGREES if here > bound else NEAR if here > bound / NEAR_RATIO else DIFFERS


def within(here, low, high):
    """The paper gives a range; what is outside is compared with its nearer end."""
    return of_ratio(here, min(max(here, low), high))


def of_shape(holds):
    return AGREES if holds else DIFFERS


def worst(verdicts):
    return max(verdicts, key=(AGREES, NEAR, DIFFERS).index)


def number(value):
    """Three significant digits, and never 1e+02."""
    if value and abs(value) < 0.001:
        return f"{value:.2e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def numbers(values):
    return "; ".join(map(number, values))


def say(text, *values):
    """The text with a value in place of each {}: words, a number or several."""
    return text.format(*(v if isinstance(v, str) else number(v) if isinstance(v, Real)
                         else numbers(v) for v in values))


def compared(here, paper, unit, note="", of=of_ratio, said="", names=()):
    """Several numbers, each with the paper's at its place."""
    return Judgement(said or numbers(paper) + unit, numbers(here) + unit,
                     worst(map(of, here, paper)), note,
                     values=values(unit, here, paper, names))


def shares_told(counts, most=None, shown=number, joined="{name} {share} %", none="none"):
    """The largest of these counts, in per cent of all."""
    total = sum(counts.values())
    ranked = sorted(counts.items(), key=lambda c: -c[1])[:most] if total else ()
    return ", ".join(joined.format(name=name, share=shown(100 * count / total))
                     for name, count in ranked) or none


def conflicts_by_place(run):
    return {c["where"]: c["true_sharing"] + c["false_sharing"] for c in run["conflicts"]}
