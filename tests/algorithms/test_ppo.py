"""PPO against slow definitions and against Stable-Baselines3's PPO."""

from __future__ import annotations

import copy
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from torch.testing import assert_close

from algorithms.tiny import LikeSb3, Nothing, Tiny, filled_slot
from scanline.algorithms import Ppo
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.random import Choice
from scanline.records import ActContext, Batch, PolicyValue, Views
from updating import apply_at

NAMES = ("advantage", "returns", "value", "log_probability")


def random_batch(num: int = 40, seed: int = 1) -> Batch:
    random = torch.Generator().manual_seed(seed)
    columns = {name: torch.randn(num, generator=random) for name in NAMES}
    columns["log_probability"] = -0.5 - columns["log_probability"].abs()
    return Batch(
        observations=torch.randn(num, 1, 6, generator=random),
        actions=torch.randint(0, 3, (num,), generator=random),
        columns=columns,
        agent_steps=0,
        update=0,
    )


def log_softmax(logits: list[float]) -> list[float]:
    total = math.log(sum(math.exp(logit) for logit in logits))
    return [logit - total for logit in logits]


def loss_by_definition(algorithm: Ppo, network: Tiny, batch: Batch) -> float:
    """One sample at a time, with Python's floats."""
    num, clip, total = len(batch.actions), algorithm.clip_coef, 0.0
    column = {name: batch.columns[name].tolist() for name in NAMES}
    advantages = column["advantage"]
    if algorithm.normalise_advantages == "minibatch":
        mean, deviation = statistics.mean(advantages), statistics.stdev(advantages)
        advantages = [(a - mean) / (deviation + 1e-8) for a in advantages]
    for n in range(num):
        with torch.no_grad():
            out = network(batch.observations[n : n + 1])
        logs = log_softmax(out.logits[0].tolist())
        ratio = math.exp(logs[int(batch.actions[n])] - column["log_probability"][n])
        clipped = min(max(ratio, 1 - clip), 1 + clip)
        total -= min(ratio * advantages[n], clipped * advantages[n])
        value, target, stored = float(out.value[0]), column["returns"][n], column["value"][n]
        error = (value - target) ** 2
        if algorithm.clip_value_loss:
            near = stored + min(max(value - stored, -clip), clip)
            error = max(error, (near - target) ** 2)
        entropy = -sum(math.exp(log) * log for log in logs)
        total += algorithm.value_coef * error - algorithm.entropy_coef * entropy
    return total / num


@pytest.mark.parametrize(
    "algorithm",
    [
        Ppo(),
        Ppo(normalise_advantages="none", clip_coef=0.3, value_coef=1.0),
        Ppo(normalise_advantages="rollout", entropy_coef=0.5),
        Ppo(clip_value_loss=True),
    ],
)
def test_loss_equals_its_definition(algorithm: Ppo) -> None:
    network, batch = Tiny(), random_batch()
    with torch.no_grad():
        got = float(algorithm.loss(Views(live=network), batch).losses["all"])
    assert got == pytest.approx(loss_by_definition(algorithm, network, batch), rel=1e-5)


@pytest.mark.parametrize(
    ("ratio", "advantage", "moves"),
    [(1.3, 1.0, False), (1.3, -1.0, True), (0.7, 1.0, True), (0.7, -1.0, False), (1.1, 1.0, True)],
)
def test_beyond_the_clip_only_the_way_back_earns_gradient(
    ratio: float, advantage: float, moves: bool
) -> None:
    network, batch = Tiny(), random_batch(num=1)
    with torch.no_grad():
        logits = network(batch.observations).logits
    now = torch.log_softmax(logits, -1)[0, batch.actions]
    columns = {
        **batch.columns,
        "log_probability": now - math.log(ratio),
        "advantage": torch.tensor([advantage]),
    }
    algorithm = Ppo(clip_coef=0.2, value_coef=0.0, entropy_coef=0.0, normalise_advantages="none")
    result = algorithm.loss(Views(live=network), replace(batch, columns=columns))
    result.losses["all"].backward()
    assert bool(network.policy.weight.grad.any()) == moves
    assert float(result.metrics["losses/clipfrac"]) == float(abs(ratio - 1) > 0.2)
    expected_kl = ratio - 1 - math.log(ratio)
    assert float(result.metrics["losses/approx_kl"]) == pytest.approx(expected_kl, rel=1e-4)


def advantages_by_definition(algorithm: Ppo, slot, bootstrap, final) -> torch.Tensor:
    """sum over k of (discount lambda)^k delta_{t+k}, cut at every end."""
    num_steps, num_envs = slot.actions.shape
    found = torch.zeros(num_steps, num_envs)
    for b in range(num_envs):
        for t in range(num_steps):
            weight = 1.0
            for k in range(t, num_steps):
                following = slot.columns["value"][k + 1, b] if k + 1 < num_steps else bootstrap[b]
                if slot.truncated[k, b]:
                    following = final
                elif slot.terminated[k, b]:
                    following = torch.tensor(0.0)
                delta = slot.reward[k, b] + algorithm.discount * following
                found[t, b] += weight * (delta - slot.columns["value"][k, b])
                weight *= algorithm.discount * algorithm.gae_lambda
                if slot.truncated[k, b] or slot.terminated[k, b]:
                    break
    return found


