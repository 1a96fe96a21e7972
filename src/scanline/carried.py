"""Carried state: what a network with memory gives after a step and gets back before the next one.

A network that has a memory declares it as `carried`, columns by name. Its `forward` takes
observations [T * B, ...] and a `Carried`, and gives outputs [T * B, ...] and the state after the
last step, each [B, ...]. Acting is one step (T = 1); learning goes along sequences, time first.
Knows no network, sampler or store: these agree on it here.

An episode begins with the initial value of every column: after the game's end, after a truncation,
and after a lost life where that ends the return (CleanRL's recurrent PPO does so too).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

State = Mapping[str, Tensor]
"""The carried state by name, each [B, ...]."""
Step = Callable[[Tensor, State], tuple[Tensor, State]]
"""One step of a cell: rows [B, features] and the state before it; rows and the state after it."""


@dataclass(frozen=True)
class Column:
    """One array that is stored with every step."""

    shape: tuple[int, ...] = ()
    dtype: torch.dtype = torch.float32
    initial: float = 0.0
    """What an episode begins with, of a column that a network carries."""


def columns_of(part: Any) -> Mapping[str, Column]:
    """What a network or a policy carries from step to step; nothing where it does not say."""
    found: Mapping[str, Column] = getattr(part, "carried", {})
    return found


def allocated(columns: Mapping[str, Column], *sizes: int, device: Any = None) -> dict[str, Tensor]:
    """Initial values of every column, [*sizes, *shape]."""
    return {
        name: torch.full((*sizes, *each.shape), each.initial, dtype=each.dtype, device=device)
        for name, each in columns.items()
    }


def masked(state: Tensor, where: Tensor, initial: float) -> Tensor:
    """The state [B, ...] with the initial value where an episode begins [B]; no gradient there."""
    return state.masked_fill(where.view(-1, *(1,) * (state.dim() - 1)), initial)


@dataclass(frozen=True)
class Carried:
    """What a network with memory is given beside the observations of T steps of B environments."""

    state: State
    """Before the first step."""
    begins: Tensor | None = None
    """[T, B] bool, at which steps an episode begins; None where none does."""

    @property
    def num_envs(self) -> int:
        return len(next(iter(self.state.values())))

    def unroll(
        self, step: Step, rows: Tensor, columns: Mapping[str, Column]
    ) -> tuple[Tensor, State]:
        """Runs a cell along the sequences: rows [T * B, ...] to rows [T * B, ...] and the state
        after the last step."""
        state, found = self.state, []
        for t, row in enumerate(rows.view(-1, self.num_envs, *rows.shape[1:])):
            if self.begins is not None:
                state = {
                    name: masked(each, self.begins[t], columns[name].initial)
                    for name, each in state.items()
                }
            given, state = step(row, state)
            found.append(given)
        return torch.cat(found), state


def single_step(
    network: Any, inputs: Tensor, carried: Carried | None
) -> tuple[Any, Carried | None]:
    """Outputs of one step of each row by any network, and what is carried into the next."""
    if carried is None:
        return network(inputs), None
    outputs, after = network(inputs, carried)
    return outputs, Carried(after)


@dataclass(frozen=True)
class Sequences:
    """How the rows of a batch are sequences: L steps of B environments, time first."""

    state: State
    """Before the first step, as acting stored it."""
    begins: Tensor
    """[L, B] bool, at which steps an episode begins."""
    burn_in: int = 0
    """Steps at the start that only bring the state up to date, without gradient."""
    chosen: Tensor | None = None
    """[N] places among the rows after them that are learned from; None for all."""
    following: Tensor | None = None
    """[N] places among the rows after them of what is n steps later, where that is in them."""

    @classmethod
    def of(cls, carried: State, ends: Tensor, num_steps: int) -> Sequences:
        """The first steps of a rollout: states [T + 1, B, ...], and after which steps [T, B] what
        is carried was made initial; of the first one it is so already."""
        begins = torch.cat([torch.zeros_like(ends[:1]), ends])
        return cls({name: each[0] for name, each in carried.items()}, begins[:num_steps])

    def outputs(self, network: Any, rows: Tensor) -> Any:
        """What a network gives for the rows [L * B, ...], of those that are learned from."""
        return picked(self._run(network, rows), self.chosen)

    def next_outputs(self, network: Any, rows: Tensor) -> Any:
        """The same of what is n steps later."""
        return picked(self._run(network, rows), self.following)

    def _run(self, network: Any, rows: Tensor) -> Any:
        first, state = self.burn_in * self.begins.shape[1], self.state
        if first:
            with torch.no_grad():
                _, state = network(rows[:first], Carried(state, self.begins[: self.burn_in]))
        outputs, _ = network(rows[first:], Carried(state, self.begins[self.burn_in :]))
        return outputs

    @property
    def num_whole(self) -> int:
        """Environments whose sequences are learned from whole: all, or none."""
        return self.begins.shape[1] if self.chosen is None and not self.burn_in else 0

    def rows_of(self, rows: Tensor, envs: slice) -> Tensor:
        """Of rows [L * B, ...] those of some environments."""
        return rows.view(*self.begins.shape, *rows.shape[1:])[:, envs].flatten(0, 1)

    def of_envs(self, envs: slice | Tensor) -> Sequences:
        """Fewer environments of sequences that are learned from whole."""
        state = {name: each[envs] for name, each in self.state.items()}
        return replace(self, state=state, begins=self.begins[:, envs])


def picked(outputs: Any, rows: Tensor | None) -> Any:
    """Some rows of a network's outputs: a tensor, or a named tuple of them."""
    if rows is None:
        return outputs
    if isinstance(outputs, Tensor):
        return outputs[rows]
    return type(outputs)(*(picked(each, rows) for each in outputs))
