"""Workers that compute the tiles of one cell's scores side by side."""

import threading
import time

import numpy as np
import pytest
import torch
from tiny_cells import KINDS, RESULTS, cell_of, enter
from torch import nn

from benchmark.core.errors import UserError
from benchmark.evaluate import __main__ as evaluate
from benchmark.matching import score_stream, tile_workers
from benchmark.matching.score_stream import ScoreStream
from benchmark.matching.scoring import Encoded
from benchmark.matching.tile_workers import results_in_order
from benchmark.protocol import fusion
from benchmark.train import __main__ as train
from seasons import params_of

CPU = torch.device("cpu")
FILES = ("ranks.parquet", "similarities.npz", "retrieved.npz", "samples.npz")


def before_the_next(item: int) -> int:
    """Takes the longer, the earlier an item comes."""
    time.sleep(0.002 * (8 - item))
    return 10 * item


@pytest.mark.parametrize("workers", [1, 2, 3, 20])
def test_results_keep_the_order_of_their_items(workers):
    assert list(results_in_order([before_the_next] * workers, range(8))) == list(range(0, 80, 10))
    assert not list(results_in_order([before_the_next] * workers, []))


def test_workers_compute_at_the_same_time():
    """Each waits until the other has begun; they take the items in turn."""
    meeting = threading.Barrier(2, timeout=10)

    def worker(name: str):
        return lambda item: (meeting.wait(), name, threading.get_ident())[1:]

    results = list(results_in_order([worker("a"), worker("b")], range(6)))
    assert [name for name, _ in results] == ["a", "b"] * 3
    threads = {thread for _, thread in results}
    assert len(threads) == len(set(results)) == 2 and threading.get_ident() not in threads


