"""From a season file to its cells, feature sets and fusions."""

import re
from pathlib import Path

import pytest
import yaml

from benchmark.core.errors import UserError
from benchmark.papers.printed_tables import papers
from benchmark.season.method_options import configured
from benchmark.season.parameters import (
    ImageEncoder,
    Params,
    ProposalEncoder,
    SentenceEncoder,
    WordVectors,
)
from benchmark.season.presets import Fuse, Preset
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season, season_names
from benchmark.season.season_keys import unused_keys
from methods import load
from seasons import (
    FUSION,
    SCAN,
    TWO_BRANCH,
    committed,
    known_with,
    season,
    staged_presets,
    with_dataset,
)

Known = dict[str, tuple[str, Preset]]


@pytest.fixture
def staged(tmp_path, monkeypatch) -> Known:
    monkeypatch.chdir(tmp_path)
    return staged_presets(tmp_path)


def refused(season: Season, known: Known | None = None) -> UserError:
    """The error of a season that cannot be resolved; it says what to do."""
    with pytest.raises(UserError) as error:
        resolve("try", season, known)
    assert error.value.do
    return error.value


def by_folder(params: Params) -> dict:
    return {feature_set.folder: feature_set for feature_set in params.feature_sets.values()}


# Cells ------------------------------------------------------------------------------------------


def test_two_cells_of_one_key_are_refused():
    known = known_with(**{"t-mine": Preset(title="A"), "mine": Preset(title="B")})
    twice = with_dataset(season(presets=["t-mine", "mine"], seeds=[0]), "drawn")
    drawn = twice.datasets["drawn"].model_copy(update={"presets": ["t-mine"]})
    other = drawn.model_copy(update={"presets": ["mine"]})
    names = twice.model_copy(update={"datasets": {"drawn": drawn, "drawn-t": other}})
    error = refused(names, {name: ("scan", row) for name, (_, row) in known.items()})
    assert error.where == "season try: mine on drawn-t"
    assert error.found == "drawn-t-mine-0, which is t-mine on drawn, too"


