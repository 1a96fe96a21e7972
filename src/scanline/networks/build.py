"""A network from its name, or from a user's own function.

Takes a name in `TRUNKS` or a callable `(Spaces) -> nn.Module`, the environment's spaces, a head
and a seed; gives one module from observations `[N, S, ...frame]` to outputs.
Knows nothing of losses, optimisers or devices: the module is made on the CPU, move it after.

What does not fit is refused here, before anything runs, with the name that would fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..carried import Carried, State, columns_of
from ..errors import nearest
from ..records import Outputs, Spaces
from .convolutions import ConvTrunk
from .heads import Head, HeadSettings, Hidden, build_head
from .kernels import Kernels
from .layers import Layers
from .lstm import Lstm
from .trunks import TRUNKS, Trunk, build_trunk

LARGEST_FLAT_INPUT = 16_384
"""Numbers per observation that `mlp` takes: beyond it convolutions are the better start."""

OwnNetwork = Callable[[Spaces], nn.Module]


class Network(nn.Module):
    """A trunk and a head; bytes are scaled inside, floats are taken as they come."""

    def __init__(
        self,
        trunk: nn.Module,
        head: nn.Module,
        shape: tuple[int, ...],
        losses: tuple[str, ...] = ("all",),
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = head
        self.observation_shape = shape
        self.loss_names = losses
        """Names of the losses that it learns from; each moves all of its parameters."""

    def forward(self, observations: Tensor) -> Outputs:
        self.check(observations)
        return self.head(self.trunk(observations))

    def check(self, observations: Tensor) -> None:
        if observations.shape[1:] != self.observation_shape:
            built = ", ".join(map(str, self.observation_shape))
            raise ValueError(
                f"observations have shape {tuple(observations.shape)}, but this network was built "
                f"for [N, {built}]; build it for the Spaces of these observations."
            )
        if observations.dtype not in (torch.uint8, torch.float32):
            raise ValueError(
                f"observations are {observations.dtype}, but networks take torch.uint8 (scaled "
                "inside) or torch.float32 (taken as it comes); convert them."
            )


class MemoryNetwork(Network):
    """A trunk with its dense layers, an LSTM and a head; it keeps the contract of `carried.py`."""

    def __init__(
        self,
        stream: nn.Module,
        memory: Lstm,
        trunk: nn.Module,
        head: nn.Module,
        shape: tuple[int, ...],
        losses: tuple[str, ...] = ("all",),
    ) -> None:
        super().__init__(trunk, head, shape, losses)
        self.stream, self.memory = stream, memory
        self.carried = memory.carried

    def forward(
        self, observations: Tensor, carried: Carried | None = None
    ) -> tuple[Outputs, State]:
        self.check(observations)
        if carried is None:
            raise ValueError(
                "this network has a memory and needs its carried state; in a loss write "
                "batch.outputs(network) in place of network(batch.observations)."
            )
        rows, state = self.memory(self.stream(self.trunk(observations)), carried)
        return self.head(rows), state


def build(
    network: str | OwnNetwork,
    spaces: Spaces,
    head: str | HeadSettings | Head,
    *,
    seed: int,
    kernels: Kernels = "native",
    losses: tuple[str, ...] = ("all",),
) -> nn.Module:
    """The network, its first weights a function of `seed` alone.

    `head` is what a named network ends with: a kind, its settings, or a function of your own.
    """
    with one_thread():
        if not isinstance(network, str):
            return build_own(lambda: network(spaces), "network", seed)
        trunk = fitting_trunk(network, spaces)
        known = kernels if trunk.has_kernels else "torch"
        layers = Layers(trunk.rule, torch.Generator().manual_seed(seed), known)
        body, features = build_trunk(trunk, spaces, layers)
        is_native = isinstance(body, ConvTrunk) and body.sizes is not None
        hidden = Hidden(layers, features, trunk.hidden, is_native, trunk.normed)
        before: Hidden = hidden
        around: Callable[..., Network] = Network
        if trunk.memory:
            stream, memory = hidden.stream(), Lstm(layers, trunk.hidden[-1], trunk.memory)
            before, around = hidden.behind(trunk.memory), partial(MemoryNetwork, stream, memory)
        settings = HeadSettings(kind=head) if isinstance(head, str) else head
        if isinstance(settings, HeadSettings):
            outputs = build_head(before, spaces.num_actions, settings)
        else:
            outputs = build_own(partial(settings, before, spaces), "head", seed)
        return around(body, outputs, spaces.observation_shape, losses)


def build_own(make: Callable[[], nn.Module], what: str, seed: int) -> nn.Module:
    """A user's module; the global generator is seeded for it and put back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        module = make()
    if not isinstance(module, nn.Module):
        raise ValueError(
            f"the {what} function gave a {type(module).__name__}, but it must give a "
            "torch.nn.Module; return the module itself, not its outputs or its class."
        )
    lazy = [name for name, each in module.named_parameters() if is_lazy(each)]
    if lazy:
        raise ValueError(
            f"the {what} has no shape yet in {', '.join(lazy)}: lazy modules are shaped by their "
            "first input; give sizes instead, e.g. torch.nn.Linear(inputs, outputs) from spaces."
        )
    return module


