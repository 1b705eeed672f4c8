"""The stage report: what it shows, what it refuses, and that it gives the same bytes twice."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from benchmark import outcomes, protocol, report
from benchmark.costs import Provenance, write_provenance
from benchmark.errors import UserError
from benchmark.figures import distributions
from benchmark.files import write_json
from benchmark.gallery import chosen
from benchmark.markdown import code, escaped, picture, table
from benchmark.params import Cell, DatasetSettings, Fusion, Params
from benchmark.presets import Fuse, Reported, presets
from benchmark.provenance import provenance
from benchmark.records import Record, write_record
from benchmark.season import write_params
from benchmark.stage import run_stage
from benchmark.tables import RECALLS, spread

FOLDER = Path("reports/try")
README = FOLDER / "README.md"
IMAGES, CAPTIONS = 12, 24
HOSTILE = "a | b <script>alert(1)</script> ](http://evil.example) `code` **bold**\n\n# head"
MEMBERS = ("scan_t2i_avg", "scan_i2t_lse")
FUSION = "scan_t2i_avg_i2t_lse"
PRESETS = ("two_branch_bidirectional", *MEMBERS)
DATASETS = ("gated", "open")


def cell(dataset: str, preset: str, seed: int) -> Cell:
    return Cell(
        dataset=dataset,
        preset=preset,
        seed=seed,
        method=preset[: preset.index("_")],
        family="paper",
        options={},
        scaled=["epochs"],
        network="resnet50",
        images="",
        backbone="__init__",
        texts="",
        words="",
        start="data/prepared/card.json",
        folder=f"results/try/{dataset}/{preset}/{seed}",
    )


def fusion(dataset: str, seed: int) -> Fusion:
    folders = [f"results/try/{dataset}/{preset}/{seed}" for preset in (*MEMBERS, FUSION)]
    *members, folder = folders
    return Fusion(
        dataset=dataset,
        preset=FUSION,
        seed=seed,
        how="average",
        members=members,
        parts=["", ""],
        first=members[0],
        second=members[1],
        third=members[1],
        folder=folder,
    )


def season(seeds: tuple[int, ...] = (0, 1)) -> Params:
    """Both datasets, three presets and the fusion of two."""
    played = [cell(d, p, s) for d in DATASETS for p in PRESETS for s in seeds]
    fused = [fusion(dataset, seed) for dataset in DATASETS for seed in seeds]
    return Params(
        season="try",
        title="Try | it",
        device="cpu",
        precision="float32",
        validation_images=None,
        weights_dir=None,
        datasets={dataset: DatasetSettings(reader="folder") for dataset in DATASETS},
        encodings={},
        cells={f"{c.dataset}-{c.preset}-{c.seed}": c for c in played},
        fusions={f"{f.dataset}-{f.preset}-{f.seed}": f for f in fused},
    )


def prepare(dataset: str) -> None:
    """A folder of pictures and its prepared tables; `gated` may not be published."""
    folder, raw = Path("data/prepared") / dataset, Path("data/raw") / dataset
    folder.mkdir(parents=True)
    raw.mkdir(parents=True)
    names = [f"{number}.png" for number in range(IMAGES)]
    for number, name in enumerate(names):
        Image.new("RGB", (200, 100 + number), (20 * number, 90, 90)).save(raw / name)
    write_json(raw / "captions.json", [])
    owners = np.repeat(np.arange(IMAGES), CAPTIONS // IMAGES)
    texts = [HOSTILE if number == 7 else f"{dataset} text {number}" for number in range(CAPTIONS)]
    images = pd.DataFrame({"image_id": names, "file": names, "split": "test", "group": names})
    captions = {
        "caption_id": [str(number) for number in range(CAPTIONS)],
        "image_id": [names[owner] for owner in owners],
        "text": texts,
        "split": "test",
    }
    images.to_parquet(folder / "images.parquet")
    pd.DataFrame(captions).to_parquet(folder / "captions.parquet")
    pd.DataFrame({"image_id": []}).to_parquet(folder / "regions.parquet")
    card = {
        "title": f"Dataset {dataset}",
        "source": "Doe_et_al <2020>",
        "licence": "none",
        "split": "made",
        "manifest": "m",
        "may_publish": dataset == "open",
        "notes": ["A note."],
        "leakage": {"notes": ["0 pictures leak."]},
        "counts": {"test": {"images": IMAGES, "captions": CAPTIONS}},
    }
    write_json(folder / "card.json", card)


def record(dataset: str, preset: str, seed: int, metrics: dict, **changes: object) -> Record:
    facts = {
        "protocol_version": protocol.VERSION,
        "season": "try",
        "dataset": dataset,
        "split": "made/test",
        "images": IMAGES,
        "captions": CAPTIONS,
        "manifest_sha256": "m",
        "preset": preset,
        "method": preset[: preset.index("_")],
        "family": "paper",
        "seed": seed,
        "options": {"epochs": 3},
        "scaled": ["epochs"],
        "image_features": {"encoder": "cnn", "weights": {"file": "w_1.pt", "sha256": "ab" * 32}},
        "text_features": {"vocabulary": 9},
        "deviations": ["image features: cnn"],
        "parameters": 1_500_000,
        "selected_epoch": None if preset == FUSION else 2,
        "status": "ok",
        "metrics": metrics,
    }
    return Record(**(facts | changes))


def play(dataset: str, preset: str, seed: int, quality: float, **changes: object) -> None:
    """Everything a cell leaves behind, made from scores that are better for more `quality`."""
    folder = Path(f"results/try/{dataset}/{preset}/{seed}")
    rng = np.random.default_rng([seed, len(preset)])
    relevant = protocol.relevance(np.repeat(np.arange(IMAGES), 2), IMAGES)
    scores = np.clip(rng.normal(0, 0.2, relevant.shape) + quality * relevant, -1, 1)
    both = {"i2t": scores, "t2i": scores.T}
    ranks = protocol.both_ways(both, relevant)
    metrics = protocol.retrieval_metrics(ranks) | protocol.tie_gap(both, relevant, ranks)
    metrics |= protocol.overlap_metrics(scores[relevant], scores[~relevant])
    write_record(folder, record(dataset, preset, seed, metrics, **changes))
    samples = {"matched_sample": scores[relevant], "unmatched_sample": scores[~relevant]}
    np.savez(folder / "similarities.npz", **samples)
    retrieved = {"i2t": np.argsort(-scores, 1)[:, :10], "t2i": np.argsort(-scores.T, 1)[:, :10]}
    np.savez(folder / "retrieved.npz", **retrieved)
    frames = [pd.DataFrame({"direction": way, "rank": found}) for way, found in ranks.items()]
    pd.concat(frames).to_parquet(folder / "ranks.parquet")
    write_provenance(
        folder / "scoring.json", costs(per_image=1e-3, per_caption=2e-3, per_pair=3e-6)
    )
    if preset != FUSION:
        write_provenance(folder / "training.json", costs(training=10.0 + seed))
        history = {"epoch": [1, 2, 3], "loss": [3.0, 2.0, 1.5], "val_rsum": [90.0, 99.0, 98.0]}
        pd.DataFrame(history).to_csv(folder / "history.csv", index=False)


def costs(**seconds: float) -> Provenance:
    return Provenance(
        git_commit="0123456789ab",
        packages={"torch": "2"},
        machine="x86_64, 2 cores, Linux",
        device="cpu",
        threads=2,
        seconds=seconds,
        peak_memory_mib=512.0,
        peak_device_memory_mib=None,
    )


def lose(dataset: str, preset: str, seed: int, reason: str, status: str = "failed") -> None:
    """The cell failed in its training, or there was none: empty arrays and no epoch."""
    folder = Path(f"results/try/{dataset}/{preset}/{seed}")
    facts = {"status": status, "reason": reason, "selected_epoch": None}
    write_record(folder, record(dataset, preset, seed, {}, **facts))
    np.savez(folder / "similarities.npz")
    np.savez(folder / "retrieved.npz")
    (folder / "history.csv").write_text("epoch\n")


@pytest.fixture
def played(drawn, monkeypatch) -> Params:
    """As `drawn`, but the report is made without its figures, which take most of the time."""
    monkeypatch.setattr(report, "_figures", lambda *_: {})
    return drawn


@pytest.fixture
def drawn(tmp_path, monkeypatch, made) -> Params:
    """A season with every record, in a folder of its own."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "work"))
    return season()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """The folder that `drawn` copies."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _make()
    return folder


def _make() -> None:
    params = season()
    write_params(params)
    for dataset in DATASETS:
        prepare(dataset)
    qualities = {"two_branch_bidirectional": 0.3, FUSION: 0.8} | dict.fromkeys(MEMBERS, 0.5)
    for one in {**params.cells, **params.fusions}.values():
        play(one.dataset, one.preset, one.seed, qualities[one.preset])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def row(start: str, text: str) -> list[str]:
    """Cells of the first table row whose first cell begins with `start`."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_another_process_writes_the_same_bytes(drawn):
    report.write_report(drawn)
    first = contents(FOLDER)
    root = Path(report.__file__).parent.parent
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-m", "benchmark.report", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert contents(FOLDER) == first
    assert json.loads(done.stdout) == json.loads((FOLDER / "metrics.json").read_text())
    names = {str(Path(name).relative_to(FOLDER)) for name in first}
    assert {"README.md", "metrics.json", "local/gated.md"} <= names
    for dataset in DATASETS:
        for kind in ("similarities", "training", "cost"):
            assert f"figures/{dataset}-{kind}.png" in names
    assert_links_resolve(README)


