"""The layouts in which people share images and captions, and which a folder has.

A reader makes entries of the files that its layout found:

    of_text          one annotation file beside the images, or above them
    of_splits        metadata.csv or .jsonl in each folder named after a split
    of_parquet       Hugging Face's tables, with images in a column
    of_tars          WebDataset: 000.jpg with 000.txt or 000.json
    of_texts_beside  a.jpg and a.txt
    judged_corpora   BEIR's corpus, queries and judgements
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from benchmark.core.errors import UserError
from benchmark.core.files import is_file, parse_json, readable
from benchmark.core.names import inside
from benchmark.readers import (
    folder_files,
    image_files,
    judged_corpora,
    key_names,
    reader_notes,
)
from benchmark.readers import packed_images as packed
from benchmark.readers.annotation_files import (
    BY_SPLIT,
    KARPATHY,
    KINDS,
    as_object,
    decoded,
    is_annotation,
    records,
    text_of,
)
from benchmark.readers.annotations import Annotations, Entry, Form, Record, form_keys
from benchmark.readers.annotations import entry as entry_of
from benchmark.readers.key_names import split_of_path
from benchmark.readers.text_tables import IMAGE_ENDINGS, lines_of

HUGGING_FACE = Form(usual=KARPATHY.usual | form_keys("img_id"))
IMG2DATASET = Form(
    usual=form_keys(
        """
        key url status error_message width height original_width original_height exif
        md5 sha256
        """
    )
)
METADATA = ("metadata.csv", "metadata.jsonl")
TEXTS = ("txt", "caption", "captions", "text")  # of a sample
LARGEST_TEXT = 1 << 20  # bytes of the text of one image
MANY = 5  # annotation files from which on it is better to write one

ANNOTATION_FILE = f"one annotation file ({', '.join(KINDS)})"
SAMPLE = "correct the sample, or get the file again"
CHOOSE = (
    "name one: rematch init DIR --captions FILE, in a season file the option captions"
)
ONE_FILE = (
    "write the captions beside the images into one .csv: columns image and caption"
)

Reader = Callable[[Path, list[str], Annotations], Iterator[Entry]]


@dataclass(frozen=True)
class Source:
    """The files that hold the annotations of a folder, and what reads them."""

    reader: Reader
    files: list[str]


# Which layout it is -------------------------------------------------------------------


def source(raw: Path, chosen: str | None) -> Source:
    """Where the annotations of a folder are; `chosen` is the file that its owner names.

    Raises UserError for a folder with no annotations, and for one with several where
    none is chosen.
    """
    judged = judged_corpora.files(raw)
    if judged and chosen in (None, *judged):
        return Source(judged_corpora.entries, judged)
    named = sorted(p.name for p in raw.glob("[!.]*") if p.suffix.lower() in KINDS)
    files = _annotation_files(raw, named)
    if chosen is not None:
        return _chosen(raw, chosen, files)
    if len(files) == 1:
        return Source(of_text, files)
    if files:
        raise _undecided(raw, files, f"{len(files)}: ")
    layouts = _layouts(raw)
    if len(layouts) == 1:
        return layouts[0]
    if layouts:
        raise UserError(
            raw,
            expected="one kind of annotations",
            found=" and ".join(reader_notes.listed(each.files) for each in layouts),
            do=f"keep one kind, or {CHOOSE}",
        )
    if len(named) == 1:
        return Source(of_text, named)
    if named:
        raise _undecided(raw, named, "none with named columns, but ")
    elsewhere = folder_files.ending_in(raw, KINDS)
    if elsewhere:
        raise _undecided(raw, elsewhere, "none here, but ")
    others = folder_files.below(raw)
    endings = Counter(PurePosixPath(name).suffix or name for name in others)
    actual = "none"
    if endings:
        actual = f"none (files of {reader_notes.listed(endings)})"
    raise UserError(
        raw,
        expected=ANNOTATION_FILE,
        found=actual,
        do="write a .csv with the columns image and caption",
    )


def _annotation_files(raw: Path, named: list[str]) -> list[str]:
    """Those of some files that hold annotations: no read-me, and no text of one
    image."""
    texts = _texts_beside(raw) if len(named) > 1 else {}
    return [name for name in named if name not in texts and is_annotation(raw / name)]


def _chosen(raw: Path, chosen: str, others: list[str]) -> Source:
    where = "folder: option captions"
    name = inside(chosen, where, "make it relative to the folder")
    if not is_file(raw / name):
        readable_files = reader_notes.listed(others) or "no such file"
        raise UserError(
            raw / name,
            expected=ANNOTATION_FILE,
            found=f"nothing ({readable_files} could be read)",
            do="correct its name",
        )
    kind = PurePosixPath(name).suffix.lower()
    if kind in PACKED:
        return Source(PACKED[kind], [name])
    if kind in KINDS:
        return Source(of_text, [name])
    raise UserError(
        raw / name,
        expected=ANNOTATION_FILE,
        found=f"a {kind or 'nameless'} file",
        do="save it as .csv with image and caption",
    )


def _layouts(raw: Path) -> list[Source]:
    """The layouts without an annotation file that the folder has."""
    tables = folder_files.ending_in(raw, packed.PARQUETS)
    sources = [
        Source(of_splits, _split_files(raw)),
        Source(of_parquet, [name for name in tables if _has_captions(raw, name)]),
        Source(of_tars, folder_files.ending_in(raw, packed.TARS)),
        Source(of_texts_beside, list(_texts_beside(raw))),
    ]
    return [each for each in sources if each.files]


def _undecided(raw: Path, names: list[str], count: str) -> UserError:
    """The error for several files of which none is known to be the one."""
    advice = CHOOSE
    if len(names) > 1 and all(map(split_of_path, names)):
        advice = BY_SPLIT
    elif len(names) > MANY:
        advice = ONE_FILE
    return UserError(
        raw,
        expected=ANNOTATION_FILE,
        found=f"{count}{reader_notes.listed(names)}",
        do=advice,
    )


def note_unread_tables(raw: Path, files: list[str], seen: Annotations) -> None:
    """Note further tables of the kind that is read, which look like no annotations."""
    kind = PurePosixPath(files[0]).suffix.lower()
    others = []
    if kind == ".parquet":
        tables = folder_files.ending_in(raw, packed.PARQUETS)
        others = [name for name in tables if not _has_captions(raw, name)]
    elif kind in (".csv", ".tsv"):
        for path in sorted(raw.glob("[!.]*")):
            if path.suffix.lower() == kind and not is_annotation(path):
                others.append(path.name)
    seen.note(others, "tables without columns of images and captions are not read")


# One annotation file, or one of each split --------------------------------------------


def of_text(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """One annotation file beside the images, or above them."""
    path = raw / files[0]
    for record in records(path, path.name, seen):
        yield entry_of(record, seen)


def of_splits(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """Hugging Face's image folder: metadata of each split, with files in the folder of
    that."""
    file_of: dict[PurePosixPath, str] = {}
    for name in files:
        folder = PurePosixPath(name).parent
        earlier = file_of.setdefault(folder, name)
        if earlier != name:  # the same captions would count twice
            raise UserError(
                raw / folder,
                expected="one file of metadata",
                found=f"{earlier} and {name}",
                do="keep one of the two",
            )
        for record in records(raw / name, name, seen):
            entry = entry_of(record, seen, path=str(folder))
            yield replace(entry, file=str(folder / entry.file))
    others = [name for name in _metadata_files(raw) if name not in files]
    what = "files of metadata are in a folder that names no split, and are not read"
    seen.note(others, what)


def _split_files(raw: Path) -> list[str]:
    split_of: dict[str, str] = {}
    for name in _metadata_files(raw):
        if split := split_of_path(str(PurePosixPath(name).parent)):
            split_of[name] = split
    return list(split_of) if len(set(split_of.values())) > 1 else []


def _metadata_files(raw: Path) -> list[str]:
    names = folder_files.ending_in(raw, METADATA)
    return [name for name in names if PurePosixPath(name).name.lower() in METADATA]


# Parquet ------------------------------------------------------------------------------


def of_parquet(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """Hugging Face's parquet files."""
    for name in files:
        path = raw / name
        images, _ = packed.columns(path)
        seen.keys |= dict.fromkeys(packed.keys_of_columns(path))
        for column in images:
            seen.used[column,] = None
        for where, facts, row in packed.parquet_records(path, _says_something):
            record = Record(where, facts, HUGGING_FACE)
            file = f"{name}/{row}" if row else None
            yield entry_of(record, seen, file, name, is_packed=file is not None)


