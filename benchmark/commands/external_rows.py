"""The row of a season's leaderboard whose embeddings, scores or ranks were made
elsewhere."""

import hashlib
from pathlib import Path

from benchmark import scoring
from benchmark.commands.external_scores import SPLIT, External, ReadingOptions
from benchmark.core.command_line import alone, lock_of
from benchmark.core.errors import UserError, checked
from benchmark.core.files import sha256
from benchmark.core.records import Costs, Record
from benchmark.data import results
from benchmark.data.prepared_tables import Prepared
from benchmark.data.results import CellResult
from benchmark.season.parameter_files import write_brought
from benchmark.season.parameters import BROUGHT, Brought, Params
from benchmark.season.plugins import presets

CLAIMS = "claims"  # in metrics.json, beside the presets: their counts


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
        write_brought(params.season, row)
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
    from benchmark.scoring.checkpoints import computed

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
        options=options,
        scaled=[],
        image_features=encoder | {"weights": weights},
        text_features=encoder | {"vectors": vectors},
        parameters=0,
        selected_epoch=None,
        status="ok",
        metrics=external.result.metrics,
        numerics=computed(),
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
    """What a record calls these files: with their folders where two share a name."""
    names = [path.name for path in files]
    if len(set(names)) == len(names):
        return names
    return [f"{path.parent.name}/{path.name}" for path in files]
