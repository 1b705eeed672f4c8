"""Resolved seasons on disk: written and read, shared by seasons, and the folders of a machine."""

import os
import re
from pathlib import Path

import pytest

from benchmark.commands.project_folder import cells_like_any
from benchmark.commands.season import completed
from benchmark.core.errors import UserError
from benchmark.season.parameter_files import (
    Local,
    activate,
    active_season,
    entry,
    placed,
    read_local,
    read_params,
    read_shared,
    write_local,
    write_params,
)
from benchmark.season.parameters import DatasetSettings, SentenceEncoder, WordVectors
from benchmark.season.resolving import resolve
from seasons import FUSION, SCAN, TWO_BRANCH, committed, season, staged_presets, with_dataset

PAST = 10**9  # nanoseconds; a modification time that no new file has


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written() -> dict[str, bytes]:
    """Every file that was written, by its path."""
    return {str(path): path.read_bytes() for path in Path(".").rglob("*") if path.is_file()}


def as_read(params):
    """Of a dataset the files keep what its raw data becomes, not which presets are played."""
    datasets = {
        name: DatasetSettings(
            reader=settings.reader, source=settings.source, options=settings.options
        )
        for name, settings in params.datasets.items()
    }
    return params.model_copy(update={"datasets": datasets})


def test_params_survive_writing_and_reading():
    options = {"scan": {"epochs": 4, "learning_rate": 0.00001, "other_captions_negative": True}}
    played = [SCAN, FUSION, "scan_i2t_lse", TWO_BRANCH, "first", "second", "parts"]
    known = staged_presets(Path("."))
    params = resolve("try", season(presets=played, options=options, validation_images=4), known)
    write_params(params)
    assert read_params() == read_params("try") == as_read(params)
    assert list(read_params().cells) == list(params.cells)
    assert list(read_params().feature_sets) == list(params.feature_sets)


def test_equal_seasons_are_equal_bytes():
    write_params(resolve("try", season()))
    first = written()
    write_params(read_params())
    assert written() == first
    assert first["params.yaml"] == b"season: try\n"
    files = {path for path in first if path.startswith("seasons/")}
    assert {"seasons/try/params.yaml", "seasons/shared/datasets/drawn.yaml"} <= files
    assert len([path for path in files if path.startswith("seasons/try/cells/")]) == 8


def test_files_that_stay_as_they_are_are_not_touched():
    write_params(resolve("try", season()))
    files = [path for path in Path("seasons").rglob("*.yaml")]
    for path in files:
        os.utime(path, ns=(PAST, PAST))
    changed = Path(f"seasons/try/cells/drawn-{SCAN}-0.yaml")
    write_params(resolve("try", season(options={SCAN: {"epochs": 2}}, seeds=[0, 3])))
    touched = {path for path in files if path.stat().st_mtime_ns != PAST}
    assert changed in touched
    assert touched == {path for path in files if SCAN in path.name}


def test_a_cell_file_holds_only_what_the_cell_has():
    write_params(resolve("try", season()))
    text = Path(f"seasons/try/cells/drawn-{SCAN}-0.yaml").read_text()
    assert "images:" in text
    assert not re.search("^(texts|words|start|backbone|validation_images):", text, re.M)


def test_cells_that_a_season_no_longer_has_are_removed():
    write_params(resolve("try", season()))
    write_params(resolve("try", season(presets=[SCAN], seeds=[3])))
    names = {path.stem for path in Path("seasons/try/cells").iterdir()}
    assert names == set(read_params().cells) == {f"drawn-{SCAN}-3", f"folder-{SCAN}-3"}


def test_without_an_active_season_one_is_to_be_chosen():
    with pytest.raises(UserError) as error:
        read_params()
    assert (error.value.where, error.value.found) == ("params.yaml", "nothing")
    assert "python -m benchmark season" in error.value.do


def test_a_season_that_is_not_resolved_is_to_be_made():
    with pytest.raises(UserError) as error:
        read_params("spring")
    assert (error.value.where, error.value.found) == ("seasons/spring/params.yaml", "nothing")
    assert error.value.do == "run: python -m benchmark season spring"


