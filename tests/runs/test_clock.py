"""The split of time is exact and complete, and leaves evaluation out of training."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scanline.runs.clock import EVALUATION, TRAINING_PARTS, TimeSplit

PARTS = (*TRAINING_PARTS, EVALUATION)


class Clock:
    def __init__(self) -> None:
        self.now_ns = 1_000

    def __call__(self) -> int:
        return self.now_ns


@given(st.lists(st.tuples(st.sampled_from(PARTS), st.integers(0, 10**12)), max_size=20))
def test_every_nanosecond_belongs_to_the_part_that_was_marked(
    steps: list[tuple[str, int]],
) -> None:
    clock = Clock()
    time_split = TimeSplit(clock)
    slow = dict.fromkeys(PARTS, 0)
    for part, duration_ns in steps:
        time_split.mark(part)
        clock.now_ns += duration_ns
        slow[part] += duration_ns
    assert time_split.seconds() == {part: total / 1e9 for part, total in slow.items()}
    training_ns = sum(slow[part] for part in TRAINING_PARTS)
    assert abs(time_split.training_seconds() - training_ns / 1e9) < 1e-6


def test_a_block_gives_back_to_what_ran_before() -> None:
    clock = Clock()
    time_split = TimeSplit(clock)
    time_split.mark("learning")
    with time_split.during("evaluation"):
        assert time_split.part == "evaluation"
        clock.now_ns += 5_000_000_000
    assert time_split.part == "learning"
    assert time_split.seconds()["evaluation"] == 5.0
    assert time_split.training_seconds() == 0.0


def test_time_adds_up_over_a_resume() -> None:
    clock = Clock()
    first = TimeSplit(clock)
    clock.now_ns += 2_000_000_000
    saved = first.state()
    clock.now_ns += 100_000_000_000  # the machine was off
    second = TimeSplit(clock)
    clock.now_ns += 1_000_000_000
    second.mark("learning")
    second.load(saved)
    assert second.training_seconds() == 3.0


def test_time_of_a_listener_is_shared_as_others_spent_theirs() -> None:
    now_ns = [0]
    time_split = TimeSplit(lambda: now_ns[0])
    now_ns[0] = 10_000
    time_split.share({"environment": 3.0, "learning": 1.0, "other": 1.0})
    now_ns[0] = 20_000
    time_split.share({})  # nothing to go by: it stays
    now_ns[0] = 30_000
    time_split.share({"acting": 2.0})
    found = {part: round(seconds * 1e9) for part, seconds in time_split.seconds().items()}
    assert found == {
        "environment": 6_000,
        "acting": 10_000,
        "learning": 2_000,
        "other": 12_000,
        "evaluation": 0,
    }
