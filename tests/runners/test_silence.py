"""Silence: too long without a sign, and nobody is blamed while the asker was away."""

from __future__ import annotations

from scanline.runners.silence import Silence


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_only_who_gave_no_sign_is_silent() -> None:
    clock = Clock()
    silence = Silence[str](10.0, clock)
    silence.heard("a", "b")
    for clock.seconds in (4.0, 8.0, 12.0):
        silence.heard("a")
        found = silence.silent(["a", "b"])
    assert found == ["b"]
    assert silence.silent(["a"]) == []
    silence.heard("b")
    assert silence.silent(["a", "b"]) == []


def test_a_pause_of_the_asker_is_forgiven_once() -> None:
    clock = Clock()
    silence = Silence[int](10.0, clock)
    silence.heard(0)
    clock.seconds = 100.0
    assert silence.silent([0]) == []
    for clock.seconds in (104.0, 108.0, 112.0):
        found = silence.silent([0])
    assert found == [0]
