"""Karpathy's JSON: {"images": [{"filename", "split", "sentences": [{"raw"}]}]}.

Karpathy and Fei-Fei (2015), Deep Visual-Semantic Alignments. Each of his datasets is one such
file; `caption_datasets.zip` holds those of Flickr8k, Flickr30k and COCO.
"""

from dataclasses import dataclass
from pathlib import Path

from datasets import DataError, RemoteFile
from datasets.shared import archives, json_texts, name_checks

ALL = "caption_datasets.zip"
REMOTE = RemoteFile(
    name=ALL,
    urls=(
        f"https://cs.stanford.edu/people/karpathy/deepimagesent/{ALL}",
        f"https://huggingface.co/datasets/gpantaz/karpathy_split/resolve/main/{ALL}",
    ),
)
AGAIN = "get the file again"


@dataclass(frozen=True)
class Entry:
    """One image of the file; `where` locates it in error messages."""

    where: str
    file: str
    split: str  # as written: COCO also has "restval"
    captions: list[str]
    number: int | None = None  # imgid: the name of an image of Flickr30k in SCAN's files
    cocoid: int | None = None


def find(raw: Path, name: str) -> Path | None:
    """The path of the JSON called `name` in a raw folder: loose, zipped, or with the others."""
    candidates = (raw / name, raw / f"{name}.zip", raw / ALL)
    return next((path for path in candidates if path.is_file()), None)


def read(path: Path, name: str, splits: tuple[str, ...]) -> list[Entry]:
    """The images of the JSON called `name`, in its order.

    Raises DataError for a file that occurs twice, a split that is not one of `splits`, and a blank
    caption.
    """
    entries = parse(archives.text(path, name), path.name)
    if not entries:
        raise DataError(f"{path.name}: images", "at least one", "none", AGAIN)
    seen = set()
    for entry in entries:
        if entry.split not in splits:
            expected = f"one of {', '.join(splits)}"
            raise DataError(f"{entry.where}: split", expected, repr(entry.split), AGAIN)
        if entry.file in seen:
            found = f"{entry.file!r} a second time"
            raise DataError(f"{entry.where}: filename", "every file once", found, AGAIN)
        seen.add(entry.file)
        _check_captions(entry)
    return entries


def parse(text: str, where: str) -> list[Entry]:
    """The images of a Karpathy JSON, in its order; `where` starts every error message."""
    images = _member(json_texts.parse(text, where, AGAIN), "images", list, where)
    return [_entry(image, f"{where}: images[{row}]") for row, image in enumerate(images)]


def _entry(image: object, where: str) -> Entry:
    file = _member(image, "filename", str, where)
    if "filepath" in image:  # COCO: the folder of the file
        file = f"{_member(image, 'filepath', str, where)}/{file}"
    sentences = _member(image, "sentences", list, where)
    captions = [
        _member(sentence, "raw", str, f"{where}.sentences[{row}]")
        for row, sentence in enumerate(sentences)
    ]
    for row, caption in enumerate(captions):
        name_checks.check_text(caption, f"{where}.sentences[{row}]: raw", AGAIN)
    return Entry(
        where=where,
        file=name_checks.inside(file, f"{where}: filename", AGAIN),
        split=_member(image, "split", str, where),
        captions=captions,
        number=_member(image, "imgid", int, where) if "imgid" in image else None,
        cocoid=_member(image, "cocoid", int, where) if "cocoid" in image else None,
    )


def _check_captions(entry: Entry) -> None:
    for row, text in enumerate(entry.captions):
        if not text.strip():
            where = f"{entry.where}.sentences[{row}]: raw"
            raise DataError(where, "a caption", f"{text!r:.60}", AGAIN)


def _member(data: object, key: str, kind: type, where: str):
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, kind):
        raise DataError(f"{where}: {key}", kind.__name__, f"{value!r:.60}", AGAIN)
    return value
