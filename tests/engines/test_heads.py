"""Heads of snapshots: numbers within bounds, or a sentence that names the one that is not."""

from __future__ import annotations

import json

import pytest

from scanline.engines import heads

BOUNDS = {"depth": heads.Bound(int, 1, 4), "score": heads.SCORE, "waits": heads.FLAG}
GOOD = {"depth": 1, "score": -2.5, "waits": False}


def test_numbers_within_bounds_are_given() -> None:
    assert heads.read(json.dumps(GOOD).encode(), BOUNDS) == GOOD
    assert heads.read(b'{"elapsed": null}', {"elapsed": heads.NOTHING}) == {"elapsed": None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("depth", 0), ("depth", 5), ("depth", 2.0), ("depth", True), ("depth", None)),
        *(("score", float("nan")), ("score", float("inf")), ("score", 1), ("waits", 1)),
        *(("waits", "no"), ("score", [1.0])),
    ],
)
def test_others_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"because {name}=.* is out of bounds"):
        heads.read(json.dumps(GOOD | {name: value}).encode(), BOUNDS)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_head_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="its head is damaged"):
        heads.read(text, BOUNDS)


@pytest.mark.parametrize("head", [[], 3, {}, GOOD | {"more": 1}])
def test_missing_and_unknown_numbers_are_refused(head: object) -> None:
    with pytest.raises(ValueError, match="not the fields depth, score, waits"):
        heads.checked(head, BOUNDS)
