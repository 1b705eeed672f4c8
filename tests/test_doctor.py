"""`doctor` names what a season lacks, where to get it, and what its trainings cost."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from refusals import refused

from benchmark.__main__ import main
from benchmark.commands import doctor, estimates
from benchmark.commands.doctor import Disk
from benchmark.commands.estimates import Estimate
from benchmark.core import devices
from benchmark.features import weight_files
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import DatasetSettings, Season
from benchmark.season.resolving import resolve
from seasons import write_params

ROOT = Path(__file__).parent.parent
PLAIN = """\
import sys
from benchmark.__main__ import main
assert main(["doctor"]) == 0
loaded = {"torch", "torchvision", "scipy.linalg", "scipy.special"} & sys.modules.keys()
assert not loaded, loaded
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setattr(weight_files, "why_unreachable", lambda url: "no network")
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
    assert " https://" in told.out and "[ ] " in told.out
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
    Path("weights/mobilenet_v2-b0353104.pth").write_bytes(b"w")
    proposals = {"how": "rpn", "network": "mobilenet_v2"}
    image = {"network": "drawn_cnn"}
    enter(
        {"shapes": {"image": image, "proposals": proposals}},
        ["two_branch_phrase_single"],
    )
    assert main(["doctor"]) == 2
    told = capsys.readouterr().out
    assert "fasterrcnn_resnet50_fpn_v2_coco-*.pth" in told
    detector = Path("weights/fasterrcnn_resnet50_fpn_v2_coco-dd69338a.pth")
    detector.touch()
    assert main(["doctor"]) == 2
    assert f"{detector}: expected weights" in capsys.readouterr().out
    detector.write_bytes(b"w")
    assert main(["doctor"]) == 0


def enter_pretrained() -> str:
    """A season whose images need downloaded weights; its encoding of images."""
    enter({"shapes": {"image": {"network": "mobilenet_v2"}}}, ["scan_t2i_avg"])
    sets = read_params().feature_sets
    return next(name for name, each in sets.items() if each.kind == "pictures")


def test_weights_that_cannot_be_downloaded_are_missing(folder, monkeypatch):
    name = enter_pretrained()
    assert doctor.findings_of(read_params())[name].is_missing
    assert main(["doctor"]) == 2
    monkeypatch.setattr(weight_files, "why_unreachable", lambda url: "")
    finding = doctor.findings_of(read_params())[name]
    assert not finding.is_missing and "https://" in finding.text
    assert finding.text != "ok" and main(["doctor"]) == 0
    file = finding.text.partition(":")[0]
    Path("torch/hub/checkpoints").mkdir(parents=True)
    Path("torch/hub/checkpoints", file).touch()
    assert doctor.findings_of(read_params())[name].is_missing
    Path("torch/hub/checkpoints", file).write_bytes(b"w")
    assert doctor.findings_of(read_params())[name].text == "ok"


def test_an_address_that_does_not_answer_has_a_reason(monkeypatch):
    def refuses(request, timeout):
        assert request.get_method() == "HEAD" and timeout < 10
        raise OSError("no network")

    monkeypatch.setattr(weight_files, "urlopen", refuses)
    assert weight_files.why_unreachable("https://nowhere.invalid/x.pth") == "no network"


def test_vectors_of_captions_are_missing_with_their_words(folder):
    words = {"vectors": "vectors.bin", "size": 5}
    enter(
        {"shapes": {"words": words, "image": {"network": "drawn_cnn"}}},
        ["two_branch_single"],
    )
    params = read_params()
    kinds = {each.kind: name for name, each in params.feature_sets.items()}
    findings = doctor.findings_of(params)
    assert (
        findings[kinds["words"]].is_missing and findings[kinds["sentences"]].is_missing
    )
    told = doctor.told_once(findings)
    assert len(told) == len(findings) - 1 == len(set(told))
    assert f"{kinds['words']} and 1 more" in told
    assert not findings[kinds["pictures"]].is_missing
    Path("vectors.bin").touch()
    found = doctor.findings_of(params)[kinds["sentences"]]
    assert found.is_missing and "vectors.bin: an empty file" in found.text


