"""The LSTM and networks with memory, beside PyTorch's own cell unrolled step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from scanline import networks
from scanline.carried import Carried, allocated, columns_of
from scanline.networks.heads import KINDS
from scanline.records import Spaces

VECTORS = Spaces(frame_shape=(6,), frame_dtype="float32", stack=1, num_actions=3)
FRAMES = Spaces(frame_shape=(84, 84), frame_dtype="uint8", stack=1, num_actions=3)
NUM_STEPS, NUM_ENVS = 7, 3


def network_of(spaces: Spaces, **changes: Any) -> Any:
    name = "lstm" if spaces.is_image else "mlp-lstm"
    return networks.build(name, spaces, "policy-value", seed=0, **changes)


def random_carried(network: nn.Module, begins: bool) -> Carried:
    random = torch.Generator().manual_seed(1)
    columns = columns_of(network)
    state = {
        name: torch.randn(each.shape, generator=random)
        for name, each in allocated(columns, NUM_ENVS).items()
    }
    drawn = torch.rand((NUM_STEPS, NUM_ENVS), generator=random) < 0.3
    assert drawn.any()
    return Carried(state, drawn if begins else None)


def observations_of(spaces: Spaces) -> Tensor:
    random = torch.Generator().manual_seed(2)
    rows = torch.rand((NUM_STEPS * NUM_ENVS, *spaces.observation_shape), generator=random)
    return (rows * 255).byte() if spaces.is_image else rows


def by_torch(network: Any, observations: Tensor, carried: Carried) -> tuple[Any, Any, nn.LSTM]:
    """Outputs and last state by PyTorch's LSTM, one step after the other."""
    memory, units = network.memory, network.memory.state.in_features
    cell = nn.LSTM(memory.inputs.in_features, units)
    given = (memory.inputs.weight, memory.state.weight, memory.inputs.bias, memory.state.bias)
    with torch.no_grad():
        for mine, theirs in zip(cell.parameters(), given, strict=True):
            mine.copy_(theirs)
    rows = network.stream(network.trunk(observations)).view(NUM_STEPS, NUM_ENVS, -1)
    hidden, inner, found = carried.state["hidden"], carried.state["cell"], []
    for t in range(NUM_STEPS):
        if carried.begins is not None:
            hidden = torch.where(carried.begins[t][:, None], 0.0, hidden)
            inner = torch.where(carried.begins[t][:, None], 0.0, inner)
        _, (last, last_inner) = cell(rows[t][None], (hidden[None], inner[None]))
        hidden, inner = last[0], last_inner[0]
        found.append(hidden)
    return network.head(torch.cat(found)), {"hidden": hidden, "cell": inner}, cell


def loss_of(outputs: Any) -> Tensor:
    return outputs.logits.square().sum() + outputs.value.cos().sum()


@pytest.mark.parametrize("spaces", [VECTORS, FRAMES], ids=["vectors", "frames"])
@pytest.mark.parametrize("kernels", ["native", "torch"])
@pytest.mark.parametrize("begins", [True, False])
def test_values_states_and_gradients_are_those_of_pytorchs_cell(
    spaces: Spaces, kernels: str, begins: bool
) -> None:
    network = network_of(spaces, kernels=kernels)
    observations, carried = observations_of(spaces), random_carried(network, begins)
    outputs, after = network(observations, carried)
    loss_of(outputs).backward()
    found = {name: each.grad.clone() for name, each in network.named_parameters()}
    network.zero_grad()
    expected, state, cell = by_torch(network, observations, carried)
    loss_of(expected).backward()
    slow = {name: each.grad for name, each in network.named_parameters()}
    names = ("inputs.weight", "state.weight", "inputs.bias", "state.bias")
    for name, each in zip(names, cell.parameters(), strict=True):
        slow[f"memory.{name}"] = each.grad
    for name, each in outputs._asdict().items():
        torch.testing.assert_close(each, getattr(expected, name), atol=1e-5, rtol=1e-4)
    for name, each in state.items():
        torch.testing.assert_close(after[name], each.detach(), atol=1e-6, rtol=1e-5)
        assert not after[name].requires_grad
    for name, each in slow.items():
        torch.testing.assert_close(found[name], each, atol=1e-5, rtol=1e-3, msg=name)


def test_steps_one_by_one_give_what_the_sequence_gives() -> None:
    """As acting does, which resets the state itself."""
    network = network_of(VECTORS)
    observations, carried = observations_of(VECTORS), random_carried(network, begins=True)
    whole, after = network(observations, carried)
    state = carried.state
    for t, rows in enumerate(observations.view(NUM_STEPS, NUM_ENVS, 1, 6)):
        state = {n: torch.where(carried.begins[t][:, None], 0.0, s) for n, s in state.items()}
        with torch.inference_mode():
            outputs, state = network(rows, Carried(state))
        at = slice(t * NUM_ENVS, (t + 1) * NUM_ENVS)
        torch.testing.assert_close(outputs.logits, whole.logits[at], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(state["cell"], after["cell"])


def test_stacks_of_one_frame_have_native_kernels() -> None:
    assert network_of(FRAMES).trunk.sizes is not None


@pytest.mark.parametrize("head", KINDS)
def test_every_head_can_follow_a_memory(head: str) -> None:
    network = networks.build("mlp-lstm", VECTORS, head, seed=0)
    outputs, _ = network(observations_of(VECTORS), random_carried(network, begins=False))
    assert len(outputs[0]) == NUM_STEPS * NUM_ENVS


def test_a_memory_that_is_not_given_is_asked_for() -> None:
    with pytest.raises(ValueError, match=r"batch\.outputs\(network\)"):
        network_of(VECTORS)(observations_of(VECTORS))
