"""A place that is cited exists in the paper: sections, figures and tables by number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scanline_lab.experiments import EXPERIMENTS

SOURCE = Path(__file__).parents[3] / "src"
PLACES: dict[str, tuple[str, int, int]] = {
    "Dalton": ("1 2 3 4 5 6 7 7.1 7.2 7.3 7.4", 8, 4),
    "Babaeizadeh": ("1 2 3 3.1 3.2 4 4.1 4.2 4.3 4.4 5 5.1 5.2 5.3 6", 7, 3),
    "Stooke and Abbeel": ("1 2 3 4 4.1 4.2 4.3 5 5.1 5.2 5.3 5.4 5.5 6", 11, 3),
    "Daley and Amato": ("1 2 2.1 2.2 3 4 5 5.1 5.2 6", 3, 5),
    "Clemente": ("1 2 2.1 2.2 2.3 3 4 5 5.1 5.2 6", 4, 1),
}
"""Sections, number of figures and number of tables of each paper."""


def absent(author: str, text: str) -> list[str]:
    """Places in a text that the paper does not have."""
    sections, num_figures, num_tables = PLACES[author]
    wrong = [f"section {s}" for s in re.findall(r"[Ss]ection (\d(?:\.\d)?)", text)]
    wrong = [each for each in wrong if each.split()[1] not in sections.split()]
    for word, most in (("Figure", num_figures), ("Table", num_tables)):
        for first, second in re.findall(rf"{word}s? (\d+)[ab]?(?: (?:and|to) (\d+))?", text):
            wrong += [f"{word} {n}" for n in (first, second) if n and not 1 <= int(n) <= most]
    return wrong


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if not name.startswith("learning")])
def test_an_experiment_cites_places_that_exist(name: str) -> None:
    experiment = EXPERIMENTS[name]
    author = next(author for author in PLACES if experiment.paper.startswith(author))
    for text in (experiment.paper, *(claim.source for claim in experiment.claims)):
        assert absent(author, text) == [], text


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.name)
def test_a_source_cites_places_that_exist(path: Path) -> None:
    text = re.sub(r"\s+", " ", path.read_text())
    for author in PLACES:
        for cited in re.findall(rf"{author}[^()]*?20\d\d, ([^)]*?)\)", text):
            assert absent(author, cited) == [], cited


def test_a_place_that_does_not_exist_is_seen() -> None:
    assert absent("Clemente", "section 5.3") == ["section 5.3"]
    assert absent("Stooke and Abbeel", "section 3.1 and Figures 6 and 12") == [
        "section 3.1",
        "Figure 12",
    ]
