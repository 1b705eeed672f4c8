"""Markdown that GitHub renders, made safe for text from anywhere."""

import re
from collections.abc import Sequence

# Everything that can open a construct of GitHub's Markdown inside a line: emphasis,
# code, links, pictures, HTML, table entries, strikethrough, mathematics, mentions,
# entities. A colon makes addresses and emoji, an underscore emphasis unless it stands
# alone between two letters or digits, "www." a link.
MARKS = re.compile(
    r"[\\`*\[\]<>|~$#&@{}!]|:(?=\S)|(?<![^\W_])_|_(?![^\W_])|(?<=www)\.",
    re.IGNORECASE,
)
LINE_START = re.compile(r"^(?=[-+=])|^(\d+)(?=[.)])")
# Control characters, lone surrogates, which no file can hold, and line and paragraph
# separators; then what turns the direction of the text around it: marks, embeddings,
# overrides, isolates, and their ends, which would end those of others. Letters that are
# written from right to left stay.
UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)

ALIGNED = {"l": ":---", "r": "---:"}  # left and right, below the head of a column


def escaped(text: str) -> str:
    """`text` as one line of Markdown that shows exactly these characters, also in a
    table."""
    return LINE_START.sub(r"\1\\", inside(text))


def inside(text: str) -> str:
    """As `escaped`, for text that never begins a line, such as an entry of a table:
    "0.3" stays."""
    return MARKS.sub(r"\\\g<0>", one_line(text))


def one_line(text: str) -> str:
    """`text` as one line of characters that a file can hold and that change nothing
    beside them; a no-break space stays one."""
    return re.sub(" +", " ", UNPRINTABLE.sub(" ", text)).strip(" ")


def pipe_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], aligned: str
) -> str:
    """A table; `aligned` has one letter per column, l for words and r for numbers.

    Entries are Markdown and are not escaped here: escape text from elsewhere with
    `escaped`.
    """
    rule = "|".join(ALIGNED[letter] for letter in aligned)
    lines = [f"| {' | '.join(heads)} |", f"|{rule}|"]
    for row in rows:
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def code(text: str) -> str:
    """`text` in code type, without backticks and pipes, which cannot be escaped
    there."""
    return f"`{re.sub('[`|]', ' ', ' '.join(one_line(text).split()))}`"


def picture(alt: str, path: str) -> str:
    """The picture at `path`, which is not escaped; `alt` is text from anywhere."""
    return f"![{escaped(alt)}]({path})"
