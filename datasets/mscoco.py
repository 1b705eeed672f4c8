"""MSCOCO: 123,287 photographs with five or more captions each, in Karpathy's partition.

Lin et al. (2014), ECCV; Chen et al. (2015), arXiv 1504.00325 (captions); Karpathy and
Fei-Fei (2015). Val and test are 5,000 images each of COCO's validation set 2014; what
is left of it is "restval", 30,504 images that most papers train on besides the 82,783
of the training set. Results are reported for all 5,000 test images and as means over
five consecutive folds of 1,000.

The raw folder holds the images, as train2014/ and val2014/ or train2014.zip and
val2014.zip, and

    karpathy  dataset_coco.json, the same in a .zip, or caption_datasets.zip
    precomp   coco_precomp/ of SCAN, whose testall_* are the 5,000 test images; needs no
              images

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
    "cxc": "pairs that raters of Crisscrossed Captions scored 3 of 5 or more, instead "
    "of own",
    "eccv": "pairs of ECCV Caption, instead of own",
}
JUDGED = {"i2t": "image_to_caption", "t2i": "caption_to_image"}  # in names of files
ID = re.compile(r"[1-9]\d{0,11}")

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

    annotations    "karpathy", or "precomp" for the captions of SCAN's features
    restval        whether restval is used for training; always with `precomp`
    with_pictures  False: images are not looked for, for example if features are
                   imported. `precomp` needs no images in any case, but uses those
                   that are there.
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
            advice = "set the option annotations: karpathy"
            raise UserError("mscoco: option restval", expected, False, advice)

    @property
    def is_precomp(self) -> bool:
        return self.annotations == "precomp"

    @property
    def needs_pictures(self) -> bool:
        """Whether the dataset cannot be read without images."""
        return self.with_pictures and not self.is_precomp


def card(options: Options = Options()) -> Card:
    """What the chosen files need, and how many images and captions they have."""
    checklist = _checklist(options)
    remote: tuple[RemoteFile, ...] = ()
    if options.is_precomp:
        obtained, size, captions = f"{PRECOMP}/", 34.0, PRECOMP_CAPTIONS
    else:
        obtained = ", ".join(needed.names for needed in checklist)
        size, captions = 0.2, CAPTIONS[options.restval]
        remote = (karpathy.REMOTE,)
    if options.needs_pictures:
        remote += REMOTE_PICTURES
        size += 19.0
    return Card(
        title="MSCOCO",
        source="Lin et al. (2014), Microsoft COCO: Common Objects in Context, ECCV; "
        "Chen et al. (2015), Microsoft COCO Captions, arXiv 1504.00325",
        licence="captions CC BY 4.0; the photographs keep their owners' terms (Flickr "
        "Terms of Use)",
        split="karpathy" if options.restval else "karpathy_without_restval",
        may_publish=False,
        remote=remote,
        obtain=f"place {obtained} in one folder",
        checklist=checklist,
        raw_gib=size,
        expected_images=IMAGES[options.restval],
        expected_captions=captions,
        folds=5,
    )


def inventory(raw: Path, options: Options = Options()) -> list[Path]:
    """The files in use: annotations, features of `precomp`, and every image or their
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
    files_of: dict[str, dict[str, Path]] = {}
    for name in RULES:
        if files := _judged_files(raw, name):
            files_of[name] = files
    if options.is_precomp or not files_of:
        return []
    if tables.captions.index.name != "sentid":
        _refuse_or_warn(raw, files_of)
        return []
    caption_of = tables.captions["caption_id"].to_dict()
    images = set(tables.images["image_id"][tables.images["split"] == "test"])
    judged = []
    for name, files in files_of.items():
        pairs = _pairs(files, caption_of)
        named = pairs.groupby("way")["query"].nunique().to_dict()
        pairs = pairs.drop(columns="query").drop_duplicates()
        pairs = pairs[pairs["image_id"].isin(images) & pairs["caption_id"].notna()]
        if len(pairs):
            pairs = pairs.assign(score=float("inf"), right=True)
            layer = Layer(name=name, rule=RULES[name], pairs=pairs, named=named)
            judged.append(layer)
    return judged


