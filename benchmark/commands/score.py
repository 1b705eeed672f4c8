"""Judge embeddings, scores or ranks that were made elsewhere, as a row of a season's leaderboard.

    rematch score --dataset pets --items FOLDER       what to embed, in which order
    rematch score --dataset pets --name siglip --images a.npy --captions b.npy
    rematch score --dataset pets --name mine --matrix scores.npz
    rematch score --dataset pets --name other --ranks ranks.csv

Nothing is trained. Arrays are .npy, .npz, .parquet or .safetensors: embeddings (N, F) of the test
images and captions, or scores (images, captions). Rows belong to ids where the file has some (`ids`
in .npz, a column `id` in .parquet, or NAME_ids.txt beside it), else they are in the test split's
order. Ranks, from 0, of the best relevant item are a .csv or .parquet with the columns direction
(i2t or t2i), query (its id) and rank.
"""

import argparse
import os
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from benchmark import scoring
from benchmark.boards.flags import NEAR_CHANCE, chance, choices_of, near_chance
from benchmark.commands.run import print_metrics
from benchmark.core.errors import UserError, checked, entry
from benchmark.core.files import read_csv, read_parquet, sha256, write_text
from benchmark.core.locks import alone, lock_of
from benchmark.core.machine import provenance
from benchmark.core.records import Costs, Record, write_record
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.data.results import RANKS, RETRIEVED, Ranks, Scores, write_arrays, write_scores
from benchmark.scoring import brought_arrays, evaluation, model_scores
from benchmark.scoring.checkpoints import computed
from benchmark.scoring.evaluation import Evaluation
from benchmark.scoring.metrics import retrieval_metrics
from benchmark.scoring.relevance import Matrices, Relevance
from benchmark.season.parameter_files import read_params, write_brought
from benchmark.season.parameters import BROUGHT, Brought, Params
from benchmark.season.presets import presets

CLAIMS = "claims"  # in metrics.json, beside the presets: their counts
SPLIT = "test"
ORDER = "score --items FOLDER lists them in order"
SHUFFLED = {  # what to check where scores are as random ones
    "embeddings": f"the order of the rows, or give ids ({ORDER})",
    "scores": f"the order of the rows and columns, or give ids ({ORDER})",
    "ranks": "the ranks and their queries",
}
FAR_BELOW = {  # and where they are far worse
    "embeddings": "are the vectors of one file negated?",
    "scores": "are these distances? The best item must have the greatest score",
    "ranks": "is the rank of the best item 0?",
}


class External(NamedTuple):
    """What was made elsewhere, and what follows from it."""

    given: str  # embeddings, scores or ranks
    files: list[Path]
    result: Evaluation
    seconds: dict[str, float] = {}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, help="a dataset of the season, prepared")
    parser.add_argument("--name", help="what the row is called")
    parser.add_argument("--images", type=Path, metavar="FILE", help="embeddings of the test images")
    parser.add_argument("--captions", type=Path, metavar="FILE", help="and of the test captions")
    parser.add_argument("--matrix", type=Path, metavar="FILE", help="scores (images, captions)")
    parser.add_argument("--ranks", type=Path, metavar="FILE", help="of a tool that has only those")
    parser.add_argument("--seed", type=int, default=0, help="of the training, if there are several")
    parser.add_argument("--season", metavar="NAME", help="default: the active one")
    parser.add_argument("--items", type=Path, metavar="FOLDER", help="write the test items there")


def main(arguments: argparse.Namespace) -> None:
    params = read_params(arguments.season)
    entry(params.datasets, arguments.dataset, "dataset")
    data = prepared_tables.read(arguments.dataset)
    if arguments.items:
        write_items(params, data, arguments.items)
        return
    row = row_of(params, arguments)
    external = judge(arguments, data)
    folder, metrics = Path(row.folder), external.result.metrics
    with alone(lock_of(row.folder), f"score {row.key}"):
        write_scores(folder / RANKS, external.result.scores)
        write_arrays(folder / RETRIEVED, external.result.retrieved)
        record = record_of(params.season, row, data, external)
        write_record(folder, record)
        write_brought(params.season, row)
    earlier = ", in the place of the row of this name and seed" * (row.key in params.brought)
    print(f"{folder}/record.json: external {external.given}{earlier}")
    print_metrics(metrics)
    print_doubts(external, data)
    print(f"next: rematch report --season {params.season}, or dvc repro")


def print_doubts(external: External, data: Prepared) -> None:
    """What may be wrong with scores that are as random ones, or far worse."""
    given, scores = external.given, external.result.scores
    if given == "ranks" and all(ranks.best.min() > 0 for ranks in scores.ranks.values()):
        print("no rank is 0: are these positions, from 1? Ranks count from 0")
    rsum, ways = external.result.metrics.get("rsum"), len(data.card["ways"])
    if rsum is None:
        return
    images = choices_of(data.split(SPLIT).group_of_image)
    by_chance = chance(ways, images)
    if rsum < by_chance / NEAR_CHANCE:
        print(f"far below chance: rsum {rsum:.1f}, random {by_chance:.1f}; {FAR_BELOW[given]}")
    elif doubt := near_chance(rsum, ways, images):
        print(f"near chance: {doubt}; check {SHUFFLED[given]}")


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
    try:
        if arguments.ranks:
            return of_ranks(arguments.ranks, data)
        if arguments.matrix:
            return of_matrix(arguments.matrix, data)
        return of_embeddings(*pair, data)
    except scoring.RefusedError as error:
        where = ", ".join(map(str, pair)) or arguments.matrix
        raise UserError(where, "scores that can be ranked", error, "compute them again") from error