def test_reading_records_needs_no_torch():
    code = "import sys, benchmark.report; sys.exit('torch' in sys.modules)"
    root = Path(report.__file__).parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=root).returncode == 0


def test_the_time_of_a_pair_is_not_rounded_away():
    seconds = {"training": 1234.5678, "per_pair": 2.13456e-8}
    kept = provenance(torch.device("cpu"), seconds).seconds
    assert kept == {"training": 1235.0, "per_pair": 2.135e-8}


def test_metrics_are_means_over_the_seeds(played):
    report.write_report(played)
    found = json.loads((FOLDER / "metrics.json").read_text())
    records = [
        json.loads(Path(f"results/try/open/{FUSION}/{seed}/record.json").read_text())
        for seed in (0, 1)
    ]
    expected = sum(one["metrics"]["rsum"] for one in records) / 2
    assert found["open"][FUSION]["rsum"] == pytest.approx(expected)
    assert set(found) == set(DATASETS)


def test_the_leaderboard_is_sorted_and_shows_the_spread(played):
    report.write_report(played)
    text = README.read_text()
    board = text[
        text.index("## Dataset open") : text.index("### Over seeds", text.index("## Dataset open"))
    ]
    lines = [line for line in board.splitlines() if line.startswith("| ")][1:]
    assert "t-i AVG + i-t LSE" in lines[0]
    assert "bi-directional" in lines[-1]
    assert "\N{PLUS-MINUS SIGN}" in row("SCAN t-i AVG +", board)[10]


