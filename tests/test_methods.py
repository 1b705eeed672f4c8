"""What every method of methods/ promises, whatever it does inside, and how it is configured."""

from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from functools import cache
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import methods
from benchmark import protocol
from benchmark.matching import scoring
from benchmark.matching.retrieval_inputs import SplitInputs
from benchmark.season.presets import presets
from benchmark.train.resumable_loop import optimiser_of
from methods import Batch, Captions, Inputs, NotApplicableError, RegionBatch, Sizes

TINY = {"dropout": 0.0, "regions": 3, "blocks": "1,1,1,1", "text_width": 1 / 16, "text_length": 12}
NO_SIZES = {"batch_size", "pool_size"}
SIZE, SIZES = 16, Sizes(image=12, text=20, classes=8)
REGIONS, WORDS, SIDE, POOL, PROPOSALS = 3, 7, 16, 5, 6
VECTORS = ("sentence", "phrase")  # text that comes as ready-made vectors
PRESETS = presets()
ROWS = {name: row for name, (_, row) in PRESETS.items() if not row.fuse}


@dataclass(frozen=True)
class Case:
    """A method with the options of one of its presets, at a tiny size."""

    method: ModuleType
    config: object

    @property
    def takes(self) -> Inputs:
        return self.method.inputs(self.config)

    @property
    def phases(self) -> list[methods.Phase]:
        return self.method.recipe(self.config)


def tiny(method: ModuleType, options: dict | None = None) -> Case:
    """Every size of a layer is small, whatever a preset says; its other options stay."""
    names = [field.name for field in fields(method.Config)]
    sizes = {n: SIZE for n in names if n.endswith("_size") and n not in NO_SIZES}
    small = sizes | {n: value for n, value in TINY.items() if n in names}
    return Case(method, method.Config(**(options or {}) | small))


@cache
def cases() -> dict[str, Case]:
    """One per preset that trains; presets that only differ in size are one case."""
    by_config = {}
    for name, row in ROWS.items():
        method = methods.load(PRESETS[name][0])
        by_config.setdefault(tiny(method, row.options).config, (name, method))
    return {name: Case(method, config) for config, (name, method) in by_config.items()}


def cases_of(method: ModuleType) -> list[Case]:
    return [case for case in cases().values() if case.method is method]


READING = [name for name, case in cases().items() if case.takes.text not in VECTORS]
TRAINED = [name for name, case in cases().items() if not case.takes.fit]
PART_SCORING = [name for name, case in cases().items() if case.takes.scores]
SENTENCE_SCORING = [name for name, case in cases().items() if case.takes.caption_similarity]
ATTENTIVE = [name for name, case in cases().items() if case.takes.attention]
OFFERS = ("fit", "scores", "caption_similarity", "attention")  # fields, and methods of a Model


