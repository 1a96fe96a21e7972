"""A console from Python: two players, and paddles that are turned partly."""

from __future__ import annotations

import numpy as np
import pytest

from scanline import Console

FOR_TWO = {"game": "space_war", "mode": 8}


def played(*actions: tuple[int, ...], **strengths: float) -> np.ndarray:
    console = Console(str(FOR_TWO["game"]), mode=int(FOR_TWO["mode"]))
    console.reset()
    for action in actions:
        for _ in range(30):
            console.act(*action, **strengths)
    return console.ram()


def test_the_second_player_acts_for_itself() -> None:
    still = played((0,), (0,))
    np.testing.assert_array_equal(still, played((0, 0), (0, 0)))
    first, second, both = played((3,), (2,)), played((0, 3), (0, 2)), played((3, 3), (2, 2))
    changed = [set(np.flatnonzero(ram != still)) for ram in (first, second)]
    assert changed[0] - changed[1]
    assert changed[1] - changed[0]
    for own, ram in zip(changed, (first, second), strict=True):
        others = changed[1] if own is changed[0] else changed[0]
        alone = list(own - others)
        np.testing.assert_array_equal(both[alone], ram[alone])


def test_a_strength_turns_a_paddle_that_far() -> None:
    def paddle(strength: float) -> int:
        console = Console("breakout")
        console.reset()
        for _ in range(20):
            console.act(3, strength=strength)
        return int(console.ram()[72])

    assert paddle(0) < paddle(0.3) < paddle(1)


def test_wrong_actions_are_refused() -> None:
    console = Console("pong")
    with pytest.raises(ValueError, match="action_b=18 must be one of ALE's actions 0 to 17"):
        console.act(0, 18)
    with pytest.raises(ValueError, match=r"strength=1.5.* must lie in 0 to 1"):
        console.act(0, strength=1.5)
