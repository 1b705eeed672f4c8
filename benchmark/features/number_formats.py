"""What the whole numbers of a file stand for: coordinates, bits, numbers of 16 bits.

Embeddings are floating-point numbers. Where a file has whole numbers instead, several
readings are possible, and each but one gives wrong scores:

    bits       eight to a byte as numpy.packbits packs them, or 0 and 1: read as -1 and
               +1, whose cosines order as Hamming distances do
    bfloat16   the 16 bits of such a number, as torch's view(torch.int16) gives them
    float16    the same of NumPy's float16
    integers   coordinates, as they are

int8 of both signs is read as coordinates, which is what quantised embeddings are, if
the numbers gather around 0, as packed bits do not. So are codes of -1, 0 and +1 of any
type.

N = rows, F = numbers of a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.core.errors import UserError

BITS, BFLOAT16, FLOAT16, INTEGERS = "bits", "bfloat16", "float16", "integers"
FORMATS = (BITS, BFLOAT16, FLOAT16, INTEGERS)
OF_16_BITS = (BFLOAT16, FLOAT16)
HALF_OF_INT8, EVEN = 64, 0.4  # half of all packed bytes lie beyond half of the range
FEWEST_OF_A_SIGN = 0.25  # share of coordinates: others have a zero point, or are bits
SIGN, SIZE = np.uint16(0x8000), np.uint16(0x7FFF)  # the bit of the sign, and the others
USUAL_SIZES = (0x1000, 0x5800)  # of scores of 16 bits: others are tiny or huge
USUAL = 0.99  # share of such scores
COORDINATES = "floating-point numbers, or int8 of both signs"


@dataclass(frozen=True)
class WholeNumbers:
    """The whole numbers of a file."""

    path: Path
    dtype: np.dtype  # of the file; of text the narrowest that holds them
    low: int
    high: int

    @property
    def has_no_type(self) -> bool:
        """Whether NumPy knows no type of these two bytes."""
        return self.dtype.kind == "V"

    @property
    def is_zero_or_one(self) -> bool:
        return self.low >= 0 and self.high <= 1

    @property
    def has_both_signs(self) -> bool:
        return self.low < 0 < self.high

    @property
    def may_be_int8(self) -> bool:
        """Whether they are int8, or floating-point numbers of the same values."""
        if self.dtype.kind == "f":
            return _narrowest(self.low, self.high) == np.int8
        return self.dtype == np.int8

    @property
    def bits(self) -> int:
        """Of a number that holds bits: the fewest of 1, 8, 16, 32 and 64 for all."""
        if self.is_zero_or_one:
            return 1
        return 8 * _narrowest(self.low, self.high).itemsize

    @property
    def choices(self) -> tuple[str, ...]:
        """The formats that these numbers may have."""
        if self.has_no_type:
            return OF_16_BITS
        if self.bits == 16:
            return FORMATS
        return BITS, INTEGERS

    def __str__(self) -> str:
        if self.has_no_type:
            return "2 bytes without a type, as ml_dtypes saves bfloat16"
        if self.is_zero_or_one:
            return f"0 and 1 alone ({self.dtype})"
        return f"whole numbers from {self.low} to {self.high} ({self.dtype})"


def whole_numbers(path: Path, values: np.ndarray) -> WholeNumbers | None:
    """The whole numbers of an array of any shape; None for floating-point numbers,
    unless each is whole although some are small enough to have fractions."""
    if values.dtype.kind != "f":
        numbers = _patterns(values) if values.dtype.kind == "V" else values
        low = int(numbers.min())
        high = int(numbers.max())
        return WholeNumbers(path, values.dtype, low, high)
    low = float(values.min())
    high = float(values.max())
    end = 2.0**63 if low < 0 else 2.0**64
    fit_a_word = -(2.0**63) <= low and high < end  # NaN does not
    if not fit_a_word or (values % 1 != 0).any():
        return None
    without_fractions = 1 / np.finfo(values.dtype).eps  # what is larger has none
    if not ((values != 0) & (np.abs(values) < without_fractions)).any():
        return None
    return WholeNumbers(path, values.dtype, int(low), int(high))


def decoded(values: np.ndarray, whole: WholeNumbers, numbers: str | None) -> np.ndarray:
    """The embeddings (N, ...) that whole numbers stand for, by one of FORMATS.

    Raises UserError without a format where several readings are possible, and for a
    format that the numbers cannot have.
    """
    if numbers is not None:
        return _as_format(values, whole, numbers)
    if whole.has_both_signs and max(-whole.low, whole.high) == 1:
        return values
    if whole.is_zero_or_one:
        raise _unclear("numbers of both signs", whole, str(whole), whole.choices)
    if not whole.has_both_signs or not whole.may_be_int8:
        raise _unclear(COORDINATES, whole, str(whole), whole.choices)
    if not _spread_as_coordinates(values):
        actual = f"{whole}, spread as packed bits or numbers with a zero point are"
        raise _unclear(COORDINATES, whole, actual, whole.choices)
    return values


def decoded_scores(
    values: np.ndarray,
    whole: WholeNumbers,
    numbers: str | None,
) -> np.ndarray:
    """The same of scores, which may be whole numbers of any type. Raises UserError
    without a format for what looks like numbers of 16 bits, and for bits."""
    if numbers == BITS:
        raise UserError(
            "--numbers",
            expected="another format for scores",
            found=BITS,
            do="leave it out",
        )
    if numbers is not None:
        return _as_format(values, whole, numbers)
    if values.dtype.kind != "f" and _look_like_16_bits(values):
        choices = [name for name in whole.choices if name != BITS]
        raise _unclear("scores", whole, str(whole), choices)
    return values


def narrowed(values: np.ndarray) -> np.ndarray:
    """Whole numbers of text, which have no type, in the narrowest that holds them;
    others as they are."""
    if values.dtype.kind not in "iu" or not values.size:
        return values
    low = int(values.min())
    high = int(values.max())
    return values.astype(_narrowest(low, high))


def check_alike(files: Sequence[WholeNumbers | None], numbers: str | None) -> None:
    """Raise UserError if no file has whole numbers although a format is given, or if
    files of bits are not packed alike: their distances would compare other bits."""
    given = [whole for whole in files if whole is not None]
    if numbers is not None and not given:
        raise UserError(
            "--numbers",
            expected="files of whole numbers",
            found="floating-point numbers alone",
            do="leave it out",
        )
    if numbers != BITS:
        return
    first = given[0]
    if len(given) < len(files):
        raise _unlike(f"{first.path}, and a file of floating-point numbers")
    for whole in given[1:]:
        is_signed = {first.low < 0, whole.low < 0}
        fills_upper_half = max(first.high, whole.high) >= 1 << (first.bits - 1)
        differ_by_sign = first.bits > 1 and len(is_signed) > 1 and fills_upper_half
        if first.bits != whole.bits or differ_by_sign:
            raise _unlike(f"{first} in {first.path}, {whole} in {whole.path}")


def _unlike(actual: str) -> UserError:
    return UserError(
        "--numbers bits",
        expected="bits that are packed alike",
        found=actual,
        do="pack all files in one way",
    )


def _spread_as_coordinates(values: np.ndarray) -> bool:
    """Whether numbers of both signs gather around 0."""
    is_far = (values >= HALF_OF_INT8) | (values < -HALF_OF_INT8)
    negative = (values < 0).sum() / (values != 0).sum()
    is_balanced = FEWEST_OF_A_SIGN <= negative <= 1 - FEWEST_OF_A_SIGN
    return bool(is_far.mean() < EVEN and is_balanced)


def _unclear(
    expected: str,
    whole: WholeNumbers,
    actual: str,
    choices: Sequence[str],
) -> UserError:
    options = f"{', '.join(choices[:-1])} or {choices[-1]}"
    other = "the numbers before they are packed or rounded"
    if whole.has_no_type:
        other = "x.astype(numpy.float32)"
    return UserError(
        whole.path,
        expected=expected,
        found=actual,
        do=f"say --numbers {options}, or save {other}",
    )


def _as_format(values: np.ndarray, whole: WholeNumbers, numbers: str) -> np.ndarray:
    if numbers not in whole.choices:
        where = f"{whole.path}: --numbers {numbers}"
        advice = " or ".join(whole.choices)
        raise UserError(
            where,
            expected="other numbers",
            found=whole,
            do=f"choose {advice}",
        )
    if numbers == INTEGERS:
        return values.astype(np.int8) if values.dtype.kind == "b" else values
    if numbers == BITS:
        if whole.bits > 1:
            words = _integers(values).astype(f">u{whole.bits // 8}")
            packed = np.ascontiguousarray(words).view(np.uint8)
            values = np.unpackbits(packed, axis=-1)
        return 2 * values.astype(np.int8) - 1
    patterns = _patterns(values)
    if numbers == FLOAT16:
        return patterns.view(np.float16)
    return (patterns.astype(np.uint32) << 16).view(np.float32)


def _patterns(values: np.ndarray) -> np.ndarray:
    """Numbers of 16 bits as uint16, whatever type holds them."""
    if values.dtype.kind == "V":
        return np.ascontiguousarray(values).view(np.uint16)
    return np.ascontiguousarray(_integers(values)).astype(np.uint16)


def _integers(values: np.ndarray) -> np.ndarray:
    """Whole floating-point numbers as integers; a narrower type keeps the last bits."""
    if values.dtype.kind != "f":
        return values
    return values.astype(np.uint64 if values.min() >= 0 else np.int64)


def _look_like_16_bits(values: np.ndarray) -> bool:
    """Whether some have the bit of a sign, and nearly all the bits of usual scores."""
    if values.dtype.kind == "V":
        return True
    least = -int(SIGN)
    most = int(SIGN | SIZE)
    if values.min() < least or values.max() > most:
        return False
    patterns = _patterns(values)
    has_sign = (patterns & SIGN).any()
    sizes = patterns & SIZE
    sizes = sizes[sizes != 0]
    if not sizes.size or not has_sign:
        return False
    low, high = USUAL_SIZES
    is_usual = (low <= sizes) & (sizes <= high)
    return bool(is_usual.mean() >= USUAL)


def _narrowest(low: int, high: int) -> np.dtype:
    """The smallest type of these whole numbers; signed if one of them is negative."""
    if low >= 0:
        return np.min_scalar_type(high)
    kinds = np.min_scalar_type(low), np.min_scalar_type(-max(high, 0) - 1)
    return np.promote_types(*kinds)
