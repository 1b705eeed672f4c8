"""A made-up release of Flickr30k Entities: sixteen drawn pictures in the layout of the real one."""

import zipfile
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

WIDTH, HEIGHT = 60, 40
COUNTS = {"train": 9, "val": 3, "test": 4}
IDS = {
    split: [str(1000092795 * (k + 1) + first) for k in range(COUNTS[split])]
    for first, split in enumerate(COUNTS)
}
ALL_IDS = [image_id for ids in IDS.values() for image_id in ids]
SHARED = 19  # x of the third person's shirt, which belongs to two chains
NAMED = [  # sentence, words, whose chain: the phrases that have boxes
    (0, "Two young guys", "people"),
    (0, "red , `` loud '' shirts", "shirts"),
    (1, "A man's", "people"),
    (1, "shirt", "shirts"),
    (2, "the 2 men, both", "people"),
    (4, "Shirts", "shirts"),
]


def chains(row: int) -> dict[str, int]:
    """Chains are numbered on through all images."""
    return {what: 10 * row + k for k, what in enumerate(("people", "shirts", "yard", "joke"), 1)}


def sentence_lines(row: int) -> list[str]:
    people, shirts, yard, joke = chains(row).values()
    return [
        f"[/EN#{people}/people Two young guys] in [/EN#{shirts}/clothing red , `` loud '' shirts]"
        f" stand in [/EN#{yard}/scene the yard] .",
        f"[/EN#{people}/people A man's] [/EN#{shirts}/clothing shirt] is picture {row} .",
        f"[/EN#0/notvisual It] is [/EN#{joke}/other a joke] to "
        f"[/EN#{people}/people/other the 2 men, both] .",
        f"Nobody is named in picture {row} - caf\u00e9 \u2028 .",
        f"[/EN#{shirts}/clothing Shirts]",
    ]


def boxes(row: int) -> list[tuple[tuple[str, ...], tuple[int, int, int, int]]]:
    """The chains of each box, and its xmin ymin xmax ymax: from 1, the last pixel included."""
    return [
        (("people",), (1 + row % 5, 3, 12, 30)),
        (("people",), (15, 2, 40, 31 + row % 4)),
        (("shirts",), (2, 10, 11, 20)),
        (("shirts", "people"), (SHARED, 12, WIDTH, 20)),
    ]


def boxed(names: Iterable[object], bounds: tuple[object, ...]) -> str:
    inner = "".join(
        f"\t\t\t<{side}>{value}</{side}>\n"
        for side, value in zip(("xmin", "ymin", "xmax", "ymax"), bounds, strict=True)
    )
    return f"{named(names)}\t\t<bndbox>\n{inner}\t\t</bndbox>\n\t</object>\n"


def flagged(name: int, scene: int) -> str:
    flags = f"\t\t<scene>{scene}</scene>\n\t\t<nobndbox>{1 - scene}</nobndbox>\n"
    return f"{named([name])}{flags}\t</object>\n"


def named(names: Iterable[object]) -> str:
    return "\t<object>\n" + "".join(f"\t\t<name>{name}</name>\n" for name in names)


def xml(row: int) -> str:
    number = chains(row)
    objects = [boxed([number[who] for who in names], bounds) for names, bounds in boxes(row)]
    objects += [flagged(number["yard"], scene=1), flagged(number["joke"], scene=0)]
    return document(ALL_IDS[row], objects)


def document(image_id: str, objects: list[str]) -> str:
    size = f"\t\t<width>{WIDTH}</width>\n\t\t<height>{HEIGHT}</height>\n\t\t<depth>3</depth>\n"
    head = f"\t<filename>{image_id}.jpg</filename>\n\t<size>\n{size}\t</size>\n"
    return f"<annotation>\n{head}{''.join(objects)}</annotation>"


def expected_box(row: int, who: str) -> tuple[float, float, float, float]:
    """By counting the pixels, one by one, between the outermost boxes of the chain."""
    columns, rows = set(), set()
    for names, (xmin, ymin, xmax, ymax) in boxes(row):
        if who in names:
            columns |= set(range(xmin, xmax + 1))
            rows |= set(range(ymin, ymax + 1))
    return (min(columns) - 1, min(rows) - 1, max(columns), max(rows))


def with_objects(*objects: str) -> str:
    return document("1", list(objects))


def sentences_of(row: int) -> str:
    return f"Sentences/{ALL_IDS[row]}.txt"


def write_loose(raw: Path) -> None:
    """The release with its archive extracted, and the photographs."""
    for name in ("Sentences", "Annotations", "flickr30k-images"):
        (raw / name).mkdir(parents=True)
    for split, ids in IDS.items():
        (raw / f"{split}.txt").write_text("\n".join(ids) + "\n" * (split != "train"))
    for row, image_id in enumerate(ALL_IDS):
        text = "\n".join(sentence_lines(row)) + "\n"
        (raw / "Sentences" / f"{image_id}.txt").write_bytes(text.encode())
        (raw / "Annotations" / f"{image_id}.xml").write_text(xml(row))
        picture = Image.new("RGB", (WIDTH, HEIGHT), (15 * row, 255 - 15 * row, 0))
        picture.save(raw / "flickr30k-images" / f"{image_id}.jpg")
    unrelated = ["# format: <imageID> <sentence number>", f"{ALL_IDS[3]} 5", f"{ALL_IDS[7]} 1"]
    (raw / "UNRELATED_CAPTIONS").write_text("\n".join(unrelated))


def write_zipped(raw: Path, loose: Path) -> None:
    """The release as it is downloaded, and the photographs as .zip."""
    raw.mkdir()
    for name in ("train.txt", "val.txt", "test.txt", "UNRELATED_CAPTIONS"):
        (raw / name).write_bytes((loose / name).read_bytes())
    pack(raw / "annotations.zip", loose, ("Sentences", "Annotations"))
    pack(raw / "flickr30k-images.zip", loose, ("flickr30k-images",))


def pack(archive: Path, root: Path, folders: Iterable[str]) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(path for name in folders for path in (root / name).iterdir()):
            file.write(path, path.relative_to(root).as_posix())
            file.writestr(f"__MACOSX/{path.relative_to(root).as_posix()}", b"fork")
