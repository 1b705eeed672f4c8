"""Judge embeddings, scores or ranks that were made elsewhere, as a row of a season's leaderboard.

    rematch score --dataset pets --items FOLDER       what to embed, in which order
    rematch score --dataset pets --name siglip --images a.npy --captions b.npy
    rematch score --dataset pets --name mine --matrix scores.npz
    rematch score --dataset pets --name other --ranks ranks.csv
    rematch score --dataset mscoco --annotations dataset_coco.json --images a.npy --captions b.npy

The last one needs neither pictures nor a season: of the test split that the annotations name (of a
folder without splits, of all), with intervals and with each layer of relevance whose files are
there; no row is written. --out FILE.parquet keeps the rank of every query, for `rematch judge`.

--correct HOW corrects cosines for hubs, with --bank-images and --bank-captions of training and with
--k and --alpha, or --beta, as validation chose them.

Nothing is trained. Arrays are .npy, .npz, .parquet, .csv, .safetensors, .pt or .mat: embeddings
(N, F) of the test images and captions, or scores (images, captions); of a re-ranker two matrices in
one file, named i2t and t2i. Rows belong to ids where the file has some (a column or array image_id,
caption_id or the like, the index of pandas, or NAME_ids.txt beside it), else they are in the test
split's order. Ranks, from 0, of the best relevant item are a .csv or .parquet with the columns
direction (i2t or t2i), query (its id) and rank; empty or -1 is "not found" among the first that a
tool lists.
"""

import argparse
import os
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from benchmark import scoring
from benchmark.boards.boards import OWN_IMAGES
from benchmark.boards.flags import NEAR_CHANCE, chance, choices_of, near_chance
from benchmark.contracts import datasets
from benchmark.core.command_line import alone, lock_of
from benchmark.core.devices import provenance
from benchmark.core.errors import UserError, checked, entry, short
from benchmark.core.files import atomic, is_file, readable, sha256, write_text
from benchmark.core.records import Costs, Record, write_record
from benchmark.data import prepared_tables, results
from benchmark.data.prepared_tables import Prepared, Split, judged_table
from benchmark.data.raw_files import raw_dataset
from benchmark.data.results import Ranks
from benchmark.features import embedding_files
from benchmark.features.embedding_files import ORDER, SEVERAL, TABLES, Rows, places, read_rows
from benchmark.prepare.__main__ import arranged
from benchmark.prepare.table_checks import check_rows
from benchmark.scoring import evaluation
from benchmark.scoring.checkpoints import computed
from benchmark.scoring.corrections import BANK, Asked, Corrected
from benchmark.scoring.equal_items import first_equal
from benchmark.scoring.evaluation import Evaluation
from benchmark.scoring.metrics import (
    ALL_RANKS,
    METRICS,
    RANK_METRICS,
    SUMMED_K,
    TIE_GAP,
    Metric,
    rank_metrics,
    retrieval_metrics,
    rsum_terms,
)
from benchmark.scoring.ranking import Matrices, spans
from benchmark.scoring.relevance import Relevance, layers_of, queries_of
from benchmark.season.parameter_files import read_params, write_brought
from benchmark.season.parameters import BROUGHT, Brought, Params
from benchmark.season.plugins import presets
from benchmark.stats.comparisons import sample_of_queries
from benchmark.stats.significance import score_interval

CLAIMS = "claims"  # in metrics.json, beside the presets: their counts
SPLIT = "test"
ROWS_AT_ONCE = 512  # of a product in double precision
FAR_APART = 0.1  # of the spread of numbers: more than rounding makes of equal captions
FROM_1 = "no rank is 0: are these positions, from 1? Ranks count from 0"
HINTS = {  # what to check where scores are as random ones, and where they are far worse
    "embeddings": (f"rows, or give ids ({ORDER})", "are the vectors of one file negated?"),
    "scores": (
        f"rows (images) and columns (captions), or give ids ({ORDER})",
        "are these distances? The best item must have the greatest score",
    ),
    "ranks": ("queries", "is the rank of the best item 0?"),
}


BANKS = ("bank_images", "bank_captions")
TAKES = {  # correction -> arguments; all are needed
    "nnn": (*BANKS, "k", "alpha"),
    "inverted_softmax": (*BANKS, "beta"),
    "qb_norm": (*BANKS, "beta"),
    "dual_softmax": ("beta",),
}


