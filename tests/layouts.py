"""Small made-up folders in the exact layouts that the field shares."""

import base64
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import scipy.io
from PIL import Image

from benchmark.contracts.datasets import Tables

COLOURS = ("red", "blue", "green", "white", "black")
THINGS = ("dog", "boat", "shirt", "tree", "car", "hat", "ball")


def five_captions(image_id: str) -> list[str]:
    number = int(image_id)
    thing = f"{COLOURS[number % 5]} {THINGS[number % 7]}"
    return [
        f"a {thing} of picture {image_id} , said {count} times ." for count in range(5)
    ]


def in_one_note(tables: Tables, *facts: object) -> bool:
    return any(all(str(fact) in note for fact in facts) for note in tables.notes)


def draw(path: Path, number: int, size: tuple[int, int] = (48, 36)) -> None:
    """A picture of coarse blocks of random colours; the number is the seed."""
    blocks = np.random.default_rng(number).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(blocks).resize(size, Image.Resampling.NEAREST).save(path)


def replace_line(path: Path, number: int, *lines: str) -> None:
    """Replace one line, counted from 1, by these; without any, remove it."""
    before = path.read_text().split("\n")
    path.write_text("\n".join([*before[: number - 1], *lines, *before[number:]]))


# Annotations --------------------------------------------------------------------------