@pytest.mark.parametrize("normalise", ["minibatch", "rollout"])
def test_prepare_uses_stored_values_and_true_bootstraps(normalise: str) -> None:
    network, slot = Tiny(), filled_slot(("log_probability", "value"))
    last = torch.randn(1, 6)
    slot.truncated[2, 1] = True
    slot.finals.append(2, torch.tensor([1]), last[None])
    slot.terminated[1, 0] = True
    algorithm = Ppo(discount=0.9, gae_lambda=0.8, normalise_advantages=normalise)
    with torch.no_grad():
        got = algorithm.prepare(Views(live=network), slot).columns
        bootstrap, final = network(slot.observation(5)).value, network(last[None]).value[0]
    expected = advantages_by_definition(algorithm, slot, bootstrap, final)
    assert_close(got["returns"], expected + slot.columns["value"])
    if normalise == "rollout":
        expected = (expected - expected.mean()) / (expected.std() + 1e-8)
    assert_close(got["advantage"], expected)


def test_act_stores_the_log_probability_of_the_action_and_the_value() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, -1.0]])
    outputs = PolicyValue(logits, torch.tensor([0.25, -4.0]))
    for greedy in (False, True):
        uniforms = torch.tensor([[0.05, 0.0], [0.999, 0.0]])
        context = ActContext(Views(live=Tiny()), uniforms, 0, Choice(greedy=greedy))
        acted = Ppo().act(outputs, context)
        assert acted.actions.tolist() == ([2, 0] if greedy else [0, 2])
        for n, action in enumerate(acted.actions.tolist()):
            expected = log_softmax(logits[n].tolist())[action]
            assert float(acted.columns["log_probability"][n]) == pytest.approx(expected)
        assert torch.equal(acted.columns["value"], outputs.value)


def test_an_annealed_clip_spans_the_run_unless_told_otherwise() -> None:
    annealed = Ppo(clip_coef=0.2, clip_anneal="linear")
    assert annealed.spanning(1_000).clip_at(250) == pytest.approx(0.15)
    own = replace(annealed, clip_anneal_agent_steps=500).spanning(1_000)
    assert own.clip_at(250) == pytest.approx(0.1)
    assert own.clip_at(2_000) == 0.0
    assert Ppo(clip_coef=0.2).spanning(1_000).clip_at(900) == 0.2


def test_impossible_settings_are_refused() -> None:
    for wrong in ({"gae_lambda": 1.5}, {"clip_coef": 0.0}, {"clip_anneal_agent_steps": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Ppo(**wrong)


def test_ten_updates_equal_those_of_stable_baselines3() -> None:
    """From equal weights and batches; SB3's minibatch is the whole, shuffled: sums differ only in
    their order. SB3 has no value loss of CleanRL's clipped form, so that stays off."""
    num = 32
    theirs = PPO(
        "MlpPolicy",
        Nothing(),
        seed=0,
        device="cpu",
        n_steps=num,
        batch_size=num,
        n_epochs=1,
        clip_range=0.1,
        ent_coef=0.01,
        learning_rate=1e-3,
    )
    network = LikeSb3(copy.deepcopy(theirs.policy))
    optimiser = OptimiserSettings(kind="adam", epsilon=1e-5)
    ours = LocalParameters(network, optimiser, max_grad_norm=0.5)
    theirs._setup_learn(total_timesteps=100)
    for seed in range(10):
        batch = random_batch(num, seed)
        fill(theirs.rollout_buffer, batch)
        theirs.train()
        result = Ppo(value_coef=0.5).loss(ours.views, batch)
        apply_at(ours, result.losses, 1e-3)
    for mine, other in zip(network.policy.parameters(), theirs.policy.parameters(), strict=True):
        assert_close(mine, other, rtol=0, atol=1e-6)


def fill(buffer, batch: Batch) -> None:
    """Puts our batch into SB3's rollout buffer."""
    buffer.reset()
    buffer.observations[:, 0] = batch.observations[:, 0].numpy()
    buffer.actions[:, 0, 0] = batch.actions.numpy()
    buffer.values[:, 0] = batch.columns["value"].numpy()
    buffer.log_probs[:, 0] = batch.columns["log_probability"].numpy()
    buffer.returns[:, 0] = batch.columns["returns"].numpy()
    buffer.advantages[:, 0] = batch.columns["advantage"].numpy()
    buffer.full, buffer.pos = True, len(batch.actions)
    assert isinstance(buffer.values, np.ndarray)
