"""Keys of JSON objects at every depth: which of them a reader does not read."""

from collections.abc import Container, Iterator

Key = tuple[str, ...]  # the key of an object, that of an object in it, and so on

MOST = 30  # keys of an object that are named; one with more is a mapping of other things


def leaves(value: object, path: Key = ()) -> Iterator[Key]:
    """The keys of all values that are not empty, at every depth. Lists have no keys of their own:
    those of their objects count."""
    if isinstance(value, dict) and 0 < len(value) <= MOST:
        for key, inner in value.items():
            yield from leaves(inner, (*path, str(key)))
    elif isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from leaves(item, path)
    elif value not in (None, "", [], {}, ()) and path:
        yield path


def unread(record: dict, known: Container[str], path: Key = ()) -> Iterator[Key]:
    """As `leaves`, but for what is under the known keys of a record."""
    for key, value in record.items():
        if key not in known:
            yield from leaves(value, (*path, str(key)))


def text_of(key: Key) -> str:
    """For example "annotations.split"."""
    return ".".join(part or "without a name" for part in key)
