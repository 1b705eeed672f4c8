"""Judge embeddings, scores or ranks that were made elsewhere, as a row of a season's
leaderboard.

    rematch score --dataset pets --items FOLDER       what to embed, in which order
    rematch score --dataset pets --name siglip --images a.npy --captions b.npy
    rematch score --dataset pets --name mine --matrix scores.npz
    rematch score --dataset pets --name other --ranks ranks.csv
    rematch score --dataset mscoco --annotations dataset_coco.json --images a.npy --captions b.npy

The last one needs neither pictures nor a season: of the test split that the annotations
name (of a folder without splits, of all), with intervals and with each layer of
relevance whose files are there; no row is written. With --items FOLDER it writes the
items of these annotations. --out FILE.parquet keeps the rank of every query, for
`rematch judge`.

--correct HOW corrects cosines for hubs, with --bank-images and --bank-captions of
training and with --k and --alpha, or --beta, as validation chose them.

Nothing is trained. Arrays are .npy, .npz, .parquet, .csv, .safetensors, .pt or .mat:
embeddings (N, F) of the test images and captions, or scores (images, captions); of a
re-ranker two matrices in one file, named i2t and t2i. Rows belong to ids where the file
has some (a column or array image_id, caption_id or the like, the index of pandas, or
NAME_ids.txt beside it), else they are in the test split's order. Whole numbers other
than int8 of both signs need --numbers, which says what they stand for. In scores, -inf
stands for what was not retrieved.

Ranks of the best relevant item are a .csv or .parquet with the columns direction (i2t
or t2i), query (its id) and rank, from 0 (--first-rank 1: from 1); empty or -1 is "not
found" among the first that a tool lists (--not-found VALUE: this value, too).
"""

import argparse
import hashlib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from benchmark import scoring
from benchmark.boards.boards import OWN_IMAGES
from benchmark.boards.chance import TIMES, choices_of, near_chance, rsum_by_chance
from benchmark.contracts import datasets
from benchmark.core.command_line import alone, lock_of
from benchmark.core.devices import provenance
from benchmark.core.errors import UserError, checked, entry, short
from benchmark.core.files import atomic, is_file, readable, sha256, write_text
from benchmark.core.records import Costs, Record
from benchmark.data import prepared_tables, results
from benchmark.data.prepared_tables import Prepared, Split, judged_table
from benchmark.data.raw_files import raw_dataset
from benchmark.data.results import CellResult, Ranks
from benchmark.features import embedding_files, number_formats
from benchmark.features.embedding_files import (
    ORDER,
    SEVERAL,
    TABLES,
    Rows,
    places,
    read_embeddings,
    read_scores,
)
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
from benchmark.scoring.rank_conventions import largest_may_mean_lost, zero_may_mean_lost
from benchmark.scoring.ranking import Matrices, ranks_of, spans
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
# options that say how files are read
READINGS = ("numbers", "first_rank", "not_found", "depth")
# of --not-found: no value; the size of the gallery
NO_VALUE, ALL_ITEMS = "none", "items"
# share of equal scores that may fill a matrix; scores looked at
FILLED, SAMPLED = 0.5, 1 << 20
HINTS = {  # what to check where scores are as random ones, and where they are far worse
    "embeddings": (
        "rows, or give ids ({order})",
        "are the vectors of one file negated?",
    ),
    "scores": (
        "rows (images) and columns (captions), or give ids ({order})",
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
    # of lists, which best items were not found, (Q,) bool
    lost: dict[str, np.ndarray] = {}
    # how many items the lists of a direction have, where that is known
    depths: dict[str, int] = {}
    order: str = ORDER  # which command writes the items in their order
    readings: dict[str, object] = {}  # the options that say how files are read


@dataclass(frozen=True)
class Lists:
    """What the first items of some lists tell of a direction."""

    queries: list[str]
    items: int  # of the gallery
    ranks: np.ndarray  # (Q,) of the best relevant item; of those not found, any
    is_lost: np.ndarray  # (Q,) bool, whether it was not found
    depth: int  # ranks below are known


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset", required=True, help="one of the season, prepared; or a reader"
    )
    parser.add_argument(
        "--annotations", type=Path, metavar="FILE", help="needs no season"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="ranks of all queries, .parquet"
    )
    parser.add_argument("--name", help="what the row is called")
    parser.add_argument(
        "--images", type=Path, metavar="FILE", help="embeddings of the test images"
    )
    parser.add_argument(
        "--captions", type=Path, metavar="FILE", help="and of the test captions"
    )
    parser.add_argument(
        "--correct", choices=sorted(TAKES), help="the cosines, for hubs"
    )
    for name in ("bank-images", "bank-captions"):
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help="of --correct")
    for name, kind in (("k", int), ("alpha", float), ("beta", float)):
        parser.add_argument(f"--{name}", type=kind, help="of --correct")
    parser.add_argument(
        "--matrix", type=Path, metavar="FILE", help="scores (images, captions)"
    )
    parser.add_argument(
        "--ranks", type=Path, metavar="FILE", help="of a tool that has only those"
    )
    parser.add_argument(
        "--depth",
        type=int,
        default=0,
        help="items per query in the lists of --ranks or --matrix",
    )
    parser.add_argument(
        "--first-rank", type=int, choices=(0, 1), help="of --ranks; default: 0"
    )
    parser.add_argument(
        "--not-found",
        metavar="VALUE",
        help="rank of what was not found; items: the size of the gallery; none: no value",
    )
    parser.add_argument(
        "--numbers",
        choices=number_formats.FORMATS,
        help="what whole numbers of a file stand for",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the training, if there are several"
    )
    parser.add_argument("--season", metavar="NAME", help="default: the active one")
    parser.add_argument(
        "--items", type=Path, metavar="FOLDER", help="write the test items there"
    )


