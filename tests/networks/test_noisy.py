"""Noise per row is what a matrix of its own per row would give."""

from __future__ import annotations

import torch

from scanline.networks import NoisyLinear


def test_every_row_has_weights_of_its_own() -> None:
    layer = NoisyLinear(5, 3)
    rows, normals = torch.randn(4, 5), torch.randn(4, layer.num_normals)
    root = normals.sign() * normals.abs().sqrt()
    for n, (a, b) in enumerate(zip(root[:, :5], root[:, 5:], strict=True)):
        weight = layer.mean.weight + layer.deviation.weight * torch.outer(b, a)
        bias = layer.mean.bias + layer.deviation.bias * b
        torch.testing.assert_close(layer(rows, normals)[n], weight @ rows[n] + bias)
    assert torch.equal(layer(rows), layer.mean(rows))


def test_deviations_learn_where_there_is_noise() -> None:
    layer = NoisyLinear(5, 3)
    layer(torch.randn(4, 5), torch.randn(4, layer.num_normals)).sum().backward()
    assert all(each.grad is not None and each.grad.any() for each in layer.parameters())
