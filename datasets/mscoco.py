"""MSCOCO: 123,287 photographs with five or more captions each, in Karpathy's partition.

Lin et al. (2014), ECCV; Chen et al. (2015), arXiv 1504.00325 (captions); Karpathy and
Fei-Fei (2015). Val and test are 5,000 images each of COCO's validation set 2014; what
is left of it is "restval", 30,504 images that most papers train on besides the 82,783
of the training set. Results are reported for all 5,000 test images and as means over
five consecutive folds of 1,000.

The raw folder holds the pictures, as train2014/ and val2014/ or train2014.zip and
val2014.zip, and

    karpathy  dataset_coco.json, the same in a .zip, or caption_datasets.zip
    precomp   coco_precomp/ of SCAN, whose testall_* are the 5,000 test images; needs no pictures

With either, an image is named by its number in COCO. Archives are read in place.

Layers of relevance on the 5,000 test images, with the annotations `karpathy`: CxC
(Parekh et al., Crisscrossed Captions, EACL 2021) and ECCV Caption (Chun et al., ECCV
2022). Their files are those of the package eccv-caption, where that is installed, or
lie in the raw folder. Captions are named by COCO's annotation ids, which are Karpathy's
`sentid`. A pair with an image or a caption that is not in the test split (two of ECCV
Caption) is left out.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
from PIL import Image

from benchmark.contracts.datasets import (
    Card,
    Layer,
    Needed,
    OpenPicture,
    RemoteFile,
    Tables,
    UserError,
)
from benchmark.readers import (
    archives,
    image_files,
    karpathy,
    option_checks,
    parse_json,
    precomp,
    reader_notes,
)

STORES = ("train2014", "val2014")
KARPATHY = "dataset_coco.json"
PRECOMP = "coco_precomp"
SPLITS = ("train", "restval", "val", "test")  # as in Karpathy's JSON
EACH = 5  # captions kept per image of val and test
PLACE_PHOTOGRAPHS = (
    "place train2014/ and val2014/, or train2014.zip and val2014.zip, in the raw folder"
)
PLACE_KARPATHY = (
    f"place one there (for {PRECOMP}/, set the option annotations: precomp)"
)

AGAIN = "get the file again"
PACKAGE = "eccv_caption"  # of the layers' files
RULES = {
    "cxc": "pairs that raters of Crisscrossed Captions scored 3 of 5 or more, instead of own",
    "eccv": "pairs of ECCV Caption, instead of own",
}
JUDGED = {"i2t": "image_to_caption", "t2i": "caption_to_image"}  # in names of files

# images.cocodataset.org has no certificate of its own; this is the address it redirects
# to.
BUCKET = "https://s3.amazonaws.com/images.cocodataset.org/zips"
REMOTE_PICTURES = tuple(
    RemoteFile(name=f"{name}.zip", urls=(f"{BUCKET}/{name}.zip",)) for name in STORES
)

EVALUATED = {"val": 5000, "test": 5000}
IMAGES = {
    True: EVALUATED | {"train": 113287},  # with restval
    False: EVALUATED | {"train": 82783, "unused": 30504},
}
EVALUATED_CAPTIONS = {"val": 25000, "test": 25000}
CAPTIONS = {
    True: EVALUATED_CAPTIONS | {"train": 566747},
    False: EVALUATED_CAPTIONS | {"train": 414113, "unused": 152634},
}
PRECOMP_CAPTIONS = EVALUATED_CAPTIONS | {"train": 566435}  # five per image


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which images are used, and from which files.

    annotations    "karpathy", or "precomp" for the captions that come with SCAN's features
    restval        whether restval is used for training; always with `precomp`
    with_pictures  False: pictures are not looked for, for example if features are imported.
                   `precomp` needs no pictures in any case, but uses those that are there.
    """

    annotations: str = "karpathy"
    restval: bool = True
    with_pictures: bool = True

    def __post_init__(self) -> None:
        option_checks.check_choice(
            "mscoco", "annotations", self.annotations, ("karpathy", "precomp")
        )
        if not isinstance(self.restval, bool):
            raise option_checks.refusal(
                "mscoco", "restval", "true or false", self.restval
            )
        if self.is_precomp and not self.restval:
            expected = (
                f"true with {PRECOMP}/, which does not separate restval from train"
            )
            do = "set the option annotations: karpathy"
            raise UserError("mscoco: option restval", expected, False, do)

    @property
    def is_precomp(self) -> bool:
        return self.annotations == "precomp"

    @property
    def needs_pictures(self) -> bool:
        """Whether the dataset cannot be read without pictures."""
        return self.with_pictures and not self.is_precomp


