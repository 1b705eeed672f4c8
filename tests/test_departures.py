"""Departures from a paper: facts in records, words at the end."""

import pytest

from benchmark.core.departures import Aspect, Departure, sentence


@pytest.mark.parametrize("aspect", Aspect)
def test_every_aspect_has_words_of_its_own(aspect):
    words = sentence(Departure(aspect=aspect, here="x_y", texts="phrase"))
    others = {
        sentence(Departure(aspect=other, here="x_y", texts="phrase"))
        for other in Aspect
        if other != aspect
    }
    assert words and words not in others


def test_what_the_paper_has_is_told_where_it_is_known():
    network = Departure(aspect=Aspect.IMAGE_NETWORK, here="cnn", in_paper="vgg19")
    assert "vgg19" in sentence(network)
    assert "paper" not in sentence(network.model_copy(update={"in_paper": ""}))