class TinyNetwork(nn.Module):
    """Pixels in [0, 1] to pooled features and a map, with a batch norm as real networks have."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, SIZES.image, 3, 4)
        self.norm = nn.BatchNorm2d(SIZES.image)
        nn.init.normal_(self.convolution.weight)  # steep, so that colours differ clearly
        nn.init.normal_(self.convolution.bias)

    def forward(self, pixels):
        assert pixels.dtype.is_floating_point and 0 <= pixels.min() and pixels.max() <= 1
        maps = self.norm(self.convolution(pixels - 0.5)).relu()
        return maps.mean((2, 3)), maps


def model_of(case: Case, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    parts = {}
    if case.takes.word_vectors:
        parts["word_vectors"] = torch.randn(SIZES.text, SIZE)
    if case.takes.image == "pixels":
        parts["image_network"] = TinyNetwork()
    model = case.method.Model(case.config, SIZES, **parts)
    if case.takes.fit:
        model.fit([(images_of(case, 40), captions_of(case, 40))])
    return model


def images_of(case: Case, count: int, seed: int = 1) -> torch.Tensor:
    if case.takes.image == "pixels":  # black, red, green: a crop shows what the whole does
        bits = torch.arange(count)[:, None] >> torch.arange(3) & 1
        return (255 * bits).to(torch.uint8)[:, :, None, None].repeat(1, 1, SIDE, SIDE)
    shape = (REGIONS, SIZES.image) if case.takes.image == "regions" else (SIZES.image,)
    return torch.randn((count, *shape), generator=torch.Generator().manual_seed(seed))


def captions_of(case: Case, count: int, seed: int = 2) -> Captions:
    generator = torch.Generator().manual_seed(seed)
    if case.takes.text in VECTORS:
        values = torch.randn(count, SIZES.text, generator=generator)
        return Captions(values=values, lengths=torch.ones(count, dtype=torch.int64))
    lengths = torch.randint(2, WORDS + 1, (count,), generator=generator)
    lengths[0] = WORDS
    values = torch.randint(1, SIZES.text, (count, WORDS), generator=generator)
    return Captions(values=values * (torch.arange(WORDS) < lengths[:, None]), lengths=lengths)


def at(captions: Captions, rows) -> Captions:
    return Captions(values=captions.values[rows], lengths=captions.lengths[rows])


def encoded(model: nn.Module, case: Case, images: int = 6, captions: int = 11):
    with torch.no_grad():
        return (
            model.encode_images(images_of(case, images)),
            model.encode_captions(captions_of(case, captions)),
        )


def batch_of(
    case: Case, group_ids: list[int], captions: Captions | None = None
) -> Batch | RegionBatch:
    """Rows of the images given, each image a class, with a pool where a phase has one."""
    if case.takes.task == "localisation":
        return region_batch_of(case, group_ids)
    ids = torch.tensor(group_ids)
    facts = {}
    if any(phase.pool for phase in case.phases):
        facts = {"pool": captions_of(case, POOL, seed=5), "pool_ids": torch.arange(POOL)}
    return Batch(
        images=images_of(case, int(ids.max()) + 1)[ids],
        captions=captions or captions_of(case, len(ids)),
        group_ids=ids,
        class_ids=ids,
        **facts,
    )


def region_batch_of(case: Case, chains: list[int]) -> RegionBatch:
    """Rows of the chains given, each with a sibling where the recipe asks for it: all phrases of a
    chain are the same. A picture shows two chains, has two proposals near to each, and two of
    nothing; the last one lacks one."""
    siblings = max(phase.captions_per_image for phase in case.phases)
    ids = torch.tensor(chains).repeat_interleave(siblings)
    pictures = int(ids.max()) // 2 + 1
    true = images_of(case, 2 * pictures)
    proposals = images_of(case, PROPOSALS * pictures, seed=6).view(pictures, PROPOSALS, -1)
    proposals[:, :4] = 0.2 * proposals[:, :4] + true.view(pictures, 2, -1).repeat_interleave(2, 1)
    ious = torch.full((len(ids), PROPOSALS), 0.1)
    near = torch.arange(PROPOSALS) // 2 == ids[:, None] % 2
    ious[near] = 0.8
    proposals[-1, -1] = 0.0
    ious[ids // 2 == pictures - 1, -1] = torch.nan
    return RegionBatch(
        regions=true[ids],
        phrases=at(captions_of(case, 2 * pictures), ids),
        proposals=proposals,
        image_of_row=ids // 2,
        ious=ious,
        chain_ids=ids,
    )


def step(model: nn.Module, batch: Batch | RegionBatch, optimiser: torch.optim.Optimizer) -> None:
    optimiser.zero_grad()
    sum(model.loss(batch).values()).backward()
    optimiser.step()


def trained(case: Case, steps: int, seed: int = 0) -> nn.Module:
    """A tiny model after some steps on eight pairs, by the method's own loss."""
    model, batch = model_of(case, seed), batch_of(case, list(range(8)))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        step(model, batch, optimiser)
    return model


@pytest.fixture(params=methods.names())
def method(request) -> ModuleType:
    return methods.load(request.param)


@pytest.fixture(params=cases())
def case(request) -> Case:
    return cases()[request.param]


