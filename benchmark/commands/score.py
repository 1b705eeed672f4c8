"""Score embeddings, scores or ranks that were made elsewhere, as a row of a season's
leaderboard.

    rematch score --dataset pets --items FOLDER       what to embed, in which order
    rematch score --dataset pets --name siglip --images a.npy --captions b.npy
    rematch score --dataset pets --name mine --matrix scores.npz
    rematch score --dataset pets --name other --ranks ranks.csv
    rematch score --dataset mscoco --annotations dataset_coco.json --images a.npy --captions b.npy

The last one needs neither pictures nor a season: it scores the test split that the
annotations name (of a folder without splits, all of it), with intervals and with each
layer of relevance whose files are there, and writes no row. With --items FOLDER it
writes the items of these annotations. --out FILE.parquet keeps the rank of every query,
for `rematch judge`.

--correct HOW corrects cosines for hubs, with --bank-images and --bank-captions of
training and with --k and --alpha, or --beta, as validation chose them.

Nothing is trained. Arrays are .npy, .npz, .parquet, .csv, .safetensors, .pt or .mat:
embeddings (N, F) of the test images and captions; token matrices of late interaction,
an .npz with tokens (T, F) and lengths (N,) of each side; or scores (images, captions);
of a re-ranker two matrices in one file, named i2t and t2i. Rows belong to ids where the
file has some (a column or array image_id, caption_id or the like, the index of pandas,
or NAME_ids.txt beside it), else they are in the test split's order. Whole numbers need
--numbers, which says what they stand for, unless they are int8 of both signs. In
scores, -inf stands for what was not retrieved.

Ranks of the best relevant item are a .csv or .parquet with the columns direction (i2t
or t2i), query (its id) and rank, from 0 (--first-rank 1: from 1); empty or -1 is "not
found" among the first that a tool lists (--not-found VALUE: this value, too).
"""

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmark import scoring
from benchmark.commands.annotated_split import annotated
from benchmark.commands.external_embeddings import (
    CorrectionOptions,
    are_tokens,
    of_embeddings,
    of_tokens,
)
from benchmark.commands.external_matrices import of_matrix
from benchmark.commands.external_ranks import ALL_ITEMS, NO_VALUE, of_ranks
from benchmark.commands.external_scores import (
    External,
    ReadingOptions,
    row_of,
    write_row,
)
from benchmark.commands.score_report import ScoreReport, write_items, write_ranks
from benchmark.contracts import datasets
from benchmark.core.command_line import JSON, TEXT, add_format
from benchmark.core.errors import UserError, entry
from benchmark.core.files import json_text
from benchmark.data import prepared_tables
from benchmark.data.prepared_tables import Prepared
from benchmark.data.raw_files import raw_dataset
from benchmark.features import number_formats
from benchmark.scoring.corrections import BANK
from benchmark.season.parameter_files import read_params

BANKS = ("bank_images", "bank_captions")
TAKES = {  # correction -> arguments; all are needed
    "nnn": (*BANKS, "k", "alpha"),
    "inverted_softmax": (*BANKS, "beta"),
    "qb_norm": (*BANKS, "beta"),
    "dual_softmax": ("beta",),
}
KINDS = {  # of files -> the options that name them
    "embeddings": "--images with --captions",
    "matrix": "--matrix",
    "ranks": "--ranks",
}
OF_ITEMS = ("dataset", "annotations", "season", "items")  # what --items goes with
DEFAULTS = {"seed": 0, "format": TEXT}  # of other options; of the rest None
LARGEST = 2**31 - 1  # whole number of an option, as of a seed in a season
RANGES = {  # of what corrections take: beyond it scores overflow, or become equal
    "k": (1, BANK),
    "alpha": (-1e6, 1e6),
    "beta": (1e-6, 1e6),
}
MOST_OF_DUAL = 300  # beta whose exponentials of cosines are still above 0
TAKEN_WITH = {  # option -> the kinds of files that it is about
    "correct": ("embeddings",),
    "depth": ("ranks", "matrix"),
    "numbers": ("embeddings", "matrix"),
    "first_rank": ("ranks",),
    "not_found": ("ranks",),
}


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--dataset", required=True, help="a dataset of the season, or a reader")
    add(
        "--annotations",
        type=Path,
        metavar="FILE",
        help="score against this file, without a season",
    )
    add("--out", type=Path, metavar="FILE", help="write all ranks to this .parquet")
    add("--name", help="name of the row")
    add("--images", type=Path, metavar="FILE", help="embeddings of the test images")
    add("--captions", type=Path, metavar="FILE", help="embeddings of the test captions")
    add("--correct", choices=sorted(TAKES), help="correct the cosines for hubs")
    for name in ("bank-images", "bank-captions"):
        add(f"--{name}", type=Path, metavar="FILE", help=needed_by(name))
    for name, kind in (("k", int), ("alpha", float), ("beta", float)):
        add(f"--{name}", type=kind, help=needed_by(name))
    add("--matrix", type=Path, metavar="FILE", help="scores (images, captions)")
    add("--ranks", type=Path, metavar="FILE", help="ranks, if scores are unavailable")
    add("--depth", type=int, help="list length per query behind --ranks or --matrix")
    add(
        "--first-rank",
        type=int,
        choices=(0, 1),
        help="rank of the best item in --ranks; default: 0",
    )
    add(
        "--not-found",
        metavar="VALUE",
        help=f"rank of what was not found; {ALL_ITEMS}: the size of the gallery; "
        f"{NO_VALUE}: no value",
    )
    add(
        "--numbers",
        choices=number_formats.FORMATS,
        help="what whole numbers of a file stand for",
    )
    add("--seed", type=int, default=0, help="seed of the training; default: 0")
    add("--season", metavar="NAME", help="default: the active one")
    add("--items", type=Path, metavar="FOLDER", help="write the test items there")
    add_format(parser)


