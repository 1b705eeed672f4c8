"""Damaged results: a report ends with one line that names the file, or it is the right report."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import report_seasons as seasons
from report_seasons import FOLDER, FUSION, contents

from benchmark.__main__ import main
from benchmark.analysis import boards
from benchmark.season.parameter_files import write_params
from benchmark.season.parameters import DatasetSettings
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season

PLAYED = ("scan_t2i_avg", "scan_i2t_lse", FUSION)
CELL, OTHER = (f"results/try/open/{preset}/0" for preset in ("scan_i2t_lse", "scan_t2i_avg"))
FUSED = f"results/try/open/{FUSION}/0"
RECORD, CARD = f"{CELL}/record.json", "data/prepared/open/card.json"
COST, TIMES = f"{CELL}/training/cost.json", f"{CELL}/scores/cost.json"
HISTORY, RANKS = f"{CELL}/training/history.csv", f"{CELL}/scores/ranks.parquet"
REPLAYS, HEAD = "results/try/replays.json", "seasons/try/params.yaml"
ONE_CELL = "seasons/try/cells/open-scan_i2t_lse-0.yaml"
TABLES = {name: f"data/prepared/open/{name}.parquet" for name in ("images", "captions", "regions")}
ARRAYS = {name: f"{CELL}/scores/{name}.npz" for name in ("similarities", "retrieved", "samples")}
REPLAY = {"machine": "m", "fingerprint": "ab", "cells": 1, "agreements": {"identical": 1}}
DEEP = "[" * 100_000

SEASON_FILE = Season(
    title="Try | it",
    datasets={"open": DatasetSettings(reader="folder")},
    presets=list(PLAYED),
    seeds=[0],
)

Change = Callable[[Path], None]


@pytest.fixture(scope="module", autouse=True)
def played(tmp_path_factory) -> Iterator[dict[str, bytes]]:
    """A season with its results in the working directory; the report of the sound results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("damaged"))
        seasons.conclude_from_few(patch)
        seasons.draw_nothing(patch)
        patch.setattr(boards, "presets", seasons.presets_once)  # most of the time of a refusal
        params = resolve("try", SEASON_FILE)
        write_params(params)
        seasons.prepare("open")
        for cell in seasons.cells(params):
            seasons.play(cell, seasons.quality_of(cell.preset))
        Path(REPLAYS).write_text(json.dumps({"replays": [REPLAY]}))
        assert main(["report"]) == 0
        yield contents(FOLDER)


@pytest.fixture(scope="module")
def before(played) -> dict[Path, bytes]:
    """Every file of the working directory."""
    return {Path(name): read for name, read in contents(Path()).items()}


@pytest.fixture(autouse=True)
def restored(before) -> Iterator[None]:
    """What a test damages is whole again for the next one."""
    yield
    for path in [path for path in Path().rglob("*") if path.is_dir() and path in before]:
        shutil.rmtree(path)
    for path, read in before.items():
        if not path.is_file() or path.read_bytes() != read:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(read)


def unsealed() -> None:
    """As older records and cards are: without digests of the files beside them."""
    for path in (RECORD, CARD):
        data = json.loads(Path(path).read_text())
        data.pop("files", None)
        Path(path).write_text(json.dumps(data))


def report(capsys) -> tuple[int, str]:
    status = main(["report"])
    return status, capsys.readouterr().err


def assert_refused(capsys, path: str) -> None:
    """One line on stderr names the file and what to run."""
    status, said = report(capsys)
    assert status == 2, said
    assert said.count("\n") == 1 and said.startswith("rematch: "), said
    assert path in said, said
    assert "run: " in said or "python -m benchmark" in said, said


def assert_harmless(capsys, sound: dict[str, bytes]) -> None:
    status, said = report(capsys)
    assert status == 0, said
    assert contents(FOLDER) == sound


# What can happen to any file ----------------------------------------------------------------------


def cut(share: float) -> Change:
    return lambda path: path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def without_the_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def flipped(path: Path) -> None:
    read = bytearray(path.read_bytes())
    read[len(read) // 2] ^= 0x80
    path.write_bytes(read)


def noise(path: Path) -> None:
    path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size))