def main(arguments: argparse.Namespace) -> None:
    if arguments.out and arguments.out.suffix != ".parquet":
        raise UserError("--out", "a .parquet file", arguments.out.name, "name it so")
    if arguments.annotations:
        for name in ("season", "name"):
            if getattr(arguments, name):
                raise UserError(
                    f"--{name}", "no --annotations", "both", "leave one out"
                )
        data = annotated(arguments.dataset, arguments.annotations)
    else:
        params = season_of(arguments)
        data = prepared_tables.read(arguments.dataset)
    if arguments.items:
        others = ("name", "images", "captions", "matrix", "ranks", "out")
        if given := [name for name in others if vars(arguments)[name]]:
            advice = "first --items, then the rest"
            raise UserError("--items", "a folder alone", f"--{given[0]}, too", advice)
        if arguments.annotations:
            raw = arguments.annotations.parent
        else:
            raw = raw_dataset(params, arguments.dataset).folder
        write_items(data, raw, arguments.items)
        return
    if not arguments.annotations:
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
    folder = results.RESULTS / params.season / row.dataset / results.EXTERNAL
    with alone(lock_of(str(folder)), f"score {row.key}"):
        rows = results.read_folder(folder)
        rows[row.name] = result_of(params.season, row, data, external)
        results.write_external(folder, rows)
        write_brought(params.season, row)
    earlier = ""
    if row.key in params.brought:
        earlier = ", in the place of the row of this name and seed"
    print(f"{folder}/{results.RECORDS}: {row.name}, external {external.given}{earlier}")
    print(f"next: rematch report --season {params.season}, or dvc repro")


def season_of(arguments: argparse.Namespace) -> Params:
    """The season that has the dataset. Raises UserError where none has, which tells of
    --annotations if a reader is called so."""
    try:
        params = read_params(arguments.season)
        entry(params.datasets, arguments.dataset, "dataset")
    except UserError as error:
        if arguments.dataset not in datasets.names():
            raise
        advice = f"add --annotations FILE, which needs no season; or {error.do}"
        raise UserError(error.where, error.expected, error.found, advice) from error
    return params


def order_of(arguments: argparse.Namespace) -> str:
    """The command that writes the test items, in a sentence."""
    words = ["rematch", "score", "--dataset", arguments.dataset]
    if arguments.annotations:
        words += ["--annotations", str(arguments.annotations)]
    if arguments.season:
        words += ["--season", arguments.season]
    command = shlex.join([*words, "--items", "FOLDER"])
    return f"{command} writes the ids that are wanted, in order"


def show(data: Prepared, external: External) -> None:
    """Print the recalls of both directions by each layer of relevance, and their sum;
    then every metric with its interval, S, and what a reader must know."""
    metrics, ranks = external.result.metrics, external.result.scores.ranks
    split, queries, every = (
        data.split(SPLIT),
        queries_of(data),
        rsum_terms(("i2t", "t2i")),
    )
    partial = [
        name for name, of in data.card.get("layers", {}).items() if of["partial"]
    ]
    layers, rows = layers_of(data), []
    images, captions = len(split.image_rows), len(split.caption_rows)
    print(f"{data.card['title']}: {images} images, {captions} captions")
    # "", "_fold" or "@" and a layer
    for end in dict.fromkeys(name[3:] for name in ranks):
        terms = [
            (n, METRICS[f"{n[:3]}_r{k}"])
            for n in ranks
            if n[3:] == end
            for k in SUMMED_K
        ]
        known = [term for term in terms if end or term[1].name in metrics]
        told = {of[1].name: f"{measured(queries, ranks, [of])[0]:.1f}" for of in known}
        if known == terms:
            told["rsum"] = "{:.1f} [{:.1f}, {:.1f}]".format(
                *measured(queries, ranks, terms)
            )
        rows.append(
            [place_of(end, data), *(told.get(name, "-") for name in (*every, "rsum"))]
        )
    heads = ["", *(METRICS[name].heading for name in every), "rsum, 95% interval"]
    print(pd.DataFrame(rows, columns=heads).to_string(index=False))
    for name, of_name in ranks.items():
        way, layer = name[:3], name.partition(results.LAYER)[2]
        print(f"{place_of(name, data)}: {way}, {len(of_name)} queries")
        for metric in (
            METRICS[f"{way}_{of.name}"] for of in (*RANK_METRICS, *ALL_RANKS)
        ):
            is_known = metric.name in metrics or of_name.knows_all or name != way
            # as R@1, or as MRR
            is_told = not (metric.needs_all and (of_name.counts == 1).all())
            if metric.of_queries is None or not is_told or not is_known:
                continue
            value, low, high = measured(queries, ranks, [(name, metric)])
            line = f"  {metric.heading:16} {value:6.2f}  [{low:.2f}, {high:.2f}]"
            if layer in partial and (
                recall := re.fullmatch(r"..._r(\d+)", metric.name)
            ):
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
        told = (
            "people judged some pairs; the others count as wrong, and at most as right"
        )
        notes.append(f"{', '.join(partial)}: {told}")
    print(*notes, *(doubts(external, data) if "rsum" in metrics else ()), sep="\n")