def has_kernels(network: str | OwnNetwork) -> bool:
    """Whether our own kernels compute this network on a CPU; false for a module of a user's."""
    return isinstance(network, str) and network in TRUNKS and TRUNKS[network].has_kernels


def has_memory(network: str | OwnNetwork) -> bool:
    """Whether it is known to carry a state: a function may say so only by what it builds."""
    if isinstance(network, str):
        return network in TRUNKS and TRUNKS[network].memory > 0
    return bool(columns_of(network))


def descriptions() -> dict[str, str]:
    """Every name with its sentence."""
    return {name: trunk.description for name, trunk in TRUNKS.items()}


@contextmanager
def one_thread() -> Iterator[None]:
    """Runs on one thread: the sums inside QR depend on their number, first weights must not."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def fitting_trunk(name: str, spaces: Spaces) -> Trunk:
    """The row of that name, or a sentence that says what to use instead."""
    if name not in TRUNKS:
        others = f"choose one of {', '.join(TRUNKS)}, or a function (Spaces) -> torch.nn.Module."
        raise ValueError(f"network '{name}' is unknown; {nearest(name, TRUNKS, others)}")
    refusal = misfit(TRUNKS[name], spaces)
    if refusal:
        raise ValueError(
            f"network '{name}' takes {refusal}, but this environment gives {shape_words(spaces)}; "
            f"use {' or '.join(suggestions(name, spaces))}."
        )
    return TRUNKS[name]


def misfit(trunk: Trunk, spaces: Spaces) -> str:
    """What the trunk takes where these spaces are something else; empty where they fit."""
    if trunk.is_flat:
        too_large = math.prod(spaces.observation_shape) > LARGEST_FLAT_INPUT
        return f"at most {LARGEST_FLAT_INPUT} numbers per observation" if too_large else ""
    if not spaces.is_image:
        return "images"
    height, width = spaces.frame_shape[:2]
    if trunk.frame is not None:
        fits = (height, width) == trunk.frame
        return "" if fits else f"frames of {trunk.frame[0]}x{trunk.frame[1]}"
    fits = min(trunk.maps_size(height), trunk.maps_size(width)) >= 1
    return "" if fits else "larger frames"


def suggestions(name: str, spaces: Spaces) -> list[str]:
    """Names that fit, of the same family and made for the size first, and a function last."""
    fitting = [other for other, trunk in TRUNKS.items() if not misfit(trunk, spaces)]
    family = name.split("-")[0]
    fitting.sort(key=lambda other: (other.split("-")[0] != family, TRUNKS[other].frame is None))
    return [*(f"'{other}'" for other in fitting[:2]), "a function (Spaces) -> torch.nn.Module"]


def shape_words(spaces: Spaces) -> str:
    """The frame as a person says it."""
    size = "x".join(map(str, spaces.frame_shape))
    kind = "frames of" if spaces.is_image else "vectors of"
    return f"{kind} {size} in stacks of {spaces.stack}"
