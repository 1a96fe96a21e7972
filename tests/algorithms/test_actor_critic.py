"""Actor-critic against slow definitions and against Stable-Baselines3's A2C."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from torch.testing import assert_close

from algorithms.tiny import LikeSb3, Nothing, Tiny, filled_slot
from scanline.algorithms import ActorCritic
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.records import ActContext, Batch, PolicyValue, Views
from updating import apply_at


def random_batch(num: int = 40) -> Batch:
    random = torch.Generator().manual_seed(1)
    return Batch(
        observations=torch.randn(num, 1, 6, generator=random),
        actions=torch.randint(0, 3, (num,), generator=random),
        columns={"returns": torch.randn(num, generator=random)},
        agent_steps=0,
        update=0,
    )


def loss_by_definition(algorithm: ActorCritic, network: Tiny, batch: Batch) -> float:
    """One sample at a time, with Python's floats."""
    total = 0.0
    for n in range(len(batch.actions)):
        with torch.no_grad():
            out = network(batch.observations[n : n + 1])
        raw = [math.exp(float(logit)) for logit in out.logits[0]]
        smoothed = [value / sum(raw) + algorithm.min_policy for value in raw]
        probabilities = [value / sum(smoothed) for value in smoothed]
        if algorithm.log_form in ("exact", "plain"):
            logs = [math.log(p) for p in probabilities]
        elif algorithm.log_form == "added":
            logs = [math.log(p + algorithm.log_epsilon) for p in probabilities]
        else:
            logs = [math.log(max(p, algorithm.log_epsilon)) for p in probabilities]
        error = float(batch.columns["returns"][n]) - float(out.value[0])
        entropy = -sum(p * log for p, log in zip(probabilities, logs, strict=True))
        total += -logs[int(batch.actions[n])] * error
        total += algorithm.value_coef * error**2 - algorithm.entropy_coef * entropy
    return algorithm.loss_scale * (total if algorithm.reduction == "sum" else total / 40)


@pytest.mark.parametrize(
    "algorithm",
    [
        ActorCritic(),
        ActorCritic(value_coef=0.25, loss_scale=5.0, log_form="added", log_epsilon=0.01),
        ActorCritic(reduction="sum", log_form="floor", log_epsilon=0.4),
        ActorCritic(log_form="plain"),
        ActorCritic(min_policy=0.2),
        ActorCritic(min_policy=0.2, log_form="floor", log_epsilon=0.3),
    ],
)
def test_loss_equals_its_definition(algorithm: ActorCritic) -> None:
    network, batch = Tiny(), random_batch()
    with torch.no_grad():
        got = float(algorithm.loss(Views(live=network), batch).losses["all"])
    assert got == pytest.approx(loss_by_definition(algorithm, network, batch), rel=1e-5)


@pytest.mark.parametrize("algorithm", [ActorCritic(), ActorCritic(reduction="sum", loss_scale=0.3)])
def test_one_native_call_equals_the_operations(algorithm: ActorCritic) -> None:
    """Doubles are left to operations."""
    network, batch = Tiny(), random_batch()
    plain = copy.deepcopy(network).double()
    columns = {"returns": batch.columns["returns"].double()}
    doubles = replace(batch, observations=batch.observations.double(), columns=columns)
    found, expected = (
        algorithm.loss(Views(live=each), given)
        for each, given in ((network, batch), (plain, doubles))
    )
    for each in (found, expected):
        (2 * each.losses["all"]).backward()
    assert found.metrics.keys() == expected.metrics.keys()
    for name, value in found.metrics.items():
        # A difference from 1, so exact to that.
        least = 1e-6 if name == "losses/explained_variance" else None
        assert float(value) == pytest.approx(float(expected.metrics[name]), rel=1e-6, abs=least)
    for mine, theirs in zip(network.parameters(), plain.parameters(), strict=True):
        assert_close(mine.grad.double(), theirs.grad, rtol=1e-5, atol=1e-6)


def test_actions_of_another_type_are_left_to_operations() -> None:
    batch = random_batch()
    outputs = Tiny()(batch.observations)
    assert ActorCritic().native_terms(outputs, batch) is not None
    assert ActorCritic().native_terms(outputs, replace(batch, actions=batch.actions.int())) is None


def test_actions_that_do_not_exist_are_refused() -> None:
    batch = replace(random_batch(), actions=torch.full((40,), 3))
    with pytest.raises(ValueError, match="none of those"):
        ActorCritic().loss(Views(live=Tiny()), batch)


def test_a_smoothed_policy_acts_as_it_learns() -> None:
    """GA3C's minimum policy: with so much of it every action is as likely as any other."""
    logits = torch.tensor([[50.0, 0.0, 0.0, 0.0]]).expand(4_000, 4)
    random = torch.Generator().manual_seed(0)
    context = ActContext(
        views=Views(live=Tiny()), uniforms=torch.rand(4_000, 2, generator=random), agent_steps=0
    )
    outputs = PolicyValue(logits=logits, value=torch.zeros(4_000))
    for min_policy, share in ((0.0, 1.0), (0.1, 1.1 / 1.4), (100.0, 0.25)):
        acted = ActorCritic(min_policy=min_policy).act(outputs, context)
        assert float((acted.actions == 0).float().mean()) == pytest.approx(share, abs=0.03)
    with pytest.raises(ValueError, match="min_policy=-1"):
        ActorCritic(min_policy=-1)