class External(NamedTuple):
    """What was made elsewhere, and what follows from it."""

    given: str  # embeddings, scores or ranks
    files: list[Path]
    result: Evaluation
    seconds: dict[str, float] = {}
    notes: list[str] = []  # what was taken for granted
    lost: dict[str, np.ndarray] = {}  # of ranks, which best items were not found, (Q,) bool


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, help="one of the season, prepared; or a reader")
    parser.add_argument("--annotations", type=Path, metavar="FILE", help="needs no season")
    parser.add_argument("--out", type=Path, metavar="FILE", help="ranks of all queries, .parquet")
    parser.add_argument("--name", help="what the row is called")
    parser.add_argument("--images", type=Path, metavar="FILE", help="embeddings of the test images")
    parser.add_argument("--captions", type=Path, metavar="FILE", help="and of the test captions")
    parser.add_argument("--correct", choices=sorted(TAKES), help="the cosines, for hubs")
    for name in ("bank-images", "bank-captions"):
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help="of --correct")
    for name, kind in (("k", int), ("alpha", float), ("beta", float)):
        parser.add_argument(f"--{name}", type=kind, help="of --correct")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="scores (images, captions)")
    parser.add_argument("--ranks", type=Path, metavar="FILE", help="of a tool that has only those")
    parser.add_argument("--depth", type=int, default=0, help="how many items had --ranks listed")
    parser.add_argument("--seed", type=int, default=0, help="of the training, if there are several")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")
    parser.add_argument("--items", type=Path, metavar="FOLDER", help="write the test items there")


def main(arguments: argparse.Namespace) -> None:
    if arguments.out and arguments.out.suffix != ".parquet":
        raise UserError("--out", "a .parquet file", arguments.out.name, "name it so")
    if arguments.annotations:
        for name in ("items", "season", "name"):
            if getattr(arguments, name):
                raise UserError(f"--{name}", "no --annotations", "both", "leave one out")
        data = annotated(arguments.dataset, arguments.annotations)
    else:
        params = read_params(arguments.season)
        entry(params.datasets, arguments.dataset, "dataset")
        data = prepared_tables.read(arguments.dataset)
        if arguments.items:
            others = ("name", "images", "captions", "matrix", "ranks")
            if given := [name for name in others if vars(arguments)[name]]:
                do = "first --items, then the rest"
                raise UserError("--items", "a folder alone", f"--{given[0]}, too", do)
            write_items(params, data, arguments.items)
            return
        row = row_of(params, arguments)
    external = judge(arguments, data)
    if arguments.out:
        write_ranks(arguments, data, external)
    show(data, external)
    if arguments.annotations:
        return
    if "rsum" not in external.result.metrics:
        print("no row is written: leaderboards need R@10 of every query")
        return
    folder = Path(row.folder)
    with alone(lock_of(row.folder), f"score {row.key}"):
        results.write_scores(folder / results.RANKS, external.result.scores)
        results.write_retrieved(folder / results.RETRIEVED, external.result.retrieved)
        record = record_of(params.season, row, data, external)
        write_record(folder, record)
        write_brought(params.season, row)
    earlier = ", in the place of the row of this name and seed" * (row.key in params.brought)
    print(f"{folder}/record.json: external {external.given}{earlier}")
    print(f"next: rematch report --season {params.season}, or dvc repro")


