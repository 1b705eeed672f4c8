"""From a season file to the cells of params.yaml."""

import re

import pytest

from benchmark.commands.season import placed
from benchmark.core.errors import UserError
from benchmark.encoders import load as load_encoder
from benchmark.papers.printed_tables import papers
from benchmark.season import presets as preset_files
from benchmark.season.method_options import configured
from benchmark.season.parameter_files import read_params, write_params
from benchmark.season.parameters import (
    DatasetSettings,
    ImageEncoder,
    ProposalEncoder,
    SentenceEncoder,
    WordVectors,
)
from benchmark.season.presets import Fuse, Preset, needs, presets
from benchmark.season.resolving import resolve
from benchmark.season.season_files import Season, read_season, season_names
from methods import load

SCAN, TWO_BRANCH, FUSION = "scan_t2i_avg", "two_branch_single", "scan_t2i_avg_i2t_lse"
WORDS = '''
"""A method that trains from pixels and known words."""

from dataclasses import dataclass

from methods import Inputs


@dataclass(frozen=True, kw_only=True)
class Config:
    stage: int = 2
    epochs: int = 60


def inputs(config):
    image = "pixels" if config.stage == 2 else "pooled"
    return Inputs(image=image, text="words", word_vectors=True)
'''


def season(**changes) -> Season:
    image = ImageEncoder(network="mobilenet_v2", input_size=64, grid=2, flip=False)
    facts = {
        "title": "Try",
        "datasets": {
            "drawn": DatasetSettings(
                reader="shapes",
                options={"train": 9},
                image=ImageEncoder(network="drawn_cnn", input_size=96, grid=4, standardise=True),
            ),
            "folder": DatasetSettings(
                image=image,
                words=WordVectors(size=20),
                sentence={"hglmm": SentenceEncoder(size=50, standardise=True)},
            ),
        },
        "presets": [SCAN, TWO_BRANCH],
        "seeds": [0, 3],
    }
    return Season(**facts | changes)


def known_with(**rows: Preset) -> dict[str, tuple[str, Preset]]:
    """Presets of methods/, and `rows` of a method file words.py in the working folder."""
    return presets() | {name: ("words.py", row) for name, row in rows.items()}


