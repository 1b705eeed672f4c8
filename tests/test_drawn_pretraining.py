"""Pretraining on few drawings."""

import pytest
import torch

from benchmark.encode import drawn_pretraining
from benchmark.features import drawn_cnn


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch) -> None:
    """An empty folder, and a pretraining of four steps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(drawn_pretraining, "CLOSE_UPS", 128)
    monkeypatch.setattr(drawn_pretraining, "EPOCHS", 2)


def test_pretraining_is_the_same_every_time_and_is_what_is_loaded():
    drawn_pretraining.main()
    first = drawn_cnn.WEIGHTS.read_bytes()
    network, facts = drawn_cnn.load("drawn_cnn", None)
    torch.manual_seed(99)
    expected = drawn_pretraining.pretrained().state_dict()
    assert not network.training and set(network.state_dict()) == set(expected)
    assert all(
        torch.equal(value, expected[name])
        for name, value in network.state_dict().items()
    )
    assert facts["file"] == "pretrained here on 10000 close-ups, 6 epochs"
    assert len(facts["sha256"]) == 64
    drawn_pretraining.main()
    assert drawn_cnn.WEIGHTS.read_bytes() == first
    assert [path.name for path in drawn_cnn.WEIGHTS.parent.iterdir()] == [
        "drawn_cnn.pt"
    ]
