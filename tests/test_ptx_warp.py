"""A warp of PTX on the host: lanes part and meet as on a GPU, and are counted."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from ptx_text import EXIT, functions_of
from ptx_warp import WarpProgram

# Odd lanes add 10 to their word, the others 20; then all vote whether any word is above 40.
KERNEL = """
.version 8.0
.target sm_80
.visible .entry scanline_play(
	.param .u64 scanline_play_param_0
)
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<9>;
	.reg .b64 	%rd<4>;

	ld.param.u64 	%rd1, [scanline_play_param_0];
	mov.u32 	%r1, %tid.x;
	activemask.b32 %r2;
	mul.wide.u32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
	ld.global.u32 	%r3, [%rd3];
	and.b32  	%r4, %r1, 1;
	setp.eq.b32 	%p1, %r4, 1;
	@%p1 bra 	$L__BB0_2;
	add.s32 	%r3, %r3, 20;
	bra.uni 	$L__BB0_3;
$L__BB0_2:
	add.s32 	%r3, %r3, 10;
$L__BB0_3:
	setp.gt.s32 	%p2, %r3, 40;
	vote.sync.any.pred 	%p3, %p2, %r2;
	selp.b32 	%r5, 1000, 0, %p3;
	add.s32 	%r6, %r3, %r5;
	st.global.u32 	[%rd3], %r6;
	ret;

}
"""


def test_lanes_that_part_meet_at_the_post_dominator() -> None:
    (function,), _ = functions_of(KERNEL)
    parting = next(block for block in function.blocks if len(block.successors) == 2)
    assert function.blocks[parting.meets_at].statements[0].opcode == "setp.gt.s32"
    assert function.blocks[-2].successors == [EXIT]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("above", [False, True])
def test_a_warp_computes_and_counts(above: bool) -> None:
    program = WarpProgram("test", KERNEL)
    words = np.arange(32, dtype=np.uint32) % 4 + (30 if above else 0)
    expected = words + np.where(np.arange(32) % 2, 10, 20) + (1000 if above else 0)
    program.take_counts()
    program.run(32, np.array([words.__array_interface__["data"][0]], np.uint64))
    assert words.tolist() == expected.tolist()
    counts = program.take_counts()
    halves = [count for count in counts if count.lanes == 16]
    assert sorted(count.instructions for count in halves) == [1, 2]
    assert {count.lanes for count in counts} == {16, 32}
    assert program.take_counts() == []
