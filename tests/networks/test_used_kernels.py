"""A head of a user's own keeps the kernels of the network, and a run says which it uses."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from scanline import networks
from scanline.networks.convolutions import ConvTrunk
from scanline.records import QDistribution, Spaces

SPACES = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=4, num_actions=6)


class QuantileHead(nn.Module):
    """Seven numbers per action, and one of a layer of PyTorch's."""

    def __init__(self, hidden: networks.Hidden, spaces: Spaces) -> None:
        super().__init__()
        self.stream, self.out = hidden.stream(), hidden.outputs(spaces.num_actions * 7)
        self.own = nn.Linear(hidden.size, 1)

    def forward(self, features: networks.Features) -> QDistribution:
        rows: Tensor = self.stream(features)
        return QDistribution(self.out(rows).unflatten(1, (6, 7)) + self.own(rows)[:, None])


def network(kernels: networks.Kernels = "native", name: str = "nature") -> nn.Module:
    return networks.build(name, SPACES, QuantileHead, seed=3, kernels=kernels)


def test_an_own_head_s_outputs_and_gradients_are_pytorch_s() -> None:
    inputs = torch.randint(0, 255, (5, 4, 84, 84), dtype=torch.uint8)
    found = []
    for kernels in ("native", "torch"):
        own = network(kernels)
        own(inputs).logits.square().sum().backward()
        found.append([each.grad for each in own.parameters()])
    for native, plain in zip(*found, strict=True):
        torch.testing.assert_close(native, plain, rtol=1e-3, atol=1e-3 * float(plain.abs().max()))


def test_an_own_head_never_takes_the_trunk_s_way_through_pytorch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: ConvTrunk, observations: Tensor) -> Tensor:
        raise AssertionError("PyTorch computes the convolutions")

    monkeypatch.setattr(ConvTrunk, "torch_features", fail)
    network()(torch.zeros(2, 4, 84, 84, dtype=torch.uint8))


def test_first_weights_of_an_own_head_are_a_function_of_the_seed() -> None:
    torch.manual_seed(1)
    first = network().head.own.weight
    torch.manual_seed(2)
    assert torch.equal(first, network().head.own.weight)


@pytest.mark.parametrize(
    ("made", "kernels", "words"),
    [
        (
            lambda: networks.build("nature", SPACES, "q", seed=0),
            "native",
            "our own for all 5",
        ),
        (network, "native", "our own for 5 layers, PyTorch's for head.own."),
        (lambda: network("torch"), "torch", "PyTorch's, as --kernels torch asks"),
        (lambda: network(name="impala"), "native", "PyTorch's, for ours have no such layers"),
        (lambda: nn.Linear(3, 2), "native", "module of your own; a head on a named network keeps"),
    ],
)
def test_a_sentence_says_which_kernels_compute_a_network(made, kernels, words) -> None:
    assert words in networks.used_kernels(made(), kernels)


def test_a_head_that_is_no_module_is_refused() -> None:
    with pytest.raises(ValueError, match="the head function gave a str"):
        networks.build("nature", SPACES, lambda hidden, spaces: "head", seed=0)
