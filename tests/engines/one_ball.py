"""A game whose only reward comes with its end, for Gymnasium as `one_ball:OneBall-v0`."""

from __future__ import annotations

import gymnasium

if "OneBall-v0" not in gymnasium.registry:
    gymnasium.register(
        "OneBall-v0",
        entry_point="scanline.envs.catch:Catch",
        kwargs={"balls": 1, "terminal_reward_only": True},
    )
