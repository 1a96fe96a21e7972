"""A program: remote actors on a cluster of the run's own, and on two nodes of which one is killed.

Takes a folder; prints what was seen as one JSON object. A process of its own, because Ray keeps
what it once was told of addresses and tokens.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

CATCH = "scanline/Catch-v0"
SMALL: dict[str, Any] = {
    "network": "mlp",
    "protocol": "as-is",
    "torch_threads": 1,
    "remote_actors": 2,
    "actor_wait_seconds": 90.0,
    "live": False,
    "tensorboard": False,
}
REPLAY = {
    "num_envs": 8,
    "capacity_agent_steps": 4_000,
    "training_intensity": 4.0,
    "learning_starts_agent_steps": 500,
    "target_agent_steps": 400,
    "log_every_agent_steps": 500,
}
IMPALA = {
    "num_envs": 16,
    "rollout_agent_steps": 5,
    "batch_trajectories": 16,
    "learning_rate": 3e-3,
    "agent_steps": 150_000,
    "target_score": 1.0,
    "log_every_agent_steps": 1_000,
}
KILLED_AT_AGENT_STEPS = 3_000


def replay_on_an_own_cluster(folder: Path) -> dict[str, Any]:
    """A short run, with what its processes listen on."""
    import psutil

    import scanline

    said: list[str] = []
    addresses: set[str] = set()
    before, inside = dict(os.environ), dict[str, str]()

    def look(progress: Any) -> None:
        inside.update(os.environ)
        for process in psutil.Process().children(recursive=True):
            for each in process.net_connections("tcp"):
                if each.status == psutil.CONN_LISTEN:
                    addresses.add(each.laddr.ip.removeprefix("::ffff:"))

    settings = {**SMALL, **REPLAY, "say": said.append, "callback": look}
    run = scanline.train("dqn", CATCH, out=folder / "dqn", agent_steps=2_500, **settings)
    left = [each.name() for each in psutil.Process().children(recursive=True)]
    changed = [name for name, value in os.environ.items() if before.get(name) != value]
    os.environ.update(inside)  # Ray reads a token once: the other cluster has the same
    return {
        **{"listens_on": sorted(addresses), "left": left, "inexact": run.inexact},
        **{"has_token": "RAY_AUTH_TOKEN" in inside, "changed": changed},
    }


def impala_on_two_nodes(folder: Path) -> dict[str, Any]:
    """The second node is killed once its actor has played; its place is taken on the first."""
    from ray.cluster_utils import Cluster

    import scanline

    node = {"object_store_memory": 100_000_000, "node_ip_address": "127.0.0.1"}
    head = {**node, "num_cpus": 2, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    second = cluster.add_node(num_cpus=1, **node)
    said: list[str] = []
    killed_at: list[int] = []

    def kill(progress: Any) -> None:
        if progress.agent_steps >= KILLED_AT_AGENT_STEPS and not killed_at:
            killed_at.append(progress.agent_steps)
            cluster.remove_node(second, allow_graceful=False)

    settings = {**SMALL, **IMPALA, "cluster_address": cluster.address}
    try:
        run = scanline.train(
            "impala", CATCH, out=folder / "impala", say=said.append, callback=kill, **settings
        )
    finally:
        import ray

        ray.shutdown()
        cluster.shutdown()
    return {
        "stop": run.stop.kind,
        "agent_steps": run.agent_steps,
        "killed_at": killed_at,
        "said": said,
    }


if __name__ == "__main__":
    where = Path(sys.argv[1])
    seen = {"replay": replay_on_an_own_cluster(where), "impala": impala_on_two_nodes(where)}
    print(json.dumps(seen))