def test_one_seed_shows_plain_numbers(played):
    params = season(seeds=(0,))
    report.write_report(params)
    text = README.read_text()
    assert "\N{PLUS-MINUS SIGN}" not in text
    assert "One seed was played" in text


def test_spread_is_the_sample_standard_deviation():
    assert spread([1.0, 3.0], 2) == "2.00 \N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}1.41"
    assert spread([1.25], 1) == "1.2"
    assert spread([4], 1) == "4"
    assert spread([], 1) == "-"


def test_the_best_of_a_column_is_bold_and_so_are_its_ties(played):
    for seed in (0, 1):
        for preset in MEMBERS:  # the same scores: ties in every column
            path = Path(f"results/try/open/{preset}/{seed}/record.json")
            metrics = {"rsum": 100.0, "i2t_r1": 90.04 if preset == MEMBERS[0] else 90.0}
            metrics |= {"overlap_s": 0.0, "t2i_medr": 1}
            data = json.loads(path.read_text())
            data["metrics"] |= metrics
            path.write_text(json.dumps(data))
        worse = Path(f"results/try/open/{FUSION}/{seed}/record.json")
        data = json.loads(worse.read_text())
        data["metrics"] |= {"i2t_r1": 10.0, "overlap_s": 0.9, "t2i_medr": 7, "rsum": 99.0}
        worse.write_text(json.dumps(data))
    report.write_report(played)
    text = README.read_text()
    board = text[text.index("## Dataset open") :]
    for start in ("SCAN t-i AVG  ", "SCAN i-t LSE"):
        cells = row(start, board)
        for column in (2, 9, 11):  # i2t R@1, t2i MedR, S
            assert cells[column].startswith("**"), (start, column)
    fused = row("SCAN t-i AVG +", board)
    assert not any(fused[column].startswith("**") for column in (2, 9, 10, 11))