def test_a_preset_does_not_take_the_place_of_a_row_that_was_brought_along(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("seasons/try/brought/drawn-scan_t2i_avg-0.yaml")
    file.parent.mkdir(parents=True)
    folder = "results/try/drawn/scan_t2i_avg/0"
    row = {"dataset": "drawn", "preset": "scan_t2i_avg", "seed": 0, "folder": folder}
    file.write_text(yaml.safe_dump(row))
    error = refused(season())
    assert error.where == "season try: preset scan_t2i_avg" and str(file) in error.do


def test_keys_and_folders_are_spelt_out():
    params = resolve("try", season())
    assert list(params.cells) == [
        "drawn-scan_t2i_avg-0",
        "drawn-scan_t2i_avg-3",
        "drawn-two_branch_single-0",
        "drawn-two_branch_single-3",
        "folder-scan_t2i_avg-0",
        "folder-scan_t2i_avg-3",
        "folder-two_branch_single-0",
        "folder-two_branch_single-3",
    ]
    words, vectors = (params.cells[f"drawn-{preset}-3"] for preset in (SCAN, TWO_BRANCH))
    assert (words.method, vectors.method) == ("scan", "two_branch_embedding")
    assert (words.dataset, words.preset, words.seed, words.family) == ("drawn", SCAN, 3, "paper")
    assert words.images == vectors.images == "data/features/drawn/drawn_cnn_96_g4_flip_std"
    assert (words.network, vectors.network) == ("bottom_up", "vgg19")
    assert words.folder == "results/try/drawn/scan_t2i_avg/3"
    assert words.checkpoint == "data/checkpoints/try/drawn/scan_t2i_avg/3.pt"
    assert words.precision == "float32"
    for files in ("folder", "checkpoint"):
        assert len({getattr(cell, files) for cell in params.cells.values()}) == len(params.cells)
    assert params.datasets["drawn"].reader == "shapes"
    assert params.datasets["folder"].reader == "folder"  # by its name
    assert (params.season, params.title, params.device) == ("try", "Try", "auto")


def test_a_cell_names_only_what_it_has():
    params = resolve("try", season())
    words, vectors = (params.cells[f"drawn-{preset}-3"] for preset in (SCAN, TWO_BRANCH))
    for cell in (words, vectors):
        assert (cell.words, cell.start, cell.backbone, cell.validation_images) == (None,) * 4
    assert words.texts is None
    assert vectors.texts == "data/features/drawn/hglmm_words_trained300"


def test_precision_and_budget_of_validation_are_those_of_the_season():
    params = resolve("try", season(precision="bfloat16", validation_images=5, device="cpu"))
    assert {(c.precision, c.validation_images) for c in params.cells.values()} == {("bfloat16", 5)}
    assert params.device == "cpu"


def test_numerics_and_threads_are_those_of_the_season_and_portable_with_one():
    def ways(**changes: object) -> set[tuple[str, int]]:
        params = resolve("try", season(**changes))
        cells = [*params.cells.values(), *params.fusions.values()]
        return {(cell.numerics, cell.threads) for cell in cells}

    assert ways() == {("portable", 1)}
    assert ways(numerics="native", threads=2) == {("native", 2)}
    assert ways(numerics="intel") == {("intel", 1)}


def test_cells_are_fed_what_their_options_ask_for(staged):
    """Stage one of a method takes pooled features, stage two pixels and an image network."""
    params = resolve("try", season(presets=["first", "second"]), staged)
    first, second = (params.cells[f"folder-{name}-0"] for name in ("first", "second"))
    words = "data/features/folder/words_trained20"
    assert (first.words, second.words) == (words, words)
    assert (first.texts, second.texts) == (None, None)
    assert (first.backbone, second.backbone) == (None, "torchvision_cnn")
    assert params.cells["drawn-second-0"].backbone == "drawn_cnn"
    assert {e.kind for e in params.feature_sets.values()} == {"pictures", "words"}


def test_a_preset_goes_on_from_the_checkpoint_of_its_seed(staged):
    params = resolve("try", season(presets=["second", "first"]), staged)
    for dataset in ("drawn", "folder"):
        for seed in (0, 3):
            cell = params.cells[f"{dataset}-second-{seed}"]
            assert cell.start == params.cells[f"{dataset}-first-{seed}"].checkpoint
    assert params.cells["drawn-first-0"].start is None


def test_a_preset_brings_the_one_it_starts_from(staged):
    params = resolve("try", season(presets=["second"]), staged)
    assert {cell.preset for cell in params.cells.values()} == {"first", "second"}


@pytest.mark.parametrize("name", season_names())
def test_every_season_resolves_to_cells_that_can_be_configured(name):
    params = committed(name)
    assert params.cells
    for key, cell in params.cells.items():
        configured(load(cell.method), cell.options, key)
    trained = {cell.folder for cell in params.cells.values()}
    assert {f for fusion in params.fusions.values() for f in fusion.members} <= trained
    starts = {cell.start for cell in params.cells.values() if cell.start}
    assert starts <= {cell.checkpoint for cell in params.cells.values()}


# Feature sets -----------------------------------------------------------------------------------


def test_feature_sets_are_those_that_the_cells_read():
    params = resolve("try", season())
    assert set(params.feature_sets) == {
        "drawn-drawn_cnn_96_g4_flip_std",
        "drawn-words_trained300",
        "drawn-hglmm_words_trained300",
        "folder-mobilenet_v2_64_g2",
        "folder-words_trained20",
        "folder-hglmm_50_std_words_trained20",
    }
    drawn = params.feature_sets["drawn-drawn_cnn_96_g4_flip_std"]
    assert (drawn.kind, drawn.encoder, drawn.dataset) == ("pictures", "drawn_cnn", "drawn")
    assert (drawn.reader, params.feature_sets["folder-words_trained20"].reader) == (
        *("shapes", "folder"),
    )
    assert params.feature_sets["folder-mobilenet_v2_64_g2"].encoder == "torchvision_cnn"
    words = params.feature_sets["folder-words_trained20"]
    assert (words.kind, words.encoder, words.words.size) == ("words", "word2vec", 20)
    text = params.feature_sets["folder-hglmm_50_std_words_trained20"]
    assert (text.kind, text.encoder, text.sentence.size) == ("sentences", "hglmm", 50)
    assert text.source == words.folder == "data/features/folder/words_trained20"
    assert drawn.source == words.source.replace("folder", "drawn") == "data/prepared/drawn"
    made = {feature_set.folder for feature_set in params.feature_sets.values()}
    read = {f for c in params.cells.values() for f in (c.images, c.texts, c.words) if f}
    assert read | {e.source for e in params.feature_sets.values() if "features" in e.source} == made
    only_words = resolve("try", season(presets=[SCAN]))
    assert {feature_set.kind for feature_set in only_words.feature_sets.values()} == {"pictures"}


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ({}, "mobilenet_v2_224_g6_flip"),
        ({"flip": False, "grid": 7}, "mobilenet_v2_224_g7"),
        ({"standardise": True, "pixels": 256}, "mobilenet_v2_224_g6_flip_std_p256"),
    ],
)
def test_other_image_settings_have_another_folder(changes, slug):
    assert ImageEncoder(**changes).slug == slug


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ({}, ""),
        ({"size": 6000}, "6000"),
        ({"centres": 8, "standardise": True}, "c8_std"),
        ({"hidden": 512}, "h512"),
        ({"weights": "infersent.pkl"}, "loaded"),
        ({"weights": "infersent.pkl", "masked": False}, "loaded_unmasked"),
    ],
)
def test_other_sentence_settings_have_another_folder(changes, slug):
    assert SentenceEncoder(**changes).slug == slug


