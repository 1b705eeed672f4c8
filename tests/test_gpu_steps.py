"""Every preset on a pretended CUDA device: where its numbers lie, how exact they are, and what
makes a GPU wait. `pretended_cuda.py` plays the device."""

from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import test_methods
import torch
from pretended_cuda import CUDA, OnCuda, on_cuda, pretended
from test_methods import (
    PROPOSALS,
    TRAINED,
    Case,
    TinyNetwork,
    captions_of,
    cases,
    images_of,
    model_of,
    split_of,
)
from torch import Tensor

import methods
from benchmark.matching import feeding, localisation_inputs, retrieval_inputs
from benchmark.matching.localisation_inputs import PhraseInputs
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.train import selection
from methods import Batch, Captions, Sizes


class Network(TinyNetwork):
    """Without a look at its pixels: reading a value is a wait."""

    def forward(self, pixels):
        maps = self.norm(self.convolution(pixels - 0.5)).relu()
        return maps.mean((2, 3)), maps


@pytest.fixture(autouse=True)
def pretence(monkeypatch):
    """What a pretended device cannot do: say how much memory it has, and work for two threads."""
    monkeypatch.setattr(test_methods, "TinyNetwork", Network)
    monkeypatch.setattr(feeding, "fits", lambda size, device: True)
    for module in (retrieval_inputs, localisation_inputs):
        monkeypatch.setattr(module, "ahead", map)


LAUNCHES = {  # of a forward pass at the least depth, most of any preset
    "cyclematch": 223,
    "dual_path": 269,
    "scan": 117,
    "two_branch_embedding": 74,  # a square root is two, to be portable on CPUs
    "two_branch_phrase_embedding": 134,
    "two_branch_phrase_similarity": 71,
    "two_branch_similarity": 48,
    "vse": 40,
}
TILE_LAUNCHES = {  # of 130 images with 260 captions, most of any preset
    "cca": 1,
    "cyclematch": 5,
    "dual_path": 1,
    "scan": 121,
    "two_branch_embedding": 1,
    "two_branch_phrase_embedding": 1,
    "two_branch_phrase_similarity": 6,
    "two_branch_similarity": 6,
    "vse": 1,
}


@pytest.fixture(params=cases())
def case(request) -> Case:
    return cases()[request.param]


def sent(values):
    """Tensors of a dataclass on the device."""
    if isinstance(values, Tensor):
        return OnCuda(values.clone())
    if not is_dataclass(values):
        return values
    here = ("lengths_on_host", "ids_on_host", "ious_on_host", "device")
    names = [field.name for field in fields(values) if field.name not in here]
    return replace(values, **{name: sent(vars(values)[name]) for name in names})


def inputs_of(case: Case, rows: int = 8) -> SplitInputs | PhraseInputs:
    """A training split on the device, all of it resident but pixels."""
    if case.takes.task == "localisation":
        return phrases_of(case, rows)
    split = split_of(case, rows, rows)
    is_pixels = case.takes.image == "pixels"
    lengths = split.captions.lengths
    return replace(
        sent(split),
        images=split.images if is_pixels else sent(split.images),
        captions=replace(sent(split.captions), lengths_on_host=lengths),
        class_of_image=OnCuda(torch.arange(rows)),
        device=CUDA,
    )


