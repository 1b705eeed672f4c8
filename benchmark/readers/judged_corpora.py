"""BEIR's layout: a corpus, queries, and judgements of which of them belong together.

    query-id corpus-id score   a first line of names, in any order of columns
    query 0 item score         TREC: no names; columns are known by their places

Thakur et al. (2021), BEIR. Either side may be the images. A caption may belong to
several images only if these are a group: all of its captions belong to all of it. Cells
of judgements are separated by tabs, or by blanks without tabs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from benchmark.core.errors import UserError
from benchmark.core.files import is_file
from benchmark.core.names import LONGEST_PATH, check_text
from benchmark.readers import (
    annotations,
    folder_files,
    nested_keys,
    reader_notes,
    text_tables,
)
from benchmark.readers.annotation_files import json_lines, text_of
from benchmark.readers.annotations import Annotations, Caption, Entry, Record
from benchmark.readers.key_names import caption_name, is_image_name, split_of_path
from benchmark.readers.text_tables import CORRECT, lines_of

SIDES = ("corpus", "queries")
ITEM_IDS = ("_id", "id")
NO_FILE = "a.jpg"  # in the place of the image of a caption, which is read nowhere
LARGEST = 1 << 30  # bytes of a file
COLUMN_NAMES = {  # what a column has -> how it is called, apart from case, blanks, - and _
    "query": "queryid query qid topicid topic".split(),
    "item": "corpusid docid documentid docno doc document passageid pid itemid item".split(),
    "score": "score relevance relevancescore rel label grade judgement judgment".split(),
    "iteration": "iteration iter q0".split(),  # of TREC, without a meaning
}
ROLES = ("query", "item", "score")
NUMBER = re.compile(r"-?\d+(\.\d+)?")
CORRECT_JUDGEMENTS = "correct the file of judgements"


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


@dataclass(frozen=True)
class Side:
    """The items of the corpus or of the queries, by their ids."""

    file: str
    items: dict[str, Entry]

    @property
    def texts(self) -> int:
        """How many items have a text."""
        return sum(bool(item.captions) for item in self.items.values())


@dataclass(frozen=True)
class Links:
    """What the judgements say.

    images_of  caption -> the images that it belongs to, perhaps none
    split_of   image -> the split of the judgements that name it; other images lack
    """

    images_of: dict[str, dict[str, None]]
    split_of: dict[str, str | None]


def files(raw: Path) -> list[str]:
    """The corpus, the queries and the judgements; [] for another layout."""
    sides = []
    for side in SIDES:
        for name in (f"{side}.jsonl", f"{side}.tsv"):
            if is_file(raw / name):
                sides.append(name)
                break
    judged = sorted(f"qrels/{path.name}" for path in raw.glob("qrels/[!.]*.tsv"))
    if len(sides) < len(SIDES) or not judged:
        return []
    return [*sides, *judged]


def entries(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """The images with the captions that belong to them; the images are the side without
    texts."""
    corpus = _side(raw, files[0], seen)
    queries = _side(raw, files[1], seen)
    are_images_queries = queries.texts < corpus.texts
    images = corpus
    captions = queries
    if are_images_queries:
        images = queries
        captions = corpus
    if images.texts or captions.texts < len(captions.items):
        expected = f"texts in all of {captions.file} and in none of {images.file}"
        actual = f"{corpus.texts} of {len(corpus.items)} and "
        actual += f"{queries.texts} of {len(queries.items)}"
        raise UserError(
            raw,
            expected=expected,
            found=actual,
            do=CORRECT,
        )
    links = Links({caption: {} for caption in captions.items}, {})
    for name in files[2:]:
        split = split_of_path(PurePosixPath(name).name)
        for pair in _judgements(raw, name, corpus, queries):
            if pair.score <= 0:
                continue
            image = pair.item
            caption = pair.query
            if are_images_queries:
                image = pair.query
                caption = pair.item
            earlier = links.split_of.setdefault(image, split)
            if earlier != split:
                raise UserError(
                    f"{pair.where}: {image}",
                    expected="one split per image",
                    found=f"{split} and {earlier}",
                    do=CORRECT,
                )
            links.images_of[caption][image] = None
    groups = _groups(images, links)
    dealt = _dealt(captions, links, groups, files[2])
    has_splits = any(links.split_of.values())
    unjudged = []
    for image, item in images.items.items():
        if image not in links.split_of:
            unjudged.append(image)
        split = links.split_of.get(image, "unused" if has_splits else None)
        members = groups[image]
        group = members[0] if len(members) > 1 else None
        yield replace(item, captions=dealt[image], split=split, group=group)
    idle = [caption for caption, owners in links.images_of.items() if not owners]
    seen.note(idle, "captions have no image in qrels and are left out")
    seen.note(unjudged, "images have no caption in qrels: unused")


# Judgements ---------------------------------------------------------------------------


def _judgements(raw: Path, name: str, corpus: Side, queries: Side) -> list[Judgement]:
    """The judgements of a file. Raises UserError for ids that the corpus or the queries
    lack, and where nothing tells which column has those of which."""
    read = read_qrels(text_of(raw / name, name, LARGEST), name)
    fits_swapped = True
    for pair in read.judgements:
        for key, side in ((pair.query, queries), (pair.item, corpus)):
            if key not in side.items:
                raise UserError(
                    pair.where,
                    expected=f"an id of {side.file}",
                    found=f"{key!r:.80}",
                    do=CORRECT,
                )
        if pair.query not in corpus.items or pair.item not in queries.items:
            fits_swapped = False
    if fits_swapped and not read.has_names:
        raise UserError(
            f"{name}:1",
            expected="names of the columns",
            found="ids that corpus and queries both have",
            do="write query-id, corpus-id and score, between tabs, into the first line",
        )
    return read.judgements


def _groups(images: Side, links: Links) -> dict[str, list[str]]:
    """The images that belong together with each image, itself among them: those that
    share a caption, directly or through others."""
    members = {image: [image] for image in images.items}
    for first, *others in filter(None, links.images_of.values()):
        for other in others:
            group = members[first]
            joined = members[other]
            if joined is not group:
                group += joined
                members |= dict.fromkeys(joined, group)
    return members


def _dealt(
    captions: Side, links: Links, groups: dict[str, list[str]], where: str
) -> dict[str, list[Caption]]:
    """The captions of each image; those of a group are dealt to its images in turn."""
    dealt: dict[str, list[Caption]] = {image: [] for image in groups}
    for caption, owners in links.images_of.items():
        if not owners:
            continue
        first = next(iter(owners))
        group = groups[first]
        alone = [image for image in group if image not in owners]
        if alone:
            raise UserError(
                f"{where}: {caption}",
                expected=f"{alone[0]}, too, as others of its captions belong to {first}",
                found=reader_notes.listed(owners),
                do="judge all captions of a group right for all of it, or each for one "
                "image",
            )
        image = min(group, key=lambda image: len(dealt[image]))
        dealt[image] += captions.items[caption].captions
    return dealt


# Corpus and queries -------------------------------------------------------------------


def _side(raw: Path, name: str, seen: Annotations) -> Side:
    """The corpus or the queries. An item without text is an image: the file that it
    names, else the only one of its id, which may lack the folder and the ending."""
    files_of: dict[str, list[str]] = {}
    for file in filter(folder_files.is_image, folder_files.below(raw)):
        path = PurePosixPath(file)
        for short in {file, path.name, path.stem, str(path.with_suffix(""))}:
            files_of.setdefault(short, []).append(file)
    text = text_of(raw / name, name, LARGEST)
    items = {}
    is_json = name.endswith(".jsonl")
    for record in json_lines(text, name) if is_json else _tabbed(text, name):
        facts = record.facts
        key = "id" if "id" in facts and "_id" not in facts else "_id"
        value = facts.get(key)
        item_id = str(value)
        if type(value) not in (str, int) or item_id in items:
            raise UserError(
                f"{record.where}: {key}",
                expected="an id that occurs once",
                found=f"{value!r:.80}",
                do=CORRECT,
            )
        nested_keys.gather(seen.keys, facts)
        seen.used[key,] = None
        files = files_of.get(item_id, [])
        only = files[0] if len(files) == 1 else item_id
        items[item_id] = _item(record, key, item_id, only, seen)
    return Side(name, items)


def _item(
    record: Record, id_key: str, item_id: str, file: str, seen: Annotations
) -> Entry:
    """An item, whose image is `file` if it names none. A caption has no file: its id
    may be any text."""
    where = f"{record.where}: {id_key}"
    check_text(item_id, where, CORRECT, LONGEST_PATH)
    facts: dict[str, object] = {}
    has_caption = has_image = False
    for key, value in record.facts.items():
        if key == id_key or value in ("", None):
            continue
        is_caption = bool(caption_name(key))
        is_image = is_image_name(key)
        if is_caption or is_image:
            facts[key] = value
        has_caption |= is_caption
        has_image |= is_image
    if has_caption:
        numbered = annotations.NUMBERED_IMAGE.fullmatch(item_id)
        file = f"{NO_FILE}#{numbered['number']}" if numbered else NO_FILE
    else:
        facts["caption"] = []
    useful = replace(record, facts=facts)
    entry = annotations.entry(useful, seen, None if has_image else file)
    captions = entry.captions
    if len(captions) == 1:
        captions = [replace(captions[0], own_id=item_id)]
    return replace(entry, captions=captions, image_id=item_id)


def _tabbed(text: str, name: str) -> Iterator[Record]:
    """The rows of a table of items whose columns are separated by tabs."""
    table = text_tables.read(text, name, "\t", lambda column: column in ITEM_IDS)
    for row in table.rows:
        facts = dict(zip(table.columns, row.cells, strict=True))
        yield Record(f"{name}:{row.line}", facts)


# Judgements of pairs ------------------------------------------------------------------


def read_qrels(text: str, name: str) -> Qrels:
    """The judgements in the text of the file `name`.

    Raises UserError for names of columns that are unknown, for a line with other cells
    than the first, for a score that is no number, and for two scores of one pair.
    """
    lines = lines_of(text)
    first = cells_of(lines[0]) if lines else []
    has_names = bool(first) and not NUMBER.fullmatch(first[-1])
    places_of = _places if has_names else _usual_places
    places = places_of(first, f"{name}:1")
    judgements: dict[tuple[str, str], Judgement] = {}
    for number, line in enumerate(lines, start=1):
        if (number == 1 and has_names) or not line.strip():
            continue
        where = f"{name}:{number}"
        cells = cells_of(line)
        is_like_first = len(cells) == len(first)
        if not is_like_first or not NUMBER.fullmatch(cells[places["score"]]):
            raise UserError(
                where,
                expected=f"{len(first)} cells, among them a score, separated by tabs",
                found=f"{line!r:.80}",
                do=CORRECT_JUDGEMENTS,
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
                do=CORRECT_JUDGEMENTS,
            )
    return Qrels(list(judgements.values()), has_names or len(first) == 4)


def cells_of(line: str) -> list[str]:
    """What the tabs of a line separate, or its words if it has none."""
    cells = line.split("\t") if "\t" in line else line.split()
    return [cell.strip() for cell in cells]


def role_of(column: str) -> str | None:
    """What a column of this name has, a key of COLUMN_NAMES; None: nothing known."""
    plain = re.sub(r"[\s_-]", "", column.casefold())
    for role, names in COLUMN_NAMES.items():
        if plain in names:
            return role
    return None


def _places(heads: list[str], where: str) -> dict[str, int]:
    """The place of each column by its name."""
    places: dict[str, int] = {}
    for place, head in enumerate(heads):
        role = role_of(head)
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
            do=CORRECT_JUDGEMENTS,
        )
    return {"query": 0, "item": len(cells) - 2, "score": len(cells) - 1}
