"""`scanline.make`: names and options of the peers, and one sentence for what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from scanline.envs.make import make


def test_make_takes_peers_options_and_names() -> None:
    envs = make(
        "ALE/Pong-v5",
        2,
        engine="ale",
        seed=1,
        frameskip=2,
        frame_stack=3,
        img_height=42,
        repeat_action_probability=0.25,
        num_threads=1,
        max_episode_steps=20,
    )
    assert envs.engine.name == "ale"
    assert envs.protocol.frame_skip == 2
    assert envs.protocol.sticky == 0.25
    observations, info = envs.reset()
    assert observations.shape == (2, 3, 42, 84)
    assert info["frame_number"].shape == (2,)
    before = info["episode_frame_number"]
    after = envs.step(np.zeros(2, np.int64))[4]["episode_frame_number"]
    np.testing.assert_array_equal(after, before + 2)
    for _ in range(19):
        result = envs.step(np.zeros(2, np.int64))
    assert result[3].all()
    assert result[4]["episode"]["l"].tolist() == [20, 20]
    envs.close()


def test_make_refuses_with_a_sentence() -> None:
    with pytest.raises(ValueError, match="did you mean pong"):
        make("pogn")
    with pytest.raises(ValueError, match="did you mean 'frameskip'"):
        make("pong", engine="ale", frameskp=4)
    with pytest.raises(ValueError, match="batch_size=3 does not divide num_envs=4"):
        make("pong", 4, engine="ale", batch_size=3)
    with pytest.raises(ValueError, match="autoreset_mode='never'"):
        make("pong", engine="ale", autoreset_mode="never")
    with pytest.raises(ValueError, match="nearest protocol that it can is 'ale-vector'"):
        make("pong", protocol="baselines", engine="ale")
