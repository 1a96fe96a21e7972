"""The simulated device: the CPU's numbers elsewhere, no mixture, everything counted."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from scanline import simulated

HERE = "simulated"


def network() -> nn.Sequential:
    torch.manual_seed(1)
    conv = nn.Conv2d(1, 4, 3)
    return nn.Sequential(conv, nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(16, 2))


def trained(device: str) -> list[Tensor]:
    """Weights after three updates with Adam; the second half by a copy of the network."""
    module, inputs = network().to(device), torch.linspace(-1, 1, 80).view(5, 1, 4, 4).to(device)
    for _ in range(3):
        module = copy.deepcopy(module)
        optimiser = torch.optim.Adam(module.parameters(), lr=0.1, fused=True)
        loss = module(inputs).square().mean()
        gradients = torch.autograd.grad(loss, list(module.parameters()))
        for parameter, gradient in zip(module.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()
    return [each.detach().cpu() for each in module.parameters()]


def test_simulated_learning_gives_the_numbers_of_the_cpu() -> None:
    for mine, theirs in zip(trained(HERE), trained("cpu"), strict=True):
        # PyTorch's backward pass of a device has a thread of its own, with other sums.
        torch.testing.assert_close(mine, theirs)


def test_simulated_views_share_memory_and_state_dicts_load() -> None:
    whole = torch.zeros(4, 3, device=HERE)
    whole[1].fill_(2.0)
    whole.view(-1)[0] = 5.0
    assert whole.tolist() == [[5, 0, 0], [2, 2, 2], [0, 0, 0], [0, 0, 0]]
    source, target = network(), network().to(HERE)
    nn.init.zeros_(target[0].weight)
    target.load_state_dict(source.state_dict())
    assert torch.equal(target[0].weight.detach().cpu(), source[0].weight.detach())


@pytest.mark.parametrize(
    "mixes",
    [
        lambda there: there + torch.ones(3),
        lambda there: there[torch.tensor([0])],
        lambda there: torch.cat([there, torch.ones(2)]),
        lambda there: there + torch.ones(3, device="simulated:1"),
        lambda there: there.copy_(torch.ones(3, device="simulated:1")),
        lambda there: torch.where(torch.ones(3) > 0, there, 0.0),
        lambda there: nn.Linear(3, 2)(there),
    ],
)
def test_simulated_devices_do_not_mix(mixes: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(RuntimeError, match="several devices"):
        mixes(torch.ones(3, device=HERE))


def test_a_simulated_tensor_is_no_array() -> None:
    with pytest.raises(TypeError, match="download it"):
        torch.ones(3, device=HERE).numpy()


def test_simulated_traffic_is_counted_in_every_thread() -> None:
    host = torch.arange(12.0)

    def work() -> None:
        there = host.to(HERE)  # 1 upload
        doubled = (there.view(3, 4) * 2).sum()  # 2 operations
        float(doubled)  # a wait and an operation
        there[there > 5]  # a mask: a wait, 2 operations
        there.cpu()  # 1 download

    with simulated.measured() as traffic:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert (traffic.uploads, traffic.uploaded_bytes) == (1, 48)
    assert (traffic.downloads, traffic.downloaded_bytes) == (1, 48)
    assert traffic.waits == 3
    assert traffic.names == {"mul": 1, "sum": 1, "_local_scalar_dense": 1, "gt": 1, "index": 1}


def test_too_little_simulated_memory_is_pytorchs_error() -> None:
    with simulated.memory(100), pytest.raises(torch.OutOfMemoryError):
        torch.zeros(1_000, device=HERE)
