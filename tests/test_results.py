"""Results as git keeps them: archives of the cells' own files, what is read of them, and
where."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from builders import cost, record
from refusals import refused

from benchmark.contracts import HOME, committed
from benchmark.core.files import npz_of, read_archive, write_archive, write_bytes
from benchmark.core.records import Costs
from benchmark.data import results
from benchmark.data.rank_keys import I2T
from benchmark.data.results import RANKS, SAMPLES, CellResult, Ranks, Scores

FOLDER = Path("results/try/made")
pytestmark = pytest.mark.usefixtures("empty_folder")
RECORDS = Path("results/flickr8k/flickr8k/records.json")


def result(name: str, **arrays: bytes) -> CellResult:
    preset, seed = name.split("/")
    files = {kind: hashlib.sha256(npz).hexdigest() for kind, npz in arrays.items()}
    return CellResult(
        place=f"try/made/{name}",
        record=record(preset, int(seed), files=files, history={"epoch": [1, 2]}),
        costs=Costs(training=cost(training=9.0), scoring=cost(per_pair=1.0)),
        arrays=arrays,
    )


def test_results_are_read_as_they_were_written_whatever_their_order():
    ranks = results.scores_npz(Scores(ranks={I2T: Ranks.of_best(np.array([3, 0]))}))
    cells = {
        "b/1": result("b/1", **{RANKS: ranks}),
        "a/0": result("a/0", **{RANKS: ranks}),
    }
    results.write_folder(FOLDER, cells)
    before = {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    assert set(before) == set(results.KEPT_FILES)
    read = results.read_kept("try", "made")
    assert list(read) == ["a/0", "b/1"]
    for name, cell in cells.items():
        kept = read[name]
        assert (kept.record, kept.costs, kept.arrays) == (
            cell.record,
            cell.costs,
            cell.arrays,
        )
        assert kept.place == cell.place and kept.scores.best("i2t").tolist() == [3, 0]
    results.write_folder(FOLDER, dict(reversed(cells.items())))
    assert {path.name: path.read_bytes() for path in FOLDER.iterdir()} == before


def test_the_best_rank_of_a_query_is_the_first_of_its_own():
    ranks = Ranks(values=np.array([2, 5, 9, 0, 4, 7]), counts=np.array([3, 1, 2]))
    assert ranks.best.tolist() == [2, 0, 4]
    assert ranks.queries.tolist() == [0, 0, 0, 1, 2, 2]
    of_two = ranks.at(np.array([False, True, True]))
    assert of_two.best.tolist() == [0, 4]


def test_some_queries_have_their_own_ranks_and_know_as_much():
    ranks = Ranks(np.array([3, 5, 0, 7, 8, 9]), np.array([2, 1, 3]))
    some = ranks.at(np.array([True, False, True]))
    assert some.values.tolist() == [3, 5, 7, 8, 9] and some.counts.tolist() == [2, 3]
    assert some.knows_all
    best = Ranks.of_best(np.array([4, 1])).at(np.array([False, True]))
    assert best.values.tolist() == [1] and not best.knows_all


def test_a_line_of_the_records_is_a_fact_and_a_line_of_the_costs_is_a_run():
    results.write_folder(FOLDER, {"a/0": result("a/0")})
    lines = (FOLDER / "records.json").read_text().splitlines()
    assert '      "epoch": [1, 2]' in lines
    costs = (FOLDER / "costs.json").read_text().splitlines()
    keys = [line.partition(":")[0].strip() for line in costs]
    assert keys == ["{", '"a/0"', '"training"', '"scoring"', "}", "}"]


def test_other_bytes_than_the_record_names_are_refused():
    cell = result("a/0", **{RANKS: b"some"})
    cell.arrays[RANKS] = b"others"
    with refused("try/made/a/0/scores/ranks.npz", found="checksum"):
        cell.npz(RANKS)


def test_what_git_does_not_keep_is_read_from_data_samples():
    cell = result("a/0")
    assert not cell.has(SAMPLES)
    with refused("a/0/scores/samples.npz", found="nothing"):
        _ = cell.samples
    write_bytes(
        Path("data/samples/try/made/a/0/samples.npz"), npz_of({"x": np.arange(3)})
    )
    assert cell.has(SAMPLES) and cell.samples["x"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_damaged_archives_are_refused(content):
    path = Path("ranks.zip")
    if content is None:  # small files may unpack to more than the memory holds
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/0.npz", bytes(10_000))
    else:
        path.write_bytes(content)
    with refused("ranks.zip", "an archive"):
        read_archive(path)


def test_an_archive_gives_equal_bytes_for_equal_files():
    files = {"b": b"2", "a": b"1"}
    write_archive(Path("1.zip"), files)
    write_archive(Path("2.zip"), dict(sorted(files.items())))
    assert Path("1.zip").read_bytes() == Path("2.zip").read_bytes()
    assert read_archive(Path("1.zip")) == files


@pytest.mark.parametrize("last", [0, 255, 256, 65_535, 65_536])
def test_retrieved_items_are_read_as_they_were_written(tmp_path, last):
    rows = {"i2t": np.array([[last, 0]], np.int32), "t2i": np.empty((0, 1), np.int32)}
    arrays = {results.RETRIEVED: results.retrieved_npz(rows)}
    read = CellResult(place="made", record=record(), arrays=arrays).retrieved
    assert read.keys() == rows.keys()
    assert all(np.array_equal(read[way], rows[way]) for way in rows)
    assert all(read[way].dtype == np.int32 for way in rows)


# Where results are read ---------------------------------------------------------------


def test_an_empty_folder_has_those_of_the_package():
    assert committed(RECORDS) == HOME / RECORDS
    assert committed(RECORDS).is_file()


@pytest.mark.parametrize("part", ["params.yaml", "seasons/flickr8k/season.yaml"])
def test_a_project_has_its_own_alone(part):
    Path(part).parent.mkdir(parents=True, exist_ok=True)
    Path(part).touch()
    assert committed(RECORDS) == RECORDS


def test_what_is_in_the_folder_comes_first():
    RECORDS.parent.mkdir(parents=True)
    RECORDS.write_text("{}")
    assert committed(RECORDS) == RECORDS
