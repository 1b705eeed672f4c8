"""Karpathy's JSON: {"images": [{"filename", "split", "sentences": [{"raw"}]}]}.

Karpathy and Fei-Fei (2015), Deep Visual-Semantic Alignments. Each of his datasets is one such
file; `caption_datasets.zip` holds those of Flickr8k, Flickr30k and COCO.
"""

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from benchmark.contracts.datasets import RemoteFile, UserError
from benchmark.core.errors import checked
from benchmark.readers import archives, check_text, inside, parse_json

ALL = "caption_datasets.zip"
REMOTE = RemoteFile(
    name=ALL,
    urls=(
        f"https://cs.stanford.edu/people/karpathy/deepimagesent/{ALL}",
        f"https://huggingface.co/datasets/gpantaz/karpathy_split/resolve/main/{ALL}",
    ),
)
UNCHANGED = "place an unchanged copy"


@dataclass(frozen=True)
class Entry:
    """One image of the file; `where` locates it in error messages."""

    where: str
    file: str
    split: str  # as written: COCO also has "restval"
    captions: list[str]
    number: int | None = None  # imgid: the name of an image of Flickr30k in SCAN's files
    cocoid: int | None = None
    sentids: tuple[int | None, ...] = ()  # of the captions; of COCO, the ids of its annotations


def find(raw: Path, name: str) -> Path | None:
    """The path of the JSON called `name` in a raw folder: loose, zipped, or with the others."""
    candidates = (raw / name, raw / f"{name}.zip", raw / ALL)
    return next((path for path in candidates if path.is_file()), None)


def read(path: Path, name: str, splits: tuple[str, ...]) -> list[Entry]:
    """The images of the JSON called `name`, in its order.

    Raises UserError for a file that occurs twice, a split that is not one of `splits`, and a blank
    caption.
    """
    entries = parse(archives.text(path, name), path.name)
    if not entries:
        raise UserError(f"{path.name}: images", "at least one", "none", UNCHANGED)
    seen = set()
    for entry in entries:
        if entry.split not in splits:
            expected = f"one of {', '.join(splits)}"
            raise UserError(f"{entry.where}: split", expected, repr(entry.split), UNCHANGED)
        if entry.file in seen:
            found = f"{entry.file!r} a second time"
            raise UserError(f"{entry.where}: filename", "every file once", found, UNCHANGED)
        seen.add(entry.file)
        for row, caption in enumerate(entry.captions):
            if not caption.strip():
                where = f"{entry.where}.sentences[{row}]: raw"
                raise UserError(where, "a caption", f"{caption!r:.60}", UNCHANGED)
    return entries


class _Sentence(BaseModel):
    raw: str
    sentid: int | None = None


class _Image(BaseModel):
    filename: str
    filepath: str = ""  # COCO: the folder of the file
    split: str
    sentences: list[_Sentence]
    imgid: int | None = None
    cocoid: int | None = None


class _File(BaseModel):
    images: list[_Image]


def parse(text: str, where: str) -> list[Entry]:
    """The images of a Karpathy JSON, in its order; `where` starts every error message."""
    entries = []
    for row, image in enumerate(checked(_File, parse_json(text, where, UNCHANGED), where).images):
        place = f"{where}: images[{row}]"
        file = f"{image.filepath}/{image.filename}" if image.filepath else image.filename
        captions = [sentence.raw for sentence in image.sentences]
        sentids = tuple(sentence.sentid for sentence in image.sentences)
        for number, caption in enumerate(captions):
            check_text(caption, f"{place}.sentences[{number}]: raw", UNCHANGED)
        file = inside(file, f"{place}: filename", UNCHANGED)
        numbers = image.imgid, image.cocoid, sentids
        entries.append(Entry(place, file, image.split, captions, *numbers))
    return entries