def of_embeddings(images: Path, captions: Path, data: Prepared) -> External:
    """By their cosines; other scores are given as a matrix."""
    given, wanted, vectors = [*map(brought_arrays.read_rows, (images, captions))], _ids(data), []
    if not any(map(_fits, given, wanted)) and all(map(_fits, given, wanted[::-1])):
        found = f"captions in {images}, images in {captions}"
        do = f"swap them: --images {captions} --captions {images}"
        raise UserError("--images, --captions", "the images first", found, do)
    for rows, what, ids in zip(given, ("image", "caption"), wanted, strict=True):
        if rows.ids is None and len(rows.values) != len(ids) == rows.values.shape[1]:
            expected = f"one row for each of {len(ids)} items"
            raise UserError(rows.path, expected, "one column for each", "transpose it")
        vectors.append(_units(brought_arrays.in_order(rows, ids, what), rows.path, ids))
    first, second = vectors
    if first.shape[1] != second.shape[1]:
        expected = f"vectors of {first.shape[1]} numbers, as of the images"
        raise UserError(captions, expected, second.shape[1], "bring both from the same model")
    started = perf_counter()
    pair = (torch.from_numpy(first),), (torch.from_numpy(second),)
    matrix = model_scores.score_pairs(lambda some, others: some[0] @ others[0].T, *pair).numpy()
    seconds = {"per_pair": (perf_counter() - started) / matrix.size}
    return External("embeddings", [images, captions], _evaluated(matrix, data), seconds)


def of_matrix(path: Path, data: Prepared) -> External:
    rows, (images, captions) = brought_arrays.read_rows(path), _ids(data)
    shape = len(images), len(captions)
    if rows.values.shape == shape[::-1] != shape:
        expected = f"{shape[0]} images (rows) by {shape[1]} captions (columns)"
        raise UserError(path, expected, "captions by images", "transpose it")
    matrix = brought_arrays.matrix_in_order(rows, images, captions)
    return External("scores", [path], _evaluated(matrix, data))


def of_ranks(path: Path, data: Prepared) -> External:
    table = read_parquet(path) if path.suffix == ".parquet" else read_csv(path, str)
    if {"direction", "query", "rank"} - set(table):
        found = ", ".join(map(str, table.columns))
        raise UserError(path, "the columns direction, query, rank", found, "name them so")
    images, captions = _ids(data)
    queries, items = {"i2t": images, "t2i": captions}, {"i2t": len(captions), "t2i": len(images)}
    ranks = {}
    for way in data.card["ways"]:
        of_way = table[table["direction"] == way]
        of_way = of_way.set_index(of_way["query"].astype(str))["rank"]
        missing = [name for name in queries[way] if name not in of_way.index]
        if missing or len(of_way) != len(queries[way]):
            expected = f"one row for each of the {len(queries[way])} test queries"
            found = f"{len(of_way)} rows" + "".join(f", none for {x!r}" for x in missing[:1])
            raise UserError(f"{path}: {way}", expected, found, ORDER)
        given = of_way.loc[queries[way]]
        values = pd.to_numeric(given, errors="coerce").to_numpy(np.float64)
        wrong = ~((values >= 0) & (values < items[way]) & (values % 1 == 0))
        if wrong.any():
            query, value = queries[way][wrong.argmax()], given.iloc[wrong.argmax()]
            expected = f"whole ranks from 0 below {items[way]}"
            value = "nothing" if pd.isna(value) else value
            found = f"{value} for {query!r} ({wrong.sum()} such)"
            raise UserError(f"{path}: {way}", expected, found, "correct them")
        ranks[way] = Ranks.of_best(values)
    result = Evaluation(metrics=retrieval_metrics(ranks), scores=Scores(ranks=ranks))
    return External("ranks", [path], result)


def _evaluated(matrix: np.ndarray, data: Prepared) -> Evaluation:
    split, card = data.split(SPLIT), data.card
    relevance = Relevance.of(split.group_of_image, split.image_of_caption, card["folds"])
    return evaluation.of_retrieval(Matrices(i2t=matrix), relevance, card["ways"])


def _fits(rows: brought_arrays.Rows, ids: list[str]) -> bool:
    """Whether the rows can be those of these items."""
    if rows.ids is None:
        return len(rows.values) == len(ids)
    return not set(ids).isdisjoint(rows.ids)


def _units(vectors: np.ndarray, path: Path, ids: list[str]) -> np.ndarray:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not lengths.all():
        first, count = int(lengths.argmin()), int((lengths == 0).sum())
        found = f"zeros alone for {ids[first]!r}, item {first} of test ({count} such vectors)"
        raise UserError(path, "vectors that have a direction", found, "correct them")
    return (vectors / lengths).astype(np.float32)


def _ids(data: Prepared) -> tuple[list[str], list[str]]:
    """Of the test images and captions, in the split's order."""
    split = data.split(SPLIT)
    images = data.images["image_id"].iloc[split.image_rows].tolist()
    return images, data.captions["caption_id"].iloc[split.caption_rows].tolist()


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
        deviations=[f"external {external.given}, not trained here: {', '.join(lines)}"],
        parameters=0,
        selected_epoch=None,
        status="ok",
        metrics=external.result.metrics,
        numerics=computed(),
        files={name: sha256(folder / name) for name in (RANKS, RETRIEVED)},
        cost=Costs(scoring=cost),
    )
