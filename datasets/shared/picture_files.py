"""The one place where pictures are opened: any file of a known format -> an upright RGB picture.

Pillow guesses a format from the bytes, whatever the file's name, and one of its readers starts
another program (Ghostscript, for PostScript). So only the formats below are tried.
"""

import warnings
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from datasets import DataError

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
UPRIGHT = {  # orientation of EXIF -> how the picture is turned
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
DEEP = ("I;16", "I;16L", "I;16B", "I;16N", "I")  # greyscale of 16 bits; I also holds 32
WHITE = (255, 255, 255, 255)  # behind pictures that one can see through
REPLACE = "replace it and fetch again"

# Pillow only warns of pictures up to twice as large as it takes for safe.
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)


def upright_rgb(file: BinaryIO, where: object) -> Image.Image:
    """The first picture of an open file, upright and RGB.

    It is turned as its EXIF says. 16 bits of grey become 8; what is transparent becomes white.
    Raises DataError for a file in no known format, and for a picture that is damaged, has more than
    PIL.Image.MAX_IMAGE_PIXELS, or holds numbers that are no colours.
    """
    try:
        with Image.open(file, formats=FORMATS) as picture:
            _check_size(picture, where)
            picture.load()
            return _rgb(_turned(picture), where)
    except DataError:
        raise
    except UnidentifiedImageError as error:  # its message holds a memory address
        formats = f"a whole picture ({', '.join(FORMATS)})"
        raise DataError(where, formats, "something empty or not a picture", REPLACE) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_large(where, f"more ({error})") from error
    except Exception as error:  # Pillow raises many types, depending on what the bytes are
        found = f"one that cannot be decoded ({error or type(error).__name__})"
        raise DataError(where, "a whole picture", found, REPLACE) from error


def _check_size(picture: Image.Image, where: object) -> None:
    width, height = picture.size
    most = Image.MAX_IMAGE_PIXELS
    if most is not None and width * height > most:
        raise _too_large(where, f"{width} x {height}")


def _too_large(where: object, found: str) -> DataError:
    return DataError(where, f"at most {Image.MAX_IMAGE_PIXELS} pixels", found, "make it smaller")


def _turned(picture: Image.Image) -> Image.Image:
    turn = UPRIGHT.get(_orientation(picture))
    return picture if turn is None else picture.transpose(turn)


def _orientation(picture: Image.Image) -> object:
    """As EXIF says, 1 to 8. Damaged EXIF does not make a picture unusable: it says nothing."""
    try:
        return picture.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # as above
        return None


def _rgb(picture: Image.Image, where: object) -> Image.Image:
    if picture.mode in DEEP:
        return _of_16_bits(picture, where)
    if picture.mode == "F":
        raise DataError(where, "8 or 16 bits per channel", "fractions", "save it as PNG")
    if picture.has_transparency_data:
        layers = picture.convert("RGBA")
        if layers.getextrema()[3][0] < 255:
            return Image.alpha_composite(Image.new("RGBA", layers.size, WHITE), layers).convert(
                "RGB"
            )
        return layers.convert("RGB")
    return picture.convert("RGB")


def _of_16_bits(picture: Image.Image, where: object) -> Image.Image:
    values = np.asarray(picture).astype(np.int64)
    if values.min() < 0 or values.max() > 65535:
        raise DataError(where, "8 or 16 bits per channel", "32 bits", "save it as PNG")
    grey = ((values * 255 + 32767) // 65535).astype(np.uint8)
    return Image.fromarray(grey).convert("RGB")