def _refuse_or_warn(raw: Path, files_of: Mapping[str, Mapping[str, Path]]) -> None:
    """Captions have no ids. Raises UserError for files that were placed in the raw
    folder; those of the package are only left out."""
    where, expected = (
        f"{KARPATHY}: sentid",
        "an id of each caption, by which layers name it",
    )
    for files in files_of.values():
        if any(raw in path.parents for path in files.values()):
            raise UserError(where, expected, "none", AGAIN)
    warning = UserError(where, expected, "none", "layers are left out")
    print("rematch:", warning, file=sys.stderr)


def _pairs(files: Mapping[str, Path], caption_of: Mapping[int, str]) -> pd.DataFrame:
    """The judged pairs of a layer, with the id of their query; caption_id is missing
    for unknown captions."""
    rows = []
    for way, path in files.items():
        for query, items in _judged(path).items():
            for item in items:
                image, caption = (query, item) if way == "i2t" else (item, query)
                rows.append((way, query, str(image), caption_of.get(caption)))
    return pd.DataFrame(rows, columns=["way", "query", "image_id", "caption_id"])


def _judged_files(raw: Path, name: str) -> dict[str, Path]:
    """The files of a layer by direction, of the raw folder or of the package; none
    without both. Raises UserError for one of them alone."""
    folders = [raw, raw / PACKAGE]
    spec = find_spec(PACKAGE)
    if spec:
        folders += (
            Path(place, "data") for place in spec.submodule_search_locations or ()
        )
    for folder in folders:
        files, absent = {}, []
        for way, what in JUDGED.items():
            path = files[way] = folder / f"{name}_{what}.json"
            if not path.is_file():
                absent.append(path)
        if len(absent) == 1:
            expected, advice = "both files of a layer", "place it there, too"
            raise UserError(absent[0], expected, "one", advice)
        if not absent:
            return files
    return {}


def _judged(path: Path) -> dict[int, list[int]]:
    """{query: [items]}: ids of COCO's images and annotations."""
    data = parse_json(archives.text(path, path.name), path.name, AGAIN)
    if not isinstance(data, dict) or not all(map(_are_ids, data, data.values())):
        expected = '{"id": [ids]}, with ids of COCO'
        raise UserError(path, expected, f"{str(data)[:60]!r}", AGAIN)
    return {int(key): items for key, items in data.items()}


def _are_ids(key: str, items: object) -> bool:
    if not ID.fullmatch(key) or not isinstance(items, list):
        return False
    return all(type(item) is int for item in items)


