"""What a reader does not use of its files: keys of JSON objects at every depth, and the
notes that say so."""

from collections.abc import Container, Iterable

from benchmark.core.errors import printable

Key = tuple[str, ...]  # the key of an object, that of an object in it, and so on

MOST = 30  # keys of an object that are named; one with more is a mapping
NAMED = 100  # keys that a note names
IMAGES = 25  # that a note on captions names
DEEPEST, LONGEST = 12, 60  # keys of one path; characters of a key that are shown


def gather(keys: dict[Key, None], value: object, path: Key = ()) -> None:
    """Add the keys of all values in `value` that are not empty, at every depth, after
    `path`. Lists have no keys of their own: those of their objects count."""
    kind = type(value)
    if len(path) == DEEPEST:
        keys[path] = None
    elif kind is dict and (0 < len(value) <= MOST or not path):
        for key, inner in value.items():
            if type(inner) in (dict, list, tuple):
                gather(keys, inner, (*path, str(key)))
            elif inner is not None and inner != "":
                keys[*path, str(key)] = None
    elif kind in (list, tuple) and dict in map(type, value):
        for item in value:
            gather(keys, item, path)
    elif value or kind not in (dict, list, tuple):
        keys[path] = None


def gather_unread(
    keys: dict[Key, None],
    record: dict,
    known: Container[str],
    path: Key = (),
) -> None:
    """As `gather`, but for what is under the known keys of a record."""
    for key in record:
        if key not in known:
            gather(keys, {key: record[key]}, path)


def text_of(key: Key) -> str:
    """For example "annotations.split"."""
    return ".".join(printable(part)[:LONGEST] or "without a name" for part in key)


# Notes --------------------------------------------------------------------------------


def listed(names: Iterable[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    text = ", ".join(names[:most])
    return f"{text} and {len(names) - most} more" if len(names) > most else text


def unread(name: str, keys: Iterable[Key]) -> list[str]:
    """A note on the keys of a file that are not read; none without any."""
    texts = [text_of(key) for key in dict.fromkeys(keys)]
    return [f"{name}: not used: {listed(texts, NAMED)}."] if texts else []


def left_out(captions: str, images: Iterable[str]) -> str:
    """A note on captions, such as "10 of 25010 captions", and their images."""
    return f"{captions} are left out, of the images {listed(images, IMAGES)}."