def needed_by(option: str) -> str:
    """The help of an option of corrections."""
    name = option.replace("-", "_")
    takers = ", ".join(how for how in sorted(TAKES) if name in TAKES[how])
    return f"required by --correct {takers}"


def main(arguments: argparse.Namespace) -> None:
    if arguments.out and arguments.out.suffix != ".parquet":
        raise UserError("--out", "a .parquet file", arguments.out.name, "name it so")
    if arguments.annotations:
        score_annotations(arguments)
    else:
        score_in_season(arguments)


def score_annotations(arguments: argparse.Namespace) -> None:
    """Score the test split of annotations, without a season; no row is written."""
    for name in ("season", "name"):
        if getattr(arguments, name):
            advice = f"leave out --annotations or --{name}"
            raise UserError(f"--{name}", "no --annotations", "both", advice)
    data = annotated(arguments.dataset, arguments.annotations)
    if arguments.items:
        check_items_alone(arguments)
        write_items(data, arguments.annotations.parent, arguments.items)
        return
    score_and_show(arguments, data)


def score_in_season(arguments: argparse.Namespace) -> None:
    """Score the test split of a season's dataset, and write the row."""
    with suggesting_annotations(arguments.dataset):
        params = read_params(arguments.season)
        entry(params.datasets, arguments.dataset, "dataset")
    raw = raw_dataset(params, arguments.dataset)
    with suggesting_annotations(raw.reader):
        data = prepared_tables.read(arguments.dataset)
    if arguments.items:
        check_items_alone(arguments)
        write_items(data, raw.folder, arguments.items)
        return
    row = row_of(params, arguments.dataset, arguments.name, arguments.seed)
    external = score_and_show(arguments, data)
    if "rsum" not in external.result.metrics:
        tell(arguments, "no row is written: leaderboards need R@10 of every query")
        return
    path = write_row(params, row, data, external, reading_of(arguments))
    replaced = ""
    if row.key in params.brought:
        replaced = ", replacing the row of this name and seed"
    tell(arguments, f"{path}: {row.name}, external {external.given}{replaced}")
    tell(arguments, f"next: rematch report {params.season}, or dvc repro")


def score_and_show(arguments: argparse.Namespace, data: Prepared) -> External:
    """Evaluate the files, write the ranks if --out says where, and print the result."""
    external = evaluate(arguments, data)
    if arguments.out:
        write_ranks(arguments.out, arguments.seed, data, external)
    report = ScoreReport(data, external, advice_on_order(arguments))
    if arguments.format == JSON:
        print(json_text(report.facts()), end="")
    else:
        report.show()
    if arguments.out:
        tell(arguments, f"{arguments.out}: the rank of every query")
    return external


def tell(arguments: argparse.Namespace, line: str) -> None:
    """Print what was done; beside facts for programs, where they do not read it."""
    print(line, file=sys.stderr if arguments.format == JSON else sys.stdout)


@contextmanager
def suggesting_annotations(reader: str) -> Iterator[None]:
    """Errors tell of --annotations, if a reader is called so."""
    try:
        yield
    except UserError as error:
        if reader not in datasets.names():
            raise
        advice = f"add --annotations FILE, which needs no season; or {error.do}"
        raise error.but(do=advice) from error


def check_items_alone(arguments: argparse.Namespace) -> None:
    """Raise UserError where --items comes with what it makes possible."""
    for name, value in vars(arguments).items():
        is_default = value is None or DEFAULTS.get(name) == value
        if name not in OF_ITEMS and not is_default:
            option = option_of(name)
            advice = f"run --items first, then add {option}"
            raise UserError("--items", "a folder alone", f"{option}, too", advice)


# Options ------------------------------------------------------------------------------


