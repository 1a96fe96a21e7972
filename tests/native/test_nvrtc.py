"""The emulator's headers compile for GPUs: a kernel steps one console per thread."""

from __future__ import annotations

from pathlib import Path

import kernel_compiler
import pytest

LIBRARY = kernel_compiler.nvrtc_path()
if LIBRARY is None:
    pytest.skip(
        "compiling kernels needs NVRTC: pip install nvidia-cuda-nvrtc", allow_module_level=True
    )
EVERY_ARCHITECTURE = [(arch, "4K") for arch in kernel_compiler.ARCHITECTURES]
MOST_COMPLEX_CARTRIDGE = [("sm_80", "DPC")]


@pytest.fixture(scope="module")
def compiler() -> kernel_compiler.Compiler:
    assert LIBRARY is not None
    return kernel_compiler.Compiler(LIBRARY)


@pytest.mark.parametrize(
    ("architecture", "cartridge"), [*EVERY_ARCHITECTURE, *MOST_COMPLEX_CARTRIDGE]
)
def test_a_kernel_with_one_console_per_thread_compiles(
    compiler: kernel_compiler.Compiler,
    capsys: pytest.CaptureFixture[str],
    architecture: str,
    cartridge: str,
) -> None:
    costs = kernel_compiler.step_consoles(compiler, architecture, cartridge)
    assert [cost.name for cost in costs] == ["step_drawn", "step_unseen"]
    assert all(0 < cost.registers <= 255 for cost in costs)
    with capsys.disabled():
        print()
        for cost in costs:
            print(kernel_compiler.row(architecture, cartridge, cost))


def test_a_host_function_is_refused(compiler: kernel_compiler.Compiler, tmp_path: Path) -> None:
    source = tmp_path / "host.cu"
    source.write_text('#include "../core/console.h"\n')
    with pytest.raises(ValueError, match=r"host\.cu does not compile for sm_80"):
        compiler.compile(source, "sm_80", {})


def test_the_report_of_the_assembler_is_read() -> None:
    log = (
        "ptxas info    : Compiling entry function 'b' for 'sm_75'\n"
        "ptxas info    : Function properties for b\n"
        "ptxas         .     64 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 0 barriers\n"
    )
    assert kernel_compiler.kernel_costs(log) == [
        kernel_compiler.KernelCost(
            name="b",
            registers=40,
            spill_store_bytes=8,
            spill_load_bytes=4,
            local_memory_bytes=64,
        )
    ]
