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

from benchmark.matching import feeding, localisation_inputs, retrieval_inputs
from benchmark.matching.localisation_inputs import PhraseInputs
from benchmark.matching.retrieval_inputs import SplitInputs


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


def scored(model, case: Case) -> tuple[Tensor, ...]:
    images, captions = OnCuda(images_of(case, 6)), sent(captions_of(case, 11))
    first, second = model.encode_images(images), model.encode_captions(captions)
    scores = [model.similarity(first, second)]
    if case.takes.scores:
        scores += model.scores(first, second).values()
    if case.takes.caption_similarity:
        scores.append(model.caption_similarity(second, second))
    return tuple(scores)


@pytest.mark.parametrize("autocast", [False, True])
def test_scores_lie_on_the_device_and_have_24_bits(case, autocast):
    model = on_cuda(model_of(case)).eval()
    with pretended(autocast), torch.no_grad():
        for scores in scored(model, case):
            assert isinstance(scores, OnCuda) and scores.dtype == torch.float32


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_losses_lie_on_the_device_and_have_24_bits(case):
    model, inputs = on_cuda(model_of(case)).train(), inputs_of(case)
    with pretended(autocast=True):
        (batch,) = inputs.batches(*([x] for x in drawn(case)))
        for name, term in model.loss(batch).items():
            assert isinstance(term, OnCuda) and term.dtype == torch.float32, name


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_a_step_crosses_between_host_and_device_once_at_most(case):
    """Beside what is sent once in an epoch; pixels and recurrent networks need that one."""
    model, inputs = on_cuda(model_of(case)).train(), inputs_of(case)
    rows, pool = drawn(case)
    steps = 4
    with pretended() as log:
        batches = inputs.batches([rows] * steps, [pool] * steps)
        terms = [model.loss(next(batches))]
        before = len(log.waits)
        terms += [model.loss(batch) for batch in batches]
        crossings = log.waits[before:]
    assert len(terms) == steps
    assert len(crossings) <= steps - 1, crossings
    assert set(crossings) <= {"copy to the device"}, "the host waits for a value"


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_a_step_of_a_whole_batch_is_that_of_the_cpu(case):
    """The same terms from resident rows on the device as from rows on the host."""
    rows, pool = drawn(case)
    with pretended():
        (batch,) = inputs_of(case).batches([rows], [pool])
        torch.manual_seed(3)
        there = on_cuda(model_of(case)).train().loss(batch)
    torch.manual_seed(3)
    plain = back(batch)
    for name, term in model_of(case).train().loss(plain).items():
        torch.testing.assert_close(there[name].detach().inner, term.detach(), rtol=1e-4, atol=1e-5)


def back(values):
    """Tensors of a dataclass on the host."""
    if isinstance(values, OnCuda):
        return values.inner
    if not is_dataclass(values):
        return values
    return replace(values, **{x.name: back(vars(values)[x.name]) for x in fields(values)})
