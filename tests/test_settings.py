"""Nested settings as one flat list of names."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

import pytest

from scanline import settings


@dataclass(frozen=True, kw_only=True)
class Inner:
    rate: float = 0.5
    """Steps per second."""

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise ValueError("rate must not be negative.")


@dataclass(frozen=True, kw_only=True)
class Derived(Inner):
    depth: int = 3
    """Levels."""


@dataclass(frozen=True, kw_only=True)
class Tree:
    name: str = "tree"
    """What it is called."""
    inner: Inner = Inner()


@dataclass(frozen=True, kw_only=True)
class Clash:
    rate: int = 1
    inner: Inner = Inner()


@dataclass(frozen=True, kw_only=True)
class Optional:
    limit: int | None = None
    make: object = int


def test_leaves_carry_path_value_and_sentence_of_bases_too() -> None:
    found = {leaf.name: leaf for leaf in settings.leaves(Tree(inner=Derived()))}
    assert found["rate"].path == ("inner", "rate")
    assert found["rate"].help == "Steps per second."
    assert found["depth"].value == 3
    assert found["name"].help == "What it is called."


def test_override_changes_leaves_by_name_and_checks_them() -> None:
    changed = settings.override(Tree(), {"rate": 2.0, "name": "oak"})
    assert changed == Tree(name="oak", inner=Inner(rate=2.0))
    with pytest.raises(ValueError, match="did you mean 'rate'"):
        settings.override(Tree(), {"rat": 1})
    with pytest.raises(ValueError, match="negative"):
        settings.override(Tree(), {"rate": -1.0})


def test_two_leaves_of_one_name_are_refused() -> None:
    settings.check_unique(Tree())
    with pytest.raises(ValueError, match="Two settings are called 'rate'"):
        settings.check_unique(Clash())


def test_to_dict_is_plain_data() -> None:
    assert settings.to_dict(Tree()) == {"name": "tree", "inner": {"type": "Inner", "rate": 0.5}}


def test_a_record_gives_the_tree_back_nothing_included() -> None:
    tree = Optional(limit=3, make=functools.partial(int, 3))
    assert settings.restore(tree, settings.to_dict(Optional(limit=None))) == Optional(
        limit=None, make=tree.make
    )
    assert settings.restore(tree, {}) == tree


def test_what_json_changes_does_not_differ_and_nothing_is_a_value() -> None:
    values = {"shape": (84, 84), "make": functools.partial(int, 3), "inner": {"limit": None}}
    written = json.loads(json.dumps(settings.plain(values)))
    assert settings.differences(values, written) == []
    assert [d.name for d in settings.differences({"a": {}}, {"a": {"b": 1}})] == ["a", "a.b"]
    (found,) = settings.differences({"limit": None}, {})
    assert str(found) == "limit was None and is now absent"
    assert found.now is settings.ABSENT
