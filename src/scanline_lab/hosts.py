"""Several hosts on one machine, and runs of torchrun on them.

Gives hosts as network namespaces that a bridge joins (needs root, Linux and iproute2), or, where
they cannot be made, as processes that reach each other on loopback. Starts one torchrun with one
learner per host, each in a folder of its own: nothing is shared but the network.
Knows `scanline train` from outside.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PORT = 29_500
_LOG = "torchrun.log"
_END_SECONDS = 20.0


class LoopbackHosts:
    """Hosts that are only processes: a link cannot be cut."""

    are_namespaces = False

    def __init__(self, count: int) -> None:
        self.addresses = ["127.0.0.1"] * count

    def command(self, host: int, words: Sequence[str]) -> list[str]:
        """What runs these words on a host."""
        return list(words)

    def close(self) -> None:
        """Nothing was made."""


class NamespaceHosts:
    """Hosts with a network of their own: 10.88.N.1, 10.88.N.2 and so on."""

    are_namespaces = True

    def __init__(self, count: int) -> None:
        network = os.getpid() % 250
        self._tag = f"sl{os.getpid() % 100_000}"
        self.addresses = [f"10.88.{network}.{1 + host}" for host in range(count)]
        self._names = [f"{self._tag}-{host}" for host in range(count)]
        try:
            _ip(f"link add {self._tag} type bridge")
            _ip(f"link set {self._tag} up")
            for host in range(count):
                self._add(host)
        except BaseException:
            self.close()
            raise

    def _add(self, host: int) -> None:
        name, outside = self._names[host], self._outside(host)
        _ip(f"netns add {name}")
        _ip(f"link add {outside} type veth peer name eth0 netns {name}")
        _ip(f"link set {outside} master {self._tag} up")
        _ip(f"-n {name} addr add {self.addresses[host]}/24 dev eth0")
        for device in ("lo", "eth0"):
            _ip(f"-n {name} link set {device} up")

    def _outside(self, host: int) -> str:
        """The end of a host's cable at the bridge."""
        return f"{self._tag}v{host}"

    def command(self, host: int, words: Sequence[str]) -> list[str]:
        """What runs these words on a host."""
        return ["ip", "netns", "exec", self._names[host], *words]

    def pids(self, host: int) -> list[int]:
        """Processes that run on a host."""
        words = ["ip", "netns", "pids", self._names[host]]
        found = subprocess.run(words, check=True, capture_output=True, text=True, timeout=10)
        return list(map(int, found.stdout.split()))

    def link(self, host: int, state: str) -> None:
        """Sets a host's cable `up` or `down`; what it sends meanwhile is lost without a word."""
        _ip(f"link set {self._outside(host)} {state}")

    def close(self) -> None:
        """Removes all of it; processes in it must have ended. May be called twice."""
        with suppress(OSError, subprocess.CalledProcessError):
            _ip(f"link del {self._tag}")
        for name in self._names:
            with suppress(OSError, subprocess.CalledProcessError):
                _ip(f"netns del {name}")


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True, capture_output=True, timeout=10)


def make_hosts(count: int = 2) -> NamespaceHosts | LoopbackHosts:
    """Namespaces where they can be made, else loopback."""
    try:
        return NamespaceHosts(count)
    except (OSError, subprocess.CalledProcessError):
        return LoopbackHosts(count)


@dataclass
class TorchrunRun:
    """One run of `scanline train` by one torchrun per host; each host has its own folder."""

    hosts: NamespaceHosts | LoopbackHosts
    folder: Path
    """Host N works in `host-N` inside of it, and leaves its part of the run in `host-N/run`."""
    words: Sequence[str]
    """Of `scanline train`: recipe, game, options."""
    max_restarts: int = 3
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def place(self, host: int) -> Path:
        return self.folder / f"host-{host}"

    def start(self) -> None:
        for host in range(len(self.hosts.addresses)):
            self.place(host).mkdir(parents=True)
            self.start_host(host)

    def start_host(self, host: int) -> None:
        """Also again, after it has ended."""
        endpoint = f"{self.hosts.addresses[0]}:{_PORT}"
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=1"]
        torchrun += [f"--nnodes={len(self.hosts.addresses)}", f"--max-restarts={self.max_restarts}"]
        torchrun += ["--rdzv-backend=scanline", f"--rdzv-endpoint={endpoint}", "--rdzv-id=hosts"]
        words = [*torchrun, "-m", "scanline", "train", *self.words, "--out", "run"]
        with open(self.place(host) / _LOG, "ab") as log:
            process = subprocess.Popen(
                self.hosts.command(host, words),
                cwd=self.place(host),
                stdout=log,
                stderr=log,
                env={**_environment(), "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        self.processes[host:] = [process, *self.processes[host + 1 :]]

    def learner(self, host: int) -> int:
        """Process number of the host's learner, once torchrun has started it."""
        parent = self.processes[host].pid
        pattern = re.compile(rb"(^|\0)LOCAL_RANK=")
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError, IndexError):
                if int(path.read_text().rsplit(")", 1)[1].split()[1]) == parent and pattern.search(
                    (path.parent / "environ").read_bytes()
                ):
                    return int(path.parent.name)
        raise ProcessLookupError(f"host {host} has no learner now")

    def log(self, host: int) -> str:
        return (self.place(host) / _LOG).read_text(errors="replace")

    def lost(self, host: int) -> list[str]:
        """What the learners of a host have said of lost ones."""
        return [line for line in self.log(host).splitlines() if "lost another learner" in line]

    def checkpoints(self) -> list[Path]:
        """Complete ones, of the leading learner."""
        return sorted((self.place(0) / "run/checkpoints").glob("*-agent-steps-*"))

    def ended(self, timeout_seconds: float) -> list[int]:
        """Exit codes, once all hosts have ended."""
        deadline = time.monotonic() + timeout_seconds
        return [each.wait(max(0.1, deadline - time.monotonic())) for each in self.processes]

    def close(self) -> None:
        """Ends what still runs: each torchrun with its learners."""
        for host, process in enumerate(self.processes):
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.kill(self.learner(host), signal.SIGKILL)
                process.terminate()
        for process in self.processes:
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _environment() -> dict[str, str]:
    """Without the interface of this host: each has its own."""
    return {name: value for name, value in os.environ.items() if name != "GLOO_SOCKET_IFNAME"}


def options(settings: Mapping[str, Any]) -> list[str]:
    """Settings by name as words of a command line."""
    return [
        f"--{'no-' if value is False else ''}{name.replace('_', '-')}"
        + ("" if isinstance(value, bool) else f"={value}")
        for name, value in settings.items()
    ]
