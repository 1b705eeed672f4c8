"""Karpathy's JSON: {"images": [{"filename", "split", "sentences": [{"raw"}]}]}.

Karpathy and Fei-Fei (2015), Deep Visual-Semantic Alignments. Each of his datasets is one such
file; `caption_datasets.zip` holds those of Flickr8k, Flickr30k and COCO.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from datasets import DataError, RemoteFile
from datasets.shared import archives

ALL = "caption_datasets.zip"
REMOTE = RemoteFile(
    name=ALL,
    urls=(
        f"https://cs.stanford.edu/people/karpathy/deepimagesent/{ALL}",
        f"https://huggingface.co/datasets/gpantaz/karpathy_split/resolve/main/{ALL}",
    ),
)


@dataclass(frozen=True)
class Entry:
    """One image of the file; `place` locates it in error messages."""

    place: str
    file: str
    split: str  # as written: COCO also has "restval"
    captions: list[str]
    number: int | None = None  # imgid: SCAN's name for an image of Flickr30k
    cocoid: int | None = None


def find(raw: Path, name: str) -> Path | None:
    """Where a raw folder has the JSON called `name`: loose, zipped, or among the others."""
    candidates = (raw / name, raw / f"{name}.zip", raw / ALL)
    return next((path for path in candidates if path.is_file()), None)


def read(path: Path, name: str, splits: tuple[str, ...]) -> list[Entry]:
    """The images of the JSON called `name`; no file twice, no split that is not of `splits`, no
    blank caption."""
    entries = parse(archives.text(path, name), path.name)
    if not entries:
        raise DataError(f"{path.name}: images: none; expected at least one")
    seen = set()
    for entry in entries:
        if entry.split not in splits:
            known = ", ".join(splits)
            raise DataError(f"{entry.place}: split: expected one of {known}, found {entry.split!r}")
        if entry.file in seen:
            raise DataError(f"{entry.place}: filename: {entry.file!r} occurs a second time")
        seen.add(entry.file)
        _check_captions(entry)
    return entries


def parse(text: str, where: str) -> list[Entry]:
    """The images of a Karpathy JSON, in its order; `where` starts every error message."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise DataError(f"{where}: not JSON ({error})") from error
    images = _member(data, "images", list, where)
    return [_entry(image, f"{where}: images[{row}]") for row, image in enumerate(images)]


def _entry(image: object, place: str) -> Entry:
    file = _member(image, "filename", str, place)
    if "filepath" in image:  # COCO: the folder of the file
        file = f"{_member(image, 'filepath', str, place)}/{file}"
    sentences = _member(image, "sentences", list, place)
    captions = [
        _member(sentence, "raw", str, f"{place}.sentences[{row}]")
        for row, sentence in enumerate(sentences)
    ]
    return Entry(
        place=place,
        file=file,
        split=_member(image, "split", str, place),
        captions=captions,
        number=_member(image, "imgid", int, place) if "imgid" in image else None,
        cocoid=_member(image, "cocoid", int, place) if "cocoid" in image else None,
    )


def _check_captions(entry: Entry) -> None:
    for row, text in enumerate(entry.captions):
        if not text.strip():
            raise DataError(
                f"{entry.place}.sentences[{row}]: raw: expected a caption, found {text!r:.60}; "
                "get the file again"
            )


def _member(data: object, key: str, kind: type, place: str):
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, kind):
        raise DataError(f"{place}: {key}: expected {kind.__name__}, found {found!r:.60}")
    return found
