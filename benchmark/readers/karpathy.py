"""Karpathy's JSON: {"images": [{"filename", "split", "sentences": [{"raw"}]}]}.

Karpathy and Fei-Fei (2015), Deep Visual-Semantic Alignments. Each of his datasets is
one such file; `caption_datasets.zip` holds those of Flickr8k, Flickr30k and COCO.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from benchmark.contracts.datasets import RemoteFile, UserError
from benchmark.core.errors import checked
from benchmark.readers import archives, check_text, inside, nested_keys, parse_json

ALL = "caption_datasets.zip"
REMOTE = RemoteFile(
    name=ALL,
    urls=(
        f"https://cs.stanford.edu/people/karpathy/deepimagesent/{ALL}",
        f"https://huggingface.co/datasets/gpantaz/karpathy_split/resolve/main/{ALL}",
    ),
)
UNCHANGED = "place an unchanged copy"
TOP_KEYS = {"images", "dataset"}
IMAGE_KEYS = {"filename", "filepath", "split", "sentences"}
IMAGE_KEYS |= {"sentids", "imgid", "cocoid"}
SENTENCE_KEYS = {"raw", "tokens", "sentid", "imgid"}


@dataclass(frozen=True)
class Entry:
    """One image of the file; `where` locates it in error messages."""

    where: str
    file: str
    split: str  # as written: COCO also has "restval"
    captions: list[str]
    # imgid: the name of an image of Flickr30k in SCAN's files
    number: int | None = None
    cocoid: int | None = None
    # of the captions; of COCO, the ids of its annotations
    sentids: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Annotations:
    """The images of a file in its order, and the keys that are in no file of
    Karpathy's."""

    entries: list[Entry]
    unread: list[nested_keys.Key]


def find(raw: Path, name: str) -> Path | None:
    """The path of the JSON called `name` in a raw folder: loose, zipped, or with the
    others."""
    candidates = (raw / name, raw / f"{name}.zip", raw / ALL)
    return next((path for path in candidates if path.is_file()), None)


def needed(raw: Path, name: str, do: str) -> Path:
    """As `find`. Raises UserError, which says what to do, where it is nowhere."""
    path = find(raw, name)
    if path is None:
        raise UserError(
            raw,
            expected=f"{name}, {name}.zip or {ALL}",
            found="no annotations",
            do=do,
        )
    return path


# as tables hold it
Id = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class _Sentence(BaseModel):
    raw: str
    sentid: Id | None = None


class _Image(BaseModel):
    filename: str
    filepath: str = ""  # COCO: the folder of the file
    split: str
    sentences: list[_Sentence]
    imgid: Id | None = None
    cocoid: Id | None = None


class _File(BaseModel):
    images: list[_Image]


def read(path: Path, name: str, splits: tuple[str, ...] | None = None) -> Annotations:
    """The images of the JSON called `name`.

    Raises UserError for a file that occurs twice, a split that is not one of `splits`,
    and a blank caption.
    """
    data = parse_json(archives.text(path, name), path.name, UNCHANGED)
    entries = []
    seen = set()
    for row, image in enumerate(checked(_File, data, path.name).images):
        entry = _entry(image, f"{path.name}: images[{row}]")
        if splits and entry.split not in splits:
            raise UserError(
                f"{entry.where}: split",
                expected=f"one of {', '.join(splits)}",
                found=repr(entry.split),
                do=UNCHANGED,
            )
        if entry.file in seen:
            raise UserError(
                f"{entry.where}: filename",
                expected="every file once",
                found=f"{entry.file!r} again",
                do=UNCHANGED,
            )
        seen.add(entry.file)
        entries.append(entry)
    if not entries:
        raise UserError(
            f"{path.name}: images",
            expected="at least one",
            found="none",
            do=UNCHANGED,
        )
    unread: dict[nested_keys.Key, None] = {}
    nested_keys.gather_unread(unread, data, TOP_KEYS)
    for image in data["images"]:
        nested_keys.gather_unread(unread, image, IMAGE_KEYS)
        for sentence in image["sentences"]:
            nested_keys.gather_unread(unread, sentence, SENTENCE_KEYS, ("sentences",))
    return Annotations(entries, list(unread))


def _entry(image: _Image, where: str) -> Entry:
    """Raises UserError for a blank caption, and for a file outside."""
    for number, sentence in enumerate(image.sentences):
        place = f"{where}.sentences[{number}]: raw"
        check_text(sentence.raw, place, UNCHANGED)
        if not sentence.raw.strip():
            raise UserError(
                place,
                expected="a caption",
                found=f"{sentence.raw!r:.60}",
                do=UNCHANGED,
            )
    file = image.filename
    if image.filepath:
        file = f"{image.filepath}/{file}"
    return Entry(
        where=where,
        file=inside(file, f"{where}: filename", UNCHANGED),
        split=image.split,
        captions=[sentence.raw for sentence in image.sentences],
        number=image.imgid,
        cocoid=image.cocoid,
        sentids=tuple(sentence.sentid for sentence in image.sentences),
    )
