"""Losses along sequences, beside a slow definition: one environment and one step at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from scanline import networks, returns
from scanline.algorithms import ActorCritic, Ppo, Vtrace, trajectory_of
from scanline.carried import Carried, columns_of
from scanline.records import Batch, Column, Experience, Slot, Spaces, Views
from scanline.stores import RolloutSettings, RolloutStore, WindowSettings, WindowStore

SPACES = Spaces(frame_shape=(6,), frame_dtype="float32", stack=1, num_actions=3)
NUM_STEPS, NUM_ENVS = 6, 4
PPO = Ppo(normalise_advantages="none", clip_value_loss=True)


def network_of(seed: int = 0) -> Any:
    network = networks.build("mlp-lstm", SPACES, "policy-value", seed=seed)
    with torch.no_grad():  # so that actions differ
        network.head.policy.weight.mul_(100)
    return network


def filled(network: Any, columns: tuple[str, ...] = (), num_steps: int = NUM_STEPS) -> Slot:
    """Random steps with ends of all kinds, and states as the network gives them while acting."""
    stored = {name: Column() for name in columns}
    slot = Slot.allocate(SPACES, num_steps, NUM_ENVS, stored, columns_of(network))
    fill(slot, network, seed=2)
    return slot


def fill(slot: Slot, network: Any, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    for array in (slot.frames, slot.reward, *slot.columns.values()):
        array.copy_(torch.randn(array.shape, generator=random))
    slot.actions.random_(3, generator=random)
    slot.terminated.copy_(torch.rand(slot.reward.shape, generator=random) < 0.2)
    slot.truncated.copy_((torch.rand(slot.reward.shape, generator=random) < 0.2) & ~slot.terminated)
    slot.finals.clear()
    for t, env in slot.truncated.nonzero().tolist():
        last = torch.randn((1, 1, 6), generator=random)
        slot.finals.append(t, torch.tensor([env]), last)
    act(slot, network)


def act(slot: Slot, network: Any) -> None:
    """The states that acting gives from the slot's first one on."""
    for t in range(slot.num_steps):
        with torch.no_grad():
            _, after = network(slot.observation(t), slot.carried_at(t))
        for name, state in slot.carried.items():
            state[t + 1] = torch.where(slot.ends()[t][:, None], 0.0, after[name])


def slow_outputs(network: Any, slot: Slot, env: int, num_steps: int) -> Any:
    """Logits [T, A] and values [T] of one environment, from its first state, step by step."""
    state = {name: each[0, env : env + 1] for name, each in slot.carried.items()}
    found = []
    for t in range(num_steps):
        if t and slot.ends()[t - 1, env]:
            state = {name: torch.zeros_like(each) for name, each in state.items()}
        rows, state = slow_step(network, slot.observation(t)[env : env + 1], state)
        found.append(network.head(rows))
    return torch.cat([f.logits for f in found]), torch.cat([f.value for f in found])


def slow_step(network: Any, observation: Tensor, state: Any) -> tuple[Tensor, Any]:
    """PyTorch's cell, with its own graph."""
    memory = network.memory
    hidden, cell = torch.lstm_cell(
        network.stream(network.trunk(observation)),
        (state["hidden"], state["cell"]),
        *(memory.inputs.weight, memory.state.weight, memory.inputs.bias, memory.state.bias),
    )
    return hidden, {"hidden": hidden, "cell": cell}


def gradient_of(network: Any, loss: Tensor) -> dict[str, Tensor]:
    network.zero_grad()
    loss.backward()
    return {name: each.grad.clone() for name, each in network.named_parameters()}


