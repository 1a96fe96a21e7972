"""Evaluation counts the games that were started first, each to its end."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from scanline import engines, evaluation, protocols
from scanline.engines import EngineSettings
from scanline.random import GREEDY
from scanline.records import Acted


class Stay:
    """Never moves."""

    draws_per_step = 2
    version, agent_steps, choice = 0, 7_000, GREEDY

    def __call__(
        self, observations: torch.Tensor, uniforms: torch.Tensor, agent_steps: int
    ) -> Acted:
        return Acted(torch.ones(len(observations), dtype=torch.int64), {})


def make_engine(num_envs: int) -> engines.Engine:
    return engines.build(
        "gymnasium",
        EngineSettings(
            game="scanline/Catch-v0",
            num_envs=num_envs,
            protocol=protocols.get("as-is"),
            num_workers=0,
        ),
    )


def test_exactly_so_many_games_are_counted() -> None:
    scores = evaluation.play_games(make_engine(3), Stay(), num_games=8, seed=0)
    assert len(scores.scores) == 8
    assert all(-5 <= score <= 5 for score in scores.scores)
    assert min(scores.lengths_agent_steps) >= 16
    assert "8 games" in scores.sentence()


def test_a_limit_on_agent_steps_tells_what_it_cut() -> None:
    whole = evaluation.play_games(make_engine(3), Stay(), num_games=8, seed=0)
    longest = max(whole.lengths_agent_steps[:3])
    cut = evaluation.play_games(
        make_engine(3), Stay(), num_games=8, most_agent_steps=3 * longest, seed=0
    )
    assert cut.scores[:3] == whole.scores[:3]
    assert len(cut.scores) < 8 and len(cut.scores) + cut.num_unfinished in range(4, 9)
    open_end = evaluation.play_games(make_engine(3), Stay(), most_agent_steps=600, seed=0)
    assert open_end.scores[:8] == whole.scores and open_end.num_unfinished == 3
    none = evaluation.play_games(make_engine(3), Stay(), most_agent_steps=3, seed=0)
    assert none.scores == () and "no game finished, 3 more" in none.sentence()
    with pytest.raises(ValueError, match="number of games or of agent steps"):
        evaluation.play_games(make_engine(1), Stay(), seed=0)


def test_a_film_is_written_as_mp4_and_gif(tmp_path: Path) -> None:
    film = evaluation.make_film(
        make_engine(1), Stay(), seed=0, most_agent_steps=30, out=tmp_path / "game"
    )
    assert film.mp4.stat().st_size > 500
    assert film.gif.read_bytes().startswith(b"GIF8")
    assert 0 < film.agent_steps <= 30