def test_one_of_several_seasons_is_active():
    for name, seeds in (("one", [0]), ("two", [1])):
        write_params(resolve(name, season(seeds=seeds)))
    assert active_season() == "two" and read_params().season == "two"
    files = written()
    activate("one")
    assert active_season() == "one" and {c.seed for c in read_params().cells.values()} == {0}
    assert {c.seed for c in read_params("two").cells.values()} == {1}
    changed = {path for path, content in written().items() if files[path] != content}
    assert changed == {"params.yaml"}  # nothing else becomes stale


@pytest.mark.parametrize(
    ("file", "old", "new", "key"),
    [
        (f"try/cells/drawn-{SCAN}-0.yaml", "precision: float32", "precision: float8", "precision"),
        (f"try/cells/drawn-{FUSION}-0.yaml", "how: average", "how: mean", "how"),
        ("try/params.yaml", "device: auto", "device: [1]", "device"),
        ("shared/datasets/drawn.yaml", "reader: shapes", "reader: ../x", "reader"),
        ("shared/feature_sets/folder-words_trained20.yaml", "size: 20", "size: 1", "words.size"),
    ],
)
def test_a_mistake_in_a_file_is_refused_with_the_place(file, old, new, key):
    write_params(resolve("try", season(presets=[SCAN, "scan_i2t_lse", FUSION, TWO_BRANCH])))
    path = Path("seasons") / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError) as error:
        read_params()
    assert error.value.where == f"{path}: {key}"
    assert error.value.found.strip("'") in new and error.value.do


def test_an_entry_that_is_not_there_lists_those_that_are():
    assert entry({"a": 1}, "a", "cell") == 1
    with pytest.raises(UserError) as error:
        entry({"a": 1, "b": 2}, "c", "cell")
    assert (error.value.where, error.value.expected) == ("cell 'c'", "one of a, b")
    assert "python -m benchmark season" in error.value.do


# Several seasons --------------------------------------------------------------------------------


def test_what_seasons_share_is_kept_once():
    write_params(resolve("one", season()))
    write_params(resolve("two", season(presets=[SCAN], seeds=[5])))
    shared = read_shared()
    assert (shared.season, shared.cells, shared.fusions) == ("shared", {}, {})
    assert set(shared.datasets) == {"drawn", "folder"}
    assert set(shared.feature_sets) == set(read_params("one").feature_sets)
    assert shared.datasets["drawn"].options == {"train": 9}


def test_seasons_agree_about_a_dataset():
    write_params(resolve("one", season()))
    other = with_dataset(season(), "drawn", options={"train": 8})
    before = written()
    with pytest.raises(UserError) as error:
        write_params(resolve("two", other))
    assert error.value.where == "season two: seasons/shared/datasets/drawn.yaml"
    assert "season one" in error.value.expected and "another name" in error.value.do
    assert written() == before
    write_params(resolve("one", other))  # its own alone
    assert read_params().datasets["drawn"].options == {"train": 8}


def test_seasons_agree_about_a_feature_set():
    """Two files of equal name in different folders give the same name of the feature set."""
    of = {"vectors": "a/news.bin"}, {"vectors": "b/news.bin"}
    one, two = (
        with_dataset(season(presets=[TWO_BRANCH]), "folder", words=WordVectors(**x)) for x in of
    )
    write_params(resolve("one", one))
    with pytest.raises(UserError) as error:
        write_params(resolve("two", two))
    assert error.value.where.startswith("season two: seasons/shared/feature_sets/folder-words_news")
    write_params(resolve("one", two))
    write_params(resolve("two", two))


def test_a_season_that_gave_a_dataset_up_binds_no_other():
    write_params(resolve("one", season()))
    only_folder = season().model_copy(update={"datasets": {"folder": season().datasets["folder"]}})
    write_params(resolve("one", only_folder))
    write_params(resolve("two", with_dataset(season(), "drawn", options={"train": 8})))
    assert read_params("two").datasets["drawn"].options == {"train": 8}


# Folders of this machine ------------------------------------------------------------------------


def test_without_a_local_file_there_are_no_folders():
    assert read_local() == Local()
    write_params(resolve("try", season()))
    params = read_params()
    assert params.weights_dir is None
    assert {settings.source for settings in params.datasets.values()} == {None}


