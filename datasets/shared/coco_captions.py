"""COCO's captions: {"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}.

Lin et al. (2014), Microsoft COCO. It names no splits.
"""

from dataclasses import dataclass, field

from datasets import DataError

CORRECT = "correct the annotation file"


@dataclass(frozen=True)
class Entry:
    """One image of the file; `where` locates it in error messages."""

    where: str
    file: str
    captions: list[str] = field(default_factory=list)


def is_coco(data: object) -> bool:
    return isinstance(data, dict) and "annotations" in data


def entries(data: dict, name: str) -> list[Entry]:
    """The images in their order, each with its captions in the order of the annotations.

    Raises DataError for an id that occurs twice, and for a caption of no image.
    """
    by_id: dict[int | str, Entry] = {}
    for row, image in enumerate(_items(data, "images", name)):
        where = f"{name}: images[{row}]"
        number = _member(image, "id", (int, str), where)
        if number in by_id:
            raise DataError(f"{where}: id", "every id once", repr(number), CORRECT)
        by_id[number] = Entry(where, _member(image, "file_name", (str,), where))
    for row, annotation in enumerate(_items(data, "annotations", name)):
        where = f"{name}: annotations[{row}]"
        number = _member(annotation, "image_id", (int, str), where)
        if number not in by_id:
            raise DataError(f"{where}: image_id", "the id of an image", repr(number), CORRECT)
        by_id[number].captions.append(_member(annotation, "caption", (str,), where))
    return list(by_id.values())


def _items(data: dict, key: str, name: str) -> list:
    items = data.get(key)
    if not isinstance(items, list):
        raise DataError(f"{name}: {key}", "a list", f"{items!r:.60}", CORRECT)
    return items


def _member(item: object, key: str, kinds: tuple[type, ...], where: str):
    value = item.get(key) if isinstance(item, dict) else None
    if type(value) not in kinds:
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise DataError(f"{where}: {key}", expected, f"{value!r:.60}", CORRECT)
    return value
