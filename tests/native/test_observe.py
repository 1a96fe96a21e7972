"""The observation pass against the libraries whose bits it promises to give.

Pictures are random noise (the hardest rounding), random blocks (repeated lines, as games draw
them) and steps of grey; heights are those of all games.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

native = pytest.importorskip("scanline._native")
cv2 = pytest.importorskip("cv2")
Image = pytest.importorskip("PIL.Image")

Bytes = npt.NDArray[np.uint8]
HEIGHTS = (210, 214, 220, 230, 250, 256)
SIZES = (
    (105, 80),
    (70, 80),
    (42, 42),
    (64, 64),
    (96, 96),
    (110, 84),
    (30, 20),
    (210, 80),
    (209, 159),
)


def palette(seed: int = 0) -> tuple[Bytes, Bytes]:
    random = np.random.default_rng(seed)
    return (
        random.integers(0, 256, 256, dtype=np.uint8),
        random.integers(0, 256, (256, 3), dtype=np.uint8),
    )


def pictures(height: int, seed: int) -> list[tuple[Bytes, Bytes]]:
    random = np.random.default_rng(seed)
    noise = random.integers(0, 256, (2, height, 160), dtype=np.uint8)
    even = noise & 0xFE
    blocks = np.repeat(np.repeat(even[:, ::7, ::8], 7, 1), 8, 2)[:, :height, :160]
    lines = np.repeat(even[:, ::13], 13, 1)[:, :height]
    mixed = blocks.copy()
    mixed[:, height // 3 : height // 2] = noise[:, height // 3 : height // 2]
    flat = np.full((2, height, 160), 14, np.uint8)
    return [tuple(np.ascontiguousarray(p)) for p in (noise, even, blocks, lines, mixed, flat)]  # type: ignore[misc]


def observed(pair: tuple[Bytes, Bytes], portable: bool = False, **settings: Any) -> Bytes:
    height = len(pair[0])
    observer = native.Observer(settings, height, *palette(), portable)
    channels = 3 if settings.get("colour") == "rgb" else 1
    shape = (settings.get("height", 84), settings.get("width", 84), channels)
    out = np.full(shape, 0xA5, np.uint8)
    observer.observe(*pair, out)
    return out if channels == 3 else out[..., 0]


def grey_max(pair: tuple[Bytes, Bytes]) -> Bytes:
    grey, _ = palette()
    return np.maximum(grey[pair[0]], grey[pair[1]])


@pytest.mark.parametrize("portable", [True, False])
@pytest.mark.parametrize("height", HEIGHTS)
def test_area_resize_equals_opencv(height: int, portable: bool) -> None:
    for pair in pictures(height, height):
        expected = cv2.resize(grey_max(pair), (84, 84), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(observed(pair, portable), expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("portable", [True, False])
def test_area_resize_to_other_sizes_equals_opencv(size: tuple[int, int], portable: bool) -> None:
    for pair in pictures(210, 1):
        expected = cv2.resize(grey_max(pair), size[::-1], interpolation=cv2.INTER_AREA)
        given = observed(pair, portable, height=size[0], width=size[1])
        np.testing.assert_array_equal(given, expected)


def test_a_fused_multiply_add_would_be_noticed() -> None:
    # Random noise has sums that end within half a unit of a rounding boundary: the float32 sums
    # and the exact ones differ in some pixels, so equality with OpenCV is not for free.
    pair = pictures(210, 3)[0]
    pixels = grey_max(pair).astype(np.float64)
    weights = [np.zeros((84, n)) for n in (210, 160)]
    for matrix, n in zip(weights, (210, 160), strict=True):
        scale = n / 84
        for i in range(84):
            for k in range(n):
                matrix[i, k] = max(0.0, min(k + 1, (i + 1) * scale) - max(k, i * scale)) / scale
    exact = np.rint(weights[0] @ pixels @ weights[1].T).astype(np.uint8)
    different = np.count_nonzero(exact != observed(pair))
    assert 0 < different < 84 * 84 // 50


@pytest.mark.parametrize("height", HEIGHTS)
def test_linear_resize_equals_opencv(height: int) -> None:
    for pair in pictures(height, height + 1):
        expected = cv2.resize(grey_max(pair), (84, 84), interpolation=cv2.INTER_LINEAR)
        np.testing.assert_array_equal(observed(pair, resize="linear"), expected)


@pytest.mark.parametrize(("resize", "method"), [("bilinear", "BILINEAR"), ("nearest", "NEAREST")])
# The papers' Pillow always resampled across first; today's goes down first for tall pictures.
@pytest.mark.parametrize("height", [h for h in HEIGHTS if h <= 230])
def test_other_resizes_equal_pillow(height: int, resize: str, method: str) -> None:
    for pair in pictures(height, height + 2):
        image = Image.fromarray(grey_max(pair)).resize((84, 84), getattr(Image.Resampling, method))
        np.testing.assert_array_equal(observed(pair, resize=resize), np.asarray(image))


@pytest.mark.parametrize(
    ("crop", "rows"), [("bottom-2", slice(0, 208)), ("both-ends", slice(1, 209))]
)
def test_half_size_is_the_mean_of_two_by_two(crop: str, rows: slice) -> None:
    for pair in pictures(210, 5):
        grey = grey_max(pair)[rows].astype(np.int32)
        mean = (grey[::2, ::2] + grey[1::2, ::2] + grey[::2, 1::2] + grey[1::2, 1::2] + 2) >> 2
        given = observed(pair, resize="half", crop=crop, height=104, width=80)
        np.testing.assert_array_equal(given, mean)
        linear = cv2.resize(grey_max(pair)[rows], (80, 104), interpolation=cv2.INTER_LINEAR)
        np.testing.assert_array_equal(given, linear)


def test_half_size_of_a_taller_picture_is_opencvs_linear() -> None:
    for pair in pictures(250, 6):
        expected = cv2.resize(grey_max(pair)[:-2], (80, 104), interpolation=cv2.INTER_LINEAR)
        given = observed(pair, resize="half", crop="bottom-2", height=104, width=80)
        np.testing.assert_array_equal(given, expected)


def test_the_first_210_rows_of_a_taller_picture() -> None:
    for pair in pictures(250, 7):
        expected = cv2.resize(grey_max(pair)[:210], (84, 84), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(observed(pair, crop="first-210"), expected)


def test_whole_grey_and_colour_pictures() -> None:
    _, rgb = palette()
    for pair in pictures(210, 8):
        whole = {"resize": "none", "height": 210, "width": 160}
        np.testing.assert_array_equal(observed(pair, **whole), grey_max(pair))
        last = observed(pair, colour="rgb", pooling="none", **whole)
        np.testing.assert_array_equal(last, rgb[pair[1]])
        both = observed(pair, colour="rgb", **whole)
        np.testing.assert_array_equal(both, np.maximum(rgb[pair[0]], rgb[pair[1]]))


def test_colour_area_resize_equals_opencv() -> None:
    _, rgb = palette()
    for pair in pictures(210, 9):
        pooled = np.maximum(rgb[pair[0]], rgb[pair[1]])
        expected = cv2.resize(pooled, (84, 84), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(observed(pair, colour="rgb"), expected)


def test_maximum_of_colours_then_opencvs_grey() -> None:
    _, rgb = palette()
    for pair in pictures(210, 10):
        pooled = np.maximum(rgb[pair[0]], rgb[pair[1]])
        grey = cv2.cvtColor(pooled, cv2.COLOR_RGB2GRAY)
        expected = cv2.resize(grey, (84, 84), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(observed(pair, pooling="rgb"), expected)


def test_truncated_luminance() -> None:
    _, rgb = palette()
    for pair in pictures(210, 11):
        pooled = np.maximum(rgb[pair[0]], rgb[pair[1]])
        luma = np.tensordot(pooled, [0.299, 0.587, 1 - (0.299 + 0.587)], axes=(-1, 0))
        expected = Image.fromarray(luma.astype(np.uint8)).resize(
            (84, 84), Image.Resampling.BILINEAR
        )
        given = observed(pair, pooling="rgb", colour="luma", resize="bilinear")
        np.testing.assert_array_equal(given, np.asarray(expected))


def test_the_newest_frame_alone() -> None:
    for pair in pictures(210, 12):
        alone = observed(pair, pooling="none")
        np.testing.assert_array_equal(alone, observed((pair[1], pair[1])))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"resize": "none"}, "set height and width"),
        ({"height": 300}, "larger than the picture"),
        ({"height": 10}, "at most 13 times"),
        ({"height": 0}, "whole number from 1"),
        ({"resize": "cubic"}, "choose one of 'none', 'area'"),
        ({"colour": "as-is"}, "other engines"),
        ({"frames": 4}, "no setting named 'frames'"),
        ({"sticky": 1.5}, "probability"),
        ({"full_action_space": 1}, "must be a bool"),
        ({"noop_min": 5, "noop_max": 1}, "must not exceed noop_max=1"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        native.Observer(settings, 210, *palette())


def test_pictures_and_targets_of_wrong_size_are_refused() -> None:
    observer = native.Observer({}, 210, *palette())
    picture = np.zeros((210, 160), np.uint8)
    with pytest.raises(ValueError, match="a frame has 7056"):
        observer.observe(picture, picture, np.zeros(7055, np.uint8))
    with pytest.raises(ValueError, match=r"shape \(210, 160\)"):
        observer.observe(picture[:209], picture, np.zeros((84, 84), np.uint8))


def test_only_arrays_that_can_be_used_as_they_are_are_taken() -> None:
    pair, grey, rgb = pictures(210, 0)[0], *palette()
    observer = native.Observer({}, 210, grey, rgb)
    out = np.zeros((84, 84), np.uint8)
    read_only = out.copy()
    read_only.setflags(write=False)
    for wrong in (np.zeros((84, 84)), np.zeros((84, 168), np.uint8)[:, ::2], read_only, [[0]]):
        with pytest.raises(TypeError, match="out must be a writable, C-contiguous uint8 array"):
            observer.observe(*pair, wrong)
    with pytest.raises(ValueError, match="out has 84 bytes"):
        observer.observe(*pair, out[:1])
    for older, newer in ((pair[0].astype(int), pair[1]), (pair[0], pair[1][:, ::-1])):
        with pytest.raises(TypeError, match="er must be a C-contiguous uint8 array"):
            observer.observe(older, newer, out)
    with pytest.raises(ValueError, match=r"older must have shape \(210, 160\), but has \(209"):
        observer.observe(pair[0][1:], pair[1], out)
    with pytest.raises(TypeError, match="grey must be"):
        native.Observer({}, 210, grey.astype(int), rgb)
    with pytest.raises(ValueError, match="rgb must have shape"):
        native.Observer({}, 210, grey, rgb[:255])
    observer.observe(*pair, out)
    assert out.any()
