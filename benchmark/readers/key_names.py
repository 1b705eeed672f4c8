"""What the keys and columns of annotation files say, by their names.

`NAMES` lists what people call an image, its captions, its split, its group and its id.
Case, surrounding blanks and the Unicode form of a name do not matter.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from unicodedata import normalize

from benchmark.core.errors import UserError
from benchmark.readers import reader_notes
from benchmark.readers.text_tables import CORRECT

IMAGE = (
    "image file_name filename file file_path image_name image_path image_file img "
    "img_name img_path"
)
NAMES = {  # what a key says -> its names
    "image": tuple(IMAGE.split()),
    "caption": ("caption", "captions", "caption_str"),
    "split": ("split", "set_name", "set", "subset", "partition"),
    "group": ("group",),
    "id": ("id",),
}
# names of captions where none of the above is there
OTHER_CAPTIONS = ("text", "raw", "sentence", "sentences", "comment", "reference_strs")
# without blanks, - and _: ids of captions; further ids of an image, best first
CAPTION_IDS = ("captionid", "sentid", "sentenceid", "annid", "annotationid")
IMAGE_IDS = ("cocoid", "imageid", "imgid")

SPLITS = {  # other words for a split -> ours
    "validation": "val",
    "valid": "val",
    "dev": "val",
    "training": "train",
    "restval": "train",  # Karpathy's: the rest of COCO's validation set
}
USES = {"train": "training", "val": "validation"}
SPLIT_WORDS = {*SPLITS, *USES, "test"}
NUMBERED = re.compile(r"(?P<stem>.*[^\d ._-])[ ._-]*\d+")


@lru_cache(maxsize=4096)  # the same few keys in every record
def folded(text: str) -> str:
    """The text without differences of case, Unicode form and surrounding blanks."""
    return normalize("NFC", text.strip()).casefold()


@lru_cache(maxsize=4096)
def plain(key: str) -> str:
    """The key folded, without blanks, - and _."""
    return re.sub(r"[\s_-]", "", folded(key))


@lru_cache(maxsize=4096)
def role_of(key: str) -> str:
    """What a key says: a key of NAMES, or "image_id"; "" for other keys."""
    if plain(key) in IMAGE_IDS:
        return "image_id"
    name = folded(key)
    for role, names in NAMES.items():
        if name in names:
            return role
    return ""


def is_image_name(key: str) -> bool:
    """Whether a key or column names an image."""
    return folded(key) in NAMES["image"]


def is_caption_id(key: str) -> bool:
    """Whether a key holds the ids of captions."""
    return plain(key).removesuffix("s") in CAPTION_IDS


@lru_cache(maxsize=4096)
def caption_name(key: str) -> str:
    """The name of a key of captions without its number; "" for other keys."""
    name = folded(key)
    if numbered := NUMBERED.fullmatch(name):
        name = numbered["stem"]
    return name if name in (*NAMES["caption"], *OTHER_CAPTIONS) else ""


def caption_keys(keys: Collection[str], where: str) -> list[str]:
    """The keys of captions, in the order of their numbers.

    Raises UserError where no key has such a name, where keys have different ones, and
    where two differ by case, blanks, - and _ alone.
    """
    keys_of: dict[str, list[str]] = {}
    for key in keys:
        if name := caption_name(key):
            keys_of.setdefault(name, []).append(key)
    usual = [name for name in keys_of if name in NAMES["caption"]]
    names = usual or list(keys_of)
    if len(names) == 1:
        captions = keys_of[names[0]]
        key_of: dict[str, str] = {}
        for key in captions:  # "caption" and "Caption" may be the same captions
            earlier = key_of.setdefault(plain(key), key)
            if earlier != key:
                raise UserError(
                    f"{where}: caption",
                    expected="every key once",
                    found=f"{earlier!r:.60} and {key!r:.60}",
                    do=CORRECT,
                )
        return sorted(captions, key=_number_of)
    actual = f"neither, but {reader_notes.listed(keys)}" if keys else "neither"
    if names:
        actual = f"both ({' and '.join(names)})"
    raise UserError(
        f"{where}: caption",
        expected="either caption or captions",
        found=actual,
        do=CORRECT,
    )


def _number_of(key: str) -> tuple[int, str]:
    """Sorts keys by the number at their end, however long; those without come first."""
    digits = re.search(r"\d*$", key.strip())[0]
    number = digits.lstrip("0")
    length = len(number) + 1 if digits else 0
    return length, number


def our_split(word: str) -> str:
    """A split in our words: "val" for "Validation"."""
    word = word.strip().casefold()
    return SPLITS.get(word, word)


def is_same(role: str, value: str, other: str) -> bool:
    """Whether two values of one role say the same."""
    if role == "split":
        return our_split(value) == our_split(other)
    return value == other


def split_of_path(path: str) -> str | None:
    """The last word of a path that names a split, as written; None without one."""
    words = re.split(r"[^a-z]+", path.casefold())
    for word in reversed(words):
        if word in SPLIT_WORDS:
            return word
    return None