def test_folders_that_are_gone_are_missing(folder):
    Path("local.yaml").write_text("weights_dir: w\nsources: {shapes: s}\n")
    enter({"shapes": {"image": {"network": "drawn_cnn"}}}, ["scan_t2i_avg"])
    findings = doctor.findings_of(read_params())
    assert findings["--weights-dir"].is_missing and findings["shapes"].is_missing


def test_too_little_disk_is_a_failure_with_both_numbers(folder, monkeypatch, capsys):
    enter({"shapes": {"image": {"network": "drawn_cnn"}}}, ["scan_t2i_avg"])
    assert main(["doctor"]) == 0
    assert doctor.disk_of(read_params()).needed == doctor.CELL_GIB
    short = Disk(needed=199.9, free=61.9)
    assert short.is_short and not Disk(1.0, 2.0).is_short
    monkeypatch.setattr(doctor, "disk_of", lambda params: short)
    capsys.readouterr()
    assert main(["doctor"]) == 2
    told = capsys.readouterr()
    assert "MISSING: about 199.9 GiB" in told.out
    assert "199.9" in told.err and "61.9" in told.err


def test_hours_are_told_before_what_is_missing(folder, monkeypatch, capsys):
    enter_pretrained()
    monkeypatch.setattr(estimates, "estimate", lambda params: Estimate([], []))
    assert main(["doctor", "--estimate"]) == 2
    told = capsys.readouterr()
    assert "in all         0.0 minutes" in told.out and "missing" in told.err
    assert f"fingerprint {devices.fingerprint()}\n" in told.out


def test_disk_of_data_from_elsewhere_is_not_asked_for_twice(folder):
    enter({"flickr30k": {"source": "own"}}, ["scan_t2i_avg"])
    linked = doctor.disk_of(read_params()).needed
    enter({"flickr30k": {}}, ["scan_t2i_avg"])
    params = read_params()
    assert doctor.disk_of(params).needed > linked > doctor.CELL_GIB
    for folder_name in ("raw", "prepared"):
        Path("data", folder_name, "flickr30k").mkdir(parents=True)
    Path("data/prepared/flickr30k/captions.parquet").touch()
    assert doctor.disk_of(params).needed == doctor.CELL_GIB


def test_encodings_of_folds_are_looked_for_in_their_dataset(folder):
    words = {"vectors": "vectors.bin", "size": 5}
    settings = {"words": words, "image": {"network": "drawn_cnn"}, "folds": 3}
    enter({"shapes": settings}, ["two_branch_single"])
    params = read_params()
    findings = doctor.findings_of(params)
    kinds = {"shapes": set(), "shapes_fold1": set(), "shapes_fold2": set()}
    for name, each in params.feature_sets.items():
        if name in findings:
            kinds[each.dataset].add(each.kind)
            assert findings[name].is_missing == (each.kind != "pictures")
    assert kinds.pop("shapes") == {"pictures", "words", "sentences"}
    assert set(map(frozenset, kinds.values())) == {frozenset({"words", "sentences"})}


def test_nothing_is_to_be_fetched_into_a_linked_folder(folder):
    enter({"flickr8k": {}}, ["scan_t2i_avg"])
    assert "rematch fetch" in doctor.findings_of(read_params())["flickr8k"].text
    for path in (folder / "own", Path("data/raw")):
        path.mkdir(parents=True)
    Path("data/raw/flickr8k").symlink_to(folder / "own")
    assert "rematch fetch" not in doctor.findings_of(read_params())["flickr8k"].text


def test_what_an_encoder_lacks_is_told_where_its_words_lack_nothing(folder):
    settings = {"image": {"network": "drawn_cnn"}}
    settings["sentence"] = {"bilstm_max": {"weights": "infersent.pkl"}}
    enter({"shapes": settings}, ["cyclematch"])
    params = read_params()
    kinds = {each.kind: name for name, each in params.feature_sets.items()}
    findings = doctor.findings_of(params)
    assert not findings[kinds["words"]].is_missing
    assert "infersent.pkl" in findings[kinds["sentences"]].text
    settings["words"] = {"vectors": "vectors.bin", "size": 5}
    enter({"shapes": settings}, ["cyclematch"])
    params = read_params()
    kinds = {each.kind: name for name, each in params.feature_sets.items()}
    lacking = doctor.findings_of(params)[kinds["sentences"]].text
    assert "infersent.pkl" in lacking and "vectors.bin" in lacking


