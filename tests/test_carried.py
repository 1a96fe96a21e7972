"""Carried state: a user's own cell along sequences, burn-in, rows that are chosen."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from scanline.carried import Carried, Column, Sequences, State, picked
from scanline.records import PolicyValue


class Counting(nn.Module):
    """A user's own network: it sums what it has seen in the episode, from 10 on."""

    carried: Mapping[str, Column] = {"sum": Column((1,), initial=10.0)}

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, observations: Tensor, carried: Carried) -> tuple[PolicyValue, State]:
        rows, state = carried.unroll(self.step, self.gain * observations, self.carried)
        return PolicyValue(rows, rows[:, 0]), state

    def step(self, rows: Tensor, state: State) -> tuple[Tensor, State]:
        total = state["sum"] + rows
        return total, {"sum": total}


SEEN = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]])  # [T, B]
BEGINS = torch.tensor([[False, False], [False, True], [True, False], [False, False]])
SUMS = torch.tensor([[1.0, 15.0], [3.0, 30.0], [13.0, 60.0], [17.0, 100.0]])
"""From 0 and 5; where an episode begins, from 10."""
FIRST = {"sum": torch.tensor([[0.0], [5.0]])}


def test_a_cell_begins_anew_where_an_episode_begins() -> None:
    outputs, after = Counting()(SEEN.view(8, 1), Carried(FIRST, BEGINS))
    assert torch.equal(outputs.value.view(4, 2), SUMS)
    assert torch.equal(after["sum"][:, 0], SUMS[-1])


def test_no_gradient_goes_through_the_beginning_of_an_episode() -> None:
    rows = SEEN.view(8, 1).requires_grad_()
    outputs, _ = Counting()(rows, Carried(FIRST, BEGINS))
    outputs.value.view(4, 2)[-1].sum().backward()
    assert rows.grad is not None
    assert rows.grad.view(4, 2).tolist() == [[0, 0], [0, 1], [1, 1], [1, 1]]


def test_burn_in_brings_the_state_up_to_date_without_gradient() -> None:
    rows, network = SEEN.view(8, 1).requires_grad_(), Counting()
    outputs = Sequences(FIRST, BEGINS, burn_in=1).outputs(network, rows)
    assert torch.equal(outputs.value.view(3, 2), SUMS[1:])
    outputs.value.sum().backward()
    assert rows.grad is not None
    assert rows.grad.view(4, 2)[0].tolist() == [0, 0]


def test_rows_are_chosen_of_tensors_and_tuples() -> None:
    rows = torch.tensor([3, 0])
    outputs = Sequences(FIRST, BEGINS, chosen=rows).outputs(Counting(), SEEN.view(8, 1))
    assert outputs.value.tolist() == [30.0, 1.0]
    assert isinstance(outputs, PolicyValue)
    assert picked(torch.arange(4), rows).tolist() == [3, 0]


def test_some_environments_of_sequences_are_sequences() -> None:
    whole = Sequences(FIRST, BEGINS)
    part = whole.of_envs(slice(1, 2))
    rows = whole.rows_of(SEEN.view(8, 1), slice(1, 2))
    assert torch.equal(part.outputs(Counting(), rows).value, SUMS[:, 1])
