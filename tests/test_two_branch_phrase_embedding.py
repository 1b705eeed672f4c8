"""The two-branch embedding network for phrases against loops written from Algorithm 1."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles import two_branch as sentences
from oracles import two_branch_phrases as naive
from region_batches import (
    ALONE,
    IMAGE_SIZE,
    IOUS,
    TEXT_SIZE,
    batch_of,
    drawn_pictures,
    found_in_new_pictures,
    ious_of,
)
from torch import Tensor

from benchmark.core.files import read_yaml
from benchmark.season.presets import PACKAGE_ROOT
from methods import Inputs, RegionBatch, Sizes
from methods import two_branch_phrase_embedding as method
from methods.shared.branches import encode_regions
from methods.shared.losses import distance, draw

PAIRED = [4, 4, 9, 9, 2, 2, 7, 7, 4, 4, 5, 5]  # chains of the rows, with sampling
HIDDEN, DIMENSIONS = 7, 4
SINGLE = {"lambda1": 0.0, "lambda2": 1.0, "augmented": False}
ROWS = {  # table 1 (b), in its order
    "linear": SINGLE | {"nonlinear": False},
    "single": SINGLE,
    "bidirectional": {"augmented": False},
    "augmented": {},
    "sampling": {"neighbourhood_sampling": True},
    "constraints": {"neighbourhood_sampling": True, "lambda3": 0.1, "lambda4": 0.1},
}


def config_of(**options) -> method.Config:
    return method.Config(hidden_size=HIDDEN, embedding_size=DIMENSIONS, **options)


def model_of(**options) -> method.Model:
    """In evaluation mode, with weights and batch norm statistics that are nobody's initial ones."""
    torch.manual_seed(0)
    sizes = Sizes(image=IMAGE_SIZE, text=TEXT_SIZE)
    model = method.Model(config_of(**options), sizes).double().eval()
    for values in model.state_dict().values():
        if values.is_floating_point():
            values += torch.rand_like(values) / 2
    return model


def loss_of(model: method.Model, batch: RegionBatch, seed: int = 0) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    return model.loss(batch)


def regions_of(model: method.Model, batch: RegionBatch, seed: int) -> tuple[list, list]:
    """Target rows, and the encodings of the regions that each is paired with, as they are drawn."""
    c = model.config
    true, proposals = (x.detach().numpy() for x in encode_regions(model, batch))
    targets = list(range(0, len(true), 2 if c.neighbourhood_sampling else 1))
    ious = ious_of(batch)
    allowed = torch.zeros(len(targets), 6, dtype=torch.bool)
    for t, row in enumerate(targets):
        allowed[t, naive.positives(ious[row])] = True
    torch.manual_seed(seed)
    columns, present = draw(allowed, c.augmented + c.neighbourhood_sampling)
    regions = []
    for t, row in enumerate(targets):
        drawn = [] if c.augmented else [true[row]]
        for column, there in zip(columns[t].tolist(), present[t].tolist(), strict=True):
            drawn.append(proposals[batch.image_of_row[row], column] if there else true[row])
        regions.append(drawn)
    return targets, regions


@pytest.mark.parametrize("k", [1, 2, 30])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("row", ROWS)
def test_loss_is_equation_6_over_algorithm_1(row, seed, k):
    model = model_of(**ROWS[row], margin=0.4, top_k=k)
    c, n = model.config, 2 if "neighbourhood_sampling" in ROWS[row] else 1
    batch = batch_of(PAIRED if n == 2 else ALONE, seed)
    terms = loss_of(model, batch, seed)
    targets, regions = regions_of(model, batch, seed)
    phrases = model.encode_captions(batch.phrases)[0].detach().numpy()
    proposals = encode_regions(model, batch)[1].detach().numpy()
    images, ious, chains = batch.image_of_row, ious_of(batch), batch.chain_ids.tolist()
    sampled = (images, ious, targets, regions, 0.4, k)
    expected = {"phrase_anchor": c.lambda2 * naive.phrase_anchor(phrases, proposals, *sampled)}
    if c.lambda1:
        term = naive.image_anchor(phrases, chains, targets, regions, n, 0.4, k)
        expected["image_anchor"] = c.lambda1 * term
    if c.lambda3:
        term = naive.region_neighbourhood(proposals, *sampled)
        expected["region_neighbourhood"] = 0.1 * term
        term = sentences.text_neighbourhood(phrases, chains, 0.4, k)
        expected["phrase_neighbourhood"] = 0.1 * term
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(expected, abs=1e-6)
    assert min(expected.values()) > 0


