"""Layers whose first weights are drawn from one generator and by one rule.

Takes a rule and a seeded generator; gives convolutions and dense layers, each initialised when it
is made, so that the order of construction is the order of the draws.
Knows no network: the role of a layer is an argument.

PyTorch's constructors draw from the global generator, but not on the meta device: layers are made
there and filled afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import torch
from torch import Generator, Tensor, nn

from .dense import DenseOutputs
from .kernels import Kernels

Layer = nn.Conv2d | nn.Linear
Role = Literal["hidden", "memory", "policy", "value", "q"]
Rule = Callable[[Layer, Role, Generator], None]

_CUT_DEVIATION = 0.87962566103423978
"""Deviation of a normal number that is cut at two deviations."""
OUTPUT_GAINS: Mapping[Role, float] = MappingProxyType(
    {"policy": 0.01, "value": 1.0, "q": 1.0, "memory": 1.0}
)


def fan_in(weight: Tensor) -> int:
    """Inputs of one unit: in-channels x kernel area."""
    return weight[0].numel()


def fan_in_uniform(layer: Layer, role: Role, generator: Generator) -> None:
    """Weights and biases uniform in +-1/sqrt(fan in): Torch7's default, A3C, GA3C, PAAC."""
    bound = 1 / math.sqrt(fan_in(layer.weight))
    nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
    nn.init.uniform_(bias_of(layer), -bound, bound, generator=generator)


def orthogonal(layer: Layer, role: Role, generator: Generator) -> None:
    """Orthogonal with gain sqrt 2, policy 0.01, value, Q and memory 1, biases 0 (baselines)."""
    gain = OUTPUT_GAINS.get(role, math.sqrt(2))
    nn.init.orthogonal_(layer.weight, gain, generator=generator)
    nn.init.zeros_(bias_of(layer))


def truncated_normal(gain: float) -> Rule:
    """Normal with variance gain / fan in, cut at two deviations, outputs with gain 1; biases 0.

    Flax's `he_normal` is gain 2 with its `lecun_normal` outputs; Sonnet's default is gain 1.
    """

    def rule(layer: Layer, role: Role, generator: Generator) -> None:
        own = gain if role == "hidden" else 1.0
        bound = 2.0 * math.sqrt(own / fan_in(layer.weight)) / _CUT_DEVIATION
        nn.init.trunc_normal_(layer.weight, 0.0, bound / 2, -bound, bound, generator=generator)
        nn.init.zeros_(bias_of(layer))

    return rule


def kaiming(layer: Layer, role: Role, generator: Generator) -> None:
    """Kaiming normal, biases 0 (CuLE's DQN)."""
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
    nn.init.zeros_(bias_of(layer))


def kaiming_doubled(layer: Layer, role: Role, generator: Generator) -> None:
    """Kaiming normal, in hidden layers times the ReLU gain once more, biases 0 (CuLE)."""
    kaiming(layer, role, generator)
    if role == "hidden":
        with torch.no_grad():
            layer.weight.mul_(nn.init.calculate_gain("relu"))


def glorot_unit_norm(layer: Layer, role: Role, generator: Generator) -> None:
    """Glorot-uniform convolutions; dense rows of norm 1, policy and Q 0.01; biases 0 (accel_rl)."""
    nn.init.zeros_(bias_of(layer))
    if isinstance(layer, nn.Conv2d):
        nn.init.xavier_uniform_(layer.weight, generator=generator)
        return
    nn.init.normal_(layer.weight, generator=generator)
    norm = 0.01 if role in ("policy", "q") else 1.0
    with torch.no_grad():
        layer.weight.mul_(norm / layer.weight.norm(dim=1, keepdim=True))


def bias_of(layer: Layer) -> Tensor:
    assert layer.bias is not None
    return layer.bias


@dataclass(frozen=True)
class Layers:
    """Makes layers, initialised in the order of the calls."""

    rule: Rule
    generator: Generator
    kernels: Kernels = "native"
    """What does the matrix work on a CPU."""

    def conv(
        self, channels: int, filters: int, kernel: int, *, stride: int = 1, padding: int = 0
    ) -> nn.Conv2d:
        """A convolution with weights that are channels last in memory."""
        layer = nn.Conv2d(channels, filters, kernel, stride, padding, device="meta")
        layer = layer.to_empty(device="cpu")
        self.rule(layer, "hidden", self.generator)
        layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
        return layer

    def dense(self, features: int, units: int, role: Role = "hidden") -> nn.Linear:
        kind = nn.Linear if role == "hidden" or self.kernels == "torch" else DenseOutputs
        layer = kind(features, units, device="meta").to_empty(device="cpu")
        self.rule(layer, role, self.generator)
        return layer