def pictures(raw: Path, options: Options = Options()) -> OpenPicture:
    """A function that opens an image by name; safe to share between threads and
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
    needed = [Needed("captions and partition", ((KARPATHY,), (karpathy.ALL,)))]
    photographs = "photographs"
    if options.is_precomp:
        needed = precomp.needed(PRECOMP, ("train", "dev", "testall"))
        photographs = "photographs; not needed for matching"
    if options.with_pictures:
        for name in STORES:
            needed.append(Needed(photographs, ((f"{name}/",), (f"{name}.zip",))))
    return tuple(needed)


# Files --------------------------------------------------------------------------------


class Several:
    """Images of several stores: the first part of a file's path is the name of its
    store."""

    def __init__(self, stores: Mapping[str, image_files.Store]):
        self.stores = dict(stores)

    def names(self) -> list[str]:
        names = []
        for part, store in self.stores.items():
            names += (f"{part}/{name}" for name in store.names())
        return names

    def files(self) -> list[Path]:
        paths = []
        for store in self.stores.values():
            paths += store.files()
        return paths

    def __call__(self, file: str) -> Image.Image:
        part, _, name = file.partition("/")
        if part not in self.stores:
            expected = f"an image of {' or '.join(self.stores)}"
            raise UserError(file, expected, part, "place the other images")
        return self.stores[part](name)


def _find_store(raw: Path) -> Several | None:
    """The images that are there; None where neither half is."""
    stores = {}
    for name in STORES:
        store = image_files.find(raw, **_half(name))
        if store is not None:
            stores[name] = store
    return Several(stores) if stores else None


def _store(raw: Path) -> Several:
    advice = (
        "place it there (for features alone, set the option annotations: precomp, or "
        "with_pictures: false)"
    )
    stores = {}
    for name in STORES:
        stores[name] = image_files.needed(raw, **_half(name), do=advice)
    return Several(stores)


def _half(name: str) -> dict:
    return {"archive": f"{name}.zip", "inside": name, "folders": (name,)}


def _precomp_folder(raw: Path) -> Path:
    folder = raw / PRECOMP
    if not (folder / "testall_caps.txt").is_file():
        raise UserError(
            folder / "testall_caps.txt",
            "the 5,000 test images of testall_*; test_* are only the first 1,000 of "
            "them",
            "nothing",
            f"place all files of {PRECOMP}/ there",
        )
    return folder


# Readers ------------------------------------------------------------------------------


def _tables(entries: list[karpathy.Entry], options: Options) -> Tables:
    others = sum(entry.split == "restval" for entry in entries)
    use = "are used for training" if options.restval else "stay unused"
    return Tables(
        images=_images(entries, options),
        captions=_captions(entries),
        notes=(
            f"The captions are the raw sentences of {KARPATHY}.",
            f"{others} images of restval {use}.",
            f"The first {EACH} captions of every image of val and test are kept.",
            *(_left_out(entries, split) for split in EVALUATED),
        ),
    )


def _images(entries: list[karpathy.Entry], options: Options) -> pd.DataFrame:
    rows = []
    for entry in entries:
        image_id, split = _image_id(entry), entry.split
        file = entry.file if options.with_pictures else ""
        if split == "restval":
            split = "train" if options.restval else "unused"
        rows.append((image_id, file, split, image_id))
    return pd.DataFrame(rows, columns=["image_id", "file", "split", "group"])


def _captions(entries: list[karpathy.Entry]) -> pd.DataFrame:
    """The index is `sentid`, where every sentence has one."""
    rows, sentids = [], []
    for entry in entries:
        image_id, kept = _image_id(entry), _kept(entry)
        sentids += entry.sentids[: len(kept)]
        for number, text in enumerate(kept):
            rows.append((f"{image_id}#{number}", image_id, text))
    captions = pd.DataFrame(rows, columns=["caption_id", "image_id", "text"])
    if None not in sentids:
        captions.index = pd.Index(sentids, name="sentid").astype(int)
    return captions


def _image_id(entry: karpathy.Entry) -> str:
    if entry.cocoid is None:
        raise UserError(f"{entry.where}: cocoid", "int", None, AGAIN)
    return str(entry.cocoid)


def _kept(entry: karpathy.Entry) -> list[str]:
    return entry.captions[:EACH] if entry.split in EVALUATED else entry.captions


def _left_out(entries: list[karpathy.Entry], split: str) -> str:
    """A note on the captions of a split that are not kept, which other tools count."""
    count, dropped, images = 0, 0, []
    for entry in entries:
        if entry.split != split:
            continue
        count += len(entry.captions)
        if len(entry.captions) > EACH:
            dropped += len(entry.captions) - EACH
            images.append(_image_id(entry))
    if not images:
        return f"{split}: none of {count} captions is left out."
    return reader_notes.left_out(f"{split}: {dropped} of {count} captions", images)


def _read_precomp(raw: Path, options: Options) -> Tables:
    parts = precomp.layout(_precomp_folder(raw))
    store = _find_store(raw) if options.with_pictures else None
    files = {_number(name): name for name in store.names()} if store else {}
    notes = [f"The captions are those of {PRECOMP}/; restval is used for training."]
    return precomp.tables(parts, files, notes)


def _number(file: str) -> str:
    """For example 391895 for val2014/COCO_val2014_000000391895.jpg."""
    return Path(file).stem.rpartition("_")[2].lstrip("0")
