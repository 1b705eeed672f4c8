"""The network for drawn scenes: where its weights are."""

import pytest
from refusals import refused

from benchmark.features import drawn_cnn


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_missing_weights_and_other_networks_are_refused():
    do = "run: python -m benchmark.encode.drawn_pretraining"
    with refused(drawn_cnn.WEIGHTS, found="nothing", do=do):
        drawn_cnn.load("drawn_cnn", None)
    with refused("", "drawn_cnn", "'resnet50'"):
        drawn_cnn.load("resnet50", None)
