"""What annotation files say of images: records of any format become entries.

A record is a line of a file, or an item of its JSON. What a key says is known by its
name (key_names). Keys that are read are marked, so that notes can name the others.
"""

import ast
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from benchmark.core.errors import UserError
from benchmark.core.files import JSON
from benchmark.core.names import LONGEST_PATH, check_text, inside
from benchmark.readers import nested_keys, reader_notes
from benchmark.readers.key_names import (
    CAPTION_IDS,
    IMAGE_IDS,
    NAMES,
    caption_keys,
    caption_name,
    is_caption_id,
    is_same,
    plain,
    role_of,
    split_of_path,
)
from benchmark.readers.nested_keys import Key
from benchmark.readers.text_tables import CORRECT, IMAGE_NAME

# the number of a caption among those of its image: a.jpg#0; Flickr30k's table
NUMBERS = ("#", "comment_number")
NUMBERED_IMAGE = re.compile(rf"(?P<file>{IMAGE_NAME.pattern})#(?P<number>\d+)", re.I)
LIST = re.compile(  # texts, written as one
    r"""\s*(?:
        \[\s*(?:['"\[{].*)?\]  # a list, perhaps of nothing
        |\(\s*['"].*['"]\s*(?:,\s*)?\)  # a tuple
        |\{\s*['"]\w+['"]\s*:.*\}  # COCO's {"raw": text}
    )\s*""",
    re.DOTALL | re.VERBOSE,
)


def form_keys(text: str) -> frozenset[Key]:
    """Keys that are written between blanks, with dots between their parts."""
    return frozenset(tuple(key.split(".")) for key in text.split())


@dataclass(frozen=True)
class Form:
    """What is known of a format beside the names of columns.

    captions  the key of captions, where a format has one for them; "": by key_names
    usual     keys that say nothing here and that most files of the format have
    """

    captions: str = ""
    usual: frozenset[Key] = frozenset()


@dataclass(frozen=True)
class Record:
    """A line or item of an annotation file."""

    where: str
    facts: dict
    form: Form = Form()
    places: tuple[str, ...] = ()  # where each caption stands, if not in the item itself


@dataclass(frozen=True)
class Sentence:
    """A caption as it stands in a record: in an object, beside other facts, or
    alone."""

    where: str
    path: Key  # of the object
    text: str
    facts: dict


@dataclass(frozen=True)
class Caption:
    """A caption, and what the file calls it."""

    text: str
    own_id: str | None = None
    number: str | None = None  # among those of its image


@dataclass(frozen=True)
class Entry:
    """What one line or item of the annotation file says of one image; `where` locates
    it."""

    where: str
    file: str
    captions: list[Caption]
    image_id: str | None = None
    split: str | None = None
    group: str | None = None
    own_id: str | None = None  # what else the file calls the image
    is_packed: bool = False  # in a tar or parquet file


@dataclass
class Annotations:
    """Annotation files, and what is met while they are read."""

    paths: list[Path]
    name: str
    entries: list[Entry] = field(default_factory=list)
    # keys, or columns, that say something
    used: dict[Key, None] = field(default_factory=dict)
    ids: dict[Key, None] = field(default_factory=dict)  # those of further names
    usual: set[Key] = field(default_factory=set)
    keys: dict[Key, None] = field(default_factory=dict)  # all of them
    notes: list[str] = field(default_factory=list)
    # captions stand in another order than that of their images
    is_regrouped: bool = False
    is_one_file: bool = False  # beside the images, or above them

    def unused(self, *, with_ids: bool = True) -> list[Key]:
        """The keys that are not read. Ids of images and captions are read by `score`
        alone: without `with_ids`, they count as read."""
        read = {*self.used, *self.usual}
        if not with_ids:
            read |= self.ids.keys()
        return [key for key in self.keys if key not in read]

    def note(self, names: list[str], what: str) -> None:
        """Note what is true of some files or items; nothing without any."""
        if names:
            listed = reader_notes.listed(names)
            self.notes.append(f"{len(names)} {what}: {listed}.")