def show(data: Prepared, external: External) -> None:
    """Print the recalls of both directions by each layer of relevance, and their sum; then every
    metric with its interval, S, and what a reader must know."""
    metrics, ranks = external.result.metrics, external.result.scores.ranks
    split, queries, every = data.split(SPLIT), queries_of(data), rsum_terms(("i2t", "t2i"))
    partial = [name for name, of in data.card.get("layers", {}).items() if of["partial"]]
    layers, rows = layers_of(data), []
    images, captions = len(split.image_rows), len(split.caption_rows)
    print(f"{data.card['title']}: {images} images, {captions} captions")
    for end in dict.fromkeys(name[3:] for name in ranks):  # "", "_fold" or "@" and a layer
        terms = [(n, METRICS[f"{n[:3]}_r{k}"]) for n in ranks if n[3:] == end for k in SUMMED_K]
        known = [term for term in terms if end or term[1].name in metrics]
        told = {of[1].name: f"{measured(queries, ranks, [of])[0]:.1f}" for of in known}
        if known == terms:
            told["rsum"] = "{:.1f} [{:.1f}, {:.1f}]".format(*measured(queries, ranks, terms))
        rows.append([place_of(end, data), *(told.get(name, "-") for name in (*every, "rsum"))])
    heads = ["", *(METRICS[name].heading for name in every), "rsum, 95% interval"]
    print(pd.DataFrame(rows, columns=heads).to_string(index=False))
    for name, of_name in ranks.items():
        way, layer = name[:3], name.partition(results.LAYER)[2]
        print(f"{place_of(name, data)}: {way}, {len(of_name)} queries")
        for metric in (METRICS[f"{way}_{of.name}"] for of in (*RANK_METRICS, *ALL_RANKS)):
            is_known = metric.name in metrics or of_name.knows_all or name != way
            is_told = not (metric.needs_all and (of_name.counts == 1).all())  # as R@1, or as MRR
            if metric.of_queries is None or not is_told or not is_known:
                continue
            value, low, high = measured(queries, ranks, [(name, metric)])
            line = f"  {metric.heading:16} {value:6.2f}  [{low:.2f}, {high:.2f}]"
            if layer in partial and (recall := re.fullmatch(r"..._r(\d+)", metric.name)):
                first = external.result.retrieved[way]
                judged = layers[layer][way].judged(first)[:, : int(recall[1])]
                line += f", at most {100 * (judged >= 0).any(1).mean():.2f}"
            print(line)
    print("intervals: 95%, had other images been drawn")
    notes = [f"S: {metrics['overlap_s']:.2f}"] if "overlap_s" in metrics else []
    notes += [*data.card.get("notes", ()), *external.notes]
    if not layers:
        told = "nobody's judgements are there (docs/datasets.md, layers)"
        notes.append(f"no layer beside own: {told}")
    if partial:
        told = "people judged some pairs; the others count as wrong, and at most as right"
        notes.append(f"{', '.join(partial)}: {told}")
    if external.given == "ranks" and all(of.best.min() > 0 for of in ranks.values()):
        notes.append(FROM_1)
    print(*notes, *(doubts(external, data) if "rsum" in metrics else ()), sep="\n")


def place_of(name: str, data: Prepared) -> str:
    """The layer of relevance of some ranks, and the gallery where that is not the whole split."""
    folds = f", mean of {data.card['folds']} folds" * name.endswith("_fold")
    return f"{name.partition(results.LAYER)[2] or 'own'}{folds}"


def measured(
    queries: dict[str, pd.DataFrame], ranks: dict[str, Ranks], terms: list[tuple[str, Metric]]
) -> tuple[float, float, float]:
    """A sum of means over queries, and its 95% interval, had other images been drawn. Terms are
    metrics of ranks by their names."""
    groups = pd.Index(pd.concat([queries[name]["cluster"] for name, _ in terms]).unique())
    means = [
        (groups.get_indexer(queries[name]["cluster"]), {0: metric.of_queries(ranks[name])})
        for name, metric in terms
    ]
    sample, span = sample_of_queries(means), sum(metric.range[1] for _, metric in terms)
    variance = float(np.square(sample.noise[0]).sum())
    return sample.mean, *score_interval(sample.mean, variance, span, sample.units)


