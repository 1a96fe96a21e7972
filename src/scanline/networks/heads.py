"""Heads: from flat features to the named tuples that algorithms read.

Takes the sizes of hidden layers, the number of actions and the settings of a head; gives a module
from `[N, features]` to PolicyValue, QValues or QDistribution.
Knows nothing of images, losses or exploration.

A dueling head has two streams with hidden layers of their own (Wang 2016), so hidden layers are
built here and not in the trunk. Plain Q values are a distribution with one atom until the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor, nn

from ..records import PolicyValue, QDistribution, QValues, Spaces
from .convolutions import Features, rows_of
from .dense import DenseStream, outputs_of
from .layers import Layers, Role

KINDS = ("policy-value", "q", "dueling", "categorical", "dueling-categorical")


@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """Which outputs a network has."""

    kind: str = "policy-value"
    """One of 'policy-value', 'q', 'dueling', 'categorical', 'dueling-categorical'."""
    num_atoms: int = 51
    """Atoms of a categorical head; other heads do not read it."""
    conv_gradient_scale: float = 1.0
    """Factor on the gradient that a dueling head sends into the convolutions; 1/sqrt(2) in
    Stooke and Abbeel, 1 leaves it alone."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"head '{self.kind}' is unknown; choose one of {', '.join(KINDS)}.")
        if self.num_atoms < 2:
            raise ValueError(
                f"num_atoms={self.num_atoms} is no distribution; use at least 2, usually 51."
            )
        if self.conv_gradient_scale <= 0:
            raise ValueError(
                f"conv_gradient_scale={self.conv_gradient_scale} would stop or turn the gradient; "
                "use a positive factor, 1 for none."
            )
        if self.conv_gradient_scale != 1.0 and "dueling" not in self.kind:
            raise ValueError(
                f"conv_gradient_scale={self.conv_gradient_scale} is read by dueling heads only, "
                f"not by '{self.kind}'; leave it at 1 or choose 'dueling'."
            )


@dataclass(frozen=True)
class Hidden:
    """The hidden layers of a named network, to be made by its head: once, or once per stream.

    A head's `stream()` takes the features that the head is called with and gives rows [N, size];
    `outputs(units)` is a layer behind it. Both are computed by our own kernels where the network
    has them; a module of PyTorch's in their place works too.
    """

    layers: Layers
    features: int
    units: tuple[int, ...]
    is_after_native: bool
    """Whether features come from native convolutions."""
    normed: bool = False
    """Whether layer normalisation stands before every ReLU."""

    @property
    def size(self) -> int:
        """Numbers per row that a stream gives."""
        return self.units[-1]

    def stream(self, *, reads_alone: bool = True) -> nn.Sequential:
        """Dense layers, each followed by ReLU.

        If no other layer reads the same features, weights of the first layer have all units of an
        input adjacent in memory, as kernels behind convolutions read them.
        """
        steps: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise((self.features, *self.units)):
            norm = [nn.LayerNorm(outputs, eps=1e-6)] if self.normed else []
            steps += [self.layers.dense(inputs, outputs), *norm, nn.ReLU(inplace=True)]
        if self.is_after_native and reads_alone:
            weight = next(steps[0].parameters())
            weight.data = weight.data.t().contiguous().t()
        return DenseStream(*steps) if self.layers.kernels == "native" else nn.Sequential(*steps)

    def outputs(self, units: int, role: Role = "q") -> nn.Linear:
        """A layer behind a stream; `role` chooses its first weights: 'policy', 'value' or 'q'."""
        return self.layers.dense((self.features, *self.units)[-1], units, role)

    def behind(self, features: int) -> Hidden:
        """What reads these features without hidden layers of its own."""
        return replace(self, features=features, units=(), is_after_native=False)


Head = Callable[[Hidden, Spaces], nn.Module]
"""Makes what a named network ends with: a module from features to outputs of your own."""


class PolicyValueHead(nn.Module):
    """One stream, then logits and value."""

    def __init__(self, hidden: Hidden, num_actions: int) -> None:
        super().__init__()
        self.stream = hidden.stream()
        self.policy = hidden.outputs(num_actions, "policy")
        self.value = hidden.outputs(1, "value")

    def forward(self, features: Features) -> PolicyValue:
        logits, value = outputs_of(self.stream, (self.policy, self.value), features)
        return PolicyValue(logits=logits, value=value)


class ActionValueHead(nn.Module):
    """One stream, then [actions, atoms] numbers."""

    def __init__(self, hidden: Hidden, shape: tuple[int, int]) -> None:
        super().__init__()
        self.shape = shape
        self.stream = hidden.stream()
        self.q = hidden.outputs(shape[0] * shape[1], "q")

    def forward(self, features: Features) -> QValues | QDistribution:
        (values,) = outputs_of(self.stream, (self.q,), features)
        return named(values.view(len(values), *self.shape))


class DuelingHead(nn.Module):
    """Value plus advantage without its mean over actions, from two streams."""

    def __init__(self, hidden: Hidden, shape: tuple[int, int], gradient_scale: float) -> None:
        super().__init__()
        self.shape = shape
        self.gradient_scale = gradient_scale
        self.advantage_stream = hidden.stream(reads_alone=False)
        self.advantage = hidden.outputs(shape[0] * shape[1], "q")
        self.value_stream = hidden.stream(reads_alone=False)
        self.value = hidden.outputs(shape[1], "q")

    def forward(self, features: Features) -> QValues | QDistribution:
        rows = rows_of(features)  # read twice, with one backward pass through the convolutions
        if self.gradient_scale != 1.0 and rows.requires_grad:
            rows.register_hook(self._scaled)  # type: ignore[no-untyped-call]
        advantage = self.advantage(self.advantage_stream(rows)).unflatten(1, self.shape)
        value = self.value(self.value_stream(rows)).unsqueeze(1)  # [N, 1, atoms]
        return named(value + advantage - advantage.mean(1, keepdim=True))

    def _scaled(self, gradient: Tensor) -> Tensor:
        return gradient * self.gradient_scale


def named(values: Tensor) -> QValues | QDistribution:
    """[N, A, atoms] under its name; one atom is a plain value."""
    return QValues(values.squeeze(-1)) if values.shape[-1] == 1 else QDistribution(values)


def build_head(hidden: Hidden, num_actions: int, settings: HeadSettings) -> nn.Module:
    """The module [N, features] to outputs."""
    if settings.kind == "policy-value":
        return PolicyValueHead(hidden, num_actions)
    shape = (num_actions, settings.num_atoms if "categorical" in settings.kind else 1)
    if "dueling" in settings.kind:
        return DuelingHead(hidden, shape, settings.conv_gradient_scale)
    return ActionValueHead(hidden, shape)
