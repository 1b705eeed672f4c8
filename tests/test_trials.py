"""The made-up data that `check` feeds to methods; whether pairs that a method learned
score highest, or others do."""

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tiny_cells import METHODS
from torch import nn

from benchmark.commands import trials
from benchmark.commands.trials import (
    PAIRS,
    WORDS,
    Training,
    Trial,
    learned,
    pairing_of,
    side_names,
)
from benchmark.season.plugins import method_of

# method -> the shortest caption that it is fed; 0: vectors of whole sentences
KINDS = {
    METHODS["plain"][0]: 0,  # pooled images
    METHODS["word_means"][0]: 1,
    METHODS["pooled_tokens"][0]: 1,
    "vse": 2,  # <start> and <end>
    "scan": 2,  # regions
    "two_branch_phrase_embedding": 0,
}
OWN = torch.eye(PAIRS)
NEXT = OWN.roll(1, 1)  # image n with caption n + 1
LEARNED = {
    "true pairs": (OWN, True),
    "far from 0": (1e4 + OWN, True),
    "some of many": (
        OWN + 0.5 * torch.rand(PAIRS, PAIRS, generator=torch.manual_seed(0)),
        True,
    ),
    "the next caption": (NEXT, False),
    "true and next alike": (OWN + NEXT, False),
    "reversed": (-OWN, False),
    "all alike": (torch.ones(PAIRS, PAIRS), False),
    "one for all": (torch.ones(PAIRS, 1) * OWN[0], False),
    "not a number": (OWN / 0, False),
}


def trial_of(method: str) -> Trial:
    return Trial(method_of(method), {})


@pytest.mark.parametrize("method", KINDS)
def test_the_first_captions_are_the_longest_and_the_shortest(method):
    captions = trial_of(method).captions(5)
    lengths = captions.lengths.tolist()
    assert (
        lengths[:2] == [WORDS, KINDS[method]] if KINDS[method] else lengths == [1] * 5
    )
    assert trial_of(method).captions(1).lengths.tolist() == lengths[:1]


@pytest.mark.parametrize("side", ["images", "captions"])
@pytest.mark.parametrize("method", KINDS)
def test_one_side_of_a_batch_is_another(method, side):
    trial = trial_of(method)
    batch = trial.batch(list(range(PAIRS)), trial.module.recipe(trial.config))
    other = trial.with_other(batch, side)
    expected = {
        "images": {"images", "regions", "proposals"},
        "captions": {"captions", "phrases"},
    }
    changed = set()
    for entry in fields(batch):
        ours, theirs = getattr(batch, entry.name), getattr(other, entry.name)
        if entry.name in ("captions", "phrases"):
            assert ours.lengths.equal(theirs.lengths)
            ours, theirs = ours.values, theirs.values
        if isinstance(ours, torch.Tensor) and not ours.nan_to_num().equal(
            theirs.nan_to_num()
        ):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            changed.add(entry.name)
    assert changed == expected[side] & {entry.name for entry in fields(batch)}


def test_every_other_word_is_the_next_one_and_padding_stays():
    trial = trial_of("vse")
    batch = trial.batch(list(range(PAIRS)), [])
    size = trials.SIZES.text
    batch.captions.values[0, :3] = torch.tensor([1, size - 1, 0])
    ours = batch.captions.values.tolist()
    other = trial.with_other(batch, "captions").captions.values.tolist()
    next_of = {word: word + 1 for word in range(1, size - 1)} | {size - 1: 1, 0: 0}
    assert other == [list(map(next_of.get, row)) for row in ours]


def test_other_pixels_are_pixels():
    trial = trial_of("dual_path")
    trial.options = {"stage": 2}
    batch = trial.batch(list(range(PAIRS)), [])
    other = trial.with_other(batch, "images")
    assert trial.takes.image == "pixels" and other.images.dtype == torch.uint8
    assert (batch.images.int() + other.images.int() == 255).all()


# What a method learns -----------------------------------------------------------------


def tiny_trial(name: str, **options: object) -> Trial:
    return Trial(method_of(METHODS[name][0]), options)


def scoring(scores: torch.Tensor) -> SimpleNamespace:
    return SimpleNamespace(
        encode_images=lambda images: (images,),
        encode_captions=lambda captions: (captions.values,),
        similarity=lambda images, captions: scores,
    )


@pytest.mark.parametrize("case", LEARNED)
def test_true_pairs_must_lead_every_other_pairing(case):
    scores, is_learned = LEARNED[case]
    assert pairing_of(tiny_trial("plain"), scoring(scores)).is_learned == is_learned


