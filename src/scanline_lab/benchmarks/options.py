"""Kinds of options that benches share: lists by commas, and settings that no option gives.

Takes words of the command line; gives tuples. Knows no bench.

With these a bench's own record is what the command line fills: no second list of its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import tyro
from tyro.constructors import PrimitiveConstructorSpec

Item = TypeVar("Item", str, int)


def _by_commas(of: Callable[[str], Item]) -> PrimitiveConstructorSpec[tuple[Item, ...]]:
    def parse(words: list[str]) -> tuple[Item, ...]:
        return tuple(of(item.strip()) for item in words[0].split(",") if item.strip())

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="STR",
        instance_from_str=parse,
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda items: [",".join(map(str, items))],
    )


Words = Annotated[tuple[str, ...], _by_commas(str)]
"""One option, its words parted by commas."""
Numbers = Annotated[tuple[int, ...], _by_commas(int)]
"""One option, its numbers parted by commas."""
Unasked = Annotated[dict[str, Any], tyro.conf.Suppress, tyro.conf.Fixed]
"""Settings by name that Python code may give, and the command line does not."""
