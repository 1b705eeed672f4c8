"""Karpathy's JSON: {"images": [{"filename", "split", "sentences": [{"raw"}]}]}."""

import json
from dataclasses import dataclass

from datasets import DataError


@dataclass(frozen=True)
class Entry:
    """One image of the file; `place` locates it in error messages."""

    place: str
    file: str
    split: str  # as written: COCO also has "restval"
    captions: list[str]


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
    return Entry(place, file, _member(image, "split", str, place), captions)


def _member(data: object, key: str, kind: type, place: str):
    found = data.get(key) if isinstance(data, dict) else None
    if not isinstance(found, kind):
        raise DataError(f"{place}: {key}: expected {kind.__name__}, found {found!r:.60}")
    return found
