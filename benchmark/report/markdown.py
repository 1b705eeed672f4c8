"""Markdown that GitHub renders, from text that anybody may have written."""

import re
import unicodedata
from collections.abc import Sequence

from tabulate import tabulate

# Everything that can open a construct of GitHub's Markdown inside a line: emphasis, code, links,
# pictures, HTML, table cells, strikethrough, mathematics, mentions, entities; a colon makes
# addresses and emoji, an underscore emphasis at the edge of a word, "www." a link by itself.
MARKS = re.compile(r"[\\`*\[\]<>|~$#&@{}!]|:(?=\S)|(?<!\w)_|_(?!\w)|(?<=www)\.", re.IGNORECASE)
LINE_START = re.compile(r"^(?=[-+=])|^(\d+)(?=[.)])")


def escaped(text: str) -> str:
    """`text` as one line of Markdown that shows just these characters, in a table cell too."""
    return LINE_START.sub(r"\1\\", inside(text))


def inside(text: str) -> str:
    """As `escaped`, for text that never begins a line, as that of a table cell: "0.3" stays so."""
    line = re.sub(" +", " ", "".join(map(_printable, text))).strip(" ")  # keeps no-break spaces
    return MARKS.sub(r"\\\g<0>", line)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], aligned: str) -> str:
    """A table; `aligned` has a letter a column, l for words and r for numbers.

    Cells are Markdown and stand as they are: text from elsewhere comes `escaped`.
    """
    sides = ["left" if letter == "l" else "right" for letter in aligned]
    return tabulate(rows, heads, tablefmt="pipe", colalign=sides, disable_numparse=True)


def bold(text: str) -> str:
    return f"**{text}**"


def code(text: str) -> str:
    """`text` in code type. Backticks cannot be escaped in there, nor pipes in every renderer."""
    return f"`{re.sub('[`|]', ' ', ' '.join(text.split()))}`"


def picture(alt: str, path: str) -> str:
    """The picture at `path`, a path this program made; `alt` is text from anywhere."""
    return f"![{escaped(alt)}]({path})"


def _printable(character: str) -> str:
    # Control characters, and those that turn the direction of the text behind them.
    kind = unicodedata.category(character)
    turns = unicodedata.bidirectional(character) in {"LRE", "RLE", "LRO", "RLO", "LRI", "RLI"}
    return " " if kind in {"Cc", "Cs", "Zl", "Zp"} or turns else character
