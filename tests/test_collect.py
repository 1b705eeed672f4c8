"""What git keeps of the cells of a dataset: the stage `collect`."""

from pathlib import Path

import pytest
from builders import cost, record
from refusals import refused

from benchmark.collect.__main__ import collect
from benchmark.core.files import write_bytes
from benchmark.core.records import RECORD, Costs, Record, read_all, write_record
from benchmark.data import results
from benchmark.data.results import (
    KEPT_FILES,
    RANKS,
    RECORDS,
    RETRIEVED,
    CellResult,
)
from benchmark.season.parameters import Fusion, Params
from seasons import params_of

FOLDER = Path("results/try/made")
pytestmark = pytest.mark.usefixtures("empty_folder")


def cell(preset: str, seed: int = 0, dataset: str = "made") -> Fusion:
    """Any cell: what it scores is of no account here."""
    place = f"try/{dataset}/{preset}/{seed}"
    facts = {"dataset": dataset, "preset": preset, "seed": seed, "how": "average"}
    return Fusion(**facts, members=[], parts=[], folder=f"data/cells/{place}")


def season(*cells: Fusion) -> Params:
    datasets = {each.dataset: {} for each in cells}
    return params_of(datasets=datasets, fusions={each.key: each for each in cells})


def evaluate(of: Fusion, seconds: float, rsum: float = 1.0, **facts: object) -> Record:
    folder = Path(of.folder)
    made = record(of.preset, of.seed, metrics={"rsum": rsum}, **facts)
    write_bytes(folder / RANKS, f"ranks {rsum}".encode())
    write_record(folder, made)
    costs = Costs(scoring=cost(per_pair=seconds))
    results.write_cell_costs(Path(of.costs), folder / RECORD, costs)
    return made


def kept_bytes() -> dict[str, bytes]:
    return {name: (FOLDER / name).read_bytes() for name in KEPT_FILES}


def seconds_of(name: str) -> float:
    return results.read_kept("try", "made")[name].costs.scoring.seconds["per_pair"]


def test_a_repetition_with_equal_results_changes_no_byte():
    a, b = cell("a"), cell("b")
    params = season(a, b)
    for each in (a, b):
        evaluate(each, seconds=1.0)
    collect(params, "made")
    before = kept_bytes()
    for each in (a, b):
        evaluate(each, seconds=2.0)
    collect(params, "made")
    assert kept_bytes() == before
    evaluate(a, seconds=3.0, rsum=9.0)  # another result has its own costs
    collect(params, "made")
    assert seconds_of("a/0") == 3.0 and seconds_of("b/0") == 1.0
    result = results.read_kept("try", "made")["a/0"]
    assert result.record.metrics == {"rsum": 9.0} and result.npz(RANKS) == b"ranks 9.0"


def test_an_earlier_result_that_comes_back_has_the_costs_of_its_own_run():
    a = cell("a")
    folder = Path(a.folder)
    evaluate(a, seconds=1.0, rsum=1.0)
    first = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    evaluate(a, seconds=2.0, rsum=2.0)
    collect(season(a), "made")
    for path, content in first.items():  # as DVC's run cache brings it
        path.write_bytes(content)
    collect(season(a), "made")
    assert seconds_of("a/0") == 1.0


def test_cells_that_were_not_run_here_stay_and_those_of_no_season_go():
    cells = [cell("a"), cell("b"), cell("c")]
    for each in cells:
        evaluate(each, seconds=1.0)
    collect(season(*cells), "made")
    before = kept_bytes()
    for path in Path("data/cells").rglob(RECORD):
        path.unlink()
    collect(season(*cells), "made")
    assert kept_bytes() == before
    collect(season(*cells[:2]), "made")
    assert list(results.read_kept("try", "made")) == ["a/0", "b/0"]


def test_only_the_cells_that_were_asked_for_are_taken():
    a, b = cell("a"), cell("b")
    params = season(a, b)
    for each in (a, b):
        evaluate(each, seconds=1.0)
    collect(params, "made")
    for each in (a, b):
        evaluate(each, seconds=2.0, rsum=2.0)
    collect(params, "made", ["made-b-0"])
    assert (seconds_of("a/0"), seconds_of("b/0")) == (1.0, 2.0)


def test_external_rows_are_left_alone():
    a = cell("a")
    evaluate(a, seconds=1.0)
    costs = Costs(scoring=cost())
    arrays = {RANKS: b"r", RETRIEVED: b"a"}
    row = CellResult(
        place="try/made/clip/0", record=record("clip"), costs=costs, arrays=arrays
    )
    results.write_external(FOLDER / results.EXTERNAL, {"clip/0": row})
    collect(season(a), "made")
    kept = results.read_kept("try", "made")
    assert list(kept) == ["a/0", "clip/0"] and kept["clip/0"].arrays == arrays


def test_costs_stay_where_an_older_record_names_fewer_files():
    a = cell("a")
    evaluate(a, seconds=1.0, files={RANKS: "11"})
    collect(season(a), "made")
    evaluate(a, seconds=2.0, files={RANKS: "11", RETRIEVED: "22"})
    collect(season(a), "made")
    assert seconds_of("a/0") == 1.0
    records = read_all(Record, FOLDER / RECORDS)
    assert records["a/0"].files == {RANKS: "11", RETRIEVED: "22"}
    evaluate(a, seconds=3.0, files={RANKS: "99", RETRIEVED: "22"})
    collect(season(a), "made")
    assert seconds_of("a/0") == 3.0


def test_a_new_result_without_its_costs_is_refused():
    a = cell("a")
    evaluate(a, seconds=1.0)
    for path in Path(a.costs).iterdir():
        path.unlink()
    with refused(
        "data/costs/try/made/a/0", found="nothing", do="benchmark.evaluate made-a-0"
    ):
        collect(season(a), "made")
