"""`init` reads a folder of images and writes a season that can be run."""

import json
import shutil
from pathlib import Path

import feature_files
import numpy as np
import pytest
import torch
from PIL import Image
from refusals import check, refusal
from torchvision import models

from benchmark.__main__ import main
from benchmark.commands import init
from benchmark.core.errors import UserError
from benchmark.season.parameter_files import active_season, read_params, read_season
from benchmark.season.resolving import resolve

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    Path("seasons").mkdir()
    Path("my pets").mkdir()


def write_coco(count: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 255, (20, 20, 3), np.uint8)
        Image.fromarray(pixels).save(f"my pets/{number}.png")
    images = [{"id": n, "file_name": f"{n}.png"} for n in range(count)]
    captions = [
        {"image_id": n, "caption": f"pet {n} {x}"}
        for n in range(count)
        for x in ("a", "b")
    ]
    Path("my pets/captions.json").write_text(
        json.dumps({"images": images, "annotations": captions})
    )


def write_jsonl(count: int, *splits: str) -> None:
    rows = [{"image": f"{n}.png", "caption": "x"} for n in range(count)]
    for number, row in enumerate(rows if splits else ()):
        row["split"] = splits[number % len(splits)]
    Path("my pets/all.jsonl").write_text("\n".join(map(json.dumps, rows)))


def test_a_folder_becomes_the_active_season(capsys):
    write_coco(12)
    assert main(["init", "my pets"]) == 0
    printed = capsys.readouterr().out
    assert "12 images, 24 captions" in printed and "train 9, val 1, test 2" in printed
    assert printed.count("next: ") == 1
    assert not init.count(Path("my pets"), None).is_conclusive
    assert active_season() == "my_pets"
    cells = read_params().cells.values()
    assert {cell.preset for cell in cells} >= {"cca", "scan_t2i_avg"}
    assert all(cell.scaled for cell in cells if cell.method != "cca")
    check(refusal(init, "my pets"), where="seasons/my_pets", do="--name")


@pytest.mark.parametrize(
    ("images", "test", "val", "is_conclusive"),
    [
        (10, 2, 1, False),
        (150, 30, 15, False),
        (160, 100, 16, True),
        (2000, 200, 200, True),
    ],
)
def test_the_test_split_is_large_enough_where_it_can_be(
    images, test, val, is_conclusive
):
    write_jsonl(images)
    counted = init.count(Path("my pets"), None)
    assert (counted.test, counted.val, counted.is_conclusive) == (
        test,
        val,
        is_conclusive,
    )
    assert images - test - val >= images / 4