def missing(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def of_another(path: Path) -> None:
    """A picture in its place."""
    path.write_bytes(Path("data/raw/open/0.png").read_bytes())


ANY = {
    "empty": cut(0),
    "half": cut(0.5),
    "no-end": without_the_end,
    "flip": flipped,
    "noise": noise,
    "missing": missing,
    "folder": folder,
    "other": of_another,
}
FILES = {
    "record": RECORD,
    "cost": COST,
    "times": TIMES,
    "history": HISTORY,
    "ranks": RANKS,
    **ARRAYS,
    **TABLES,
    "card": CARD,
    "head": HEAD,
    "cell": ONE_CELL,
    "replays": REPLAYS,
    "active": "params.yaml",
}
SEALED = ("ranks", *ARRAYS, *TABLES)  # their digests stand in the record or on the card
SOUND = {("replays", "missing")}  # a season need not have been replayed


@pytest.mark.parametrize("way", ANY)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(capsys, played, name, way):
    if (name, way) in SOUND:
        return
    ANY[way](Path(FILES[name]))
    assert_refused(capsys, FILES[name])


@pytest.mark.parametrize("way", ["empty", "half", "flip", "other"])
@pytest.mark.parametrize("name", SEALED)
def test_a_damaged_file_of_an_older_record_is_named(capsys, played, name, way):
    unsealed()
    ANY[way](Path(FILES[name]))
    status, said = report(capsys)
    if status == 0:  # no digest tells, and the file can be read
        assert way == "flip"
    else:
        assert status == 2 and said.count("\n") == 1 and FILES[name] in said


# JSON ---------------------------------------------------------------------------------------------


def put(*keys: str, value: object) -> Change:
    """The JSON file with another value at a key."""

    def change(path: Path) -> None:
        data = json.loads(path.read_text())
        inner = data
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        path.write_text(json.dumps(data))

    return change


def drop(*keys: str) -> Change:
    def change(path: Path) -> None:
        data = json.loads(path.read_text())
        inner = data
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        path.write_text(json.dumps(data))

    return change


def replaced(old: str, new: str) -> Change:
    def change(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def text(written: str) -> Change:
    return lambda path: path.write_text(written)


NAN, HUGE = float("nan"), 10**400
NESTED: dict = {}
for _ in range(600):
    NESTED = {"a": NESTED}
JSON = {
    "record: a list": (RECORD, text("[]")),
    "record: null": (RECORD, text("null")),
    "record: a string": (RECORD, text('"record"')),
    "record: a deep list": (RECORD, text(DEEP)),
    "record: a deep option": (RECORD, put("options", value=NESTED)),
    "record: NaN": (RECORD, put("metrics", "rsum", value=NAN)),
    "record: infinity": (RECORD, put("metrics", "i2t_r1", value=-float("inf"))),
    "record: 1e400": (RECORD, replaced('"parameters": 1500000', '"parameters": 1e400')),
    "record: a huge number": (RECORD, put("parameters", value=HUGE)),
    "record: a metric as text": (RECORD, put("metrics", "rsum", value="300")),
    "record: a metric as null": (RECORD, put("metrics", "i2t_r5", value=None)),
    "record: a metric as a list": (RECORD, put("metrics", "overlap_s", value=[0.1])),
    "record: a metric as truth": (RECORD, put("metrics", "i2t_r1", value=True)),
    "record: a recall above 100": (RECORD, put("metrics", "i2t_r1", value=101.0)),
    "record: a recall below 0": (RECORD, put("metrics", "t2i_r10", value=-1.0)),
    "record: another recall": (RECORD, put("metrics", "i2t_r1", value=12.5)),
    "record: another median": (RECORD, put("metrics", "t2i_medr", value=99)),
    "record: another rsum": (RECORD, put("metrics", "rsum", value=599.0)),
    "record: no metrics": (RECORD, put("metrics", value={})),
    "record: metrics as a list": (RECORD, put("metrics", value=[1])),
    "record: no rsum": (RECORD, drop("metrics", "rsum")),
    "record: no recall": (RECORD, drop("metrics", "i2t_r10")),
    "record: no tie gap": (RECORD, drop("metrics", "t2i_r1_tie_gap")),
    "record: no range": (RECORD, drop("metrics", "overlap_range")),
    "record: half a range": (RECORD, put("metrics", "overlap_range", value=[0.0])),
    "record: a range of words": (RECORD, put("metrics", "overlap_range", value="ab")),
    "record: alpha as text": (RECORD, put("metrics", "alpha", value="x")),
    "record: versions as a list": (RECORD, put("metrics", "formula_versions", value=["rsum"])),
    "record: weights null": (RECORD, put("image_features", "weights", value=None)),
    "record: a digest as a number": (RECORD, put("image_features", "weights", "sha256", value=3)),
    "record: encoder a list": (RECORD, put("image_features", "encoder", value=["a"])),
    "record: vocabulary a list": (RECORD, put("text_features", "vocabulary", value=["<b>"])),
    "record: vectors a number": (RECORD, put("text_features", value={"vectors": 1})),
    "record: no encoder of text": (RECORD, put("text_features", value={"a": "b"})),
    "record: numerics of threads": (RECORD, put("numerics", value={"threads": "many"})),
    "record: numerics empty": (RECORD, put("numerics", value={"mode": "portable"})),
    "record: files a list": (RECORD, put("files", value=["scores/ranks.parquet"])),
    "record: files elsewhere": (RECORD, put("files", value={"../../../x": "ab"})),
    "record: an unknown key": (RECORD, put("unknown", value=1)),
    "record: no key": (RECORD, drop("parameters")),
    "record: negative parameters": (RECORD, put("parameters", value=-5)),
    "record: an epoch as text": (RECORD, put("selected_epoch", value="two")),
    "record: half a character": (RECORD, put("reason", value="\ud800")),
    "record: another cell": (RECORD, lambda path: shutil.copy(f"{OTHER}/record.json", path)),
    "card: a list": (CARD, text("[1]")),
    "card: a deep list": (CARD, text(DEEP)),
    "card: no title": (CARD, drop("title")),
    "card: a title as a number": (CARD, put("title", value=7)),
    "card: half a character": (CARD, put("title", value="x\udfff")),
    "card: no counts": (CARD, drop("counts")),
    "card: counts as a list": (CARD, put("counts", value=[3])),
    "card: a count as text": (CARD, put("counts", "test", "images", value="12")),
    "card: a count as NaN": (CARD, put("counts", "test", "captions", value=NAN)),
    "card: no captions of train": (CARD, put("counts", "train", value={"images": 1})),
    "card: notes as text": (CARD, put("notes", value="note")),
    "card: a note as a number": (CARD, put("notes", value=[3])),
    "card: no leakage": (CARD, drop("leakage")),
    "card: leakage as a list": (CARD, put("leakage", value=[])),
    "card: half the leakage": (CARD, put("leakage", "items", value={"pictures": {}})),
    "card: a twin alone": (CARD, put("leakage", "near_pictures", value=[["a"]])),
    "card: publish as text": (CARD, put("may_publish", value="no")),
    "card: no licence": (CARD, drop("licence")),
    "card: unknown ways": (CARD, put("ways", value=["i2i"])),
    "card: ways as text": (CARD, put("ways", value="i2t")),
    "card: folds as text": (CARD, put("folds", value="two")),
    "card: no folds at all": (CARD, put("folds", value=0)),
    "card: files a list": (CARD, put("files", value=["images.parquet"])),
    "card: captions per image": (CARD, put("captions_per_image", value={"test": {"many": 1}})),
    "card: pictures null": (CARD, put("pictures", value=None)),
    "cost: a list": (COST, text("[]")),
    "cost: no training": (COST, put("seconds", value={})),
    "cost: NaN": (COST, put("seconds", "training", value=NAN)),
    "cost: infinity": (COST, put("peak_memory_mib", value=float("inf"))),
    "cost: negative": (COST, put("seconds", "training", value=-1.0)),
    "cost: no torch": (COST, put("packages", value={})),
    "cost: null": (COST, put("machine", value=None)),
    "times: null": (TIMES, put("seconds", "per_pair", value=None)),
    "times: no pair": (TIMES, drop("seconds", "per_pair")),
    "times: no image": (TIMES, drop("seconds", "per_image")),
    "times: threads as a list": (TIMES, put("threads", value=[1])),
    "times: 1e400": (TIMES, replaced("3e-06", "1e400")),
    "replays: a list": (REPLAYS, text("[]")),
    "replays: none": (REPLAYS, text("{}")),
    "replays: of numbers": (REPLAYS, text('{"replays": [1, 2]}')),
    "replays: a mapping": (REPLAYS, text('{"replays": {"machine": "m"}}')),
    "replays: deep": (REPLAYS, text(DEEP)),
}


@pytest.mark.parametrize("name", JSON)
def test_json_with_other_content_is_named(capsys, played, name):
    path, change = JSON[name]
    change(Path(path))
    assert_refused(capsys, path)


HARMLESS = {
    "a number as text": (COST, put("threads", value="1")),
    "another order": (RECORD, lambda path: rewritten(path)),
    "an extra column of epochs": (HISTORY, lambda path: with_column(path)),
    "an extra fact of a card": (CARD, put("more", value=["any", {"thing": None}])),
}


def rewritten(path: Path) -> None:
    data = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(data.items())), indent=None))


