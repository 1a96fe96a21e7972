"""V-trace against slow definitions, and against A2C where they must agree."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch.testing import assert_close

from algorithms.tiny import Tiny, filled_slot
from scanline.algorithms import ActorCritic, Vtrace
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.records import ActContext, Batch, Experience, PolicyValue, Slot, Views
from scanline.stores import RolloutSettings, RolloutStore, WindowSettings, WindowStore
from updating import apply_at


def batch_of(slot: Slot) -> Batch:
    return Batch(
        observations=slot.states(),
        actions=slot.actions.flatten(),
        columns={},
        agent_steps=0,
        update=0,
        slot=slot,
    )


def slot_with_ends() -> Slot:
    slot = filled_slot(("log_probability",), num_steps=6, num_envs=3)
    slot.columns["log_probability"].copy_(-0.3 - slot.columns["log_probability"].abs())
    slot.terminated[2, 0] = True
    slot.truncated[3, 1] = True
    random = torch.Generator().manual_seed(5)
    slot.finals.append(3, torch.tensor([1]), torch.randn(1, 6, generator=random)[None])
    return slot


def loss_by_definition(algorithm: Vtrace, network: Tiny, slot: Slot) -> float:
    """One environment and step at a time: v_t = V_t + sum of discounted, traced deltas."""
    num_steps, num_envs = slot.actions.shape
    with torch.no_grad():
        out = [network(slot.observation(t)) for t in range(num_steps + 1)]
        final = float(network(slot.finals.frames[:1]).value[0])
    total = 0.0
    for b in range(num_envs):
        value = [float(out[t].value[b]) for t in range(num_steps + 1)]
        logs = [torch.log_softmax(out[t].logits[b].double(), -1).tolist() for t in range(num_steps)]
        taken = [logs[t][int(slot.actions[t, b])] for t in range(num_steps)]
        ratio = [
            math.exp(taken[t] - float(slot.columns["log_probability"][t, b]))
            for t in range(num_steps)
        ]

        def after(t: int, following: float, b: int = b) -> float:
            if slot.terminated[t, b]:
                return 0.0
            return final if slot.truncated[t, b] else following

        def target(t: int, b: int = b, value=value, ratio=ratio, after=after) -> float:
            if t == num_steps:
                return value[t]
            found, weight = value[t], 1.0
            for k in range(t, num_steps):
                rho = min(algorithm.rho_clip, ratio[k])
                bootstrap = algorithm.discount * after(k, value[k + 1])
                delta = rho * (float(slot.reward[k, b]) + bootstrap - value[k])
                found += weight * delta
                if slot.terminated[k, b] or slot.truncated[k, b]:
                    break
                weight *= algorithm.discount * min(algorithm.c_clip, ratio[k])
            return found

        for t in range(num_steps):
            future = algorithm.discount * after(t, target(t + 1))
            advantage = float(slot.reward[t, b]) + future - value[t]
            total -= min(algorithm.rho_clip, ratio[t]) * advantage * taken[t]
            total += algorithm.value_coef * (target(t) - value[t]) ** 2
            total += algorithm.entropy_coef * sum(math.exp(log) * log for log in logs[t])
    return total / (num_steps * num_envs)


@pytest.mark.parametrize(
    "algorithm", [Vtrace(discount=0.9), Vtrace(rho_clip=1.6, c_clip=0.7, entropy_coef=0.3)]
)
def test_loss_equals_its_definition(algorithm: Vtrace) -> None:
    network, slot = Tiny(), slot_with_ends()
    got = algorithm.loss(Views(live=network), batch_of(slot)).losses["all"].detach()
    assert float(got) == pytest.approx(loss_by_definition(algorithm, network, slot), rel=1e-5)


def test_targets_send_no_gradient() -> None:
    """The value after the last step is a bootstrap only: its observation earns no gradient."""
    network, slot = Tiny(), slot_with_ends()
    observations = slot.states().clone().requires_grad_()
    batch = Batch(observations, slot.actions.flatten(), {}, 0, 0, slot=slot)
    Vtrace().loss(Views(live=network), batch).losses["all"].backward()
    assert observations.grad is not None
    assert not observations.grad[-3:].any()
    assert observations.grad[:-3].flatten(1).any(1).all()


def test_what_acted_is_stored_away_from_0_and_1() -> None:
    logits = torch.tensor([[0.0, 40.0, 0.0], [1.0, 2.0, 3.0]])
    context = ActContext(Views(live=Tiny()), torch.tensor([[0.5, 0.0], [0.0, 0.0]]), 0)
    acted = Vtrace().act(PolicyValue(logits, torch.zeros(2)), context)
    assert acted.actions.tolist() == [1, 0]
    stored = acted.columns["log_probability"].exp()
    assert float(stored[0]) == pytest.approx(1 - 1e-5, abs=1e-7)
    assert float(stored[1]) == pytest.approx(float(torch.softmax(logits[1], -1)[0]), rel=1e-5)


def updated(network: Tiny, algorithm: ActorCritic | Vtrace, store, slot: Slot) -> Tiny:
    """One update of a copy of the network, through a real store."""
    local = LocalParameters(copy.deepcopy(network), OptimiserSettings(), max_grad_norm=0.5)
    into = store.slot()
    for name in ("frames", "depth", "actions", "reward", "terminated", "truncated"):
        getattr(into, name).copy_(getattr(slot, name))
    into.finals.extend(slot.finals)
    for name, column in into.columns.items():
        column.copy_(slot.columns[name])
    with torch.no_grad():
        prepared = algorithm.prepare(local.views, into)
    store.put(Experience(into, prepared.columns))
    (batch,) = store.batches()
    apply_at(local, algorithm.loss(local.views, batch).losses, 0.01)
    return local.network


def test_a_window_of_one_block_and_one_rollout_is_a2c_s_update_when_nothing_has_changed() -> None:
    """(E, 1, N, N): the policy that acted is the one that learns, so all ratios are 1."""
    network, slot = Tiny(), slot_with_ends()
    with torch.no_grad():
        logs = torch.log_softmax(network(slot.observations()).logits, -1)
    taken = logs.gather(-1, slot.actions.flatten()[:, None]).view_as(slot.actions)
    slot.columns["log_probability"].copy_(taken)
    settings = WindowSettings(window_agent_steps=6, num_blocks=1)
    columns = dict.fromkeys(slot.columns, slot.columns["log_probability"])
    arrays = filled_slot(tuple(columns), num_steps=12, num_envs=3)
    window = WindowStore(arrays, settings, rollout_agent_steps=6)
    rollout = RolloutStore(copy.deepcopy(slot), RolloutSettings(), seed=0)
    mine = updated(network, Vtrace(), window, slot)
    other = updated(network, ActorCritic(), rollout, slot)
    for got, expected, before in zip(
        mine.parameters(), other.parameters(), network.parameters(), strict=True
    ):
        assert_close(got, expected, rtol=1e-5, atol=1e-6)
        assert not torch.equal(got, before)


def test_a_sum_is_the_mean_times_the_number_of_steps() -> None:
    network, slot = Tiny(), slot_with_ends()
    mean, total = (
        Vtrace(reduction=each).loss(Views(network), batch_of(slot)).losses["all"]
        for each in ("mean", "sum")
    )
    assert_close(total, mean * slot.actions.numel())


def test_impossible_settings_are_refused() -> None:
    for wrong in ({"discount": 2.0}, {"c_clip": 1.5}, {"least_probability": 0.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Vtrace(**wrong)
