"""What a line has to hold, whatever its other words are."""

import re


def holds(line: str, *facts: object) -> bool:
    """Each of these numbers, names and words, whole, in any order."""
    return all(
        re.search(rf"(?<!\w){re.escape(str(fact))}(?!\w)", line) for fact in facts
    )
