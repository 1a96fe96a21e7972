"""Frame stacks against a slow version that walks one environment at a time."""

from __future__ import annotations

import hypothesis.strategies as st
import torch
from hypothesis import given, settings

from scanline import protocols, stacks
from scanline.stacks import Padding, Starts

STACK = 4
RULES = protocols.StackPadding.__args__
ZEROS = Padding("zeros")


def by_definition(
    frames: torch.Tensor, depth: int, padding: str, start: torch.Tensor
) -> torch.Tensor:
    """Frames [S, ...] of one environment, of which only the newest `depth` are valid; `start`
    [S - 1, ...] came before the first of them."""
    oldest = STACK - depth
    rows = []
    for place in range(STACK):
        if place >= oldest:
            rows.append(frames[place])
        elif padding == "repeat":
            rows.append(frames[oldest])
        elif padding in ("noop-steps", "start-and-noop-steps"):
            rows.append(start[STACK - 1 - oldest + place])
        else:
            rows.append(torch.zeros_like(frames[place]))
    return torch.stack(rows)


def every_start(num_steps: int, num_envs: int, random: torch.Generator) -> Starts:
    """Frames for an episode that begins at any step of any environment."""
    shape = (STACK - 1, 3, 2)
    return {
        (t, env): torch.randint(1, 255, shape, generator=random, dtype=torch.uint8)
        for t in range(1 - STACK, num_steps)
        for env in range(num_envs)
    }


@given(st.integers(0, 10**6), st.sampled_from(RULES), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_windows_and_build_equal_the_definition(seed: int, rule: str, num_envs: int) -> None:
    random = torch.Generator().manual_seed(seed)
    num_steps = 6
    shape = (STACK - 1 + num_steps, num_envs, 3, 2)
    frames = torch.randint(1, 255, shape, generator=random, dtype=torch.uint8)
    depth = torch.randint(1, STACK + 1, (num_steps, num_envs), generator=random).to(torch.uint8)
    starts = every_start(num_steps, num_envs, random)
    windows = stacks.windows(frames, depth, Padding(rule, starts))
    for t in range(num_steps):
        built = stacks.build(frames[t : t + STACK], depth[t], Padding(rule, starts, step=t))
        for b in range(num_envs):
            age = int(depth[t, b])
            start = starts[t - age + 1, b]
            expected = by_definition(frames[t : t + STACK, b], age, rule, start)
            assert torch.equal(built[b], expected)
            assert torch.equal(windows[t, b], expected)


def test_starts_are_shifted_and_those_that_no_stack_needs_are_dropped() -> None:
    starts = {(t, 7): torch.full((STACK - 1, 1), t) for t in range(-2, 6)}
    kept = stacks.starts_from(starts, 3, STACK)
    assert kept.keys() == {(t, 7) for t in (-2, -1, 0, 1, 2)}
    assert all(int(frames[0]) == t + 3 for (t, _), frames in kept.items())
    again = stacks.starts_of(stacks.starts_state(kept))
    assert again.keys() == kept.keys()
    assert all(torch.equal(again[at], kept[at]) for at in kept)


def test_only_noop_steps_give_frames() -> None:
    assert [stacks.num_start_frames(rule, 4) for rule in RULES] == [0, 0, 3, 3]
    assert stacks.num_start_frames("noop-steps", 1) == 0


def test_old_episodes_are_not_copied() -> None:
    frames = torch.zeros((STACK + 5, 2, 3, 3), dtype=torch.uint8)
    full = torch.full((6, 2), STACK, dtype=torch.uint8)
    flat = stacks.windows(frames, full, ZEROS).flatten(0, 1)
    assert flat.data_ptr() == frames.data_ptr()
    assert flat.shape == (12, STACK, 3, 3)
    assert stacks.build(frames[:STACK], full[0], ZEROS).data_ptr() == frames.data_ptr()


def test_a_sight_shows_what_its_arrays_hold_now() -> None:
    random = torch.Generator().manual_seed(3)
    frames, depth = torch.zeros((STACK, 5, 3, 2), dtype=torch.uint8), torch.zeros(5).byte()
    repeat = Padding("repeat")
    view = stacks.ObservationView(stacks.step_planes(frames), depth[None], repeat)
    for oldest in (1, STACK, 2, STACK):
        frames.copy_(torch.randint(1, 255, frames.shape, generator=random))
        depth.copy_(torch.randint(oldest, STACK + 1, depth.shape, generator=random))
        seen = view.observations()
        assert torch.equal(seen, stacks.build(frames, depth, repeat))
        assert (seen.data_ptr() == frames.data_ptr()) == (oldest == STACK)


def test_one_frame_stacks_are_the_frames() -> None:
    frames = torch.arange(12, dtype=torch.float32).view(3, 2, 2)
    depth = torch.ones((3, 2), dtype=torch.uint8)
    assert torch.equal(stacks.windows(frames, depth, ZEROS).squeeze(2), frames)
