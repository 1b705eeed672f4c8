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
from benchmark.prepare.leakage import NEAR_BITS, Picture, measure, near_pairs
from benchmark.readers.image_files import Folder

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm")
SHOWN = 10  # pairs that are printed


@dataclass(frozen=True)
class SharedPair:
    """A picture of the first folder and one of the second."""

    first: str
    second: str
    bits: int | None  # in which their hashes differ; None: equal pixel for pixel


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
    names = [images_in(folder) for folder in (arguments.first, arguments.second)]
    pictures = []
    for folder, of_folder in zip(
        (arguments.first, arguments.second), names, strict=True
    ):
        pictures.append(measure(of_folder, Folder(folder), str(folder)))
    pairs = shared_pairs(names, pictures)
    if out:
        columns = [field.name for field in fields(SharedPair)]
        table = pd.DataFrame(pairs, columns=columns)
        write_text(out, table.to_csv(index=False, lineterminator="\n"))
    print(shown(pairs, names))
    return int(arguments.check and bool(pairs))


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


def shared_pairs(
    names: Sequence[Sequence[str]], pictures: Sequence[Sequence[Picture]]
) -> list[SharedPair]:
    """Equal pairs of two folders first, then the nearest ones."""
    (first_names, second_names), (first, second) = names, pictures
    named = defaultdict(list)
    for name, picture in zip(first_names, first, strict=True):
        named[picture.sha256].append(name)
    pairs = []
    for name, picture in zip(second_names, second, strict=True):
        pairs += [
            SharedPair(of_first, name, None) for of_first in named[picture.sha256]
        ]
    side = [0] * len(first) + [1] * len(second)
    both = [*first_names, *second_names]
    for row in near_pairs(side, [*first, *second]).itertuples():
        pairs.append(SharedPair(both[row.first], both[row.second], int(row.distance)))
    return pairs


def shown(pairs: Sequence[SharedPair], names: Sequence[Sequence[str]]) -> str:
    """How many images of each side are shared, and the first pairs."""
    equal = [pair for pair in pairs if pair.bits is None]
    firsts = {pair.first for pair in pairs}
    seconds = {pair.second for pair in pairs}
    lines = [
        f"{len(firsts)} of {len(names[0])} images are in the second folder, "
        f"{len(seconds)} of {len(names[1])} in the first: "
        f"{len(equal)} pairs are equal pixel for pixel, {len(pairs) - len(equal)} nearly",
    ]
    for pair in pairs[:SHOWN]:
        likeness = "equal"
        if pair.bits is not None:
            likeness = f"{pair.bits} of {NEAR_BITS} bits"
        both = f"{printable(pair.first)}  {printable(pair.second)}"
        lines.append(f"  {both}  ({likeness})")
    if len(pairs) > SHOWN:
        lines.append(f"  and {len(pairs) - SHOWN} more: --out FILE.csv has all")
    return "\n".join(lines)
