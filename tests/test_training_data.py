"""What published text encoders were trained on, and what lies in what."""

import pytest

from benchmark.contracts import datasets
from benchmark.papers.training_data import ENCODERS, INCLUSIONS, corpora, holders


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["flickr8k"], ["flickr8k", "flickr30k", "snli"]),
        (
            ["mine", "flickr30k_entities"],
            ["mine", "flickr30k_entities", "flickr30k", "snli"],
        ),
        (["flickr30k"], ["flickr30k", "snli"]),
        (["snli"], ["snli"]),
        (["mscoco", "mscoco"], ["mscoco"]),
    ],
)
def test_captions_lie_in_every_corpus_that_has_them(names, expected):
    assert holders(names) == expected


def test_datasets_go_by_the_names_of_their_modules_and_every_fact_has_a_source():
    assert {each.dataset for each in INCLUSIONS} <= {*datasets.names()}
    assert all(fact.source for fact in (*INCLUSIONS, *ENCODERS))
    assert {"flickr8k", "flickr30k", "snli"} <= corpora()
    assert all(encoder.trained_on for encoder in ENCODERS)
