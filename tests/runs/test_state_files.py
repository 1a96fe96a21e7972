"""States survive being encoded and decoded, type by type."""

from __future__ import annotations

import json
import math
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from scanline.runs.state_files import SegmentFile, decode, encode


def through_bytes(state: dict[str, Any]) -> Any:
    taken = encode(state)
    tensors = safetensors.torch.load(safetensors.torch.save(taken.tensors))
    return decode(json.loads(json.dumps(taken.tree, allow_nan=False)), tensors)


def assert_same(left: Any, right: Any) -> None:
    if isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list | tuple):
        assert type(left) is type(right)
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype
        assert left.stride() == right.stride()
        assert torch.equal(left, right)
    elif isinstance(left, np.ndarray | np.generic):
        assert type(left) is type(right)
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert left.tobytes() == right.tobytes()
    else:
        assert type(left) is type(right)
        assert left == right or (math.isnan(left) and math.isnan(right))


numbers = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
states = st.recursive(
    numbers,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.just("$"), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), states, max_size=4))
def test_any_nested_plain_state_comes_back(state: dict[str, Any]) -> None:
    assert_same(state, through_bytes(state))


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.uint16, torch.uint32, torch.uint64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64),
    ],
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4, 5)])
def test_tensors_of_every_type_and_shape_come_back(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    numbers = torch.arange(math.prod(shape)).reshape(shape)
    assert_same({"x": numbers.to(dtype)}, through_bytes({"x": numbers.to(dtype)}))


@pytest.mark.parametrize(
    "dtype", ["?", *(kind + size for kind in "ui" for size in "1248"), "f2", "f4", "f8", "c8"]
)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_arrays_of_every_type_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    assert_same({"x": array}, through_bytes({"x": array}))


def test_numpy_numbers_keep_their_type() -> None:
    state = {"a": np.float32(0.1), "b": np.int64(-3), "c": np.bool_(True), "d": np.float64(0.1)}
    assert_same(state, through_bytes(state))


def test_odd_memory_comes_back_by_value() -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    frozen = np.arange(4)
    frozen.setflags(write=False)
    state = {"view": whole[:, 1:3], "turned": whole.t(), "same": whole, "frozen": frozen}
    back = through_bytes({**state, "fortran": np.asfortranarray(whole.numpy())})
    for key, value in state.items():
        assert back[key].tolist() == value.tolist()
    assert np.array_equal(back["fortran"], whole.numpy())


def test_channels_last_weights_keep_their_memory_order() -> None:
    weights = torch.arange(120.0).reshape(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert_same({"w": weights}, through_bytes({"w": weights}))


def test_the_state_of_an_optimiser_comes_back() -> None:
    layer = torch.nn.Linear(2, 2)
    optimiser = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    assert_same(optimiser.state_dict(), through_bytes(optimiser.state_dict()))


def test_one_path_for_two_tensors_does_not_lose_one() -> None:
    state = {"a": {"b": torch.ones(1)}, "a.b": torch.zeros(1), "__metadata__": torch.ones(2)}
    assert_same(state, through_bytes(state))


def test_weights_are_stored_under_their_dotted_names() -> None:
    state = {"parameters": OrderedDict(torch.nn.Linear(1, 1).state_dict())}
    assert set(encode(state).tensors) == {"parameters.weight", "parameters.bias"}


def test_segments_are_collected_and_come_back() -> None:
    file = SegmentFile(name="a", num_bytes=1, sha256="x", first_row=0, num_rows=2)
    assert encode({"replay": {"files": [file]}}).segments == [file]
    assert through_bytes({"replay": {"files": [file]}}) == {"replay": {"files": [file]}}


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    "value", [{1, 2}, object(), Pair(1, 2), torch.Size([1]), 1j, np.array(["a"]), np.array([None])]
)
def test_what_cannot_be_kept_is_refused_by_its_path(value: Any) -> None:
    with pytest.raises(TypeError, match=r"inner\.0"):
        encode({"inner": [value]})


def test_keys_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(TypeError, match=r"key 1\.5 of inner"):
        encode({"inner": {1.5: 1}})