def test_there_are_methods():
    assert {"scan", "two_branch_embedding"} <= set(methods.names())
    of_presets = {PRESETS[name][0] for name in ROWS}
    assert of_presets == set(methods.names()), "a method without a preset"


def test_module_offers_the_contract(method):
    assert is_dataclass(method.Config)
    config = method.Config()
    assert isinstance(method.inputs(config), Inputs)
    with pytest.raises(FrozenInstanceError):
        config.batch_size = 1
    assert method.recipe(config) or method.inputs(config).fit
    for name in ("encode_images", "encode_captions", "similarity", "loss"):
        assert callable(getattr(method.Model, name))


@pytest.mark.parametrize("offer", OFFERS)
def test_what_a_model_offers_is_declared(method, offer):
    declared = any(getattr(case.takes, offer) for case in cases_of(method))
    assert declared == hasattr(method.Model, offer)


def test_what_is_declared_is_true(case):
    model, takes = model_of(case).eval(), case.takes
    images, captions = encoded(model, case, 6, 6)
    assert not takes.scores or tuple(model.scores(images, captions)) == takes.scores
    if hasattr(model, "attention") and not takes.attention:
        with pytest.raises(NotApplicableError, match="attention: "):
            model.attention(images, captions)
    assert takes.min_count == 1 or takes.text == "tokens", "counts of words that it is not fed"
    assert all(phase.pool == 0 for phase in case.phases) or takes.task == "retrieval"


@pytest.mark.parametrize("case", ATTENTIVE, indirect=True)
def test_attention_of_every_word_sums_to_one(case):
    model = model_of(case).eval()
    images, captions = encoded(model, case, 6, 6)
    weights = model.attention(images, captions)
    assert weights.shape == (6, WORDS, REGIONS)
    for row, length in zip(weights, captions_of(case, 6).lengths, strict=True):
        torch.testing.assert_close(row[:length].sum(1), torch.ones(length))


@pytest.mark.parametrize(
    ("image", "text", "task"),
    [
        ("proposals", "phrase", "retrieval"),
        ("pooled", "sentence", "localisation"),
        ("proposals", "sentence", "localisation"),
        ("pooled", "phrase", "retrieval"),
    ],
)
def test_inputs_of_another_task_are_refused(image, text, task):
    with pytest.raises(ValueError, match=f"found {image} and {text} for {task}"):
        Inputs(image=image, text=text, task=task)


def test_phases_can_be_played(case):
    model = model_of(case)
    for phase in case.phases:
        assert isinstance(phase, methods.Phase)
        assert phase.epochs == len(phase.learning_rates) >= 1
        assert phase.batch_size > 1 and min(phase.learning_rates) > 0
        assert isinstance(optimiser_of(model, phase), torch.optim.Optimizer)


def test_every_rate_of_a_phase_is_of_a_parameter(method):
    of_method = cases_of(method)
    names = {name for case in of_method for name, _ in model_of(case).named_parameters()}
    for case in of_method:
        for phase in case.phases:
            for start, factor in phase.rates:
                assert factor >= 0
                assert any(name.startswith(start) for name in names), start


def test_there_is_one_score_per_pair(case):
    model = model_of(case).eval()
    images, captions = encoded(model, case)
    scores = model.similarity(images, captions)
    assert scores.shape == (6, 11)
    assert scores.isfinite().all()
    assert scores.std() > 1e-4
    assert all(len(x) == 6 for x in images) and all(len(x) == 11 for x in captions)


@pytest.mark.parametrize("case", PART_SCORING, indirect=True)
def test_there_is_one_named_score_per_pair(case):
    model = model_of(case).eval()
    images, captions = encoded(model, case)
    parts = model.scores(images, captions)
    assert parts and all(":" not in name for name in parts)
    for name, scores in parts.items():
        assert scores.shape == (6, 11) and scores.isfinite().all(), name
        few = model.scores(tuple(x[2:4] for x in images), tuple(x[5:] for x in captions))
        torch.testing.assert_close(few[name], scores[2:4, 5:], rtol=1e-5, atol=1e-6)


