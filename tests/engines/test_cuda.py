"""Engine `cuda` as far as no driver allows: kernels compile and are cached, memory and arguments
are as kernels expect them, and what is missing is one sentence."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import devices
import numpy as np
import pytest
import torch
from cuda_kernels import KernelCost, kernel_costs

from scanline import engines
from scanline.devices import HOST
from scanline.engines import Engine, EngineSettings, cuda
from scanline.engines.cuda import THREADS_PER_BLOCK, CudaLauncher
from scanline.engines.device import DeviceEngine
from scanline.engines.gpu_host import HostLauncher
from scanline.errors import MissingPackageError, RefusedError

KERNELS = ["scanline_observe", "scanline_play", "scanline_restart"]


def test_kernels_compile_for_a_gpu() -> None:
    """One type, for the most common one: `make cuda` compiles all of them."""
    code, report = cuda.compiled("4K", "sm_80")
    costs = kernel_costs(report)
    assert code[:4] == b"\x7fELF"
    assert [cost.kernel for cost in costs] == KERNELS
    assert all(0 < cost.registers <= 255 for cost in costs)


def test_compiled_kernels_are_kept_by_source_architecture_and_cartridge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCANLINE_CACHE", str(tmp_path))
    calls = []

    def compiled(cartridge: str, architecture: str) -> tuple[bytes, str]:
        calls.append((cartridge, architecture))
        return f"{cartridge} {architecture}".encode(), ""

    monkeypatch.setattr(cuda, "compiled", compiled)
    wanted = [("4K", "sm_80"), ("4K", "sm_90"), ("DPC", "sm_90"), ("4K", "sm_80")]
    assert [cuda.cached_code(*each) for each in wanted] == [" ".join(w).encode() for w in wanted]
    assert calls == wanted[:3]
    monkeypatch.setattr(cuda, "sources_fingerprint", lambda: "changed")
    cuda.cached_code("4K", "sm_80")
    assert calls[3:] == [("4K", "sm_80")]


class CudaOnHost(CudaLauncher):
    """The launcher's memory and arguments in host memory, with the host grid for its kernels."""

    def __init__(self) -> None:
        self.memory, self._host = HOST, HostLauncher()
        self._core = SimpleNamespace(
            LaunchConfig=SimpleNamespace,
            Stream=SimpleNamespace(from_handle=lambda handle: handle),
            launch=self._run,
        )
        self._kernels = _NamedKernels()
        self._buffers: dict[int, torch.Tensor] = {}

    def compile(self, cartridge: str) -> None:
        """The host grid has every cartridge type."""

    def allocate(self, num_bytes: int) -> torch.Tensor:
        buffer = super().allocate(num_bytes)
        self._buffers[buffer.data_ptr()] = buffer
        return buffer

    def view(self, frames: Any) -> torch.Tensor | None:
        buffer = super().view(frames)
        if buffer is not None:
            self._buffers[buffer.data_ptr()] = buffer
        return buffer

    def stream(self) -> Any:
        done = SimpleNamespace(query=lambda: True, synchronize=lambda: None)
        return SimpleNamespace(
            cuda_stream=7, wait_stream=lambda other: None, record_event=lambda: done
        )

    def _run(self, queue: int, config: Any, kernel: tuple[str, str], *arguments: Any) -> None:
        assert queue == 7
        addresses = [each for each in arguments if isinstance(each, int)]
        scalars: Sequence[np.uint32] = arguments[len(addresses) :]
        assert all(type(scalar) is np.uint32 for scalar in scalars)  # four bytes each
        buffers = [self._buffers[address] for address in addresses]
        num_lanes = config.grid * config.block  # more than there are: kernels must look
        self._host.launch(None, kernel, num_lanes, buffers, [int(each) for each in scalars])


class _NamedKernels(dict[tuple[str, str], Any]):
    def __missing__(self, key: tuple[str, str]) -> tuple[str, str]:
        return key


def test_memory_and_arguments_are_those_that_kernels_expect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)

    def on_host(settings: EngineSettings) -> Engine:
        return DeviceEngine(settings, CudaOnHost())

    games = ["pong", "space_invaders"]
    settings = devices.settings_of(games * 3, num_envs=6, num_groups=2, full_action_space=True)
    devices.assert_plays_like_native(on_host, settings, 40, snapshot_at=(3, 39))


def test_a_launch_covers_all_lanes() -> None:
    for lanes in (1, 31, 32, 33, 4096):
        launched: list[Any] = []
        launcher = CudaOnHost()
        launcher._core.launch = lambda queue, config, *rest, into=launched: into.append(config)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.cuda, "device", lambda device: nullcontext())
            launcher.launch(launcher.stream(), ("4K", "scanline_play"), lanes, [], [])
        [config] = launched
        assert config.block == THREADS_PER_BLOCK
        assert lanes <= config.grid * config.block < lanes + THREADS_PER_BLOCK


def test_a_pytorch_for_the_cpu_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(RefusedError, match=r"this PyTorch is built for the CPU; .* 'native'"):
        engines.build("cuda", devices.settings_of("pong"))


def test_a_missing_driver_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RefusedError, match=r"finds no NVIDIA GPU with a driver"):
        engines.build("cuda", devices.settings_of("pong"))


def test_an_old_gpu_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (6, 1))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "GTX 1080")
    with pytest.raises(RefusedError, match=r"GTX 1080 has compute capability 6\.1; .* 7\.5"):
        engines.build("cuda", devices.settings_of("pong"))


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(MissingPackageError, match=r"scanline\[cuda\]"):
        engines.build("cuda", devices.settings_of("pong"))


def test_the_report_of_the_assembler_is_read() -> None:
    report = (
        "ptxas info    : Compiling entry function 'b' for 'sm_75'\n"
        "ptxas info    : Function properties for b\n"
        "ptxas         .     64 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 0 barriers\n"
    )
    assert kernel_costs(report) == [KernelCost("b", 40, 8, 4, 64)]
