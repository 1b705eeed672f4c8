"""Keys of JSON objects at every depth: which of them a reader does not read."""

from collections.abc import Container

from benchmark.core.errors import printable

Key = tuple[str, ...]  # the key of an object, that of an object in it, and so on

MOST = 30  # keys of an object that are named; one with more is a mapping
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