# Images -------------------------------------------------------------------------------


def entry(
    record: Record,
    seen: Annotations,
    file: str | None = None,
    path: str = "",
    is_packed: bool = False,
) -> Entry:
    """What a record says of an image.

    file       the image, where the record need not name it
    path       names the split, where the record does not
    is_packed  the image is in a tar or parquet file; its name in the record is its id

    Raises UserError for a record without image or captions, and for facts of captions
    that contradict each other or their image.
    """
    where = record.where
    facts = record.facts
    nested_keys.gather(seen.keys, facts)
    seen.usual |= record.form.usual
    image = _fact(where, facts, "image", seen)
    image_id = _fact(where, facts, "id", seen)
    split = _fact(where, facts, "split", seen)
    group = _fact(where, facts, "group", seen)
    if not (image or file):
        raise UserError(
            f"{where}: image",
            expected=f"a string ({', '.join(NAMES['image'])})",
            found=f"None, but {reader_notes.listed(facts)}",
            do=CORRECT,
        )
    sentences = _sentences(record, seen)
    roles = _roles_of(sentences)  # of most files none: the steps below take time
    if roles & {"image", "image_id"}:
        _check_owner(image, facts, sentences, seen)
    if "split" in roles:
        split = _shared("split", split, sentences, seen)
    check_text(split or "", f"{where}: split", CORRECT, LONGEST_PATH)
    if "group" in roles:
        group = _shared("group", group, sentences, seen)
    check_text(group or "", f"{where}: group", CORRECT, LONGEST_PATH)
    named_file, captions = _without_number(
        _path(file or image, where),
        _captions(record, sentences, seen),
    )
    if is_packed and image and not image_id:
        image_id = _path(image, where)
    check_text(image_id or "", f"{where}: id", CORRECT, LONGEST_PATH)
    return Entry(
        where=where,
        file=named_file,
        captions=captions,
        image_id=image_id,
        split=split or split_of_path(path),
        group=group,
        own_id=_own_id(facts, IMAGE_IDS, (), seen),
        is_packed=is_packed,
    )


def _without_number(file: str, captions: list[Caption]) -> tuple[str, list[Caption]]:
    """Flickr's a.jpg#0 with its only caption: the image a.jpg, whose caption has the
    number 0."""
    numbered = NUMBERED_IMAGE.fullmatch(file)
    if numbered is None or len(captions) != 1:
        return file, captions
    return numbered["file"], [replace(captions[0], number=numbered["number"])]


def _path(file: str, where: str) -> str:
    advice = "make it relative to the folder"
    return inside(file.replace("\\", "/"), f"{where}: image", advice)


def _fact(
    where: str, facts: dict, role: str, seen: Annotations, path: Key = ()
) -> str | None:
    """The text of one role; None where there is none.

    A whole number is taken as its digits. Several keys may have the role if they agree:
    a path, and its end.
    """
    texts: dict[str, str] = {}
    for key, value in facts.items():
        if role_of(key) != role:
            continue
        seen.used[*path, key] = None
        text = str(value) if type(value) is int else value
        if text in (None, ""):
            continue
        if not isinstance(text, str):
            raise UserError(
                f"{where}: {role}",
                expected="a string",
                found=f"{value!r:.60}",
                do=CORRECT,
            )
        if text.strip():
            texts[key] = text.strip()
    if not texts:
        return None
    longest = max(texts.values(), key=len)
    if not all(_agree(text, longest, role) for text in texts.values()):
        raise UserError(
            where,
            expected=f"one {role}",
            found=" and ".join(f"{key} {text!r:.60}" for key, text in texts.items()),
            do="keep the key that is right",
        )
    folder = facts.get("filepath")
    is_karpathys = role == "image" and "sentences" in facts  # of COCO
    if is_karpathys and folder and isinstance(folder, str):
        seen.used["filepath",] = None
        return f"{folder}/{longest}"
    relative = [text for text in texts.values() if not text.startswith("/")]
    return max(relative, key=len, default=longest)