def test_a_mistake_names_the_pairs_that_lead():
    pairing = pairing_of(tiny_trial("plain"), scoring(NEXT))
    assert (pairing.true, pairing.other) == (0, 1)
    assert pairing.partners == (1, 2, 3, 4, 5, 6, 7, 0)
    assert "image 1 with caption 2, image 2 with caption 3" in pairing.mistake


@pytest.mark.parametrize("is_right", [True, False])
def test_a_true_region_must_lead_proposals_that_do_not_fit(is_right):
    trial = Trial(method_of("two_branch_phrase_embedding"), {})
    batch = trial.batch(list(range(PAIRS)), [])
    regions = torch.cat([batch.regions, batch.proposals[:, 2:].flatten(0, 1)])
    is_true = torch.arange(len(regions)) < PAIRS

    def similarity(images, captions):
        rows = [(regions == image).all(1) for image in images[0]]
        scores = torch.stack([is_true[row][:1].float() for row in rows])
        return scores if is_right else -scores

    model = scoring(OWN)
    model.similarity = similarity
    pairing = pairing_of(trial, model)
    assert pairing.is_learned == is_right
    assert pairing.partners == () and "true regions score" in pairing.mistake


def test_a_training_ends_where_the_true_pairs_lead():
    trial = tiny_trial("plain")
    training, pairing = learned(trial, trial.module.recipe(trial.config))
    assert training.has_fallen and pairing.is_learned
    assert len(training.losses) == trials.LOOK_EVERY
    names = {"image.weight", "image.bias", "text.weight", "text.bias"}
    assert training.moved() == names


@pytest.mark.parametrize(
    ("losses", "has_fallen"),
    [
        ((-1.0, -0.9), False),
        ((-1.0, -1.2), True),
        ((1.0, 0.9), False),
        ((1.0, 0.6), True),
        ((0.001, 0.0009), True),
    ],
)
def test_a_loss_falls_below_zero_too(losses, has_fallen):
    trial = tiny_trial("plain")
    phases = trial.module.recipe(trial.config)
    training = Training(trial, phases, trials.RATES[0])
    coming = iter(losses)
    anything = next(training.model.parameters())
    training.model.loss = lambda batch: {"made": 0 * anything.sum() + next(coming)}
    for _ in losses:
        training.step(phases[0])
    assert training.has_fallen == has_fallen


def test_wrong_pairs_are_trained_to_the_end_with_every_rate(monkeypatch):
    rates = []

    class Counted(Training):
        def __init__(self, trial, phases, rate):
            rates.append(rate)
            super().__init__(trial, phases, rate)

    monkeypatch.setattr(trials, "Training", Counted)
    trial = tiny_trial("wrong", how="rolled")
    training, pairing = learned(trial, trial.module.recipe(trial.config))
    assert training.has_fallen and not pairing.is_learned
    assert len(training.losses) == trials.STEPS and rates == list(trials.RATES)


def test_the_phases_of_a_recipe_teach_one_after_another(tmp_path):
    source = Path(METHODS["plain"][0]).read_text(encoding="utf-8")
    one = "Phase(epochs=config.epochs, learning_rates=(0.01,) * config.epochs, batch_size=8)"
    # the first one trains images alone, the second one captions
    two = f"{one[:-1]}, terms=('images',)), {one[:-1]}, terms=('captions',))"
    loss = source[source.index("        images, texts =") :]
    classes = """        share = self.share.weight.T
        images = self.encode_images(batch.images)[0] @ share
        texts = self.encode_captions(batch.captions)[0] @ share
        return {
            "images": cross_entropy(images, batch.class_ids),
            "captions": cross_entropy(texts, batch.class_ids),
        }
"""
    layer = "        self.text = nn.Linear(sizes.text, config.embedding_size)\n"
    assert one in source and layer in source
    shared = (
        f"{layer}        self.share = nn.Linear(config.embedding_size, sizes.classes)\n"
    )
    path = tmp_path / "mine.py"
    path.write_text(
        source.replace(one, two).replace(loss, classes).replace(layer, shared)
    )
    trial = Trial(method_of(str(path)), {})
    _, pairing = learned(trial, trial.module.recipe(trial.config))
    assert pairing.is_learned


def test_the_parameters_of_a_side_are_those_that_no_other_side_uses():
    trial = tiny_trial("plain")
    model, given = trial.model(), (trial.images(3), trial.captions(3))
    names = side_names(model, *given)
    assert names == {
        "images": {"image.weight", "image.bias"},
        "captions": {"text.weight", "text.bias"},
    }
    model.image.requires_grad_(False)
    assert side_names(model, *given)["images"] == set()
    model.image = nn.Sequential(nn.Linear(24, 40), model.text)  # a layer that both use
    assert side_names(model, *given)["captions"] == set()
