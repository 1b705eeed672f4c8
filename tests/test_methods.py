"""What every method of methods/ promises: `check`, for every preset at a tiny size; and
how a split is fed to it."""

from dataclasses import asdict, fields

import pytest
import torch

from benchmark.commands import check
from benchmark.commands.check import Trial
from benchmark.contracts import methods
from benchmark.scoring import model_scores
from benchmark.scoring.inputs import SplitInputs
from benchmark.season.plugins import method_of, presets

PRESETS = presets()
ROWS = {name: row for name, (_, row) in PRESETS.items() if not row.fuse}
TINY = {
    "dropout": 0.0,
    "regions": 3,
    "blocks": "1,1,1,1",
    "text_width": 1 / 64,
    "text_length": 12,
}
# On a CPU these start from an approximation by the processor: see
# benchmark/core/numerics.py.
APPROXIMATED = {
    "sqrt",
    "sqrt_",
    "acos",
    "asin",
    "atan",
    "tan",
    "log2",
    "_cdist_forward",
}


def tiny(method: str, row: object = None) -> Trial:
    """A method with the options of a preset; every size of a layer is small, whatever
    it says."""
    module = method_of(method)
    names = [field.name for field in fields(module.Config)]
    # word vectors have the size that they have
    kept = ("batch_size", "pool_size", "word_size")
    sizes = {n: 16 for n in names if n.endswith("_size") and n not in kept}
    small = sizes | {n: value for n, value in TINY.items() if n in names}
    return Trial(module, (row.options if row else {}) | small, row)


def trials() -> dict[str, Trial]:
    """One per preset; presets that only differ in sizes and in numbers that are not 0
    are one."""
    by_kind: dict[object, tuple[str, Trial]] = {}
    for name, row in ROWS.items():
        trial = tiny(PRESETS[name][0], row)
        values = asdict(trial.config).values()
        kind = tuple(
            value if isinstance(value, str | bool) else bool(value) for value in values
        )
        by_kind.setdefault((trial.module, kind), (name, trial))
    return dict(by_kind.values())


TRIALS = trials()
# as others, with more options
LARGEST = ("dual_path_official_2", "dual_path_official_rank_1")
each = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGEST)) for n in TRIALS]
)


@each
def test_a_preset_keeps_the_contract(name):
    ended = check.check(TRIALS[name])
    assert [promise for promise in ended if not promise.is_kept] == []
    assert len(ended) > 5


@each
def test_nothing_is_computed_that_processors_approximate(name):
    """Not within torch's own functions either: a batch norm of a transposed tensor
    takes one."""
    trial = TRIALS[name]
    model, phases = trial.model(), trial.module.recipe(trial.config)
    with torch.profiler.profile() as seen:
        if phases:
            sum(model.loss(trial.batch(list(range(8)), phases)).values()).backward()
        model.eval()
        images, captions = trial.images(6), trial.captions(11)
        model.similarity(model.encode_images(images), model.encode_captions(captions))
    names = {event.key.removeprefix("aten::") for event in seen.key_averages()}
    assert len(names) > 3 and names & APPROXIMATED == set()


@pytest.mark.parametrize("name", methods.names())
@pytest.mark.parametrize("offer", ["fit", "scores", "caption_similarity", "attention"])
def test_what_a_model_offers_is_declared(name, offer):
    module = methods.load(name)
    of_method = [trial for trial in TRIALS.values() if trial.module is module]
    assert of_method
    declared = any(getattr(trial.takes, offer) for trial in of_method)
    assert declared == hasattr(module.Model, offer)


def test_parts_that_fusions_name_are_offered():
    for name, (_, row) in PRESETS.items():
        for member in row.fuse.of if row.fuse else []:
            preset, _, part = member.partition(":")
            if part:
                takes = tiny(PRESETS[preset][0], ROWS[preset]).takes
                assert part in takes.scores, f"{name}: {member}"


# Splits -------------------------------------------------------------------------------


def split_of(trial: Trial, images: int = 5, captions: int = 11) -> SplitInputs:
    return SplitInputs(
        images=trial.images(images).half(),
        captions=trial.captions(captions),
        image_of_caption=torch.arange(captions) % images,
        group_of_image=torch.arange(images),
        device=torch.device("cpu"),
    )


def test_a_split_is_scored_in_chunks_of_any_size_and_by_parts(monkeypatch):
    name = next(name for name, trial in TRIALS.items() if trial.takes.scores)
    model, inputs = TRIALS[name].model().eval(), split_of(TRIALS[name])
    with torch.no_grad():
        images = model.encode_images(inputs.images_at(slice(None)))
        captions = model.encode_captions(inputs.captions)
        whole, parts = (
            model.similarity(images, captions),
            model.scores(images, captions),
        )
    for chunk in (2, 5):
        monkeypatch.setattr(model_scores, "ENCODE_CHUNK", chunk)
        scores = model_scores.score(model, inputs)
        torch.testing.assert_close(scores, whole, rtol=1e-5, atol=1e-6)
    member = model_scores.encoded(model, inputs, (*parts, ""))
    found = map(torch.from_numpy, member.scores(slice(None), slice(None)))
    for matrix, expected in zip(found, (*parts.values(), whole), strict=True):
        expected = expected[member.image_order][:, member.caption_order]
        torch.testing.assert_close(matrix, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(KeyError, match="nothing"):
        model_scores.encoded(model, inputs, ("nothing",)).scores(
            slice(None), slice(None)
        )
