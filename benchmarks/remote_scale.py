"""Remote actors over a network of a given bandwidth, beside the model's prediction.

    sudo python benchmarks/remote_scale.py [--seconds 12] [--game pong] [--json FILE]

Two network namespaces of this machine are two hosts: the learner with the cluster's head in one, a
node with one actor in the other, a virtual cable between them whose bandwidth `tc` limits in both
directions. Measured first, without a network: the actor alone, the learner's update, bytes on the
wire; and the same work in one process. The first case, without a limit, is the model's rate of an
actor; the others are predicted. Needs root and the extra `cluster`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from scanline_lab.hosts import NamespaceHosts
from scanline_lab.scale import ScaleRates, predict

LEARNER, ACTOR = 0, 1
"""Hosts."""
PORT = 6399
SETTINGS: dict[str, Any] = {
    "num_envs": 16,
    "batch_trajectories": 16,
    "network": "nips",
    "torch_threads": 1,
    "num_threads": 1,
}
QUIET = {"live": False, "tensorboard": False, "save_at_end": False, "say": lambda sentence: None}
MEGABIT = 125_000.0
CASES = ((10_000, 1), (200, 1), (100, 1), (20, 1), (20, 16))
"""Megabits per second, and updates between two versions of the weights. The first one is as good as
no limit: it gives the rate of one actor as the learner receives it, with every cost of a call."""


def run(words: list[str]) -> None:
    subprocess.run(words, check=True, timeout=60, stdout=subprocess.DEVNULL)


def limit(hosts: NamespaceHosts, megabits: int) -> None:
    """In both directions."""
    shape = ["tbf", "rate", f"{megabits}mbit", "burst", "256kb", "latency", "200ms"]
    for host in (LEARNER, ACTOR):
        run(hosts.command(host, ["tc", "qdisc", "replace", "dev", "eth0", "root", *shape]))


def start_ray(hosts: NamespaceHosts) -> None:
    ray = [sys.executable, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats"]
    head = ["--head", f"--port={PORT}", "--include-dashboard=false", "--num-cpus=0"]
    joins = [f"--address={hosts.addresses[LEARNER]}:{PORT}", "--num-cpus=1"]
    for host, words in ((LEARNER, head), (ACTOR, joins)):
        own = [f"--node-ip-address={hosts.addresses[host]}", "--object-store-memory=100000000"]
        run(hosts.command(host, [*ray, *words, *own]))


def end(hosts: NamespaceHosts) -> None:
    """Ends the processes of both hosts by their numbers, and the hosts."""
    for host in (LEARNER, ACTOR):
        for pid in hosts.pids(host):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    hosts.close()


def alone(game: str, seconds: float) -> dict[str, float]:
    """An actor and a learner's update in this process, with nothing between them."""
    from scanline import engines, settings
    from scanline.records import Slot
    from scanline.samplers.remote import weights_of
    from scanline.samplers.wire import SlotReceiver, num_bytes
    from scanline.training import make_plan
    from scanline.training.actors import RemoteActor
    from scanline.training.context import open_context

    plan = make_plan("impala", game, **SETTINGS, remote_actors=1)
    actor = RemoteActor(json.dumps(settings.to_dict(plan)), engines.version(plan.engine), 0, 0)
    context = open_context(make_plan("impala", game, **SETTINGS), announce=lambda sentence: None)
    weights = weights_of(context.parameters.read())
    parts = context.parts
    messages, begun, steps = [], time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        messages.append(actor.play(weights, 0, 0))
        steps += messages[-1]["actions"].size
    actor_rate = steps / (time.perf_counter() - begun)
    messages = messages[: max(2, len(messages) // 2)]
    receiver = SlotReceiver(context.spaces, SETTINGS["num_envs"])
    begun, updates = time.perf_counter(), 0
    for message in messages:
        slot: Slot = parts.store.slot()
        receiver.unpack(message, slot)
        parts.store.put(parts.algorithm.prepare(parts.parameters.read(), slot))
        for batch in parts.store.batches():
            views = parts.parameters.read()
            parts.parameters.apply(views, parts.algorithm.loss(views, batch).losses, 0)
            updates += 1
    update_seconds = (time.perf_counter() - begun) / updates
    context.close()
    sent = sum(num_bytes(m) for m in messages[1:]) / sum(m["actions"].size for m in messages[1:])
    return {
        "alone_steps_per_second": actor_rate,
        "learner_batch_seconds": update_seconds,
        "bytes_per_step": sent,
        "weight_bytes": float(sum(array.nbytes for array in weights.values())),
        "rollout_steps": int(messages[0]["actions"].size),
        "batch_steps": SETTINGS["batch_trajectories"] * 20,
    }


def trained(game: str, seconds: float, out: Path, **changes: Any) -> float:
    """Agent steps per second of a run, without its first quarter."""
    import scanline

    rows: list[tuple[float, int]] = []

    def look(progress: Any) -> None:
        rows.append((time.perf_counter(), progress.agent_steps))

    scanline.train(
        "impala",
        game,
        out=out,
        seconds=seconds,
        log_every_agent_steps=320,
        callback=look,
        **{**SETTINGS, **QUIET, **changes},
    )
    late = [row for row in rows if row[0] > rows[0][0] + seconds / 4] or rows
    if len(late) < 2:
        raise SystemExit(f"Two rollouts did not arrive within {seconds:g} seconds; use more.")
    return (late[-1][1] - late[0][1]) / (late[-1][0] - late[0][0])


def over_the_network(game: str, seconds: float, folder: Path) -> list[float]:
    """Agent steps per second of every case."""
    hosts, rates = NamespaceHosts(2), []
    try:
        start_ray(hosts)
        for number, (megabits, every) in enumerate(CASES):
            limit(hosts, megabits)
            inside = [
                str(folder / f"run-{number}"),
                f"{hosts.addresses[LEARNER]}:{PORT}",
                str(every),
            ]
            words = [sys.executable, __file__, "--game", game, "--seconds", str(seconds)]
            command = hosts.command(LEARNER, [*words, "--inside", *inside])
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300)
            rates.append(float(done.stdout.splitlines()[-1]))
    finally:
        end(hosts)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=14.0, help="of each measurement")
    parser.add_argument("--game", default="pong")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        out, address, every = given.inside
        remote = {"remote_actors": 1, "cluster_address": address}
        remote["publish_every_updates"] = int(every)
        print(trained(given.game, given.seconds, Path(out), **remote), flush=True)
        return
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_worker_niceness": "0",
    }
    with tempfile.TemporaryDirectory() as name:
        own = alone(given.game, given.seconds / 2)
        together = trained(given.game, given.seconds, Path(name) / "one-process")
        measured = over_the_network(given.game, given.seconds, Path(name))
    report = {
        "alone": own,
        "one_process_steps_per_second": together,
        "rows": [
            row_of(given.game, own, measured[0], rate, *case)
            for rate, case in zip(measured, CASES, strict=True)
        ],
    }
    print(json.dumps(report, indent=1))
    if given.json:
        given.json.write_text(json.dumps(report, indent=1) + "\n")


def row_of(
    game: str, own: dict[str, float], actor_rate: float, rate: float, megabits: int, every: int
) -> dict[str, Any]:
    """What was measured beside what the model says."""
    known: dict[str, Any] = {n: v for n, v in own.items() if n != "alone_steps_per_second"}
    rates = ScaleRates(
        **known,
        actor_steps_per_second=actor_rate,
        bandwidth_bytes_per_second=megabits * MEGABIT,
        publish_every_updates=every,
    )
    said = predict(rates, num_actors=1)
    return {
        "game": game,
        "megabits_per_second": megabits,
        "publish_every_updates": every,
        "measured_steps_per_second": rate,
        "predicted_steps_per_second": said.steps_per_second,
        "limit": said.limit,
    }


if __name__ == "__main__":
    main()
