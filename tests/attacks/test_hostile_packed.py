"""Tar and parquet files of an own folder that are made to break out, to overflow or to
mislead: one line each."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sieges import (
    RAW,
    besieged,
    check_line,
    picture,
    repelled,
    repelled_stages,
    tar_header,
)

from benchmark.contracts.datasets import UserError, folder

TAR, TABLE = RAW / "a.tar", RAW / "a.parquet"
LARGE = 600 << 20  # bytes that nothing may unpack
SPLITS = ("train", "val", "test")


@pytest.fixture(autouse=True)
def raw(field) -> None:
    RAW.mkdir(parents=True)


# Tars ---------------------------------------------------------------------------------


def member(
    name: str, content: bytes, kind: bytes = tarfile.REGTYPE, target: str = ""
) -> bytes:
    return (
        tar_header(name, len(content), kind, target)
        + content
        + bytes(-len(content) % 512)
    )


def sample_members(number: int, image: bytes | None = None, **others: bytes) -> bytes:
    facts = json.dumps({"split": SPLITS[number], "caption": f"A {number}."}).encode()
    kinds = {"png": picture(number) if image is None else image, "json": facts} | others
    return b"".join(
        member(f"{number}.{kind}", content) for kind, content in kinds.items()
    )


GOOD = [sample_members(number) for number in range(3)]
END = bytes(1024)


def tar(*parts: bytes, end: bytes = END) -> None:
    TAR.write_bytes(b"".join(parts) + end)


def before(part: bytes) -> Callable[[], None]:
    """A tar of three samples, behind a part."""
    return lambda: tar(part, *GOOD)


def first(image: bytes | None = None, **others: bytes) -> Callable[[], None]:
    """A tar of three samples, the first of which is given."""
    return lambda: tar(sample_members(0, image, **others), *GOOD[1:])


def special(kind: bytes, target: str = "../outside/secret.txt") -> Callable[[], None]:
    return before(member("3.png", b"", kind, target))


def sparse_file(head: bytes, size: int) -> None:
    """A header and gigabytes that take no space on the disk."""
    TAR.write_bytes(head)
    with TAR.open("r+b") as file:
        file.truncate(size)


def pax(**facts: str) -> bytes:
    records = b"".join(
        f"{len(key) + len(value.encode()) + 5:02} {key}={value}\n".encode()
        for key, value in facts.items()
    )
    return member("pax", records, tarfile.XHDTYPE)


TARS = {
    "a name above": before(member("../outside/x.png", b"x")),
    "an absolute name": before(member("/etc/x.png", b"x")),
    "a name of Windows": before(member("..\\x.png", b"x")),
    "half a character": before(tar_header("\udcff.png", 0)),
    "zero byte": before(pax(path="../a\0.png") + member("3.png", b"")),
    "a link": special(tarfile.SYMTYPE),
    "a hard link": special(tarfile.LNKTYPE),
    "a device": special(tarfile.CHRTYPE),
    "a pipe": special(tarfile.FIFOTYPE),
    "a sparse file": before(member("3.png", b"", tarfile.GNUTYPE_SPARSE)),
    "size beyond end": before(tar_header("3.png", 1 << 40)),
    "negative size": before(tar_header("3.png", -1)),
    "a name twice": before(GOOD[0]),
    "name of gigabytes": lambda: sparse_file(
        tar_header("a", 1 << 32, tarfile.GNUTYPE_LONGNAME), 1 << 33
    ),
    "facts of gigabytes": lambda: sparse_file(
        tar_header("a", 1 << 32, tarfile.XHDTYPE), 1 << 33
    ),
    "image of gigabytes": lambda: sparse_file(
        GOOD[1] + tar_header("0.png", 1 << 32), 1 << 33
    ),
    "names of names": before(tar_header("a", 1, tarfile.GNUTYPE_LONGNAME) * 5000),
    "cut inside image": lambda: TAR.write_bytes(b"".join(GOOD)[:600]),
    "cut between samples": lambda: tar(*GOOD, end=b""),
    "damage between samples": lambda: tar(GOOD[0], b"x" * 512, *GOOD[1:]),
    "zeros between samples": lambda: tar(GOOD[0], bytes(512), *GOOD[1:]),
    "compressed": lambda: tarfile.open(TAR, "w:gz").close(),
    "nothing": lambda: TAR.write_bytes(b""),
    "no tar": lambda: TAR.write_bytes(b"<html>not found</html>" * 99),
    "no samples": lambda: tar(),
    "no image": before(member("3.txt", b"A.")),
    "two images": first(jpg=picture()),
    "no captions": lambda: tar(member("3.png", picture()), *GOOD),
    "two texts": first(txt=b"A 0.", caption=b"A 0."),
    "text disagrees": first(txt=b"B."),
    "text of megabytes": first(txt=b"word " * 400_000),
    "a caption of 20,000 characters": first(json=b"{}", txt=b"x" * 20_000),
    "text not UTF-8": first(txt=b"\xff\xfe\xfd"),
    "nested facts": first(json=b"[" * 100_000 + b"]" * 100_000),
    "numeric facts": first(json=b"3"),
    "facts with NaN": first(json=b'{"caption": NaN}'),
    "image is text": first(b"<html>not found</html>"),
    "empty image": first(b""),
    "image cut off": first(picture()[:50]),
    "an id outside": first(json=b'{"file_name": "../../x.png", "caption": "A."}'),
}


@pytest.mark.parametrize("case", TARS)
def test_a_hostile_tar(case):
    TARS[case]()
    repelled_stages(TAR.name)


def test_a_tar_that_is_a_link_out():
    Path("outside/a.tar").write_bytes(b"".join(GOOD) + END)
    TAR.symlink_to(Path("outside/a.tar").absolute())
    repelled(lambda: folder.pictures(RAW)("a.tar/0.png"), "a.tar")
    repelled(lambda: folder.read(RAW), "a.tar")


def test_a_table_and_a_text_that_are_links_out():
    saved(table())
    TABLE.rename("outside/a.parquet")
    TABLE.symlink_to(Path("outside/a.parquet").absolute())
    repelled(lambda: folder.read(RAW), "a.parquet")
    TABLE.unlink()
    for name in "ab":
        (RAW / f"{name}.png").write_bytes(picture())
        (RAW / f"{name}.txt").write_text("A.")
    (RAW / "b.txt").unlink()
    (RAW / "b.txt").symlink_to(Path("outside/secret.txt").absolute())
    repelled(lambda: folder.read(RAW), "b.txt")


@pytest.mark.parametrize(
    "name", ["../0.png", "/etc/passwd", "9.png", "0.png\0", "0.json/../0.png"]
)
def test_a_member_that_is_none(name):
    tar(*GOOD)
    repelled(lambda: folder.pictures(RAW)(f"a.tar/{name}"), "a.tar")


# Parquet ------------------------------------------------------------------------------

KIND = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def table(*, rows: int = 3, **columns: object) -> pa.Table:
    images = [{"bytes": picture(n), "path": f"{n}.png"} for n in range(rows)]
    default = {
        "image": pa.array(images, KIND),
        "caption": [f"A {n}." for n in range(rows)],
        "split": [SPLITS[n % 3] for n in range(rows)],
    }
    return pa.table({k: v for k, v in (default | columns).items() if v is not None})


def saved(made: pa.Table, **options: object) -> None:
    pq.write_table(made, TABLE, **options)


def first_image(content: bytes | None, path: str | None = "0.png") -> pa.Array:
    images = [{"bytes": picture(n), "path": f"{n}.png"} for n in range(3)]
    return pa.array([{"bytes": content, "path": path}, *images[1:]], KIND)


def repeated(value: object, count: int, kind: pa.DataType) -> pa.Array:
    indices = pa.array([0] * count, pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array([value], kind))


def damaged(change: Callable[[bytes], bytes]) -> Callable[[], None]:
    def write() -> None:
        saved(table())
        TABLE.write_bytes(change(TABLE.read_bytes()))

    return write


def nested(depth: int) -> pa.Array:
    kind = pa.string()
    for _ in range(depth):
        kind = pa.list_(kind)
    return pa.nulls(3, kind)


def gigabytes() -> None:
    """A footer that takes no space on the disk."""
    with TABLE.open("wb") as file:
        file.write(b"PAR1")
        file.seek(1 << 32)
        file.write(((1 << 32) - 99).to_bytes(4, "little") + b"PAR1")


def million() -> None:
    """A row needs bytes of its own: these have one image and one caption, and no
    more."""
    images = pa.StructArray.from_arrays(
        [repeated(picture(), 1_000_000, pa.binary()), pa.nulls(1_000_000, pa.string())],
        ["bytes", "path"],
    )
    caption = repeated("A.", 1_000_000, pa.string())
    split = repeated("train", 1_000_000, pa.string())
    saved(pa.table({"image": images, "caption": caption, "split": split}))


def million_in_a_row() -> None:
    values = repeated("A.", 1_000_000, pa.string())
    captions = pa.ListArray.from_arrays(
        pa.array([0, 1_000_000, 1_000_001, 1_000_002]),
        pa.concat_arrays([values, repeated("A.", 2, pa.string())]),
    )
    saved(table(caption=captions))


def image_repeated() -> None:
    # megabytes of one image in a hundred rows, kept once in the file
    images = pa.StructArray.from_arrays(
        [repeated(bytes(20 << 20), 100, pa.binary()), pa.nulls(100, pa.string())],
        ["bytes", "path"],
    )
    texts, splits = (
        [f"A {n}." * 30 for n in range(100)],
        [SPLITS[n % 3] for n in range(100)],
    )
    made = pa.table({"image": images, "caption": texts, "split": splits})
    saved(made, dictionary_pagesize_limit=1 << 25, compression="none")


def zeros(**columns: object) -> None:
    saved(
        table(**columns),
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
    )


def varint(number: int, width: int = 0) -> bytes:
    """A number as Thrift's compact protocol writes it, of at least so many bytes."""
    number, out = number << 1, []
    while number >> 7 or len(out) < width - 1:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def lying(**columns: object) -> None:
    zeros(**columns)
    # the footer declares a thousand bytes where a page has millions
    data = TABLE.read_bytes()
    facts = pq.read_metadata(TABLE).row_group(0)
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[at:]
    for number in {
        facts.column(n).total_uncompressed_size for n in range(facts.num_columns)
    }:
        if number > 1 << 20:
            old = varint(number)
            assert old in footer
            footer = footer.replace(old, varint(1000, len(old)))
    TABLE.write_bytes(data[:at] + footer)


