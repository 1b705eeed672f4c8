"""Hours of a season are sums of its steps, scores and encodings."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmark.commands import estimates
from benchmark.commands.estimates import Counts, Kind, Schedule
from benchmark.commands.step_times import CellTimes, EncodingTimes
from benchmark.core.errors import UserError
from benchmark.core.numerics import PORTABLE, Numerics
from benchmark.season.parameter_files import read_params
from benchmark.season.parameters import DatasetSettings, Season
from benchmark.season.resolving import resolve

ROOT = Path(__file__).parent.parent
TIMES = CellTimes(steps=(0.5, 2.0), fit=7.0, image=0.1, caption=0.01, pair=0.001)
SCHEDULE = Schedule(
    steps=(10, 4),
    epochs=(3, 1),
    validated=(2, 10),
    tested=(4, 20),
    is_of_phrases=False,
    has_sentences=False,
)
VALIDATION = 2 * 0.1 + 10 * 0.01 + 20 * 0.001
EVALUATION = 4 * 0.1 + 20 * 0.01 + 80 * 0.001


def season(datasets: dict, presets: list[str], **more: object) -> estimates.Params:
    settings = {
        name: DatasetSettings.model_validate(facts) for name, facts in datasets.items()
    }
    more = {"seeds": [0, 1], "device": "cpu"} | more
    return resolve("try", Season(title="T", datasets=settings, presets=presets, **more))


def test_a_training_is_its_steps_and_validations():
    steps, stepping, seconds = estimates.trained(TIMES, SCHEDULE)
    assert steps == 34 and stepping == pytest.approx(30 * 0.5 + 4 * 2.0)
    assert seconds == pytest.approx(7.0 + stepping + 5 * VALIDATION)
    assert estimates.trained(TIMES, SCHEDULE, scale=2.0)[1] == 2 * stepping


def test_an_evaluation_encodes_twice():
    assert estimates.evaluated(TIMES, SCHEDULE) == pytest.approx(2 * EVALUATION)


def test_days_are_named_where_they_are():
    assert estimates.hours(47 * 3600) == "47.0 hours"
    assert estimates.hours(60 * 3600) == "60.0 hours (2.5 days)"
    assert estimates.hours(36) == "0.6 minutes"


def kind(method: str = "scan", batch: int = 8, **options: object) -> Kind:
    return Kind(
        method=method,
        options=tuple(sorted(options.items())),
        image=(4, 5),
        text=30,
        network="",
        batches=(batch,),
        numerics=Numerics(PORTABLE, threads=1),
        precision="float32",
    )


def test_a_kind_that_was_not_timed_is_like_one_that_was():
    timed = [kind(direction="t2i", pooling="avg"), kind(direction="i2t", pooling="lse")]
    wanted = kind(direction="i2t", pooling="max", batch=32)
    assert estimates.nearest(wanted, timed) == timed[1]
    assert estimates.scale_of(wanted, timed[1]) == 4.0
    assert estimates.nearest(timed[0], timed) == timed[0]
    assert estimates.nearest(kind("vse"), timed) is None
    # one that is not trained has no step
    untrained = replace(timed[1], batches=())
    assert estimates.nearest(wanted, [untrained]) is None
    assert estimates.nearest(untrained, timed) is None


def test_sizes_are_those_that_preparation_counted(monkeypatch):
    monkeypatch.chdir(ROOT)
    counts = estimates.counts_of(read_params("flickr8k"), "flickr8k")
    assert counts.captions == {"train": 30000, "val": 5000, "test": 5000, "unused": 455}
    assert counts.images["train"] == 6000


def test_sizes_of_data_that_was_never_here_are_those_of_its_card(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    params = season({"flickr30k": {"image": {"network": "vgg19"}}}, ["scan_t2i_avg"])
    counts = estimates.counts_of(params, "flickr30k")
    assert counts.captions["train"] == 5 * counts.images["train"] > 100_000
    Path("params.yaml").touch()  # a project, without the card of the dataset
    own = season({"shapes": {"image": {"network": "drawn_cnn"}}}, ["scan_t2i_avg"])
    with pytest.raises(UserError, match="prepare"):
        estimates.plan_of(own, next(iter(own.cells.values())), {})


def test_steps_are_those_of_the_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"scan": {"epochs": 6, "batch_size": 90, "decay_after": 3}}
    params = season(
        {"flickr30k": {"image": {"network": "vgg19"}}},
        ["scan_t2i_avg"],
        options=options,
        validation_images=10,
    )
    cell = next(iter(params.cells.values()))
    images = EncodingTimes(item=1.0, shapes={"pooled": (9,), "regions": (36, 7)})
    plan = estimates.plan_of(params, cell, {cell.images: images})
    counts = estimates.counts_of(params, "flickr30k")
    assert plan.schedule.epochs == (6,)
    whole, rest = divmod(counts.captions["train"], 90)
    assert rest and plan.schedule.steps == (whole + 1,)
    assert plan.schedule.validated == (10, 50)
    assert plan.fed.image == (36, 7) and plan.fed.text == estimates.VOCABULARY


def test_options_that_change_no_step_share_a_timing(monkeypatch):
    monkeypatch.chdir(ROOT)
    params = read_params("flickr8k")
    first = params.cells["flickr8k-scan_t2i_lse-0"]
    faster = first.model_copy(update={"options": first.options | {"epochs": 99}})
    wider = first.model_copy(update={"options": first.options | {"embedding_size": 9}})
    kinds = [
        estimates.plan_of(params, cell, {}).kind for cell in (first, faster, wider)
    ]
    assert kinds[0] == kinds[1] != kinds[2]


def test_what_has_no_estimate_is_told_with_its_reason():
    row = estimates.Row("vse", cells=2, training=7200.0, untold="it raised")
    encoding = estimates.Encoding("words", 10, 4, EncodingTimes(item=1.0, fitted=2.0))
    found = estimates.Estimate([row], [encoding], untimed=["x"], kinds=2, timed=1)
    assert found.seconds == 7218.0
    told = "\n".join(estimates.lines(found, "cpu"))
    assert "it raised" in told and "not timed: x" in told
    assert "at least 2.0 hours" in told


def test_features_that_folds_take_from_their_dataset_are_not_encoded_again(monkeypatch):
    images = {"train": 80, "val": 8, "test": 40}
    counts = Counts(images=images, captions=images, phrases=images)
    monkeypatch.setattr(estimates, "counts_of", lambda params, dataset: counts)
    image = {"network": "drawn_cnn"}
    params = season({"shapes": {"image": image, "folds": 3}}, ["scan_t2i_avg"])
    sets = params.feature_sets
    times = {each.folder: EncodingTimes(item=1.0) for each in sets.values()}
    encodings, untimed = estimates._encodings(params, times)
    named = [encoding.name for encoding in encodings]
    assert [sets[name].dataset for name in named] == ["shapes"] and untimed == []


def run_here(self, function, *arguments: object) -> object:
    found, worked = estimates.attempt(function, arguments)
    self.spent += worked
    return found


def test_a_season_is_estimated_within_its_seconds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(estimates._Timer, "result", run_here)
    images = {"train": 80, "val": 8, "test": 16, "unused": 40}
    captions = {split: 5 * count for split, count in images.items()}
    counts = Counts(images=images, captions=captions, phrases=captions)
    monkeypatch.setattr(estimates, "counts_of", lambda params, dataset: counts)
    image = {"network": "drawn_cnn", "input_size": 32, "grid": 2}
    options = {"scan": {"embedding_size": 6, "word_size": 4, "regions": 4}}
    presets = ["scan_t2i_avg", "scan_i2t_lse", "scan_t2i_avg_i2t_lse"]
    params = season({"shapes": {"image": image}}, presets, options=options)
    found = estimates.estimate(params, seconds=1.0)
    rows = {row.preset: row for row in found.rows}
    assert [rows[name].cells for name in presets] == [2, 2, 2]
    assert all(row.seconds > 0 and not row.untold for row in rows.values())
    fused, (first, second) = rows[presets[2]], map(rows.get, presets[:2])
    assert fused.evaluation == pytest.approx(first.evaluation + second.evaluation)
    assert fused.training == 0
    (pictures,) = found.encodings
    assert pictures.items == 104
    told = "\n".join(estimates.lines(found, "cpu"))
    assert "scan_i2t_lse" in told and "in all" in told and "days" not in told


def test_a_process_that_dies_is_a_reason_and_the_next_one_begins_anew():
    with estimates._Timer(Numerics(PORTABLE, threads=1), "cpu") as timer:
        assert "died" in timer.result(os._exit, 1)
        assert timer.result(len, "abc") == 3
        assert timer.result(int, "x").startswith("ValueError: ")


def test_a_fusion_of_what_has_no_estimate_has_none():
    fusion = SimpleNamespace(preset="both", members=["one", "two"])
    params = SimpleNamespace(cells={}, fusions={"both": fusion})
    (row,) = estimates._rows(params, {}, {}, {}, {})
    assert row.untold and row.seconds == 0
