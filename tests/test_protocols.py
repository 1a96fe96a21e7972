"""Protocols as data: presets, peers' spellings, refusals."""

from __future__ import annotations

import pytest

from scanline import protocols


def test_every_preset_has_its_name_and_a_sentence() -> None:
    for name, preset in protocols.PRESETS.items():
        assert preset.name == name
        assert protocols.SUMMARIES[name].endswith(".")


def test_an_unknown_protocol_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean 'machado'"):
        protocols.get("machdao")


@pytest.mark.parametrize(
    ("overrides", "field", "value"),
    [
        ({"frameskip": 3}, "frame_skip", 3),
        ({"frame_skip": (2, 5)}, "frame_skip_min", 2),
        ({"frame_skip": (2, 5)}, "frame_skip", 4),
        ({"repeat_action_probability": 0.25}, "sticky", 0.25),
        ({"stack_num": 2}, "stack", 2),
        ({"img_height": 42}, "height", 42),
        ({"terminal_on_life_loss": False}, "life_loss", "ignore"),
        ({"clip_reward": False}, "reward_clip", "none"),
        ({"use_fire_reset": False}, "fire_reset", "none"),
        ({"max_episode_steps": 1000}, "episode_limit_frames", 4000),
        ({"max_num_frames_per_episode": 7}, "episode_limit_frames", 7),
        ({"noop_max": 0}, "noop_min", 0),
        ({"grayscale": False}, "colour", "rgb"),
        ({"maxpool": False}, "pooling", "none"),
    ],
)
def test_peers_spellings_reach_the_field(
    overrides: dict[str, object], field: str, value: object
) -> None:
    assert getattr(protocols.get("baselines").replace(**overrides), field) == value


def test_episodic_life_keeps_the_way_of_the_preset_or_ends_the_return() -> None:
    assert protocols.get("envpool").replace(episodic_life=True).life_loss == "noops-again"
    assert protocols.get("machado").replace(episodic_life=True).life_loss == "end-return"
    assert protocols.get("cule").replace(episodic_life=True).life_loss == "end-return"
    assert protocols.get("cule").replace(episodic_life=False).life_loss == "fire"


@pytest.mark.parametrize(
    ("name", "noops", "unit"),
    [
        ("paac", (1, 30), "frames"),  # section 5.1: between 1 and 30 no-op actions
        ("paac-repo", (0, 30), "frames"),
        ("ga3c", (0, 30), "frames"),
        ("ga3c-repo", (0, 0), "frames"),  # Gym's Deterministic-v0 has none
        ("cule", (0, 29), "frames"),  # section 3: a cache of 30 states
        ("fast-dqn", (0, 30), "agent-steps"),
    ],
)
def test_no_ops_are_those_of_the_papers(name: str, noops: tuple[int, int], unit: str) -> None:
    rules = protocols.get(name)
    assert ((rules.noop_min, rules.noop_max), rules.noop_unit) == (noops, unit)


def test_fire_and_pooling_are_those_of_the_papers() -> None:
    cule, paper, code = map(protocols.get, ("cule", "fast-dqn", "fast-dqn-repo"))
    assert (cule.life_loss, cule.life_loss_ends_return) == ("fire", False)
    assert paper.fire_reset == code.fire_reset == "fire-step"
    assert (paper.pooling, code.pooling) == ("grey", "none")  # the paper's setup is Mnih 2015's
    assert paper.replace(pooling="none").to_dict() == code.to_dict() | {"name": "fast-dqn"}
    assert protocols.get("ga3c-repo").sticky == 0.25


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"sticky": 1.5}, "no probability"),
        ({"frame_skip": 0}, "at least 1"),
        ({"resize": "cubic"}, "choose one of"),
        ({"noop_min": 9, "noop_max": 3}, "no range"),
        ({"stack": 0}, "at least 1"),
        ({"frame_skp": 4}, "did you mean 'frame_skip'"),
    ],
)
def test_impossible_rules_are_refused_with_a_sentence(
    overrides: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        protocols.get("baselines").replace(**overrides)


@pytest.mark.parametrize(
    "words", [("frameskip", "max_episode_steps"), ("max_episode_steps", "frameskip")]
)
def test_a_limit_in_agent_steps_counts_with_the_new_frame_skip(words: tuple[str, str]) -> None:
    values = {"frameskip": 2, "max_episode_steps": 20}
    changed = protocols.get("baselines").replace(**{word: values[word] for word in words})
    assert changed.episode_limit_frames == 40
