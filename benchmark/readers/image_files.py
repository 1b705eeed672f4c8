"""Images of a folder or of zip archives, which are read in place, upright and RGB.

Every kind of store is an `OpenPicture` that threads and processes may share. It also
has `names`, the .jpg files that it holds, and `files`, the paths of the raw folder that
it is made of.

Pillow guesses a format from the bytes, whatever the file's name, and one of its readers
starts another program (Ghostscript, for PostScript). So only the formats below are
tried.
"""

import fnmatch
import os
import re
import warnings
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from zipfile import ZipFile

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from benchmark.contracts.datasets import OpenPicture
from benchmark.core import files
from benchmark.core.errors import UserError
from benchmark.core.names import inside as inside_folder
from benchmark.readers import archives

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
UPRIGHT = {  # orientation of EXIF -> how the image is turned
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
DEEP = ("I;16", "I;16L", "I;16B", "I;16N", "I")  # greyscale of 16 bits; I also holds 32
WHITE = (255, 255, 255, 255)  # behind images that one can see through
WHITE_16 = (1 << 16) - 1  # as a value of 16 bits
OTHER_FORMATS = {  # how images of other formats begin -> what they are
    rb".{4}ftyp(avif|avis)": "AVIF",
    rb".{4}ftyp(hei[cfmsx]|hev|mif1|msf1)": "HEIC",
    rb"\x00\x00\x00\x0cjP  |\xff\x4f\xff\x51": "JPEG 2000",
    rb"\xff\x0a|\x00\x00\x00\x0cJXL ": "JPEG XL",
    rb"\s*<(\?xml|svg)": "SVG",
}
NO_IMAGES = {  # the same of what may stand in the place of an image
    rb"\s*<(!doctype|html)": "a web page, which a download may give instead",
    rb"version https://git-lfs": "a Git LFS pointer, without the image",
}
DEPTHS, SAVE_AS = "8 or 16 bits per channel", "save it as JPEG or PNG"
REPLACE, PLACE = "replace it", "place it there"
WHOLE = "a whole image"
LARGEST = 1 << 28  # bytes of an image as a file

# Pillow only warns of images up to twice as large as it takes for safe.
warnings.filterwarnings("error", category=Image.DecompressionBombWarning)


def upright_rgb(file: BinaryIO, where: object) -> Image.Image:
    """The first image of an open file, upright and RGB.

    It is turned as its EXIF says. 16 bits of grey become 8; what is transparent becomes
    white. Raises UserError for a file in no known format, and for an image that is
    damaged, has more than PIL.Image.MAX_IMAGE_PIXELS, or holds numbers that are no
    colours.
    """
    try:
        with Image.open(file, formats=FORMATS) as image:
            image.load()
            try:
                turn = UPRIGHT.get(image.getexif().get(ExifTags.Base.Orientation))
            # damaged EXIF does not make an image unusable: it says nothing
            except Exception:
                turn = None
            return _rgb(image if turn is None else image.transpose(turn), where)
    except UserError:
        raise
    except UnidentifiedImageError as error:  # its message holds a memory address
        formats = f"{WHOLE} ({', '.join(FORMATS)})"
        file.seek(0)
        kind = _other_kind(file.read(64))
        raise UserError(
            where,
            expected=formats,
            found=kind,
            do=SAVE_AS if kind in OTHER_FORMATS.values() else REPLACE,
        ) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UserError(
            where,
            expected=f"at most {Image.MAX_IMAGE_PIXELS} pixels",
            found=f"more ({error})",
            do="make it smaller",
        ) from error
    # Pillow raises many types, depending on what the bytes are
    except Exception as error:
        raise UserError(
            where,
            expected=WHOLE,
            found=f"one that cannot be decoded ({error or type(error).__name__})",
            do=REPLACE,
        ) from error


def _other_kind(start: bytes) -> str:
    """What a file is that begins so."""
    if not start:
        return "an empty file"
    for pattern, kind in (OTHER_FORMATS | NO_IMAGES).items():
        if re.match(pattern, start, re.DOTALL | re.IGNORECASE):
            return kind
    return "something that is no image"


def _rgb(image: Image.Image, where: object) -> Image.Image:
    if image.mode in DEEP:
        values = np.asarray(image).astype(np.int64)
        transparent = image.info.get("transparency")  # a value of grey
        if isinstance(transparent, int):
            values[values == transparent] = WHITE_16
        if values.min() < 0 or values.max() > WHITE_16:
            raise UserError(
                where,
                expected=DEPTHS,
                found="32 bits",
                do=SAVE_AS,
            )
        values = (values * 255 + WHITE_16 // 2) // WHITE_16
        image = Image.fromarray(values.astype(np.uint8))
    if image.mode == "F":
        raise UserError(
            where,
            expected=DEPTHS,
            found="fractions",
            do=SAVE_AS,
        )
    if image.has_transparency_data:
        image = image.convert("RGBA")
        if image.getextrema()[3][0] < 255:
            image = Image.alpha_composite(Image.new("RGBA", image.size, WHITE), image)
    return image.convert("RGB")


class Folder:
    """Images of a folder, by their paths in it. The folder may be a link, but none of
    its images may be one that leads out of it."""

    def __init__(self, path: Path):
        self.path = path
        self.real = os.path.realpath(path)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.path.glob("[!.]*.jpg"))

    def files(self) -> list[Path]:
        return [self.path_of(name) for name in self.names()]

    def path_of(self, file: str) -> Path:
        """Where an image is, or would be. Raises UserError for a path that leaves the
        folder."""
        name = inside_folder(file, f"{self.path}: {file!r:.200}", "correct its name")
        real = os.path.realpath(self.path / name)
        if not real.startswith(f"{self.real.rstrip(os.sep)}{os.sep}"):
            raise UserError(
                self.path / name,
                expected="an image in this folder",
                found=f"a link to {real}",
                do="place a copy of it there",
            )
        return self.path / name

    def __call__(self, file: str) -> Image.Image:
        path = self.path_of(file)
        with files.readable(path, WHOLE, PLACE), files.opened(path) as content:
            if os.fstat(content.fileno()).st_size > LARGEST:
                raise files.too_large(path, LARGEST)
            return upright_rgb(content, path)


class Archive:
    """Images of the folder `inside` of a zip archive. The handle is opened on first use
    and kept per process, because a forked child would move the file position of its
    parent."""

    def __init__(self, path: Path, inside: str):
        self.path = path
        self.inside = inside
        self.handles: dict[int, ZipFile] = {}
        with archives.unzipped(path) as zipped:
            paths = list(map(PurePosixPath, zipped.namelist()))
        folder = PurePosixPath(inside)
        names = [path.name for path in paths if path.parent == folder]
        self._names = sorted(fnmatch.filter(names, "[!.]*.jpg"))

    def __getstate__(self) -> dict:
        return self.__dict__ | {"handles": {}}

    def names(self) -> list[str]:
        return self._names

    def files(self) -> list[Path]:
        return [self.path]

    def __call__(self, file: str) -> Image.Image:
        where = f"{self.path}: {self.inside}/{file}"
        with files.readable(where, WHOLE, "fetch the complete archive again"):
            handle = self.handles.get(os.getpid())
            if handle is None:
                handle = self.handles.setdefault(os.getpid(), ZipFile(self.path))
            info = handle.getinfo(f"{self.inside}/{file}")
            content = archives.read_member(handle, info, where, LARGEST)
        return upright_rgb(BytesIO(content), where)


Store = Folder | Archive


def find(
    raw: Path,
    *,
    archive: str,
    inside: str,
    folders: tuple[str, ...],
) -> Store | None:
    """The archive of the raw folder, else the first of the folders; None if none of
    them has an image."""
    stores: list[Store] = []
    if files.is_file(raw / archive):
        stores.append(Archive(raw / archive, inside))
    stores += [Folder(raw / name) for name in folders]
    return next((store for store in stores if store.names()), None)


def needed(
    raw: Path,
    *,
    archive: str,
    inside: str,
    folders: tuple[str, ...],
    do: str,
) -> Store:
    """As `find`. Raises UserError, which says what to do, where there is no image."""
    store = find(raw, archive=archive, inside=inside, folders=folders)
    if store is None:
        raise UserError(
            raw,
            expected=f"{inside}/ or {archive} with .jpg files in it",
            found="no images",
            do=do,
        )
    return store


def absent(advice: str) -> OpenPicture:
    """Stands in for images that are not there: opening one is a UserError with
    `advice`."""
    return partial(_refuse, advice)


def _refuse(advice: str, file: str) -> Image.Image:
    raise UserError(
        file or "an image without a file",
        expected="an image",
        found="nothing",
        do=advice,
    )