def test_parts_that_fusions_name_are_offered():
    for name, (_, row) in PRESETS.items():
        for member in row.fuse.of if row.fuse else []:
            preset, _, part = member.partition(":")
            if part:
                case = tiny(methods.load(PRESETS[preset][0]), ROWS[preset].options)
                assert part in case.takes.scores, f"{name}: {member}"


@pytest.mark.parametrize("case", SENTENCE_SCORING, indirect=True)
def test_sentences_are_scored_like_each_other(case):
    model = model_of(case).eval()
    _, captions = encoded(model, case)
    scores = model.caption_similarity(captions, captions)
    assert scores.shape == (11, 11) and scores.isfinite().all()
    few = model.caption_similarity(tuple(x[3:5] for x in captions), captions)
    torch.testing.assert_close(few, scores[3:5], rtol=1e-5, atol=1e-6)
    assert (scores.argmax(1) == torch.arange(11)).all()  # most alike is a sentence to itself


@pytest.mark.parametrize("case", READING, indirect=True)
def test_padding_changes_no_score(case):
    model = model_of(case).eval()
    captions = captions_of(case, 11)
    with torch.no_grad():
        images = model.encode_images(images_of(case, 6))
        together = model.similarity(images, model.encode_captions(captions))
        wider = Captions(
            values=torch.nn.functional.pad(captions.values, (0, 9)), lengths=captions.lengths
        )
        torch.testing.assert_close(model.similarity(images, model.encode_captions(wider)), together)
        for c, length in enumerate(captions.lengths):
            bare = Captions(values=captions.values[[c], :length], lengths=length[None])
            alone = model.similarity(images, model.encode_captions(bare))
            torch.testing.assert_close(alone, together[:, [c]])


@pytest.mark.parametrize("case", READING, indirect=True)
def test_a_caption_of_no_known_word_is_harmless(case):
    captions = captions_of(case, 8)
    captions.values[3], captions.lengths[3] = 0, 1
    model = model_of(case)
    sum(model.loss(batch_of(case, list(range(8)), captions)).values()).backward()
    assert all(x.grad is None or x.grad.isfinite().all() for x in model.parameters())
    model.eval()
    with torch.no_grad():
        images = model.encode_images(images_of(case, 6))
        for few in (
            captions,
            Captions(values=captions.values[[3], :1], lengths=torch.ones(1).long()),
        ):
            assert model.similarity(images, model.encode_captions(few)).isfinite().all()


def test_tiles_change_no_score(case):
    model = model_of(case).eval()
    images, captions = encoded(model, case)
    with torch.inference_mode():
        whole = model.similarity(images, captions)
        for tile in ((1, 1), (2, 3), (4, 11), (100, 100)):
            tiled = scoring.score_pairs(model.similarity, images, captions, tile=tile)
            torch.testing.assert_close(tiled, whole, rtol=1e-5, atol=1e-6)


# On a CPU these start from an approximation by the processor: see benchmark/core/numerics.py.
APPROXIMATED = {"sqrt", "sqrt_", "acos", "asin", "atan", "tan", "log2", "_cdist_forward"}


def test_nothing_is_computed_that_processors_approximate(case):
    """Not within torch's own functions either: a batch norm of a transposed tensor takes one."""
    model = model_of(case)
    with torch.profiler.profile() as seen:
        if case.phases:
            sum(model.loss(batch_of(case, list(range(8)))).values()).backward()
        model.similarity(*encoded(model.eval(), case))
    names = {event.key.removeprefix("aten::") for event in seen.key_averages()}
    assert len(names) > 3 and names & APPROXIMATED == set()


