"""The made-up data that `check` feeds to methods."""

from dataclasses import fields

import pytest
import torch
from tiny_cells import METHODS

from benchmark.commands.trials import PAIRS, WORDS, Trial
from benchmark.season.plugins import method_of

KINDS = {  # method -> the shortest caption that it is fed; 0: vectors of whole sentences
    METHODS["plain"][0]: 0,  # pooled images
    METHODS["word_means"][0]: 1,
    METHODS["pooled_tokens"][0]: 1,
    "vse": 2,  # <start> and <end>
    "scan": 2,  # regions
    "two_branch_phrase_embedding": 0,
}


def trial_of(method: str) -> Trial:
    return Trial(method_of(method), {})


@pytest.mark.parametrize("method", KINDS)
def test_the_first_captions_are_the_longest_and_the_shortest(method):
    captions = trial_of(method).captions(5)
    lengths = captions.lengths.tolist()
    assert lengths[:2] == [WORDS, KINDS[method]] if KINDS[method] else lengths == [1] * 5
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
        if isinstance(ours, torch.Tensor) and not ours.nan_to_num().equal(theirs.nan_to_num()):
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
            changed.add(entry.name)
    assert changed == expected[side] & {entry.name for entry in fields(batch)}


def test_other_pixels_are_pixels():
    trial = trial_of("dual_path")
    trial.options = {"stage": 2}
    batch = trial.batch(list(range(PAIRS)), [])
    other = trial.with_other(batch, "images")
    assert trial.takes.image == "pixels" and other.images.dtype == torch.uint8
    assert (batch.images.int() + other.images.int() == 255).all()
