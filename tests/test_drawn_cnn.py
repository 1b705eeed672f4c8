"""The network for drawn scenes: its pretraining, on few pictures, and its weights."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import datasets
from benchmark.core.errors import UserError
from benchmark.encode import drawn_pretraining
from benchmark.encoders import drawn_cnn


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch) -> None:
    """An empty folder, and a pretraining of four steps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 128)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 2)


def test_the_pretrained_network_is_what_is_loaded():
    drawn_pretraining.write_weights()
    network, facts = drawn_cnn.load("drawn_cnn", None)
    expected = drawn_pretraining.pretrained().state_dict()
    assert not network.training and set(network.state_dict()) == set(expected)
    assert all(torch.equal(value, expected[name]) for name, value in network.state_dict().items())
    assert facts["file"] == "pretrained here on 10000 close-ups, 6 epochs"
    assert len(facts["sha256"]) == 64


def test_pretraining_again_writes_the_same_bytes():
    drawn_pretraining.write_weights()
    first = drawn_cnn.WEIGHTS.read_bytes()
    torch.manual_seed(99)
    drawn_pretraining.write_weights()
    assert drawn_cnn.WEIGHTS.read_bytes() == first
    assert [path.name for path in drawn_cnn.WEIGHTS.parent.iterdir()] == ["drawn_cnn.pt"]


def test_pretraining_moves_every_weight():
    torch.manual_seed(drawn_pretraining.SEED)
    untrained = drawn_cnn.Network().state_dict()
    trained = drawn_pretraining.pretrained().state_dict()
    buffers = {"pooled_mean", "pooled_deviation"}  # set when features are standardised
    same = {name for name in trained if torch.equal(trained[name], untrained[name])}
    assert same == buffers
    assert trained["pooled_mean"].eq(0).all() and trained["pooled_deviation"].eq(1).all()


def test_close_ups_come_with_a_label_per_attribute():
    shapes = datasets.load("shapes")
    pixels, labels = drawn_pretraining._close_ups(shapes)
    assert pixels.shape[:2] == (128, 3) and pixels.dtype == torch.uint8
    assert labels.shape == (128, len(shapes.KINDS))
    for kind, column in zip(shapes.KINDS, labels.T, strict=True):
        assert 0 <= column.min() and column.max() < len(shapes.VALUES[kind])
        assert len(column.unique()) > 1
    with torch.no_grad():
        pooled, maps = drawn_cnn.Network().eval()(F.interpolate(pixels.float() / 255, (96, 96)))
    assert (pooled.shape, maps.shape) == ((128, 384), (128, 192, 6, 6))


def test_missing_weights_and_other_networks_are_refused():
    with pytest.raises(UserError) as caught:
        drawn_cnn.load("drawn_cnn", None)
    assert (Path(caught.value.where), caught.value.found) == (drawn_cnn.WEIGHTS, "nothing")
    assert caught.value.do == "run: python -m benchmark.encode.drawn_pretraining"
    with pytest.raises(UserError) as caught:
        drawn_cnn.load("resnet50", None)
    assert (caught.value.expected, caught.value.found) == ("drawn_cnn", "'resnet50'")
