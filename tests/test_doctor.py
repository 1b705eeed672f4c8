"""`doctor` names what a season lacks, where to get it, and what its trainings cost."""

from pathlib import Path

import pytest

from benchmark.__main__ import main
from benchmark.season.parameters import DatasetSettings, Season
from benchmark.season.resolving import resolve
from seasons import write_params

ROOT = Path(__file__).parent.parent


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def enter(settings: dict, presets: list[str]) -> None:
    datasets = {
        name: DatasetSettings.model_validate(facts) for name, facts in settings.items()
    }
    declared = Season(
        title="T", datasets=datasets, presets=presets, seeds=[0], device="cpu"
    )
    write_params(resolve("try", declared), declared)


def test_what_is_missing_is_told_with_where_it_comes_from(folder, capsys):
    words = {"vectors": "GoogleNews-vectors-negative300.bin"}
    image = {"network": "squeezenet1_1", "features": "squeeze.npy"}
    enter({"flickr30k": {"words": words, "image": image}}, ["two_branch_single"])
    assert main(["doctor"]) == 2
    told = capsys.readouterr()
    assert "ask for it at https://" in told.out and "[ ] " in told.out
    assert "GoogleNews-vectors-negative300.bin: not found" in told.out
    assert "squeeze.npy: not found" in told.out
    assert "missing: flickr30k, flickr30k-" in told.err


def test_the_folder_of_weights_is_looked_at(folder, capsys):
    Path("weights").mkdir()
    Path("weights/vectors.txt").touch()
    Path("local.yaml").write_text("weights_dir: weights\n")
    words = {"vectors": "vectors.txt", "size": 5}
    image = {"network": "drawn_cnn"}
    enter({"shapes": {"words": words, "image": image}}, ["scan_t2i_avg"])
    assert main(["doctor"]) == 0
    Path("weights/mobilenet_v2-b0353104.pth").touch()
    proposals = {"how": "rpn", "network": "mobilenet_v2"}
    image = {"network": "drawn_cnn"}
    enter(
        {"shapes": {"image": image, "proposals": proposals}},
        ["two_branch_phrase_single"],
    )
    assert main(["doctor"]) == 2
    told = capsys.readouterr().out
    assert "fasterrcnn_resnet50_fpn_v2_coco-*.pth" in told
    Path("weights/fasterrcnn_resnet50_fpn_v2_coco-dd69338a.pth").touch()
    assert main(["doctor"]) == 0