def test_folders_of_this_machine_are_kept_apart_from_the_season():
    params = resolve("try", season())
    write_params(params)
    before = written()
    local = Local(weights_dir="weights", sources={"shapes": "a", "folder": "b"})
    write_local(local)
    assert read_local() == local
    assert {path for path in written() if path not in before} == {"local.yaml"}
    here = read_params()
    assert here == placed(as_read(params), local) and here.weights_dir == "weights"
    assert {name: settings.source for name, settings in here.datasets.items()} == {
        "drawn": "a",
        "folder": "b",
    }
    assert read_shared().datasets["drawn"].source == "a"


def test_a_mistake_in_the_local_file_is_refused():
    Path("local.yaml").write_text("weights: here\n")
    with pytest.raises(UserError) as error:
        read_local()
    assert error.value.where == "local.yaml: weights" and "weights_dir" in error.value.expected


def test_one_folder_may_serve_all_datasets_of_a_reader():
    params = committed("papers")
    local = completed(Local(), params, None, ["mscoco=a", "flickr30k_scan=b"])
    sources = {name: known.source for name, known in placed(params, local).datasets.items()}
    assert sources["mscoco"] == sources["mscoco_cyclematch"] == sources["mscoco_scan"] == "a"
    assert sources["flickr30k_scan"] == "b" and sources["flickr30k_dual_path"] is None


def test_a_source_in_the_season_file_counts_where_the_machine_has_none():
    write_params(resolve("try", with_dataset(season(), "folder", source="mine")))
    assert read_params().datasets["folder"].source == "mine"
    assert read_params().datasets["drawn"].source is None
    write_local(Local(sources={"folder": "b"}))
    assert read_params().datasets["folder"].source == "b"


def test_folders_that_are_named_are_added_to_those_of_this_machine():
    params = resolve("try", season())
    first = completed(Local(), params, "weights", ["drawn=a"])
    assert first == Local(weights_dir="weights", sources={"drawn": "a"})
    second = completed(first, params, None, ["drawn=b", "folder=c=d"])
    assert second == Local(weights_dir="weights", sources={"drawn": "b", "folder": "c=d"})
    assert completed(second, params, None, []) == second
    assert completed(second, params, "other", []).weights_dir == "other"


@pytest.mark.parametrize("source", ["coco=/data", "drawn", "drawn=", "=/data"])
def test_a_source_names_a_dataset_and_its_folder(source):
    with pytest.raises(UserError) as error:
        completed(Local(), resolve("try", season()), None, [source])
    assert (error.value.where, error.value.found) == ("--source", repr(source))
    assert error.value.expected.endswith("drawn, folder, shapes")


def test_files_of_weights_are_sought_in_the_folder_of_weights():
    encoder = SentenceEncoder(weights="infersent.pkl", words=WordVectors(vectors="glove.txt"))
    on = with_dataset(
        season(presets=[TWO_BRANCH, "cyclematch"]),
        "folder",
        words=WordVectors(vectors="news.bin"),
        sentence={"bilstm_max": encoder, "hglmm": SentenceEncoder()},
    )
    params = resolve("try", on)
    sets = placed(params, Local(weights_dir="weights")).feature_sets
    assert sets["folder-words_news300"].words.vectors == "weights/news.bin"
    assert sets["folder-words_glove300"].words.vectors == "weights/glove.txt"
    (text,) = (x for x in sets.values() if x.encoder == "bilstm_max" and x.dataset == "folder")
    assert text.sentence.weights == "weights/infersent.pkl"
    assert text.sentence.words.vectors == "weights/glove.txt"
    assert sets["folder-hglmm_words_news300"].sentence == SentenceEncoder()
    assert sets["drawn-words_trained300"].words.vectors is None
    assert placed(params, Local()) == params


def test_cells_are_chosen_by_several_patterns_in_the_order_of_the_season():
    params = resolve("try", season(presets=[SCAN, TWO_BRANCH]))
    keys = [*params.cells, *params.fusions]
    assert cells_like_any(params, "*", "--cells") == keys
    assert cells_like_any(params, f"{keys[-1]},{keys[0]},{keys[0]}", "--cells") == [
        keys[0],
        keys[-1],
    ]
    with pytest.raises(UserError) as error:
        cells_like_any(params, f"{keys[0]},nothing*", "--cells")
    assert error.value.where == "--cells"