@pytest.fixture
def stages(tmp_path, monkeypatch) -> dict[str, tuple[str, Preset]]:
    """Presets with one that starts from another, and fusions of parts of their scores."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.py").write_text(WORDS)
    return known_with(
        first=Preset(title="First", network="resnet50", options={"stage": 1, "epochs": 240}),
        second=Preset(title="Second", network="resnet50", start="first"),
        parts=Preset(title="P", fuse=Fuse(how="adaptive", of=["second:visual", "second:textual"])),
        three=Preset(title="3", fuse=Fuse(how="average", of=["first", "second", "second:latent"])),
    )


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
    captions, card = (f"data/prepared/drawn/{name}" for name in ("captions.parquet", "card.json"))
    assert (words.texts, words.words, words.start) == (captions, captions, card)
    assert vectors.texts == "data/features/drawn/hglmm_words_trained300"
    assert (vectors.words, vectors.backbone, vectors.starts_fresh) == (captions, "__init__", True)
    assert (words.network, vectors.network) == ("bottom_up", "vgg19")
    assert words.folder == "results/try/drawn/scan_t2i_avg/3"
    assert len({cell.folder for cell in params.cells.values()}) == len(params.cells)
    assert params.datasets["drawn"].reader == "shapes"
    assert params.datasets["folder"].reader == "folder"  # by its name
    assert (params.season, params.title, params.precision) == ("try", "Try", "float32")


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
    assert (drawn.kind, drawn.encoder, drawn.dataset) == ("image", "drawn_cnn", "drawn")
    assert params.feature_sets["folder-mobilenet_v2_64_g2"].encoder == "torchvision_cnn"
    words = params.feature_sets["folder-words_trained20"]
    assert (words.kind, words.encoder, words.words.size) == ("words", "word2vec", 20)
    text = params.feature_sets["folder-hglmm_50_std_words_trained20"]
    assert (text.kind, text.encoder, text.sentence.size) == ("sentence", "hglmm", 50)
    assert text.source == words.folder == "data/features/folder/words_trained20"
    assert drawn.source == words.source.replace("folder", "drawn") == "data/prepared/drawn"
    made = {encoding.folder for encoding in params.feature_sets.values()}
    read = {f for c in params.cells.values() for f in (c.images, c.texts) if "features" in f}
    assert read | {e.source for e in params.feature_sets.values() if "features" in e.source} == made
    only_words = resolve("try", season(presets=[SCAN]))
    assert {encoding.kind for encoding in only_words.feature_sets.values()} == {"image"}


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


def test_cells_are_fed_what_their_options_ask_for(stages):
    """Stage one of a method takes pooled features, stage two pixels and an image network."""
    params = resolve("try", season(presets=["first", "second"]), stages)
    first, second = (params.cells[f"folder-{name}-0"] for name in ("first", "second"))
    words = "data/features/folder/words_trained20"
    assert (first.words, second.words) == (words, words)
    assert (first.texts, second.texts) == ("data/prepared/folder/captions.parquet",) * 2
    assert (first.backbone, second.backbone) == ("__init__", "torchvision_cnn")
    assert params.cells["drawn-second-0"].backbone == "drawn_cnn"
    assert {e.kind for e in params.feature_sets.values()} == {"image", "words"}


def test_a_dataset_may_have_some_of_the_presets(stages):
    some = season(presets=["first", "second", SCAN])
    some.datasets["folder"] = some.datasets["folder"].model_copy(update={"presets": ["scan_*"]})
    params = resolve("try", some, stages)
    assert {c.preset for c in params.cells.values() if c.dataset == "folder"} == {SCAN}
    assert len({c.preset for c in params.cells.values() if c.dataset == "drawn"}) == 3
    some.datasets["drawn"] = some.datasets["drawn"].model_copy(update={"presets": ["!scan_*"]})
    params = resolve("try", some, stages)
    assert [c.preset for c in params.cells.values() if c.dataset == "drawn"] == [
        *("first", "first", "second", "second"),
    ]
    some.datasets["folder"] = some.datasets["folder"].model_copy(update={"presets": ["second"]})
    with pytest.raises(UserError, match="season try: second starts from 'first'; add it to pre"):
        resolve("try", some, stages)


def test_what_papers_set_otherwise_on_a_dataset_is_no_cut_of_the_budget():
    changes = {"scan": {"epochs": 20, "margin": 0.3}, SCAN: {"lambda1": 5.0}}
    on = season(options={"scan": {"margin": 0.1}})
    on.datasets["folder"] = on.datasets["folder"].model_copy(update={"changes": changes})
    params = resolve("try", on)
    there, elsewhere = (params.cells[f"{name}-{SCAN}-0"] for name in ("folder", "drawn"))
    assert there.options["epochs"] == 20 and there.options["lambda1"] == 5.0
    assert there.options["margin"] == 0.1 and there.scaled == elsewhere.scaled == ["margin"]
    assert "epochs" not in elsewhere.options and elsewhere.options["lambda1"] == 9.0
    wrong = on.datasets["folder"].model_copy(update={"changes": {"cyclematch": {}}})
    with pytest.raises(UserError, match=r"datasets\.folder\.changes\.cyclematch: neither a method"):
        resolve("try", on.model_copy(update={"datasets": {"folder": wrong}}))


def test_the_network_of_the_paper_may_be_asked_for(stages):
    image = ImageEncoder(network="as in paper", pixels=64)
    features = {"bottom_up": "precomp"}
    on = season(presets=["first", "second", SCAN])
    on.datasets["folder"] = on.datasets["folder"].model_copy(
        update={"image": image, "features": features}
    )
    params = resolve("try", on, stages)
    feature_sets = {e.folder: e for e in params.feature_sets.values()}
    first, second, scan = (params.cells[f"folder-{p}-0"] for p in ("first", "second", SCAN))
    assert feature_sets[first.images].image.network == "resnet50"
    assert (
        feature_sets[first.images].image.features is None and second.backbone == "torchvision_cnn"
    )
    of_scan = feature_sets[scan.images].image
    assert (of_scan.network, of_scan.features, of_scan.pixels) == ("bottom_up", "precomp", 0)
    assert scan.images.endswith("bottom_up_224_g6_flip_imported")
    known = stages | {"nameless": ("scan", Preset(title="Nameless"))}
    with pytest.raises(UserError, match="datasets.folder: network: as in paper: Nameless names no"):
        resolve("try", on.model_copy(update={"presets": ["nameless"]}), known)


def test_localisation_reads_phrases_and_proposals():
    on = season(presets=["two_branch_phrase_augmented", TWO_BRANCH])
    on.datasets["folder"] = on.datasets["folder"].model_copy(
        update={
            "phrases": {"hglmm": SentenceEncoder(size=9)},
            "proposals": ProposalEncoder(count=7, network="vgg16", input_size=64),
        }
    )
    params = resolve("try", on)
    cell = params.cells["folder-two_branch_phrase_augmented-0"]
    assert cell.texts == "data/features/folder/phrases_hglmm_9_words_trained20"
    assert cell.images == "data/features/folder/selective_search_7_vgg16_64"
    feature_sets = {e.folder: e for e in params.feature_sets.values()}
    assert (
        feature_sets[cell.texts].kind == "phrases" and feature_sets[cell.texts].encoder == "hglmm"
    )
    assert feature_sets[cell.texts].source == "data/features/folder/words_trained20"
    assert feature_sets[cell.images].kind == "proposals"
    assert feature_sets[cell.images].encoder == "torchvision_cnn"
    assert feature_sets[cell.images].source == "data/prepared/folder"
    sentences = params.cells[f"folder-{TWO_BRANCH}-0"]
    assert sentences.texts == "data/features/folder/hglmm_50_std_words_trained20"


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
    expected = "one of images, one of regions" if how == "weighted" else "all of images"
    with pytest.raises(UserError, match=f"mixed: how: {how}: expected presets {expected}, found"):
        resolve("try", season(presets=["mixed", *members]), known)


def test_a_text_encoder_may_have_word_vectors_of_its_own():
    glove = WordVectors(vectors="glove.txt", size=50)
    on = season(presets=[TWO_BRANCH])
    on.datasets["folder"] = on.datasets["folder"].model_copy(
        update={"sentence": {"hglmm": SentenceEncoder(words=glove)}}
    )
    params = resolve("try", on)
    cell = params.cells[f"folder-{TWO_BRANCH}-0"]
    assert cell.texts == "data/features/folder/hglmm_words_glove50"
    feature_sets = {e.folder: e for e in params.feature_sets.values()}
    assert feature_sets[cell.texts].source == "data/features/folder/words_glove50"
    assert feature_sets["data/features/folder/words_glove50"].words == glove


def test_one_folder_may_serve_all_datasets_of_a_reader():
    papers_season = placed(read_season("papers"), None, ["mscoco=a", "flickr30k_scan=b"])
    found = {name: settings.source for name, settings in papers_season.datasets.items()}
    assert found["mscoco"] == found["mscoco_cyclematch"] == found["mscoco_scan"] == "a"
    assert found["flickr30k_scan"] == "b" and found["flickr30k_dual_path"] is None


def test_files_of_weights_are_sought_in_the_folder_of_weights():
    on = season(presets=[TWO_BRANCH])
    encoder = SentenceEncoder(weights="infersent.pkl", words=WordVectors(vectors="glove.txt"))
    on.datasets["folder"] = on.datasets["folder"].model_copy(
        update={
            "words": WordVectors(vectors="news.bin"),
            "sentence": {"bilstm_max": encoder, "hglmm": SentenceEncoder()},
        }
    )
    found = placed(on, "weights", []).datasets["folder"]
    assert found.words.vectors == "weights/news.bin"
    assert found.sentence["bilstm_max"].weights == "weights/infersent.pkl"
    assert found.sentence["bilstm_max"].words.vectors == "weights/glove.txt"
    assert found.sentence["hglmm"] == SentenceEncoder()
    assert placed(on, None, []).datasets["folder"] == on.datasets["folder"]
    assert placed(on, "weights", []).datasets["drawn"].words.vectors is None


def test_a_preset_goes_on_from_the_checkpoint_of_its_seed(stages):
    params = resolve("try", season(presets=["second", "first"]), stages)
    for dataset in ("drawn", "folder"):
        for seed in (0, 3):
            cell = params.cells[f"{dataset}-second-{seed}"]
            assert cell.start == f"{params.cells[f'{dataset}-first-{seed}'].folder}/checkpoint.pt"
            assert not cell.starts_fresh
    assert params.cells["drawn-first-0"].starts_fresh


def test_a_preset_without_the_one_it_starts_from_is_refused(stages):
    with pytest.raises(UserError, match="season try: second starts from 'first'; add it to pre"):
        resolve("try", season(presets=["second"]), stages)


def test_a_preset_may_need_more_regions_than_the_season_has(stages):
    known = stages | {"fine": ("scan", Preset(title="Fine", grid=7))}
    params = resolve("try", season(presets=[SCAN, "fine"]), known)
    assert params.cells["folder-fine-0"].images == "data/features/folder/mobilenet_v2_64_g7"
    assert params.cells[f"folder-{SCAN}-0"].images == "data/features/folder/mobilenet_v2_64_g2"
    assert params.feature_sets["folder-mobilenet_v2_64_g7"].image.grid == 7


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


def test_options_of_patterns_go_over_those_of_the_method_in_their_order(stages):
    options = {
        "*_2": {"epochs": 99},
        "words.py": {"epochs": 5, "stage": 1},
        "f*": {"epochs": 6},
        "*st": {"epochs": 7},
    }
    known = stages | {"late_2": stages["first"]}
    params = resolve("try", season(presets=["first", "second", "late_2"], options=options), known)
    found = {name: params.cells[f"drawn-{name}-0"] for name in ("first", "second", "late_2")}
    assert found["first"].options == {"stage": 1, "epochs": 7}  # method, "f*", then "*st"
    assert found["second"].options == {"stage": 1, "epochs": 5}  # of the method alone
    assert found["late_2"].options == {"stage": 1, "epochs": 99}  # above the method, though first
    assert found["second"].scaled == ["epochs", "stage"]


def test_a_pattern_that_fits_nothing_is_refused(stages):
    with pytest.raises(
        UserError, match=r"season try: options.third\*: neither .*one of first, wor"
    ):
        resolve("try", season(presets=["first"], options={"third*": {}}), stages)


def test_costly_presets_may_have_fewer_seeds(stages):
    of = {"*st": [0], "words.py": [0, 3], "sec*": [0]}
    params = resolve("try", season(presets=["first", "second", SCAN], seeds_of=of), stages)
    played = {(cell.preset, cell.seed) for cell in params.cells.values()}
    assert played == {("first", 0), ("second", 0), (SCAN, 0), (SCAN, 3)}
    wider = resolve("try", season(presets=["first", "second"], seeds_of={"words.py": [5]}), stages)
    assert {cell.seed for cell in wider.cells.values()} == {5}


def test_a_seed_that_others_are_made_of_must_be_played(stages):
    with pytest.raises(UserError, match="second starts from 'first', which has no seed 3; .* of 0"):
        resolve("try", season(presets=["first", "second"], seeds_of={"first": [0]}), stages)
    fused = season(presets=["scan_t2i_avg", "scan_i2t_lse", FUSION], seeds_of={"*lse": [0]})
    with pytest.raises(UserError, match=f"{FUSION} fuses 'scan_i2t_lse', which has no seed 3"):
        resolve("try", fused.model_copy(update={"seeds_of": {"scan_i2t_lse": [0]}}))
    with pytest.raises(UserError, match="season try: seeds_of.third: neither"):
        resolve("try", season(seeds_of={"third": [0]}))


def test_an_option_that_is_none_is_refused_before_anything_runs(stages):
    with pytest.raises(UserError, match="preset first: no option 'epoch'; expected one of stage"):
        resolve("try", season(presets=["first"], options={"f*": {"epoch": 5}}), stages)
    with pytest.raises(UserError, match="preset first: epochs: .*found 'many'"):
        resolve("try", season(presets=["first"], options={"f*": {"epochs": "many"}}), stages)


def test_all_presets_are_played(stages):
    params = resolve("try", season(presets="all", seeds=[0]), stages)
    fused = {name for name, (_, row) in stages.items() if row.fuse}
    assert {"parts", "three", FUSION} <= fused
    assert {cell.preset for cell in params.cells.values()} == set(stages) - fused
    assert {fusion.preset for fusion in params.fusions.values()} == fused
    assert len(params.cells) == 2 * len(set(stages) - fused)


def test_all_may_be_asked_for_in_a_file(tmp_path):
    path = tmp_path / "whole.yaml"
    path.write_text("title: T\ndatasets: {shapes: {}}\npresets: all\nseeds: [0]\n")
    assert resolve("whole", read_season(str(path))).cells
    path.write_text("title: T\ndatasets: {shapes: {}}\npresets: some\nseeds: [0]\n")
    with pytest.raises(UserError, match="whole.yaml: presets"):
        read_season(str(path))


def test_a_fusion_names_the_folders_of_its_members():
    params = resolve("try", season(presets=[SCAN, FUSION, "scan_i2t_lse"]))
    fusion = params.fusions["folder-scan_t2i_avg_i2t_lse-3"]
    members = [params.cells[f"folder-{name}-3"].folder for name in (SCAN, "scan_i2t_lse")]
    assert (fusion.how, fusion.members, fusion.parts) == ("average", members, ["", ""])
    assert [fusion.first, fusion.second, fusion.third] == [*members, members[1]]
    assert fusion.folder == "results/try/folder/scan_t2i_avg_i2t_lse/3"
    assert len(params.fusions) == 4
    assert not set(params.fusions) & set(params.cells)


def test_a_fusion_without_its_members_is_refused():
    with pytest.raises(UserError, match=f"season try: {FUSION} fuses 'scan_i2t_lse'; add it"):
        resolve("try", season(presets=[SCAN, FUSION]))


def test_a_fusion_may_be_of_parts_of_scores(stages):
    params = resolve("try", season(presets=["first", "second", "parts", "three"]), stages)
    first, second = (f"results/try/drawn/{name}/0" for name in ("first", "second"))
    parts, three = (params.fusions[f"drawn-{name}-0"] for name in ("parts", "three"))
    assert (parts.how, parts.members, parts.parts) == (
        "adaptive",
        [second, second],
        ["visual", "textual"],
    )
    assert [parts.first, parts.second, parts.third] == [second] * 3
    assert (three.members, three.parts) == ([first, second, second], ["", "", "latent"])
    assert [three.first, three.second, three.third] == [first, second, second]


def test_what_a_preset_needs_comes_before_it(stages):
    assert needs("first", stages) == ["first"]
    assert needs("second", stages) == ["first", "second"]
    assert needs("parts", stages) == ["first", "second", "parts"]  # the member once, and its start
    assert needs("three", stages) == ["first", "second", "three"]
    assert needs(FUSION, stages) == [SCAN, "scan_i2t_lse", FUSION]


@pytest.mark.parametrize("members", [[], ["first"] * 4])
def test_a_fusion_has_one_to_three_members(members):
    with pytest.raises(ValueError, match="at (least 1|most 3) item"):
        Fuse(how="average", of=members)


def test_an_unknown_preset_lists_the_known_ones():
    with pytest.raises(UserError, match="season try: no preset 'scan_best'; .*scan_t2i_avg"):
        resolve("try", season(presets=[SCAN, "scan_best"]))


def test_an_option_group_of_nothing_in_the_season_is_refused():
    with pytest.raises(UserError, match="season try: options.scam: neither .*one of scan, "):
        resolve("try", season(options={"scam": {"epochs": 2}}))
    with pytest.raises(UserError, match="options.two_branch_embedding: neither"):
        resolve("try", season(presets=[SCAN], options={"two_branch_embedding": {}}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: [", "try.yaml: not YAML"),
        ("- a\n- b\n", "try.yaml: expected a mapping, found list"),
        ("", "try.yaml: expected a mapping, found NoneType"),
        ("title: T\ndatasets: {}\npresets: []\n", "try.yaml: seeds: Field required"),
        (
            "title: T\ndatasets: {}\npresets: []\nseeds: [0]\nepochs: 3\n",
            "try.yaml: epochs: .*known keys: .*weights_dir",
        ),
        (
            "title: T\ndatasets: {a: {image: {gird: 2}}}\npresets: []\nseeds: [0]\n",
            "try.yaml: datasets.a.image.gird: ",
        ),
        (
            "title: T\ndatasets: {a: {image: {grid: 0}}}\npresets: []\nseeds: [0]\n",
            "try.yaml: datasets.a.image.grid: .*found 0",
        ),
        (
            "title: T\ndatasets: {a: {reader: ../x}}\npresets: []\nseeds: [0]\n",
            "try.yaml: datasets.a.reader: ",
        ),
        ("title: T\ndatasets: {}\npresets: []\nseeds: [one]\n", r"try.yaml: seeds\.0: .*'one'"),
        (
            "title: !!python/object/apply:os.system ['true']\n",
            "try.yaml: not YAML .*python/object/apply",
        ),
    ],
)
def test_a_bad_season_file_is_refused_with_the_place(tmp_path, text, message):
    path = tmp_path / "try.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as found:
        read_season(str(path))
    assert "\n" not in str(found.value)


def test_an_unknown_season_lists_the_known_ones():
    with pytest.raises(UserError, match="no season 'flicker'; expected one of .*flickr8k"):
        read_season("flicker")


def test_params_survive_writing_and_reading(tmp_path, stages):
    with pytest.raises(UserError, match="params.yaml: not found; choose a season"):
        read_params()
    options = {"scan": {"epochs": 4, "learning_rate": 0.00001, "other_captions_negative": True}}
    played = [SCAN, FUSION, "scan_i2t_lse", TWO_BRANCH, "first", "second", "parts"]
    params = resolve("try", season(presets=played, options=options), stages)
    write_params(params)
    assert read_params() == params
    first = (tmp_path / "params.yaml").read_bytes()
    write_params(read_params())
    assert (tmp_path / "params.yaml").read_bytes() == first


def test_a_mistake_in_params_is_refused_with_the_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_params(resolve("try", season()))
    path = tmp_path / "params.yaml"
    path.write_text(re.sub("precision: float32", "precision: float8", path.read_text()))
    with pytest.raises(UserError, match="^params.yaml: precision: .*found 'float8'"):
        read_params()


@pytest.mark.parametrize("name", season_names())
def test_every_season_resolves_to_cells_that_can_be_configured(name):
    params = resolve(name, read_season(name))
    assert params.cells
    for key, cell in params.cells.items():
        configured(load(cell.method), cell.options, key)
    trained = {cell.folder for cell in params.cells.values()}
    assert {f for fusion in params.fusions.values() for f in fusion.members} <= trained
    assert {cell.start.removesuffix("/checkpoint.pt") for cell in params.cells.values()} <= (
        trained | {f"data/prepared/{dataset}/card.json" for dataset in params.datasets}
    )


def test_presets_have_unique_titles():
    rows = presets()
    assert len({row.title for _, row in rows.values()}) == len(rows), "a title stands for one row"


def test_no_two_presets_are_the_same_training():
    """Two names for the same options would be trained twice and could carry different numbers."""
    played = {}
    for name, (method, row) in presets().items():
        if not row.fuse:
            config = configured(load(method), row.options, name)
            same = (method, config, row.network, row.sentence, row.start, row.grid)
            assert played.setdefault(same, name) == name


def test_presets_are_made_of_presets():
    rows = presets()
    for name, (method, row) in rows.items():
        assert not (row.fuse and (row.options or row.start or row.grid)), name
        for member in row.fuse.of if row.fuse else []:
            preset, _, part = member.partition(":")
            trained = rows[preset][1]
            assert not trained.fuse, name
            if row.fuse.how == "weighted" and member == row.fuse.of[1]:
                takes = load(rows[preset][0]).inputs(load(rows[preset][0]).Config())
                assert takes.image == "proposals" and len(row.fuse.of) == 2, name
                continue
            assert rows[preset][0] == method, name
            assert (trained.network, trained.sentence) == (row.network, row.sentence), name
            assert not part or hasattr(load(method).Model, "scores"), name
        if row.start:
            assert rows[row.start][0] == method and not rows[row.start][1].fuse, name
        if row.sentence:
            assert load_encoder(row.sentence).encode, name
        if not row.fuse:
            takes = load(method).inputs(configured(load(method), row.options, name))
            assert (takes.text in ("sentence", "phrase")) == bool(row.sentence), name


def test_a_preset_in_two_files_is_refused(tmp_path, monkeypatch):
    (tmp_path / "methods").mkdir()
    for file in ("a", "b"):
        (tmp_path / "methods" / f"{file}.yaml").write_text("same: {title: Same}\n")
    monkeypatch.setattr(preset_files, "PACKAGE_ROOT", tmp_path)
    with pytest.raises(UserError, match="methods/b.yaml: preset 'same' is already in a"):
        presets()


def test_the_papers_season_plays_every_own_row_where_the_paper_measured_it():
    """On a dataset with the place's reader; Flickr30K Entities has the captions of Flickr30K."""
    params = resolve("papers", read_season("papers"))
    played = {
        (settings.reader, cell.preset)
        for dataset, settings in params.datasets.items()
        for cell in (*params.cells.values(), *params.fusions.values())
        if cell.dataset == dataset
    }
    readers = {"flickr30k": ("flickr30k", "flickr30k_entities")}
    asked = 0
    for paper in papers().values():
        for table in paper.tables.values():
            for row in (row for row in table.rows if row.preset):
                for place in row.numbers:
                    name = re.sub("_[15]k$", "", place.partition("/")[0])
                    found = [(one, row.preset) in played for one in readers.get(name, (name,))]
                    assert any(found), (place, row.preset)
                    asked += 1
    assert asked > 120


def test_no_preset_of_the_papers_season_is_cut_to_a_budget():
    params = resolve("papers", read_season("papers"))
    assert not [cell.preset for cell in params.cells.values() if cell.scaled]
    networks = {e.image.network for e in params.feature_sets.values() if e.image}
    assert networks == {"bottom_up", "resnet50", "resnet152", "vgg16", "vgg19"}
    imported = {
        e.image.network for e in params.feature_sets.values() if e.image and e.image.features
    }
    assert imported == {"bottom_up"}


def test_the_localisation_season_has_every_row_of_its_tables():
    tables = papers()["two_branch"].tables
    rows = {row.preset for number in "15" for row in tables[number].rows if row.preset}
    assert len(rows) >= 13 and rows <= set(read_season("localisation").presets)