def test_a_single_worker_is_the_calling_thread():
    assert list(results_in_order([lambda item: threading.get_ident()], [0])) == [
        threading.get_ident()
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_no_error_ends_the_results_in_silence(workers):
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(results_in_order([lambda item: next(iter(()))] * workers, range(3)))


def test_after_an_error_no_worker_begins_another_item():
    begun, is_over = [], threading.Event()

    def compute(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise ValueError("item 0")
        is_over.wait(1)

    with pytest.raises(ValueError, match="item 0"):
        list(results_in_order([compute] * 3, range(100)))
    assert not set(begun) - set(range(4))  # of each worker the first, and what replaced the bad one


def test_workers_are_no_more_than_a_few_tiles_ahead():
    begun = []
    results = results_in_order([begun.append] * 2, range(100))
    next(results)
    time.sleep(0.05)
    assert len(begun) <= 2 * tile_workers.AHEAD + 1


def test_an_error_of_a_worker_ends_them_all():
    def compute(item: int) -> int:
        if item == 3:
            raise ValueError("item 3")
        return item

    before, received = threading.active_count(), []
    with pytest.raises(ValueError, match="item 3"):
        for result in results_in_order([compute] * 3, range(1000)):
            received.append(result)
    assert received == [0, 1, 2] and threading.active_count() == before


def test_who_stops_looking_leaves_no_thread():
    before = threading.active_count()
    results = results_in_order([before_the_next] * 2, range(8))
    next(results)
    assert threading.active_count() == before + 2
    results.close()
    assert threading.active_count() == before


def test_workers_take_the_gpus_of_the_first_ones_kind_in_turn(monkeypatch):
    kinds = ["H100", "A100", "H100", "H100"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: kinds[device.index or 0])
    places = tile_workers.devices_of(4, torch.device("cuda:2"))
    assert [place.index for place in places] == [2, 3, 0, 2]
    assert [place.index for place in tile_workers.devices_of(3, torch.device("cuda"))] == [0, 2, 3]
    assert tile_workers.devices_of(2, torch.device("cuda:1")) == [torch.device("cuda:1")] * 2
    assert tile_workers.devices_of(2, CPU) == [CPU, CPU]


def test_a_model_goes_where_its_worker_computes():
    """On a device without values: that all parts are there is what can be seen."""
    model, meta = nn.Linear(3, 3), torch.device("meta")
    member = Encoded(model, (torch.ones(2, 3),), (torch.ones(4, 3),), np.r_[:2], np.r_[:4])
    there = member.on(meta)
    assert member.on(CPU) is member and member.model.weight.device == CPU
    assert there.model.weight.device == there.device == there.captions[0].device == meta
    assert there.size == member.size


def test_each_device_scores_its_tiles_with_one_copy(monkeypatch):
    """Devices are pretended: a copy on one of them notes what it scores."""
    gpus = [torch.device("cuda", index) for index in range(2)]
    copies, scored = [], {}
    monkeypatch.setenv(tile_workers.WORKERS, "40")  # of six tiles
    monkeypatch.setattr(tile_workers, "devices_of", lambda count, first: (gpus * 3)[:count])
    monkeypatch.setattr(tile_workers, "cast_as_here", lambda compute, device: compute)

    class Copy(Encoded):
        def on(self, device):
            copies.append(device)
            return Copied(device)

    class Copied:
        device = CPU

        def __init__(self, place):
            self.place = place

        def scores(self, rows, columns):
            scored.setdefault(self.place, []).append((rows.start, columns.start))
            return [np.zeros((rows.stop - rows.start, columns.stop - columns.start), np.float32)]

    encodings = (torch.ones(1200, 3),), (torch.ones(1100, 3),)
    member = Copy(None, *encodings, np.r_[:1200], np.r_[:1100])
    ScoreStream([member], fusion.mean).survey()
    assert copies == gpus
    assert sorted(scored[gpus[0]]) == [(0, 0), (512, 0), (1024, 0)]
    assert sorted(scored[gpus[1]]) == [(0, 1024), (512, 1024), (1024, 1024)]


def test_how_many_is_a_setting_of_the_machine(monkeypatch):
    monkeypatch.delenv(tile_workers.WORKERS, raising=False)
    assert tile_workers.allowed_workers() == 1
    monkeypatch.setenv(tile_workers.WORKERS, "4")
    assert tile_workers.allowed_workers() == 4
    for wrong in ("0", "-1", "two", "1.5", ""):
        monkeypatch.setenv(tile_workers.WORKERS, wrong)
        with pytest.raises(UserError) as error:
            tile_workers.allowed_workers()
        assert error.value.where == tile_workers.WORKERS


def test_workers_compute_in_the_precision_of_the_cell(monkeypatch):
    monkeypatch.setenv(tile_workers.WORKERS, "2")
    seen, threads = [], set()

    class Model:
        def similarity(self, images, captions):
            scores = images[0] @ captions[0].T
            seen.append((scores.dtype, torch.is_inference_mode_enabled()))
            threads.add(threading.get_ident())
            return scores

    encodings = (torch.ones(600, 3),), (torch.ones(1100, 3),)
    for is_cast, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_cast):
            stream = ScoreStream(
                [Encoded(Model(), *encodings, np.r_[:600], np.r_[:1100])], fusion.mean
            )
            stream.survey()
        assert seen == [(dtype, True)] * 4
        assert len(threads) == 2 and threading.get_ident() not in threads
        seen.clear()
        threads.clear()


def test_scores_of_several_models_stay_together(monkeypatch):
    monkeypatch.setenv(tile_workers.WORKERS, "3")
    images, captions = torch.randn(600, 4), torch.randn(1100, 4)
    models = [nn.Bilinear(4, 4, 1, bias=False) for _ in range(2)]
    for model in models:
        model.similarity = lambda x, y, model=model: x[0] @ model.weight[0] @ y[0].T
    encodings = (images,), (captions,), np.arange(600), np.arange(1100)
    members = [Encoded(model, *encodings) for model in models]
    fused, seen = np.empty((600, 1100)), np.empty((2, 600, 1100))
    stream = ScoreStream(members, fusion.mean)
    stream.lookers.append(
        lambda nth, tile: seen.__setitem__((nth, *np.ix_(tile.rows, tile.columns)), tile.of("i2t"))
    )
    for tile in stream:
        fused[np.ix_(tile.rows, tile.columns)] = tile.of("i2t")
    expected = [(images @ model.weight[0] @ captions.T).detach().numpy() for model in models]
    np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fused, np.mean(expected, axis=0), rtol=1e-4, atol=1e-5)
    assert all(member.seconds["per_pair"] > 0 for member in members)


@pytest.mark.parametrize("kind", KINDS)
def test_no_byte_hangs_on_how_many_there_are(kind, tmp_path, monkeypatch):
    enter(tmp_path, monkeypatch)
    monkeypatch.setattr(score_stream, "IMAGE_TILE", 3)
    monkeypatch.setattr(score_stream, "CAPTION_TILE", 5)
    cell, written = cell_of(kind), []
    train.train_cell(params_of(device="cpu"), cell)
    for workers, memory in ((1, "512"), (2, "512"), (3, "0")):
        monkeypatch.setenv(tile_workers.WORKERS, str(workers))
        monkeypatch.setenv(score_stream.MEMORY, memory)
        evaluate.evaluate_cell(params_of(device="cpu"), cell)
        written.append([(RESULTS / "scores" / name).read_bytes() for name in FILES])
    assert written[0] == written[1] == written[2]
