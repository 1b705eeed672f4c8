"""`init` reads a folder of pictures and writes a season that can be played."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from documents import ROOT
from PIL import Image
from torchvision import models

from benchmark.__main__ import main
from benchmark.commands import init
from benchmark.season.parameter_files import active_season, read_params
from benchmark.season.resolving import resolve
from benchmark.season.season_files import read_season


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    Path("seasons").mkdir()
    Path("my pets").mkdir()


def write(count: int, splits: bool = False) -> None:
    """Pictures with two captions each, in COCO's format or as lines with splits."""
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 255, (20, 20, 3), np.uint8)
        Image.fromarray(pixels).save(f"my pets/{number}.png")
    if splits:
        names = ["train", "val", "test", "test"]
        rows = [{"image": f"{n}.png", "caption": "x", "split": names[n % 4]} for n in range(count)]
        Path("my pets/all.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return
    images = [{"id": n, "file_name": f"{n}.png"} for n in range(count)]
    captions = [
        {"image_id": n, "caption": f"pet {n} {word}"} for n in range(count) for word in ("a", "b")
    ]
    data = {"images": images, "annotations": captions}
    Path("my pets/captions.json").write_text(json.dumps(data))


def test_a_folder_becomes_the_active_season(capsys):
    write(12)
    assert main(["init", "my pets", "--quick"]) == 0
    told = capsys.readouterr().out
    assert "my pets: 12 images, 24 captions" in told
    assert "2 to test, 1 to validate. Nothing can be concluded from 2 test images" in told
    assert "prepare my_pets: 12 pictures, 24 captions: train 9, val 1, test 2" in told
    assert "0 pictures occur, pixel for pixel, in more than one split" in told
    assert active_season() == "my_pets"
    assert {cell.preset for cell in read_params().cells.values()} >= {"cca", "scan_t2i_avg"}
    assert all(cell.scaled for cell in read_params().cells.values() if cell.method != "cca")


def test_times_are_measured(capsys, monkeypatch):
    write(12)
    timed = {"hours": [0.5, 0.6], "measured": "m", "measuring_seconds": 1.0, "presets": []}
    monkeypatch.setattr(init, "training_times", lambda *given: timed)
    assert main(["init", "my pets"]) == 0
    assert "30 to 36 min" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("images", "test", "val", "is_conclusive"),
    [(10, 2, 1, False), (150, 30, 15, False), (160, 100, 16, True), (2000, 200, 200, True)],
)
def test_the_test_split_is_large_enough_where_it_can_be(images, test, val, is_conclusive):
    rows = [{"image": f"{n}.png", "caption": "x"} for n in range(images)]
    Path("my pets/all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    counted = init.count(Path("my pets"), None)
    assert (counted.test, counted.val, counted.is_conclusive) == (test, val, is_conclusive)
    assert images - test - val >= images / 4


def test_splits_of_the_annotations_stay():
    write(8, splits=True)
    counted = init.count(Path("my pets"), None)
    assert (counted.has_splits, counted.test, counted.val) == (True, 4, 2)
    assert (
        "options:\n" not in init.season_text("p", Path("my pets"), None, counted).split("image:")[0]
    )


@pytest.mark.parametrize("called", ["2024", "2024-05-01", "on", "null"])
def test_a_folder_may_be_called_as_yaml_writes_something_else(called):
    counted = init.Counted(9, 9, False, 1, 2)
    Path("s.yaml").write_text(init.season_text(called, Path("a"), None, counted))
    season = read_season("s.yaml")
    assert (season.title, list(season.datasets)) == (called, [called])


@pytest.mark.parametrize("images", [9, 160, 5000, 100_000])
def test_every_season_file_can_be_resolved(images):
    counted = init.Counted(images, 5 * images, False, images // 10, images // 5)
    Path("s.yaml").write_text(init.season_text("s", Path('a "b" \\ c'), "x.json", counted))
    season = read_season("s.yaml")
    assert season.datasets["s"].source == 'a "b" \\ c'
    assert season.datasets["s"].options["captions"] == "x.json"
    params = resolve("s", season)
    is_scaled = any(cell.scaled for cell in params.cells.values())
    assert is_scaled == (counted.trained < init.LARGE)


def refused(capsys, *words: str) -> str:
    """The line of an `init` that writes no season and names no next step but its own."""
    assert main(["init", *words]) == 2
    told = capsys.readouterr()
    assert "next: " not in told.out
    for written in ("seasons/my_pets", "local.yaml"):
        assert not Path(written).exists()
    assert Path("params.yaml").read_bytes() == (ROOT / "params.yaml").read_bytes()
    return told.err


def test_what_cannot_be_read_leaves_no_season(capsys):
    assert "nowhere: expected a folder, found nothing" in refused(capsys, "nowhere")
    assert "params.yaml: expected a folder, found a file" in refused(capsys, "params.yaml")
    assert "expected one annotation file" in refused(capsys, "my pets")
    Path("my pets/captions.csv").write_text("image,caption\n0.png,hello\n")
    assert "my pets: captions.csv: expected 3 images" in refused(capsys, "my pets")
    assert "found a reserved one" in refused(capsys, "my pets", "--name", "shared")
    assert not Path("seasons/shared/season.yaml").exists()
    Path("my pets/captions.csv").unlink()
    write(12)
    Path("my pets/3.png").write_text("no picture")
    told = refused(capsys, "my pets")
    assert "my pets: 3.png: expected a whole picture" in told and "then init again" in told
    assert "data/raw" not in told and "fetch" not in told
    Path("my pets/3.png").unlink()
    told = refused(capsys, "my pets")
    assert "my pets/3.png: expected a picture that captions.json names, found nothing (1 of" in told
    assert "add the picture, then init again" in told
    write(12)
    assert main(["init", "my pets", "--quick"]) == 0
    assert main(["init", "my pets", "--quick"]) == 2
    told = capsys.readouterr().err
    assert "choose another with --name" in told
    assert "python -m benchmark season my_pets --weights-dir DIR" in told


def test_another_season_has_a_dataset_of_this_name(capsys):
    write(12)
    assert main(["init", "my pets", "--quick"]) == 0
    shutil.copytree("my pets", "others")
    shutil.move("seasons/my_pets", "seasons/renamed")
    assert main(["init", "others", "--name", "my_pets"]) == 2
    told = capsys.readouterr().err
    assert "seasons/renamed/params.yaml: expected no dataset my_pets yet" in told
    assert Path("data/raw/my_pets").resolve() == Path("my pets").resolve()


def test_elsewhere_no_second_project_begins(capsys, monkeypatch):
    write(12)
    monkeypatch.chdir("my pets")
    assert main(["init", "."]) == 2
    told = capsys.readouterr().err
    assert "my pets: expected the project's folder" in told
    assert f"run it in {Path.cwd().parent}" in told
    assert [path for path in Path().iterdir() if path.suffix not in (".png", ".json")] == []


def test_weights_are_checked_before_anything_is_written(capsys):
    write(12)
    Path("w").mkdir()
    weights = Path("w/mobilenet_v2-1.pth")
    given = ("my pets", "--quick", "--weights-dir")
    assert "--weights-dir v: expected a folder with a file mobilenet_v2-*.pth, found nothing" in (
        refused(capsys, *given, "v")
    )
    assert "mobilenet_v2-*.pth, found none (the folder holds nothing)" in (
        refused(capsys, *given, "w")
    )
    torch.save({"x": torch.zeros(1)}, weights)
    assert "found those of another network" in refused(capsys, *given, "w")
    assert f"--weights-dir {weights}: " in (told := refused(capsys, *given, str(weights)))
    assert "found a file" in told
    torch.save(models.get_model("mobilenet_v2", weights=None).state_dict(), weights)
    assert main(["init", *given, "w"]) == 0
    assert read_params().weights_dir == "w"
    shutil.rmtree("w")
    assert main(["init", "my pets", "--quick", "--name", "again"]) == 2
    assert "local.yaml: weights_dir w: expected a folder" in capsys.readouterr().err
