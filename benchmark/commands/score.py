"""Judge embeddings, scores or ranks that were made elsewhere, as a row of a season's leaderboard.

    python -m benchmark score --dataset pets --items FOLDER       what to embed, in which order
    python -m benchmark score --dataset pets --name siglip --images a.npy --captions b.npy
    python -m benchmark score --dataset pets --name mine --matrix scores.npz
    python -m benchmark score --dataset pets --name other --ranks ranks.csv

Nothing is trained. Arrays are .npy, .npz, .parquet or .safetensors: embeddings (N, F) of the test
images and captions, or scores (images, captions). Rows belong to ids where the file has some (`ids`
in .npz, a column `id` in .parquet, or NAME_ids.txt beside it), else they are in the test split's
order. Ranks are a .csv or .parquet with the columns direction (i2t or t2i), query (its id) and
either rank, from 0, or position, from 1, of the best relevant item.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import torch

from benchmark import protocol
from benchmark.analysis import image_noise
from benchmark.analysis.departures import near_chance
from benchmark.commands.metric_lines import print_metrics
from benchmark.core.array_files import read_csv, read_parquet
from benchmark.core.errors import UserError
from benchmark.core.files import sha256, write_text
from benchmark.core.locks import alone, lock_of
from benchmark.core.machine import provenance
from benchmark.core.names import checked_name
from benchmark.core.provenance import write_provenance
from benchmark.core.records import Record, write_record
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.evaluate import evaluation
from benchmark.evaluate.__main__ import write_scores
from benchmark.evaluate.evaluation import SPLIT, Evaluation
from benchmark.matching import brought_arrays, scoring
from benchmark.matching.brought_arrays import Rows
from benchmark.matching.training_identity import computed
from benchmark.protocol.score_tiles import Matrices
from benchmark.season.parameter_files import entry, read_params, write_brought
from benchmark.season.parameters import BROUGHT, Brought, Params
from benchmark.season.presets import presets

CLAIMS = "claims"  # in metrics.json, beside the presets: their counts
CPU = torch.device("cpu")
LARGEST_SEED = 2**31 - 1
COMPARED = ("cosine", "dot")
ROWS = "that row i belongs to item i of `score --items FOLDER`, or give ids"
COLUMNS = "direction, query, and rank (from 0) or position (from 1)"


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What was brought along and what follows from it."""

    given: str  # embeddings, scores or ranks
    files: list[Path]
    result: Evaluation
    seconds: dict[str, float]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, help="a dataset of the season, prepared")
    parser.add_argument("--name", help="what the row is called")
    parser.add_argument("--images", type=Path, metavar="FILE", help="embeddings of the test images")
    parser.add_argument("--captions", type=Path, metavar="FILE", help="and of the test captions")
    parser.add_argument("--compare", choices=COMPARED, default="cosine", help="of embeddings")
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
    row = _row(params, arguments)
    judged = judge(arguments, data)
    folder = Path(row.folder)
    with alone(lock_of(row.folder), f"score {row.key}"):
        files = write_scores(folder, judged.result)
        write_record(folder, _record(params.season, row, arguments.compare, data, judged, files))
        write_provenance(folder / "scores/cost.json", provenance(CPU, judged.seconds, "float32"))
        write_brought(params.season, row)
    earlier = ", in the place of the row of this name and seed" * (row.key in params.brought)
    print(f"{folder}/record.json: {judged.given} brought along{earlier}")
    print_metrics(judged.result.metrics)
    for line in _doubts(judged, data):
        print(line)
    print(f"next: python -m benchmark report --season {params.season}, or dvc repro")


def judge(arguments: argparse.Namespace, data: Prepared) -> Judged:
    """The evaluation of what was brought along. Raises UserError for what cannot be judged."""
    pair = [path for path in (arguments.images, arguments.captions) if path]
    given = [len(pair) == 2, arguments.matrix is not None, arguments.ranks is not None]
    if len(pair) == 1 and not any(given):
        has, lacks = ("images", "captions") if arguments.images else ("captions", "images")
        expected, found = "--images with --captions", f"--{has} alone"
        raise UserError("score", expected, found, f"add --{lacks} FILE, their embeddings")
    if sum(given) != 1 or len(pair) == 1:
        expected = "--images with --captions, or --matrix, or --ranks"
        found = "several of them" if any(given) else "none of them"
        raise UserError("score", expected, found, "name one kind of file")
    try:
        if arguments.ranks:
            return _of_ranks(arguments.ranks, data)
        if arguments.matrix:
            return _of_matrix(arguments.matrix, data)
        return _of_embeddings(arguments.images, arguments.captions, arguments.compare, data)
    except protocol.RefusedError as error:
        where = ", ".join(map(str, pair)) or arguments.matrix
        raise UserError(where, "scores that can be ranked", error, "compute them again") from error


