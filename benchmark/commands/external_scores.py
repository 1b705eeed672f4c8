"""What was made elsewhere and is judged as every row: embeddings, scores or ranks of
the test split; and its row of a season's leaderboard."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.core.command_line import alone, lock_of
from benchmark.core.errors import UserError, checked, short
from benchmark.core.files import sha256
from benchmark.core.records import Costs, Record
from benchmark.data import results
from benchmark.data.prepared_tables import Prepared
from benchmark.data.results import CellResult
from benchmark.features import embedding_files
from benchmark.features.embedding_files import ORDER, Rows
from benchmark.scoring.evaluation import Evaluation
from benchmark.season.parameter_files import add_brought
from benchmark.season.parameters import BROUGHT, Brought, Params
from benchmark.season.plugins import presets, versions

SPLIT = "test"
QUERIES = {"i2t": "images", "t2i": "captions"}  # of a direction
FAR_APART = 0.1  # of the spread of numbers: more than rounding makes of equal captions
CLAIMS = "claims"  # in metrics.json, beside the presets: their counts


class Given(StrEnum):
    """What the files hold."""

    EMBEDDINGS = "embeddings"
    SCORES = "scores"
    RANKS = "ranks"


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What the options say of how files are read; what they leave open, a file must
    show by itself."""

    numbers: str | None = None  # what whole numbers stand for
    first_rank: int | None = None  # 0 or 1, of the best item
    not_found: str | None = None  # the rank of what was not found
    depth: int = 0  # items in the list of each query; 0: not known
    order: str = ORDER  # the command that writes the items in their order

    @property
    def facts(self) -> dict[str, object]:
        """The options that differ from their defaults, for a record."""
        options = {
            "numbers": self.numbers,
            "first_rank": self.first_rank or None,
            "not_found": self.not_found,
            "depth": self.depth or None,
        }
        return {name: value for name, value in options.items() if value is not None}


AS_IT_IS = ReadingOptions()


@dataclass(frozen=True, kw_only=True)
class External:
    """What was made elsewhere, and what follows from it."""

    given: Given
    files: list[Path]
    result: Evaluation
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # what was taken for granted
    # of lists, by direction: which best items were not found, (Q,) bool
    lost: Mapping[str, np.ndarray] = field(default_factory=dict)
    # how many items the lists of a direction have, where that is known
    depths: Mapping[str, int] = field(default_factory=dict)


def names_of(data: Prepared) -> dict[str, list[list[str]]]:
    """What files may call the test images and captions: lists in the split's order."""
    split = data.split(SPLIT)
    images = data.images.iloc[split.image_rows]
    image_names = embedding_files.forms_of(images)
    # what the annotations call them beside that, as COCO's numbers
    if "imgid" in images:
        image_names.insert(3, images["imgid"].tolist())
    captions = data.captions.iloc[split.caption_rows]
    caption_names = [captions["caption_id"].tolist()]
    if "sentid" in captions:  # Karpathy's, of COCO its annotation ids
        caption_names += [captions["sentid"].astype(str).tolist()] * 3
    return {"images": image_names, "captions": caption_names}


def note_on_whole_numbers(rows: Rows, numbers: str | None) -> str:
    """How whole numbers were read."""
    return f"{rows.path}: {rows.whole}, read as {numbers or 'coordinates'}"


def notes_on_equal_captions(
    data: Prepared, rows_CF: np.ndarray, path: Path
) -> list[str]:
    """Notes on captions of several images that are equal word for word and whose rows
    of numbers are not."""
    split = data.split(SPLIT)
    texts = data.captions["text"].iloc[split.caption_rows]
    code_C = pd.factorize(texts)[0]
    first_C = np.unique(code_C, return_index=True)[1][code_C]
    is_elsewhere_C = split.group_of_caption != split.group_of_caption[first_C]
    repeats = np.flatnonzero(is_elsewhere_C)
    if not np.isfinite(rows_CF[repeats]).all():  # lists of what was retrieved
        return []
    apart = np.abs(rows_CF[repeats] - rows_CF[first_C[repeats]])
    differences = apart.max(1, initial=0)
    if not (differences > 0).any():
        return []
    example = short(texts.iloc[repeats[differences.argmax()]])
    count = int((differences > 0).sum())
    repeat = f"{path}: {count} captions repeat those of other images word for word"
    if differences.max() > FAR_APART * float(rows_CF.std()):
        doubt = "but with other numbers: is the order right?"
    else:
        doubt = "with numbers that differ by rounding, which decides their ties"
    return [f"{repeat}, such as {example}, {doubt}"]


