"""Under which key of `info` scores are given, so that Gymnasium's recorder can add its own.

Takes an environment that is being stepped; gives a key. Knows Gymnasium's wrappers by class.

`RecordEpisodeStatistics` refuses an `info` that has its key already, which is also the key where
users look for scores when there is no wrapper. Whether one steps us is seen from the calls under
way; that is looked up only when a game has ended.
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium

KEY, KEY_BESIDE_RECORDER = "episode", "whole_game"
_RECORDERS = (
    gymnasium.wrappers.RecordEpisodeStatistics,
    gymnasium.wrappers.vector.RecordEpisodeStatistics,
)


def episode_key(env: Any) -> str:
    """`episode`, or `whole_game` where a recorder around this environment writes the former."""
    frame = sys._getframe(1)
    while (caller := frame.f_back) is not None:
        frame = caller
        if frame.f_code.co_name == "step":
            stepping = frame.f_locals.get("self")
            if isinstance(stepping, _RECORDERS) and stepping.unwrapped is env:
                return KEY_BESIDE_RECORDER if stepping._stats_key == KEY else KEY
    return KEY
