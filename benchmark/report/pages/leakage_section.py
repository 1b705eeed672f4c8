"""Integrity of a dataset for its page: what its splits share. A card in, grids and sentences out.

Cards of before these checks have fewer findings; what they lack is left out.
"""

from benchmark.report.table_formats import Grid
from datasets import SPLITS

USED = SPLITS[:3]  # train, val, test
SHARED = (  # finding in the card, and what it is
    ("pictures", "pictures, pixel for pixel"),
    ("near_pictures", "pictures, nearly (pairs)"),
    ("captions", "captions, word for word"),
    ("near_captions", "captions but for case, punctuation and spaces"),
)


def sentences(card: dict) -> list[str]:
    """What was checked and what was found, as plain text."""
    found = []
    if "pictures" in card:
        found = [
            f"All {card['pictures']} pictures could be decoded, every image of {', '.join(USED)} "
            "has a caption, and no caption is blank; prepare stops otherwise."
        ]
    return found + card["leakage"]["notes"]


def shared(card: dict) -> Grid | None:
    """What occurs in more than one split, and how many items of each split have such a twin."""
    leakage = card["leakage"]
    if "items" not in leakage:
        return None
    rows = [
        [what, str(_count(leakage, name)), *(str(leakage["items"][name][split]) for split in USED)]
        for name, what in SHARED
    ]
    heads = ["in more than one split", "found", *(f"of {split}" for split in USED)]
    return Grid(title=f"{card['title']}: what the splits share", heads=heads, rows=rows)


def twins(card: dict) -> Grid | None:
    """The nearest pairs of pictures of different splits, by name; None where there are none."""
    leakage = card["leakage"]
    equal = [
        [first, other, "equal", "0"]
        for first, *others in leakage.get("pictures", [])
        for other in others
    ]
    near = [[a, b, "nearly", str(bits)] for a, b, bits in leakage.get("near_pictures", [])]
    title = f"{card['title']}: pictures in more than one split"
    heads = ["picture", "its twin", "pixels", "bits that differ"]
    return Grid(title=title, heads=heads, rows=equal + near, names=3) if equal + near else None


def captions_per_image(card: dict) -> Grid | None:
    """How many images of each split have how many captions."""
    found = card.get("captions_per_image", {})
    numbers = sorted({number for counts in found.values() for number in counts}, key=int)
    rows = [
        [split, *(str(found[split].get(number, 0)) for number in numbers)]
        for split in SPLITS
        if split in found
    ]
    title = f"{card['title']}: images by their number of captions"
    heads = ["split", *numbers]
    return Grid(title=title, heads=heads, rows=rows) if rows else None


def _count(leakage: dict, name: str) -> int:
    """Contents that are shared; cards list pictures and count captions."""
    if name == "near_pictures":
        return leakage["near_pictures_total"]
    return len(leakage[name]) if name == "pictures" else leakage[name]