def place_of(name: str, data: Prepared) -> str:
    """The layer of relevance of some ranks, and the gallery where that is not the whole
    split."""
    layer = name.partition(results.LAYER)[2] or "own"
    if name.endswith("_fold"):
        return f"{layer}, mean of {data.card['folds']} folds"
    return layer


def measured(
    queries: dict[str, pd.DataFrame],
    ranks: dict[str, Ranks],
    terms: list[tuple[str, Metric]],
) -> tuple[float, float, float]:
    """A sum of means over queries, and its 95% interval, had other images been drawn.
    Terms are metrics of ranks by their names."""
    groups = pd.Index(
        pd.concat([queries[name]["cluster"] for name, _ in terms]).unique()
    )
    means = [
        (
            groups.get_indexer(queries[name]["cluster"]),
            {0: metric.of_queries(ranks[name])},
        )
        for name, metric in terms
    ]
    sample, span = sample_of_queries(means), sum(metric.range[1] for _, metric in terms)
    variance = float(np.square(sample.noise[0]).sum())
    return sample.mean, *score_interval(sample.mean, variance, span, sample.units)


def annotated(dataset: str, path: Path) -> Prepared:
    """The test split of annotations that were made elsewhere, as if prepared; of a
    folder that names no split, or one alone, all of it. Raises UserError for what
    cannot be read."""
    module, raw = datasets.load(dataset), path.parent
    if not is_file(path):
        raise UserError(path, "a file of annotations", "nothing", "correct the path")
    given = {"with_pictures": False, "captions": path.name}
    if path.name.startswith("dataset_"):  # Karpathy's files
        given["annotations"] = "karpathy"
    known = {field.name for field in fields(module.Options)}
    options = module.Options(
        **{name: of for name, of in given.items() if name in known}
    )
    if dataset != OWN_IMAGES and path not in (files := module.inventory(raw, options)):
        expected = ", ".join(file.name for file in files)
        raise UserError(
            path, f"annotations as {expected}", path.name, "name the file so"
        )
    card = module.card(options)
    if dataset == OWN_IMAGES:
        tables = module.read_for_score(raw, options)
    else:
        tables = module.read(raw, options)
    images = tables.images[tables.images["split"] == SPLIT]
    if (found := len(images)) != card.expected_images.get(SPLIT, found) or not found:
        expected = card.expected_images.get(SPLIT, "some")
        raise UserError(path, f"{expected} test images", found, "get the whole file")
    captions = tables.captions[tables.captions["image_id"].isin(images["image_id"])]
    of_test = replace(
        tables, images=images, captions=captions, regions=tables.regions[:0]
    )
    check_rows(of_test)
    layers = module.layers(raw, of_test, options) if hasattr(module, "layers") else []
    images, captions = arranged(of_test)
    if tables.captions.index.name == "sentid":
        captions = captions.merge(tables.captions["caption_id"].reset_index())
    if tables.images.index.name == "imgid":
        images = images.merge(tables.images["image_id"].reset_index())
    named = images["file"].where(images["file"] != "", images["image_id"] + ".jpg")
    facts = {"title": card.title, "ways": list(card.ways), "folds": card.folds}
    facts |= {"split": card.split, "counts": {SPLIT: {"images": len(images)}}}
    return Prepared(
        images=images.assign(file=named),
        captions=captions,
        regions=of_test.regions.assign(phrase_id=""),
        card=facts
        | {
            "layers": {of.name: {"partial": of.partial} for of in layers},
            "notes": tables.notes,
        },
        folder=Path(dataset),
        **({"judged": judged_table(layers)} if layers else {}),
    )


def write_ranks(
    arguments: argparse.Namespace, data: Prepared, external: External
) -> None:
    """One row per query, direction and layer: the rank of the best right item, -1 where
    it was not found."""
    queries, tables = queries_of(data), []
    for name, ranks in external.result.scores.ranks.items():
        best = np.where(external.lost.get(name, False), -1, ranks.best)
        tables.append(queries[name].assign(seed=arguments.seed, rank=best))
    table = pd.concat(tables)
    if external.depths:
        table["depth"] = table["direction"].map(external.depths)
    with atomic(arguments.out) as part:
        table.to_parquet(part, index=False)


def doubts(external: External, data: Prepared) -> Iterator[str]:
    """What ties and twins cost, and what may be wrong with scores that are as random
    ones, or far worse."""
    metrics, ways, hints = (
        external.result.metrics,
        data.card["ways"],
        HINTS[external.given],
    )
    if any((twins := data.card.get("twins", {})).values()):
        yield f"twins in test: {twins['images']} images, {twins['captions']} captions"
    for way in ways:
        if gap := metrics.get(f"{way}_{TIE_GAP.name}"):
            right = metrics[f"{way}_r1"]
            yield f"ties: {way} R@1 {right:.2f} as they count against it, {right + gap:.2f} for it"
    images = choices_of(data.split(SPLIT).group_of_image)
    rsum, by_chance = metrics["rsum"], rsum_by_chance(len(ways), images)
    if rsum < by_chance / TIMES:
        yield f"far below chance: rsum {rsum:.1f}, random {by_chance:.1f}; {hints[1]}"
    elif doubt := near_chance(rsum, len(ways), images):
        what = hints[0].format(order=external.order)
        yield f"near chance: {doubt}; check the order of the {what}"


