"""LocalParameters against hand computation: one group, two groups, clip, target, state."""

import math

import pytest
import torch
from torch import Tensor, nn

from scanline.interfaces import Saved
from scanline.networks import build
from scanline.parameters import LocalParameters, OptimiserSettings
from scanline.parameters.local import clip_factor
from scanline.records import PolicyValue, Spaces
from updating import apply_at

SETTINGS = OptimiserSettings(decay=0.0, epsilon=1.0)
"""Without memory: p -= rate * g / (|g| + 1)."""


def line(weight: tuple[float, float] = (3.0, 4.0)) -> nn.Module:
    module = nn.Linear(2, 1, bias=False)
    module.weight.data = torch.tensor([weight])
    return module


class ActorAndCritic(nn.Module):
    """A policy that reads the critic's features: two losses over one graph."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = line((1.0, 2.0))
        self.actor = nn.Linear(1, 1, bias=False)
        self.actor.weight.data = torch.tensor([[5.0]])

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        return {"actor": list(self.actor.parameters()), "critic": list(self.critic.parameters())}

    def losses(self, inputs: Tensor) -> dict[str, Tensor]:
        feature = self.critic(inputs)
        return {"actor": self.actor(feature).sum(), "critic": feature.square().sum()}


def moved(start: float, gradient: float, rate: float) -> float:
    return start - rate * gradient / (abs(gradient) + 1.0)


def weights(module: nn.Module) -> list[float]:
    return [number for each in module.parameters() for number in each.flatten().tolist()]


def test_one_update_by_hand():
    network = line()
    local = LocalParameters(network, SETTINGS)
    norms = apply_at(local, {"all": network(torch.tensor([[6.0, 8.0]])).sum()}, 0.1)
    assert {name: float(norm) for name, norm in norms.items()} == {"all": 10.0}
    assert weights(network) == pytest.approx([moved(3.0, 6.0, 0.1), moved(4.0, 8.0, 0.1)])
    assert local.version == 1
    assert isinstance(norms["all"], float)


def test_gradients_of_the_previous_update_are_forgotten():
    network = line()
    local = LocalParameters(network, SETTINGS)
    for _ in range(2):
        norms = apply_at(local, {"all": network(torch.tensor([[6.0, 8.0]])).sum()}, 0.1)
    assert float(norms["all"]) == 10.0


@pytest.mark.parametrize(
    ("max_grad_norm", "factor"), [(5.0, 0.5), (20.0, 1.0), (0.0, 1.0), (None, 1.0)]
)
def test_clip_scales_the_gradient_to_the_norm_and_reports_the_norm_before(max_grad_norm, factor):
    network = line()
    local = LocalParameters(network, SETTINGS, max_grad_norm=max_grad_norm)
    norms = apply_at(local, {"all": network(torch.tensor([[6.0, 8.0]])).sum()}, 0.1)
    assert float(norms["all"]) == 10.0
    expected = [moved(3.0, 6.0 * factor, 0.1), moved(4.0, 8.0 * factor, 0.1)]
    assert weights(network) == pytest.approx(expected)


@pytest.mark.parametrize("max_grad_norm", [0.1, 0.5, 40.0])
def test_the_clip_factor_has_the_bits_of_tensors(max_grad_norm):
    lengths = torch.rand(500, generator=torch.Generator().manual_seed(1)) * 2 * max_grad_norm
    for norm in (*lengths, torch.tensor(max_grad_norm)):
        factor = float((max_grad_norm / (norm + 1e-6)).clamp(max=1.0))
        expected = 1.0 if norm < max_grad_norm else factor
        assert clip_factor(norm, max_grad_norm) == clip_factor(float(norm), max_grad_norm)
        assert clip_factor(norm, max_grad_norm) == expected


def test_two_groups_learn_from_their_own_loss_only_and_from_the_same_weights():
    network = ActorAndCritic()
    local = LocalParameters(network, SETTINGS)
    losses = network.losses(torch.tensor([[1.0, 1.0]]))  # feature 3
    norms = apply_at(local, losses, 0.1)
    # actor: d(5 * 3)/d5 = 3; critic: d(3^2)/dw = 2 * 3 * input, nothing of the actor's 5
    assert {name: float(norm) for name, norm in norms.items()} == pytest.approx(
        {"actor": 3.0, "critic": math.sqrt(72)}
    )
    assert weights(network.actor) == pytest.approx([moved(5.0, 3.0, 0.1)])
    expected = [moved(1.0, 6.0, 0.1), moved(2.0, 6.0, 0.1)]
    assert weights(network.critic) == pytest.approx(expected)


class CriticFirst(ActorAndCritic):
    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        return dict(reversed(super().parameter_groups().items()))


@pytest.mark.parametrize("kind", [ActorAndCritic, CriticFirst])
def test_losses_may_share_their_whole_graph_in_either_order(kind):
    network = kind()
    local = LocalParameters(network, SETTINGS)
    output = network.actor(network.critic(torch.tensor([[1.0, 1.0]])))  # 5 * 3
    norms = apply_at(local, {"actor": output.sum(), "critic": output.square().sum()}, 0.1)
    # actor: 3; critic: 2 * 15 * 5 * input, without the 5 that the actor's loss would add
    assert {name: float(norm) for name, norm in norms.items()} == pytest.approx(
        {"actor": 3.0, "critic": 150 * math.sqrt(2)}
    )


def test_two_groups_have_clips_and_optimisers_of_their_own():
    network = ActorAndCritic()
    optimisers = {"actor": SETTINGS, "critic": OptimiserSettings(kind="adam", epsilon=1e-9)}
    local = LocalParameters(network, optimisers, max_grad_norm={"actor": 1.5, "critic": None})
    apply_at(local, network.losses(torch.tensor([[1.0, 1.0]])), 0.1)
    assert weights(network.actor) == pytest.approx([moved(5.0, 1.5, 0.1)])
    assert weights(network.critic) == pytest.approx([0.9, 1.9])  # Adam's first step is the rate


def test_a_group_without_a_loss_stays():
    network = ActorAndCritic()
    local = LocalParameters(network, SETTINGS)
    apply_at(local, {"critic": network.losses(torch.tensor([[1.0, 1.0]]))["critic"]}, 0.1)
    assert weights(network.actor) == [5.0]
    assert weights(network.critic) != [1.0, 2.0]


def test_all_reduce_sees_every_gradient_before_the_clip():
    seen: list[list[float]] = []

    def double(gradients: list[Tensor]) -> None:
        seen.extend(each.flatten().tolist() for each in gradients)
        for each in gradients:
            each.mul_(2.0)

    network = ActorAndCritic()
    local = LocalParameters(network, SETTINGS, max_grad_norm=1.5, all_reduce=double)
    norms = apply_at(local, network.losses(torch.tensor([[1.0, 1.0]])), 0.1)
    assert seen == [[3.0], [6.0, 6.0]]
    assert float(norms["actor"]) == 6.0
    assert weights(network.actor) == pytest.approx([moved(5.0, 1.5, 0.1)])


def test_the_target_follows_only_when_synchronised():
    network = line()
    local = LocalParameters(network, SETTINGS, with_target=True)
    apply_at(local, {"all": network(torch.ones(1, 2)).sum()}, 0.1)
    target = local.views.target
    assert weights(target) == [3.0, 4.0]
    assert not any(each.requires_grad for each in target.parameters())
    assert (local.version, local.target_version) == (1, 0)
    local.sync_target()
    assert weights(target) == weights(network)
    assert weights(target) != [3.0, 4.0]
    assert local.target_version == 1
    assert local.views.target is target


def test_views_show_the_state_that_was_kept():
    local = LocalParameters(line(), SETTINGS, algorithm_state={"mean": torch.zeros(2)})
    assert local.views.live is local.network
    local.keep({"mean": torch.ones(2)})
    local.keep(None)
    assert local.views.state["mean"].tolist() == [1.0, 1.0]


SPACES = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=3)
KINDS = [OptimiserSettings(centred=True), OptimiserSettings(kind="adam")]


def learner(settings: OptimiserSettings, seed: int = 0) -> LocalParameters:
    network = build("nips", SPACES, "q", seed=seed)
    state = {"count": torch.zeros(())}
    return LocalParameters(
        network, settings, max_grad_norm=0.5, with_target=True, algorithm_state=state
    )


def update(local: LocalParameters) -> None:
    generator = torch.Generator().manual_seed(local.version)
    shape = (4, 4, 84, 84)
    observations = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    target = local.views.target(observations).q.max(1).values
    loss = (local.views.live(observations).q[:, 0] - target - 1).square().mean()
    apply_at(local, {"all": loss}, 1e-3 / (1 + local.version))
    local.keep({"count": local.views.state["count"] + 1})
    if local.version % 3 == 0:
        local.sync_target()


@pytest.mark.parametrize("settings", KINDS, ids=["rmsprop", "adam"])
def test_a_loaded_learner_continues_bit_for_bit(settings):
    straight = learner(settings)
    for _ in range(4):
        update(straight)
    state = straight.state()
    other = learner(settings, seed=9)
    other.load(state)
    for _ in range(4):
        update(straight)
        update(other)
    assert isinstance(other, Saved)
    assert (other.version, other.target_version) == (8, 6)
    assert_same(straight.state(), other.state())


def assert_same(one: object, other: object) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, Tensor):
        assert one.is_contiguous()
        assert torch.equal(one, other)
    else:
        assert one == other


def test_loading_keeps_the_memory_order_and_identity_of_the_weights():
    local = learner(KINDS[0])
    first = next(local.network.parameters())
    local.load(learner(KINDS[0], seed=5).state())
    assert next(local.network.parameters()) is first
    assert first.is_contiguous(memory_format=torch.channels_last)


SPACES = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=3)


@pytest.mark.parametrize("kernels", ["native", "torch"])
def test_two_losses_may_move_all_weights_with_an_optimiser_each(kernels):
    """GA3C's dual RMSProp: both gradients are those of the weights before the update."""
    network = build("nips", SPACES, "policy-value", seed=0, kernels=kernels, losses=("one", "two"))
    plain = build("nips", SPACES, "policy-value", seed=0, kernels="torch")
    settings = OptimiserSettings(decay=0.9, epsilon=0.1)
    local = LocalParameters(network, settings)
    random = torch.Generator().manual_seed(0)
    shape = (6, *SPACES.observation_shape)
    inputs = torch.randint(0, 256, shape, dtype=torch.uint8, generator=random)
    optimisers = [settings.build(list(plain.parameters())) for _ in range(2)]
    for _ in range(3):
        apply_at(local, two_losses(network(inputs)), 0.01)
        gradients = [
            torch.autograd.grad(
                two_losses(plain(inputs))[name], list(plain.parameters()), allow_unused=True
            )
            for name in ("one", "two")
        ]
        for optimiser, own in zip(optimisers, gradients, strict=True):
            for each, gradient in zip(plain.parameters(), own, strict=True):
                each.grad = gradient
            optimiser.step(0.01)
    for mine, expected in zip(network.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-3, atol=1e-5)
    assert local.state()["optimisers"].keys() == {"one", "two"}