def test_order_and_company_of_items_change_no_score(case):
    model = model_of(case).eval()
    images, captions = images_of(case, 6), captions_of(case, 11)
    generator = torch.Generator().manual_seed(3)
    rows, columns = (torch.randperm(n, generator=generator) for n in (6, 11))
    with torch.no_grad():
        whole = model.similarity(model.encode_images(images), model.encode_captions(captions))
        for kept in (slice(None), slice(2, 4)):
            i, c = rows[kept], columns[kept]
            scores = model.similarity(
                model.encode_images(images[i]), model.encode_captions(at(captions, c))
            )
            torch.testing.assert_close(scores, whole[i][:, c], rtol=1e-5, atol=1e-6)


def before_norm(model: nn.Module) -> set[str]:
    """Biases that a batch norm takes away again, so that they have no effect."""
    return {
        f"{name}.{n}.bias"
        for name, module in model.named_modules()
        if isinstance(module, nn.Sequential)
        for n, follower in enumerate(module[1:])
        if isinstance(follower, nn.BatchNorm1d)
    }


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_every_parameter_receives_a_gradient(case):
    model, captions = model_of(case), captions_of(case, 8)
    if case.takes.text not in VECTORS:  # every word occurs, so that every embedding can learn
        words = torch.arange(8 * WORDS).view(8, WORDS) % (SIZES.text - 1) + 1
        captions = Captions(values=words, lengths=torch.full((8,), WORDS))
    terms = model.loss(batch_of(case, [0, 1, 2, 3, 0, 1, 2, 3], captions))
    assert all(term.dim() == 0 and term.isfinite() for term in terms.values())
    sum(terms.values()).backward()
    silent = {
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and (parameter.grad is None or not parameter.grad.any())
    }
    assert not silent - before_norm(model)


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_eight_pairs_can_be_memorised(case):
    """From one of three initialisations: a ReLU behind both heads may be silent from the start."""
    reached = []
    for steps in (60, 300):  # most need few, and those that do not go on long without
        for seed in (1, 2, 0):  # most can from 1
            reached.append(memorised(case, seed, steps))
            if reached[-1] == {100.0}:
                return
    pytest.fail(f"after 300 steps: {reached[3:]}")


