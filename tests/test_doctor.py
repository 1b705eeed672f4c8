"""What `doctor` says of a season: what is there, what is missing, what it will cost."""

import argparse
import dataclasses
import json
from pathlib import Path

import pytest

from benchmark.commands import doctor
from benchmark.core.command_line import run_stage
from benchmark.core.errors import UserError
from benchmark.season.parameter_files import write_params
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season
from datasets import Needed, RemoteFile, folder


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def activate(preset: str = "two_branch_bidirectional", **settings: object) -> None:
    image = {"network": "mobilenet_v2", "input_size": 64, "grid": 2}
    wanted = {
        "title": "Try",
        "datasets": {"mine": {"reader": "folder", "image": image} | settings},
        "presets": [preset],
        "seeds": [0],
    }
    write_params(resolve("try", Season.model_validate(wanted)))


def own_folder(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "a.png").touch()
    (place / "captions.csv").write_text("image,caption\na.png,A cat.\n")


def diagnosed(capsys, *words: str) -> tuple[int, str, str]:
    """Without timing: exit status, standard output and standard error."""
    status = run_stage("", doctor.configure, doctor.main, ["--quick", *words])
    streams = capsys.readouterr()
    return status, streams.out, streams.err


def examined(*words: str) -> UserError:
    """What the command line would render as one line."""
    parser = argparse.ArgumentParser()
    doctor.configure(parser)
    with pytest.raises(UserError) as error:
        doctor.main(parser.parse_args(["--quick", *words]))
    return error.value


def test_a_gated_dataset_names_form_downloads_and_checklist(monkeypatch, capsys):
    card = dataclasses.replace(
        folder.CARD,
        form="https://example.org/form",
        checklist=(
            Needed("the captions", (("captions.csv",),)),
            Needed("the photographs", (("photographs/",),)),
        ),
        remote=(RemoteFile(name="splits.zip", urls=()),),
        raw_gib=2.5,
    )
    monkeypatch.setattr(folder, "CARD", card)
    activate()
    own_folder(Path("data/raw/mine"))
    Path("data/raw/mine/a.png").unlink()
    status, out, err = diagnosed(capsys)
    assert status == 2 and "found missing: mine;" in err
    assert "mine           MISSING: data/raw/mine/a.png: not found; 1 of 2 are missing" in out
    assert "  ask for it at https://example.org/form\n  fetch downloads splits.zip\n" in out
    assert "  [x] captions.csv: the captions\n  [ ] photographs/: the photographs\n" in out
    assert "raw files 2.5" in out
    findings = json.loads(diagnosed(capsys, "--json")[1])
    assert findings["datasets"]["mine"]["checklist"] == [
        "[x] captions.csv: the captions",
        "[ ] photographs/: the photographs",
    ]
    assert findings["disk"]["gib"]["raw_files"] == 2.5


def test_what_is_there_is_no_longer_missing(capsys):
    activate()
    own_folder(Path("data/raw/mine"))
    status, out, err = diagnosed(capsys)
    assert (status, err) == (0, "")
    assert "mine           ok: 2 files" in out
    assert "mine mobilenet_v2 ok: to be downloaded from https://download.pytorch.org" in out
    assert "(estimated)" in out and "training  " not in out
    assert "mine-two_branch_bidirectional-0: mine: its size is not known before it is prep" in out


def test_steps_are_timed_unless_it_must_be_quick(monkeypatch, capsys):
    row = {"dataset": "mine", "preset": "two_branch_linear", "trainings": 3, "steps": 500}
    rows = [
        row | {"hours": [0.01, 0.02]},
        row | {"preset": "scan_t2i_avg", "hours": [1.0, 5.0]},
        row | {"preset": "cca", "reason": "solved at once"},
    ]
    monkeypatch.setattr(doctor, "preset_times", lambda params, shapes: rows)
    activate()
    own_folder(Path("data/raw/mine"))
    assert run_stage("", doctor.configure, doctor.main, []) == 0
    lines = capsys.readouterr().out.splitlines()[-4:]
    assert lines[0].startswith("training       1 to 5 hours, encoding and evaluation not counted; ")
    assert "measured: two steps of each preset on this machine, in 0 s" in lines[0]
    assert lines[1:] == [
        "  mine two_branch_linear  3 x 500 steps  36 to 72 s",
        "  mine scan_t2i_avg       3 x 500 steps  1 to 5 hours",
        "not measured   mine cca: solved at once",
    ]
    assert run_stage("", doctor.configure, doctor.main, ["--json"]) == 0
    training = json.loads(capsys.readouterr().out)["training"]
    assert training["hours"] == [1.01, 5.02] and training["presets"] == rows
    assert "training" not in json.loads(diagnosed(capsys, "--json")[1])