def test_an_s_above_its_bound_is_marked_and_never_the_best(played):
    for seed in (0, 1):
        path = Path(f"results/try/open/scan_t2i_avg/{seed}/record.json")
        data = json.loads(path.read_text())
        data["metrics"] |= {"overlap_s": 0.001, "one_minus_ks": -0.1}
        path.write_text(json.dumps(data))
    report.write_report(played)
    text = README.read_text()
    board = text[text.index("## Dataset open") :]
    assert row("SCAN t-i AVG  ", board)[11].endswith("\\*")
    assert "**" not in row("SCAN t-i AVG  ", board)[11]
    assert row("SCAN t-i AVG +", board)[11].startswith("**")
    assert "too coarse" in board
    assert "too coarse" not in text[: text.index("## Dataset open")]


def test_a_failed_cell_is_a_row_with_its_reason(played):
    for seed in (0, 1):
        lose("open", "two_branch_bidirectional", seed, "the loss | is NaN")
    lose("gated", "two_branch_bidirectional", 1, "diverged")
    report.write_report(played)
    text = README.read_text()
    assert "the loss \\| is NaN" in text
    assert row("Two-branch", text[text.index("## Dataset open") :])[1:3] == ["0 of 2", "failed"]
    assert row("Two-branch", text[text.index("## Dataset gated") :])[1] == "1 of 2"
    assert (
        "two_branch_bidirectional" not in json.loads((FOLDER / "metrics.json").read_text())["open"]
    )


def test_a_cell_that_is_not_applicable_is_a_row_with_its_reason(played):
    reason = "gated: neighbourhood sampling expects 2 captions"
    for seed in (0, 1):
        lose("gated", "two_branch_bidirectional", seed, reason, status="not_applicable")
    report.write_report(played)
    text = README.read_text()
    gated = text[text.index("## Dataset gated") : text.index("## Dataset open")]
    assert row("Two-branch", gated)[1:3] == ["0 of 2", "not applicable"]
    assert "expects 2 captions" in gated
    assert "not applicable" not in text[text.index("## Dataset open") :]


