"""Nested states as JSON plus named tensors, without pickle; files checked against their hash.

Takes a `State`: dictionaries, lists and tuples of tensors, arrays, bytes, numbers and strings;
gives a JSON tree and the tensors it refers to, and the same state back.
Knows no checkpoints.

Pickle runs code when it is read and breaks when a class moves. A tree of plain values does neither,
and any safetensors reader can open the weights by their dotted names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..files import sha256

KIND = "$"
"""Key that marks a JSON object as something else than a plain dictionary."""


class DamagedFile(RuntimeError):
    """A file is missing or is not what was written."""


@dataclass(frozen=True, kw_only=True)
class SegmentFile:
    """A file of rows that several checkpoints may refer to."""

    name: str
    num_bytes: int
    sha256: str
    first_row: int
    num_rows: int


@dataclass
class EncodedState:
    """A state as JSON, with the tensors and segments that the JSON refers to."""

    tree: Any = None
    tensors: dict[str, Tensor] = field(default_factory=dict)
    segments: list[SegmentFile] = field(default_factory=list)


def encode(state: Mapping[str, Any]) -> EncodedState:
    """Splits a state into JSON, tensors and references to segments."""
    encoded = EncodedState()
    encoded.tree = _encode(state, "", encoded)
    return encoded


def decode(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The state that `encode` was given."""
    if isinstance(tree, list):
        return [decode(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if KIND not in tree:
        return {key: decode(item, tensors) for key, item in tree.items()}
    return _DECODERS[tree[KIND]](tree, tensors)


def checked_bytes(path: Path, num_bytes: int, digest: str) -> bytes:
    """A file's bytes, if they are what its record says."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedFile(f"{path} cannot be read ({error.strerror})") from error
    if len(data) != num_bytes:
        raise DamagedFile(f"{path} has {len(data)} bytes instead of {num_bytes}")
    if sha256(data) != digest:
        raise DamagedFile(f"{path} does not match its hash")
    return data


def _encode(value: Any, path: str, into: EncodedState) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    for types, kind, as_tensor in _TENSORS:  # before floats: np.float64 is one
        if isinstance(value, types):
            marks = {"channels_last": True} if _is_channels_last(value) else {}
            return {KIND: kind, "name": _keep(as_tensor, value, path, into), **marks}
    for plain, encode_plain in _ENCODERS:
        if isinstance(value, plain):
            return encode_plain(value, path, into)
    if type(value) is tuple:
        return {KIND: "tuple", "items": _encode_items(value, path, into)}
    raise TypeError(
        f"A checkpoint cannot hold {path or 'the state'}, a {type(value).__qualname__}; it holds "
        "tensors, arrays, bytes, numbers, strings, and lists, tuples or dictionaries of these."
    )


def _encode_items(items: Any, path: str, into: EncodedState) -> list[Any]:
    return [_encode(item, f"{path}.{index}", into) for index, item in enumerate(items)]


def _encode_mapping(value: Mapping[Any, Any], path: str, into: EncodedState) -> Any:
    items = []
    for key, item in value.items():
        if type(key) not in (str, int):
            raise TypeError(f"A checkpoint cannot hold the key {key!r} of {path or 'the state'}.")
        items.append([key, _encode(item, f"{path}.{key}" if path else str(key), into)])
    if all(type(key) is str and key != KIND for key, _ in items):
        return dict(items)
    return {KIND: "dict", "items": items}


def _encode_float(value: float, path: str, into: EncodedState) -> Any:
    return value if math.isfinite(value) else {KIND: "float", "text": repr(value)}


def _encode_segment(value: SegmentFile, path: str, into: EncodedState) -> Any:
    into.segments.append(value)
    return {KIND: "segment", **asdict(value)}


def _is_channels_last(value: Any) -> bool:
    """The memory order is kept because kernels, and so float sums, depend on it."""
    return (
        isinstance(value, Tensor)
        and value.ndim == 4
        and not value.is_contiguous()
        and value.is_contiguous(memory_format=torch.channels_last)
    )


def _keep(as_tensor: Callable[[Any], Tensor], value: Any, path: str, into: EncodedState) -> str:
    """Adds a tensor; gives its name."""
    name = path
    # {"a": {"b": x}} and {"a.b": y} have one path; safetensors keeps one name for itself.
    while name in into.tensors or name == "__metadata__":
        name += "'"
    try:
        into.tensors[name] = as_tensor(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"A checkpoint cannot hold {path}: {value.dtype} arrays.") from error
    return name


_TENSORS: list[tuple[type, str, Callable[[Any], Tensor]]] = [
    (Tensor, "tensor", lambda value: value.detach().cpu().contiguous()),
    (np.ndarray, "array", lambda value: torch.from_numpy(value.copy(order="C"))),
    (np.generic, "number", lambda value: torch.from_numpy(np.array(value))),
    (bytes, "bytes", lambda value: torch.from_numpy(np.frombuffer(value, np.uint8).copy())),
]
_ENCODERS: list[tuple[type, Callable[[Any, str, EncodedState], Any]]] = [
    (Mapping, _encode_mapping),
    (list, _encode_items),
    (float, _encode_float),
    (SegmentFile, _encode_segment),
]


def _decode_tensor(tree: dict[str, Any], tensors: Mapping[str, Tensor]) -> Tensor:
    tensor = tensors[tree["name"]]
    if tree.get("channels_last"):
        return tensor.contiguous(memory_format=torch.channels_last)
    return tensor


_DECODERS: dict[str, Callable[[dict[str, Any], Mapping[str, Tensor]], Any]] = {
    "dict": lambda tree, tensors: {k: decode(v, tensors) for k, v in tree["items"]},
    "tuple": lambda tree, tensors: tuple(decode(tree["items"], tensors)),
    "float": lambda tree, tensors: float(tree["text"]),
    "tensor": _decode_tensor,
    "array": lambda tree, tensors: tensors[tree["name"]].numpy(),
    "number": lambda tree, tensors: tensors[tree["name"]].numpy()[()],
    "bytes": lambda tree, tensors: tensors[tree["name"]].numpy().tobytes(),
    "segment": lambda tree, _: SegmentFile(**{k: v for k, v in tree.items() if k != KIND}),
}
