"""The project's documents as tests read them: their links, and the commands in their blocks."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "examples/README.md",
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def blocks(text: str, kind: str) -> list[str]:
    """The fenced blocks of a kind, such as bash or yaml."""
    return [content for language, content in BLOCK.findall(text) if language == kind]


def commands(text: str) -> list[list[str]]:
    """The lines of all bash blocks as words, without comments."""
    lines = [line for block in blocks(text, "bash") for line in block.splitlines()]
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def section(text: str, heading: str) -> str:
    """What stands below a heading of the second level."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    (part,) = [part for part in parts if part.startswith(f"{heading}\n")]
    return part


def links(text: str) -> list[str]:
    return LINK.findall(CODE.sub("", text))


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to headings."""
    heads = re.findall(r"^#+ (.*)$", CODE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}
