"""Annotation files of text: JSON, JSON lines and tables become records.

    .jsonl  an object per line
    .json   a list of objects, {"a.jpg": ["...", "..."]}, Karpathy's format, COCO's
            captions, TextCaps; or lines as in .jsonl
    others  a table with a first line that names the columns, or Flickr's lines of
            a.jpg#0, tab, caption

Where a file has two names for one thing, nothing is guessed.
"""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from benchmark.core.errors import UserError, checked
from benchmark.core.files import MOST, content, is_file, opened, parse_json, readable
from benchmark.readers import nested_keys, reader_notes, text_tables
from benchmark.readers.annotations import (
    Annotations,
    Form,
    Record,
    form_keys,
    text_items,
)
from benchmark.readers.flickr_captions import TOKEN_LINE, token_lines
from benchmark.readers.key_names import (
    NAMES,
    OTHER_CAPTIONS,
    SPLIT_WORDS,
    caption_keys,
    caption_name,
    is_image_name,
)
from benchmark.readers.text_tables import CORRECT, lines_of

KINDS = (".jsonl", ".csv", ".json", ".tsv", ".txt", ".token")
FORMATS = (
    "a list of images, or an object with images (Karpathy, COCO) or data (TextCaps)"
)
BY_SPLIT = "write them into one file, as one list with a column or key split"
START = 1 << 16  # bytes, or characters, of a file that tell what it is
NO_ANNOTATIONS = re.compile(r"dataset_infos?\.json|dataset_dict\.json|.*_stats\.json")

PLAIN = Form()
BLIP = Form(usual=form_keys("image_id"))
KARPATHY = Form(
    usual=form_keys(
        """
        imgid cocoid sentids sentences.tokens sentences.imgid sentences.sentid
        """
    )
)
COCO = Form(
    captions="annotations",
    usual=form_keys(
        """
        image_id license coco_url flickr_url date_captured height width annotations.id
        info.description info.url info.version info.year info.contributor
        info.date_created licenses.id licenses.name licenses.url
        """
    ),
)
TEXTCAPS = Form(
    usual=form_keys(
        """
        image_id image_classes image_width image_height flickr_original_url
        flickr_300k_url caption_id caption_tokens reference_strs reference_tokens
        """
    )
)
BESIDE = {  # key of the images -> keys on its level that are read or say nothing
    "images": {"images", "annotations", "dataset", "type"},
    "data": {"data", "dataset_name", "dataset_type", "dataset_version"},
}


def records(path: Path, name: str, seen: Annotations) -> Iterator[Record]:
    """The records of an annotation file, which errors call `name`."""
    text = text_of(path, name)
    kind = path.suffix.lower()
    is_json = text.lstrip()[:1] in ("[", "{")
    if kind == ".jsonl":
        return json_lines(text, name)
    if is_json or kind == ".json":
        return _json(text, name, seen)
    return _rows(text, name)


def text_of(path: Path, name: str, most: int = MOST) -> str:
    """The text of a file, which errors call `name`. Raises UserError for a file of more
    than `most` bytes, and for one that is not UTF-8."""
    with readable(name, "UTF-8 text", "save the file as UTF-8"):
        return decoded(content(path, most))


def decoded(data: bytes, errors: str = "strict") -> str:
    """Text in UTF-8, or in UTF-16 as in Excel's "Unicode text"."""
    is_wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if is_wide else "utf-8-sig", errors)


def is_annotation(path: Path) -> bool:
    """Whether the beginning of a file looks like annotations.

    True for what is no file, so that a reader refuses it by its name.
    """
    if path.suffix.lower() in (".json", ".jsonl") or not is_file(path):
        return not NO_ANNOTATIONS.fullmatch(path.name)
    with opened(path) as file:
        start = decoded(file.read(START), "replace")
    return _separator(start) is not None or TOKEN_LINE.match(start) is not None


# Tables -------------------------------------------------------------------------------


def _rows(text: str, name: str) -> Iterator[Record]:
    """The rows of a table, or the lines of Flickr's token files."""
    separator = _separator(text)
    if separator is None and TOKEN_LINE.match(text):
        for where, match in token_lines(lines_of(text), name):
            number = match["caption_id"].rpartition("#")[2]
            facts = {"image": match["file"], "caption": match["text"], "#": number}
            yield Record(where, facts)
        return
    if separator is None:
        names = ", ".join((*NAMES["caption"], *OTHER_CAPTIONS))
        columns = f"image ({', '.join(NAMES['image'])}) and caption ({names})"
        first_line = text.partition("\n")[0].strip()
        raise UserError(
            f"{name}:1",
            expected=f"a first line that names the columns {columns} between , ; | or tabs",
            found=f"{first_line!r:.80}",
            do=CORRECT,
        )
    table = text_tables.read(text, name, separator, is_image_name)
    captions = caption_keys(table.columns, f"{name}:1")
    for row in table.rows:
        facts = dict(zip(table.columns, row.cells, strict=True))
        for key in captions:
            facts[key] = [facts[key]]
        yield Record(f"{name}:{row.line}", facts)


