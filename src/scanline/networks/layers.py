"""Layers that draw their first weights from one generator and by one rule.

Takes a rule's name and a seeded generator; gives convolutions and dense layers, each initialised
the moment it is made, so that the order of construction is the order of the draws.
Knows no network: which layer plays which role is said by the caller.

PyTorch's constructors draw from the global generator. Here layers are made on the meta device,
which draws nothing, and filled afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import torch
from torch import Generator, Tensor, nn

from .convolutions import ConvFeatures, Features, rectified, rows_of
from .dense import can_be_native, dense
from .kernels import Kernels

Layer = nn.Conv2d | nn.Linear
Role = Literal["hidden", "policy", "value", "q"]
Rule = Callable[[Layer, Role, Generator], None]

OUTPUT_GAINS: Mapping[Role, float] = MappingProxyType({"policy": 0.01, "value": 1.0, "q": 1.0})


def fan_in(weight: Tensor) -> int:
    """Inputs of one unit: in-channels x kernel area."""
    return weight[0].numel()


def fan_in_uniform(layer: Layer, role: Role, generator: Generator) -> None:
    """Weights and biases uniform in +-1/sqrt(fan in): Torch7's default, A3C, GA3C, PAAC."""
    bound = 1 / math.sqrt(fan_in(layer.weight))
    nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
    nn.init.uniform_(bias_of(layer), -bound, bound, generator=generator)


def orthogonal(layer: Layer, role: Role, generator: Generator) -> None:
    """Orthogonal with gain sqrt 2, policy 0.01, value and Q 1, biases 0 (OpenAI baselines)."""
    gain = OUTPUT_GAINS.get(role, math.sqrt(2))
    nn.init.orthogonal_(layer.weight, gain, generator=generator)
    nn.init.zeros_(bias_of(layer))


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


RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "fan-in-uniform": fan_in_uniform,
        "orthogonal": orthogonal,
        "kaiming": kaiming,
        "kaiming-doubled": kaiming_doubled,
        "glorot-unit-norm": glorot_unit_norm,
    }
)


def bias_of(layer: Layer) -> Tensor:
    assert layer.bias is not None
    return layer.bias


class DenseStream(nn.Sequential):
    """Dense layers, each followed by a rectifier, by the native kernels where they can."""

    def forward(self, features: Features) -> Tensor:
        for layer in self:
            if isinstance(layer, nn.Linear):
                features = rectified(layer, features)
        return rows_of(features)

    def outputs(self, layers: Sequence[nn.Linear], features: Features) -> Sequence[Tensor]:
        """See `outputs_of`; in one native call where they can."""
        if isinstance(features, ConvFeatures):
            hidden = [each for each in self._modules.values() if isinstance(each, nn.Linear)]
            found = features.read(*hidden, *layers) if len(hidden) == 1 else None
            if found:
                return found
        rows = self(features)
        outs = dense(layers, rows) if can_be_native(layers, rows) else [of(rows) for of in layers]
        return numbers_of(outs)


class DenseOutputs(nn.Linear):
    """A dense layer without a rectifier, by the native kernels where they can."""

    def forward(self, rows: Tensor) -> Tensor:
        return dense([self], rows)[0] if can_be_native([self], rows) else super().forward(rows)


def outputs_of(
    stream: nn.Sequential, layers: Sequence[nn.Linear], features: Features
) -> Sequence[Tensor]:
    """What every layer makes of the stream's rows: [N, units], or [N] of a single unit."""
    if isinstance(stream, DenseStream):
        return stream.outputs(layers, features)
    rows = stream(features)
    return numbers_of([layer(rows) for layer in layers])


def numbers_of(outs: Sequence[Tensor]) -> Sequence[Tensor]:
    """Columns of one number per row as [N]."""
    return [each.squeeze(-1) for each in outs]


@dataclass(frozen=True)
class Layers:
    """Makes layers, initialised in the order of the calls."""

    rule: Rule
    generator: Generator
    kernels: Kernels = "native"
    """Who does the matrix work on a CPU."""

    def conv(
        self, channels: int, filters: int, kernel: int, *, stride: int = 1, padding: int = 0
    ) -> nn.Conv2d:
        """A convolution whose weights lie channels last in memory."""
        with torch.device("meta"):
            layer = nn.Conv2d(channels, filters, kernel, stride, padding)
        layer = layer.to_empty(device="cpu")
        self.rule(layer, "hidden", self.generator)
        layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
        return layer

    def dense(self, features: int, units: int, role: Role = "hidden") -> nn.Linear:
        kind = nn.Linear if role == "hidden" or self.kernels == "torch" else DenseOutputs
        with torch.device("meta"):
            layer = kind(features, units)
        layer = layer.to_empty(device="cpu")
        self.rule(layer, role, self.generator)
        return layer

    def stream(
        self, features: int, hidden: tuple[int, ...], *, by_place: bool = False
    ) -> nn.Sequential:
        """Dense layers, each followed by a rectifier.

        `by_place` orders the first layer's weights in memory as kernels behind convolutions read
        them: all units of an input lie together.
        """
        steps: list[nn.Module] = []
        for units in hidden:
            layer = self.dense(features, units)
            if by_place and not steps:
                layer.weight.data = layer.weight.data.t().contiguous().t()
            steps += [layer, nn.ReLU(inplace=True)]
            features = units
        return DenseStream(*steps) if self.kernels == "native" else nn.Sequential(*steps)