def test_terms_by_hand():
    # Unit vectors in the plane; cosines 1, 0.6, 0 and -1 are distances 0, sqrt(0.8), sqrt(2), 2.
    east, north, west, between = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8]
    targets = method.Targets(
        phrases=torch.tensor([east]),
        regions=torch.tensor([[between, east]]),
        proposals=torch.tensor([[north, west, east]]),
        negative=torch.tensor([[True, True, False]]),
    )
    # (y, x, x'), margin 1: 1 + sqrt(0.8) - sqrt(2), 1 + sqrt(0.8) - 2 < 0; 1 + 0 - sqrt(2) < 0.
    near = 0.8**0.5
    expected = (1 + near - 2**0.5) / 4  # two regions, two slots each
    assert method.phrase_anchor(targets, 1.0, 2).item() == pytest.approx(expected, abs=1e-5)
    # x_i = between: north is at sqrt(0.4), west at sqrt(3.2); x_i = east: sqrt(2) and 2.
    hinges = [1 + near - 0.4**0.5, 1 + near - 3.2**0.5, 1 + near - 2**0.5, 0.0]
    term = method.region_neighbourhood(targets, 1.0, 2).item()
    assert term == pytest.approx(sum(hinges) / 4, abs=1e-5)
    # Rows (east, east) and (west, between) of two chains, a third phrase of the first chain.
    regions, phrases = torch.tensor([east, west, east]), torch.tensor([east, between, north])
    chains = torch.tensor([3, 5, 3])
    # East: between at sqrt(0.8). West, from between at sqrt(3.2): east at 2, north at sqrt(2).
    # East, from north at sqrt(2): between at sqrt(0.8).
    far = 3.2**0.5
    hinges = [1 - near, max(0, 1 + far - 2), 1 + far - 2**0.5, 1 + 2**0.5 - near]
    term = method.image_anchor(regions, phrases, chains, 1.0, 2).item()
    assert term == pytest.approx(sum(hinges) / 6, abs=1e-5)


@pytest.mark.parametrize("chain", IOUS)
@pytest.mark.parametrize("options", [{}, {"neighbourhood_sampling": True}])
def test_augmented_positives_are_drawn_uniformly_among_near_proposals(chain, options):
    draws, config = 3000, config_of(**options)
    ious = torch.tensor([IOUS[chain]] * draws)
    columns = torch.arange(6.0).repeat(draws, 1)[..., None]  # the encoding tells which one it is
    true = torch.full((draws, 1), -1.0)
    torch.manual_seed(0)
    positives = method.positive_regions(true, columns, ious >= 0.7, config)[..., 0].int().tolist()
    allowed = naive.positives(IOUS[chain])
    for s, counts in enumerate(Counter(column) for column in zip(*positives, strict=True)):
        left = len(allowed) - s  # a second one is another one, where there is any
        if left <= 0:
            assert counts == {-1: draws}
        else:
            p = 1 / len(allowed)
            assert sorted(counts) == allowed
            spread = 4.5 * (draws * p * (1 - p)) ** 0.5
            assert all(abs(count - draws * p) <= spread for count in counts.values())
    if options and len(allowed) > 1:
        assert all(first != second for first, second in positives)


def test_a_single_positive_is_the_true_region():
    true, columns = torch.full((50, 1), -1.0), torch.arange(6.0).repeat(50, 1)[..., None]
    near = torch.tensor([IOUS[4]] * 50) >= 0.7
    positives = method.positive_regions(true, columns, near, config_of(augmented=False))
    assert (positives == -1).all() and positives.shape == (50, 1, 1)
    sampling = config_of(augmented=False, neighbourhood_sampling=True)
    positives = method.positive_regions(true, columns, near, sampling)[..., 0]
    assert (positives[:, 0] == -1).all()
    assert set(positives[:, 1].tolist()) == {0.0, 1.0, 2.0}


@pytest.mark.parametrize("row", ["bidirectional", "constraints"])
def test_phrases_of_one_chain_are_never_negatives(row):
    model = model_of(**ROWS[row], margin=5.0)  # every triplet violates
    terms = loss_of(model, batch_of([4] * 6))
    assert terms["image_anchor"] == 0
    assert terms.get("phrase_neighbourhood", 0) == 0
    assert terms["phrase_anchor"] > 0