def _agree(a: str, b: str, role: str) -> bool:
    """Whether one of two texts is a path and the other its end; of images, also without
    the ending of the file name."""
    value, path = sorted((a, b), key=len)
    ends = [path]
    if role == "image":
        ends.append(path.removesuffix(PurePosixPath(path).suffix))
    return any(f"/{end}".endswith(f"/{value}") for end in ends)


def _own_id(
    facts: dict, names: tuple[str, ...], path: Key, seen: Annotations
) -> str | None:
    """The id of the first of these names, a text or a whole number."""
    ids: dict[str, str] = {}
    for key, value in facts.items():
        name = plain(key)
        if name in names and type(value) in (int, str) and value != "":
            ids.setdefault(name, str(value))
            seen.ids[*path, key] = None
    for name in names:
        if name in ids:
            return ids[name]
    return None


# Facts of captions --------------------------------------------------------------------


def _roles_of(sentences: list[Sentence]) -> set[str]:
    """What the keys beside the texts say."""
    roles: set[str] = set()
    for sentence in sentences:
        roles.update(map(role_of, sentence.facts))
    return roles


def _check_owner(
    image: str | None, facts: dict, sentences: list[Sentence], seen: Annotations
) -> None:
    """Raise UserError for a caption that names another image than its own."""
    ids: dict[str, object] = {}
    for key, value in facts.items():
        if role_of(key) == "image_id":
            ids[plain(key)] = value
    for sentence in sentences:
        where = sentence.where
        other = _fact(where, sentence.facts, "image", seen, sentence.path)
        if None not in (image, other) and not _agree(other, image, "image"):
            raise UserError(
                f"{where}: image",
                expected=f"{image!r:.60}",
                found=f"{other!r:.60}",
                do=CORRECT,
            )
        for key, value in sentence.facts.items():
            own = ids.get(plain(key), value)
            if role_of(key) == "image_id" and str(own) != str(value):
                raise UserError(
                    f"{where}: {key}",
                    expected=f"{own!r:.60}, as of its image",
                    found=f"{value!r:.60}",
                    do=CORRECT,
                )


def _shared(
    role: str, value: str | None, sentences: list[Sentence], seen: Annotations
) -> str | None:
    """A fact of an image that its captions may also state, on which all must agree."""
    place = "its image"
    for sentence in sentences:
        other = _fact(sentence.where, sentence.facts, role, seen, sentence.path)
        if other is None:
            continue
        if value is None:
            value = other
            place = f"{sentence.where}, a caption of the same image"
        elif not is_same(role, value, other):
            raise UserError(
                f"{sentence.where}: {role}",
                expected=f"{value!r:.60} as of {place}",
                found=f"{other!r:.60}",
                do=f"{CORRECT}: all captions of an image have one {role}",
            )
    return value


def _captions(
    record: Record, sentences: list[Sentence], seen: Annotations
) -> list[Caption]:
    """The captions, with the ids that the file gives to each, or to all in a list."""
    facts = record.facts
    names = (*CAPTION_IDS, "id")
    ids = [_own_id(each.facts, names, each.path, seen) for each in sentences]
    for key, value in facts.items():
        if not is_caption_id(key) or any(ids):
            continue
        values = value if isinstance(value, list) else [value]
        are_ids = set(map(type, values)) <= {int, str}
        if are_ids and len(values) == len(ids):
            ids = list(map(str, values))
            seen.ids[key,] = None
    number = None
    if len(sentences) == 1:
        for key in NUMBERS:
            text = str(facts.get(key, ""))
            if text.isdecimal():
                number = text
                seen.used[key,] = None
    captions = []
    for sentence, own_id in zip(sentences, ids, strict=True):
        captions.append(Caption(sentence.text, own_id, number))
    return captions