def _has_captions(raw: Path, name: str) -> bool:
    """Whether a table has images, or their names and captions; what cannot be read may
    have."""
    try:
        images, others = packed.columns(image_files.Folder(raw).path_of(name))
    except UserError:
        return True
    if images:
        return True
    has_names = any(map(key_names.is_image_name, others))
    has_captions = any(map(key_names.caption_name, others))
    return has_names and has_captions


def _says_something(key: str) -> bool:
    is_known = key_names.role_of(key) or key_names.caption_name(key)
    return bool(is_known) or key_names.is_caption_id(key)


# Tars ---------------------------------------------------------------------------------


def of_tars(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """WebDataset: members of one name, up to the first dot, are an image and what is
    said of it."""
    for name in files:
        for key, sample in _samples(raw / name).items():
            where = f"{name}: {key}"
            image = _member_of_kinds(sample, IMAGE_ENDINGS, where)
            text = _member_of_kinds(sample, TEXTS, where)
            if image is None:
                raise UserError(
                    where,
                    expected=f"an image (.{', .'.join(IMAGE_ENDINGS)})",
                    found=", ".join(f".{kind}" for kind in sample),
                    do=SAMPLE,
                )
            for kind in sample:
                if kind not in (*IMAGE_ENDINGS, *TEXTS, "json"):
                    seen.keys[f".{kind}",] = None
            facts = _facts_of(raw / name, sample.get("json"), text, where)
            record = Record(where, facts, IMG2DATASET)
            yield entry_of(record, seen, f"{name}/{image}", name, is_packed=True)


def _samples(path: Path) -> dict[str, dict[str, str]]:
    """The samples of a tar: kind -> member."""
    samples: dict[str, dict[str, str]] = {}
    for member in packed.members(path):
        base = PurePosixPath(member).name
        stem, _, kind = base.partition(".")
        if not stem:  # hidden
            continue
        sample = samples.setdefault(member.removesuffix(base) + stem, {})
        earlier = sample.setdefault(kind.lower(), member)
        if earlier != member:
            raise UserError(
                path,
                expected="one member of a kind",
                found=f"{member!r:.200} and {earlier!r:.200}",
                do="keep one of the two",
            )
    return samples


def _member_of_kinds(
    sample: dict[str, str], kinds: Iterable[str], where: str
) -> str | None:
    """The member of a sample that is of one of some kinds; None without one."""
    members = [member for kind, member in sample.items() if kind in kinds]
    if len(members) > 1:
        raise UserError(
            where,
            expected="one image and one text",
            found=", ".join(members),
            do=SAMPLE,
        )
    return members[0] if members else None


def _facts_of(
    path: Path, json_member: str | None, text_member: str | None, where: str
) -> dict:
    """What the members of a sample say of its image. Raises UserError where text and
    JSON have different captions."""
    facts: dict = {}
    if json_member:
        text = _member_text(path, json_member, where)
        content = parse_json(text, f"{where}.json", SAMPLE)
        if isinstance(content, str | list):
            content = {"caption": content}
        facts |= as_object(content, where)
    if text_member:
        captions = _captions(_member_text(path, text_member, where))
        others = facts.get("caption")
        if others is None:  # as img2dataset writes for an image without one
            others = captions
        listed = _captions(others) if isinstance(others, str) else others
        if listed != captions:
            raise UserError(
                f"{where}: caption",
                expected="the same captions",
                found=f"{captions!r:.60}, but {others!r:.60} in the .json",
                do=SAMPLE,
            )
        facts["caption"] = captions
    return facts


def _member_text(path: Path, member: str, where: str) -> str:
    with readable(where, "UTF-8 text", "save it as UTF-8"):
        return decoded(packed.member(path, member, LARGEST_TEXT, where))


def _captions(text: str) -> list[str]:
    """The captions in the text of one image: a line each."""
    lines = map(str.strip, lines_of(text))
    return list(filter(None, lines))


# Texts beside images ------------------------------------------------------------------


def of_texts_beside(raw: Path, files: list[str], seen: Annotations) -> Iterator[Entry]:
    """A text of the same name beside each image, with a caption a line."""
    image_of = _texts_beside(raw)
    for name in files:
        captions = _captions(text_of(raw / name, name, LARGEST_TEXT))
        record = Record(name, {"caption": captions})
        folder = PurePosixPath(name).parent
        yield entry_of(record, seen, image_of[name], str(folder))
    described = set(image_of.values())
    alone = []
    for name in filter(folder_files.is_image, folder_files.below(raw)):
        if name not in described:
            alone.append(name)
    seen.note(alone, "images have no .txt beside them and are left out")


def _texts_beside(raw: Path) -> dict[str, str]:
    """Texts that are no annotation files, and the image of the same name beside
    each."""
    names = folder_files.below(raw)
    texts = {name for name in names if name.endswith(".txt")}
    images: dict[str, str] = {}
    for name in filter(folder_files.is_image, names):
        text = f"{PurePosixPath(name).with_suffix('')}.txt"
        earlier = images.setdefault(text, name)
        if earlier != name and text in texts:
            raise UserError(
                raw / text,
                expected="one image of this name",
                found=f"{earlier} and {name}",
                do="rename one",
            )
    place = image_files.Folder(raw)
    image_of: dict[str, str] = {}
    for name in names:
        if name in texts and name in images and not is_annotation(place.path_of(name)):
            image_of[name] = images[name]
    return image_of


PACKED: dict[str, Reader] = {".parquet": of_parquet, ".tar": of_tars}