def assert_same(mine: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    for name, each in mine.items():
        torch.testing.assert_close(each, other[name], atol=1e-6, rtol=1e-4, msg=name)


def ppo_batches(num_minibatches: int) -> tuple[Any, Slot, list[Batch]]:
    network = network_of()
    slot = filled(network, ("log_probability", "value"))
    settings = RolloutSettings(num_minibatches=num_minibatches, shuffle="envs")
    store = RolloutStore(slot, settings, seed=0)
    store.put(PPO.prepare(Views(network), slot))
    return network, slot, list(store.batches())


def slow_ppo(network: Any, slot: Slot) -> Tensor:
    """The loss over all environments from PPO's definition."""
    columns = PPO.prepare(Views(network), slot).columns
    losses = []
    for env in range(NUM_ENVS):
        logits, values = slow_outputs(network, slot, env, NUM_STEPS)
        for t in range(NUM_STEPS):
            log_all = torch.log_softmax(logits[t], -1)
            ratio = (log_all[slot.actions[t, env]] - slot.columns["log_probability"][t, env]).exp()
            advantage, target = columns["advantage"][t, env], columns["returns"][t, env]
            stored = slot.columns["value"][t, env]
            policy = -torch.minimum(advantage * ratio, advantage * ratio.clamp(0.9, 1.1))
            near = stored + (values[t] - stored).clamp(-0.1, 0.1)
            value = torch.maximum((values[t] - target) ** 2, (near - target) ** 2)
            entropy = -(log_all.exp() * log_all).sum()
            losses.append(policy - 0.01 * entropy + 0.5 * value)
    return torch.stack(losses).mean()


def test_the_loss_along_sequences_is_the_slow_definitions() -> None:
    network, slot, (batch,) = ppo_batches(1)
    found, expected = PPO.loss(Views(network), batch).losses["all"], slow_ppo(network, slot)
    torch.testing.assert_close(found, expected)
    assert_same(gradient_of(network, found), gradient_of(network, expected))


def test_minibatches_of_environments_add_up_to_the_whole_rollout() -> None:
    network, _, parts = ppo_batches(4)
    (whole,) = ppo_batches(1)[2]
    assert all(part.sequences.num_whole == 1 for part in parts)
    losses = [PPO.loss(Views(network), batch).losses["all"] for batch in (whole, *parts)]
    assert_same(
        gradient_of(network, losses[0]), gradient_of(network, torch.stack(losses[1:]).mean())
    )


def test_bootstraps_come_from_what_is_carried_out_of_the_last_steps() -> None:
    network = network_of()
    slot = filled(network)
    assert slot.finals.count
    with torch.no_grad():
        found = trajectory_of(PPO, Views(network), slot)
        for env in range(NUM_ENVS):
            carried = Carried({n: each[-1, env : env + 1] for n, each in slot.carried.items()})
            value = network(slot.observation(NUM_STEPS)[env : env + 1], carried)[0].value
            torch.testing.assert_close(found.last_value[env : env + 1], value)
        finals = slot.finals
        for t, env, last in zip(finals.steps, finals.envs, finals.frames, strict=True):
            before = {n: each[t, env][None] for n, each in slot.carried.items()}
            _, after = slow_step(network, slot.observation(int(t))[env][None], before)
            value = network.head(slow_step(network, last[None], after)[0]).value
            torch.testing.assert_close(found.final_value[t, env][None], value)


def test_advantages_of_actor_critic_need_values_along_the_rollout() -> None:
    network = network_of()
    slot, algorithm = filled(network), ActorCritic(gae_lambda=0.9)
    with torch.no_grad():
        found = algorithm.prepare(Views(network), slot).columns["returns"]
        value = torch.stack(
            [slow_outputs(network, slot, env, NUM_STEPS)[1] for env in range(NUM_ENVS)], 1
        )
        trajectory = trajectory_of(algorithm, Views(network), slot)
        expected = returns.gae(trajectory, value, 0.99, 0.9) + value
    torch.testing.assert_close(found, expected)


def test_vtrace_runs_along_a_window_from_the_state_before_it() -> None:
    """The states in the window are older weights'; only the first of them is used."""
    old, network, algorithm = network_of(1), network_of(2), Vtrace()
    columns = {"log_probability": Column()}
    arrays = Slot.allocate(SPACES, 12, NUM_ENVS, columns, columns_of(old))
    store = WindowStore(arrays, WindowSettings(window_agent_steps=6, num_blocks=2), 3)
    state = None
    for seed in range(7):  # around the end of the arrays
        slot = store.slot()
        if state is not None:
            for name, each in slot.carried.items():
                each[0] = state[name]
        fill(slot, old, seed)
        state = {name: each[-1].clone() for name, each in slot.carried.items()}
        store.put(Experience(slot))
        batches = list(store.batches())
    (batch,) = batches
    block = batch.slot
    assert block is not None and block.num_steps == 6
    found = algorithm.loss(Views(network), batch).losses["all"]

    class ByHand(torch.nn.Module):
        """The outputs of all states, as a network without memory would give them."""

        def forward(self, observations: Tensor) -> Any:
            rows = [slow_outputs(network, block, env, 7) for env in range(2)]
            logits = torch.stack([each[0] for each in rows], 1).flatten(0, 1)
            kind = type(network.head(torch.zeros(1, 128)))
            return kind(logits, torch.stack([each[1] for each in rows], 1).flatten())

    plain = dataclasses.replace(batch, sequences=None, slot=dataclasses.replace(block))
    final = trajectory_of(algorithm, Views(network), block).final_value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scanline.algorithms.interface.final_values", lambda *_: final)
        expected = algorithm.loss(Views(ByHand()), plain).losses["all"]
    torch.testing.assert_close(found, expected)
    assert_same(gradient_of(network, found), gradient_of(network, expected))
