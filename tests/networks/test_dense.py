"""Dense layers by the native kernels against PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from networks.native_and_torch import (
    NOT_FINITE,
    assert_same_kinds,
    spoil,
)
from scanline.networks.dense import dense


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("relu", [True, False])
def test_dense_layers_keep_what_is_no_number(relu: bool, value: float) -> None:
    layer = nn.Linear(32, 21)
    spoil(layer.weight, 70, value)
    rows = torch.randn(9, 32, generator=torch.Generator().manual_seed(0)).clamp(min=0)
    rows[4, 5] = value
    outs = []
    for own in (True, False):
        layer.zero_grad()
        given = rows.clone().requires_grad_()
        if own:
            (out,) = dense([layer], given, relu=relu)
        else:
            out = layer(given).relu() if relu else layer(given)
        out.square().sum().backward()
        assert given.grad is not None and layer.weight.grad is not None
        assert layer.bias.grad is not None
        outs.append([out.detach(), given.grad, layer.weight.grad, layer.bias.grad])
    for found, expected in zip(*outs, strict=True):
        assert_same_kinds(found, expected, "rows or gradients")
