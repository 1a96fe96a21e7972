"""Learners on two hosts: the same bytes as on one, whatever dies or is cut on the way.

Two hosts are two network namespaces (needs root and iproute2), each with a torchrun, one learner
and a folder of its own. For each recipe one run with `--learners 2` on this host is the measure.
Then, on the two hosts: a run that nothing disturbs; one whose second learner is killed; one whose
link is cut for 90 seconds. Each must end with the weights, optimiser and log of the first.

    python benchmarks/two_hosts.py [--recipes accelerated-ppo,accelerated-dqn] [--cut-seconds 90]

Writes benchmarks/results/two-hosts.json: seconds until a host's learner has said which one it lost,
and until all learn again (the first row of the log after the checkpoint that they began from).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from scanline.files import replace_file
from scanline.machine import machine_record
from scanline.runs.checkpoint import load_chosen
from scanline_lab.hosts import NamespaceHosts, TorchrunRun, options

RESULT = Path(__file__).parent / "results/two-hosts.json"
COMMON: dict[str, Any] = {
    "agent_steps": 20_480,
    "save_every_agent_steps": 2_048,
    "log_every_agent_steps": 1_024,
    "num_threads": 1,
    "torch_threads": 1,
    "live": False,
    "tensorboard": False,
}
RECIPES: dict[str, dict[str, Any]] = {
    "accelerated-ppo": {},
    "accelerated-dqn": {
        "agent_steps": 8_192,
        "batch_size": 64,
        "training_intensity": 1,
        "learning_starts_agent_steps": 1_024,
        "capacity_agent_steps": 4_096,
        "replay_segment_agent_steps": 512,
        "target_agent_steps": 2_048,
    },
}
LONGEST_SECONDS = 900.0


def fingerprint(run: Path) -> str:
    """Of weights, optimiser, counters and log: 16 hexadecimal digits."""
    found = hashlib.sha256()
    parameters = load_chosen(run / "checkpoints", None).state["parameters"]
    _add(found.update, parameters)
    for name in ("progress.jsonl", "progress.csv"):
        found.update((run / name).read_bytes())
    return found.hexdigest()[:16]


def _add(update: Callable[[bytes], None], value: Any) -> None:
    if isinstance(value, dict):
        for name in sorted(value):
            update(str(name).encode())
            _add(update, value[name])
    elif isinstance(value, list | tuple):
        for each in value:
            _add(update, each)
    elif isinstance(value, torch.Tensor):
        update(value.contiguous().numpy().tobytes())
    else:
        update(repr(value).encode())


def on_one_host(folder: Path, words: list[str]) -> str:
    out = folder / "one-host"
    command = [sys.executable, "-m", "scanline", "train", *words, "--learners=2", "--out", str(out)]
    subprocess.run(command, check=True, timeout=LONGEST_SECONDS, stdout=subprocess.DEVNULL)
    return fingerprint(out)


def wait_until(is_so: Callable[[], object], run: TorchrunRun) -> float:
    """Seconds until it is so; fails when a host ends before."""
    begun = time.monotonic()
    while not is_so():
        if time.monotonic() - begun > LONGEST_SECONDS or any(p.poll() for p in run.processes):
            raise SystemExit(f"It was not so in time:\n{run.log(0)[-3000:]}\n{run.log(1)[-3000:]}")
        time.sleep(0.02)
    return time.monotonic() - begun


def num_resumes(run: TorchrunRun) -> int:
    record: dict[str, Any] = json.loads((run.place(0) / "run/settings.json").read_text())
    return len(record["resumed"])


def disturbed(run: TorchrunRun, disturb: Callable[[], None]) -> dict[str, Any]:
    """Seconds from a disturbance, after the second checkpoint, until it is seen and made good."""
    wait_until(lambda: len(run.checkpoints()) >= 2, run)
    log, noticed = run.place(0) / "run/progress.jsonl", dict[str, float]()
    disturb()
    begun = time.monotonic()

    def is_resumed() -> int:
        for host in range(2):
            if run.lost(host):
                noticed.setdefault(f"host {host}", round(time.monotonic() - begun, 1))
        return num_resumes(run)

    wait_until(is_resumed, run)
    num_bytes = log.stat().st_size  # it is cut back to the checkpoint when it is opened again
    wait_until(lambda: log.stat().st_size > num_bytes, run)
    again = round(time.monotonic() - begun, 1)
    said = [line for host in range(2) for line in run.lost(host)]
    return {"noticed_seconds": noticed, "learning_again_seconds": again, "said": said}


def nothing(run: TorchrunRun, cut_seconds: float) -> dict[str, Any]:
    return {}


def killed(run: TorchrunRun, cut_seconds: float) -> dict[str, Any]:
    return disturbed(run, lambda: os.kill(run.learner(1), signal.SIGKILL))


def cut(run: TorchrunRun, cut_seconds: float) -> dict[str, Any]:
    assert isinstance(run.hosts, NamespaceHosts)
    run.hosts.link(1, "up")
    mend = threading.Timer(cut_seconds, run.hosts.link, (1, "up"))

    def disturb() -> None:
        run.hosts.link(1, "down")  # type: ignore[union-attr]
        mend.start()

    try:
        return disturbed(run, disturb) | {"cut_seconds": cut_seconds}
    finally:
        mend.cancel()


CASES = {"undisturbed": nothing, "killed": killed, "cut": cut}


def on_two_hosts(run: TorchrunRun, case: str, cut_seconds: float) -> dict[str, Any]:
    begun = time.monotonic()
    run.start()
    figures = CASES[case](run, cut_seconds)
    if any(codes := run.ended(LONGEST_SECONDS)):
        raise SystemExit(f"Exit codes {codes}:\n{run.log(0)[-3000:]}\n{run.log(1)[-3000:]}")
    figures |= {"seconds": round(time.monotonic() - begun, 1), "restarts": num_resumes(run)}
    return {**figures, "fingerprint": fingerprint(run.place(0) / "run")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--game", default="pong")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--cut-seconds", type=float, default=90.0)
    parser.add_argument("--json", type=Path, default=RESULT)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that hosts and runs end with it
    rows = json.loads(chosen.json.read_text())["rows"] if chosen.json.exists() else []
    for recipe in chosen.recipes.split(","):
        settings = {**COMMON, **RECIPES[recipe]}
        words = [recipe, chosen.game, *options(settings)]
        with tempfile.TemporaryDirectory() as folder, closing(NamespaceHosts(2)) as hosts:
            expected = on_one_host(Path(folder), words)
            for case in chosen.cases.split(","):
                with closing(TorchrunRun(hosts, Path(folder) / case, words)) as run:
                    found = on_two_hosts(run, case, chosen.cut_seconds)
                row = {"recipe": recipe, "game": chosen.game, "case": case, "settings": settings}
                row |= {"equals_one_host": found["fingerprint"] == expected, **found}
                rows = [r for r in rows if (r["recipe"], r["case"]) != (recipe, case)] + [row]
                print(
                    {name: value for name, value in row.items() if name != "settings"}, flush=True
                )
                record = {"machine": machine_record(), "rows": rows}
                replace_file(chosen.json, (json.dumps(record, indent=1) + "\n").encode())
                if not row["equals_one_host"]:
                    raise SystemExit(f"{recipe}, {case}: {found['fingerprint']} is not {expected}.")


if __name__ == "__main__":
    main()