def annotated(dataset: str, path: Path) -> Prepared:
    """The test split of annotations that were made elsewhere, as if prepared; of a folder that
    names no splits, all of it. Raises UserError for what cannot be read."""
    module, raw = datasets.load(dataset), path.parent
    if not is_file(path):
        raise UserError(path, "a file of annotations", "nothing", "correct the path")
    given = {"with_pictures": False, "captions": path.name}
    if path.name.startswith("dataset_"):  # Karpathy's files
        given["annotations"] = "karpathy"
    known = {field.name for field in fields(module.Options)}
    options = module.Options(**{name: of for name, of in given.items() if name in known})
    if dataset != OWN_IMAGES and path not in (files := module.inventory(raw, options)):
        expected = ", ".join(file.name for file in files)
        raise UserError(path, f"annotations as {expected}", path.name, "name the file so")
    tables, card = module.read(raw, options), module.card(options)
    notes = list(tables.notes)
    if dataset == OWN_IMAGES and not module.has_splits(raw, options):
        tables = replace(tables, images=tables.images.assign(split=SPLIT))
        notes = [note for note in notes if "split" not in note]
        notes.append("The annotations name no split: all images are scored.")
    images = tables.images[tables.images["split"] == SPLIT]
    if (found := len(images)) != card.expected_images.get(SPLIT, found) or not found:
        expected = card.expected_images.get(SPLIT, "some")
        raise UserError(path, f"{expected} test images", found, "get the whole file")
    captions = tables.captions[tables.captions["image_id"].isin(images["image_id"])]
    of_test = replace(tables, images=images, captions=captions, regions=tables.regions[:0])
    check_rows(of_test)
    layers = module.layers(raw, of_test, options) if hasattr(module, "layers") else []
    images, captions = arranged(of_test)
    if tables.captions.index.name == "sentid":
        captions = captions.merge(tables.captions["caption_id"].reset_index())
    named = images["file"].where(images["file"] != "", images["image_id"] + ".jpg")
    facts = {"title": card.title, "ways": list(card.ways), "folds": card.folds}
    facts |= {"split": card.split, "counts": {SPLIT: {"images": len(images)}}}
    return Prepared(
        images=images.assign(file=named),
        captions=captions,
        regions=of_test.regions.assign(phrase_id=""),
        card=facts
        | {"layers": {of.name: {"partial": of.partial} for of in layers}, "notes": notes},
        folder=Path(dataset),
        **({"judged": judged_table(layers)} if layers else {}),
    )


def write_ranks(arguments: argparse.Namespace, data: Prepared, external: External) -> None:
    """One row per query, direction and layer: the rank of the best right item, -1 where it was not
    found."""
    queries, tables = queries_of(data), []
    for name, ranks in external.result.scores.ranks.items():
        best = np.where(external.lost.get(name, False), -1, ranks.best)
        tables.append(queries[name].assign(seed=arguments.seed, rank=best))
    listed = {"depth": arguments.depth} if arguments.depth else {}
    with atomic(arguments.out) as part:
        pd.concat(tables).assign(**listed).to_parquet(part, index=False)


def doubts(external: External, data: Prepared) -> Iterator[str]:
    """What ties and twins cost, and what may be wrong with scores that are as random ones, or far
    worse."""
    metrics, ways, hints = external.result.metrics, data.card["ways"], HINTS[external.given]
    if any((twins := data.card.get("twins", {})).values()):
        yield f"twins in test: {twins['images']} images, {twins['captions']} captions"
    for way in ways:
        if gap := metrics.get(f"{way}_{TIE_GAP.name}"):
            right = metrics[f"{way}_r1"]
            yield f"ties: {way} R@1 {right:.2f} as they count against it, {right + gap:.2f} for it"
    images = choices_of(data.split(SPLIT).group_of_image)
    rsum, by_chance = metrics["rsum"], chance(len(ways), images)
    if rsum < by_chance / NEAR_CHANCE:
        yield f"far below chance: rsum {rsum:.1f}, random {by_chance:.1f}; {hints[1]}"
    elif doubt := near_chance(rsum, len(ways), images):
        yield f"near chance: {doubt}; check the order of the {hints[0]}"