# A row of a season --------------------------------------------------------------------


def row_of(params: Params, dataset: str, name: str | None, seed: int) -> Brought:
    """The row that is added, or written again. Raises UserError for a name that is
    taken."""
    if name is None:
        expected, advice = "what the row is called", "add --name NAME"
        raise UserError("--name", expected, "nothing", advice)
    facts = {"dataset": dataset, "preset": name, "seed": seed}
    row = checked(Brought, facts, "--name and --seed")
    cells = {**params.cells, **params.fusions}
    taken = {CLAIMS, *presets(), *(cell.preset for cell in cells.values())}
    # row b-c on a has the key of row c on a-b
    other = {**cells, **params.brought}.get(row.key)
    is_other = other is not None and (other.dataset, other.preset) != (dataset, name)
    if is_other or name in taken:
        expected = "a name that no preset and no other row has"
        raise UserError("--name", expected, repr(name), "give it another name")
    return row


def write_row(
    params: Params,
    row: Brought,
    data: Prepared,
    external: External,
    reading: ReadingOptions,
) -> Path:
    """Write the result of a row beside those of its dataset, and its name into the
    season; the file of records."""
    folder = results.RESULTS / params.season / row.dataset / results.EXTERNAL
    with alone(lock_of(str(folder)), f"score {row.key}"):
        rows = results.read_folder(folder)
        rows[row.name] = result_of(params.season, row, data, external, reading)
        results.write_external(folder, rows)
        add_brought(params.season, row)
    return folder / results.RECORDS


def result_of(
    season: str,
    row: Brought,
    data: Prepared,
    external: External,
    reading: ReadingOptions,
) -> CellResult:
    """The result of a row, which names the digests of its files."""
    import torch  # which takes seconds, as do the two below

    from benchmark.core.devices import provenance
    from benchmark.scoring.checkpoints import process_numerics

    split = data.split(SPLIT)
    arrays = {
        results.RANKS: results.scores_npz(external.result.scores),
        results.RETRIEVED: results.retrieved_npz(external.result.retrieved),
    }
    digests = dict(
        zip(_names_of(external.files), map(sha256, external.files), strict=True)
    )
    (first, sha256_of_first), *_ = digests.items()
    last, sha256_of_last = list(digests.items())[-1]
    encoder = {"encoder": f"{row.preset}, external"}
    weights = {"file": first, "sha256": sha256_of_first}
    vectors = f"{last}, sha256 {sha256_of_last[:12]}"
    options = {"given": str(external.given), "files": digests, **reading.facts}
    record = Record(
        protocol_version=versions()["protocol"],
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
        image_features=encoder | {"weights": weights},
        text_features=encoder | {"vectors": vectors},
        parameters=0,
        selected_epoch=None,
        status="ok",
        metrics=external.result.metrics,
        numerics=process_numerics(),
        files={name: hashlib.sha256(npz).hexdigest() for name, npz in arrays.items()},
    )

    cost = provenance(torch.device("cpu"), external.seconds, "float32")
    return CellResult(
        place=f"{season}/{row.dataset}/{row.name}",
        record=record,
        costs=Costs(scoring=cost),
        arrays=arrays,
    )


def _names_of(files: list[Path]) -> list[str]:
    """What a record calls these files: by their names, or where two share one, with as
    many of their folders as tell them apart."""
    depth = 1
    names = [path.name for path in files]
    while len(set(names)) < len(set(files)):
        depth += 1
        names = ["/".join(path.parts[-depth:]) for path in files]
    return names
