"""Nested states as JSON plus named tensors, without pickle.

Takes a `State`: dictionaries, lists and tuples of tensors, arrays, bytes, numbers and strings;
gives a JSON tree and the tensors it refers to, and the same state back.
Knows no files and no checkpoints.

Pickle runs code when it is read and breaks when a class moves. A tree of plain values does neither,
and any safetensors reader can open the weights by their dotted names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

KIND = "$"
"""Key that marks a JSON object as something else than a plain dictionary."""


@dataclass(frozen=True, kw_only=True)
class SegmentFile:
    """A file of rows that several checkpoints may refer to."""

    name: str
    num_bytes: int
    sha256: str
    first_row: int
    num_rows: int


@dataclass
class Tree:
    """A state taken apart."""

    tree: Any
    tensors: dict[str, Tensor]
    segments: list[SegmentFile]


def take_apart(state: Mapping[str, Any]) -> Tree:
    """Splits a state into JSON, tensors and references to segments."""
    taken = Tree(None, {}, [])
    taken.tree = _encode(state, "", taken)
    return taken


def put_together(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The state that `take_apart` was given."""
    if isinstance(tree, list):
        return [put_together(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if KIND not in tree:
        return {key: put_together(item, tensors) for key, item in tree.items()}
    return _DECODERS[tree[KIND]](tree, tensors)


def _encode(value: Any, path: str, taken: Tree) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    for types, encode in _ENCODERS:
        if isinstance(value, types):
            return encode(value, path, taken)
    if type(value) is tuple:
        return {KIND: "tuple", "items": _encode_items(value, path, taken)}
    raise TypeError(
        f"A checkpoint cannot hold {path or 'the state'}, a {type(value).__qualname__}; it holds "
        "tensors, arrays, bytes, numbers, strings, and lists, tuples or dictionaries of these."
    )


def _encode_items(items: Any, path: str, taken: Tree) -> list[Any]:
    return [_encode(item, f"{path}.{place}", taken) for place, item in enumerate(items)]


def _encode_mapping(value: Mapping[Any, Any], path: str, taken: Tree) -> Any:
    items = []
    for key, item in value.items():
        if type(key) not in (str, int):
            raise TypeError(f"A checkpoint cannot hold the key {key!r} of {path or 'the state'}.")
        items.append((key, _encode(item, f"{path}.{key}" if path else str(key), taken)))
    if all(type(key) is str and key != KIND for key, _ in items):
        return dict(items)
    return {KIND: "dict", "items": [list(item) for item in items]}


def _encode_float(value: float, path: str, taken: Tree) -> Any:
    return value if math.isfinite(value) else {KIND: "float", "text": repr(value)}


def _encode_tensor(value: Tensor, path: str, taken: Tree) -> Any:
    # The memory order is kept because kernels, and so float sums, depend on it.
    channels_last = value.ndim == 4 and not value.is_contiguous()
    channels_last = channels_last and value.is_contiguous(memory_format=torch.channels_last)
    name = _keep(value.detach().cpu().contiguous(), path, taken)
    marks = {"channels_last": True} if channels_last else {}
    return {KIND: "tensor", "name": name, **marks}


def _encode_array(value: np.ndarray[Any, Any], path: str, taken: Tree) -> Any:
    return {KIND: "array", "name": _keep(_from_array(value, path), path, taken)}


def _encode_numpy_number(value: np.generic, path: str, taken: Tree) -> Any:
    return {KIND: "number", "name": _keep(_from_array(np.asarray(value), path), path, taken)}


def _encode_bytes(value: bytes, path: str, taken: Tree) -> Any:
    tensor = torch.from_numpy(np.frombuffer(value, np.uint8).copy())
    return {KIND: "bytes", "name": _keep(tensor, path, taken)}


def _encode_segment(value: SegmentFile, path: str, taken: Tree) -> Any:
    taken.segments.append(value)
    return {KIND: "segment", **asdict(value)}


def _from_array(value: np.ndarray[Any, Any], path: str) -> Tensor:
    try:
        return torch.from_numpy(value.copy(order="C"))
    except (TypeError, ValueError) as error:
        raise TypeError(f"A checkpoint cannot hold {path}: {value.dtype} arrays.") from error


def _keep(tensor: Tensor, path: str, taken: Tree) -> str:
    name = path
    # {"a": {"b": x}} and {"a.b": y} have one path; safetensors keeps one name for itself.
    while name in taken.tensors or name == "__metadata__":
        name += "'"
    taken.tensors[name] = tensor
    return name


_ENCODERS: list[tuple[type | tuple[type, ...], Callable[[Any, str, Tree], Any]]] = [
    (Mapping, _encode_mapping),
    (list, _encode_items),
    (Tensor, _encode_tensor),
    (np.ndarray, _encode_array),
    (np.generic, _encode_numpy_number),  # before float: np.float64 is one
    (float, _encode_float),
    (bytes, _encode_bytes),
    (SegmentFile, _encode_segment),
]


def _decode_tensor(tree: dict[str, Any], tensors: Mapping[str, Tensor]) -> Tensor:
    tensor = tensors[tree["name"]]
    if tree.get("channels_last"):
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor


def _decode_segment(tree: dict[str, Any], tensors: Mapping[str, Tensor]) -> SegmentFile:
    return SegmentFile(**{key: item for key, item in tree.items() if key != KIND})


_DECODERS: dict[str, Callable[[dict[str, Any], Mapping[str, Tensor]], Any]] = {
    "dict": lambda tree, tensors: {k: put_together(v, tensors) for k, v in tree["items"]},
    "tuple": lambda tree, tensors: tuple(put_together(tree["items"], tensors)),
    "float": lambda tree, tensors: float(tree["text"]),
    "tensor": _decode_tensor,
    "array": lambda tree, tensors: tensors[tree["name"]].numpy(),
    "number": lambda tree, tensors: tensors[tree["name"]].numpy()[()],
    "bytes": lambda tree, tensors: tensors[tree["name"]].numpy().tobytes(),
    "segment": _decode_segment,
}