@pytest.mark.parametrize(
    ("images", "name"), [(9, "2024-05-01"), (160, "on"), (5000, "null"), (100_000, "s")]
)
def test_a_season_file_can_be_resolved_whatever_its_folder_is_called(images, name):
    counted = init.Counted(images, 5 * images, False, images // 10, images // 5)
    Path("s.yaml").write_text(
        init.season_text(name, Path('a "b" \\ c'), "x.json", counted)
    )
    season = read_season("s.yaml")
    assert (season.title, list(season.datasets)) == (name, [name])
    assert season.datasets[name].source == 'a "b" \\ c'
    assert season.datasets[name].options["captions"] == "x.json"
    is_scaled = any(cell.scaled for cell in resolve("s", season).cells.values())
    assert is_scaled == (counted.trained < init.LARGE)


def test_of_one_group_no_validation_is_taken():
    write_jsonl(6, "train", "test")
    counted = init.count(Path("my pets"), None)
    assert (counted.val, counted.val_is_taken) == (1, True)
    lines = Path("my pets/all.jsonl").read_text().splitlines()
    rows = list(map(json.loads, lines))
    for row in rows[2::2]:
        row["split"] = "unused"
    Path("my pets/all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    counted = init.count(Path("my pets"), None)
    assert (counted.val, counted.val_is_taken) == (0, False)


def refused_without_season(*words: str) -> UserError:
    error = refusal(init, *words)
    assert not Path("seasons/my_pets").exists() and not Path("local.yaml").exists()
    assert Path("params.yaml").read_bytes() == (ROOT / "params.yaml").read_bytes()
    return error


def test_what_cannot_be_read_leaves_no_season():
    check(refused_without_season("nowhere"), where="nowhere", found="none")
    check(refused_without_season("my pets"), expected="one annotation file")
    write_coco(12)
    Path("my pets/3.png").write_text("no image")
    error = refused_without_season("my pets")
    assert (error.within, error.where, error.redo) == ("my pets", "3.png", "init")
    assert "data/raw" not in str(error)
    Path("my pets/3.png").unlink()
    check(refused_without_season("my pets"), where="my pets/3.png", found="nothing")
    check(refused_without_season("my pets", "--name", "shared"), found="reserved")


def test_weights_are_checked_before_anything_is_written(capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(Path.cwd()))
    write_coco(12)
    Path("w").mkdir()
    words = ("my pets", "--weights-dir", "w")
    check(refused_without_season(*words), expected="mobilenet_v2-*.pth", found="none")
    torch.save({"x": torch.zeros(1)}, "w/mobilenet_v2-1.pth")
    check(
        refused_without_season(*words),
        where="mobilenet_v2-1.pth",
        expected="this network",
    )
    weights = models.get_model("mobilenet_v2", weights=None).state_dict()
    torch.save(weights, "w/mobilenet_v2-1.pth")
    pytest.importorskip("timm")
    Path("w/efficientnet_lite2.pth").write_bytes(b"w")
    feature_files.bert(Path("w/a-bert"))
    capsys.readouterr()
    assert main(["init", "my pets", "--weights-dir", "~/w"]) == 0
    assert read_params().weights_dir == str(Path("w").absolute())
    printed = capsys.readouterr().out
    written = Path("seasons/my_pets/season.yaml").read_text()
    for offer in (
        "image: {network: timm_tf_efficientnet_lite2, input_size: 260, grid: 6, standardise: true}",
        "sentence: {transformer: {weights: a-bert}}",
    ):
        assert f": {offer}  # " in printed
        assert f"    # Stronger: {offer}  # " in written


def write_rsicd(folder: Path, count: int = 30) -> None:
    """RSICD's JSON, in Karpathy's layout: sentences of an image come again where there
    are fewer than five, and of some there are fewer."""
    pictures = Path("my pets") / folder
    pictures.mkdir(exist_ok=True)
    images, sentids = [], iter(range(5 * count))
    for number in range(count):
        name = f"{('airport', 'denseresidential')[number % 2]}_{number + 1}.jpg"
        pixels = np.random.default_rng(number).integers(0, 255, (20, 20, 3), np.uint8)
        Image.fromarray(pixels).save(pictures / name)
        sentences = []
        for nth in range(5 if number % 3 else 4):
            words = ["many", "planes", f"{number}-{min(nth, 1 + number % 4)}", "."]
            facts = {"tokens": words[:-1], "raw": " ".join(words), "imgid": number}
            sentences.append(facts | {"sentid": next(sentids)})
        split = ("train", "train", "test", "train", "val")[number % 5]
        own = {"imgid": number, "split": split, "filename": name}
        own["sentids"] = [sentence["sentid"] for sentence in sentences]
        images.append(own | {"sentences": sentences})
    text = json.dumps({"images": images, "dataset": "rsicd"})
    Path("my pets/dataset_rsicd.json").write_text(text)


@pytest.mark.parametrize("beside", ["", "RSICD_images"])
def test_rsicd_becomes_a_season(beside, capsys):
    write_rsicd(Path(beside))
    assert main(["init", "my pets"]) == 0
    printed = capsys.readouterr().out
    assert "30 images, 140 captions" in printed
    assert "train 18, val 6, test 6" in printed
    assert "not used: nothing" in printed


def test_a_folder_may_be_called_by_any_character():
    counted = init.Counted(9, 45, False, 1, 2)
    name = "\U0001f600 \u0645 \\ud83d\\ude00"
    Path("s.yaml").write_text(init.season_text("s", Path(name), None, counted))
    assert read_season("s.yaml").datasets["s"].source == name