def write_items(data: Prepared, raw: Path, folder: Path) -> None:
    """Write images.csv and captions.csv of the test split, in the order of rows without
    ids. `raw` is the folder of the pictures, where there are some."""
    split, raw = data.split(SPLIT), Path(os.path.abspath(raw))
    images = data.images.iloc[split.image_rows][["image_id", "file"]]
    paths = [
        str(raw / file) if (raw / file).is_file() else "" for file in images["file"]
    ]
    captions = data.captions.iloc[split.caption_rows][
        ["caption_id", "image_id", "text"]
    ]
    for name, table in (("images", images.assign(path=paths)), ("captions", captions)):
        write_text(
            folder / f"{name}.csv", table.to_csv(index=False, lineterminator="\n")
        )
        print(f"{folder / name}.csv: {len(table)} rows")


def row_of(params: Params, arguments: argparse.Namespace) -> Brought:
    """The row that is added, or written again. Raises UserError for a name that is
    taken."""
    if arguments.name is None:
        raise UserError(
            "--name", "what the row is called", "nothing", "add --name NAME"
        )
    name, dataset = arguments.name, arguments.dataset
    facts = {"dataset": dataset, "preset": name, "seed": arguments.seed}
    row = checked(Brought, facts, "--name and --seed")
    cells = {**params.cells, **params.fusions}
    # row b-c on a has the key of row c on a-b
    other = {**cells, **params.brought}.get(row.key)
    is_other = other is not None and (other.dataset, other.preset) != (dataset, name)
    if is_other or name in {
        CLAIMS,
        *presets(),
        *(cell.preset for cell in cells.values()),
    }:
        expected = "a name that no preset and no other row has"
        raise UserError("--name", expected, repr(name), "give it another name")
    return row


# Embeddings, scores, ranks ------------------------------------------------------------


def judge(arguments: argparse.Namespace, data: Prepared) -> External:
    """The evaluation of what was made elsewhere. Raises UserError for what cannot be
    judged."""
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
        raise UserError(
            "--correct", "--images with --captions", "none", "bring embeddings"
        )
    if arguments.depth and pair:
        raise UserError(
            "--depth",
            "--ranks or --matrix, of which it tells",
            "none",
            "remove --depth",
        )
    if arguments.numbers and arguments.ranks:
        expected, advice = "--images with --captions, or --matrix", "remove --numbers"
        raise UserError("--numbers", expected, "--ranks", advice)
    for name in ("first_rank", "not_found"):
        if vars(arguments)[name] is not None and not arguments.ranks:
            option = f"--{name.replace('_', '-')}"
            raise UserError(
                option, "--ranks, of which it tells", "none", f"remove {option}"
            )
    order = order_of(arguments)
    try:
        if arguments.ranks:
            external = of_ranks(
                arguments.ranks,
                data,
                arguments.depth,
                first_rank=arguments.first_rank,
                not_found=arguments.not_found,
                order=order,
            )
        elif arguments.matrix:
            external = of_matrix(
                arguments.matrix,
                data,
                arguments.depth,
                numbers=arguments.numbers,
                order=order,
            )
        else:
            external = of_embeddings(*pair, data, arguments)
    except scoring.RefusedError as error:
        where = ", ".join(map(str, pair)) or arguments.matrix
        raise UserError(
            where, "scores that can be ranked", error, "compute them again"
        ) from error
    options = {name: vars(arguments)[name] for name in READINGS}
    readings = {
        name: value for name, value in options.items() if value not in (None, 0)
    }
    return external._replace(order=order, readings=readings)


def of_embeddings(
    images: Path, captions: Path, data: Prepared, to: argparse.Namespace | None = None
) -> External:
    """By their cosines, corrected if `to` says how; other scores are given as a
    matrix."""
    roles, split, notes = ("images", "captions"), data.split(SPLIT), []
    numbers, order = (to.numbers, order_of(to)) if to else (None, ORDER)
    if to and to.correct:
        _parameters(to)  # before files are read
    given = [
        read_embeddings(images, "images", numbers),
        read_embeddings(captions, "captions", numbers),
    ]
    banks = [
        read_embeddings(vars(to)[name], what, numbers)
        for name, what in zip(BANKS, roles, strict=True)
        if to and vars(to)[name]
    ]
    number_formats.check_alike([rows.whole for rows in (*given, *banks)], numbers)
    notes += [_reading(rows, numbers) for rows in (*given, *banks) if rows.whole]
    wanted, vectors = _names(data), []
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
            do = f"save one vector per item ({count}, {of[-1]}), with ids or in order: {order}"
            raise UserError(rows.path, "rows of numbers (N, F)", of, do)
        if not rows.ids and of[0] != count == of[1]:
            expected = f"one row for each of {count} items"
            raise UserError(rows.path, expected, "one column for each", "transpose it")
        at = places(rows, names, what, repeats=split.image_of_caption, do=order)
        if not rows.ids and len(at) < of[0]:
            notes.append(
                f"{rows.path}: one row per caption; the equal ones of an image count once"
            )
        vectors.append(_units(rows.values[at], rows.path, names[0]))
    first, second = vectors
    if first.shape[1] != second.shape[1]:
        expected = f"vectors of {first.shape[1]} numbers, as of the images"
        raise UserError(
            captions, expected, second.shape[1], "bring both from the same model"
        )
    if np.array_equal(first, second):
        found, do = (
            "the same numbers twice",
            f"name the file of the captions, not {captions}",
        )
        raise UserError(
            "--images, --captions", "vectors of images and of captions", found, do
        )
    started = perf_counter()
    matrix = _cosines(first, second)
    notes += _doubts_on_equal_captions(data, second, captions)
    seconds = {"per_pair": (perf_counter() - started) / matrix.size}
    tiles, told = Matrices(i2t=matrix), {}
    if to and to.correct:
        tiles = _corrected(first, second, data.card["ways"], to, banks)
        told["correction"] = tiles.facts
    result = _evaluated(data, tiles)
    result = replace(result, metrics=result.metrics | told)
    files = [images, *(rows.path for rows in banks), captions]
    return External("embeddings", files, result, seconds, notes)