def _separator(text: str) -> str | None:
    """The character between the columns of a table, if the first line names columns of
    images and captions."""
    for separator in ",;\t|":
        start = io.StringIO(text[:START], newline="")
        try:
            header = next(csv.reader(start, delimiter=separator), [])
        except csv.Error:
            continue
        if any(map(is_image_name, header)) and any(map(caption_name, header)):
            return separator
    return None


# JSON ---------------------------------------------------------------------------------


def json_lines(text: str, name: str) -> Iterator[Record]:
    """A record per line that is not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{name}:{number}"
            item = parse_json(line, where, CORRECT)
            yield Record(where, as_object(item, where))


def as_object(item: object, where: str) -> dict:
    """The item. Raises UserError for one that is no object of JSON."""
    if not isinstance(item, dict):
        raise UserError(
            where,
            expected="an object",
            found=f"{str(item)!r:.60}",
            do=CORRECT,
        )
    return item


def _json(text: str, name: str, seen: Annotations) -> Iterator[Record]:
    try:
        data = parse_json(text, name, CORRECT)
    except UserError as error:
        if getattr(error.__cause__, "msg", "") != "Extra data":  # after the first line
            raise
        return json_lines(text, name)
    if isinstance(data, list):
        return _listed(data, f"{name}: ", BLIP)
    if not isinstance(data, dict):
        raise UserError(
            name,
            expected=FORMATS,
            found=f"{data!r:.60}",
            do=CORRECT,
        )
    if "annotations" in data:
        return _coco(data, name, seen)
    if any(map(is_image_name, data)):
        return _listed([data], f"{name}: ", PLAIN)
    for key, form in (("images", KARPATHY), ("data", TEXTCAPS)):
        if key in data:
            nested_keys.gather_unread(seen.keys, data, BESIDE[key])
            return _listed(data[key], f"{name}: {key}", form)
    return _listed(_by_file(data, name), f"{name}: ", PLAIN)


def _listed(items: object, place: str, form: Form) -> Iterator[Record]:
    """The items of a list that stands in `place`."""
    if not isinstance(items, list):
        raise UserError(
            place,
            expected="a list",
            found=f"{items!r:.60}",
            do=CORRECT,
        )
    for row, item in enumerate(items):
        where = f"{place}[{row}]"
        yield Record(where, as_object(item, where), form)


def _by_file(data: dict, name: str) -> list[dict]:
    """The items of an object whose keys are images and whose values are captions."""
    items = []
    are_splits = SPLIT_WORDS.issuperset(data)
    for file, captions in data.items():
        has_texts = isinstance(captions, str) or text_items(captions) is not None
        if are_splits or not has_texts:
            raise UserError(
                name,
                expected=FORMATS,
                found=f"the keys {reader_notes.listed(data)}",
                do=BY_SPLIT if are_splits else CORRECT,
            )
        items.append({"image": file, "captions": captions})
    return items


class CocoImage(BaseModel, strict=True, extra="allow"):
    id: int | str


class CocoCaption(BaseModel, strict=True, extra="allow"):
    image_id: int | str
    caption: str


class Coco(BaseModel):
    """COCO's captions (Lin et al. 2014)."""

    images: list[CocoImage]
    annotations: list[CocoCaption]


def _coco(data: dict, name: str, seen: Annotations) -> Iterator[Record]:
    """The images in their order, each with its captions in theirs."""
    coco = checked(Coco, data, name)
    nested_keys.gather_unread(seen.keys, data, BESIDE["images"])
    rows_of: dict[str, list[int]] = {}  # of captions, by the id of their image
    for row, image in enumerate(coco.images):
        if str(image.id) in rows_of:
            raise UserError(
                f"{name}: images[{row}]: id",
                expected="every id once",
                found=repr(image.id),
                do=CORRECT,
            )
        rows_of[str(image.id)] = []
    for row, annotation in enumerate(coco.annotations):
        image_id = annotation.image_id
        if str(image_id) not in rows_of:
            raise UserError(
                f"{name}: annotations[{row}]: image_id",
                expected="the id of an image",
                found=repr(image_id),
                do=CORRECT,
            )
        rows_of[str(image_id)].append(row)
    order = []
    for row, image in enumerate(coco.images):
        captions = []
        places = []
        for caption_row in rows_of[str(image.id)]:
            annotation = coco.annotations[caption_row]
            captions.append({"caption": annotation.caption} | annotation.model_extra)
            places.append(f"{name}: annotations[{caption_row}]")
            order.append(caption_row)
        facts = {"image_id": image.id} | image.model_extra | {COCO.captions: captions}
        yield Record(f"{name}: images[{row}]", facts, COCO, tuple(places))
    seen.is_regrouped |= order != sorted(order)