def test_word_vectors_from_elsewhere_have_another_folder():
    assert WordVectors(vectors="a/GloVe.6B.txt", size=50).slug == "words_glove-6b50"
    assert WordVectors().slug == "words_trained300"


def test_features_of_the_network_of_a_dataset_may_stand_beside_it(staged):
    image = ImageEncoder(network="squeezenet1_1", features="squeezenet1_1.npy", pixels=64)
    params = resolve("try", with_dataset(season(presets=[SCAN]), "folder", image=image), staged)
    taken = by_folder(params)[params.cells[f"folder-{SCAN}-0"].images].image
    assert (taken.network, taken.features, taken.pixels) == (
        "squeezenet1_1",
        "squeezenet1_1.npy",
        0,
    )


def test_the_network_of_the_paper_may_be_asked_for(staged):
    on = with_dataset(
        season(presets=["first", "second", SCAN]),
        "folder",
        image=ImageEncoder(network="as in paper", pixels=64),
        features={"bottom_up": "precomp"},
    )
    params = resolve("try", on, staged)
    feature_sets = by_folder(params)
    first, second, scan = (params.cells[f"folder-{p}-0"] for p in ("first", "second", SCAN))
    assert feature_sets[first.images].image.network == "resnet50"
    assert feature_sets[first.images].image.features is None
    assert second.backbone == "torchvision_cnn"
    of_scan = feature_sets[scan.images].image
    assert (of_scan.network, of_scan.features, of_scan.pixels) == ("bottom_up", "precomp", 0)
    assert scan.images.endswith("bottom_up_224_g6_flip_imported")
    known = staged | {"nameless": ("scan", Preset(title="Nameless"))}
    error = refused(on.model_copy(update={"presets": ["nameless"]}), known)
    assert error.where == "season try: datasets.folder: network: as in paper"
    assert "Nameless" in error.expected


def test_a_preset_may_need_more_regions_than_the_season_has(staged):
    known = staged | {"fine": ("scan", Preset(title="Fine", grid=7))}
    params = resolve("try", season(presets=[SCAN, "fine"]), known)
    assert params.cells["folder-fine-0"].images == "data/features/folder/mobilenet_v2_64_g7"
    assert params.cells[f"folder-{SCAN}-0"].images == "data/features/folder/mobilenet_v2_64_g2"
    assert params.feature_sets["folder-mobilenet_v2_64_g7"].image.grid == 7