def phrases_of(case: Case, rows: int) -> PhraseInputs:
    """Two phrases of every chain, two chains in every image; the last image lacks a proposal."""
    chains = torch.arange(rows) // 2
    images = chains // 2
    ious = torch.full((rows, PROPOSALS), 0.1)
    ious[torch.arange(PROPOSALS) // 2 == (chains % 2)[:, None]] = 0.8
    ious[images == images.max(), -1] = torch.nan
    count = int(images.max()) + 1
    return PhraseInputs(
        proposals=images_of(case, count * PROPOSALS).view(count, PROPOSALS, -1).half(),
        truths=images_of(case, rows, seed=3).half(),
        boxes=torch.ones(count, PROPOSALS, 4),
        ious=ious,
        image_of_phrase=images,
        chain_of_phrase=chains,
        vectors=captions_of(case, rows).values.half(),
        vector_of_phrase=torch.arange(rows),
        device=CUDA,
    )


def drawn(case: Case) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of a batch, and of its pool where a phase of the recipe has one."""
    has_pool = any(phase.pool for phase in case.phases)
    return np.arange(8), np.array([3, 0, 5, 1, 7]) if has_pool else None


def scored(model, case: Case) -> list[Tensor]:
    """All scores that a model gives."""
    first = model.encode_images(OnCuda(images_of(case, 6)))
    second = model.encode_captions(sent(captions_of(case, 11)))
    scores = [model.similarity(first, second)]
    if case.takes.scores:
        scores += model.scores(first, second).values()
    if case.takes.caption_similarity:
        scores.append(model.caption_similarity(second, second))
    return scores


def test_scores_and_losses_lie_on_the_device_and_have_24_bits_under_autocast(case):
    model, is_trained = on_cuda(model_of(case)), bool(case.phases)
    with pretended(autocast=True):
        with torch.no_grad():
            tensors = scored(model.eval(), case)
        if is_trained:
            (batch,) = inputs_of(case).batches(*([x] for x in drawn(case)))
            tensors += model.train().loss(batch).values()
    for values in tensors:
        assert isinstance(values, OnCuda) and values.dtype == torch.float32


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_a_step_keeps_to_its_budget_and_gives_the_terms_of_the_cpu(case):
    """Beside what is sent once in an epoch, one copy to the device at most, and no wait; an
    operation of mixed devices would raise."""
    model, (rows, pool) = on_cuda(model_of(case)).train(), drawn(case)
    with pretended() as log:
        batches = inputs_of(case).batches([rows] * 2, [pool] * 2)
        next(batches)
        log.clear()
        batch = next(batches)
        torch.manual_seed(3)
        there = model.loss(batch)
    assert log.waits in ([], ["copy to the device"])
    assert log.written == []
    assert sum(log.launches.values()) <= LAUNCHES[case.method.__name__.removeprefix("methods.")]
    here = model_of(case).train()
    torch.manual_seed(3)
    for name, term in here.loss(back(batch)).items():
        torch.testing.assert_close(there[name].detach().inner, term.detach(), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_tile_of_scores_keeps_to_its_budget(case):
    """No wait but for two lists of lengths, which trim the padding of items with parts."""
    model = on_cuda(model_of(case)).eval()
    with pretended() as log:
        images = model.encode_images(OnCuda(images_of(case, 130)))
        captions = model.encode_captions(sent(captions_of(case, 260)))
        log.clear()
        model.similarity(images, captions)
    assert log.waits in ([], ["tolist"] * 2) and log.written == []
    assert (
        sum(log.launches.values()) <= TILE_LAUNCHES[case.method.__name__.removeprefix("methods.")]
    )


def back(values):
    """Tensors of a dataclass on the host."""
    if isinstance(values, OnCuda):
        return values.inner
    if not is_dataclass(values):
        return values
    return replace(values, **{x.name: back(vars(values)[x.name]) for x in fields(values)})


PAIRS, SIZE = 1000, 32
SLICES = [slice(start, start + 250) for start in range(0, PAIRS, 250)]
OPTIONS = {
    "cyclematch": {"variant": "latent", "hidden_size": 256, "embedding_size": 256},
    "two_branch_similarity": {
        **{"hidden_size": 256, "embedding_size": 64},
        **{"joint_size": 16, "last_joint_size": 16},
    },
}


@pytest.mark.parametrize("name", OPTIONS)
def test_half_precision_costs_less_than_half_a_point_of_rsum(name):
    """Of a trained model; scores of bfloat16 would cost 3 to 6 points."""
    method = methods.load(name)
    model, x, y = fitted(method.Model(method.Config(**OPTIONS[name]), Sizes(image=SIZE, text=SIZE)))
    exact = rsum(model, x, y)
    with pretended(autocast=True):
        half = rsum(on_cuda(model), OnCuda(x), OnCuda(y))
    assert exact > 300
    assert abs(half - exact) <= 0.5


def fitted(model):
    """A model that was trained a little, and what it was trained on: images and texts that have
    things in common."""
    generator = torch.Generator().manual_seed(0)
    common = torch.randn(PAIRS, 12, generator=generator)
    sides = torch.randn(2, 12, SIZE, generator=generator)
    x, y = common @ sides + 1.5 * torch.randn(2, PAIRS, SIZE, generator=generator)
    torch.manual_seed(0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    for _ in range(6):
        for rows in torch.randperm(PAIRS).split(100):
            batch = Batch(images=x[rows], captions=vectors(y[rows]), group_ids=rows)
            optimiser.zero_grad()
            sum(model.loss(batch).values()).backward()
            optimiser.step()
    return model.eval(), x, y


def vectors(values: Tensor) -> Captions:
    return Captions(values=values, lengths=torch.ones(len(values), dtype=torch.int64))


@torch.no_grad()
def rsum(model, x: Tensor, y: Tensor) -> float:
    images, captions = model.encode_images(x), model.encode_captions(vectors(y))
    parts = [tuple(x[rows] for x in images) for rows in SLICES]
    tiles = [model.similarity(part, captions) for part in parts]
    scores = torch.cat([back(tile) for tile in tiles])
    return selection.retrieval_recalls(scores, torch.eye(PAIRS).bool(), ("i2t", "t2i"))["rsum"]


@pytest.mark.parametrize("case", ["scan_t2i_avg", "two_branch_phrase_constraints"], indirect=True)
def test_rows_that_do_not_fit_the_device_are_fed_from_the_host(case, monkeypatch):
    """The same batches, one copy each."""
    monkeypatch.setattr(feeding, "fits", lambda size, device: False)
    inputs, rows = inputs_of(case), np.arange(8)
    if case.takes.task == "retrieval":
        inputs = replace(inputs, images=split_of(case, 8, 8).images)
    with pretended() as log:
        batches = inputs.batches([rows, rows[::-1].copy()], [None, None])
        next(batches)
        log.clear()
        batch = back(next(batches))
        assert log.waits == ["copy to the device"]
    here = replace(back(inputs), device=torch.device("cpu")).batch(rows[::-1].copy())
    for field in fields(here):
        mine, other = vars(batch)[field.name], vars(here)[field.name]
        if isinstance(other, Tensor):
            torch.testing.assert_close(mine, other, rtol=0, atol=0, equal_nan=True)


def test_what_is_gathered_ahead_comes_in_order_and_one_ahead():
    gathered = []

    def gather(item: int) -> int:
        gathered.append(item)
        return 10 * item

    coming = feeding.ahead(gather, range(4))
    assert next(coming) == 0 and gathered in ([0], [0, 1])
    assert list(coming) == [10, 20, 30] and gathered == [0, 1, 2, 3]
    assert list(feeding.ahead(gather, [])) == []


def test_an_error_while_gathering_ahead_is_raised_at_its_batch():
    coming = feeding.ahead(lambda item: 1 // item, [1, 0, 1])
    assert next(coming) == 1
    with pytest.raises(ZeroDivisionError):
        next(coming)


@pytest.mark.parametrize(("size", "is_there"), [(50, True), (51, False)])
def test_an_array_may_take_half_of_what_is_free(size, is_there, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 1000))
    assert feeding.fits(size, CUDA) == is_there
    assert feeding.fits(10**15, torch.device("cpu"))
