"""Resets out of the way: held and replaced environments give the games that inline ones give."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from samplers.test_lockstep import assert_equal_slots
from scanline import engines, protocols
from scanline.algorithms import pixels, ppo
from scanline.engines import Engine, EngineSettings
from scanline.recipes import find
from scanline.records import Acted, Experience, Slot
from scanline.samplers import DeferredResetEngine, LockstepSampler, SamplingSettings, inner_settings
from scanline.stores import RolloutSettings, RolloutStore

NUM_ENVS, NUM_STEPS = 6, 9


class BySight:
    """A fixed policy that knows nothing but the pixels: no uniforms, whatever the time."""

    version = 0
    draws_per_step = 2

    def __call__(
        self, observations: torch.Tensor, uniforms: torch.Tensor, agent_steps: int
    ) -> Acted:
        weights = torch.arange(observations[0].numel()) % 251
        return Acted((observations.long().flatten(1) * weights).sum(1) % 3, {})


def catch(**changes: Any) -> tuple[str, EngineSettings]:
    protocol = protocols.get("as-is").replace(stack=3)
    chosen = {"num_envs": NUM_ENVS, "protocol": protocol, "seed": 4, "num_workers": 0, **changes}
    return "gymnasium", EngineSettings(game="scanline/Catch-v0", **chosen)


def breakout(**changes: Any) -> tuple[str, EngineSettings]:
    """Five lives, of which four end no game; a limit that ends some."""
    protocol = protocols.get("baselines").replace(episode_limit_frames=4 * 80)
    chosen = {"num_envs": NUM_ENVS, "protocol": protocol, "seed": 4, "num_threads": 1, **changes}
    return "native", EngineSettings(game="breakout", **chosen)


def filled(**changes: Any) -> tuple[str, EngineSettings]:
    """Games of three steps, whose stacks begin with frames of NOOP steps and never grow old."""
    protocol = protocols.get("paac").replace(episode_limit_frames=4 * 3)
    chosen = {"num_envs": NUM_ENVS, "protocol": protocol, "seed": 4, "num_threads": 1, **changes}
    return "native", EngineSettings(game="qbert", **chosen)


Kind = Callable[..., tuple[str, EngineSettings]]


def sampler(kind: Kind, mode: str, reserves: int = 2, num_groups: int = 1) -> LockstepSampler:
    name, settings = kind(num_groups=num_groups)
    if mode == "inline":
        return LockstepSampler(engines.build(name, settings), seed=4)
    inner = inner_settings(settings, reserves if mode == "reserve" else 0)
    return LockstepSampler(DeferredResetEngine(engines.build(name, inner), settings), seed=4)


def collect(made: LockstepSampler, num_slots: int) -> list[Slot]:
    slots = []
    for _ in range(num_slots):
        into = Slot.allocate(made.engine.spaces, NUM_STEPS, NUM_ENVS, {})
        slots.append(made.collect(BySight(), into=into))
    return slots


Step = tuple[bytes, int, float, bool, bool, int]


def steps_of(slots: list[Slot], env: int) -> list[Step]:
    """What an environment has really played, one step after the other."""
    return [
        (
            slot.observation(t)[env].numpy().tobytes(),
            int(slot.actions[t, env]),
            float(slot.raw_reward[t, env]),
            bool(slot.terminated[t, env]),
            bool(slot.truncated[t, env]),
            int(slot.depth[t, env]),
        )
        for slot in slots
        for t in range(slot.num_steps)
        if slot.valid is None or slot.valid[t, env]
    ]


@pytest.mark.parametrize("kind", [catch, breakout, filled])
@pytest.mark.parametrize("decorrelation_agent_steps", [0, 30])
def test_held_environments_play_the_same_games_with_gaps(
    kind: Kind, decorrelation_agent_steps: int
) -> None:
    inline, hold = sampler(kind, "inline"), sampler(kind, "hold")
    runs = []
    for made in (inline, hold):
        made.reset(decorrelation_agent_steps)
        runs.append(collect(made, 24))
    gaps = 0
    for env in range(NUM_ENVS):
        whole, held = (steps_of(run, env) for run in runs)
        assert held == whole[: len(held)]
        assert any(step[3] or step[4] for step in held)
        gaps += len(whole) - len(held)
    assert gaps > 0
    same_ends = [
        sorted((e.env, e.score, e.length_agent_steps) for e in made.drain_episodes())
        for made in (inline, hold)
    ]
    assert not Counter(same_ends[1]) - Counter(same_ends[0])
    for made in (inline, hold):
        made.engine.close()


def test_after_an_end_nothing_is_played_until_the_next_slot() -> None:
    made = sampler(catch, "hold")
    made.reset()
    for slot in collect(made, 12):
        assert slot.valid is not None
        assert slot.valid[0].all()
        ended = (slot.terminated | slot.truncated).cumsum(0) > 0
        assert torch.equal(slot.valid[1:], ~ended[:-1])
        assert not slot.reward[~slot.valid].any()
        assert not slot.terminated[~slot.valid].any()
        last = slot.depth[-1][ended[-1]]
        assert len(last) == int(ended[-1].sum())


def games_of(steps: list[Step]) -> list[tuple[Step, ...]]:
    """Whole games, and the beginning of the last one left out."""
    games, current = [], []
    for step in steps:
        current.append(step)
        if step[3] or step[4]:
            games.append(tuple(current))
            current = []
    return games


@pytest.mark.parametrize("kind", [catch, breakout, filled])
def test_reserves_play_the_games_that_they_would_have_played_anyway(kind: Kind) -> None:
    name, settings = kind(num_envs=NUM_ENVS + 2)
    more = LockstepSampler(engines.build(name, settings), seed=4)
    more.reset()
    known: Counter[tuple[Step, ...]] = Counter()
    slots = []
    for _ in range(40):
        into = Slot.allocate(more.engine.spaces, NUM_STEPS, NUM_ENVS + 2, {})
        slots.append(more.collect(BySight(), into=into))
    for env in range(NUM_ENVS + 2):
        known.update(games_of(steps_of(slots, env)))
    made = sampler(kind, "reserve")
    made.reset()
    played = collect(made, 24)
    found: Counter[tuple[Step, ...]] = Counter()
    for env in range(NUM_ENVS):
        found.update(games_of(steps_of(played, env)))
    assert all(slot.valid is None or slot.valid.all() for slot in played)
    assert not found - known  # each of them, and none more often
    assert found.total() >= 2 * NUM_ENVS
    made.engine.close()
    more.engine.close()


@pytest.mark.parametrize("mode", ["hold", "reserve"])
def test_one_and_two_groups_give_equal_data(mode: str) -> None:
    one, two = sampler(catch, mode), sampler(catch, mode, num_groups=2)
    one.reset(20)
    two.reset(20)
    for first, second in zip(collect(one, 8), collect(two, 8), strict=True):
        assert_equal_slots(first, second)


@pytest.mark.parametrize("mode", ["hold", "reserve"])
@pytest.mark.parametrize("kind", [catch, breakout, filled])
def test_a_restored_sampler_continues_bit_for_bit(kind: Kind, mode: str) -> None:
    first, second = sampler(kind, mode), sampler(kind, mode)
    first.reset(10)
    for num_slots in (3, 1, 4):
        collect(first, num_slots)
        second.load(first.state())
        for mine, other in zip(collect(first, 6), collect(second, 6), strict=True):
            assert_equal_slots(mine, other)


class Observed:
    """An engine that notes whether a reset came while games were played."""

    def __init__(self, inner: Engine) -> None:
        self._inner, self.resets = inner, Counter[bool]()
        self.deferred: DeferredResetEngine | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def reset(self, *args: Any, **named: Any) -> None:
        assert self.deferred is not None
        self.resets[self.deferred._plays] += 1
        self._inner.reset(*args, **named)


@pytest.mark.parametrize(("mode", "reserves"), [("hold", 0), ("reserve", 6)])
def test_nothing_is_reset_while_others_play(mode: str, reserves: int) -> None:
    name, settings = catch()
    observed = Observed(engines.build(name, inner_settings(settings, reserves)))
    deferred = observed.deferred = DeferredResetEngine(observed, settings)  # type: ignore[arg-type]
    made = LockstepSampler(deferred, seed=4)
    made.reset()
    observed.resets.clear()
    slots = collect(made, 12)
    deferred.snapshot()  # waits for the resets of the last pause
    ended = sum(int((slot.terminated | slot.truncated).sum()) for slot in slots)
    assert observed.resets == {False: ended}
    assert ended > NUM_ENVS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("instance", [0, 1, 2, 3, 4, 99]), ("instance", [0, 0, 2, 3, 4, 5]), ("ready", [-1, 7])),
        *(("held", [6]), ("ended", [8]), ("depth", np.zeros(8, np.uint8))),
    ],
)
def test_a_snapshot_that_does_not_fit_changes_nothing(name: str, value: Any) -> None:
    made = sampler(catch, "reserve")
    made.reset()
    deferred = made.engine
    *inner, own = deferred.snapshot()
    with np.load(io.BytesIO(own)) as saved:
        forged, parts = io.BytesIO(), dict(saved)
    np.savez(forged, **{**parts, name: np.asarray(value, parts[name].dtype)})
    with pytest.raises(ValueError, match="reserves and held environments does not fit"):
        deferred.restore([*inner, forged.getvalue()])
    with pytest.raises(ValueError, match="no snapshot of an engine with reset_mode"):
        deferred.restore([*inner, b"nonsense"])
    assert deferred.snapshot()[:-1] == inner
    deferred.restore([*inner, own])


def test_an_empty_reserve_resets_at_once() -> None:
    made = sampler(catch, "reserve", reserves=1)
    made.reset()
    slots = collect(made, 20)
    ends = sum(int((slot.terminated | slot.truncated).sum()) for slot in slots)
    assert max(int((slot.terminated | slot.truncated).sum()) for slot in slots) > 1
    assert ends > 20
    assert all(slot.valid is None or slot.valid.all() for slot in slots)


def rollout(valid: torch.Tensor) -> Slot:
    made = sampler(catch, "inline")
    slot = Slot.allocate(made.engine.spaces, *valid.shape, {})
    slot.actions.copy_(torch.arange(valid.numel()).view_as(valid))
    slot.frames.random_(0, 255, generator=torch.Generator().manual_seed(1))
    slot.valid = valid
    return slot


@pytest.mark.parametrize("shuffle", ["steps", "per-env"])
@pytest.mark.parametrize("num_minibatches", [1, 2])
def test_batches_hold_every_step_that_was_played_and_no_other(
    shuffle: Any, num_minibatches: int
) -> None:
    valid = torch.tensor([[1, 1, 1], [1, 0, 1], [1, 0, 1], [0, 0, 1]], dtype=torch.bool)
    slot = rollout(valid)
    settings = RolloutSettings(epochs=2, num_minibatches=num_minibatches, shuffle=shuffle)
    store = RolloutStore(slot, settings, seed=0)
    store.put(Experience(slot, {"returns": slot.actions.float()}))
    batches = list(store.batches())
    assert len(batches) == 2 * num_minibatches
    assert max(len(b.actions) for b in batches) - min(len(b.actions) for b in batches) <= 1
    for epoch in (batches[:num_minibatches], batches[num_minibatches:]):
        actions = torch.cat([batch.actions for batch in epoch])
        assert sorted(actions.tolist()) == slot.actions[valid].tolist()
        for batch in epoch:
            assert torch.equal(batch.columns["returns"], batch.actions.float())
            assert torch.equal(batch.observations, slot.observations()[batch.actions])


def test_statistics_are_over_what_was_played() -> None:
    valid = torch.tensor([[1, 1, 1], [1, 0, 1]], dtype=torch.bool)
    slot = rollout(valid)
    frames = slot.frames[slot.stack :][valid].double()
    state = pixels.counted(pixels.initial(sampler(catch, "inline").engine.spaces), slot)
    assert state["pixel_count"] == 5
    assert torch.equal(state["pixel_sum"], frames.sum(0))
    assert torch.equal(state["pixel_square"], frames.square().sum(0))
    advantage = torch.tensor([[1.0, 2.0, 3.0], [4.0, 999.0, 5.0]])
    counted = ppo.normalised(advantage, valid.flatten().nonzero().squeeze(-1))[valid]
    np.testing.assert_allclose(counted.mean(), 0.0, atol=1e-6)
    np.testing.assert_allclose(counted.std(), 1.0, rtol=1e-6)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="only a rollout can leave out"):
        find("accelerated-dqn").replace(reset_mode="hold")
    with pytest.raises(ValueError, match="only a rollout can leave out"):
        find("cule-vtrace").replace(reset_mode="hold")
    with pytest.raises(ValueError, match="needs a pause"):
        find("fast-dqn").replace(reset_mode="reserve")
    with pytest.raises(ValueError, match="num_reserves=0"):
        SamplingSettings(reset_mode="reserve", num_reserves=0)
