"""Frame stacks against a slow version that walks one environment at a time."""

from __future__ import annotations

import hypothesis.strategies as st
import torch
from hypothesis import given, settings

from scanline import stacks

STACK = 4


def by_definition(frames: torch.Tensor, depth: int, padding: str) -> torch.Tensor:
    """Frames [S, ...] of one environment, of which only the newest `depth` are valid."""
    oldest = STACK - depth
    rows = []
    for place in range(STACK):
        if place >= oldest:
            rows.append(frames[place])
        elif padding == "repeat":
            rows.append(frames[oldest])
        else:
            rows.append(torch.zeros_like(frames[place]))
    return torch.stack(rows)


@given(st.integers(0, 10**6), st.sampled_from(["zeros", "repeat"]), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_windows_and_build_equal_the_definition(seed: int, padding: str, num_envs: int) -> None:
    random = torch.Generator().manual_seed(seed)
    num_steps = 6
    shape = (STACK - 1 + num_steps, num_envs, 3, 2)
    frames = torch.randint(1, 255, shape, generator=random, dtype=torch.uint8)
    depth = torch.randint(1, STACK + 1, (num_steps, num_envs), generator=random).to(torch.uint8)
    windows = stacks.windows(frames, depth, padding)
    for t in range(num_steps):
        built = stacks.build(frames[t : t + STACK], depth[t], padding)
        for b in range(num_envs):
            expected = by_definition(frames[t : t + STACK, b], int(depth[t, b]), padding)
            assert torch.equal(built[b], expected)
            assert torch.equal(windows[t, b], expected)


def test_old_episodes_are_not_copied() -> None:
    frames = torch.zeros((STACK + 5, 2, 3, 3), dtype=torch.uint8)
    full = torch.full((6, 2), STACK, dtype=torch.uint8)
    flat = stacks.windows(frames, full, "zeros").flatten(0, 1)
    assert flat.data_ptr() == frames.data_ptr()
    assert flat.shape == (12, STACK, 3, 3)
    assert stacks.build(frames[:STACK], full[0], "zeros").data_ptr() == frames.data_ptr()


def test_a_sight_shows_what_its_arrays_hold_now() -> None:
    random = torch.Generator().manual_seed(3)
    frames, depth = torch.zeros((STACK, 5, 3, 2), dtype=torch.uint8), torch.zeros(5).byte()
    sight = stacks.Sight(stacks.step_planes(frames), depth, "repeat")
    for oldest in (1, STACK, 2, STACK):
        frames.copy_(torch.randint(1, 255, frames.shape, generator=random))
        depth.copy_(torch.randint(oldest, STACK + 1, depth.shape, generator=random))
        seen = sight.observations()
        assert torch.equal(seen, stacks.build(frames, depth, "repeat"))
        assert (seen.data_ptr() == frames.data_ptr()) == (oldest == STACK)


def test_one_frame_stacks_are_the_frames() -> None:
    frames = torch.arange(12, dtype=torch.float32).view(3, 2, 2)
    depth = torch.ones((3, 2), dtype=torch.uint8)
    assert torch.equal(stacks.windows(frames, depth, "zeros").squeeze(2), frames)
