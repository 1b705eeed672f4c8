"""Archives that are made to break out, to overflow or to mislead: one line each."""

import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from sieges import OUTSIDE, repelled

from datasets import flickr8k, flickr30k_entities
from datasets.shared import archives

pytestmark = pytest.mark.usefixtures("field")

ZIP, TAR, MEMBER = Path("a.zip"), Path("a.tar.gz"), "a.txt"
TEXT = b"Some text.\n"


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes], pack: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(ZIP, "w", pack) as file:
        for name, content in members:
            file.writestr(name, content)


def link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def spoilt(*changes: tuple[int, bytes]) -> None:
    """A zip archive of one member with bytes of its central entry changed, by their offset."""
    zipped((MEMBER, TEXT))
    data = bytearray(ZIP.read_bytes())
    start = data.index(b"PK\x01\x02")
    for offset, content in changes:
        data[start + offset : start + offset + len(content)] = content
    ZIP.write_bytes(data)


def bomb(pack: int) -> None:
    """Megabytes of nothing, packed."""
    with zipfile.ZipFile(ZIP, "w", pack) as file:
        info = zipfile.ZipInfo(MEMBER)
        info.compress_type = pack
        with file.open(info, "w") as member:
            for _ in range(48):
                member.write(bytes(1 << 20))


def liar() -> None:
    """More than it declares: the sizes in both headers are one byte."""
    spoilt((24, struct.pack("<I", 1)))


def deflated_bomb() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(48)) + packer.flush()
    name, crc = MEMBER.encode(), 0
    sizes = struct.pack("<III", crc, len(packed), 48 << 20)
    head = b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 8, 0, 0) + sizes
    local = head + struct.pack("<HH", len(name), 0) + name + packed
    central = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + sizes
    central += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    ZIP.write_bytes(local + central + end)


ZIPS = {
    "an absolute name": lambda: zipped((MEMBER, TEXT), ("/etc/passwd", b"x")),
    "a name above": lambda: zipped((MEMBER, TEXT), ("../outside/x", b"x")),
    "a name above, deeper": lambda: zipped((MEMBER, TEXT), ("a/b/../../../x", b"x")),
    "a name of Windows": lambda: zipped((MEMBER, TEXT), ("..\\x", b"x")),
    "a drive of Windows": lambda: zipped((MEMBER, TEXT), ("C:\\x", b"x")),
    "an absolute name of Windows": lambda: zipped((MEMBER, TEXT), ("\\x", b"x")),
    "a link": lambda: zipped((MEMBER, TEXT), link("b.txt", "../outside/secret.txt")),
    "a link in its place": lambda: zipped(link(MEMBER, "outside/secret.txt")),
    "encrypted": lambda: spoilt((8, b"\x01\x00")),
    "encrypted strongly": lambda: spoilt((8, b"\x41\x00")),
    "an unknown method": lambda: spoilt((10, b"\x63\x00")),
    "a method that was never used": lambda: spoilt((10, b"\x06\x00")),
    "a size that is too small": liar,
    "a size that is too large": lambda: spoilt((24, struct.pack("<I", 5_000_000))),
    "a packed size that is too large": lambda: spoilt((20, struct.pack("<I", 1 << 31))),
    "another checksum": lambda: spoilt((16, bytes(4))),
    "an offset beyond": lambda: spoilt((42, struct.pack("<I", 1 << 31))),
    "a name that is no UTF-8": lambda: spoilt((8, b"\x00\x08"), (46, b"\xff")),
    "a bomb, deflated": deflated_bomb,
    "a bomb, in one go": lambda: bomb(zipfile.ZIP_DEFLATED),
    "a bomb, bzip2": lambda: bomb(zipfile.ZIP_BZIP2),
    "no zip": lambda: ZIP.write_bytes(b"<html>not found</html>"),
    "an end alone": lambda: ZIP.write_bytes(b"PK\x05\x06" + bytes(18)),
    "a wrong end": lambda: ZIP.write_bytes(b"PK\x05\x06" + b"\xff" * 18),
    "empty": lambda: ZIP.write_bytes(b""),
    "UTF-16": lambda: zipped((MEMBER, "text".encode("utf-16"))),
    "zero bytes in a name": lambda: (
        zipped(("a.txt\0.jpg", TEXT), ("b", b""))
        or ZIP.write_bytes(ZIP.read_bytes().replace(b"a.txt", b"\0.txt"))
    ),
}


@pytest.mark.parametrize("case", ZIPS)
def test_a_hostile_zip(case):
    ZIPS[case]()
    repelled(lambda: archives.text(ZIP, MEMBER), ZIP.name)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_a_name_twice():
    zipped((MEMBER, TEXT), (MEMBER, b"Other."))
    error = repelled(lambda: archives.text(ZIP, MEMBER), ZIP.name)
    assert error.expected == "every name once"


def tarred(*members: tuple[tarfile.TarInfo, bytes]) -> None:
    with tarfile.open(TAR, "w:gz") as file:
        for info, content in members:
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))