def test_a_cell_whose_text_was_never_read_says_so(played):
    for seed in (0, 1):
        path = Path(f"results/try/open/scan_i2t_lse/{seed}/record.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"text_features": {}}))
    report.write_report(played)
    assert README.read_text().count("Text: never read.") == 1


def test_a_training_of_no_epochs_has_no_curve_and_no_epochs(drawn):
    """Another pooling of the same weights: nothing was trained, everything was scored."""
    for seed in (0, 1):
        folder = Path(f"results/try/open/scan_i2t_lse/{seed}")
        (folder / "history.csv").write_text("epoch\n")
        data = json.loads((folder / "record.json").read_text())
        (folder / "record.json").write_text(json.dumps(data | {"selected_epoch": None}))
    report.write_report(drawn)
    text = README.read_text()
    cost = text[text.index("### Cost", text.index("## Dataset open")) :]
    assert row("SCAN i-t LSE", cost)[3:5] == ["-", "-"]  # epochs, and which was selected
    assert row("SCAN t-i AVG  ", cost)[3:5] == ["3", "2"]


def add_sentences(preset: str, seed: int, **metrics: float) -> None:
    path = Path(f"results/try/open/{preset}/{seed}/record.json")
    data = json.loads(path.read_text())
    data["metrics"] |= {f"s2s_{key}": value for key, value in metrics.items()}
    path.write_text(json.dumps(data))


def test_sentences_are_a_table_of_the_presets_that_embed_text(played):
    for seed in (0, 1):
        add_sentences("two_branch_bidirectional", seed, r1=60.0 + seed, r5=80.0, r10=90.0, medr=1)
        add_sentences("scan_i2t_lse", seed, r1=50.0, r5=85.0, r10=90.0, medr=2)
    report.write_report(played)
    text = README.read_text()
    assert text.count("### Sentence to sentence") == 1
    part = text[text.index("### Sentence to sentence") :]
    part = part[: part.index("### ", 5)]
    assert "among all captions but itself" in part
    first, second = row("Two-branch", part), row("SCAN i-t", part)
    assert first[1] == "**60.5 \N{PLUS-MINUS SIGN}\N{NO-BREAK SPACE}0.7**"
    assert not second[1].startswith("**")
    assert second[2].startswith("**85.0") and not first[2].startswith("**")
    assert first[3].startswith("**90.0") and second[3].startswith("**90.0")  # a tie
    assert first[4].startswith("**1.0")  # of medians the smaller one is better
    assert "SCAN t-i AVG" not in part


def test_without_sentence_queries_there_is_no_table_of_them(played):
    report.write_report(played)
    assert "Sentence to sentence" not in README.read_text()


def test_remarks_tell_fusions_starts_and_notes(played, monkeypatch):
    rows = {name: row for name, (_, row) in presets().items()}
    parts = Fuse(how="adaptive", of=["scan_t2i_avg:visual", "scan_i2t_lse"])
    changed = {
        FUSION: rows[FUSION].model_copy(update={"fuse": parts}),
        "scan_i2t_lse": rows["scan_i2t_lse"].model_copy(
            update={"start": "scan_t2i_avg", "note": "A remark."}
        ),
    }
    known = presets() | {name: ("scan", row) for name, row in changed.items()}
    monkeypatch.setattr(outcomes, "presets", lambda: known)
    report.write_report(played)
    text = README.read_text()
    part = text[text.index("### What differs") :]
    assert row("fusion", part)[1:] == [
        "adaptive of `scan_t2i_avg:visual` and `scan_i2t_lse`, options as theirs",
        "SCAN t-i AVG + i-t LSE",
    ]
    assert row("start", part)[1:] == ["goes on from `scan_t2i_avg`", "SCAN i-t LSE"]
    assert any("A remark." in line and "SCAN i-t LSE" in line for line in part.splitlines())


def test_a_season_in_which_everything_failed_still_has_a_report(played):
    params = season(seeds=(0,))
    for one in {**params.cells, **params.fusions}.values():
        lose(one.dataset, one.preset, one.seed, "out of luck")
    report.write_report(params)
    assert README.read_text().count("out of luck") == 8
    assert json.loads((FOLDER / "metrics.json").read_text()) == {"gated": {}, "open": {}}


@pytest.mark.parametrize(
    ("preset", "command"),
    [("scan_i2t_lse", "evaluate@open-scan_i2t_lse-1"), (FUSION, f"fuse@open-{FUSION}-1")],
)
def test_a_missing_record_names_the_cell_and_the_command(played, preset, command):
    Path(f"results/try/open/{preset}/1/record.json").unlink()
    with pytest.raises(UserError, match=f"open-{preset}-1 .*dvc repro {command}$"):
        report.write_report(played)
    assert not README.exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schema_version", 0),
        ("protocol_version", 0),
        ("season", "other"),
        ("dataset", "gated"),
        ("preset", "other"),
        ("seed", 5),
        ("split", "other/test"),
        ("manifest_sha256", "other"),
        ("captions", 1),
    ],
)
def test_a_record_that_is_not_of_this_grid_is_refused(played, name, value):
    path = Path("results/try/open/scan_i2t_lse/1/record.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(UserError, match=f"{name}: expected .*evaluate@open-scan_i2t_lse-1"):
        report.write_report(played)


def test_a_record_outside_of_the_grid_is_not_read(played):
    report.write_report(played)
    first = contents(FOLDER)
    stray = Path("results/try/open/scan_i2t_lse/2")
    stray.mkdir()
    (stray / "record.json").write_text("not json")
    Path("results/try/open/unheard_of/0").mkdir(parents=True)
    report.write_report(played)
    assert contents(FOLDER) == first


def test_a_fusion_costs_what_its_members_cost(played):
    report.write_report(played)
    text = README.read_text()
    assert row("SCAN t-i AVG +", text[text.index("### Cost") :])[2] == "21.0"
    assert row("SCAN i-t LSE", text[text.index("### Cost") :])[2] == "10.5"


def assert_links_resolve(page: Path) -> None:
    targets = re.findall(r"(?<!\\)\]\(([^)]*)\)", page.read_text())
    assert any(target.endswith(".png") for target in targets)
    for target in targets:
        assert (page.parent / target).is_file(), target


def test_links_and_pictures_resolve(played):
    report.write_report(played)
    assert_links_resolve(README)
    assert_links_resolve(FOLDER / "local" / "gated.md")


def test_thumbnails_are_small(played):
    report.write_report(played)
    paths = list((FOLDER / "figures" / "gallery").rglob("*.png"))
    assert paths
    for path in paths:
        with Image.open(path) as thumbnail:
            assert max(thumbnail.size) <= 128


def test_a_gallery_that_may_not_be_published_stays_local(played):
    report.write_report(played)
    text = README.read_text()
    assert "open text" in text
    assert "gated text" not in text
    assert "gated text" in (FOLDER / "local" / "gated.md").read_text()
    assert not (FOLDER / "figures" / "gallery" / "gated").exists()
    assert "(local/gated.md)" in text
    assert "python -m benchmark report" in text


def test_without_raw_files_only_the_local_gallery_is_left_out(played, capsys):
    report.write_report(played)
    first = contents(FOLDER)
    os.rename("data/raw/gated", "data/raw/away")
    for path in (FOLDER / "local").rglob("*"):
        if path.is_file():
            path.unlink()
    report.write_report(played)
    assert "no local gallery of gated" in capsys.readouterr().err
    assert contents(FOLDER) == {k: v for k, v in first.items() if "/local/" not in k}


def test_what_an_earlier_report_left_is_removed(played):
    report.write_report(played)
    first = contents(FOLDER)
    for name in ("old.png", "gallery/gone/1.png", ".half.png.12.part"):
        path = FOLDER / "figures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (FOLDER / "local" / "notes.md").write_text("mine")
    report.write_report(played)
    assert not (FOLDER / "figures" / "gallery" / "gone").exists()
    assert (FOLDER / "local" / "notes.md").read_text() == "mine"
    (FOLDER / "local" / "notes.md").unlink()
    assert contents(FOLDER) == first


def test_a_training_that_ended_at_its_best_is_told(played):
    report.write_report(played)
    told = "the last epoch was the best: more epochs may help"
    assert told not in README.read_text()
    path = Path(f"results/try/open/{PRESETS[0]}/0/history.csv")
    rows = pd.read_csv(path)
    rows.loc[:1].to_csv(path, index=False)  # two epochs, the second was selected
    report.write_report(played)
    (row,) = [line for line in README.read_text().splitlines() if told in line]
    assert "Two-branch, nonlinear, bi-directional" in row and "SCAN" not in row


def test_reported_numbers_of_another_dataset_are_marked(played):
    report.write_report(played)
    text = README.read_text()
    section = text[text.index("### Reported elsewhere") :]
    lines = section[section.index("| SCAN t-i AVG + i-t LSE") :].splitlines()
    line = next(line for line in lines if "flickr30k, scan/1" in line)
    assert [part.strip() for part in line.split("|")[4:-1]] == [
        *("67.4", "90.3", "95.8", "48.6", "77.7", "85.2", "465.0")
    ]
    papers = [line for line in section.splitlines() if "paper: " in line]
    assert papers
    assert all("not comparable: other dataset, other encoder" in line for line in papers)


def test_every_reported_row_is_shown_and_what_is_not_printed_is_a_dash(played, monkeypatch):
    """A row may stand in several tables, of the validation split, and with recalls left out."""
    numbers = [
        Reported(table="scan/1", dataset="flickr30k", i2t_r1=10.5, t2i_r10=60),
        Reported(table="scan/3", dataset="open", split="val", **dict.fromkeys(RECALLS, 10)),
        Reported(table="scan/4", dataset="flickr30k", i2t_r1=10.5, t2i_r10=60),
        Reported(table="scan/4", dataset="mscoco_1k", i2t_r1=10.5, t2i_r10=60),
        Reported(table="two_branch/4", dataset="flickr30k", s2s_r1=60.5),
    ]
    changed = presets()[MEMBERS[0]][1].model_copy(update={"reported": numbers})
    known = presets() | {MEMBERS[0]: ("scan", changed)}
    monkeypatch.setattr(outcomes, "presets", lambda: known)
    report.write_report(played)
    text = README.read_text()
    section = text[text.index("### Reported elsewhere", text.index("## Dataset open")) :]
    lines = section[section.index("| SCAN t-i AVG  ") :].splitlines()[1:4]
    first, second, third = ([part.strip() for part in line.split("|")[2:-1]] for line in lines)
    assert first[0] == "paper: flickr30k, scan/1, scan/4"  # printed alike: one row
    assert first[2:] == ["10.5", "-", "-", "-", "-", "60.0", "-"]
    assert second[0] == "paper: open, validation, scan/3"
    assert second[1] == "same dataset, but not comparable: other encoder"
    assert second[2:] == ["10.0"] * 6 + ["60.0"]
    assert third[0] == "paper: mscoco_1k, scan/4"  # another dataset: another row
    assert "two_branch/4" not in section  # has no recall that this table shows


def test_a_mistake_is_one_line_and_status_2(played, capsys):
    Path("results/try/open/scan_i2t_lse/1/record.json").unlink()
    assert run_stage("report", report.configure, report.main, []) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_scores_all_alike_can_be_drawn():
    alike = np.full(9, 0.5)
    panel = distributions.Panel(title="t", overlap=1.0, bound=1.0, matched=alike, unmatched=alike)
    low, high = distributions.similarities([panel]).axes[0].get_xlim()
    assert low < 0.5 < high


class TestEscaped:
    @pytest.mark.parametrize(
        "text",
        [
            HOSTILE,
            "![x](y)",
            "[a]: http://b",
            "# head",
            "- item",
            "1. item",
            "&lt; &#124;",
            "a\\|b",
            "$x^2$ :dog: @me ~~no~~ _em_",
            "---",
            "www.example.org",
            "<!-- c -->",
        ],
    )
    def test_no_construct_survives(self, text):
        shown = escaped(text)
        bare = re.sub(r"\\[!-/:-@\[-`{-~]", "", shown)
        assert not re.search(r"[\\`*\[\]<>|~$#&@]|:\S|\b_|_\b", bare)
        assert "\n" not in shown
        assert not re.match(r"[-+=]|\d+[.)]", shown)
        assert "www." not in bare

    def test_only_marks_and_line_breaks_change(self):
        assert (
            escaped("A dog, (brown) runs - fast; it's 3 m.")
            == "A dog, (brown) runs - fast; it's 3 m."
        )
        assert re.sub(r"\\(.)", r"\1", escaped("a | b_c <i>\n\td")) == "a | b_c <i> d"

    def test_text_cannot_turn_its_surroundings_or_hold_control_characters(self):
        assert escaped("a\u202eb\x00c\x1b[0m") == "a b c \\[0m"

    def test_a_hostile_caption_keeps_the_table_whole(self):
        lines = table(["a", "b"], [[escaped(HOSTILE), "1"], ["x", "2"]]).splitlines()
        assert len(lines) == 4
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}

    def test_code_and_alt_text_are_held_in(self):
        assert code("a`|b") == "`a  b`"
        assert picture("x](y", "p.png") == "![x\\](y](p.png)"


class TestChosen:
    def test_half_are_hits_and_both_are_spread_over_the_queries(self):
        ranks = np.array([3, 0] * 30)
        picked = chosen(ranks, each=3)
        assert [rank for _, rank in picked] == [0, 0, 0, 3, 3, 3]
        assert [query for query, _ in picked] == [11, 31, 51, 10, 30, 50]

    def test_fewer_where_there_are_fewer(self):
        assert chosen(np.array([0, 0]), each=3) == [(0, 0), (1, 0)]
        assert chosen(np.array([5]), each=3) == [(0, 5)]