def _doubts(judged: Judged, data: Prepared) -> list[str]:
    """What is said of scores that are as random ones."""
    rsum = judged.result.metrics.get("rsum")
    images = image_noise.choices_of(data.split(SPLIT).group_of_image)
    doubt = "" if rsum is None else near_chance(rsum, len(data.card["ways"]), images)
    if not doubt:
        return []
    check = "the ranks and their queries" if judged.given == "ranks" else ROWS
    return [f"near chance: {doubt}; check {check}"]


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


def _row(params: Params, arguments: argparse.Namespace) -> Brought:
    if arguments.name is None:
        raise UserError("--name", "what the row is called", "nothing", "add --name NAME")
    name = checked_name(arguments.name, "--name")
    cells = [*params.cells.values(), *params.fusions.values()]
    if name in presets() or name in {cell.preset for cell in cells}:
        raise UserError("--name", "a name that no preset has", repr(name), "give it another name")
    if name == CLAIMS:
        expected = "a name that reports do not keep for themselves"
        raise UserError("--name", expected, repr(name), "give it another name")
    if not 0 <= arguments.seed <= LARGEST_SEED:
        raise UserError("--seed", f"0 to {LARGEST_SEED}", arguments.seed, "correct it")
    dataset, seed = arguments.dataset, arguments.seed
    folder = f"results/{params.season}/{dataset}/{name}/{seed}"
    row = Brought(dataset=dataset, preset=name, seed=seed, folder=folder)
    others = {**params.cells, **params.fusions, **params.brought}
    other = others.get(row.key)
    if other and (other.dataset, other.preset) != (dataset, name):
        expected = f"a name that makes a key of its own with {dataset}"
        found = f"{row.key}, the key of {other.preset} on {other.dataset}"
        raise UserError("--name", expected, found, "give it another name")
    return row


# Embeddings, scores, ranks ------------------------------------------------------------------------


def _of_embeddings(images: Path, captions: Path, compare: str, data: Prepared) -> Judged:
    image_ids, caption_ids = _ids(data)
    of_images, of_captions = map(brought_arrays.read_rows, (images, captions))
    _check_roles(of_images, of_captions, image_ids, caption_ids)
    first = brought_arrays.in_order(of_images, image_ids, "image")
    second = brought_arrays.in_order(of_captions, caption_ids, "caption")
    if first.shape[1] != second.shape[1]:
        expected = f"vectors of {first.shape[1]} numbers, as of the images"
        raise UserError(captions, expected, second.shape[1], "bring both from the same model")
    if compare == "cosine":
        first = _units(first, images, image_ids)
        second = _units(second, captions, caption_ids)
    started = perf_counter()
    matrix = scoring.score_pairs(
        lambda some, others: some[0] @ others[0].T,
        (torch.from_numpy(first),),
        (torch.from_numpy(second),),
    ).numpy()
    seconds = {"per_pair": (perf_counter() - started) / matrix.size}
    result = _evaluated(matrix, data)
    return Judged(given="embeddings", files=[images, captions], result=result, seconds=seconds)


def _of_matrix(path: Path, data: Prepared) -> Judged:
    rows, (images, captions) = brought_arrays.read_rows(path), _ids(data)
    shape = (len(images), len(captions))
    if rows.ids is None and rows.values.shape == shape[::-1] != shape:
        expected = f"{shape[0]} images (rows) by {shape[1]} captions (columns)"
        raise UserError(path, expected, "captions by images", "transpose it")
    matrix = brought_arrays.matrix_in_order(rows, images, captions)
    return Judged(given="scores", files=[path], result=_evaluated(matrix, data), seconds={})


def _of_ranks(path: Path, data: Prepared) -> Judged:
    image_ids, caption_ids = _ids(data)
    queries, items = {"i2t": image_ids, "t2i": caption_ids}, {"i2t": caption_ids, "t2i": image_ids}
    table = _rank_table(path)
    ranks = {
        way: _ranks(path, table, way, queries[way], len(items[way])) for way in data.card["ways"]
    }
    result = Evaluation(
        metrics=protocol.retrieval_metrics(ranks),
        ranks={way: (np.array(queries[way]), ranks_Q) for way, ranks_Q in ranks.items()},
    )
    return Judged(given="ranks", files=[path], result=result, seconds={})


def _evaluated(matrix: np.ndarray, data: Prepared) -> Evaluation:
    return evaluation.of_retrieval(Matrices(i2t=matrix), data, data.split(SPLIT))