def memorised(case: Case, seed: int, steps: int) -> set[float]:
    """Recalls at 1 after at most so many steps on eight pairs."""
    model, batch = model_of(case, seed), batch_of(case, list(range(8)))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005, fused=True)
    terms = set(model.loss(batch))
    # A loss of image anchors alone asks nothing of the other direction.
    ways = ["i2t_r1"] if terms == {"image_anchor"} else ["i2t_r1", "t2i_r1"]
    ways = ["p2r_r1"] if isinstance(batch, RegionBatch) else ways
    for _ in range(steps // 5):
        for _ in range(5):
            step(model.train(), batch, optimiser)
        metrics = recalls_of(model.eval(), batch)
        if all(metrics[way] == 100 for way in ways):
            break
    return {metrics[way] for way in ways}


def recalls_of(model: nn.Module, batch: Batch | RegionBatch) -> dict[str, float]:
    if isinstance(batch, RegionBatch):
        return {"p2r_r1": found_regions(model, batch)}
    with torch.no_grad():
        images = model.encode_images(batch.images)
        captions = model.encode_captions(batch.captions)
        scores = model.similarity(images, captions).numpy()
    ranks = protocol.retrieval_ranks({"i2t": scores, "t2i": scores.T}, np.eye(8, dtype=bool))
    return protocol.retrieval_metrics(ranks)


@torch.no_grad()
def found_regions(model: nn.Module, batch: RegionBatch) -> float:
    """Percent of the phrases whose best proposal of their picture is near to the true region."""
    phrases, hits = model.encode_captions(batch.phrases), []
    for row, picture in enumerate(batch.image_of_row):
        there = ~batch.ious[row].isnan()
        regions = model.encode_images(batch.proposals[picture][there])
        scores = model.similarity(regions, tuple(x[[row]] for x in phrases))[:, 0]
        hits.append(batch.ious[row][there][scores.argmax()] >= 0.5)
    return 100 * float(torch.stack(hits).float().mean())


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_same_seed_same_bits(case):
    first, again, other = (trained(case, steps=2, seed=seed).state_dict() for seed in (5, 5, 6))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_whole_batches_of_one_image_are_harmless(case):
    model = model_of(case)
    sum(model.loss(batch_of(case, [0, 0, 0])).values()).backward()
    assert all(x.grad is None or x.grad.isfinite().all() for x in model.parameters())


@pytest.mark.parametrize("case", TRAINED, indirect=True)
def test_half_precision_is_harmless(case):
    model, batch = model_of(case), batch_of(case, list(range(8)))
    with torch.autocast("cpu", torch.bfloat16):
        loss = sum(model.loss(batch).values())
        model.eval()
        images, captions = encoded(model, case)
        assert model.similarity(images, captions).isfinite().all()
    loss.backward()
    assert all(x.grad is None or x.grad.isfinite().all() for x in model.parameters())
    assert any(x.grad is not None and x.grad.any() for x in model.parameters())


def split_of(case: Case, images: int, captions: int) -> SplitInputs:
    features = images_of(case, images)
    return SplitInputs(
        images=features.half() if features.is_floating_point() else features,
        captions=captions_of(case, captions),
        image_of_caption=torch.arange(captions) % images,
        group_of_image=torch.arange(images),
        device=torch.device("cpu"),
    )


def test_a_batch_is_captions_with_their_images():
    inputs = split_of(tiny(methods.load("scan")), 5, 11)
    rows = np.array([3, 7, 1])
    batch = inputs.batch(rows)
    assert batch.group_ids.tolist() == [3, 2, 1]
    assert torch.equal(batch.images, inputs.images[[3, 2, 1]].float())
    width = int(inputs.captions.lengths[rows].max())
    assert torch.equal(batch.captions.values, inputs.captions.values[rows][:, :width])
    assert torch.equal(batch.captions.lengths, inputs.captions.lengths[rows])
    assert (batch.class_ids, batch.pool, batch.pool_ids) == (None, None, None)


def test_a_batch_may_hold_classes_and_a_pool():
    inputs = split_of(tiny(methods.load("scan")), 5, 11).with_classes(np.array([2, 0, 1, 1, 0]))
    batch = inputs.batch(np.array([3, 7, 1]), np.array([10, 0, 0, 6]))
    assert batch.class_ids.tolist() == [1, 1, 0]  # of images 3, 2 and 1
    assert batch.pool_ids.tolist() == [0, 0, 0, 1]
    width = int(inputs.captions.lengths[[10, 0, 6]].max())
    assert torch.equal(batch.pool.values, inputs.captions.values[[10, 0, 0, 6], :width])


def test_a_split_is_scored_in_chunks_of_any_size(case, monkeypatch):
    model, inputs = model_of(case).eval(), split_of(case, 5, 11)
    with torch.no_grad():
        whole = model.similarity(
            model.encode_images(inputs.images_at(slice(None))),
            model.encode_captions(inputs.captions),
        )
    for chunk in (2, 5):
        monkeypatch.setattr(scoring, "ENCODE_CHUNK", chunk)
        scores = scoring.score(model, inputs)
        torch.testing.assert_close(scores, whole, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", PART_SCORING[:1], indirect=True)
def test_a_part_of_a_score_is_scored_by_its_name(case):
    model, inputs = model_of(case).eval(), split_of(case, 5, 11)
    with torch.no_grad():
        images = model.encode_images(inputs.images_at(slice(None)))
        parts = model.scores(images, model.encode_captions(inputs.captions))
    member = scoring.encoded(model, inputs, (*parts, ""))
    *scores, whole = map(torch.from_numpy, member.scores(slice(None), slice(None)))
    for matrix, expected in zip(scores, parts.values(), strict=True):
        expected = expected[member.image_order][:, member.caption_order]
        torch.testing.assert_close(matrix, expected, rtol=1e-5, atol=1e-6)
    expected = scoring.score(model, inputs)[member.image_order][:, member.caption_order]
    torch.testing.assert_close(whole, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(KeyError, match="nothing"):
        scoring.encoded(model, inputs, ("nothing",)).scores(slice(None), slice(None))