# Torch --------------------------------------------------------------------------------


def test_a_plain_run_loads_no_torch(folder, capsys):
    downloaded = folder / "torch/hub/checkpoints"
    downloaded.mkdir(parents=True)
    (downloaded / "mobilenet_v2-b0353104.pth").write_bytes(b"w")
    pretrained = {"reader": "shapes", "image": {"network": "mobilenet_v2"}}
    drawn = {"words": {}, "image": {"network": "drawn_cnn"}}
    settings = {"shapes": drawn, "others": pretrained}
    enter(settings, ["scan_t2i_avg", "two_branch_single"])
    assert main(["doctor"]) == 0  # notes what the methods take
    told = capsys.readouterr().out
    command, paths = [sys.executable, "-c", PLAIN], {"PYTHONPATH": str(ROOT)}
    plain = subprocess.run(
        command, env=os.environ | paths, capture_output=True, text=True
    )
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout == told
    assert f"torch {torch.__version__.partition('+')[0]}" in told
    assert "--estimate, which loads torch" in told


def cuda_driver(version: int, names: list[str], fault: int = 0) -> SimpleNamespace:
    """CUDA's, with these GPUs."""

    def tell_version(number):
        number._obj.value = version

    def tell_count(number):
        number._obj.value = len(names)

    def tell_device(device, number):
        device._obj.value = 10 + number

    def tell_name(name, size, device):
        assert len(name) == size
        name.value = names[device.value - 10].encode()

    return SimpleNamespace(
        cuInit=lambda flags: fault,
        cuDriverGetVersion=tell_version,
        cuDeviceGetCount=tell_count,
        cuDeviceGet=tell_device,
        cuDeviceGetName=tell_name,
    )


@pytest.mark.parametrize(
    ("built_for", "driver", "found"),
    [
        (13, cuda_driver(13020, ["A", "B"]), ["A", "B"]),
        (13, cuda_driver(14000, ["A"]), ["A"]),
        (13, cuda_driver(12080, ["A"]), []),
        (13, cuda_driver(13000, ["A"], fault=100), []),
        (13, cuda_driver(13000, []), []),
        (0, cuda_driver(13000, ["A"]), []),
        (13, None, []),
    ],
)
def test_gpus_are_those_that_the_driver_has_for_torch(
    built_for, driver, found, monkeypatch
):
    def loaded(name):
        if driver is None:
            raise OSError(name)
        return driver

    monkeypatch.setattr(doctor, "cuda_of_torch", lambda: built_for)
    monkeypatch.setattr(ctypes, "CDLL", loaded)
    assert doctor.gpu_names() == found
    assert doctor.device_told("auto") == (found[0] if found else "cpu")
    assert doctor.device_told("cpu") == "cpu"


def test_what_torch_itself_says_is_the_same():
    built_for = (torch.version.cuda or "0").partition(".")[0]
    assert doctor.cuda_of_torch() == int(built_for)
    told = doctor.device_told("auto")
    assert told == devices.kind(devices.pick("auto"))
    with refused("device", "cpu", "'gpu'"):
        doctor.device_told("gpu")


def test_a_library_of_torch_that_is_gone_is_missing(folder, monkeypatch, capsys):
    enter({"shapes": {"image": {"network": "drawn_cnn"}}}, ["scan_t2i_avg"])
    assert doctor.lost_libraries() == []
    record = "torch/__init__.py,,\ntorch/lib/libtorch.so,sha256=x,12\n"
    record += "torch.libs/libz.so.1,,\ntorch/lib/libc10.dylib,,3\n"
    (folder / "torch.libs").mkdir()
    (folder / "torch.libs/libz.so.1").touch()
    installed = SimpleNamespace(
        read_text={"RECORD": record}.get, locate_file=lambda name: folder / name
    )
    monkeypatch.setattr(doctor, "OF_TORCH", ("torch",))
    monkeypatch.setattr(doctor, "distribution", lambda name: installed)
    assert doctor.lost_libraries() == [
        "torch/lib/libtorch.so",
        "torch/lib/libc10.dylib",
    ]
    assert main(["doctor"]) == 2
    told = capsys.readouterr()
    assert "MISSING: torch/lib/libtorch.so" in told.out
    assert "missing: torch" in told.err