def entry(name: str, content: bytes = TEXT, **facts: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    for key, value in facts.items():
        setattr(info, key, value)
    return info, content


def special(kind: bytes, target: str = "../outside/secret.txt") -> Callable[[], None]:
    return lambda: tarred(entry(MEMBER, b"", type=kind, linkname=target))


def zeros(count: int, head: bytes) -> None:
    """A header, and then megabytes of nothing."""
    with gzip.open(TAR, "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(count):
            file.write(bytes(1 << 20))


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def negative() -> bytes:
    """A header with a size of -512, in GNU's base 256."""
    data = bytearray(header(MEMBER, 0))
    data[124:136] = b"\xff" * 10 + b"\xfe\x00"
    data[148:156] = b" " * 8
    data[148:156] = f"{sum(data):06o}\0 ".encode()
    return bytes(data)


def sparse() -> bytes:
    """A header of a sparse file that is a terabyte large and holds nothing."""
    data = bytearray(header(MEMBER, 0, tarfile.GNUTYPE_SPARSE))
    data[386:482] = f"{0:011o}\0{0:011o}\0".encode().ljust(96, b"\0")
    data[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    data[148:156] = b" " * 8
    data[148:156] = f"{sum(data):06o}\0 ".encode()
    return bytes(data) + bytes(1024)


TARS = {
    "an absolute name": lambda: tarred(entry("/etc/a"), entry(MEMBER)),
    "a name above": lambda: tarred(entry("../outside/x"), entry(MEMBER)),
    "a name above, in its place": lambda: tarred(entry(f"../outside/{MEMBER}")),
    "a link": special(tarfile.SYMTYPE),
    "a hard link": special(tarfile.LNKTYPE),
    "a pipe": special(tarfile.FIFOTYPE),
    "a device": special(tarfile.CHRTYPE),
    "a link beside": lambda: tarred(
        entry(MEMBER), entry("b", b"", type=tarfile.SYMTYPE, linkname="../outside")
    ),
    "a folder in its place": lambda: tarred(entry(MEMBER, b"", type=tarfile.DIRTYPE)),
    "a name twice": lambda: tarred(entry(MEMBER), entry(MEMBER, b"Other.")),
    "a name twice, in folders": lambda: tarred(entry(f"a/{MEMBER}"), entry(f"b/{MEMBER}")),
    "a bomb": lambda: zeros(48, header(MEMBER, 48 << 20)),
    "a bomb before it": lambda: zeros(48, header("before.txt", 48 << 20)),
    "a bomb of a name": lambda: zeros(48, header("a", 48 << 20, tarfile.GNUTYPE_LONGNAME)),
    "a bomb of facts": lambda: zeros(48, header("a", 48 << 20, tarfile.XHDTYPE)),
    "a size beyond the end": lambda: zeros(0, header(MEMBER, 1 << 40) + bytes(512)),
    "a negative size": lambda: zeros(0, negative() + bytes(1024)),
    "a sparse terabyte": lambda: zeros(0, sparse()),
    "names of names": lambda: zeros(0, header("a", 1, tarfile.GNUTYPE_LONGNAME) * 5000),
    "no tar": lambda: TAR.write_bytes(gzip.compress(b"<html>not found</html>" * 100)),
    "no gzip": lambda: TAR.write_bytes(b"<html>not found</html>"),
    "cut off": lambda: tarred(entry(MEMBER, TEXT * 9000)) or TAR.write_bytes(TAR.read_bytes()[:60]),
    "empty": lambda: TAR.write_bytes(b""),
    "UTF-16": lambda: tarred(entry(MEMBER, "text".encode("utf-16"))),
}


@pytest.mark.parametrize("case", TARS)
def test_a_hostile_tar(case):
    TARS[case]()
    repelled(lambda: archives.text(TAR, MEMBER), TAR.name)


def test_what_is_welcome():
    zipped(("folder/", b""), ("folder/b.txt", b""), (MEMBER, TEXT))
    folder = entry("./", b"", type=tarfile.DIRTYPE)
    tarred(folder, entry(f"./{MEMBER}"), entry(f"./._{MEMBER}", b"fork"))
    assert archives.text(ZIP, MEMBER) == archives.text(TAR, MEMBER) == TEXT.decode()
    assert archives.members(ZIP) == ["folder/", "folder/b.txt", MEMBER]


# Pictures and annotations that are read from archives -----------------------------------------


def picture() -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (20, 20)).save(content, "JPEG")
    return content.getvalue()


@pytest.mark.parametrize(
    "bad", [("../outside/secret.txt", b"x"), link("Flicker8k_Dataset/b.jpg", "../outside")]
)
def test_pictures_of_a_hostile_zip(bad):
    zipped(("Flicker8k_Dataset/a.jpg", picture()), bad)
    ZIP.rename(flickr8k.IMAGE_ZIP)
    repelled(lambda: flickr8k.pictures(Path()), flickr8k.IMAGE_ZIP)


def test_a_picture_that_is_a_bomb():
    zipped(("Flicker8k_Dataset/a.jpg", bytes(48 << 20)))
    ZIP.rename(flickr8k.IMAGE_ZIP)
    open_picture = flickr8k.pictures(Path())
    repelled(lambda: open_picture("a.jpg"), flickr8k.IMAGE_ZIP, "a.jpg")
    for name in ("../a.jpg", "/etc/passwd", "b.jpg", "a\0.jpg", "\ud800"):
        repelled(lambda name=name: open_picture(name), flickr8k.IMAGE_ZIP)


@pytest.mark.parametrize("case", ["a link", "a name above", "encrypted", "a bomb, deflated"])
def test_a_hostile_release_of_entities(case):
    for name in flickr30k_entities.LISTS.values():
        Path(name).write_text({"train.txt": "1", "val.txt": "2", "test.txt": "3"}[name])
    ZIPS[case]()
    ZIP.rename(flickr30k_entities.ARCHIVE)
    repelled(lambda: flickr30k_entities.read(Path()), flickr30k_entities.ARCHIVE)
    assert (OUTSIDE / "secret.txt").read_text() == "secret"