def _parameters(given: argparse.Namespace) -> dict[str, float]:
    """The numbers that --correct takes. Raises UserError where they or a bank are
    missing."""
    how = given.correct
    known = {name: vars(given)[name] for name in TAKES[how] if name not in BANKS}
    banks = [vars(given)[name] for name in TAKES[how] if name in BANKS]
    if (
        None in (*banks, *known.values())
        or known.get("k", 1) < 1
        or known.get("beta", 1) <= 0
    ):
        expected = "--bank-images, --bank-captions and --k above 0 with --alpha, or --beta above 0"
        raise UserError(f"--correct {how}", expected, "less", "name them")
    return known


def _corrected(
    x: np.ndarray,
    y: np.ndarray,
    ways: list[str],
    given: argparse.Namespace,
    banks: list[Rows],
) -> Corrected:
    """As a season's row is, with parameters that are given. `banks` are rows of images
    and of captions, where the correction takes them."""
    how, drawn, known = given.correct, [x, y], _parameters(given)
    for side, rows in enumerate(banks):
        if (found := rows.values.shape)[1:] != x.shape[1:]:
            raise UserError(
                rows.path, f"rows of {x.shape[1]} numbers", found, "embed it alike"
            )
        at = np.random.default_rng(given.seed).permutation(len(rows.values))[:BANK]
        drawn[side] = _units(rows.values[at], rows.path, list(map(str, at)))
    pairs = {"i2t": ((x, y), (drawn[0], y)), "t2i": ((x, y), (x, drawn[1]))}
    asked = {}
    for way in ways:
        scores = [_cosines(a, b) for a, b in pairs[way]]
        sizes = [each.shape if way == "i2t" else each.T.shape for each in scores]
        asked[way] = [
            Asked(way, *n, Matrices(i2t=of))
            for n, of in zip(sizes, scores, strict=True)
        ]
    return Corrected(how, asked, dict.fromkeys(ways, known))


def of_matrix(
    path: Path,
    data: Prepared,
    depth: int = 0,
    *,
    numbers: str | None = None,
    order: str = ORDER,
) -> External:
    """Scores of both directions, or for each one of its own: t2i then has captions as
    rows. Where some are -infinity, the others are lists of what was retrieved, `depth`
    items for each query."""
    images, captions = _names(data)
    shape = len(images[0]), len(captions[0])
    given, matrices, notes = [], {}, []
    for way in ("i2t", "t2i"):
        rows = read_scores(path, way, numbers)
        number_formats.check_alike([rows.whole], numbers)
        if given and np.array_equal(rows.values, given[0]):
            break  # one for both
        if rows.values.shape[1:] == (1,) != shape[1:]:
            do = "make a table of it: frame.pivot(index=..., columns=..., values=...)"
            raise UserError(
                path, "scores (images, captions)", "one column: a list of pairs", do
            )
        axis = int(way == "t2i" and rows.values.shape == shape[::-1])  # of the images
        if rows.values.shape == shape[::-1] != shape and axis == 0:
            expected = f"{shape[0]} images (rows) by {shape[1]} captions (columns)"
            raise UserError(path, expected, "captions by images", "transpose it")
        if rows.values.ndim != 2:
            raise UserError(
                path, "scores (images, captions)", rows.values.shape, "save them so"
            )
        if shape[0] == shape[1] and not rows.ids:
            names = ("captions", "images") if axis else ("images", "captions")
            notes.append(
                f"{path}: {way}: rows are taken for {names[0]}, columns for {names[1]}"
            )
        of_images = places(rows, images, "images", axis, do=order)
        of_captions = places(rows, captions, "captions", 1 - axis, do=order)
        matrices[way] = np.moveaxis(rows.values, axis, 0)[
            np.ix_(of_images, of_captions)
        ]
        notes += _doubts_on_equal_captions(data, matrices[way].T, path)
        given.append(rows.values)
        if path.suffix.lower() not in SEVERAL:
            break
    if numbers:
        notes.append(_reading(rows, numbers))
    if any(np.isneginf(matrix).any() for matrix in matrices.values()):
        return _of_retrieved(path, data, matrices, depth, notes)
    fills = [_fill_of(f"{path}: {way}", matrix) for way, matrix in matrices.items()]
    notes += filter(None, fills)
    if depth:
        raise UserError(
            "--depth", "lists: scores with -inf", "finite scores", "remove --depth"
        )
    return External(
        "scores", [path], _evaluated(data, Matrices(**matrices)), notes=notes
    )


