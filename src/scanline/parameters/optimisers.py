"""Optimisers: one RMSProp with every published placement of epsilon, and any of PyTorch's.

Takes parameters whose `.grad` is set and a learning rate; changes the parameters in place.
Knows nothing of losses, clipping, schedules in use or of what computed the gradient.

RMSProp is written here because TensorFlow 1, Lasagne, Keras and PyTorch each mean another
formula by the name, and with the epsilon of 0.1 that A3C uses the difference decides the run.
On a CPU it runs in one native pass; the same formula in whole arrays is what it is compared with.
Adam is PyTorch's fused one: a quarter of the time of its foreach form on a CPU.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Protocol, get_args

import torch
from torch import Tensor

from .._native import rmsprop
from ..devices import beside
from ..interfaces import Metric
from ..native_arrays import Span, is_gapless, spans
from ..records import State
from ..schedules import Constant, Linear, Schedule, WarmUp
from ..settings import at_least

Kind = Literal["rmsprop", "adam"]
Anneal = Literal["none", "linear"]
ScaleWithEnvs = Literal["none", "linear", "sqrt"]
Factory = Callable[[list[Tensor]], torch.optim.Optimizer]
"""Parameters to the optimiser that moves them; its learning rate is set before every step."""
_LARGEST = torch.finfo(torch.float32).max


@dataclass(frozen=True, kw_only=True)
class RateSettings(ABC):
    """How long steps are, whatever the optimiser: a user's own settings begin with these."""

    needs: ClassVar[frozenset[str]] = frozenset()

    learning_rate: float = 7e-4
    """Step size at the start of the run, in parameter units per normalised gradient."""
    max_grad_norm: float = 0.0
    """Largest norm of a whole gradient; a longer one is shortened to it. 0 for no clipping."""
    scale_with_envs: ScaleWithEnvs = "none"
    """How the learning rate grows with num_envs / scale_base_envs."""
    scale_base_envs: int = 1
    """Environments for which `learning_rate` is meant, where it grows with their number."""
    anneal: Anneal = "none"
    """'linear' takes the learning rate to zero over the run's agent steps; 'none' keeps it."""
    warmup_agent_steps: int = 0
    """Agent steps over which the learning rate first grows from zero; 0 for none."""

    def __post_init__(self) -> None:
        self._check_choices(anneal=Anneal, scale_with_envs=ScaleWithEnvs)
        at_least(1, self, "scale_base_envs")
        at_least(0, self, "warmup_agent_steps", "max_grad_norm")
        self._check_positive("learning_rate")

    def _check_choices(self, **choices: Any) -> None:
        for name, choice in choices.items():
            if getattr(self, name) not in get_args(choice):
                raise ValueError(
                    f"{name}='{getattr(self, name)}' is unknown; use one of {get_args(choice)}."
                )

    def _check_positive(self, name: str) -> None:
        value = getattr(self, name)
        if not value > 0:
            raise ValueError(f"{name}={value} is not positive; use a number above 0.")
        if value > _LARGEST:
            raise ValueError(f"{name}={value} overflows 32-bit floats; use one far below 1.")

    @property
    def gives(self) -> frozenset[str]:
        return frozenset()

    @abstractmethod
    def build(self, parameters: Sequence[Tensor]) -> Optimiser:
        """The optimiser of these parameters, one group of a network's."""

    def scaled_rate(self, num_envs: int) -> float:
        """The learning rate for so many environments."""
        ratio = num_envs / self.scale_base_envs
        factor = {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}[self.scale_with_envs]
        return self.learning_rate * factor

    def schedule(self, total_agent_steps: int, num_envs: int = 1) -> Schedule:
        """The learning rate as a function of agent steps, in a run of `total_agent_steps`."""
        start = self.scaled_rate(num_envs)
        rate: Schedule = Constant(value=start)
        if self.anneal == "linear":
            rate = Linear(start=start, end=0.0, duration_agent_steps=total_agent_steps)
        if self.warmup_agent_steps:
            rate = WarmUp(schedule=rate, duration_agent_steps=self.warmup_agent_steps)
        return rate