TABLES = {
    "nothing": lambda: TABLE.write_bytes(b""),
    "no table": lambda: TABLE.write_bytes(b"PAR1" + bytes(99) + b"PAR1"),
    "cut off": damaged(lambda data: data[: len(data) // 2]),
    "cut in half": damaged(lambda data: data[:50] + data[150:]),
    "footer beyond file": damaged(lambda d: d[:-8] + b"\xff\xff\xff\x7f" + d[-4:]),
    "footer of gigabytes": gigabytes,
    "empty footer": damaged(lambda data: data[:-8] + bytes(4) + data[-4:]),
    "damaged pages": damaged(lambda data: data[:4] + b"\xff" * 200 + data[204:]),
    "no rows": lambda: saved(table().slice(0, 0)),
    "no captions": lambda: saved(table(caption=None)),
    "numeric captions": lambda: saved(table(caption=[1, 2, 3])),
    "nested captions": lambda: saved(table(caption=[[["A."]]] * 3)),
    "fifty lists": lambda: saved(table(caption=nested(50))),
    "null caption": lambda: saved(table(caption=["A.", None, "B."])),
    "zero byte caption": lambda: saved(table(caption=["A\0.", "B.", "C."])),
    "a caption of 20,000 characters": lambda: saved(
        table(caption=["x" * 20_000, "B.", "C."])
    ),
    "two image columns": lambda: saved(table(jpg=[b"a", b"b", b"c"])),
    "lists of images": lambda: saved(table(image=[[{"bytes": b"a", "path": "a"}]] * 3)),
    "image is text": lambda: saved(table(image=first_image(b"<html>not found</html>"))),
    "empty image": lambda: saved(table(image=first_image(b""))),
    "missing image": lambda: saved(table(image=first_image(None))),
    "null image": lambda: saved(table(image=pa.nulls(3, KIND))),
    "zero byte": lambda: saved(table(image=first_image(picture(), "a\0.png"))),
    "a name above": lambda: saved(
        table(image=first_image(picture(), "../outside/x.png"))
    ),
    "an absolute name": lambda: saved(
        table(image=first_image(picture(), "/etc/passwd"))
    ),
    "a long name": lambda: saved(table(image=first_image(picture(), "x" * 5000))),
    "bytes twice": lambda: saved(table(image=first_image(picture(), "1.png"))),
    "a name outside, without bytes": lambda: saved(
        table(image=["../outside/secret.txt", "b.png", "c.png"])
    ),
    "a million rows": million,
    "million captions": million_in_a_row,
    "repeated large image": image_repeated,
    "repeated large caption": lambda: saved(
        table(rows=1000, caption=repeated("x" * (10 << 20), 1000, pa.string())),
        dictionary_pagesize_limit=1 << 25,
    ),
    "image bomb": lambda: zeros(image=first_image(bytes(LARGE))),
    "caption bomb": lambda: zeros(caption=["x" * LARGE, "B.", "C."]),
    "undeclared image bomb": lambda: lying(image=first_image(bytes(LARGE))),
    "undeclared caption bomb": lambda: lying(caption=["x" * LARGE, "B.", "C."]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", TABLES)
def test_a_hostile_parquet_file(case):
    TABLES[case]()
    repelled_stages(TABLE.name)


@pytest.mark.parametrize("name", ["3", "-1", "1e9", "x", "0/../1", "9" * 5000, "0\0"])
def test_a_row_that_is_none(name):
    saved(table())
    with besieged(), pytest.raises(UserError) as caught:
        folder.pictures(RAW)(f"a.parquet/{name}")
    check_line(caught.value, "a.parquet")


def test_the_files_above_are_welcome_unchanged():
    tar(*GOOD)
    assert folder.read(RAW).images["file"].tolist() == [
        f"a.tar/{n}.png" for n in range(3)
    ]
    TAR.unlink()
    saved(table())
    assert folder.read(RAW).images["image_id"].tolist() == [
        f"{n}.png" for n in range(3)
    ]
