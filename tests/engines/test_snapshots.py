"""Headers of snapshots: numbers within bounds, or a sentence that names the one that is not."""

from __future__ import annotations

import pytest

from scanline.engines import snapshots

BOUNDS = {"depth": snapshots.Bound(int, 1, 4), "score": snapshots.SCORE, "waits": snapshots.FLAG}
GOOD = {"depth": 1, "score": -2.5, "waits": False}


def test_numbers_within_bounds_are_given() -> None:
    packed = snapshots.pack(b"magic\n", GOOD, b"body\n")
    assert snapshots.unpack(b"magic\n", packed, BOUNDS) == (GOOD, b"body\n")
    nothing = {"elapsed": snapshots.NOTHING}
    assert snapshots.unpack(b"", b'{"elapsed": null}', nothing) == ({"elapsed": None}, b"")


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
        snapshots.unpack(b"", snapshots.pack(b"", GOOD | {name: value}, b""), BOUNDS)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_header_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="its header is damaged"):
        snapshots.unpack(b"", text, BOUNDS)


@pytest.mark.parametrize("header", [[], 3, {}, GOOD | {"more": 1}])
def test_missing_and_unknown_numbers_are_refused(header: object) -> None:
    with pytest.raises(ValueError, match="not the fields depth, score, waits"):
        snapshots.checked(header, BOUNDS)


def test_another_magic_is_refused() -> None:
    with pytest.raises(ValueError, match="no snapshot of a toy"):
        snapshots.unpack(b"magic\n", b"other\n{}\n", {}, "a toy")
