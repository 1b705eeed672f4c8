"""`run` plays one cell and what it needs, without DVC."""

import json
from pathlib import Path
from types import SimpleNamespace

import builders
import pytest
from refusals import refused

from benchmark.__main__ import main
from benchmark.commands import run
from benchmark.core.files import write_json
from benchmark.core.records import Costs
from benchmark.encode import drawn_pretraining
from benchmark.season.parameters import FeatureSet, ImageEncoder
from benchmark.season.stages import Kind, Stage
from seasons import ROOT, params_of

pytestmark = pytest.mark.usefixtures("empty_folder")


def test_an_option_is_a_key_and_a_value():
    assert run.option("epochs=3") == ("epochs", 3)
    assert run.option("rate=1.5") == ("rate", 1.5)
    assert run.option("flat=true") == ("flat", True)
    assert run.option("name=a=b") == ("name", "a=b")
    # not as the text that YAML makes of them: a trial is read as a number
    assert run.option("rate=1e-3") == ("rate", 0.001)
    assert run.option("rate=2.5E3") == ("rate", 2500.0)


@pytest.mark.parametrize(
    "value", ["[1", ": b", "2020-13-45", "!!python/name:os.system"]
)
def test_an_option_that_is_no_yaml_is_refused(value):
    with refused("--option epochs"):
        run.option(f"epochs={value}")


def test_an_option_that_is_there_twice_is_refused():
    assert run.options_of(["epochs=3", "rate=2"]) == {"epochs": 3, "rate": 2}
    with refused("--option epochs", found="3 and 4"):
        run.options_of(["epochs=3", "epochs=4"])


@pytest.mark.parametrize(
    ("words", "found"), [([], "neither"), (["vse", "--method", "vse"], "both")]
)
def test_a_preset_or_a_method_is_run(words, found, capsys):
    assert main(["run", *words]) == 2
    assert found in capsys.readouterr().err


MEMBERS = ["scan_t2i_avg", "scan_i2t_lse"]


@pytest.mark.parametrize(
    ("preset", "needs"),
    [
        ("scan_t2i_avg", []),
        ("dual_path_full_2", ["dual_path_instance_1"]),
        ("scan_t2i_avg_i2t_lse", MEMBERS),
    ],
)
def test_run_plays_what_a_preset_needs_and_shows_the_preset(
    preset, needs, capsys, monkeypatch
):
    given, read = [], []
    lost = SimpleNamespace(status="not_applicable", reason="no pixels", metrics={})
    monkeypatch.setattr(run, "run", lambda params, *others: given.append(params))
    monkeypatch.setattr(
        run, "read_record", lambda folder: read.append(str(folder)) or lost
    )
    assert main(["run", preset, "--seed", "2", "--option", "epochs=3"]) == 0
    (params,) = given
    assert list(params.everything) == [f"shapes-{name}-2" for name in (*needs, preset)]
    assert all(cell.options["epochs"] == 3 for cell in params.cells.values())
    (folder,) = read
    assert folder == f"data/cells/run/shapes/{preset}/2"
    assert (
        capsys.readouterr().out == f"{folder}/record.json: not_applicable no pixels\n"
    )


def test_run_prints_the_whole_record_for_scripts(capsys, monkeypatch):
    made = builders.record(metrics={"rsum": 1.5})
    monkeypatch.setattr(run, "run", lambda *given: None)
    monkeypatch.setattr(run, "read_record", lambda folder: made)
    costs = Costs(scoring=builders.cost(per_pair=1.0))
    monkeypatch.setattr(run.results, "read_cell_costs", lambda folder, record: costs)
    assert main(["run", "scan_t2i_avg", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == made.model_dump(mode="json") | {
        "cost": costs.model_dump(mode="json")
    }


@pytest.mark.slow
def test_run_plays_a_method_file_from_anywhere(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 128)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 1)
    source = (ROOT / "methods" / "two_branch_embedding.py").read_text(encoding="utf-8")
    Path("mine.py").write_text(source, encoding="utf-8")
    Path("small.yaml").write_text(
        "title: Small\ndatasets:\n  shapes:\n    options: {train: 40, val: 10, test: 12}\n"
        "    image: {network: drawn_cnn, input_size: 96}\n    words: {size: 8}\n"
        "presets: [scan_t2i_avg]\nseeds: [0]\n",
        encoding="utf-8",
    )
    assert main(["season", "small.yaml"]) == 0
    capsys.readouterr()
    options = ["--option", "epochs=1", "--option", "hidden_size=8"]
    assert main(["run", "--method", "mine.py", "--seed", "3", *options]) == 0
    path = Path("data/cells/run/shapes/mine/3/record.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["preset"], record["seed"], record["status"]) == ("mine", 3, "ok")
    assert record["options"]["hidden_size"] == 8


def test_an_option_that_a_card_does_not_have_yet_is_at_its_default():
    settings = ImageEncoder(grid=7)
    written = settings.model_dump(exclude={"features", "pixels"})
    assert run._are_same(written, settings)
    assert not run._are_same(written, ImageEncoder(grid=7, pixels=128))
    assert not run._are_same(written | {"grid": 6}, settings)
    assert not run._are_same(written | {"of_another_version": 1}, settings)


def pictures_of(settings: ImageEncoder) -> FeatureSet:
    facts = {"dataset": "d", "reader": "d", "kind": "pictures", "encoder": "drawn_cnn"}
    return FeatureSet(**facts, folder="f", source="data/prepared/d", image=settings)


def test_features_of_other_tables_or_settings_are_encoded_again(monkeypatch):
    prepared = SimpleNamespace(sha256="a")
    monkeypatch.setattr(run.prepared_tables, "read", lambda name: prepared)
    settings = ImageEncoder(grid=7)
    assert not run.is_encoded(pictures_of(settings))
    card = {"prepared_sha256": "a", "settings": settings.model_dump()}
    write_json(Path("f/card.json"), card)
    assert run.is_encoded(pictures_of(settings))
    assert not run.is_encoded(pictures_of(ImageEncoder(grid=6)))
    prepared.sha256 = "b"
    assert not run.is_encoded(pictures_of(settings))


def test_features_go_when_their_dataset_is_prepared_again(monkeypatch):
    write_json(Path("f/card.json"), {})
    monkeypatch.setattr(run, "prepare", lambda params, name: [])
    sets = {"d-f": pictures_of(ImageEncoder())}
    params = params_of().model_copy(update={"feature_sets": sets})
    run.do(params, Stage(name="prepare-d", kind=Kind.PREPARE, item="d"))
    assert not Path("f").exists()