def write_items(params: Params, data: Prepared, folder: Path) -> None:
    """Write images.csv and captions.csv of the test split, in the order of rows without ids."""
    split = data.split(SPLIT)
    images = data.images.iloc[split.image_rows][["image_id", "file"]]
    raw = Path(os.path.abspath(raw_dataset(params, data.folder.name).folder))
    paths = [str(raw / file) if (raw / file).is_file() else "" for file in images["file"]]
    captions = data.captions.iloc[split.caption_rows][["caption_id", "image_id", "text"]]
    for name, table in (("images", images.assign(path=paths)), ("captions", captions)):
        write_text(folder / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
        print(f"{folder / name}.csv: {len(table)} rows")


def row_of(params: Params, arguments: argparse.Namespace) -> Brought:
    """The row that is added, or written again. Raises UserError for a name that is taken."""
    if arguments.name is None:
        raise UserError("--name", "what the row is called", "nothing", "add --name NAME")
    name, dataset = arguments.name, arguments.dataset
    folder = f"results/{params.season}/{dataset}/{name}/{arguments.seed}"
    facts = {"dataset": dataset, "preset": name, "seed": arguments.seed, "folder": folder}
    row = checked(Brought, facts, "--name and --seed")
    cells = {**params.cells, **params.fusions}
    other = {**cells, **params.brought}.get(row.key)  # row b-c on a has the key of row c on a-b
    is_other = other is not None and (other.dataset, other.preset) != (dataset, name)
    if is_other or name in {CLAIMS, *presets(), *(cell.preset for cell in cells.values())}:
        expected = "a name that no preset and no other row has"
        raise UserError("--name", expected, repr(name), "give it another name")
    return row


# Embeddings, scores, ranks ------------------------------------------------------------------------


def judge(arguments: argparse.Namespace, data: Prepared) -> External:
    """The evaluation of what was made elsewhere. Raises UserError for what cannot be judged."""
    pair = [path for path in (arguments.images, arguments.captions) if path]
    kinds = [bool(pair), arguments.matrix is not None, arguments.ranks is not None]
    if sum(kinds) != 1 or len(pair) == 1:
        expected = "--images with --captions, or --matrix, or --ranks"
        found = "several kinds" if sum(kinds) > 1 else f"{len(pair) or 'none'} of them"
        raise UserError("score", expected, found, "name the files of one kind")
    takes = TAKES.get(arguments.correct, ())
    for name in (*BANKS, "k", "alpha", "beta"):
        if vars(arguments)[name] is not None and name not in takes:
            option, found = f"--{name.replace('_', '-')}", arguments.correct or "none"
            raise UserError(option, "a --correct that takes it", found, "leave it out")
    if arguments.correct and not pair:
        raise UserError("--correct", "--images with --captions", "none", "bring embeddings")
    if arguments.depth and not arguments.ranks:
        raise UserError("--depth", "--ranks, of which it tells", "none", "remove --depth")
    try:
        if arguments.ranks:
            return of_ranks(arguments.ranks, data, arguments.depth)
        if arguments.matrix:
            return of_matrix(arguments.matrix, data)
        return of_embeddings(*pair, data, arguments)
    except scoring.RefusedError as error:
        where = ", ".join(map(str, pair)) or arguments.matrix
        raise UserError(where, "scores that can be ranked", error, "compute them again") from error


def of_embeddings(
    images: Path, captions: Path, data: Prepared, to: argparse.Namespace | None = None
) -> External:
    """By their cosines, corrected if `to` says how; other scores are given as a matrix."""
    roles, split, notes = ("images", "captions"), data.split(SPLIT), []
    given, wanted, vectors = [*map(read_rows, (images, captions), roles)], _names(data), []
    if not any(map(_fits, given, wanted)) and all(map(_fits, given, wanted[::-1])):
        found = f"captions in {images}, images in {captions}"
        do = f"swap them: --images {captions} --captions {images}"
        raise UserError("--images, --captions", "the images first", found, do)
    for rows, what, names in zip(given, roles, wanted, strict=True):
        count, of = len(names[0]), rows.values.shape
        if len(of) == 3 and what == "captions" and _are_several(rows, split):
            told = f"{of} are the {of[1]} captions of each image, in their order"
            notes.append(f"{rows.path}: {told}")
            rows = replace(rows, values=rows.values.reshape(count, of[2]))
        elif len(of) != 2:
            do = (
                f"save one vector per item ({count}, {of[-1]}), in the order of --items or with ids"
            )
            raise UserError(rows.path, "rows of numbers (N, F)", of, do)
        if not rows.ids and of[0] != count == of[1]:
            expected = f"one row for each of {count} items"
            raise UserError(rows.path, expected, "one column for each", "transpose it")
        at = places(rows, names, what, repeats=split.image_of_caption)
        if not rows.ids and len(at) < of[0]:
            notes.append(f"{rows.path}: one row per caption; the equal ones of an image count once")
        vectors.append(_units(rows.values[at], rows.path, names[0]))
    first, second = vectors
    if first.shape[1] != second.shape[1]:
        expected = f"vectors of {first.shape[1]} numbers, as of the images"
        raise UserError(captions, expected, second.shape[1], "bring both from the same model")
    if np.array_equal(first, second):
        found, do = "the same numbers twice", f"name the file of the captions, not {captions}"
        raise UserError("--images, --captions", "vectors of images and of captions", found, do)
    started = perf_counter()
    matrix = _cosines(first, second)
    notes += _doubts_on_equal_captions(data, second, captions)
    seconds = {"per_pair": (perf_counter() - started) / matrix.size}
    tiles, told, files = Matrices(i2t=matrix), {}, []
    if to and to.correct:
        tiles, files = _corrected(first, second, data.card["ways"], to)
        told["correction"] = tiles.facts
    result = _evaluated(data, tiles)
    result = replace(result, metrics=result.metrics | told)
    return External("embeddings", [images, *files, captions], result, seconds, notes)


def _corrected(
    x: np.ndarray, y: np.ndarray, ways: list[str], given: argparse.Namespace
) -> tuple[Corrected, list[Path]]:
    """As a season's row is, with parameters that are given; and the files of the bank."""
    how, drawn = given.correct, [x, y]
    known = {name: vars(given)[name] for name in TAKES[how] if name not in BANKS}
    files = [vars(given)[name] for name in TAKES[how] if name in BANKS]
    if None in (*files, *known.values()) or known.get("k", 1) < 1 or known.get("beta", 1) <= 0:
        expected = "--bank-images, --bank-captions and --k above 0 with --alpha, or --beta above 0"
        raise UserError(f"--correct {how}", expected, "less", "name them")
    for side, rows in enumerate(map(read_rows, files, ("images", "captions"))):
        if (found := rows.values.shape)[1:] != x.shape[1:]:
            raise UserError(rows.path, f"rows of {x.shape[1]} numbers", found, "embed it alike")
        at = np.random.default_rng(given.seed).permutation(len(rows.values))[:BANK]
        drawn[side] = _units(rows.values[at], rows.path, list(map(str, at)))
    pairs = {"i2t": ((x, y), (drawn[0], y)), "t2i": ((x, y), (x, drawn[1]))}
    asked = {}
    for way in ways:
        scores = [_cosines(a, b) for a, b in pairs[way]]
        sizes = [each.shape if way == "i2t" else each.T.shape for each in scores]
        asked[way] = [Asked(way, *n, Matrices(i2t=of)) for n, of in zip(sizes, scores, strict=True)]
    return Corrected(how, asked, dict.fromkeys(ways, known)), files


def of_matrix(path: Path, data: Prepared) -> External:
    """Scores of both directions, or for each one of its own: t2i then has captions as rows."""
    images, captions = _names(data)
    shape = len(images[0]), len(captions[0])
    given, matrices, notes = [], {}, []
    for way in ("i2t", "t2i"):
        rows = read_rows(path, way)
        if given and np.array_equal(rows.values, given[0]):
            break  # one for both
        if rows.values.shape[1:] == (1,) != shape[1:]:
            do = "make a table of it: frame.pivot(index=..., columns=..., values=...)"
            raise UserError(path, "scores (images, captions)", "one column: a list of pairs", do)
        axis = int(way == "t2i" and rows.values.shape == shape[::-1])  # of the images
        if rows.values.shape == shape[::-1] != shape and axis == 0:
            expected = f"{shape[0]} images (rows) by {shape[1]} captions (columns)"
            raise UserError(path, expected, "captions by images", "transpose it")
        if rows.values.ndim != 2:
            raise UserError(path, "scores (images, captions)", rows.values.shape, "save them so")
        if shape[0] == shape[1] and not rows.ids:
            names = ("captions", "images") if axis else ("images", "captions")
            notes.append(f"{path}: {way}: rows are taken for {names[0]}, columns for {names[1]}")
        at = places(rows, images, "images", axis), places(rows, captions, "captions", 1 - axis)
        matrices[way] = np.moveaxis(rows.values, axis, 0)[np.ix_(*at)]
        notes += _doubts_on_equal_captions(data, matrices[way].T, path)
        given.append(rows.values)
        if path.suffix.lower() not in SEVERAL:
            break
    return External("scores", [path], _evaluated(data, Matrices(**matrices)), notes=notes)


def of_ranks(path: Path, data: Prepared, least_depth: int = 0) -> External:
    """Of the best relevant items. Where some were not found, metrics that reach beyond the ranks
    that are known, or listed, are left out."""
    if path.suffix.lower() not in TABLES:
        do = "of a TREC run take the rank of each query's best relevant item"
        raise UserError(path, f"ranks as {', '.join(TABLES)}", path.suffix or "no ending", do)
    heads = ["direction", "query", "rank"]
    with readable(path, "a table of ranks", "save it again, or correct the path"):
        table = embedding_files.table_of(path)
        if not set(heads) <= set(table) or not table.columns.is_unique:
            expected = "the columns direction, query, rank"
            raise UserError(path, expected, ", ".join(table.columns), "name them so")
        table = table[heads].astype(object).map(embedding_files.text_of)
    notes = []
    for way, count in table["direction"].value_counts().items():
        if way not in ("i2t", "t2i"):
            found = f"{way!r} in {count} rows"
            raise UserError(f"{path}: direction", "i2t or t2i", found, "name them so")
        if way not in data.card["ways"]:
            notes.append(f"{path}: not used: {count} ranks {way}, which this dataset does not ask")
    names = dict(zip(("i2t", "t2i"), _names(data), strict=True))
    items = {"i2t": len(names["t2i"][0]), "t2i": len(names["i2t"][0])}
    ranks, lost, unknown = {}, {}, {"rsum"}
    for way in data.card["ways"]:
        of_way, queries = table[table["direction"] == way], names[way][0]
        named = "image_id" if way == "i2t" else "caption_id"
        at = embedding_files.found(of_way["query"].tolist(), named, names[way])
        if (at < 0).any() or len(of_way) != len(queries):
            expected = f"one row for each of the {len(queries)} test queries"
            lacking = f", none for {queries[(at < 0).argmax()]!r}" * bool((at < 0).any())
            is_twice = of_way["query"].duplicated()
            twice = f", {of_way['query'][is_twice].iloc[0]!r} twice" if is_twice.any() else ""
            found = f"{len(of_way)} rows{lacking}{twice}"
            raise UserError(f"{path}: {way}", expected, found, ORDER)
        given = of_way["rank"].iloc[at]
        values = embedding_files.ranks_of(given).to_numpy()
        is_lost = np.isinf(values)
        wrong = ~(is_lost | (values < items[way]))
        if wrong.any() or is_lost.all():
            query, value = queries[wrong.argmax()], given.iloc[wrong.argmax()]
            expected = f"whole ranks from 0 below {items[way]}"
            do = "correct them, or leave empty what was not found"
            do += f"; {FROM_1}" * (not (values == 0).any())
            found = f"{value} for {query!r} ({wrong.sum()} such)" if wrong.any() else "none"
            raise UserError(f"{path}: {way}", expected, found, do)
        depth = max(int(values[~is_lost].max()) + 1, least_depth)
        ranks[way] = Ranks.of_best(np.where(is_lost, items[way] - 1, values))
        lost[way] = is_lost
        if is_lost.any():
            beyond = {f"{way}_r{k}" for k in SUMMED_K if k > depth}
            median = rank_metrics(way, ranks[way])[f"{way}_medr"]
            unknown |= beyond | {f"{way}_meanr"} | ({f"{way}_medr"} if median > depth else set())
            query = queries[is_lost.argmax()]
            few = f"{way}: {is_lost.sum()} of {len(queries)} not found, as {query!r}"
            notes.append(f"{few}; ranks are known below {depth} (--depth, if more were listed)")
    metrics = retrieval_metrics(ranks)
    if unknown.isdisjoint(rsum_terms(ranks)):
        unknown.remove("rsum")
    bounds = [f"{x} {metrics[x]:.2f}" for x in rsum_terms(ranks) if x in unknown]
    notes += [f"at least: {', '.join(bounds)}"] * bool(bounds)
    metrics = {name: value for name, value in metrics.items() if name not in unknown}
    result = Evaluation(metrics=metrics, scores=results.Scores(ranks=ranks))
    return External("ranks", [path], result, notes=notes, lost=lost)


def _evaluated(data: Prepared, tiles: Matrices | Corrected) -> Evaluation:
    split, card = data.split(SPLIT), data.card
    relevance = Relevance.of(split.group_of_image, split.image_of_caption, card["folds"])
    return evaluation.of_retrieval(tiles, relevance, card["ways"], layers=layers_of(data))


def _cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n, m) of unit vectors (n, F) and (m, F), each pair by itself: summed in double precision
    and rounded, so that equal cosines are equal wherever their rows stand."""
    first_x, first_y = first_equal(x), first_equal(y)
    cosines = np.empty((len(x), len(y)), x.dtype)
    exact = y.astype(np.float64).T
    for rows in spans(len(x), ROWS_AT_ONCE):
        cosines[rows] = x[rows].astype(np.float64) @ exact
    if len(np.unique(first_x)) == len(x) and len(np.unique(first_y)) == len(y):
        return cosines
    return cosines[np.ix_(first_x, first_y)]


def _doubts_on_equal_captions(data: Prepared, rows: np.ndarray, path: Path) -> list[str]:
    """What to tell of captions of several images that are equal word for word and whose rows of
    numbers (C, F) are not."""
    split = data.split(SPLIT)
    texts = data.captions["text"].iloc[split.caption_rows]
    code_C = pd.factorize(texts)[0]
    first_C = np.unique(code_C, return_index=True)[1][code_C]
    is_elsewhere_C = split.group_of_caption != split.group_of_caption[first_C]
    repeats = np.flatnonzero(is_elsewhere_C)
    differences = np.abs(rows[repeats] - rows[first_C[repeats]]).max(1, initial=0)
    if not (differences > 0).any():
        return []
    spread = float(rows.std())
    example = texts.iloc[repeats[differences.argmax()]]
    count = int((differences > 0).sum())
    told = f"{path}: {count} captions are word for word those of other images, as {short(example)}"
    if differences.max() > FAR_APART * spread:
        return [f"{told}, but have other numbers: is the order right?"]
    return [f"{told}; their numbers differ by rounding, which decides their ties"]


def _are_several(rows: Rows, split: Split) -> bool:
    """Whether an array (I, K, F) without ids has the K captions of every image, in their order."""
    images, each = len(split.image_rows), rows.values.shape[1]
    in_order = np.repeat(np.arange(images), each)
    is_whole = np.array_equal(split.image_of_caption, in_order)
    return is_whole and len(rows.values) == images and not rows.ids


def _fits(rows: Rows, names: list[list[str]]) -> bool:
    """Whether the rows can be those of these items."""
    if not rows.ids:
        return len(rows.values) == len(names[0])
    return any((embedding_files.found(ids, "", names) >= 0).any() for ids in rows.ids.values())


def _units(vectors: np.ndarray, path: Path, ids: list[str]) -> np.ndarray:
    given = vectors.dtype
    power = np.frexp(np.abs(vectors).max(axis=1, keepdims=True))[1]  # of 2: no digit is lost
    vectors = np.ldexp(vectors.astype(np.float64), -power)  # squares neither overflow nor vanish
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        first, count = int(lengths.argmin()), int((lengths == 0).sum())
        found = f"zeros alone for {ids[first]!r}, item {first} of test ({count} such vectors)"
        raise UserError(path, "vectors that have a direction", found, "correct them")
    return (vectors / lengths).astype(given)


def _names(data: Prepared) -> tuple[list[list[str]], list[list[str]]]:
    """What files may call the test images and captions, in the split's order."""
    split = data.split(SPLIT)
    captions = data.captions.iloc[split.caption_rows]
    forms = [captions["caption_id"].tolist()]
    if "sentid" in captions:  # Karpathy's, of COCO its annotation ids
        forms += [captions["sentid"].astype(str).tolist()] * 3
    return embedding_files.forms_of(data.images.iloc[split.image_rows]), forms


