"""Frame stacks against a slow version that walks one environment at a time."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis import given, settings

from scanline import protocols, stacks
from scanline.stacks import Padding, SparseFrames

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


def every_start(num_steps: int, num_envs: int, random: torch.Generator) -> SparseFrames:
    """Frames for an episode that begins at any step of any environment."""
    starts = SparseFrames((STACK - 1, 3, 2), torch.uint8, capacity=2)
    for t in torch.randperm(num_steps + STACK - 1, generator=random) + 1 - STACK:
        frames = torch.randint(1, 255, (num_envs, STACK - 1, 3, 2), generator=random)
        starts.append(int(t), torch.randperm(num_envs, generator=random), frames)
    return starts


def at(some: SparseFrames) -> list[tuple[int, int]]:
    """Steps and environments of the entries."""
    return list(zip(some.steps.tolist(), some.envs.tolist(), strict=True))


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
            start = starts.frames[at(starts).index((t - age + 1, b))]
            expected = by_definition(frames[t : t + STACK, b], age, rule, start)
            assert torch.equal(built[b], expected)
            assert torch.equal(windows[t, b], expected)


def test_a_part_of_sparse_frames_counts_from_its_own_beginning() -> None:
    some = SparseFrames((2,), torch.int64, capacity=1)
    for t in range(-2, 6):
        some.append(t, torch.tensor([7, 9]), torch.tensor([[t, 7], [t, 9]]))
    part = some.part(1, 5, slice(8, 10), origin=3)
    assert at(part) == [(-2, 1), (-1, 1), (0, 1), (1, 1)]
    assert part.frames.tolist() == [[t, 9] for t in (1, 2, 3, 4)]
    again = some.emptied()
    again.load(part.state())
    assert at(again) == at(part) and torch.equal(again.frames, part.frames)
    again.extend(part, step=10, env=3)
    assert at(again)[4:] == [(8, 4), (9, 4), (10, 4), (11, 4)]
    again.clear()
    assert at(again) == []


def test_of_two_entries_of_one_pair_the_later_counts() -> None:
    some = SparseFrames((1,), torch.int64, capacity=0)
    for value in (1, 2):
        some.append(torch.tensor([3, -1]), torch.tensor([5, 5]), torch.tensor([[value], [-value]]))
    found = some.find(np.array([-1, 3, -1]), np.array([5, 5, 5]))
    assert found.tolist() == [[-2], [2], [-2]]


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


def test_a_view_shows_what_its_arrays_hold_now() -> None:
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
