"""The parameters of one learner: live network, optimisers, target copy, algorithm state.

Takes a network, optimiser settings, a schedule of the learning rate and, per update, one loss per
parameter group; gives views for the algorithm and the gradient norms of each update.
Knows no algorithm and no store.

`apply` is the one place of backward, all-reduce, clipping and step, so their order cannot differ
between algorithms; published and central parameters use its two halves, `gradients` and `step`. It
waits for no device: a norm that is not known yet, and the clip by it, stay tensors.
"""

from __future__ import annotations

import copy
import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from .._native import squared_norm
from ..devices import beside
from ..errors import UserError
from ..interfaces import Metric
from ..native_arrays import gapless_spans
from ..records import State, Views
from ..schedules import Schedule
from .optimisers import (
    Optimiser,
    RateSettings,
    copies,
    like,
)

Value = TypeVar("Value")
Gradients = Sequence[Tensor | None]
"""Of one loss, in the order of its group's parameters; None where it does not reach one."""

AllReduce = Callable[[Sequence[Tensor]], None]
"""Replaces gradients, or an algorithm's state, in place by what all learners agree on."""

BuildOptimiser = Callable[[str, list[nn.Parameter], Any], Optimiser]
"""Makes the optimiser of a group, given its name, its parameters and its settings."""


@runtime_checkable
class Grouped(Protocol):
    """A network that learns from several losses, each with parameters of its own."""

    def parameter_groups(self) -> Mapping[str, list[nn.Parameter]]: ...


class UpdateMonitor(Protocol):
    """Measures an update: called right before and right after the parameters move."""

    metrics: Mapping[str, Tensor]
    """What was measured, by names of the log; complete after the step."""

    def before(self, network: nn.Module) -> None:
        """Gradients are those of all learners, and not clipped yet."""

    def after(self, network: nn.Module) -> None: ...


@dataclass(frozen=True)
class Group:
    """Parameters that share a loss, an optimiser and a clip."""

    parameters: list[nn.Parameter]
    settings: Any
    """As `RateSettings`; those of a learner of a central store are `OptimiserSettings`."""
    optimiser: Optimiser
    max_grad_norm: float | None

    def place(self, gradients: Gradients) -> None:
        """Where the optimiser, and an instrument, looks for them."""
        for each, gradient in zip(self.parameters, gradients, strict=True):
            each.grad = gradient

    def step(self, gradients: Gradients, learning_rate: float) -> Metric:
        """Clips, moves the parameters, and gives the norm from before the clip."""
        self.place(gradients)
        norm = total_norm(present(gradients))
        self.optimiser.step(learning_rate, clip_factor(norm, self.max_grad_norm))
        return norm


