"""Networks in bfloat16 and compiled: outputs in float32, near those of float32."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from scanline import networks
from scanline.errors import RefusedError
from scanline.records import Spaces

SPACES = Spaces(frame_shape=(3, 3), frame_dtype="uint8", stack=2, num_actions=3)


def network() -> torch.nn.Module:
    return networks.build("mlp", SPACES, "policy-value", seed=1, kernels="torch")


def observations() -> Tensor:
    return torch.arange(4 * 18).view(4, 2, 3, 3).to(torch.uint8)


def test_bfloat16_outputs_are_float32_and_near_and_a_copy_has_its_own_weights() -> None:
    plain, low = network()(observations()), network()
    networks.in_precision(low, "bfloat16")
    copied = copy.deepcopy(low)
    for found in (low(observations()), copied(observations())):
        assert found.logits.dtype is found.value.dtype is torch.float32
        torch.testing.assert_close(found.value, plain.value, rtol=0.02, atol=0.02)
        assert not torch.equal(found.value, plain.value)
    with torch.no_grad():
        copied.head.value.bias += 1.0
    moved = copied(observations()).value - low(observations()).value
    torch.testing.assert_close(moved, torch.ones(4), rtol=0.02, atol=0.02)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_compiler_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", ("no-such-compiler",))
    monkeypatch.setattr("torch._inductor.config.force_disable_caches", True)
    with pytest.raises(RefusedError, match="--compile needs a compiler that PyTorch can use"):
        networks.compile_forward(network(), observations())
    torch._dynamo.reset()
