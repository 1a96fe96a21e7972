"""Nested settings as one flat list of names."""

from __future__ import annotations

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
