"""Choices that do not fit are refused with one sentence, whatever their classes are."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from scanline.recipes import RECIPES, fit


@dataclass(frozen=True)
class Choice:
    needs: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OwnStore(Choice):
    gives: frozenset[str] = field(default=frozenset({"sequences"}))


def test_a_need_that_some_choice_meets_is_accepted() -> None:
    fit.refuse_unmet_needs([Choice(needs=frozenset({"sequences"})), OwnStore()])


def test_an_unmet_need_is_one_sentence_with_the_class_and_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"Choice learns from sequences.*store=WindowSettings"):
        fit.refuse_unmet_needs([OwnStore(gives=frozenset()), Choice(frozenset({"sequences"}))])


def test_a_need_of_a_users_own_is_named() -> None:
    with pytest.raises(ValueError, match="Choice needs 'moonlight', which no other choice"):
        fit.refuse_unmet_needs([Choice(frozenset({"moonlight"}))])


def test_the_first_need_in_the_order_of_the_choices_is_told() -> None:
    pace, store = Choice(frozenset({"pauses"})), Choice(frozenset({"lockstep"}))
    with pytest.raises(ValueError, match="needs a pause"):
        fit.refuse_unmet_needs([pace, store])


def test_every_sentence_belongs_to_a_need_that_a_recipe_or_setting_can_have() -> None:
    """A sentence that no choice can cause any more would be dead."""
    declared = set()
    for recipe in RECIPES.values():
        parts = (recipe.pace, recipe.exchange, recipe.sampling, recipe.store, recipe.algorithm)
        for part in (*parts, recipe.optimiser):
            declared |= part.needs | part.gives
    seldom = {"unplayed steps", "pauses", "late resets", "several losses", "adam"}
    assert fit.SENTENCES.keys() <= declared | seldom
