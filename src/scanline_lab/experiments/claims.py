"""Claims: what a paper says, as predicates over results.

Takes results; gives each claim with a verdict and the figures it rests on.
Knows no experiment: a claim brings its own predicate.

A sign that differs from the paper's is a finding and is printed as such. What a scale cannot show
is said to be not testable rather than guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["confirmed", "contradicted", "not testable at this scale"]
UNTESTABLE: Verdict = "not testable at this scale"


@dataclass(frozen=True)
class Finding:
    """What the results say of a claim."""

    holds: bool | None
    """None where the results do not decide."""
    measured: str = ""
    """The figures behind it, in a few words."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper."""

    sentence: str
    source: str
    """Where the paper says it."""
    find: Callable[[Mapping[str, Any]], Finding]
    """From the results by the name of their cell."""
    scales: Sequence[str] = ("desk", "paper")
    """Scales at which the results can decide it."""


def claim(
    sentence: str, source: str, scales: Sequence[str] = ("desk", "paper")
) -> Callable[[Callable[[Mapping[str, Any]], Finding]], Claim]:
    """Makes a predicate over results a claim; fields as in `Claim`."""
    return lambda find: Claim(sentence, source, find, scales)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    verdict: Verdict
    measured: str


def judge(claims: Sequence[Claim], scale: str, results: Mapping[str, Any]) -> list[Judged]:
    """Every claim with its verdict; a result that is missing makes it untestable."""
    return [_judged(claim, scale, results) for claim in claims]


def _judged(claim: Claim, scale: str, results: Mapping[str, Any]) -> Judged:
    try:
        found = claim.find(results)
    except KeyError as missing:
        return Judged(claim, UNTESTABLE, f"no result of {missing}")
    if scale not in claim.scales or found.holds is None:
        return Judged(claim, UNTESTABLE, found.measured)
    return Judged(claim, "confirmed" if found.holds else "contradicted", found.measured)