def test_a_folder_of_the_user_is_looked_into_before_it_is_linked(monkeypatch, capsys):
    card = dataclasses.replace(
        folder.CARD,
        checklist=(
            Needed("the captions", (("captions.csv",),)),
            Needed("the photographs", (("photographs/",),)),
        ),
        remote=(RemoteFile(name="splits.zip", urls=()),),
        raw_gib=2.5,
    )
    monkeypatch.setattr(folder, "CARD", card)
    own_folder(Path("own"))
    activate(source="own")
    assert "mine           ok: 2 files in own\n" in diagnosed(capsys)[1]
    Path("own/photographs").mkdir()
    Path("own/a.png").unlink()
    status, out, _ = diagnosed(capsys)
    assert status == 2 and "mine           MISSING: own/a.png: not found; 1 of 2 are miss" in out
    assert "  [x] captions.csv: the captions\n  [ ] photographs/: the photographs\n" in out
    assert "raw files 2.5" in out and "fetch downloads" not in out  # nothing into their folder
    activate(source="nowhere")
    assert "mine           MISSING: nowhere" in diagnosed(capsys)[1]


def test_files_for_text_are_looked_for(capsys):
    words = {"vectors": "news.bin"}
    activate("cyclematch", words=words, sentence={"bilstm_max": {"weights": "infersent.pkl"}})
    own_folder(Path("data/raw/mine"))
    error = examined()
    assert (error.where, error.found) == ("season try", "missing: infersent.pkl, news.bin")
    assert error.expected and error.do
    out = capsys.readouterr().out
    assert "infersent.pkl  MISSING: not found; place it there" in out
    Path("news.bin").touch()
    Path("infersent.pkl").touch()
    assert diagnosed(capsys)[0] == 0


def test_features_that_are_imported_need_no_network(capsys):
    activate(features={"mobilenet_v2": "precomp"})
    own_folder(Path("data/raw/mine"))
    assert examined().found == "missing: mine mobilenet_v2"
    assert (
        "mine mobilenet_v2 MISSING: data/raw/mine/precomp: expected features to import, found "
        "nothing; place them there, or correct `features` in the season\n"
    ) in capsys.readouterr().out
    Path("data/raw/mine/precomp").mkdir()
    status, out, _ = diagnosed(capsys)
    assert status == 0 and "mine mobilenet_v2 ok: features from data/raw/mine/precomp\n" in out


def test_features_of_one_dataset_do_not_stand_in_for_those_of_another(capsys):
    imported = {"features": {"mobilenet_v2": "precomp"}}
    image = {"network": "mobilenet_v2", "input_size": 64, "grid": 2}
    settings = {"reader": "folder", "image": image} | imported
    wanted = {
        "title": "Try",
        "datasets": {"mine": settings, "yours": settings},
        "presets": ["two_branch_bidirectional"],
        "seeds": [0],
    }
    write_params(resolve("try", Season.model_validate(wanted)))
    for name in ("mine", "yours"):
        own_folder(Path("data/raw") / name)
    Path("data/raw/mine/precomp").mkdir()
    assert examined("--json").found == "missing: yours mobilenet_v2"
    networks = json.loads(capsys.readouterr().out)["networks"]
    assert {name: fact["present"] for name, fact in networks.items()} == {
        "mine mobilenet_v2": True,
        "yours mobilenet_v2": False,
    }


def test_boxes_of_files_are_looked_for(capsys):
    proposals = {"how": "file", "boxes": "edges", "network": "mobilenet_v2", "input_size": 64}
    activate("two_branch_phrase_bidirectional", proposals=proposals)
    own_folder(Path("data/raw/mine"))
    Path("data/raw/mine/edges").mkdir()
    assert examined().found == "missing: data/raw/mine/edges"
    assert (
        "data/raw/mine/edges MISSING: expected one .npz or .mat of boxes per image, found nothing; "
        "place them there, or correct `boxes` in the season\n"
    ) in capsys.readouterr().out
    Path("data/raw/mine/edges/a.mat").touch()
    status, out, _ = diagnosed(capsys)
    assert status == 0 and "data/raw/mine/edges ok: boxes of proposals\n" in out


def test_a_detector_for_proposals_is_a_network_as_well(capsys):
    proposals = {"how": "rpn", "network": "mobilenet_v2", "input_size": 64}
    activate("two_branch_phrase_bidirectional", proposals=proposals)
    own_folder(Path("data/raw/mine"))
    findings = json.loads(diagnosed(capsys, "--json")[1])
    assert set(findings["networks"]) == {"mine mobilenet_v2", "mine fasterrcnn_resnet50_fpn_v2"}


def test_too_little_disk_is_said(monkeypatch, capsys):
    monkeypatch.setattr(folder, "CARD", dataclasses.replace(folder.CARD, raw_gib=1e6))
    activate()
    assert "free: TOO LITTLE (estimated)" in diagnosed(capsys)[1]
