"""Make a season of your own images: read a folder, check it, and write a season file
for it.

    rematch init DIR

DIR holds the images and one annotation file: .csv, .tsv, .txt or .jsonl (image and
caption, or Hugging Face's metadata), or a .json: a list, Karpathy's, COCO's captions or
TextCaps. Else it holds Hugging Face's image folders or .parquet files, .tar files of
WebDataset, a .txt beside each image, or a corpus, queries and qrels: docs/datasets.md
has all of them in one table. The season gets presets of several methods with a budget
that fits the number of captions, and a test split that is large enough for verdicts
where there are enough images; a validation split is taken from train where there is
none. All is checked before anything is written, a refused `init` leaves nothing behind,
and the new season becomes the active one. Run it in the clone of Rematch.
"""

import argparse
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import jinja2
import yaml

from benchmark import features
from benchmark.boards.boards import MIN_TEST_QUERIES
from benchmark.commands import season
from benchmark.contracts.datasets import folder as reader
from benchmark.core.command_line import lock_of
from benchmark.core.errors import UserError, checked, redone_by
from benchmark.core.files import is_file, remove, write_text
from benchmark.core.names import LONGEST
from benchmark.data import prepared_tables
from benchmark.data.raw_files import HASHED, raw_dataset
from benchmark.features import timm_cnn, transformer
from benchmark.fetch.__main__ import fetch
from benchmark.prepare.__main__ import prepare
from benchmark.season import parameter_files as files
from benchmark.season.parameter_files import SEASON_FILE, SEASONS
from benchmark.season.parameters import Season, SentenceEncoder, module_of
from benchmark.season.resolving import resolve

TEMPLATE = Path(__file__).with_name("init_season.yaml.j2")
# share of the images that a larger test split must leave to train on
LEAST_TRAINED = 0.25
STEPS = {"two_branch_embedding": 600, "scan": 300, "dual_path": 600, "cyclematch": 400}
STEPS |= {"projection": 600}
BATCH, LEAST_EPOCHS, MOST_EPOCHS = 64, 3, 60
LARGE = 20_000  # training captions from which on the papers' sizes are kept
SHARE_OF_VECTORS = 2  # training captions per number that PCA keeps
NETWORK = "mobilenet_v2"
STRONG = "timm_tf_efficientnet_lite2"
PAIR = re.compile(r"\\ud[89ab]..\\ud[c-f]..")  # one character as JSON escapes it


@dataclass(frozen=True)
class Counted:
    """How many images there are, and how they are divided."""

    images: int
    captions: int
    has_splits: bool  # in the annotations
    val: int
    test: int
    val_is_taken: bool = False  # from train, as the annotations have none

    @property
    def trained(self) -> int:
        """Captions to train on."""
        share = 1 - (self.val + self.test) / self.images
        return max(1, round(self.captions * share))

    @property
    def is_conclusive(self) -> bool:
        return self.test >= MIN_TEST_QUERIES

    def __str__(self) -> str:
        source = "from the annotations" if self.has_splits else "by a hash of the paths"
        text = f"split {source}: {self.test} test images, {self.val} val"
        if self.val_is_taken:
            text += " (taken from train, as the annotations have no val)"
        if not self.is_conclusive:
            text += f". {self.test} test images are too few for a verdict: "
            text += f"at least {MIN_TEST_QUERIES} are needed"
        return text


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="images and their captions")
    name_help = "name of dataset and season; default: that of the folder"
    parser.add_argument("--name", help=name_help)
    captions_help = "annotation file, where the folder has several"
    parser.add_argument("--captions", help=captions_help)
    weights_help = "folder of pretrained image networks (*.pth)"
    parser.add_argument("--weights-dir", help=weights_help)