def test_a_phrase_without_negative_proposals_has_no_triplets_with_regions():
    terms = loss_of(model_of(**ROWS["constraints"], margin=5.0), batch_of([9] * 4))
    assert terms["phrase_anchor"] == 0 and terms["region_neighbourhood"] == 0


def test_negative_proposals_are_of_the_same_image():
    model, batch = model_of(), batch_of(ALONE[:4])  # none of image 2
    moved = batch.proposals.clone()
    moved[2] = 100.0
    kept = loss_of(model, batch)
    assert loss_of(model, replace(batch, proposals=moved)) == kept
    moved = batch.proposals.clone()
    moved[0, 4] = 100.0  # a negative one of image 0
    assert loss_of(model, replace(batch, proposals=moved)) != kept


@pytest.mark.parametrize("row", ["linear", "constraints"])
def test_absent_proposals_change_nothing_not_even_the_batch_norm(row):
    model, batch = model_of(**ROWS[row]).train(), batch_of(PAIRED)
    absent = torch.zeros(3, 6, dtype=torch.bool)
    absent[0, 5] = absent[2, 3:] = True
    losses = []
    for value in (0.0, 1e3):
        proposals = batch.proposals.masked_fill(absent[..., None], value)
        losses.append(loss_of(model, replace(batch, proposals=proposals)))
    assert losses[0] == losses[1]


def test_regions_pass_through_the_network_once_and_together():
    model, batch = model_of().train(), batch_of(ALONE)
    seen = []
    model.image_branch.register_forward_hook(lambda _, given, __: seen.append(given[0]))
    model.loss(batch)
    (regions,) = seen
    assert len(regions) == len(ALONE) + 5 + 6 + 3  # and the proposals that the images have
    there = torch.cat([batch.proposals[0, :5], batch.proposals[1], batch.proposals[2, :3]])
    assert torch.equal(regions, torch.cat([batch.regions, there]))


def test_encoded_regions_lie_where_their_features_did():
    model, batch = model_of(), batch_of(ALONE)
    true, proposals = encode_regions(model, batch)
    torch.testing.assert_close(true, model.encode_images(batch.regions)[0])
    for image, there in enumerate((5, 6, 3)):
        expected = model.encode_images(batch.proposals[image, :there])[0]
        torch.testing.assert_close(proposals[image, :there], expected)
        assert not proposals[image, there:].any()


@pytest.mark.parametrize("row", ROWS)
def test_every_term_moves_both_branches(row):
    model = model_of(**ROWS[row], margin=2.0).train()
    terms = loss_of(model, batch_of(PAIRED))
    for name, term in terms.items():
        model.zero_grad()
        term.backward(retain_graph=True)
        assert all(x.grad is None or x.grad.isfinite().all() for x in model.parameters())
        moved = {
            part.partition("_")[0]
            for part, x in model.named_parameters()
            if x.grad is not None and x.grad.any()
        }
        only = {"region_neighbourhood": {"image"}, "phrase_neighbourhood": {"text"}}
        assert moved == only.get(name, {"image", "text"}), name


def test_branches_are_the_papers():
    model, batch = model_of(), batch_of(ALONE)
    encoded = model.encode_images(batch.regions)[0], model.encode_captions(batch.phrases)[0]
    given = batch.regions, batch.phrases.values
    branches = model.image_branch, model.text_branch
    for branch, inputs, outputs in zip(branches, given, encoded, strict=True):
        first, _, dropout, last, norm = branch
        parts = (first.weight, first.bias, last.weight, last.bias)
        parts += (norm.running_mean, norm.running_var, norm.weight, norm.bias)
        parts = [part.detach().numpy() for part in parts]
        for x, y in zip(inputs.numpy(), outputs.detach().numpy(), strict=True):
            expected = sentences.embed(x, *parts, norm.eps)
            np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-10)
        assert dropout.p == 0