def with_column(path: Path) -> None:
    pd.read_csv(path).assign(more="x").to_csv(path, index=False)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_change_changes_nothing(capsys, played, name):
    path, change = HARMLESS[name]
    change(Path(path))
    assert_harmless(capsys, played)


# Tables and arrays of records without digests -----------------------------------------------------


def table(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Change:
    def changed(path: Path) -> None:
        if path.suffix == ".csv":
            change(pd.read_csv(path)).to_csv(path, index=False)
        else:
            change(pd.read_parquet(path)).to_parquet(path, index=False)

    return changed


def arrays(**changes: Callable[[np.ndarray], np.ndarray] | None) -> Change:
    """Arrays of an .npz file changed, or gone."""

    def changed(path: Path) -> None:
        with np.load(path) as stored:
            read = dict(stored)
        for name, change in changes.items():
            old = read.pop(name)
            if change:
                read[name] = change(old)
        np.savez(path, **read)

    return changed


def without(column: str) -> Change:
    return table(lambda frame: frame.drop(columns=column))


def column(name: str, value: object) -> Change:
    return table(lambda frame: frame.assign(**{name: value}))


def first(name: str, value: object) -> Change:
    """Another value in the first row."""
    return table(lambda f: f.assign(**{name: [value, *f[name].iloc[1:]]}))


IMAGES, CAPTIONS = TABLES["images"], TABLES["captions"]
SCORES, TOP, FIGURES = ARRAYS["similarities"], ARRAYS["retrieved"], ARRAYS["samples"]
OTHER_CONTENT = {
    "ranks: no rank": (RANKS, without("rank")),
    "ranks: no direction": (RANKS, without("direction")),
    "ranks: no query": (RANKS, without("query")),
    "ranks: text": (RANKS, column("rank", "3")),
    "ranks: halves": (RANKS, column("rank", 0.5)),
    "ranks: NaN": (RANKS, first("rank", NAN)),
    "ranks: negative": (RANKS, column("rank", -1)),
    "ranks: beyond the gallery": (RANKS, column("rank", 10**6)),
    "ranks: directions as numbers": (RANKS, column("direction", 1)),
    "ranks: an unknown direction": (RANKS, column("direction", "i2i")),
    "ranks: fewer": (RANKS, table(lambda frame: frame.iloc[:-1])),
    "ranks: more": (RANKS, table(lambda frame: pd.concat([frame, frame.iloc[:1]]))),
    "ranks: one direction": (RANKS, table(lambda frame: frame[frame["direction"] == "i2t"])),
    "ranks: none": (RANKS, table(lambda frame: frame.iloc[:0])),
    "ranks: other queries": (RANKS, column("query", "i0")),
    "ranks: arrays": (RANKS, lambda path: shutil.copy(ARRAYS["samples"], path)),
    "ranks: a table of images": (RANKS, lambda path: shutil.copy(IMAGES, path)),
    "history: no loss": (HISTORY, without("loss")),
    "history: no epoch": (HISTORY, without("epoch")),
    "history: no recall": (HISTORY, without("val_rsum")),
    "history: text": (HISTORY, column("loss", "low")),
    "history: a gap": (HISTORY, first("val_rsum", NAN)),
    "history: infinity": (HISTORY, first("loss", float("inf"))),
    "history: epochs twice": (HISTORY, column("epoch", 1)),
    "history: epochs as text": (HISTORY, column("epoch", "one")),
    "history: fewer epochs": (HISTORY, table(lambda frame: frame.iloc[:1])),
    "history: no epochs": (HISTORY, table(lambda frame: frame.iloc[:0])),
    "history: ragged": (HISTORY, text("epoch,loss,val_rsum\n1,2,3\n1,2,3,4,5\n")),
    "history: quotes": (HISTORY, text('epoch,loss,val_rsum\n1,"2,3\n')),
    "history: NUL": (HISTORY, text("epoch,loss,val_rsum\n1,\0,3\n")),
    "scores: no sample": (SCORES, arrays(matched_sample=None)),
    "scores: of no pair": (SCORES, arrays(unmatched_sample=lambda x: x[:0])),
    "scores: NaN": (SCORES, arrays(matched_sample=lambda x: x * np.nan)),
    "scores: text": (SCORES, arrays(matched_sample=lambda x: x.astype(str))),
    "scores: a matrix": (SCORES, arrays(matched_sample=lambda x: x[:, None])),
    "retrieved: no direction": (TOP, arrays(t2i=None)),
    "retrieved: fewer queries": (TOP, arrays(i2t=lambda x: x[:-1])),
    "retrieved: no items": (TOP, arrays(i2t=lambda x: x[:, :0])),
    "retrieved: halves": (TOP, arrays(i2t=lambda x: x + 0.5)),
    "retrieved: beyond": (TOP, arrays(t2i=lambda x: x + 100)),
    "retrieved: negative": (TOP, arrays(t2i=lambda x: x - 100)),
    "retrieved: a vector": (TOP, arrays(i2t=lambda x: x[:, 0])),
    "retrieved: twice": (TOP, arrays(i2t=lambda x: 0 * x)),
    "samples: a vector": (FIGURES, arrays(similarity=lambda x: x[0])),
    "samples: text": (FIGURES, arrays(similarity=lambda x: x.astype(str))),
    "samples: fewer replicates": (FIGURES, arrays(overlap_replicates=lambda x: x[:7])),
    "samples: replicates NaN": (FIGURES, arrays(overlap_replicates=lambda x: x * np.nan)),
    "samples: replicates infinite": (FIGURES, arrays(overlap_replicates=lambda x: x + np.inf)),
    "samples: a correlation of two sizes": (FIGURES, arrays(correlation_after=lambda x: x[:3])),
    "samples: words of no caption": (FIGURES, arrays(words_captions=lambda x: x + 1000)),
    "samples: words and captions": (FIGURES, arrays(words_captions=lambda x: x[:1])),
    "samples: attention flat": (FIGURES, arrays(attention=lambda x: x[:, :, 0])),
    "samples: attention of three": (FIGURES, arrays(attention=lambda x: x[:, :, :3])),
    "samples: words without captions": (FIGURES, arrays(words_captions=None)),
    "samples: a table": (FIGURES, lambda path: shutil.copy(RANKS, path)),
    "images: no id": (IMAGES, without("image_id")),
    "images: no split": (IMAGES, without("split")),
    "images: no group": (IMAGES, without("group")),
    "images: no file": (IMAGES, without("file")),
    "images: ids as numbers": (IMAGES, column("image_id", 3)),
    "images: one id twice": (IMAGES, column("image_id", "i0")),
    "images: an empty id": (IMAGES, first("image_id", "")),
    "images: a file as a number": (IMAGES, column("file", 1.5)),
    "images: none of test": (IMAGES, column("split", "train")),
    "images: fewer": (IMAGES, table(lambda frame: frame.iloc[:-1])),
    "captions: no text": (CAPTIONS, without("text")),
    "captions: text as a number": (CAPTIONS, column("text", 5)),
    "captions: text missing": (CAPTIONS, first("text", None)),
    "captions: one id twice": (CAPTIONS, column("caption_id", "c0")),
    "captions: of no image": (CAPTIONS, column("image_id", "gone")),
    "captions: fewer": (CAPTIONS, table(lambda frame: frame.iloc[:-1])),
    "captions: in another order": (CAPTIONS, table(lambda frame: frame.iloc[::-1])),
    "captions: a table of images": (CAPTIONS, lambda path: shutil.copy(IMAGES, path)),
    "regions: no image": (TABLES["regions"], without("image_id")),
}


@pytest.mark.parametrize("name", OTHER_CONTENT)
def test_other_content_of_an_older_record_is_named(capsys, played, name):
    unsealed()
    path, change = OTHER_CONTENT[name]
    change(Path(path))
    assert_refused(capsys, path)


@pytest.mark.parametrize("name", [name for name in OTHER_CONTENT if "history" not in name][::5])
def test_other_content_is_seen_by_its_digest(capsys, played, name):
    path, change = OTHER_CONTENT[name]
    change(Path(path))
    assert_refused(capsys, path)


def test_the_best_items_of_other_queries_are_seen_by_their_digest(capsys, played):
    arrays(i2t=lambda x: x[::-1])(Path(TOP))
    assert_refused(capsys, TOP)


def test_an_epoch_that_never_was_is_named(capsys, played):
    put("selected_epoch", value=17)(Path(RECORD))
    assert_refused(capsys, f"{HISTORY}: expected the epoch 17")


def test_what_a_fusion_left_is_read_as_carefully(capsys, played):
    path = f"{FUSED}/scores/retrieved.npz"
    flipped(Path(path))
    assert_refused(capsys, path)


# The season's files -------------------------------------------------------------------------------

SEASON = {
    "a list": (HEAD, text("- a\n")),
    "another version of YAML": (HEAD, text("%YAML 9.9\n--- a\n")),
    "bytes of no text": (HEAD, lambda path: path.write_bytes(b"title: \xff\xfe\n")),
    "control characters": (HEAD, text("title: \x00\n")),
    "a cell less": (HEAD, replaced("- open-scan_i2t_lse-0\n", "")),
    "a dataset less": (HEAD, replaced("- open\n", "")),
    "a cell twice": (HEAD, replaced("- open-scan_i2t_lse-0\n", "- open-scan_t2i_avg-0\n")),
    "a title as a list": (HEAD, replaced("title: Try | it", "title: [a]")),
    "another cell": (ONE_CELL, lambda p: shutil.copy(p.with_name("open-scan_t2i_avg-0.yaml"), p)),
    "a fusion": (ONE_CELL, lambda path: shutil.copy(path.with_name(f"open-{FUSION}-0.yaml"), path)),
    "a seed as text": (ONE_CELL, replaced("seed: 0", "seed: one")),
    "no method": (ONE_CELL, replaced("method: scan\n", "")),
    "a date that is none": (ONE_CELL, replaced("seed: 0", "seed: 2020-99-99")),
}


@pytest.mark.parametrize("name", SEASON)
def test_a_damaged_file_of_the_season_is_named(capsys, played, name):
    path, change = SEASON[name]
    change(Path(path))
    status, said = report(capsys)
    assert status == 2, said
    assert said.count("\n") == 1 and "seasons/try/" in said
    assert "python -m benchmark season" in said
