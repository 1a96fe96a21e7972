"""Threads of the native kernels, and the arrays that they refuse."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import Tensor

from networks.native_and_torch import (
    drawn,
    gradients,
    images,
    pair,
)
from scanline import _native, networks
from scanline.native_arrays import span, spans


@pytest.mark.parametrize("num_threads", [2, 3])
def test_threads_change_no_bit(num_threads: int) -> None:
    native, _ = pair("nature")
    observations = torch.cat((images("nature", 21), drawn("nature", 60)))
    networks.share_cores(1, native=True)
    alone = gradients(native, observations)
    networks.share_cores(num_threads, native=True)
    for _ in range(3):
        together = gradients(native, observations)
        assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


def test_callers_in_several_threads_get_their_own_results() -> None:
    native, _ = pair("nips")
    networks.share_cores(2, native=True)
    batches = [images("nips", num) for num in (4, 7, 16)]
    with torch.no_grad():
        expected = [native(batch).logits for batch in batches]
    wrong: list[int] = []

    def call(number: int) -> None:
        with torch.no_grad():
            for _ in range(30):
                if not torch.equal(native(batches[number]).logits, expected[number]):
                    wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(timeout=60)
        assert not caller.is_alive()
    assert not wrong


def given(frames: Tensor) -> _native.Images:
    address, shape = frames.data_ptr(), tuple(frames.shape)
    return _native.Images(address, True, shape, frames.stride(), 1.0, 0.0)


def test_wrong_arrays_are_refused() -> None:
    sizes = [[84, 84, 4, 16, 8, 4, 0, 0, 0, 0]]
    if _native.ConvStack.refusal(sizes) is not None:
        pytest.skip("this processor has no native kernels")
    stack = _native.ConvStack(sizes).begin()
    weights = spans([torch.zeros(16, 8, 8, 4), torch.zeros(16)])
    frames, features = torch.zeros((2, 4, 84, 84), dtype=torch.uint8), torch.zeros(2, 20 * 20 * 16)
    whole = [span(features)]
    with pytest.raises(ValueError, match="rows has"):
        stack.forward(given(frames), weights, [span(features[:1])])
    with pytest.raises(ValueError, match="weights do not have"):
        stack.forward(given(frames), [(weights[0][0], 8), weights[1]], whole)
    with pytest.raises(ValueError, match="for every convolution"):
        stack.forward(given(frames), weights[:1], whole)
    with pytest.raises(ValueError, match="sizes of the first"):
        stack.forward(given(frames[:, :3]), weights, whole)
    with pytest.raises(ValueError, match="multiple of 16 units"):
        stack.forward(given(frames), [*weights, (0, 6400 * 8), (0, 8)], [(0, 16)])
    with pytest.raises(ValueError, match="weights of the dense layer has"):
        stack.forward(given(frames), [*weights, (0, 6400 * 8), (0, 16)], [(0, 32)])
    hidden = [*weights, (0, 6400 * 16), (0, 16)]
    with pytest.raises(ValueError, match="rows for every layer"):
        stack.forward(given(frames), hidden, [(0, 32), (0, 2)])
    with pytest.raises(ValueError, match="sizes of one layer"):
        stack.forward(given(frames), [*hidden, (0, 16 * 3 + 1), (0, 3)], [(0, 32), (0, 6)])
    with pytest.raises(ValueError, match="out has"):
        stack.forward(given(frames), [*hidden, (0, 16 * 3), (0, 3)], [(0, 32), (0, 5)])
    stack.forward(given(frames), weights, whole)
    with pytest.raises(ValueError, match="went through a dense layer"):
        stack.backward(hidden, [(0, 32)], [(0, 32)], hidden)
    with pytest.raises(ValueError, match="for every weight"):
        stack.backward(hidden, [(0, 32)], [(0, 32)], weights)
    with pytest.raises(ValueError, match="for every row"):
        stack.backward(weights, whole, [(0, 32)], weights)
    layers = [*hidden, (0, 16 * 3), (0, 3)]
    with pytest.raises(ValueError, match="out_gradients has"):
        stack.backward(layers, [(0, 32), (0, 6)], [(0, 32)], layers)
    with pytest.raises(ValueError, match="contiguous"):
        given(frames.transpose(2, 3))
    with pytest.raises(ValueError, match="sizes of one layer"):
        _native.dense_forward(span(torch.zeros(33)), [(0, 33), (0, 16)], [(0, 16)], True)
    with pytest.raises(ValueError, match="for every layer"):
        _native.dense_forward(span(torch.zeros(32)), [(0, 32)], [(0, 16)], True)
    with pytest.raises(ValueError, match="must have one size"):
        _native.rmsprop([(0, 3)], [(0, 4)], [(0, 3)], [], 0.9, 0.1, False, 0.1, 1.0)
    with pytest.raises(ValueError, match="sizes of one rollout"):
        _native.n_step_returns((0, 6), (0, 6), (0, 6), (0, 6), (0, 4), 0.9, (0, 6))
    with pytest.raises(ValueError, match="at least one thread"):
        _native.set_layer_threads(0)


def test_arrays_that_are_not_what_they_seem_are_refused() -> None:
    for wrong in (torch.zeros(8).double(), torch.zeros(8)[::2], torch.zeros(1).expand(8)):
        with pytest.raises(TypeError, match="float32 on the CPU without gaps"):
            span(wrong)
    with pytest.raises(ValueError, match="sizes of one batch"):
        _native.draw_categorical((0, 0), span(torch.zeros(4)), (0, 4))