def main(arguments: argparse.Namespace) -> None:
    folder = arguments.folder
    captions = arguments.captions
    folder_name = folder.resolve().name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", folder_name).strip("_-")[:LONGEST]
    if not (arguments.name or plain):
        raise UserError(
            folder,
            expected="Latin letters or digits in its name",
            found=repr(folder_name),
            do="name the season: --name NAME",
        )
    name = files.season_name(arguments.name or plain)
    files.check_project()  # elsewhere, this would begin a second project
    path = SEASONS / name / SEASON_FILE
    if path.exists():
        raise UserError(
            path,
            expected="no season of this name",
            found="one",
            do=f"choose another name with --name, or use it: rematch season {name}",
        )
    if not folder.is_dir():
        raise UserError(
            folder,
            expected="a folder with images and captions",
            found="none",
            do="check the path",
        )
    if arguments.weights_dir:
        season.check_folder("--weights-dir", arguments.weights_dir)
    weights_dir = arguments.weights_dir or files.read_local().weights_dir
    weights_dir = weights_dir and os.path.expanduser(weights_dir)
    encoder = features.load(module_of(NETWORK))
    if weights_dir:  # without one they are downloaded
        encoder.load(NETWORK, Path(weights_dir))
    counted = count(folder, captions)
    options = reader.Options(captions=captions)
    for image in reader.inventory(folder, options):
        if not is_file(image):
            raise reader.missing(folder, image.relative_to(folder).as_posix())
    print(f"{folder}: {counted.images} images, {counted.captions} captions")
    print(counted)
    stronger = offers(Path(weights_dir)) if weights_dir else []
    for offer in stronger:
        print(f"stronger encoder, see the season file: {offer}")
    text = season_text(name, folder, captions, counted, stronger)
    params = resolve(name, checked(Season, yaml.safe_load(text), str(path)))
    dataset = raw_dataset(params, name)
    written = [dataset.manifest, dataset.folder, HASHED / f"{name}.json", path.parent]
    written += [prepared_tables.ROOT / name, prepared_tables.CARDS / name]
    with undone(*written, lock_of(str(dataset.folder))):
        fetch(params, name)
        with redone_by("init", within=folder):  # and not: fetch, of the link to it
            print("\n".join(prepare(params, name)))
        write_text(path, text)
        print("\n".join(prepared_tables.read_card(name)["leakage"]["notes"]))
        season.activate(name, arguments.weights_dir)
    print(f"{path}: presets and budget; after editing it, run: rematch season {name}")
    weights = encoder.whereabouts(NETWORK, Path(weights_dir) if weights_dir else None)
    if weights.url:
        print(f"{NETWORK} is not here: `play` downloads it from {weights.url}")
        print(f"without a network: rematch season {name} --weights-dir DIR")
    print(f"next: rematch play; then read reports/{name}/README.md")
    print(reader.told(folder, options))


@contextmanager
def undone(*paths: Path) -> Iterator[None]:
    """What the block writes there is gone if it fails; what was there before stays."""
    places: set[Path] = set()
    for path in paths:
        places.update((path, *path.parents))
    new = [place for place in places if not os.path.lexists(place)]
    try:
        yield
    except BaseException:
        for place in sorted(new, key=lambda place: len(place.parts), reverse=True):
            remove(place)
        raise


def count(folder: Path, captions: str | None) -> Counted:
    """What the annotation file says, and the split that is best for it."""
    options = reader.Options(captions=captions)
    try:
        tables = reader.read(folder, options)
    except UserError as error:
        if error.where.startswith(str(folder)):
            raise
        raise error.but(within=folder) from error
    images = tables.images
    texts = len(tables.captions)
    if reader.has_splits(folder, options):
        val, test = (int((images["split"] == split).sum()) for split in ("val", "test"))
        groups = images["group"][images["split"] == "train"].nunique()
        is_taken = val == 0 and groups > 1
        if is_taken:
            val = max(1, round(groups / 10))
        return Counted(len(images), texts, True, val, test, is_taken)
    groups = images["group"].nunique()
    val = max(1, round(groups / 10))
    if groups - val - MIN_TEST_QUERIES >= LEAST_TRAINED * groups:
        test = max(round(groups / 10), MIN_TEST_QUERIES)
    else:
        test = max(1, round(groups / 5))
    return Counted(len(images), texts, False, val, test)


def offers(weights_dir: Path) -> list[str]:
    """Settings of strong encoders whose weights and libraries are there, and what they
    cost."""
    lines = []
    with suppress(UserError):
        timm_cnn.whereabouts(STRONG, weights_dir)
        settings = f"{{network: {STRONG}, input_size: 260, grid: 6, standardise: true}}"
        lines.append(f"image: {settings}  # some 16 images a second on one core")
    for path in sorted(weights_dir.glob("*/model.safetensors")):
        with suppress(UserError):
            encoder = SentenceEncoder(weights=str(path.parent))
            name = transformer.whereabouts(encoder).name
            settings = f"{{transformer: {{weights: {name}}}}}"
            cost = "with sentence_of; some 70 captions a second on one core"
            lines.append(f"sentence: {settings}  # {cost}")
    return lines


def quoted(value: object) -> str:
    """A text or number in JSON that is YAML, too: there, the two escapes that JSON has
    for a character such as an emoji would be two characters."""
    text = json.dumps(value, default=str)
    return PAIR.sub(lambda pair: json.loads(f'"{pair[0]}"'), text)


def season_text(
    name: str,
    folder: Path,
    captions: str | None,
    counted: Counted,
    stronger: Sequence[str] = (),
) -> str:
    """The season file, with comments: the papers' recipes, scaled where there are few
    captions."""
    options: dict[str, object] = {"captions": captions} if captions else {}
    if counted.val_is_taken:
        options |= {"val": counted.val}
    elif not counted.has_splits:
        options |= {"val": counted.val, "test": counted.test}
    trained = counted.trained
    batch = min(BATCH, max(2, trained // 4))
    epochs = {}
    for method, steps in STEPS.items():
        passes = round(steps * batch / trained)
        epochs[method] = max(LEAST_EPOCHS, min(MOST_EPOCHS, passes))
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters["quoted"] = quoted
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        name=name,
        folder=folder,
        options=options,
        counted=counted,
        network=NETWORK,
        stronger=stronger,
        vector_size=max(2, min(256, trained // SHARE_OF_VECTORS)),
        batch=batch,
        epochs=epochs if trained < LARGE else {},
    )