def _check_roles(images: Rows, captions: Rows, image_ids: list, caption_ids: list) -> None:
    """Refuse files in each other's place, and vectors that are columns."""
    swapped = _fits(images, caption_ids) and _fits(captions, image_ids)
    if swapped and not _fits(images, image_ids) and not _fits(captions, caption_ids):
        found = f"captions in {images.path}, images in {captions.path}"
        do = f"swap them: --images {captions.path} --captions {images.path}"
        raise UserError("--images, --captions", "the images first", found, do)
    for rows, ids in ((images, image_ids), (captions, caption_ids)):
        if rows.ids is None and len(rows.values) != len(ids) == rows.values.shape[1]:
            expected, found = f"one row for each of {len(ids)} items", "one column for each"
            raise UserError(rows.path, expected, found, "transpose it")


def _fits(rows: Rows, ids: list[str]) -> bool:
    """Whether the rows can be those of these items."""
    if rows.ids is None:
        return len(rows.values) == len(ids)
    return not set(ids).isdisjoint(rows.ids)


def _units(vectors: np.ndarray, path: Path, ids: list[str]) -> np.ndarray:
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not lengths.all():
        first, count = int(lengths.argmin()), int((lengths == 0).sum())
        found = f"zeros alone for {ids[first]!r}, item {first} of test ({count} such vectors)"
        raise UserError(path, "vectors that have a direction", found, "use --compare dot")
    return (vectors / lengths).astype(np.float32)


def _ids(data: Prepared) -> tuple[list[str], list[str]]:
    """Of the test images and captions, in the split's order."""
    split = data.split(SPLIT)
    images = data.images["image_id"].iloc[split.image_rows].tolist()
    return images, data.captions["caption_id"].iloc[split.caption_rows].tolist()


def _rank_table(path: Path) -> pd.DataFrame:
    if path.suffix not in (".csv", ".parquet"):
        raise UserError(path, "a .csv or .parquet file", path.suffix or "no ending", "save it so")
    try:
        table = read_csv(path, str) if path.suffix == ".csv" else read_parquet(path)
    except UserError as error:
        raise UserError(path, error.expected, error.found, "save it again") from error
    if {"direction", "query"} - set(table) or ("rank" in table) == ("position" in table):
        found = ", ".join(map(str, table.columns))
        raise UserError(path, f"the columns {COLUMNS}", found, "name them so")
    if "position" in table:
        table["rank"] = pd.to_numeric(table["position"], errors="coerce") - 1
    return table


def _ranks(path: Path, table: pd.DataFrame, way: str, queries: list[str], items: int) -> np.ndarray:
    """The ranks (Q,) of a direction in the order of its queries."""
    of_way = table[table["direction"] == way].assign(query=lambda t: t["query"].astype(str))
    if len(of_way) != len(queries) or set(of_way["query"]) != set(queries):
        missing = next((name for name in queries if name not in set(of_way["query"])), None)
        found = f"{len(of_way)} rows" + (f", none for {missing!r}" if missing else "")
        expected = f"one row for each of the {len(queries)} test queries"
        raise UserError(f"{path}: {way}", expected, found, "score --items FOLDER lists them")
    ordered = of_way.set_index("query")["rank"].loc[queries]
    ranks = pd.to_numeric(ordered, errors="coerce").to_numpy(np.float64)
    if not ((ranks >= 0) & (ranks < items) & (ranks % 1 == 0)).all():
        raise UserError(f"{path}: {way}", f"whole ranks from 0 below {items}", "others", "correct")
    return ranks.astype(np.int64)


# Record -------------------------------------------------------------------------------------------


def _names(files: Sequence[Path]) -> list[str]:
    """Of the files alone; with their folders where two are called alike."""
    names = [path.name for path in files]
    are_apart = len(set(names)) == len(names)
    return names if are_apart else [f"{path.parent.name}/{path.name}" for path in files]


def _record(
    season: str,
    row: Brought,
    compare: str,
    data: Prepared,
    judged: Judged,
    files: dict[str, str],
) -> Record:
    split, names = data.split(SPLIT), _names(judged.files)
    digests = [sha256(path) for path in judged.files]
    first = {"file": names[0], "sha256": digests[0]}
    lines = [f"{name}, sha256 {digest[:12]}" for name, digest in zip(names, digests, strict=True)]
    options = {"given": judged.given, "files": dict(zip(names, digests, strict=True))}
    if judged.given == "embeddings":
        options["compared"] = compare
    return Record(
        protocol_version=protocol.VERSION,
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
        options=options,
        scaled=[],
        image_features={"encoder": f"{row.preset}, brought along", "weights": first},
        text_features={"encoder": f"{row.preset}, brought along", "vectors": lines[-1]},
        deviations=[f"{judged.given} brought along, not trained here: {', '.join(lines)}"],
        parameters=0,
        selected_epoch=None,
        status="ok",
        metrics=protocol.with_formula_versions(judged.result.metrics),
        numerics=computed(),
        files=files,
    )
