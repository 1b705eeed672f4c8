"""Whole numbers of a file: read as what an option says, as coordinates where they can
be nothing else, and refused otherwise."""

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from benchmark.features.number_formats import (
    BFLOAT16,
    BITS,
    FLOAT16,
    INTEGERS,
    check_alike,
    decoded,
    decoded_scores,
    narrowed,
    whole_numbers,
)

FILE = Path("x.npy")
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(30, 64)).astype(np.float32)
SIGNS = np.where(VECTORS > 0, 1, -1)
BYTES = np.packbits(VECTORS > 0, axis=1)
HALVES = (VECTORS.view(np.uint32) >> 16).astype(np.uint16)  # bfloat16
QUANTISED = np.round(VECTORS / np.abs(VECTORS).max() * 127).astype(np.int8)


def read(values: np.ndarray, numbers: str | None = None) -> np.ndarray:
    whole = whole_numbers(FILE, values)
    return values if whole is None else decoded(values, whole, numbers)


def hamming(codes: np.ndarray) -> np.ndarray:
    return (codes[:, None] != codes).sum(2)


DOUBTFUL = {
    "packed bits": BYTES,
    "bits as int8": BYTES.view(np.int8),
    "packed bits less 128": (BYTES.astype(int) - 128).astype(np.int8),
    "sparse bits, int8": np.packbits(VECTORS > 1, axis=1).view(np.int8),
    "bits as int64": BYTES.astype(np.int64),
    "bits as floats": BYTES.astype(np.float32),
    "words": BYTES.view(np.int64),
    "words as floating-point numbers": BYTES.view(np.int32).astype(np.float64),
    "unpacked bits": (VECTORS > 0).astype(np.uint8),
    "true and false": VECTORS > 0,
    "0.0 and 1.0": (VECTORS > 0).astype(np.float64),
    "bfloat16 as uint16": HALVES,
    "bfloat16 as int16": HALVES.view(np.int16),
    "bfloat16 as int32": HALVES.astype(np.int32),
    "bfloat16 without a type": HALVES.view("V2"),
    "float16 as uint16": VECTORS.astype(np.float16).view(np.uint16),
    "a zero point": (QUANTISED.astype(int) + 128).astype(np.uint8),
    "int8, zero point": np.maximum(QUANTISED.astype(int) * 4 - 128, -128).clip(
        -128, 127
    ),
    "one sign": np.abs(QUANTISED),
    "int16": np.round(VECTORS * 1000).astype(np.int16),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_what_may_be_no_coordinates_is_refused(case):
    with refused("x.npy", "", "", "--numbers"):
        read(DOUBTFUL[case])


def scaled_by_row(vectors: np.ndarray) -> np.ndarray:
    return np.round(vectors / np.abs(vectors).max(1, keepdims=True) * 127).astype(
        np.int8
    )


def scaled_by_column(vectors: np.ndarray) -> np.ndarray:
    """As sentence-transformers does: the range of each column fills -128 to 127."""
    low, high = vectors.min(0), vectors.max(0)
    return ((vectors - low) / ((high - low) / 255) - 128).astype(np.int8)


COORDINATES = {
    "single precision": VECTORS,
    "large numbers, which are all whole": VECTORS * np.float32(1e12),
    "ternary": np.maximum(VECTORS, 0) * np.float32(1e12),
    "quantised": QUANTISED,
    "quantised by row": scaled_by_row(VECTORS),
    "quantised by column": scaled_by_column(VECTORS),
    "quantised, as floating-point numbers": QUANTISED.astype(np.float32),
    "half the range": np.array([[-64, -64, 63, 1, 1]], np.int8),
    "codes of int64": SIGNS,
    "codes of float": np.sign(VECTORS),
    "codes with zeros": np.sign(np.round(VECTORS)).astype(np.int16),
}


@pytest.mark.parametrize("case", COORDINATES)
def test_what_can_be_nothing_else_is_read_as_it_is(case):
    values = COORDINATES[case]
    assert read(values) is values


PACKED = {
    "uint8": BYTES,
    "int8": BYTES.view(np.int8),
    "int8, less 128": (BYTES.astype(int) - 128).astype(np.int8),
    "uint8 in int64": BYTES.astype(np.int64),
    "int8 in int64": BYTES.view(np.int8).astype(np.int64),
    "uint8 in float32": BYTES.astype(np.float32),
    "int8 in float64": BYTES.view(np.int8).astype(np.float64),
    "uint16": BYTES.view(np.uint16),
    "uint64": BYTES.view(np.uint64),
    "int64": BYTES.view(np.int64),
    "int32 in float64": BYTES.view(np.int32).astype(np.float64),
    "0 and 1": (VECTORS > 0).astype(np.uint8),
    "bool": VECTORS > 0,
    "0.0 and 1.0": (VECTORS > 0).astype(np.float32),
}


@pytest.mark.parametrize("case", PACKED)
def test_products_of_bits_order_as_their_hamming_distances(case):
    codes = read(PACKED[case], BITS).astype(int)
    assert codes.shape == SIGNS.shape and set(codes.ravel()) == {-1, 1}
    assert np.array_equal(codes @ codes.T, SIGNS.shape[1] - 2 * hamming(SIGNS))


def test_captions_of_each_image_have_their_own_bits():
    several = read(BYTES.reshape(10, 3, -1), BITS)
    assert np.array_equal(several.reshape(30, -1), read(BYTES, BITS))


@pytest.mark.parametrize("kind", ["u2", "i2", "i4", "f4", "V2"])
def test_numbers_of_16_bits_are_read_as_what_they_are(kind):
    for numbers, halves, exact in (
        (BFLOAT16, HALVES, (HALVES.astype(np.uint32) << 16).view(np.float32)),
        (
            FLOAT16,
            VECTORS.astype(np.float16).view(np.uint16),
            VECTORS.astype(np.float16),
        ),
    ):
        is_cut = kind in ("i2", "V2")
        values = halves.view(kind) if is_cut else halves.astype(kind)
        assert np.array_equal(read(values, numbers), exact)
    with refused("--numbers bfloat16", found="0 to 255 (uint8)", do="bits or integers"):
        read(BYTES, BFLOAT16)
    with refused("--numbers integers", found="2 bytes without a type", do="bfloat16"):
        read(HALVES.view("V2"), INTEGERS)


def test_integers_are_coordinates_if_somebody_says_so():
    assert np.array_equal(read(BYTES, INTEGERS), BYTES)
    assert read(VECTORS > 0, INTEGERS).tolist() == (VECTORS > 0).astype(int).tolist()


def test_bits_of_several_files_are_packed_alike():
    def check(*files: np.ndarray, numbers: str = BITS) -> None:
        check_alike([whole_numbers(FILE, values) for values in files], numbers)

    unlike = {
        "first bit flipped": BYTES.view(np.int8),
        "unpacked": VECTORS > 0,
        "words": BYTES.view(np.uint64),
        "floating-point numbers": VECTORS,
    }
    check(BYTES, BYTES.astype(np.float32))
    for values in unlike.values():
        with refused("--numbers bits", "packed alike"):
            check(BYTES, values)
    with refused("--numbers", "whole numbers", "floating-point numbers"):
        check(VECTORS, VECTORS, numbers=BFLOAT16)
    check(HALVES, VECTORS, numbers=BFLOAT16)


def test_scores_may_be_whole_numbers_but_not_numbers_of_16_bits():
    scores = np.tanh(VECTORS)
    counts = hamming(SIGNS)
    wide = np.linspace(0, 65535, 900).astype(np.uint16).reshape(30, 30)
    for values in (-counts, counts.astype(np.uint16), wide, np.int16(scores * 10000)):
        assert decoded_scores(values, whole_numbers(FILE, values), None) is values
    halves = (scores.view(np.uint32) >> 16).astype(np.uint16)
    for values in (
        halves,
        halves.view(np.int16),
        halves.view("V2"),
        halves.astype(np.int64),
    ):
        whole = whole_numbers(FILE, values)
        with refused("x.npy", "scores", do="--numbers bfloat16"):
            decoded_scores(values, whole, None)
        assert decoded_scores(values, whole, BFLOAT16) == pytest.approx(
            scores, rel=0.01
        )
        with refused("--numbers", "another format", BITS):
            decoded_scores(values, whole, BITS)


def test_scores_of_16_bits_may_have_many_zeros():
    halves = HALVES.copy()
    halves[:10] = 0
    with refused("x.npy", "scores", do="--numbers bfloat16"):
        decoded_scores(halves, whole_numbers(FILE, halves), None)


def test_text_has_the_narrowest_type():
    kinds = {-128: "int8", 127: "uint8", 128: "uint8", -129: "int16", 256: "uint16"}
    for value, kind in kinds.items():
        assert narrowed(np.array([[0, value]])).dtype == kind
    assert narrowed(np.array([[-1, 128]])).dtype == "int16"
    assert narrowed(VECTORS) is VECTORS


def test_the_largest_words_without_a_sign_are_whole_numbers():
    whole = whole_numbers(FILE, np.array([[0, 2.0**63, 1.0]]))
    assert (whole.low, whole.high, whole.bits) == (0, 2**63, 64)


def test_numbers_that_no_word_holds_are_floating_point_numbers():
    for low, high in ((-1, 2.0**63), (0, 2.0**64), (-(2.0**64), 1)):
        assert whole_numbers(FILE, np.array([[low, high, 1.0]])) is None