def test_localisation_reads_phrases_and_proposals():
    on = with_dataset(
        season(presets=["two_branch_phrase_augmented", TWO_BRANCH]),
        "folder",
        phrases={"hglmm": SentenceEncoder(size=9)},
        proposals=ProposalEncoder(count=7, network="vgg16", input_size=64),
    )
    params = resolve("try", on)
    cell = params.cells["folder-two_branch_phrase_augmented-0"]
    assert cell.texts == "data/features/folder/phrases_hglmm_9_words_trained20"
    assert cell.images == "data/features/folder/selective_search_7_vgg16_64"
    texts, images = (by_folder(params)[folder] for folder in (cell.texts, cell.images))
    assert (texts.kind, texts.encoder) == ("phrases", "hglmm")
    assert texts.source == "data/features/folder/words_trained20"
    assert (images.kind, images.encoder) == ("proposals", "torchvision_cnn")
    assert images.source == "data/prepared/folder"
    sentences = params.cells[f"folder-{TWO_BRANCH}-0"]
    assert sentences.texts == "data/features/folder/hglmm_50_std_words_trained20"


def test_a_text_encoder_may_have_word_vectors_of_its_own():
    glove = WordVectors(vectors="glove.txt", size=50)
    on = season(presets=[TWO_BRANCH])
    on = with_dataset(on, "folder", sentence={"hglmm": SentenceEncoder(words=glove)})
    params = resolve("try", on)
    cell = params.cells[f"folder-{TWO_BRANCH}-0"]
    assert cell.texts == "data/features/folder/hglmm_words_glove50"
    assert by_folder(params)[cell.texts].source == "data/features/folder/words_glove50"
    assert by_folder(params)["data/features/folder/words_glove50"].words == glove


# Which presets and seeds ------------------------------------------------------------------------


def test_a_dataset_may_have_some_of_the_presets(staged):
    some = with_dataset(season(presets=["first", "second", SCAN]), "folder", presets=["scan_*"])
    params = resolve("try", some, staged)
    assert {c.preset for c in params.cells.values() if c.dataset == "folder"} == {SCAN}
    assert len({c.preset for c in params.cells.values() if c.dataset == "drawn"}) == 3
    some = with_dataset(some, "drawn", presets=["!scan_*"])
    params = resolve("try", some, staged)
    assert [c.preset for c in params.cells.values() if c.dataset == "drawn"] == [
        *("first", "first", "second", "second"),
    ]
    error = refused(with_dataset(some, "folder", presets=["second"]), staged)
    assert error.where == "season try: second"
    assert "first" in error.expected and error.found.endswith("on folder")


def test_all_presets_are_played(staged):
    params = resolve("try", season(presets="all", seeds=[0]), staged)
    fused = {name for name, (_, row) in staged.items() if row.fuse}
    assert {"parts", "three", FUSION} <= fused
    assert {cell.preset for cell in params.cells.values()} == set(staged) - fused
    assert {fusion.preset for fusion in params.fusions.values()} == fused
    assert len(params.cells) == 2 * len(set(staged) - fused)


def test_an_unknown_preset_is_told_which_may_be_meant():
    error = refused(season(presets=[SCAN, "scan_t2i_avgg"]))
    assert error.where == "season try: preset 'scan_t2i_avgg'"
    assert "did you mean scan_t2i_avg?" in error.found and "list presets" in error.do


def test_costly_presets_may_have_fewer_seeds(staged):
    of = {"*st": [0], "staged.py": [0, 3], "sec*": [0]}
    params = resolve("try", season(presets=["first", "second", SCAN], seeds_of=of), staged)
    played = {(cell.preset, cell.seed) for cell in params.cells.values()}
    assert played == {("first", 0), ("second", 0), (SCAN, 0), (SCAN, 3)}
    of = {"staged.py": [5]}
    wider = resolve("try", season(presets=["first", "second"], seeds_of=of), staged)
    assert {cell.seed for cell in wider.cells.values()} == {5}


