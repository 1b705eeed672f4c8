"""Speed as a ratio to the plain way, in one process: `pytest benchmark/`.

Absolute times differ from machine to machine and from minute to minute; the ratio of the fastest
of many interleaved runs does not.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np
import pytest
import torch

from benchmark.protocol import positive_ranks
from methods import Batch, Captions, Sizes, scan


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def ratio(fast: Callable[[], object], plain: Callable[[], object], pairs: int) -> float:
    """Time of the fastest plain run over that of the fastest fast one."""
    times = {fast: [], plain: []}
    for _ in range(pairs):
        for function in (fast, plain):
            started = perf_counter()
            function()
            times[function].append(perf_counter() - started)
    return min(times[plain]) / min(times[fast])


def scan_model(direction: str) -> tuple[scan.Model, torch.Tensor, Captions]:
    torch.manual_seed(0)
    config = scan.Config(direction=direction, embedding_size=256, word_size=64)
    model = scan.Model(config, Sizes(image=256, text=500))
    lengths = torch.randint(8, 18, (48,))
    words = torch.randint(4, 500, (48, 17)) * (torch.arange(17) < lengths[:, None])
    return model, torch.randn(48, 36, 256), Captions(values=words, lengths=lengths)


def by_caption(model: scan.Model, images, captions) -> torch.Tensor:
    """A loop over captions that builds every attended vector, as the equations are printed."""
    regions, columns = images[0], []
    for words, length in zip(*captions, strict=True):
        e_nD = words[:length]
        s_Ikn = (regions @ e_nD.T).relu()
        if model.config.direction == "t2i":
            weights = (9 * s_Ikn / s_Ikn.norm(dim=2, keepdim=True).clamp_min(1e-8)).softmax(1)
            attended = weights.transpose(1, 2) @ regions
            relevance = torch.cosine_similarity(attended, e_nD.expand_as(attended), dim=-1)
        else:
            weights = (9 * s_Ikn / s_Ikn.norm(dim=1, keepdim=True).clamp_min(1e-8)).softmax(2)
            relevance = torch.cosine_similarity(weights @ e_nD, regions, dim=-1)
        columns.append(relevance.mean(1))
    return torch.stack(columns, 1)


@pytest.mark.parametrize("direction", ["t2i", "i2t"])
def test_scan_scores_faster_than_a_loop_over_captions(direction, benchmark):
    model, pixels, words = scan_model(direction)
    with torch.inference_mode():
        images, captions = model.encode_images(pixels), model.encode_captions(words)
        fast = scan.in_tiles(model.similarity, images, captions)
        torch.testing.assert_close(fast, by_caption(model, images, captions), atol=1e-5, rtol=1e-4)
        score = partial(scan.in_tiles, model.similarity, images, captions)
        faster = ratio(score, partial(by_caption, model, images, captions), pairs=60)
        benchmark(score)
    benchmark.extra_info["times_faster"] = round(faster, 2)
    assert faster > 1.5


def test_hardest_negatives_train_faster_than_all_pairs(benchmark):
    model, images, captions = scan_model("t2i")
    ids = torch.arange(len(images))
    batch = Batch(images=images, captions=captions, group_ids=ids)

    def all_pairs() -> None:
        scores = model.similarity(model.encode_images(images), model.encode_captions(captions))
        wrong = scores.masked_fill(torch.eye(len(ids), dtype=torch.bool), -np.inf)
        hinge = 0.2 - scores.diagonal()
        ((hinge + wrong.amax(1)).relu() + (hinge + wrong.amax(0)).relu()).sum().backward()

    def three_per_row() -> None:
        sum(model.loss(batch).values()).backward()

    faster = ratio(three_per_row, all_pairs, pairs=40)
    benchmark(three_per_row)
    benchmark.extra_info["times_faster"] = round(faster, 2)
    assert faster > 1.2


def test_ranks_are_faster_than_sorting(benchmark):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((400, 2000))
    relevant = np.arange(400)[:, None] == np.repeat(np.arange(400), 5)[None]

    def sorting() -> list[int]:
        order = np.argsort(-scores, axis=1, kind="stable")
        return [int(np.flatnonzero(relevant[q, row])[0]) for q, row in enumerate(order)]

    assert positive_ranks(scores, relevant).tolist() == sorting()
    counting = partial(positive_ranks, scores, relevant)
    faster = ratio(counting, sorting, pairs=40)
    benchmark(counting)
    benchmark.extra_info["times_faster"] = round(faster, 2)
    assert faster > 3
