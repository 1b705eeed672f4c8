"""From a season file to the cells of params.yaml."""

import re

import pytest

from benchmark import presets as preset_files
from benchmark.errors import UserError
from benchmark.options import configured
from benchmark.params import DatasetSettings, ImageEncoder, SentenceEncoder, read_params
from benchmark.presets import presets
from benchmark.season import Season, read_season, resolve, season_names, write_params
from methods import load

SCAN, TWO_BRANCH, FUSION = "scan_t2i_avg", "two_branch_single", "scan_t2i_avg_i2t_lse"


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
            "folder": DatasetSettings(image=image, sentence=SentenceEncoder(size=50)),
        },
        "presets": [SCAN, TWO_BRANCH],
        "seeds": [0, 3],
    }
    return Season(**facts | changes)


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
    assert words.texts == "data/prepared/drawn/captions.parquet"
    assert vectors.texts == "data/features/drawn/word2vec_trained300"
    assert words.folder == "results/try/drawn/scan_t2i_avg/3"
    assert len({cell.folder for cell in params.cells.values()}) == len(params.cells)
    assert params.datasets["drawn"].reader == "shapes"
    assert params.datasets["folder"].reader == "folder"  # by its name
    assert (params.season, params.title, params.precision) == ("try", "Try", "float32")


def test_encodings_are_those_that_the_cells_read():
    params = resolve("try", season())
    assert set(params.encodings) == {
        "drawn-drawn_cnn_96_g4_flip_std",
        "drawn-word2vec_trained300",
        "folder-mobilenet_v2_64_g2",
        "folder-word2vec_trained50",
    }
    drawn = params.encodings["drawn-drawn_cnn_96_g4_flip_std"]
    assert (drawn.kind, drawn.encoder, drawn.dataset) == ("image", "drawn_cnn", "drawn")
    assert params.encodings["folder-mobilenet_v2_64_g2"].encoder == "torchvision_cnn"
    text = params.encodings["folder-word2vec_trained50"]
    assert (text.kind, text.encoder, text.sentence.size) == ("sentence", "word2vec", 50)
    read = {f for c in params.cells.values() for f in (c.images, c.texts) if "features" in f}
    assert {encoding.folder for encoding in params.encodings.values()} == read
    only_words = resolve("try", season(presets=[SCAN]))
    assert {encoding.kind for encoding in only_words.encodings.values()} == {"image"}


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


def test_a_fusion_names_the_folders_of_its_members():
    params = resolve("try", season(presets=[SCAN, FUSION, "scan_i2t_lse"]))
    fusion = params.fusions["folder-scan_t2i_avg_i2t_lse-3"]
    assert fusion.left == params.cells["folder-scan_t2i_avg-3"].folder
    assert fusion.right == params.cells["folder-scan_i2t_lse-3"].folder
    assert fusion.folder == "results/try/folder/scan_t2i_avg_i2t_lse/3"
    assert len(params.fusions) == 4
    assert not set(params.fusions) & set(params.cells)


def test_a_fusion_without_its_members_is_refused():
    with pytest.raises(UserError, match=f"season try: {FUSION} averages 'scan_i2t_lse'; add it"):
        resolve("try", season(presets=[SCAN, FUSION]))


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


def test_params_survive_writing_and_reading(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="params.yaml: not found; choose a season"):
        read_params()
    options = {"scan": {"epochs": 4, "learning_rate": 0.00001, "other_captions_negative": True}}
    params = resolve(
        "try", season(presets=[SCAN, FUSION, "scan_i2t_lse", TWO_BRANCH], options=options)
    )
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
    assert {f for fusion in params.fusions.values() for f in (fusion.left, fusion.right)} <= trained


def test_presets_have_unique_names_and_the_papers_percents():
    for name, (method, row) in presets().items():
        assert bool(row.average) != bool(row.options) or not row.average, name
        for member in row.average or ():
            assert presets()[member][0] == method
        for reported in row.reported.values():
            numbers = reported.model_dump(exclude={"table"}, exclude_none=True)
            for way in ("i2t", "t2i"):
                recalls = [numbers[f"{way}_r{k}"] for k in (1, 5, 10) if f"{way}_r{k}" in numbers]
                assert recalls == sorted(recalls), f"{name}: {way}"
                assert all(0 < recall < 100 for recall in recalls)


def test_a_preset_in_two_files_is_refused(tmp_path, monkeypatch):
    (tmp_path / "methods").mkdir()
    for file in ("a", "b"):
        (tmp_path / "methods" / f"{file}.yaml").write_text("same: {title: Same}\n")
    monkeypatch.setattr(preset_files, "PACKAGE_ROOT", tmp_path)
    with pytest.raises(UserError, match="methods/b.yaml: preset 'same' is already in a"):
        presets()
