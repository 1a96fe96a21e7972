"""The same networks by native kernels and by PyTorch, images for them, and comparisons."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scanline import networks
from scanline.networks import kernels
from scanline.networks.trunks import TRUNKS
from scanline.records import Spaces

NATIVE = [n for n, row in TRUNKS.items() if row.convs and row.has_kernels and not row.memory]


NOT_FINITE = (float("nan"), float("inf"), -float("inf"))


def spaces_for(name: str) -> Spaces:
    frame = TRUNKS[name].frame or (44, 52)
    return Spaces(frame_shape=frame, frame_dtype="uint8", stack=4, num_actions=6)


def pair(name: str, head: str = "policy-value") -> tuple[nn.Module, nn.Module]:
    """The same network with both kinds of kernels."""
    spaces = spaces_for(name)
    kinds: tuple[kernels.Kernels, kernels.Kernels] = ("native", "torch")
    native, plain = (networks.build(name, spaces, head, seed=3, kernels=kind) for kind in kinds)
    return native, plain


def images(name: str, num: int) -> Tensor:
    random = torch.Generator().manual_seed(num)
    shape = (num, 4, *spaces_for(name).frame_shape)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=random)


def drawn(name: str, num: int) -> Tensor:
    """Pictures as games draw them: stripes, boxes, a noisy corner; the first one is empty."""
    random = torch.Generator().manual_seed(num)
    height, width = spaces_for(name).frame_shape
    found = torch.full((num, 4, height, width), 87, dtype=torch.uint8)
    for picture in range(1, num):
        found[picture, :, height // 3 : height // 3 + picture] = 140
        for plane in range(4):
            y, x = (int(n) for n in torch.randint(0, 30, (2,), generator=random))
            found[picture, plane, y : y + 5, x : x + 3] = 236
        if picture % 3 == 0:
            noise = torch.randint(0, 256, (4, 9, 9), dtype=torch.uint8, generator=random)
            found[picture, :, -9:, -9:] = noise
    return found


def gradients(network: nn.Module, observations: Tensor) -> list[Tensor]:
    network.zero_grad()
    outputs = network.head(network.trunk(observations))
    weights = torch.linspace(-1, 1, outputs.logits.numel()).view_as(outputs.logits)
    ((outputs.logits * weights).sum() + outputs.value.square().sum()).backward()
    return [each.grad.clone() for each in network.parameters() if each.grad is not None]


def assert_close(found: Tensor, expected: Tensor, atol: float = 3e-5) -> None:
    found, expected = found.detach(), expected.detach()
    scale = max(float(expected.abs().max()), 1e-6)
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=atol)


def assert_same_kinds(found: Tensor, expected: Tensor, what: str) -> None:
    """What is no number is so in both, and what is infinite too."""
    for kind in (torch.isnan, torch.isposinf, torch.isneginf):
        assert torch.equal(kind(found), kind(expected)), f"{what}: {kind.__name__}"


def spoil(weight: Tensor, place: int, value: float) -> None:
    """One number of a weight, counted in the order of its axes."""
    with torch.no_grad():
        weight[torch.unravel_index(torch.tensor(place), weight.shape)] = value
