"""Devices: names that resolve, moves that are none on the CPU, arrays that go up together."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import scanline
from scanline import devices, simulated
from scanline.devices import HOST, Device, PackedArrays
from scanline.errors import RefusedError
from scanline.memory import Share, told


def test_auto_is_cuda_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(devices._COUNTS, "cuda", lambda: 0)  # type: ignore[index]
    assert devices.resolved("auto") == "cpu"
    monkeypatch.setitem(devices._COUNTS, "cuda", lambda: 2)  # type: ignore[index]
    assert devices.resolved("auto") == "cuda"
    assert devices.resolved("cuda:1") == "cuda:1"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("tpu", "device='tpu' is unknown; use auto, cpu, cuda, cuda:N or mps."),
        ("cpu:1", "device='cpu:1' is unknown; use auto, cpu, cuda, cuda:N or mps."),
        ("cuda", "finds 0 devices of kind 'cuda' on this machine; use cpu."),
        ("cuda:3", "device='cuda:3' is not there"),
    ],
)
def test_a_device_that_is_not_there_is_one_sentence(
    name: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("cuda", "mps"):
        monkeypatch.setitem(devices._COUNTS, kind, lambda: 0)  # type: ignore[index]
    with pytest.raises(RefusedError) as refused:
        devices.resolved(name)
    assert sentence in str(refused.value)


def test_on_the_cpu_every_move_is_the_same_memory() -> None:
    values = np.arange(4.0)
    there = HOST.upload(values)
    assert there.data_ptr() == values.ctypes.data
    assert devices.download(there).ctypes.data == values.ctypes.data
    packed = PackedArrays(HOST, {"a": ((2,), torch.int64)})
    assert packed.host["a"].data_ptr() == packed.there["a"].data_ptr()


def test_packed_arrays_go_up_in_one_simulated_transfer() -> None:
    shapes = {"a": ((3,), torch.uint8), "b": ((2, 2), torch.float32), "c": ((2,), torch.int64)}
    packed = PackedArrays(Device("simulated:1"), shapes)
    packed.host["a"][:] = 7
    packed.host["b"][1] = 2.5
    packed.host["c"][:] = torch.tensor([-1, 1 << 40])
    with simulated.measured() as traffic:
        packed.begin()
        packed.upload()
    assert (traffic.uploads, traffic.operations, traffic.waits) == (1, 0, 0)
    for name, host in packed.host.items():
        there = packed.there[name]
        assert str(there.device) == "simulated:1"
        assert torch.equal(torch.from_numpy(devices.download(there)), host)


def test_memory_that_a_simulated_device_lacks_is_refused_in_one_sentence() -> None:
    device = Device("simulated")
    share = Share("Rollouts", 5_000, lambda left: "use fewer environments", device.memory)
    with simulated.memory(1_000), pytest.raises(RefusedError) as refused:
        told([share], {device.memory: device.free_bytes})
    assert str(refused.value) == (
        "This takes 5.00 kB, but the device 'simulated' has 1.00 kB left; the largest share, "
        "5.00 kB, is rollouts: use fewer environments."
    )


MOVES = re.compile(
    r"\.(?:cuda|cpu|item)\(|\.to\((?!torch\.float32|total\.dtype|float32|rows\.dtype)"
)
MAY_MOVE = {
    "devices.py": "moves for all",
    "simulated.py": "is a device",
    "native_arrays.py": "words of an error",
    "runs/state_files.py": "checkpoints are saved from the host",
    "runs/replay_segments.py": "so are the rows of a replay",
    "parameters/local.py": "words of an error that ends the run",
    "training/checks.py": "reads the losses of a check",
    "engines/gymnasium_workers.py": "arrays of NumPy",
    "envs/sb3.py": "arrays of NumPy",
    "envs/single.py": "arrays of NumPy",
}
"""Files of the package that call what moves or waits, and why."""


def test_no_other_module_moves_data() -> None:
    package = Path(scanline.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if MOVES.search(path.read_text())
    }
    assert found <= MAY_MOVE.keys(), "move data by devices.py"


def test_lists_of_cores(tmp_path: Path) -> None:
    path = tmp_path / "local_cpulist"
    assert devices.listed_cores(path) == []
    path.write_text("0-2,8,10-11\n")
    assert devices.listed_cores(path) == [0, 1, 2, 8, 10, 11]
