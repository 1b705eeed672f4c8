"""The whole pipeline on a small `shapes`, twice: equal bytes, and a page that can be read."""

import json
from pathlib import Path

import pandas as pd
import pytest

from benchmark import report, run_command
from benchmark.encoders import drawn_cnn
from benchmark.params import DatasetSettings, ImageEncoder, Params, SentenceEncoder, WordVectors
from benchmark.season import Season, resolve, write_params

VOLATILE = ("training.json", "scoring.json", "README.md")  # hold times
PRESETS = [
    "dual_path_instance_1",
    "dual_path_full_2",
    "two_branch_constraints",
    "cyclematch",
    "cyclematch_three_adaptive",
    "scan_t2i_avg",
    "scan_i2t_lse",
    "scan_t2i_avg_i2t_lse",
]


def small_season(seeds: list[int]) -> Params:
    image = ImageEncoder(
        network="drawn_cnn", input_size=96, flip=False, standardise=True, pixels=96
    )
    settings = DatasetSettings(
        options={"train": 48, "val": 12, "test": 20},
        image=image,
        words=WordVectors(size=16),
        sentence={
            "hglmm": SentenceEncoder(centres=2, size=12),
            "bilstm_max": SentenceEncoder(hidden=8),
        },
    )
    season = Season(
        title="Small",
        datasets={"shapes": settings},
        presets=PRESETS,
        seeds=seeds,
        device="cpu",
        options={
            "dual_path": {
                "blocks": "1,1,1,1",
                "text_width": 1 / 64,
                "word_size": 16,
                "hidden_size": 8,
                "image_hidden_size": 8,
                "embedding_size": 8,
                "epochs": 1,
            },
            "cyclematch": {"hidden_size": 8, "embedding_size": 8, "epochs": 1},
            "two_branch_embedding": {"hidden_size": 16, "embedding_size": 8, "epochs": 2},
            "scan": {"embedding_size": 8, "word_size": 8, "epochs": 2, "decay_after": 1},
        },
    )
    return resolve("small", season)


def played(folder: Path, monkeypatch: pytest.MonkeyPatch, seeds: list[int]) -> dict[str, bytes]:
    """Every file that a season leaves in results/ and reports/, played in an empty folder."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(drawn_cnn, "CLOSE_UPS", 128)
    monkeypatch.setattr(drawn_cnn, "EPOCHS", 1)
    params = small_season(seeds)
    write_params(params)
    run_command.play(params, "shapes", None)
    report.write_report(params)
    roots = [folder / "results", folder / "reports"]
    files = [path for root in roots for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> dict[str, bytes]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return played(tmp_path_factory.mktemp("first") / "work", monkeypatch, [0, 1])


def test_a_second_run_leaves_the_same_bytes(first, tmp_path, monkeypatch):
    second = played(tmp_path / "work", monkeypatch, [0, 1])
    assert set(first) == set(second)
    stable = [name for name in first if not name.endswith(VOLATILE)]
    assert sum(name.endswith("record.json") for name in stable) == 2 * len(PRESETS)
    # The cost figure shows measured times; every other picture must be the same.
    differ = [name for name in stable if first[name] != second[name] and "cost" not in name]
    assert differ == []


def test_another_seed_gives_another_record(first):
    for preset in PRESETS:
        records = [
            json.loads(first[f"results/small/shapes/{preset}/{seed}/record.json"])
            for seed in (0, 1)
        ]
        assert records[0]["metrics"] != records[1]["metrics"]


def test_records_hold_the_promised_keys(first):
    record = json.loads(first["results/small/shapes/scan_t2i_avg/0/record.json"])
    assert record["status"] == "ok" and record["split"] == "drawn/test"
    assert (record["images"], record["captions"]) == (20, 100)
    metrics = record["metrics"]
    for way in ("i2t", "t2i"):
        for key in ("r1", "r5", "r10", "medr", "meanr"):
            assert metrics[f"{way}_{key}"] >= 0
    recalls = [metrics[f"{way}_r{k}"] for way in ("i2t", "t2i") for k in (1, 5, 10)]
    assert metrics["rsum"] == pytest.approx(sum(recalls))
    assert 0 <= metrics["overlap_s"] <= 1
    assert record["options"]["embedding_size"] == 8
    assert record["scaled"] == ["decay_after", "embedding_size", "epochs", "word_size"]


def test_captions_find_their_siblings(first):
    for preset in ("two_branch_constraints", "cyclematch", "dual_path_full_2"):
        record = json.loads(first[f"results/small/shapes/{preset}/0/record.json"])
        assert 0 <= record["metrics"]["s2s_r1"] <= record["metrics"]["s2s_r10"] <= 100
    record = json.loads(first["results/small/shapes/scan_t2i_avg/0/record.json"])
    assert "s2s_r1" not in record["metrics"]  # SCAN has no vector of a caption


def test_every_query_has_a_rank(first, tmp_path):
    path = tmp_path / "ranks.parquet"
    path.write_bytes(first["results/small/shapes/scan_t2i_avg_i2t_lse/0/ranks.parquet"])
    ranks = pd.read_parquet(path)
    assert ranks.groupby("direction").size().to_dict() == {"i2t": 20, "t2i": 100}
    assert ranks["query"].is_unique


def test_the_report_names_every_preset(first):
    page = first["reports/small/README.md"].decode()
    for title in ("SCAN t-i AVG", "SCAN t-i AVG + i-t LSE", "Two-branch", "CycleMatch, three"):
        assert title in page
    assert "figures/gallery/shapes/" in page