def test_a_season_may_feed_a_preset_other_sentence_vectors():
    own = ["cyclematch", "cyclematch_word2vec", "two_branch_constraints"]
    of = {"cyclematch_w*": "tfidf", "cyclematch": "hglmm"}
    params = resolve("try", season(presets=own, sentence_of=of))
    encoders = {
        cell.preset: params.feature_sets[cell.texts.replace("data/features/", "").replace("/", "-")]
        for cell in params.cells.values()
    }
    names = {preset: features.encoder for preset, features in encoders.items()}
    assert names == dict(zip(own, ("hglmm", "tfidf", "hglmm"), strict=True))
    error = refused(season(presets=own, sentence_of={"scam": "hglmm"}))
    assert error.where == "season try: sentence_of.scam"


def test_a_seed_that_others_are_made_of_must_be_played(staged):
    error = refused(season(presets=["first", "second"], seeds_of={"first": [0]}), staged)
    assert error.where == "season try: second: seed 3"
    assert "starts from" in error.expected and error.expected.endswith(": 0")
    fused = season(presets=[SCAN, "scan_i2t_lse", FUSION], seeds_of={"scan_i2t_lse": [0]})
    error = refused(fused)
    assert error.where == f"season try: {FUSION}: seed 3"
    assert "seed of scan_i2t_lse, which it fuses" in error.expected
    error = refused(season(seeds_of={"third": [0]}))
    assert (error.where, error.found) == ("season try: seeds_of.third", "neither: 'third'")


# Options ----------------------------------------------------------------------------------------


def test_options_of_the_season_go_over_those_of_the_preset():
    options = {
        "scan": {"epochs": 4, "lambda1": 1.0, "margin": 0.1},
        SCAN: {"epochs": 2, "pooling": "lse"},
    }
    params = resolve("try", season(options=options))
    cell = params.cells["drawn-scan_t2i_avg-0"]
    assert cell.options == {
        "direction": "t2i",  # the preset's
        "pooling": "lse",  # the preset's "avg", then the season's for the preset
        "lambda1": 1.0,  # the preset's 9.0, then the season's for the method
        "margin": 0.1,
        "epochs": 2,  # the season's for the method, then for the preset
    }
    assert cell.scaled == ["epochs", "lambda1", "margin", "pooling"]
    other = params.cells["drawn-two_branch_single-0"]
    assert (other.options, other.scaled) == ({"lambda2": 0.0}, [])


def test_options_of_patterns_go_over_those_of_the_method_in_their_order(staged):
    options = {
        "*_2": {"epochs": 99},
        "staged.py": {"epochs": 5, "stage": 1},
        "f*": {"epochs": 6},
        "*st": {"epochs": 7},
    }
    known = staged | {"late_2": staged["first"]}
    params = resolve("try", season(presets=["first", "second", "late_2"], options=options), known)
    first, second, late = (params.cells[f"drawn-{x}-0"] for x in ("first", "second", "late_2"))
    assert first.options == {"stage": 1, "epochs": 7}  # method, "f*", then "*st"
    assert second.options == {"stage": 1, "epochs": 5}  # of the method alone
    assert late.options == {"stage": 1, "epochs": 99}  # above the method, though first
    assert second.scaled == ["epochs", "stage"]


def test_what_papers_set_otherwise_on_a_dataset_is_no_cut_of_the_budget():
    changes = {"scan": {"epochs": 20, "margin": 0.3}, SCAN: {"lambda1": 5.0}}
    on = with_dataset(season(options={"scan": {"margin": 0.1}}), "folder", changes=changes)
    params = resolve("try", on)
    there, elsewhere = (params.cells[f"{name}-{SCAN}-0"] for name in ("folder", "drawn"))
    assert there.options["epochs"] == 20 and there.options["lambda1"] == 5.0
    assert there.options["margin"] == 0.1 and there.scaled == elsewhere.scaled == ["margin"]
    assert "epochs" not in elsewhere.options and elsewhere.options["lambda1"] == 9.0
    error = refused(with_dataset(on, "folder", changes={"cyclemash": {}}))
    assert error.where == "season try: datasets.folder.changes.cyclemash"
    assert error.found == "neither: 'cyclemash' (did you mean cyclematch?)"