def evaluate(arguments: argparse.Namespace, data: Prepared) -> External:
    """Evaluate the files that the options name. Raises UserError for what cannot be
    evaluated."""
    kind = kind_of(arguments)
    check_options(arguments, kind)
    reading = reading_of(arguments)
    if kind == "ranks":
        return of_ranks(arguments.ranks, data, reading)
    files = [arguments.matrix]
    if kind == "embeddings":
        files = [arguments.images, arguments.captions]
    is_row = arguments.annotations is None
    try:
        if kind == "matrix":
            return of_matrix(arguments.matrix, data, reading, is_row)
        if any(map(are_tokens, files)):
            for name in ("correct", "numbers"):
                if vars(arguments)[name] is not None:
                    option, expected = option_of(name), "vectors, one for each item"
                    advice = f"remove {option}"
                    raise UserError(option, expected, "token matrices", advice)
            return of_tokens(*files, data, reading, is_row)
        correction = correction_of(arguments)
        return of_embeddings(*files, data, reading, correction, is_row)
    except scoring.RefusedError as error:
        where, expected = ", ".join(map(str, files)), "scores that can be ranked"
        raise UserError(where, expected, error, "compute them again") from error


def kind_of(arguments: argparse.Namespace) -> str:
    """The kind of the files, one of KINDS. Raises UserError for none, for several, and
    for one file of a pair."""
    images, captions = arguments.images, arguments.captions
    given = {
        "embeddings": images or captions,
        "matrix": arguments.matrix,
        "ranks": arguments.ranks,
    }
    kinds = [kind for kind, file in given.items() if file]
    if not kinds:
        found = "none of them"
    elif len(kinds) > 1:
        found = "several kinds"
    elif images and not captions:
        found = "--images alone"
    elif captions and not images:
        found = "--captions alone"
    else:
        return kinds[0]
    expected = ", or ".join(KINDS.values())
    raise UserError("score", expected, found, "name the files of one kind")


def check_options(arguments: argparse.Namespace, kind: str) -> None:
    """Raise UserError for options that are about files of another kind, or about
    another correction, and for numbers that are too small or too large."""
    for name, least in (("depth", 1), ("seed", 0)):
        value = vars(arguments)[name]
        if value is not None and not least <= value <= LARGEST:
            expected = f"a whole number from {least} to {LARGEST}"
            raise UserError(option_of(name), expected, value, "correct it")
    for name, kinds in TAKEN_WITH.items():
        if vars(arguments)[name] is not None and kind not in kinds:
            expected = " or ".join(KINDS[other] for other in kinds)
            option = option_of(name)
            raise UserError(option, expected, KINDS[kind], f"remove {option}")
    taken = TAKES.get(arguments.correct, ())
    for name in (*BANKS, "k", "alpha", "beta"):
        if vars(arguments)[name] is not None and name not in taken:
            actual = arguments.correct or "none"
            option = option_of(name)
            expected = f"a --correct that takes {option}"
            raise UserError(option, expected, actual, f"remove {option}")


def option_of(name: str) -> str:
    """The option of an argument."""
    return f"--{name.replace('_', '-')}"


def reading_of(arguments: argparse.Namespace) -> ReadingOptions:
    """How files are read."""
    return ReadingOptions(
        numbers=arguments.numbers,
        first_rank=arguments.first_rank,
        not_found=arguments.not_found,
        depth=arguments.depth or 0,
        order=advice_on_order(arguments),
    )


def advice_on_order(arguments: argparse.Namespace) -> str:
    """The command that writes the test items, in a sentence."""
    words = ["rematch", "score", "--dataset", arguments.dataset]
    if arguments.annotations:
        words += ["--annotations", str(arguments.annotations)]
    if arguments.season:
        words += ["--season", arguments.season]
    command = shlex.join([*words, "--items", "FOLDER"])
    return f"{command} writes the ids that are wanted, in order"


def correction_of(arguments: argparse.Namespace) -> CorrectionOptions | None:
    """How cosines are corrected. Raises UserError where a number or a bank is
    missing, and for a number out of its range."""
    how = arguments.correct
    if how is None:
        return None
    given = {name: vars(arguments)[name] for name in TAKES[how]}
    for name, value in given.items():
        option = option_of(name)
        if value is None:
            expected = " and ".join(map(option_of, given))
            raise UserError(f"--correct {how}", expected, f"no {option}", "add it")
        if name not in RANGES:
            continue
        least, most = RANGES[name]
        if how == "dual_softmax":
            most = MOST_OF_DUAL
        if not least <= value <= most:
            expected = f"a number from {least:g} to {most:g}"
            raise UserError(option, expected, value, "correct it")
    return CorrectionOptions(
        how=how,
        parameters={name: given[name] for name in TAKES[how] if name not in BANKS},
        banks=[given[name] for name in BANKS if name in given],
        seed=arguments.seed,
    )