# Texts --------------------------------------------------------------------------------


def _sentences(record: Record, seen: Annotations) -> list[Sentence]:
    """The captions of a record. Of several keys some may be blank: images may have
    fewer captions than there are columns."""
    where = record.where
    facts = record.facts
    keys = [record.form.captions]
    if not record.form.captions:
        keys = caption_keys(facts, where)
    sentences: list[Sentence] = []
    for key in keys:
        items = _captions_of_key(facts[key], f"{where}: {key}")
        if (key,) in seen.keys:  # texts, which may be objects that were written as text
            seen.used[key,] = None
            for item in items:
                nested_keys.gather(seen.keys, item, (key,))
        for number, item in enumerate(items):
            place = f"{where}: {key}[{number}]"
            if record.places:
                place = record.places[number]
            sentences.append(_sentence(item, place, key, seen))
    if len(keys) > 1:
        sentences = [sentence for sentence in sentences if sentence.text.strip()]
    for sentence in sentences:
        if not sentence.text.strip():
            raise UserError(
                f"{where}: caption",
                expected="a sentence",
                found="a blank",
                do=CORRECT,
            )
        check_text(sentence.text, f"{where}: caption", CORRECT)
    return sentences


def _sentence(item: str | dict, where: str, key: str, seen: Annotations) -> Sentence:
    if isinstance(item, str):
        return Sentence(where, (key,), item, {})
    text_key = _text_key(item)
    facts = {str(inner): value for inner, value in item.items()}
    text = facts.pop(text_key)
    seen.used[key, text_key] = None
    return Sentence(where, (key,), text, facts)


def _captions_of_key(value: object, where: str) -> list[str | dict]:
    """The captions of one key: a text, an object with a text, or a list of these."""
    items = [value] if isinstance(value, str) else text_items(value)
    if items is None:
        raise UserError(
            where,
            expected="text",
            found=f"{value!r:.60}",
            do=CORRECT,
        )
    captions: list[str | dict] = []
    for item in items:
        captions += _unlisted(item, where) if isinstance(item, str) else [item]
    return captions


def text_items(value: object) -> list[str | dict] | None:
    """The items of a list or tuple of texts or of objects with a text, or one such
    object; None for anything else."""
    items = [value] if isinstance(value, dict) else value
    if not isinstance(items, list | tuple):
        return None
    for item in items:
        if not isinstance(item, str) and _text_key(item) is None:
            return None
    return list(items)


def _text_key(item: object) -> str | None:
    """The key of the text of an object that is a caption, as COCO's {"raw": text}; None
    for anything else."""
    if not isinstance(item, dict):
        return None
    names: dict[str, str] = {}
    for key in item:
        if isinstance(key, str) and caption_name(key):
            names[key] = caption_name(key)
    usual = [key for key, name in names.items() if name in NAMES["caption"]]
    keys = list(names)
    if len(keys) > 1 and usual:
        keys = usual
    if len(keys) != 1 or not isinstance(item[keys[0]], str):
        return None
    return keys[0]


def _unlisted(text: str, where: str) -> list[str | dict]:
    """The captions of a list that was written as one text, in JSON's or Python's
    way."""
    if not LIST.fullmatch(text):
        return [text]
    value = _value_of(text)
    if isinstance(value, str):  # a sentence in brackets
        return [text]
    items = text_items(value)
    if items is None:
        raise UserError(
            where,
            expected="a sentence, or a list of sentences",
            found=f"{text!r:.80}",
            do='write it as ["...", "..."]',
        )
    return items


def _value_of(text: str) -> object:
    """What a text is in JSON, else as a literal of Python; None if it is neither."""
    try:
        return JSON.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        value = ast.literal_eval(text.strip())
        written = "".join(repr(value).split())
    # TypeError: a list as the key of an object
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    # Python joins texts without a comma between them, as NumPy writes them
    is_unchanged = written == "".join(text.split())
    return value if is_unchanged or isinstance(value, str) else None