def test_a_pattern_that_fits_nothing_is_refused(staged):
    error = refused(season(presets=["first"], options={"third*": {}}), staged)
    assert (error.where, error.found) == ("season try: options.third*", "neither: 'third*'")
    assert "staged.py" in error.expected


def test_an_option_group_of_no_method_is_refused():
    error = refused(season(presets=[SCAN, TWO_BRANCH], options={"scam": {"epochs": 2}}))
    assert error.where == "season try: options.scam" and "scan, " in error.expected
    assert error.found == "neither: 'scam' (did you mean scan?)"


def test_keys_that_change_nothing_are_named():
    options = {key: {"epochs": 2} for key in ("scan", "two_branch_embedding", "cycle*")}
    tried = season(presets=[SCAN], options=options, seeds_of={TWO_BRANCH: [1], SCAN: [0]})
    tried = with_dataset(tried, "folder", changes={"cca": {"size": 3}})
    unused = unused_keys(tried, resolve("try", tried))
    assert unused == [
        *("options.two_branch_embedding", "options.cycle*", f"seeds_of.{TWO_BRANCH}"),
        *("datasets.folder.changes.cca", "datasets.folder.sentence.hglmm"),
    ]


def test_settings_of_features_that_are_not_made_are_named():
    more = {"features": {"resnet51": "x.npy"}, "sentence": {"hglmm": SentenceEncoder(size=8)}}
    tried = with_dataset(season(presets=[TWO_BRANCH]), "folder", **more)
    tried = with_dataset(tried, "folder", phrases={"tfidf": SentenceEncoder()})
    unused = unused_keys(tried, resolve("try", tried))
    below = [f"datasets.folder.{key}" for key in ("phrases.tfidf", "features.resnet51")]
    assert unused == below


@pytest.mark.parametrize("field", ["sentence_of", "sentence", "phrases"])
def test_an_encoder_that_is_none_is_refused(field):
    """Its module would be looked for hours later, and misspelt settings would count for nothing."""
    if field == "sentence_of":
        tried = season(presets=[TWO_BRANCH], sentence_of={TWO_BRANCH: "hglm"})
        where = f"sentence_of.{TWO_BRANCH}"
    else:
        tried = with_dataset(season(), "folder", **{field: {"hglm": SentenceEncoder()}})
        where = f"datasets.folder.{field}.hglm"
    error = refused(tried)
    assert error.where == f"season try: {where}" and "(did you mean hglmm?)" in error.found
    assert error.expected == "one of bilstm_max, hglmm, mean_words, tfidf"


@pytest.mark.parametrize("change", ["options", "changes"])
def test_a_fusion_is_of_the_scores_that_its_members_have_here(change):
    options = {"cyclematch": {"variant": "latent"}}
    tried = season(presets=["cyclematch_adaptive"])
    if change == "options":
        tried = season(presets=["cyclematch_adaptive"], options=options)
    else:
        tried = with_dataset(tried, "folder", changes=options)
    error = refused(tried)
    assert error.where == "season try: cyclematch_adaptive: cyclematch:visual"
    assert error.expected == "a score of cyclematch: latent"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epoch": 5}, "preset first: .*'epoch'.* one of stage"),
        ({"epochs": "many"}, "preset first: epochs: .*found 'many'"),
    ],
)
def test_an_option_that_is_none_is_refused_before_anything_runs(staged, options, message):
    with pytest.raises(UserError, match=message):
        resolve("try", season(presets=["first"], options={"f*": options}), staged)


# Fusions ----------------------------------------------------------------------------------------


