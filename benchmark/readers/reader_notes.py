"""Notes of readers on what of their files is not used."""

from collections.abc import Iterable

from benchmark.readers.nested_keys import Key, text_of

KEYS = 100  # that a note names
IMAGES = 25  # that a note on captions names


def listed(names: Iterable[str], most: int = 5) -> str:
    """The first names, and how many more there are. Bytes of a file name that are no
    UTF-8 become escapes: no text can hold them."""
    names = list(names)
    text = ", ".join(names[:most]).encode(errors="backslashreplace").decode()
    return f"{text} and {len(names) - most} more" if len(names) > most else text


def unread(name: str, keys: Iterable[Key]) -> list[str]:
    """A note on the keys of a file that are not read; none without any."""
    texts = [text_of(key) for key in dict.fromkeys(keys)]
    return [f"{name}: not used: {listed(texts, KEYS)}."] if texts else []


def left_out(captions: str, images: Iterable[str]) -> str:
    """A note on captions, such as "10 of 25010 captions", and their images."""
    return f"{captions} are left out, of the images {listed(images, IMAGES)}."
