"""Integrity of a dataset: what its splits share, as sentences and tables made from its card.

Cards that are older than these checks lack some of the fields; what they lack is left out.
"""

from benchmark.analysis import twin_queries
from benchmark.analysis.boards import Board
from benchmark.analysis.twin_queries import named_twins, twins_in_all
from benchmark.report.table_formats import Table
from datasets import SPLITS

USED = SPLITS[:3]  # train, val, test
SHOWN = 50  # pairs of near pictures
SHARED = (  # field of the card, and what it counts
    ("pictures", "pictures, pixel for pixel"),
    ("near_pictures", "pictures, nearly (pairs)"),
    ("captions", "captions, word for word"),
    ("near_captions", "captions but for case, punctuation and spaces"),
)


def integrity_sentences(card: dict) -> list[str]:
    """What was checked, and the result, as plain text."""
    sentences = []
    if "pictures" in card:
        sentences = [
            f"All {card['pictures']} pictures could be decoded, every image of {', '.join(USED)} "
            "has a caption, and no caption is blank; prepare stops otherwise."
        ]
    return sentences + card["leakage"]["notes"]


def shared(card: dict) -> Table | None:
    """What occurs in more than one split, and how many items of each split have such a twin."""
    leakage = card["leakage"]
    if "items" not in leakage:
        return None
    rows = [
        [what, str(_count(leakage, name)), *(str(leakage["items"][name][split]) for split in USED)]
        for name, what in SHARED
    ]
    heads = ["in more than one split", "found", *(f"of {split}" for split in USED)]
    return Table(title=f"{card['title']}: what the splits share", heads=heads, rows=rows)


def twins(card: dict) -> Table | None:
    """The nearest pairs of pictures of different splits, by name; None if there are none."""
    leakage = card["leakage"]
    equal = [
        [first, other, "equal", "0"]
        for first, *others in leakage.get("pictures", [])
        for other in others
    ]
    nearest = leakage.get("near_pictures", [])[:SHOWN]
    near = [[first, other, "nearly", str(bits)] for first, other, bits in nearest]
    title = f"{card['title']}: pictures in more than one split"
    heads = ["picture", "its twin", "pixels", "bits that differ"]
    return Table(title=title, heads=heads, rows=equal + near, names=3) if equal + near else None


def without_twins(board: Board) -> Table | None:
    """rsum of every preset of a task, over all queries and over those of pictures that no twin is
    named of; None where none is named."""
    twins, named = named_twins(board.card), f"without the {len(named_twins(board.card))} named"
    rows = []
    for standing in board.ranked if twins else []:
        whole, left = standing.mean("rsum"), twin_queries.without_twins(board, standing, "rsum")
        if left is not None:
            rows.append([standing.row.title, f"{whole:.1f}", f"{left:.1f}", f"{left - whole:+.1f}"])
    title = f"{board.card['title']}: rsum without twins"
    heads = ["preset", "rsum, all queries", named, "change"]
    return Table(title=title, heads=heads, rows=rows) if rows else None


def twins_sentence(card: dict) -> str:
    """How many twins the scores without them leave out, and what they leave in; plain text."""
    named, every = len(named_twins(card)), twins_in_all(card)
    some = f", of {every} that have one" if every > named else ""
    return (
        f"Left out are the queries of the {named} test pictures that the card names as "
        f"twins{some}; the gallery stays whole, since a cell keeps the ranks of its queries and "
        "not its scores."
    )


def captions_per_image(card: dict) -> Table | None:
    """How many images of each split have how many captions."""
    by_split = card.get("captions_per_image", {})
    numbers = sorted({number for counts in by_split.values() for number in counts}, key=int)
    rows = [
        [split, *(str(by_split[split].get(number, 0)) for number in numbers)]
        for split in SPLITS
        if split in by_split
    ]
    title = f"{card['title']}: images by their number of captions"
    heads = ["split", *numbers]
    return Table(title=title, heads=heads, rows=rows) if rows else None


def _count(leakage: dict, name: str) -> int:
    """How many contents are shared: cards list the pictures and count the captions."""
    if name == "near_pictures":
        return leakage["near_pictures_total"]
    return len(leakage[name]) if name == "pictures" else leakage[name]