def test_a_fusion_names_the_folders_of_its_members():
    params = resolve("try", season(presets=[SCAN, FUSION, "scan_i2t_lse"]))
    fusion = params.fusions["folder-scan_t2i_avg_i2t_lse-3"]
    members = [params.cells[f"folder-{name}-3"].folder for name in (SCAN, "scan_i2t_lse")]
    assert (fusion.how, fusion.members, fusion.parts) == ("average", members, ["", ""])
    assert fusion.folder == "results/try/folder/scan_t2i_avg_i2t_lse/3"
    assert fusion.precision == "float32"
    assert len(params.fusions) == 4
    assert not set(params.fusions) & set(params.cells)


def test_a_fusion_brings_its_members():
    params = resolve("try", season(presets=[SCAN, FUSION]))
    assert {cell.preset for cell in params.cells.values()} == {SCAN, "scan_i2t_lse"}
    assert {fusion.preset for fusion in params.fusions.values()} == {FUSION}


def test_a_fusion_may_be_of_parts_of_scores(staged):
    params = resolve("try", season(presets=["first", "second", "parts", "three"]), staged)
    first, second = (f"results/try/drawn/{name}/0" for name in ("first", "second"))
    parts, three = (params.fusions[f"drawn-{name}-0"] for name in ("parts", "three"))
    assert (parts.how, parts.members) == ("adaptive", [second, second])
    assert parts.parts == ["visual", "textual"]
    assert (three.members, three.parts) == ([first, second, second], ["", "", "latent"])


@pytest.mark.parametrize(
    ("how", "members"),
    [
        ("average", ["cca_phrases", "two_branch_phrase_augmented"]),
        ("adaptive", [TWO_BRANCH, "cca_phrases"]),
        ("weighted", ["two_branch_phrase_augmented"]),
        ("weighted", ["two_branch_phrase_augmented", TWO_BRANCH]),
        ("weighted", [TWO_BRANCH, SCAN]),
    ],
)
def test_a_fusion_of_different_tasks_is_refused(how, members):
    known = known_with(mixed=Preset(title="Mixed", fuse=Fuse(how=how, of=members)))
    error = refused(season(presets=["mixed", *members]), known)
    expected = "retrieval, localisation" if how == "weighted" else "retrieval, retrieval"
    assert error.where == f"season try: mixed: how: {how}"
    if len(members) == 2:
        assert error.expected == f"presets of {expected}"
    assert error.found.startswith(", ".join(members))


def test_a_fusion_names_scores_that_the_method_declares():
    known = known_with(parts=Preset(title="P", fuse=Fuse(how="average", of=["cyclematch:sound"])))
    error = refused(season(presets=["parts", "cyclematch"]), known)
    assert error.where == "season try: parts: cyclematch:sound"
    assert error.expected == "a score of cyclematch: visual, textual, latent"


# The season of the papers -----------------------------------------------------------------------


def test_the_papers_season_plays_every_own_row_where_the_paper_measured_it():
    """On a dataset with the place's reader; Flickr30K Entities has the captions of Flickr30K."""
    params = committed("papers")
    played = {
        (params.datasets[cell.dataset].reader, cell.preset)
        for cell in (*params.cells.values(), *params.fusions.values())
    }
    readers = {"flickr30k": ("flickr30k", "flickr30k_entities")}
    rows = [
        row
        for paper in papers().values()
        for table in paper.tables.values()
        for row in table.rows
        if row.preset
    ]
    printed = [(place, row.preset) for row in rows for place in row.numbers]
    assert len(printed) > 120
    for place, preset in printed:
        name = re.sub("_[15]k$", "", place.partition("/")[0])
        assert any((x, preset) in played for x in readers.get(name, (name,))), (place, preset)


def test_no_preset_of_the_papers_season_is_cut_to_a_budget():
    params = committed("papers")
    assert not [cell.preset for cell in params.cells.values() if cell.scaled]
    images = [e.image for e in params.feature_sets.values() if e.image]
    assert {image.network for image in images} == {
        *("bottom_up", "resnet50", "resnet152", "vgg16", "vgg19"),
    }
    assert {image.network for image in images if image.features} == {"bottom_up"}
