"""Judgements of pairs of a query and an item, as BEIR and TREC have them.

    query-id corpus-id score   BEIR: a first line of names, in any order of columns
    query 0 item score         TREC: no names; columns are known by their places

Thakur et al. (2021), BEIR. Cells are separated by tabs, or by blanks without tabs.
"""

import re
from dataclasses import dataclass

from benchmark.core.errors import UserError
from benchmark.readers.text_tables import lines_of

NAMES = {  # what a column has -> how it is called, apart from case, blanks, - and _
    "query": "queryid query qid topicid topic".split(),
    "item": "corpusid docid documentid docno doc document passageid pid itemid item".split(),
    "score": "score relevance relevancescore rel label grade judgement judgment".split(),
    "iteration": "iteration iter q0".split(),  # of TREC, without a meaning
}
ROLES = ("query", "item", "score")
NUMBER = re.compile(r"-?\d+(\.\d+)?")
CORRECT = "correct the file of judgements"


@dataclass(frozen=True)
class Judgement:
    """A pair, what it was given, and where that stands."""

    where: str
    query: str
    item: str
    score: float


@dataclass(frozen=True)
class Qrels:
    """Judgements in their order. Where nothing names the columns, query and item may
    stand in another order than the usual one."""

    judgements: list[Judgement]
    has_names: bool


def read(text: str, name: str) -> Qrels:
    """The judgements in the text of the file `name`.

    Raises UserError for names of columns that are unknown, for a line with other cells
    than the first, for a score that is no number, and for two scores of one pair.
    """
    lines = lines_of(text)
    first = _cells(lines[0]) if lines else []
    has_names = bool(first) and not NUMBER.fullmatch(first[-1])
    places_of = _places if has_names else _usual_places
    places = places_of(first, f"{name}:1")
    judgements: dict[tuple[str, str], Judgement] = {}
    for number, line in enumerate(lines, start=1):
        if (number == 1 and has_names) or not line.strip():
            continue
        where = f"{name}:{number}"
        cells = _cells(line)
        is_like_first = len(cells) == len(first)
        if not is_like_first or not NUMBER.fullmatch(cells[places["score"]]):
            raise UserError(
                where,
                expected=f"{len(first)} cells, among them a score, separated by tabs",
                found=f"{line!r:.80}",
                do=CORRECT,
            )
        query, item, score = (cells[places[role]] for role in ROLES)
        judgement = Judgement(where, query, item, float(score))
        earlier = judgements.setdefault((query, item), judgement)
        if earlier.score != judgement.score:
            pair = f"{query!r} and {item!r}"
            raise UserError(
                where,
                expected=f"{earlier.score:g} for {pair}, as in {earlier.where}",
                found=f"{judgement.score:g}",
                do=CORRECT,
            )
    return Qrels(list(judgements.values()), has_names or len(first) == 4)


def _cells(line: str) -> list[str]:
    cells = line.split("\t") if "\t" in line else line.split()
    return [cell.strip() for cell in cells]


def _places(heads: list[str], where: str) -> dict[str, int]:
    """The place of each column by its name."""
    places: dict[str, int] = {}
    for place, head in enumerate(heads):
        plain = re.sub(r"[\s_-]", "", head.casefold())
        role = next((role for role, names in NAMES.items() if plain in names), None)
        if role is None or role in places:
            break
        places[role] = place
    if len(places) < len(heads) or not places.keys() >= set(ROLES):
        raise UserError(
            where,
            expected="the columns query-id, corpus-id and score, separated by tabs",
            found=", ".join(heads),
            do="name them so, each once, in the first line",
        )
    return places


def _usual_places(cells: list[str], where: str) -> dict[str, int]:
    """The places of BEIR's columns, or TREC's, where the first line has no names."""
    if len(cells) not in (3, 4):
        raise UserError(
            where,
            expected="query, item and score, separated by tabs, or TREC's four columns",
            found=" ".join(cells)[:80] or "nothing",
            do=CORRECT,
        )
    return {"query": 0, "item": len(cells) - 2, "score": len(cells) - 1}
