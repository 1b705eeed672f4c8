"""Names and texts of foreign annotations: what may be stored, and what may be opened."""

from pathlib import PurePosixPath

from datasets import DataError

LONGEST_NAME, LONGEST_PATH = 255, 1024  # bytes, as in most file systems
LONGEST_TEXT = 10_000  # characters of a caption or phrase


def check_text(text: str, where: str, do: str, longest: int = LONGEST_TEXT) -> None:
    """Raise DataError for a text that no file can hold: with halves of characters (the surrogates
    that JSON's escapes can give) or zero bytes; and for more than `longest` characters."""
    fault = fault_of(text)
    if fault:
        raise DataError(where, "text", f"{fault} in {text!r:.60}", do)
    if len(text) > longest:
        raise DataError(where, f"at most {longest} characters", f"{len(text)}, {text!r:.40}...", do)


def fault_of(text: str) -> str:
    """What makes a text one that no file can hold; "" if nothing does."""
    if "\0" in text:
        return "a zero byte"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "half a character"
    return ""


def leads_outside(file: str) -> bool:
    """Whether a path may leave the folder that it is relative to, or names none."""
    path = PurePosixPath(file)
    return path.is_absolute() or ".." in path.parts or not path.parts or "\\" in file


def inside(file: str, where: str, do: str, expected: str = "a path inside the folder") -> str:
    """A path in its shortest form, with forward slashes. Raises DataError for one that may leave
    its folder, and for one that no file can have."""
    path = PurePosixPath(file)
    if leads_outside(file) or fault_of(file):
        raise DataError(where, expected, f"{file!r:.200}", do)
    longest = max(len(part.encode()) for part in path.parts)
    if longest > LONGEST_NAME or len(file.encode()) > LONGEST_PATH:
        found = f"{len(file)} characters, {file!r:.60}..."
        raise DataError(where, f"{expected} of at most {LONGEST_NAME} bytes per name", found, do)
    return str(path)
