"""What a run listens on: nothing that another machine could reach, unless the user names it."""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import scanline
from leftovers import children
from scanline.addresses import listening_store
from scanline.errors import RefusedError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets are listed by /proc")

CATCH = "scanline/Catch-v0"
LOOPBACK = "127.0.0.1"
QUIET: dict[str, Any] = {"live": False, "tensorboard": False, "say": lambda sentence: None}
SMALL: dict[str, Any] = {"network": "mlp", "num_envs": 4, "torch_threads": 1, **QUIET}
OWN_FILE = '''
import dataclasses
from dataclasses import dataclass

from scanline import recipes
from scanline.algorithms import ActorCritic


@dataclass(frozen=True, kw_only=True)
class Own(ActorCritic):
    patience: int = 3
    """Seconds."""


recipe = dataclasses.replace(recipes.find(ROW), algorithm=Own(), protocol="as-is")
'''


def listening(pids: set[int], network_of: int | str = "self") -> set[str]:
    """Addresses on which these processes accept connections; IPv6 ones in their own spelling.

    `network_of` is a process in their network namespace.
    """
    inodes = {target for pid in pids for target in _sockets(pid)}
    found = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/{network_of}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                packed = words[1].partition(":")[0]
                parts = [packed[i : i + 8] for i in range(0, len(packed), 8)]
                address = b"".join(struct.pack("=I", int(part, 16)) for part in parts)
                found.add(socket.inet_ntop(family, address))
    return found


def _sockets(pid: int) -> Iterator[str]:
    with suppress(FileNotFoundError, ProcessLookupError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                target = os.readlink(descriptor)
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")


@contextmanager
def watched() -> Iterator[set[str]]:
    """All addresses that this process or a child of it has listened on meanwhile."""
    over, found = threading.Event(), set[str]()

    def watch() -> None:
        while not over.wait(0.01):
            found.update(listening({os.getpid(), *children()}))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def own_recipe(folder: Path, row: str) -> str:
    """A file whose name is that of a module and whose class learners must find again."""
    path = folder / "random.py"
    path.write_text(OWN_FILE.replace("ROW", repr(row)))
    return str(path)


def patience(run: Path) -> int:
    record = json.loads((run / "settings.json").read_text())
    found: int = record["settings"]["recipe"]["algorithm"]["patience"]
    return found


def test_two_learners_listen_on_loopback_and_leave_no_variable_behind(tmp_path: Path) -> None:
    before = dict(os.environ)
    changes = {**SMALL, "num_workers": 0, "agent_steps": 400, "learners": 2, "patience": 4}
    with watched() as found:
        scanline.train(own_recipe(tmp_path, "a2c"), CATCH, out=tmp_path / "run", **changes)
    assert found == {LOOPBACK}
    assert dict(os.environ) == before
    assert patience(tmp_path / "run") == 4


def test_learners_of_a_central_store_listen_on_nothing(tmp_path: Path) -> None:
    row = own_recipe(tmp_path, "accelerated-a3c")
    alone = {"decorrelation_agent_steps": 0, "num_workers": 0, "agent_steps": 200}
    changes = {**SMALL, **alone, "learners": 1, "patience": 4}
    with watched() as found:
        scanline.train(row, CATCH, out=tmp_path / "run", **changes)
    assert found == set()
    assert patience(tmp_path / "run") == 4


def test_the_store_listens_on_the_address_that_the_user_names(tmp_path: Path) -> None:
    store = listening_store("127.0.0.2")
    assert "127.0.0.2" in listening({os.getpid()})
    del store
    changes = {**SMALL, "learners": 2, "learner_address": "192.0.2.1"}
    with pytest.raises(RefusedError, match=r"learner_address='192\.0\.2\.1' is no IPv4 address"):
        scanline.train("a2c", CATCH, out=tmp_path / "run", **changes)