def write_karpathy(path: Path, images: Iterable[Mapping]) -> None:
    """Karpathy's JSON of images with filename, split and captions, for COCO also
    filepath and cocoid; imgid is the row, if none is given."""
    entries = [
        {
            "imgid": row,
            **{key: value for key, value in image.items() if key != "captions"},
            "sentids": [10 * row + k for k in range(len(image["captions"]))],
            "sentences": [
                {
                    "tokens": text.split(),
                    "raw": text,
                    "imgid": row,
                    "sentid": 10 * row + k,
                }
                for k, text in enumerate(image["captions"])
            ],
        }
        for row, image in enumerate(images)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.stem.removeprefix("dataset_")
    path.write_text(json.dumps({"images": entries, "dataset": name}))


def write_tokens(path: Path, image_ids: Iterable[str]) -> None:
    """Flickr30k's own captions: name.jpg#k, a tab, a caption."""
    lines = [
        f"{i}.jpg#{k}\t{text}"
        for i in image_ids
        for k, text in enumerate(five_captions(i))
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def write_persons(raw: Path, split_of: Mapping[int, str]) -> None:
    """CUHK-PEDES: three pictures of each person, with two captions or, once, three."""
    items = []
    for person, split in split_of.items():
        for number, path in enumerate(
            ("cam_a/{}_1.bmp", "CUHK01/{}.png", "Market/{}_c1.jpg")
        ):
            file = path.format(person)
            draw(raw / "imgs" / file, 10 * person + number, size=(20, 50))
            captions = five_captions(str(person))[: 2 + (file == "Market/1_c1.jpg")]
            items.append(
                {"split": split, "captions": captions, "file_path": file, "id": person}
            )
    (raw / "reid_raw.json").write_text(json.dumps(items))


def write_entities(raw: Path, parts: Mapping[str, Sequence[str]]) -> None:
    """Flickr30k Entities, extracted: pictures of 60 x 40 pixels. Each shows a person,
    whom three phrases name, a hat, which two name, and a yard without a box."""
    for part, ids in parts.items():
        write_lines(raw / f"{part}.txt", ids)
        for image_id in ids:
            draw(
                raw / "flickr30k-images" / f"{image_id}.jpg",
                int(image_id),
                size=(60, 40),
            )
            write_lines(
                raw / "Sentences" / f"{image_id}.txt", marked_sentences(image_id)
            )
            (raw / "Annotations").mkdir(exist_ok=True)
            (raw / "Annotations" / f"{image_id}.xml").write_text(annotation(image_id))


PERSON, HAT = (2, 3, 30, 38), (40, 5, 58, 20)  # x0 y0 x1 y1, half-open


def marked_sentences(image_id: str) -> list[str]:
    person, hat, yard = (f"{image_id}{chain}" for chain in (1, 2, 3))
    who = ("man", "woman", "girl")[int(image_id) % 3]
    colour = COLOURS[int(image_id) % 5]
    return [
        f"[/EN#{person}/people A {who}] sees [/EN#{hat}/clothing a {colour} hat] .",
        f"[/EN#{person}/people The {who}] is in [/EN#{yard}/scene the yard] .",
        f"[/EN#0/notvisual It] is [/EN#{hat}/clothing the hat of picture {image_id}] .",
        f"[/EN#{person}/people Someone in {colour}] , outside .",
        f"Picture {image_id} .",
    ]


def annotation(image_id: str) -> str:
    """PASCAL's XML: pixels from 1, the last included. The person has two boxes."""
    x0, y0, x1, y1 = PERSON
    objects = [
        _boxed(f"{image_id}1", (x0, y0, x1 - 5, y1)),
        _boxed(f"{image_id}1", (x0 + 5, y0 + 5, x1, y1)),
        _boxed(f"{image_id}2", HAT),
        f"<object><name>{image_id}3</name><scene>1</scene><nobndbox>0</nobndbox></object>",
    ]
    size = "<size><width>60</width><height>40</height><depth>3</depth></size>"
    name = f"<filename>{image_id}.jpg</filename>"
    return "\n".join(["<annotation>", name, size, *objects, "</annotation>"])


def _boxed(chain: str, box: tuple[int, int, int, int]) -> str:
    x0, y0, x1, y1 = box
    sides = {"xmin": x0 + 1, "ymin": y0 + 1, "xmax": x1, "ymax": y1}
    inner = "".join(f"<{side}>{value}</{side}>" for side, value in sides.items())
    return f"<object>\n<name>{chain}</name>\n<bndbox>{inner}</bndbox>\n</object>"


# Features -----------------------------------------------------------------------------


def write_precomp(folder: Path, parts: Mapping[str, Sequence[str]]) -> None:
    """SCAN's files of each stem (train, dev, ...) with its ids."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, ids in parts.items():
        captions = [text for image_id in ids for text in five_captions(image_id)]
        write_lines(folder / f"{stem}_caps.txt", captions)
        write_lines(folder / f"{stem}_ids.txt", ids)
        np.save(folder / f"{stem}_ims.npy", np.stack(list(map(three_regions, ids))))


def three_regions(image_id: str) -> np.ndarray:
    return np.arange(6, dtype=np.float32).reshape(3, 2) + int(image_id)


def write_tsv(path: Path, image_ids: Iterable[str]) -> None:
    """Bottom-up attention: id, size, number of boxes, boxes and features in base64."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        for image_id in image_ids:
            regions = three_regions(image_id)
            boxes = np.zeros((len(regions), 4), np.float32)
            coded = [
                base64.b64encode(array.tobytes()).decode() for array in (boxes, regions)
            ]
            writer.writerow([int(image_id), 48, 36, len(regions), *coded])


def write_mat(path: Path, image_ids: Iterable[str]) -> None:
    """Karpathy's vgg_feats.mat: one column per image, in the order of the JSON beside
    it."""
    columns = [three_regions(image_id).ravel() for image_id in image_ids]
    scipy.io.savemat(path, {"feats": np.stack(columns, axis=1)})


def write_npy_with_ids(path: Path, image_ids: Sequence[str]) -> None:
    np.save(path, np.stack([three_regions(image_id).ravel() for image_id in image_ids]))
    write_lines(path.with_name(f"{path.stem}_ids.txt"), image_ids)


# Proposals ----------------------------------------------------------------------------


def write_edge_boxes(path: Path, boxes: Sequence[Sequence[float]]) -> None:
    """Half-open boxes as EdgeBoxes' bbs, the first with the highest score: x, y, w, h.
    x, y count from 1, w and h are one less than the number of pixels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    x0, y0, x1, y1 = np.array(boxes, dtype=np.float64).T
    scores = np.linspace(0.9, 0.1, len(boxes))
    bbs = np.stack([x0 + 1, y0 + 1, x1 - x0 - 1, y1 - y0 - 1, scores], axis=1)
    scipy.io.savemat(path, {"bbs": bbs[::-1]})


def write_npz_boxes(path: Path, boxes: Sequence[Sequence[float]]) -> None:
    """The same boxes, half-open, sorted by score in ascending order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scores = np.linspace(0.9, 0.1, len(boxes))
    np.savez(path, boxes=np.array(boxes)[::-1], scores=scores[::-1])