class LocalParameters:
    """Parameters that live in this process and are changed by `apply` alone."""

    def __init__(  # noqa: PLR0913 (each is a choice of its own)
        self,
        network: nn.Module,
        optimiser: RateSettings | Mapping[str, RateSettings],
        *,
        max_grad_norm: float | Mapping[str, float | None] | None = None,
        with_target: bool = False,
        target_rate: float = 0.0,
        algorithm_state: Mapping[str, Tensor] | None = None,
        all_reduce: AllReduce | None = None,
        build: BuildOptimiser | None = None,
        learning_rate: Schedule = lambda agent_steps: 0.0,
        watch_at: Callable[[int], UpdateMonitor | None] = lambda update: None,
    ) -> None:
        """`target_rate` is the share of the live weights that an update mixes into the target;
        `build` makes a group's optimiser where it is not to be a local one; `learning_rate` is
        that of `apply`, and `watch_at` gives what measures an update there, or None."""
        self.network = network
        self.version = 0
        """Updates so far."""
        self.target_version = 0
        """Updates in the weights of the target copy."""
        self._all_reduce, self._target_rate = all_reduce, target_rate
        self.learning_rate, self._watch_at = learning_rate, watch_at
        make = build or (lambda name, parameters, chosen: chosen.build(parameters))
        self._groups = {
            name: Group(
                parameters,
                of_group(optimiser, name),
                make(name, parameters, of_group(optimiser, name)),
                checked_norm(of_group(max_grad_norm, name)),
            )
            for name, parameters in trainable_groups(network).items()
        }
        target = copy.deepcopy(network).requires_grad_(False) if with_target else None
        weight = next(network.parameters())
        own = {name: beside(value, weight) for name, value in (algorithm_state or {}).items()}
        self._views = Views(live=network, target=target, state=own)

    @property
    def groups(self) -> Mapping[str, Group]:
        """Parameters by the loss that moves them."""
        return self._groups

    @property
    def views(self) -> Views:
        """Named parameter sets, and the algorithm's state as it was last kept."""
        return self._views

    def read(self) -> Views:
        """The parameter sets to use now."""
        return self._views

    def apply(
        self, views: Views, losses: Mapping[str, Tensor], agent_steps: int
    ) -> dict[str, Metric]:
        """One update at the rate of its schedule; gives norms and rate by their log names."""
        return self.step(self.gradients(views, losses), agent_steps)

    def gradients(self, views: Views, losses: Mapping[str, Tensor]) -> dict[str, Gradients]:
        """Gradients of every group from its own loss, by the live view's parameters."""
        groups = self._parameters_of(views.live)
        unknown = losses.keys() - groups.keys()
        if unknown or not losses:
            raise ValueError(
                f"losses are named {sorted(losses)}, but the network has the parameter groups "
                f"{sorted(groups)}; give one loss under the name of each group to move."
            )
        return backward({name: own for name, own in groups.items() if name in losses}, losses)

    def _parameters_of(self, network: nn.Module) -> dict[str, list[nn.Parameter]]:
        if network is self.network:
            return {name: group.parameters for name, group in self._groups.items()}
        return trainable_groups(network)

    def step(self, gradients: Mapping[str, Gradients], agent_steps: int) -> dict[str, Metric]:
        """Moves the parameters by the gradients of each group, all of them from before it."""
        rate, watch = self.learning_rate(agent_steps), self._watch_at(self.version)
        if self._all_reduce is not None:
            self._all_reduce([each for own in gradients.values() for each in present(own)])
        if watch is not None:
            for name, own in gradients.items():
                self._groups[name].place(own)
            watch.before(self.network)
        norms = {name: self._groups[name].step(own, rate) for name, own in gradients.items()}
        if watch is not None:
            watch.after(self.network)
        self.version += 1
        if self._target_rate:
            self._mix_target()
        measured = watch.metrics if watch is not None else {}
        return {**named(norms), "charts/learning_rate": rate, **measured}

    def sync_target(self) -> None:
        """Copies the live weights into the target."""
        if self._views.target is None:
            raise ValueError(
                "sync_target was called, but there is no target copy; pass with_target=True."
            )
        with torch.no_grad():
            torch._foreach_copy_(tensors(self._views.target), tensors(self.network))
        self.target_version = self.version

    @torch.no_grad()
    def _mix_target(self) -> None:
        """Polyak: the target goes the given share of the way to the live weights."""
        assert self._views.target is not None
        for mine, live in zip(tensors(self._views.target), tensors(self.network), strict=True):
            mine.lerp_(live, self._target_rate) if mine.is_floating_point() else mine.copy_(live)
        self.target_version = self.version

    def keep(self, state: Mapping[str, Tensor] | None) -> None:
        """Replaces the algorithm's state by the mean over all learners; None keeps the old one."""
        if state is not None:
            if self._all_reduce is not None and state:
                self._all_reduce(list(state.values()))
            self._replace_state(state)

    def _replace_state(self, state: Mapping[str, Tensor]) -> None:
        views = self._views
        self._views = Views(live=views.live, target=views.target, state=dict(state))

    def state(self) -> State:
        target = self._views.target
        return {
            "version": self.version,
            "target_version": self.target_version,
            "network": saved(self.network.state_dict()),
            "target": saved(target.state_dict()) if target is not None else {},
            "optimisers": {name: group.optimiser.state() for name, group in self._groups.items()},
            "algorithm": saved(self._views.state),
        }

    def load(self, state: State) -> None:
        """Continues exactly where `state` was taken; refuses another kind of network."""
        target = self._views.target
        check_names(state["network"], self.network.state_dict(), "network")
        check_names(state["target"], target.state_dict() if target is not None else {}, "target")
        check_names(state["optimisers"], self._groups, "optimisers")
        check_shapes(state["network"], self.network.state_dict())
        self.network.load_state_dict(state["network"])
        if target is not None:
            target.load_state_dict(state["target"])
        for name, group in self._groups.items():
            group.optimiser.load(state["optimisers"][name])
        self.version = state["version"]
        self.target_version = state["target_version"]
        weight = next(self.network.parameters())
        self._replace_state({n: beside(value, weight) for n, value in state["algorithm"].items()})


def named(norms: Mapping[str, Metric]) -> dict[str, Metric]:
    """Gradient norms under the names of the log."""
    if norms.keys() == {"all"}:
        return {"losses/gradient_norm": norms["all"]}
    return {f"losses/gradient_norm_{name}": norm for name, norm in norms.items()}


def total_norm(gradients: Sequence[Tensor]) -> Metric:
    """The norm of all gradients together; on a CPU in one native pass."""
    spans = gapless_spans(gradients)
    if spans is None:
        return get_total_norm(gradients, foreach=True)
    return single(math.sqrt(squared_norm(spans)))