def _fill_of(where: str, matrix: np.ndarray) -> str:
    """A note if most scores are equal and the lowest: what was not retrieved may be
    filled so. Raises UserError if others lie below, which then rank behind all that was
    not retrieved."""
    sample = matrix.ravel()[:: max(matrix.size // SAMPLED, 1)]
    middle = np.median(sample)
    share = (sample == middle).mean()
    if share < FILLED:
        return ""
    fill = f"{middle:g} in {share:.0%} of the scores"
    if matrix.min() < middle:
        advice = "save -inf for what was not retrieved"
        raise UserError(where, "scores of all pairs", f"{fill}, above others", advice)
    return f"{where}: {fill}, the lowest; if that is what was not retrieved, save -inf"


def _of_retrieved(
    path: Path,
    data: Prepared,
    matrices: dict[str, np.ndarray],
    depth: int,
    notes: list[str],
) -> External:
    """Of scores that are -infinity for what was not retrieved. Raises UserError where
    the first items of a query may be missing among those that have scores."""
    split = data.split(SPLIT)
    relevant_IC = Relevance.of(split.group_of_image, split.image_of_caption).matrix
    names = dict(zip(("i2t", "t2i"), _names(data), strict=True))
    lists = {}
    for way in data.card["ways"]:
        scores_QG, relevant_QG = matrices.get(way, matrices["i2t"]), relevant_IC
        if way == "t2i":
            scores_QG, relevant_QG = scores_QG.T, relevant_QG.T
        queries, is_listed_QG = names[way][0], np.isfinite(scores_QG)
        known = _known_depth(f"{path}: {way}", queries, is_listed_QG.sum(1), depth)
        lowest = np.nextafter(scores_QG[is_listed_QG].min(), -np.inf)
        filled_QG = np.where(is_listed_QG, scores_QG, lowest)
        ranks_Q = ranks_of(filled_QG, relevant_QG).best
        is_lost_Q = ~(is_listed_QG & relevant_QG).any(1) | (ranks_Q >= known)
        lists[way] = Lists(queries, scores_QG.shape[1], ranks_Q, is_lost_Q, known)
    notes.append(f"{path}: -inf is taken for what was not retrieved")
    external = _of_lists("scores", path, lists, notes)
    depths = {way: of_way.depth for way, of_way in lists.items()}
    return external._replace(depths=depths)


def _known_depth(
    where: str, queries: list[str], lengths_Q: np.ndarray, depth: int
) -> int:
    """How many items each query has in its list: so many as it has scores, if all
    have as many; else `depth`, if all have no fewer. Raises UserError where neither
    holds."""
    shortest, longest = int(lengths_Q.min()), int(lengths_Q.max())
    if 0 < depth <= shortest or 0 < shortest == longest and not depth:
        return depth or shortest
    expected = "as many retrieved items, which are not -inf, for each query"
    actual = f"{shortest} for {queries[lengths_Q.argmin()]!r}, up to {longest}"
    advice = "save the lists of each direction in one .npz, i2t and t2i"
    if shortest:
        advice += f", say --depth K if each has its first K (at most {shortest})"
    advice += ", or a finite number if -inf is the score"
    raise UserError(where, expected, actual, advice)


def of_ranks(
    path: Path,
    data: Prepared,
    least_depth: int = 0,
    *,
    first_rank: int | None = None,
    not_found: str | None = None,
    order: str = ORDER,
) -> External:
    """Of the best relevant items. Where some were not found, metrics that reach beyond
    the ranks that are known, or listed, are left out.

    `first_rank` is the number of the first rank, `not_found` what stands for an item
    that was not found. Without them ranks are from 0; raises UserError where they may
    be others.
    """
    table, notes = _rank_table(path), []
    for way, count in table["direction"].value_counts().items():
        if way not in ("i2t", "t2i"):
            rows = f"{way!r} in {count} rows"
            raise UserError(f"{path}: direction", "i2t or t2i", rows, "name them so")
        if way not in data.card["ways"]:
            unused = f"{count} ranks {way}, which this dataset does not ask"
            notes.append(f"{path}: not used: {unused}")
    names = dict(zip(("i2t", "t2i"), _names(data), strict=True))
    items = {"i2t": len(names["t2i"][0]), "t2i": len(names["i2t"][0])}
    lists = {}
    for way in data.card["ways"]:
        rows, queries, where = (
            table[table["direction"] == way],
            names[way][0],
            f"{path}: {way}",
        )
        named = "image_id" if way == "i2t" else "caption_id"
        at = embedding_files.rows_of_items(rows["query"].tolist(), named, names[way])
        if (at < 0).any() or len(rows) != len(queries):
            expected = f"one row for each of the {len(queries)} test queries"
            actual = f"{len(rows)} rows"
            if (at < 0).any():
                actual += f", none for {queries[(at < 0).argmax()]!r}"
            is_twice = rows["query"].duplicated()
            if is_twice.any():
                actual += f", {rows['query'][is_twice].iloc[0]!r} twice"
            raise UserError(where, expected, actual, order)
        texts, start = rows["rank"].iloc[at], first_rank or 0
        lost_value = str(items[way] + start) if not_found == ALL_ITEMS else not_found
        values = embedding_files.ranks_of(texts, start, lost_value).to_numpy()
        is_lost = np.isinf(values)
        is_wrong = ~(is_lost | (values < items[way]))
        if is_wrong.any() or is_lost.all():
            query = queries[is_wrong.argmax()]
            raise _wrong_rank(where, texts[is_wrong], query, start, items[way])
        depth = max(int(values[~is_lost].max()) + 1, least_depth)
        lists[way] = Lists(queries, items[way], values, is_lost, depth)
    _refuse_other_conventions(path, lists, first_rank, not_found)
    if first_rank is None:
        notes.append(f"{path}: ranks are read from 0, the best item first")
    external = _of_lists("ranks", path, lists, notes)
    if not least_depth:
        return external
    return external._replace(depths=dict.fromkeys(lists, least_depth))


def _rank_table(path: Path) -> pd.DataFrame:
    """The direction, query and rank of each row, as text."""
    if path.suffix.lower() not in TABLES:
        advice = "of a TREC run take the rank of each query's best relevant item"
        expected, ending = f"ranks as {', '.join(TABLES)}", path.suffix or "no ending"
        raise UserError(path, expected, ending, advice)
    heads = ["direction", "query", "rank"]
    with readable(path, "a table of ranks", "save it again, or correct the path"):
        table = embedding_files.table_of(path)
        if not set(heads) <= set(table) or not table.columns.is_unique:
            expected = "the columns direction, query, rank"
            raise UserError(path, expected, ", ".join(table.columns), "name them so")
        return table[heads].astype(object).map(embedding_files.text_of)


def _wrong_rank(
    where: str,
    texts: pd.Series,
    query: str,
    first_rank: int,
    items: int,
) -> UserError:
    """The error for values that are no ranks, of which `query` has the first one; for
    none, if nothing was found at all."""
    expected = f"whole ranks from {first_rank} below {items + first_rank}"
    advice = "correct them, or leave empty what was not found"
    if texts.empty:
        return UserError(where, expected, "none", advice)
    value, options = texts.iloc[0], []
    if not first_rank and value == str(items):
        options.append("--first-rank 1 if these are positions from 1")
    if texts.nunique() == 1:
        lost_value = shlex.quote(value)
        if value == str(items + first_rank):
            lost_value = f"{ALL_ITEMS} (their number)"
        elif not first_rank and value == str(items + 1):
            lost_value = f"{ALL_ITEMS} --first-rank 1"
        join = "=" if lost_value.startswith("-") else " "
        options.append(f"--not-found{join}{lost_value} if it means that")
    if options:
        advice = f"say {', or '.join(options)}; or {advice}"
    return UserError(
        where, expected, f"{value} for {query!r} ({len(texts)} such)", advice
    )


def _refuse_other_conventions(
    path: Path,
    lists: dict[str, Lists],
    first_rank: int | None,
    not_found: str | None,
) -> None:
    """Raise UserError for ranks that may be positions from 1, and for a number that may
    mean "not found", unless the options say."""
    known = {way: of_way.ranks[~of_way.is_lost] for way, of_way in lists.items()}
    has_first = any((ranks == 0).any() for ranks in known.values())
    if first_rank is None and not has_first:
        expected = "rank 0 for some query, whose best item is first"
        advice = "say --first-rank 1 if these are positions from 1, or --first-rank 0"
        raise UserError(path, expected, "none", advice)
    if not_found is not None or any(of_way.is_lost.any() for of_way in lists.values()):
        return
    for way, ranks in known.items():
        if largest_may_mean_lost(ranks):
            largest = int(ranks.max())
            count, value = int((ranks == largest).sum()), largest + (first_rank or 0)
            actual = f"{value} in {count} of {len(ranks)} rows"
            advice = (
                f"say --not-found {value} if it means that, or --not-found {NO_VALUE}"
            )
            raise UserError(f"{path}: {way}", "ranks that fall off", actual, advice)
    sizes = {way: of_way.items for way, of_way in lists.items()}
    if first_rank is None and zero_may_mean_lost(known, sizes):
        largest = int(max(ranks.max() for ranks in known.values()))
        other = "positions from 1 with 0 for what was not found"
        advice = (
            "say --first-rank 1 --not-found 0, or --first-rank 0 if 0 is the best rank"
        )
        raise UserError(
            path, "ranks from 0", f"0 to {largest}, which may be {other}", advice
        )


def _of_lists(
    given: str, path: Path, lists: dict[str, Lists], notes: list[str]
) -> External:
    """Of the best relevant items that lists tell. Metrics that reach beyond what the
    lists of a direction know are left out, if some items were not found."""
    ranks, lost, unknown = {}, {}, {"rsum"}
    for way, of_way in lists.items():
        is_lost, depth = of_way.is_lost, of_way.depth
        ranks[way] = Ranks.of_best(np.where(is_lost, of_way.items - 1, of_way.ranks))
        lost[way] = is_lost
        if is_lost.any():
            unknown |= {f"{way}_r{k}" for k in SUMMED_K if k > depth}
            unknown.add(f"{way}_meanr")
            if rank_metrics(way, ranks[way])[f"{way}_medr"] > depth:
                unknown.add(f"{way}_medr")
            query = of_way.queries[is_lost.argmax()]
            few = f"{is_lost.sum()} of {len(of_way.queries)} not found, as {query!r}"
            note = f"{way}: {few}; ranks are known below {depth}"
            if given == "ranks":
                note += " (--depth, if more were listed)"
            notes.append(note)
    metrics = retrieval_metrics(ranks)
    if unknown.isdisjoint(rsum_terms(ranks)):
        unknown.remove("rsum")
    bounds = [f"{x} {metrics[x]:.2f}" for x in rsum_terms(ranks) if x in unknown]
    if bounds:
        notes.append(f"at least: {', '.join(bounds)}")
    metrics = {name: value for name, value in metrics.items() if name not in unknown}
    result = Evaluation(metrics=metrics, scores=results.Scores(ranks=ranks))
    return External(given, [path], result, notes=notes, lost=lost)


def _evaluated(data: Prepared, tiles: Matrices | Corrected) -> Evaluation:
    split, card = data.split(SPLIT), data.card
    relevance = Relevance.of(
        split.group_of_image, split.image_of_caption, card["folds"]
    )
    return evaluation.of_retrieval(
        tiles, relevance, card["ways"], layers=layers_of(data)
    )


def _cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n, m) of unit vectors (n, F) and (m, F), each pair by itself: summed in double
    precision and rounded, so that equal cosines are equal wherever their rows stand."""
    first_x, first_y = first_equal(x), first_equal(y)
    cosines = np.empty((len(x), len(y)), x.dtype)
    exact = y.astype(np.float64).T
    for rows in spans(len(x), ROWS_AT_ONCE):
        cosines[rows] = x[rows].astype(np.float64) @ exact
    if len(np.unique(first_x)) == len(x) and len(np.unique(first_y)) == len(y):
        return cosines
    return cosines[np.ix_(first_x, first_y)]


def _doubts_on_equal_captions(
    data: Prepared, rows: np.ndarray, path: Path
) -> list[str]:
    """What to tell of captions of several images that are equal word for word and whose
    rows of numbers (C, F) are not."""
    split = data.split(SPLIT)
    texts = data.captions["text"].iloc[split.caption_rows]
    code_C = pd.factorize(texts)[0]
    first_C = np.unique(code_C, return_index=True)[1][code_C]
    is_elsewhere_C = split.group_of_caption != split.group_of_caption[first_C]
    repeats = np.flatnonzero(is_elsewhere_C)
    if not np.isfinite(rows[repeats]).all():  # lists of what was retrieved
        return []
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
    """Whether an array (I, K, F) without ids has the K captions of every image, in
    their order."""
    images, each = len(split.image_rows), rows.values.shape[1]
    in_order = np.repeat(np.arange(images), each)
    is_whole = np.array_equal(split.image_of_caption, in_order)
    return is_whole and len(rows.values) == images and not rows.ids


def _fits(rows: Rows, names: list[list[str]]) -> bool:
    """Whether the rows can be those of these items."""
    if not rows.ids:
        return len(rows.values) == len(names[0])
    return any(
        (embedding_files.rows_of_items(ids, "", names) >= 0).any()
        for ids in rows.ids.values()
    )


def _reading(rows: Rows, numbers: str | None) -> str:
    """What was made of whole numbers, in a sentence."""
    return f"{rows.path}: {rows.whole}, read as {numbers or 'coordinates'}"


def _units(vectors: np.ndarray, path: Path, ids: list[str]) -> np.ndarray:
    """Vectors of length 1. Of codes of +1 and -1 to a part in a million, but so that
    sums of their products are exact: equal Hamming distances tie."""
    given = vectors.dtype
    if (np.abs(vectors) == 1).all():
        digits = (np.finfo(np.float64).nmant - vectors.shape[1].bit_length()) // 2
        mantissa, power = np.frexp(1 / np.sqrt(vectors.shape[1]))
        return vectors * np.ldexp(np.round(np.ldexp(mantissa, digits)), power - digits)
    # of 2: no digit is lost
    power = np.frexp(np.abs(vectors).max(axis=1, keepdims=True))[1]
    # squares neither overflow nor vanish
    vectors = np.ldexp(vectors.astype(np.float64), -power)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        first, count = int(lengths.argmin()), int((lengths == 0).sum())
        found = f"zeros alone for {ids[first]!r}, item {first} of test ({count} such vectors)"
        raise UserError(path, "vectors that have a direction", found, "correct them")
    return (vectors / lengths).astype(given)


def _names(data: Prepared) -> tuple[list[list[str]], list[list[str]]]:
    """What files may call the test images and captions, in the split's order."""
    split = data.split(SPLIT)
    images = data.images.iloc[split.image_rows]
    image_forms = embedding_files.forms_of(images)
    # what the annotations call them beside that, as COCO's numbers
    if "imgid" in images:
        image_forms.insert(3, images["imgid"].tolist())
    captions = data.captions.iloc[split.caption_rows]
    forms = [captions["caption_id"].tolist()]
    if "sentid" in captions:  # Karpathy's, of COCO its annotation ids
        forms += [captions["sentid"].astype(str).tolist()] * 3
    return image_forms, forms


def result_of(
    season: str, row: Brought, data: Prepared, external: External
) -> CellResult:
    """The result of a row whose scores were made elsewhere, by the digests of their
    files."""
    split = data.split(SPLIT)
    arrays = {
        results.RANKS: results.scores_npz(external.result.scores),
        results.RETRIEVED: results.retrieved_npz(external.result.retrieved),
    }
    names = [path.name for path in external.files]
    if len(set(names)) < len(names):  # of two folders
        names = [f"{path.parent.name}/{path.name}" for path in external.files]
    digests = dict(zip(names, map(sha256, external.files), strict=True))
    lines = [f"{name}, sha256 {digest[:12]}" for name, digest in digests.items()]
    encoder = {"encoder": f"{row.preset}, external"}
    cost = provenance(torch.device("cpu"), external.seconds, "float32")
    record = Record(
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
        options={"given": external.given, "files": digests} | external.readings,
        scaled=[],
        image_features=encoder
        | {"weights": {"file": names[0], "sha256": digests[names[0]]}},
        text_features=encoder | {"vectors": lines[-1]},
        parameters=0,
        selected_epoch=None,
        status="ok",
        metrics=external.result.metrics,
        numerics=computed(),
        files={name: hashlib.sha256(npz).hexdigest() for name, npz in arrays.items()},
    )
    place = f"{season}/{row.dataset}/{row.name}"
    costs = Costs(scoring=cost)
    return CellResult(place=place, record=record, costs=costs, arrays=arrays)
