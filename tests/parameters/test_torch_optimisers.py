"""Any optimiser of PyTorch's: stepped as PyTorch steps it, saved and continued bit for bit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from scanline.parameters import LocalParameters, TorchSettings
from scanline.runs.state_files import decode, encode


class Counting(torch.optim.SGD):
    """One that keeps a count of its own beside the parameters."""

    def __init__(self, parameters: list[Tensor]) -> None:
        super().__init__(parameters, momentum=0.9)
        self.param_groups[0]["k"] = 0

    def step(self) -> None:
        self.param_groups[0]["k"] += 1
        self.param_groups[0]["dampening"] = 1.0 / self.param_groups[0]["k"]
        super().step()


FACTORIES = [
    torch.optim.RAdam,
    torch.optim.AdamW,
    torch.optim.SGD,
    Counting,
    torch.optim.Adagrad,
    lambda parameters: torch.optim.RMSprop(parameters, momentum=0.5, centered=True),
]


def parameters() -> list[nn.Parameter]:
    start = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=start)) for shape in ((3, 4), (4,))]


def stepped(moved: list[nn.Parameter], optimiser: object, updates: range, by_us: bool) -> None:
    for update in updates:
        start = torch.Generator().manual_seed(update)
        for each in moved:
            each.grad = torch.randn(each.shape, generator=start)
        optimiser.step(0.01) if by_us else optimiser.step()


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_step_is_pytorch_s_with_our_rate(factory) -> None:
    ours, theirs = parameters(), parameters()
    plain = factory(theirs)
    plain.param_groups[0]["lr"] = 0.01
    stepped(ours, TorchSettings(factory=factory).build(ours), range(6), by_us=True)
    stepped(theirs, plain, range(6), by_us=False)
    assert all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize("factory", FACTORIES)
def test_its_state_goes_on_bit_for_bit_through_a_file(factory) -> None:
    straight, begun = parameters(), parameters()
    stepped(straight, TorchSettings(factory=factory).build(straight), range(9), by_us=True)
    optimiser = TorchSettings(factory=factory).build(begun)
    stepped(begun, optimiser, range(4), by_us=True)
    encoded = encode({"state": optimiser.state()})
    resumed = [nn.Parameter(each.detach().clone()) for each in begun]
    other = TorchSettings(factory=factory).build(resumed)
    other.load(decode(encoded.tree, encoded.tensors)["state"])
    stepped(resumed, other, range(4, 9), by_us=True)
    assert all(map(torch.equal, straight, resumed))


def test_a_factory_that_makes_no_optimiser_is_refused() -> None:
    with pytest.raises(ValueError, match="factory gave a list"):
        TorchSettings(factory=list).build(parameters())


def test_a_target_goes_a_share_of_the_way_with_every_update() -> None:
    network = nn.Linear(3, 2)
    first = network.weight.detach().clone()
    learner = LocalParameters(
        network,
        TorchSettings(factory=torch.optim.SGD, learning_rate=0.5),
        with_target=True,
        target_rate=0.25,
        learning_rate=lambda agent_steps: 0.5,
    )
    expected = first.clone()
    for update in range(3):
        learner.apply(learner.read(), {"all": network(torch.ones(1, 3)).sum()}, update)
        expected += 0.25 * (network.weight.detach() - expected)
    target = learner.read().target
    torch.testing.assert_close(target.weight, expected)
    assert learner.target_version == 3 and not torch.equal(network.weight, target.weight)