def clip_factor(norm: Metric, max_grad_norm: float | None) -> Metric:
    """What shortens a gradient of this norm to the largest one, with the numbers of PyTorch.

    Of a norm that a device computes a tensor on that device.
    """
    if not max_grad_norm:
        return 1.0
    if isinstance(norm, Tensor) and not norm.is_cpu:
        return (max_grad_norm / (norm + 1e-6)).clamp(max=1.0)
    length, largest = float(norm), single(max_grad_norm)
    if length < largest:
        return 1.0
    inverse = single(1.0 / single(length + single(1e-6)))
    return min(single(largest * inverse), 1.0)


def single(number: float) -> float:
    """Rounded to single precision: what an operation on two such numbers gives in a tensor."""
    return ctypes.c_float(number).value


def checked_norm(max_grad_norm: float | None) -> float | None:
    if max_grad_norm is not None and not max_grad_norm >= 0:
        raise ValueError(
            f"max_grad_norm={max_grad_norm} is no norm; use a positive one, or 0 for no clipping."
        )
    return max_grad_norm


def backward(
    groups: Mapping[str, Sequence[nn.Parameter]], losses: Mapping[str, Tensor]
) -> dict[str, Gradients]:
    """Gradients of every group's loss, each with the strides of its parameter; changes nothing.

    So several threads may learn from one snapshot at the same time.
    """
    last, found = len(groups) - 1, dict[str, Gradients]()
    for number, (name, own) in enumerate(groups.items()):
        # Groups may share a graph: it is freed only after the last of them.
        gradients = torch.autograd.grad(
            losses[name], own, retain_graph=number < last, allow_unused=True
        )
        found[name] = own_arrays(own, gradients)
    return found


def own_arrays(parameters: Sequence[nn.Parameter], gradients: Gradients) -> Gradients:
    """The gradients, each in memory of its own and with its parameter's strides: as steps in place
    need them. Two parameters that are added have the same array."""
    taken, found = set[int](), list[Tensor | None]()
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            place = gradient.data_ptr()
            if gradient.stride() != parameter.stride() or place in taken:
                gradient = like(parameter, gradient)
            taken.add(place)
        found.append(gradient)
    return found


class NotFiniteGradientError(UserError, FloatingPointError):
    """A loss or gradient holds infinities or what is no number; the weights have not seen it."""


def not_finite(
    losses: Mapping[str, Tensor], version: int, learning_rate: float, cause: str = ""
) -> NotFiniteGradientError:
    """What led to it, in one sentence."""
    shown = ", ".join(f"{name}={loss.item():g}" for name, loss in losses.items())
    return NotFiniteGradientError(
        f"after {version:,} updates {cause}the losses were {shown}, the learning rate "
        f"{learning_rate}. The weights are as they were; a smaller learning rate, or a "
        "log_epsilon above 0, usually helps."
    )


def present(gradients: Gradients) -> list[Tensor]:
    return [each for each in gradients if each is not None]


def trainable_groups(network: nn.Module) -> dict[str, list[nn.Parameter]]:
    """The network's groups: all parameters, for each of its losses, unless it says otherwise."""
    everything = [each for each in network.parameters() if each.requires_grad]
    if not isinstance(network, Grouped):
        return dict.fromkeys(getattr(network, "loss_names", ("all",)), everything)
    groups = {
        name: [each for each in members if each.requires_grad]
        for name, members in network.parameter_groups().items()
    }
    listed = [id(each) for members in groups.values() for each in members]
    if sorted(listed) != sorted(map(id, everything)):
        raise ValueError(
            f"the parameter groups {sorted(groups)} list {len(listed)} parameters, but each of the "
            f"network's {len(everything)} must be in exactly one; freeze or add what is left out."
        )
    return groups


def of_group(value: Value | Mapping[str, Value], name: str) -> Value:
    """The group's own value, or the one that all groups share."""
    if not isinstance(value, Mapping):
        return value
    if name not in value:
        raise ValueError(
            f"there is a value for the groups {sorted(value)}, but none for '{name}'; add it."
        )
    chosen: Value = value[name]
    return chosen


def tensors(network: nn.Module) -> list[Tensor]:
    return [*network.parameters(), *network.buffers()]


def saved(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous copies under the same names."""
    return dict(zip(named, copies(named.values()), strict=True))


def check_names(theirs: Mapping[str, object], mine: Mapping[str, object], what: str) -> None:
    if theirs.keys() != mine.keys():
        raise ValueError(
            f"the saved {what} has {sorted(theirs)}, but this one has {sorted(mine)}; "
            "load it with the recipe that it was saved with."
        )


def check_shapes(theirs: Mapping[str, Tensor], mine: Mapping[str, Tensor]) -> None:
    """Refuses saved weights of other shapes, of one name or more."""
    for name, value in mine.items():
        if theirs[name].shape != value.shape:
            raise ValueError(
                f"the saved network has {name} of shape {tuple(theirs[name].shape)}, but this one "
                f"{tuple(value.shape)}; its shape has changed since the checkpoint: put it back, "
                "or start a new run with another --out."
            )
