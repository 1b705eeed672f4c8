"""Find the pictures that two folders share: the images of a training set that are in
another set's test split, say.

    rematch overlap train2014/ flickr30k-images/
    rematch overlap A B --out shared.csv

Two pictures are equal if their size and pixels are. They are nearly equal if their
difference hashes differ in at most 8 of 64 bits, and their thumbnails correlate by 0.9
or more: copies that were compressed again, resized or brightened, and most of those
that were trimmed a little (prepare says the same of the splits of one dataset). Images
are found in all folders below. --out writes a row for each pair. With --check the exit
status is 1 if a picture is shared.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import pandas as pd

from benchmark.core.command_line import CHECK
from benchmark.core.errors import UserError, printable
from benchmark.core.files import write_text
from benchmark.prepare.leakage import HASH_BITS, Picture, measure, near_pairs
from benchmark.readers.image_files import Folder

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm")
SHOWN = 10  # pairs that are printed


@dataclass(frozen=True)
class SharedPair:
    """A picture of the first folder and one of the second."""

    first: str
    second: str
    bits: int | None  # in which their hashes differ; None: equal pixel for pixel


@dataclass(frozen=True, eq=False)
class Pictures:
    """The images of a folder by their paths in it, and their facts."""

    names: Sequence[str]
    pictures: Sequence[Picture]


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("first", type=Path, metavar="DIR", help="a folder of images")
    add("second", type=Path, metavar="DIR", help="another one")
    add("--out", type=Path, metavar="FILE", help="write all pairs, as .csv")
    add(CHECK, action="store_true", help="exit with 1 if a picture is shared")


def main(arguments: argparse.Namespace) -> int:
    out = arguments.out
    if out and out.suffix != ".csv":
        raise UserError(
            "--out",
            expected="a .csv file",
            found=out.name,
            do="name it so",
        )
    if arguments.first.resolve() == arguments.second.resolve():
        raise UserError(
            "overlap",
            expected="two folders",
            found=f"{arguments.first} twice",
            do="name another one",
        )
    first = read_pictures(arguments.first)
    second = read_pictures(arguments.second)
    pairs = shared_pairs(first, second)
    if out:
        columns = [field.name for field in fields(SharedPair)]
        # objects: else a missing number makes the others fractions
        table = pd.DataFrame(pairs, columns=columns, dtype=object)
        write_text(out, table.to_csv(index=False, lineterminator="\n"))
    print(shown(pairs, len(first.names), len(second.names)))
    return int(arguments.check and bool(pairs))


def read_pictures(folder: Path) -> Pictures:
    """Decode the images of a folder and those below it."""
    names = images_in(folder)
    return Pictures(names, measure(names, Folder(folder), str(folder)))


def images_in(folder: Path) -> list[str]:
    """The images of a folder and those below it, by their paths in it. Raises UserError
    where there is none."""
    if not folder.is_dir():
        raise UserError(
            folder,
            expected="a folder of images",
            found="no folder",
            do="correct the path",
        )
    images = []
    for path in sorted(folder.rglob("[!.]*")):
        if path.suffix.lower() in ENDINGS and path.is_file():
            images.append(path.relative_to(folder).as_posix())
    if not images:
        raise UserError(
            folder,
            expected=f"images ({', '.join(ENDINGS)})",
            found="none",
            do="name the folder that has them",
        )
    return images


def shared_pairs(first: Pictures, second: Pictures) -> list[SharedPair]:
    """Equal pairs of two folders first, then the nearest ones."""
    names_of_content = defaultdict(list)
    for name, picture in zip(first.names, first.pictures, strict=True):
        names_of_content[picture.sha256].append(name)
    pairs = []
    for name, picture in zip(second.names, second.pictures, strict=True):
        for equal in names_of_content[picture.sha256]:
            pairs.append(SharedPair(equal, name, None))
    side = [0] * len(first.names) + [1] * len(second.names)
    names = [*first.names, *second.names]
    near = near_pairs(side, [*first.pictures, *second.pictures])
    for row in near.itertuples():
        pair = SharedPair(names[row.first], names[row.second], int(row.distance))
        pairs.append(pair)
    return pairs


def shown(pairs: Sequence[SharedPair], first_count: int, second_count: int) -> str:
    """How many of the images of each side are shared, and the first pairs."""
    firsts = {pair.first for pair in pairs}
    seconds = {pair.second for pair in pairs}
    equal = sum(pair.bits is None for pair in pairs)
    near = len(pairs) - equal
    lines = [
        f"{len(firsts)} of {first_count} images are in the second folder, "
        f"{len(seconds)} of {second_count} in the first: "
        f"{equal} pairs are equal pixel for pixel, {near} nearly",
    ]
    for pair in pairs[:SHOWN]:
        likeness = "equal"
        if pair.bits is not None:
            likeness = f"{pair.bits} of {HASH_BITS} bits differ"
        both = f"{printable(pair.first)}  {printable(pair.second)}"
        lines.append(f"  {both}  ({likeness})")
    if len(pairs) > SHOWN:
        lines.append(f"  and {len(pairs) - SHOWN} more: --out FILE.csv has all")
    return "\n".join(lines)