def record_of(season: str, row: Brought, data: Prepared, external: External) -> Record:
    """The record of a row whose scores were made elsewhere, by the digests of their files."""
    split, folder = data.split(SPLIT), Path(row.folder)
    names = [path.name for path in external.files]
    if len(set(names)) < len(names):  # of two folders
        names = [f"{path.parent.name}/{path.name}" for path in external.files]
    digests = dict(zip(names, map(sha256, external.files), strict=True))
    lines = [f"{name}, sha256 {digest[:12]}" for name, digest in digests.items()]
    encoder = {"encoder": f"{row.preset}, external"}
    cost = provenance(torch.device("cpu"), external.seconds, "float32")
    return Record(
        protocol_version=scoring.VERSION,
        season=season,
        dataset=row.dataset,
        split=f"{data.card['split']}/{SPLIT}",
        images=len(split.image_rows),
        captions=len(split.caption_rows),
        manifest_sha256=data.card["manifest"],
        preset=row.preset,
        method=BROUGHT,
        family=BROUGHT,
        seed=row.seed,
        options={"given": external.given, "files": digests},
        scaled=[],
        image_features=encoder | {"weights": {"file": names[0], "sha256": digests[names[0]]}},
        text_features=encoder | {"vectors": lines[-1]},
        parameters=0,
        selected_epoch=None,
        status="ok",
        metrics=external.result.metrics,
        numerics=computed(),
        files={name: sha256(folder / name) for name in (results.RANKS, results.RETRIEVED)},
        cost=Costs(scoring=cost),
    )