def test_separate_losses_are_the_parts_of_the_whole_and_reach_all_weights() -> None:
    network, batch = Tiny(), random_batch()
    whole = ActorCritic(reduction="sum").loss(Views(live=network), batch).losses["all"]
    parts = ActorCritic(reduction="sum", separate_losses=True)
    losses = parts.loss(Views(live=network), batch).losses
    assert tuple(losses) == parts.losses == ("policy", "value")
    assert_close(losses["policy"] + losses["value"], whole)


def test_the_advantage_sends_no_gradient_into_the_policy_loss() -> None:
    network, batch = Tiny(), random_batch()
    algorithm = ActorCritic(value_coef=0.0, entropy_coef=0.0)
    algorithm.loss(Views(live=network), batch).losses["all"].backward()
    assert network.value.weight.grad is None or not network.value.weight.grad.any()


def test_a_truncated_step_bootstraps_from_its_true_last_observation() -> None:
    network, slot = Tiny(), filled_slot()
    last = torch.randn(1, 6)
    slot.truncated[2, 1] = True
    slot.finals.append(2, torch.tensor([1]), last[None])
    with torch.no_grad():
        got = ActorCritic(discount=0.5).prepare(Views(live=network), slot).columns["returns"]
        value = network(last[None]).value[0]
    assert_close(got[2, 1], slot.reward[2, 1] + 0.5 * value)
    assert_close(got[1, 1], slot.reward[1, 1] + 0.5 * got[2, 1])


def test_a_lost_life_cuts_the_return_only_where_the_protocol_says_so() -> None:
    network, slot = Tiny(), filled_slot()
    slot.life_lost[3, 0] = True
    with torch.no_grad():
        kept = ActorCritic().prepare(Views(live=network), slot).columns["returns"]
        slot.life_loss_ends_return = True
        cut = ActorCritic().prepare(Views(live=network), slot).columns["returns"]
    assert_close(cut[3, 0], slot.reward[3, 0])
    assert not torch.equal(kept[3, 0], cut[3, 0])
    assert_close(kept[:, 1], cut[:, 1])


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="must lie in"):
        ActorCritic(discount=1.5)
    with pytest.raises(ValueError, match="does not go with"):
        ActorCritic(log_form="added")
    with pytest.raises(ValueError, match="does not go with"):
        ActorCritic(log_form="plain", log_epsilon=1e-6)


@pytest.mark.parametrize(
    ("form", "epsilon", "is_finite"),
    [("plain", 0.0, False), ("exact", 0.0, True), ("added", 1e-6, True), ("floor", 1e-6, True)],
)
def test_only_the_plain_logarithm_is_infinite_where_a_probability_is_0(
    form: Any, epsilon: float, is_finite: bool
) -> None:
    network, batch = Tiny(), random_batch()
    with torch.no_grad():
        network.policy.bias.copy_(torch.tensor([200.0, 0.0, 0.0]))
    algorithm = ActorCritic(log_form=form, log_epsilon=epsilon)
    loss = algorithm.loss(Views(live=network), batch).losses["all"]
    assert bool(torch.isfinite(loss)) == is_finite


@pytest.mark.parametrize("like_tensorflow", [False, True])
def test_ten_updates_equal_those_of_stable_baselines3(like_tensorflow: bool) -> None:
    """From equal weights and batches, with PyTorch's RMSProp and with SB3's TensorFlow form."""
    kind = {"optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"alpha": 0.99, "eps": 1e-5}}
    theirs = A2C(
        "MlpPolicy",
        Nothing(),
        seed=0,
        device="cpu",
        n_steps=5,
        ent_coef=0.01,
        use_rms_prop=not like_tensorflow,
        policy_kwargs=kind if like_tensorflow else {},
    )
    network = LikeSb3(copy.deepcopy(theirs.policy))
    optimiser = OptimiserSettings(
        kind="rmsprop",
        decay=0.99,
        epsilon=1e-5,
        epsilon_inside_root=like_tensorflow,
        square_starts_at=float(like_tensorflow),
    )
    ours = LocalParameters(network, optimiser, max_grad_norm=0.5)
    theirs._setup_learn(total_timesteps=100)
    random = np.random.default_rng(3)
    for _ in range(10):
        batch = random_batch_from(random)
        fill(theirs.rollout_buffer, batch, theirs.policy)
        theirs.train()
        result = ActorCritic(value_coef=0.5).loss(ours.views, batch)
        apply_at(ours, result.losses, 7e-4)
    for mine, other in zip(network.policy.parameters(), theirs.policy.parameters(), strict=True):
        assert_close(mine, other, rtol=0, atol=1e-6)


def random_batch_from(random: np.random.Generator) -> Batch:
    return Batch(
        observations=torch.as_tensor(random.normal(size=(5, 1, 6)), dtype=torch.float32),
        actions=torch.as_tensor(random.integers(0, 3, 5)),
        columns={"returns": torch.as_tensor(random.normal(size=5), dtype=torch.float32)},
        agent_steps=0,
        update=0,
    )


def fill(buffer, batch: Batch, policy) -> None:
    """Puts our batch into SB3's rollout buffer; its advantage is returns less present values."""
    buffer.reset()
    observations = batch.observations[:, 0]
    with torch.no_grad():
        values, log_probability, _ = policy.evaluate_actions(observations, batch.actions)
    buffer.observations[:, 0] = observations.numpy()
    buffer.actions[:, 0, 0] = batch.actions.numpy()
    buffer.values[:, 0] = values[:, 0].numpy()
    buffer.log_probs[:, 0] = log_probability.numpy()
    buffer.returns[:, 0] = batch.columns["returns"].numpy()
    buffer.advantages[:] = buffer.returns - buffer.values
    buffer.full, buffer.pos = True, 5