@dataclass(frozen=True, kw_only=True)
class OptimiserSettings(RateSettings):
    """How gradients become steps: RMSProp or Adam."""

    kind: Kind = "rmsprop"
    """Which formula: 'rmsprop' or 'adam'."""
    decay: float = 0.99
    """Weight of the past in RMSProp's averages, per update; Adam reads `betas`."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Weights of the past in Adam's mean and square, per update; RMSProp reads `decay`."""
    epsilon: float = 1e-5
    """What keeps the denominator from zero: in gradient units outside the root, squared inside."""
    epsilon_inside_root: bool = False
    """RMSProp: sqrt(square + epsilon), as TensorFlow 1 and Lasagne; else sqrt(square) + epsilon."""
    square_starts_at: float = 0.0
    """RMSProp: first value of the average square, in squared gradient units; 1 in TensorFlow 1."""
    centred: bool = False
    """RMSProp: divide by the deviation from the average gradient, as Mnih 2015 did."""
    amsgrad: bool = False
    """Adam: divide by the largest average square so far."""

    def __post_init__(self) -> None:
        self._check_choices(kind=Kind)
        super().__post_init__()
        at_least(0, self, "square_starts_at")
        self._check_positive("epsilon")
        for name, weight in (("decay", self.decay), *(("betas", beta) for beta in self.betas)):
            if not 0 <= weight < 1:
                raise ValueError(f"{name} has {weight}, outside [0, 1); 0.99 is usual.")
        self._check_reader()

    @property
    def gives(self) -> frozenset[str]:
        return frozenset({self.kind, "shared memory"})

    def _check_reader(self) -> None:
        """A setting that the chosen formula never reads is refused, not ignored."""
        unread = {
            "rmsprop": ("amsgrad",),
            "adam": ("epsilon_inside_root", "square_starts_at", "centred"),
        }
        for name in unread[self.kind]:
            if getattr(self, name):
                raise ValueError(
                    f"{name}={getattr(self, name)} means nothing to '{self.kind}'; "
                    "leave it at its default or choose the other kind."
                )

    def build(self, parameters: Sequence[Tensor]) -> Optimiser:
        if self.kind == "rmsprop":
            return RMSProp(parameters, self)
        return TorchOptimiser(
            parameters,
            partial(
                torch.optim.Adam,
                betas=self.betas,
                eps=self.epsilon,
                amsgrad=self.amsgrad,
                fused=True,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class TorchSettings(RateSettings):
    """Any optimiser of PyTorch's kind, made by a function."""

    factory: Factory
    """Parameters to a torch optimiser: torch.optim.RAdam, or a function of your own that gives one
    its further options. The learning rate is that of these settings, set before every step."""

    def build(self, parameters: Sequence[Tensor]) -> Optimiser:
        return TorchOptimiser(parameters, self.factory)


class Optimiser(Protocol):
    """Changes its parameters by their gradients; parameters without one stay as they are."""

    def step(self, learning_rate: float, gradient_scale: Metric = 1.0) -> None:
        """Takes every gradient times `gradient_scale`; what `.grad` holds afterwards is open."""

    def adopt(self, memories: Mapping[str, Sequence[Tensor]]) -> None:
        """Remembers in these tensors from now on, one per parameter, named by `memories`."""

    def remembered(self) -> dict[str, list[Tensor]]:
        """The tensors that it remembers in, by name, one per parameter."""

    def state(self) -> State: ...

    def load(self, state: State) -> None: ...


class RMSProp:
    """p -= rate * g / denominator, the denominator from decaying averages of g and g squared."""

    def __init__(
        self, parameters: Sequence[Tensor], settings: OptimiserSettings, fused: bool = True
    ) -> None:
        self.parameters = list(parameters)
        self.settings = settings
        start = settings.square_starts_at
        self.square = [torch.full_like(each, start) for each in self.parameters]
        self.mean = [torch.zeros_like(each) for each in self.parameters] if settings.centred else []
        self._denominator = [torch.empty_like(each) for each in self.parameters]
        self._fused = fused and all(map(is_gapless, self.parameters))
        self._memory_spans = self._spans_of_memory()

    def _spans_of_memory(self) -> tuple[list[Span], list[Span]]:
        """Of squares and means, which stay where they are until others are adopted."""
        return (spans(self.square), spans(self.mean)) if self._fused else ([], [])

    def step(self, learning_rate: float, gradient_scale: Metric = 1.0) -> None:
        moved = [i for i, each in enumerate(self.parameters) if each.grad is not None]
        if not moved:
            return
        gradients = [grad for each in self.parameters if (grad := each.grad) is not None]
        if self._fused and all(map(self._in_order, moved, gradients)):
            self._step_in_one_pass(moved, gradients, learning_rate, gradient_scale)
        else:
            scale(gradients, gradient_scale)
            self._step_in_whole_arrays(moved, gradients, learning_rate)

    def _in_order(self, place: int, gradient: Tensor) -> bool:
        """Whether raw memory pairs the right numbers."""
        return gradient.stride() == self.parameters[place].stride()

    def _step_in_one_pass(
        self,
        moved: list[int],
        gradients: list[Tensor],
        learning_rate: float,
        gradient_scale: Metric,
    ) -> None:
        settings, (square, mean) = self.settings, self._memory_spans
        parameters = [self.parameters[i] for i in moved]
        rmsprop(
            spans(gradients),
            spans(parameters),
            [square[i] for i in moved],
            [mean[i] for i in moved] if mean else [],
            settings.decay,
            settings.epsilon,
            settings.epsilon_inside_root,
            learning_rate,
            float(gradient_scale),
        )
        torch.autograd.graph.increment_version(parameters)

    @torch.no_grad()
    def _step_in_whole_arrays(
        self, moved: list[int], gradients: list[Tensor], learning_rate: float
    ) -> None:
        denominators = self._denominators(moved, gradients)
        parameters = [self.parameters[i] for i in moved]
        torch._foreach_addcdiv_(parameters, gradients, denominators, value=-learning_rate)

    def _denominators(self, moved: list[int], gradients: list[Tensor]) -> list[Tensor]:
        """Moves the averages on and gives the root of the square, or of the variance."""
        decay, settings = self.settings.decay, self.settings
        square = [self.square[i] for i in moved]
        result = [self._denominator[i] for i in moved]
        torch._foreach_mul_(square, decay)
        torch._foreach_addcmul_(square, gradients, gradients, value=1 - decay)
        torch._foreach_copy_(result, square)
        if settings.centred:
            mean = [self.mean[i] for i in moved]
            torch._foreach_mul_(mean, decay)
            torch._foreach_add_(mean, gradients, alpha=1 - decay)
            torch._foreach_addcmul_(result, mean, mean, value=-1)
            torch._foreach_clamp_min_(result, 0.0)  # rounding may leave a variance below zero
        if settings.epsilon_inside_root:
            torch._foreach_add_(result, settings.epsilon)
        torch._foreach_sqrt_(result)
        if not settings.epsilon_inside_root:
            torch._foreach_add_(result, settings.epsilon)
        return result

    def adopt(self, memories: Mapping[str, Sequence[Tensor]]) -> None:
        self.square, self.mean = list(memories["square"]), list(memories.get("mean", ()))
        self._memory_spans = self._spans_of_memory()

    def remembered(self) -> dict[str, list[Tensor]]:
        return {"square": self.square} | ({"mean": self.mean} if self.settings.centred else {})

    def state(self) -> State:
        return {"square": copies(self.square), "mean": copies(self.mean)}

    def load(self, state: State) -> None:
        for mine, saved in ((self.square, state["square"]), (self.mean, state["mean"])):
            check_count(len(saved), len(mine))
            for target, value in zip(mine, saved, strict=True):
                target.copy_(value)


class TorchOptimiser:
    """An optimiser of PyTorch's kind, with a state that needs no pickle."""

    def __init__(self, parameters: Sequence[Tensor], factory: Factory) -> None:
        self.parameters = list(parameters)
        made = factory(self.parameters)
        if not isinstance(made, torch.optim.Optimizer):
            raise ValueError(
                f"factory gave a {type(made).__name__}, but it must give a torch.optim.Optimizer; "
                "e.g. factory=torch.optim.RAdam."
            )
        self._optimiser = made
        self._first = self._numbers()

    def _numbers(self) -> list[dict[str, float]]:
        """What its groups count by themselves; the learning rate is set at every step."""
        return [
            {n: v for n, v in group.items() if n != "lr" and isinstance(v, (int, float))}
            for group in self._optimiser.param_groups
        ]

    @torch.no_grad()
    def step(self, learning_rate: float, gradient_scale: Metric = 1.0) -> None:
        scale([grad for each in self.parameters if (grad := each.grad) is not None], gradient_scale)
        for each in self.parameters:
            # The fused kernel walks raw memory and would pair the wrong numbers in silence.
            if each.grad is not None and each.grad.stride() != each.stride():
                each.grad = like(each, each.grad)
        for group in self._optimiser.param_groups:
            group["lr"] = learning_rate
        self._optimiser.step()

    def adopt(self, memories: Mapping[str, Sequence[Tensor]]) -> None:
        for place, each in enumerate(self.parameters):
            own = {name: tensors[place] for name, tensors in memories.items()}
            self._optimiser.state[each] = own

    def remembered(self) -> dict[str, list[Tensor]]:
        slots = [self._optimiser.state.get(each, {}) for each in self.parameters]
        return {name: [slot[name] for slot in slots] for name in slots[0]}

    def state(self) -> State:
        """Per parameter PyTorch's own names; empty for one that was never stepped."""
        slots = [self._optimiser.state.get(each, {}) for each in self.parameters]
        saved = [{name: _copied(value) for name, value in slot.items()} for slot in slots]
        numbers = self._numbers()
        return {"slots": saved} | ({"groups": numbers} if numbers != self._first else {})

    def load(self, state: State) -> None:
        check_count(len(state["slots"]), len(self.parameters))
        for parameter, slot in zip(self.parameters, state["slots"], strict=True):
            self._optimiser.state[parameter] = {
                name: like(parameter, value) if isinstance(value, Tensor) else value
                for name, value in slot.items()
            }
        for group, numbers in zip(
            self._optimiser.param_groups, state.get("groups", self._first), strict=True
        ):
            group.update(numbers)


STEP = "step"
"""Adam's count of updates, the one memory that is a single number."""


def memories(settings: OptimiserSettings) -> dict[str, float]:
    """What an optimiser remembers between updates, by name, with its first value."""
    if settings.kind == "rmsprop":
        return {"square": settings.square_starts_at} | ({"mean": 0.0} if settings.centred else {})
    squares = ("exp_avg_sq", "max_exp_avg_sq") if settings.amsgrad else ("exp_avg_sq",)
    return dict.fromkeys((STEP, "exp_avg", *squares), 0.0)


def scale(gradients: list[Tensor], factor: Metric) -> None:
    """Times a number; a tensor on the gradients' device is not read, so nothing waits."""
    if isinstance(factor, Tensor) or factor != 1.0:
        torch._foreach_mul_(gradients, factor)


def copies(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Contiguous copies, so that they can be written while the originals move on."""
    return [each.detach().clone(memory_format=torch.contiguous_format) for each in tensors]


def _copied(value: Any) -> Any:
    """A tensor's copy; of what is none (a count, a missing momentum) the value itself."""
    return copies([value])[0] if isinstance(value, Tensor) else value


def like(parameter: Tensor, value: Tensor) -> Tensor:
    """A copy on the parameter's device and, where it has its shape, in its memory order."""
    if value.shape != parameter.shape:
        return beside(value, parameter)
    return torch.empty_like(parameter, requires_grad=False).copy_(value)


def check_count(saved: int, mine: int) -> None:
    if saved != mine:
        raise ValueError(
            f"the saved optimiser holds {saved} tensors per slot, but this one has {mine}; "
            "load it with the network and the optimiser settings that it was saved with."
        )