def test_similarity_orders_as_the_euclidean_distance():
    model, batch = model_of(), batch_of(ALONE)
    regions, phrases = model.encode_images(batch.regions), model.encode_captions(batch.phrases)
    scores = model.similarity(regions, (phrases[0][:3],))
    assert scores.shape == (7, 3)
    far = distance(regions[0], phrases[0][:3])
    assert torch.equal(scores.argsort(0, descending=True), far.argsort(0))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 2 * 512 + 512 * 1024 * 2 + 2 * 512 + 2 * 512 + (4096 + 6000 + 2) * 1024),
        ({"nonlinear": False}, 4096 * 1024 + 1024 + 6000 * 1024 + 1024),
    ],
)
def test_full_size_network_has_the_papers_parameters(options, expected):
    with torch.device("meta"):
        model = method.Model(method.Config(**options), Sizes(image=4096, text=6000))
    assert sum(x.numel() for x in model.parameters()) == expected


def test_recipe_is_section_4_3():
    (phase,) = method.recipe(method.Config())
    assert (phase.optimiser, phase.weight_decay, phase.clip_norm) == ("adam", 0.0, None)
    assert phase.learning_rates == (0.001,) * 8
    assert (phase.batch_size, phase.captions_per_image) == (100, 1)
    (phase,) = method.recipe(method.Config(**ROWS["sampling"]))
    assert phase.captions_per_image == 2
    assert method.inputs(method.Config()) == Inputs(
        task="localisation", image="proposals", text="phrase"
    )


def test_neighbourhood_terms_count_in_two_more_epochs_only():
    first, second = method.recipe(method.Config(**ROWS["constraints"]))
    assert (first.epochs, second.epochs) == (8, 2)
    assert (first.captions_per_image, second.captions_per_image) == (2, 2)
    assert second.keeps == "last"  # of 8 + 2, as the sampling row keeps the last of 8
    (sampling,) = method.recipe(method.Config(**ROWS["sampling"]))
    assert sampling.keeps == "last"
    terms = loss_of(model_of(**ROWS["constraints"]), batch_of(PAIRED))
    assert set(first.terms) == {"phrase_anchor", "image_anchor"}
    assert set(terms) - set(first.terms) == {"region_neighbourhood", "phrase_neighbourhood"}
    assert set(second.terms or terms) == set(terms)


@pytest.mark.parametrize("row", ROWS)
def test_the_terms_of_every_phase_are_there(row):
    terms = loss_of(model_of(**ROWS[row]), batch_of(PAIRED))
    for phase in method.recipe(config_of(**ROWS[row])):
        assert set(phase.terms) <= set(terms)


def test_hyper_parameters_are_the_papers():
    config = method.Config()
    assert (config.lambda1, config.lambda2, config.lambda3, config.lambda4) == (1, 4, 0, 0)
    assert (config.top_k, config.positive_iou, config.negative_iou) == (30, 0.7, 0.3)


@pytest.mark.parametrize("option", ["lambda3", "lambda4"])
def test_constraints_need_neighbourhood_sampling(option):
    with pytest.raises(ValueError, match="0 without neighbourhood_sampling: true"):
        method.Config(**{option: 0.1})


def test_the_phrase_anchor_is_not_optional():
    with pytest.raises(ValueError, match="lambda2: expected more than 0"):
        method.Config(lambda2=0.0)


@pytest.mark.parametrize("row", ROWS)
def test_phrases_of_new_pictures_are_found(row):
    torch.manual_seed(0)
    config = method.Config(hidden_size=32, embedding_size=16, **ROWS[row])
    model = method.Model(config, Sizes(image=12, text=10)).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(60):
        batch = drawn_pictures(step + 1, method.recipe(config)[0].captions_per_image)
        optimiser.zero_grad()
        sum(model.loss(batch).values()).backward()
        optimiser.step()
    assert found_in_new_pictures(model) > 0.9  # 0.2 by chance


@pytest.mark.parametrize(("kind", "weight"), [("region", "lambda3"), ("phrase", "lambda4")])
def test_each_neighbourhood_has_a_row_of_its_own(kind, weight):
    rows = read_yaml(PACKAGE_ROOT / "methods/two_branch_phrase_embedding.yaml")
    both = method.Config(**rows["two_branch_phrase_constraints"]["options"])
    alone = method.Config(**rows[f"two_branch_phrase_{kind}_constraints"]["options"])
    other = {"lambda3": "lambda4", "lambda4": "lambda3"}[weight]
    assert alone == replace(both, **{other: 0.0})
    assert len(method.recipe(alone)) == 2  # 8 epochs and 2 more, too
    terms = loss_of(model_of(**ROWS["constraints"] | {other: 0.0}), batch_of(PAIRED))
    assert {name for name in terms if "neighbourhood" in name} == {f"{kind}_neighbourhood"}