def card(options: Options = Options()) -> Card:
    """What the chosen files need, and how many images and captions they have."""
    pictures, checklist = (
        REMOTE_PICTURES if options.needs_pictures else (),
        _checklist(options),
    )
    is_precomp = options.is_precomp
    obtained = (
        f"{PRECOMP}/" if is_precomp else ", ".join(needed.names for needed in checklist)
    )
    return Card(
        title="MSCOCO",
        source="Lin et al. (2014), Microsoft COCO: Common Objects in Context, ECCV; Chen et al. "
        "(2015), Microsoft COCO Captions, arXiv 1504.00325",
        licence="captions CC BY 4.0; the photographs keep their owners' terms (Flickr Terms of "
        "Use)",
        split="karpathy" if options.restval else "karpathy_without_restval",
        may_publish=False,
        remote=() if options.is_precomp else (karpathy.REMOTE, *pictures),
        obtain=f"place {obtained} in one folder",
        checklist=checklist,
        raw_gib=(34.0 if options.is_precomp else 0.2)
        + (19.0 if options.needs_pictures else 0.0),
        expected_images=IMAGES[options.restval],
        expected_captions=PRECOMP_CAPTIONS
        if options.is_precomp
        else CAPTIONS[options.restval],
        folds=5,
    )


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The files in use: annotations, features of `precomp`, and every picture or their
    archives."""
    if options.is_precomp:
        store = _find_store(raw) if options.with_pictures else None
        return precomp.files(_precomp_folder(raw)) + (store.files() if store else [])
    pictures = _store(raw).files() if options.with_pictures else []
    return [*pictures, karpathy.needed(raw, KARPATHY, PLACE_KARPATHY)]


def read(raw: Path, options: Options = Options()) -> Tables:
    """The tables; without `restval`, its images are "unused"."""
    if options.is_precomp:
        return _read_precomp(raw, options)
    if options.with_pictures:
        _store(raw)
    path = karpathy.needed(raw, KARPATHY, PLACE_KARPATHY)
    annotations = karpathy.read(path, KARPATHY, SPLITS)
    tables = _tables(annotations.entries, options)
    unread = reader_notes.unread(KARPATHY, annotations.unread)
    return replace(tables, notes=(*tables.notes, *unread))


def layers(raw: Path, tables: Tables, options: Options = Options()) -> list[Layer]:
    """CxC and ECCV Caption, where their files are there and captions have ids. Raises
    UserError for files in the raw folder and captions without."""
    found = {name: _judged_files(raw, name) for name in RULES}
    if options.is_precomp or not any(found.values()):
        return []
    if tables.captions.index.name != "sentid":
        expected, do = (
            "an id of each caption, by which layers name it",
            "layers are left out",
        )
        is_asked = any(
            raw in path.parents for files in found.values() for path in files.values()
        )
        error = UserError(
            f"{KARPATHY}: sentid", expected, "none", AGAIN if is_asked else do
        )
        if is_asked:
            raise error
        print("rematch:", error, file=sys.stderr)
        return []
    caption_of = tables.captions["caption_id"].to_dict()
    images = set(tables.images["image_id"][tables.images["split"] == "test"])
    layers = []
    for name, files in found.items():
        rows = []
        for way, path in files.items():
            for query, items in _judged(path).items():
                for item in items:
                    image, caption = (query, item) if way == "i2t" else (item, query)
                    rows.append((way, str(image), caption_of.get(caption)))
        pairs = pd.DataFrame(
            rows, columns=["way", "image_id", "caption_id"]
        ).drop_duplicates()
        pairs = pairs[pairs["image_id"].isin(images) & pairs["caption_id"].notna()]
        if len(pairs):
            pairs = pairs.assign(score=float("inf"), right=True)
            layers.append(Layer(name=name, rule=RULES[name], pairs=pairs))
    return layers


def _judged_files(raw: Path, name: str) -> dict[str, Path]:
    """The files of a layer by direction, of the raw folder or of the package; none
    without both. Raises UserError for one of them alone."""
    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    for folder in (
        raw,
        raw / PACKAGE,
        *(Path(place) / "data" for place in places or ()),
    ):
        files = {way: folder / f"{name}_{what}.json" for way, what in JUDGED.items()}
        lacking = [path for path in files.values() if not path.is_file()]
        if len(lacking) == 1:
            raise UserError(
                lacking[0], "both files of a layer", "one", "place it there, too"
            )
        if not lacking:
            return files
    return {}


def _judged(path: Path) -> dict[int, list[int]]:
    """{query: [items]}: ids of COCO's images and annotations."""
    data = parse_json(archives.text(path, path.name), path.name, AGAIN)
    is_read = isinstance(data, dict) and all(
        re.fullmatch(r"[1-9]\d{0,11}", key)
        and isinstance(items, list)
        and all(type(item) is int for item in items)
        for key, items in data.items()
    )
    if not is_read:
        expected = '{"id": [ids]}, with ids of COCO'
        raise UserError(path, expected, f"{str(data)[:60]!r}", AGAIN)
    return {int(key): items for key, items in data.items()}


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens a picture by name; safe to share between threads and
    processes."""
    if not options.with_pictures:
        return image_files.absent(
            f"{PLACE_PHOTOGRAPHS}, and drop the option with_pictures: false"
        )
    if options.is_precomp:
        return _find_store(raw) or image_files.absent(PLACE_PHOTOGRAPHS)
    return _store(raw)


def _checklist(options: Options) -> tuple[Needed, ...]:
    """What belongs in the raw folder."""
    lines = [Needed("captions and partition", ((KARPATHY,), (karpathy.ALL,)))]
    if options.is_precomp:
        lines = precomp.needed(PRECOMP, ("train", "dev", "testall"))
    if options.with_pictures:
        what = (
            "photographs; not needed for matching"
            if options.is_precomp
            else "photographs"
        )
        lines += [Needed(what, ((f"{name}/",), (f"{name}.zip",))) for name in STORES]
    return tuple(lines)


# Files --------------------------------------------------------------------------------


class Several:
    """Images of several stores: the first part of a file's path is the name of its
    store."""

    def __init__(self, stores: Mapping[str, image_files.Store]):
        self.stores = dict(stores)

    def names(self) -> list[str]:
        return [
            f"{part}/{name}"
            for part, store in self.stores.items()
            for name in store.names()
        ]

    def files(self) -> list[Path]:
        return [path for store in self.stores.values() for path in store.files()]

    def __call__(self, file: str) -> Image.Image:
        part, _, name = file.partition("/")
        if part not in self.stores:
            expected = f"a picture of {' or '.join(self.stores)}"
            raise UserError(file, expected, part, "place the other pictures")
        return self.stores[part](name)


def _find_store(raw: Path) -> Several | None:
    """The pictures that are there; None where neither half is."""
    halves = {name: image_files.find(raw, **_half(name)) for name in STORES}
    stores = {name: store for name, store in halves.items() if store is not None}
    return Several(stores) if stores else None


def _store(raw: Path) -> Several:
    do = "place it there (for features alone, set the option annotations: precomp, or "
    do += "with_pictures: false)"
    halves = {name: _half(name) | {"do": do} for name in STORES}
    return Several(
        {name: image_files.needed(raw, **half) for name, half in halves.items()}
    )


def _half(name: str) -> dict:
    return {"archive": f"{name}.zip", "inside": name, "folders": (name,)}


def _precomp_folder(raw: Path) -> Path:
    folder = raw / PRECOMP
    if not (folder / "testall_caps.txt").is_file():
        raise UserError(
            folder / "testall_caps.txt",
            "the 5,000 test images of testall_*; test_* are only the first 1,000 of them",
            "nothing",
            f"place all files of {PRECOMP}/ there",
        )
    return folder


# Readers ------------------------------------------------------------------------------


def _tables(entries: list[karpathy.Entry], options: Options) -> Tables:
    used = {"restval": "train" if options.restval else "unused"}
    images = pd.DataFrame(
        {
            "image_id": [_image_id(entry) for entry in entries],
            "file": [entry.file if options.with_pictures else "" for entry in entries],
            "split": [used.get(entry.split, entry.split) for entry in entries],
        }
    )
    captions = [
        (f"{_image_id(entry)}#{number}", _image_id(entry), text, entry.sentids[number])
        for entry in entries
        for number, text in enumerate(_kept(entry))
    ]
    captions = pd.DataFrame(
        captions, columns=["caption_id", "image_id", "text", "sentid"]
    )
    if captions["sentid"].notna().all():  # the index, as it is no part of the table
        captions.index = pd.Index(captions["sentid"].astype(int), name="sentid")
    others = sum(entry.split == "restval" for entry in entries)
    use = "are used for training" if options.restval else "stay unused"
    notes = (
        f"The captions are the raw sentences of {KARPATHY}.",
        f"{others} images of restval {use}.",
        f"The first {EACH} captions of every image of val and test are kept.",
        *(_left_out(entries, split) for split in EVALUATED),
    )
    images, captions = (
        images.assign(group=images["image_id"]),
        captions.drop(columns="sentid"),
    )
    return Tables(images=images, captions=captions, notes=notes)


def _image_id(entry: karpathy.Entry) -> str:
    if entry.cocoid is None:
        raise UserError(f"{entry.where}: cocoid", "int", None, AGAIN)
    return str(entry.cocoid)


def _kept(entry: karpathy.Entry) -> list[str]:
    return entry.captions[:EACH] if entry.split in EVALUATED else entry.captions


def _left_out(entries: list[karpathy.Entry], split: str) -> str:
    """A note on the captions of a split that are not kept, which other tools count."""
    of_split = [entry for entry in entries if entry.split == split]
    count = sum(len(entry.captions) for entry in of_split)
    more = [entry for entry in of_split if len(entry.captions) > EACH]
    if not more:
        return f"{split}: none of {count} captions is left out."
    dropped = sum(len(entry.captions) - EACH for entry in more)
    note = f"{split}: {dropped} of {count} captions"
    return reader_notes.left_out(note, map(_image_id, more))


def _read_precomp(raw: Path, options: Options) -> Tables:
    parts = precomp.layout(_precomp_folder(raw))
    store = _find_store(raw) if options.with_pictures else None
    files = {_number(name): name for name in store.names()} if store else {}
    notes = [f"The captions are those of {PRECOMP}/; restval is used for training."]
    return precomp.tables(parts, files, notes)


def _number(file: str) -> str:
    """For example 391895 for val2014/COCO_val2014_000000391895.jpg."""
    return Path(file).stem.rpartition("_")[2].lstrip("0")