def two_losses(outputs: PolicyValue) -> dict[str, Tensor]:
    return {"one": outputs.logits.square().sum(), "two": (outputs.value - 1.0).square().sum()}


class Overlapping(ActorAndCritic):
    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        return {"actor": list(self.parameters()), "critic": list(self.critic.parameters())}


class Forgetful(ActorAndCritic):
    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        return {"critic": list(self.critic.parameters())}


@pytest.mark.parametrize("network", [Overlapping(), Forgetful()])
def test_groups_must_hold_every_parameter_once(network):
    with pytest.raises(ValueError, match="must be in exactly one"):
        LocalParameters(network, SETTINGS)


@pytest.mark.parametrize("losses", [{}, {"all": torch.zeros(())}])
def test_losses_must_be_named_after_groups(losses):
    with pytest.raises(ValueError, match=r"parameter groups \['actor', 'critic'\]"):
        apply_at(LocalParameters(ActorAndCritic(), SETTINGS), losses, 0.1)


def test_other_impossible_requests_are_refused():
    with pytest.raises(ValueError, match=r"max_grad_norm=-1.0 is no norm"):
        LocalParameters(line(), SETTINGS, max_grad_norm=-1.0)
    with pytest.raises(ValueError, match="none for 'critic'"):
        LocalParameters(ActorAndCritic(), {"actor": SETTINGS})
    with pytest.raises(ValueError, match="pass with_target=True"):
        LocalParameters(line(), SETTINGS).sync_target()
    with pytest.raises(ValueError, match="the saved network has"):
        LocalParameters(line(), SETTINGS).load(learner(KINDS[0]).state())
