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
from sieges import repelled, tar_header

from benchmark.contracts.datasets import flickr8k
from benchmark.readers import archives

pytestmark = pytest.mark.usefixtures("field")

ZIP, TAR, MEMBER = Path("a.zip"), Path("a.tar.gz"), "a.txt"
TEXT = b"Some text.\n"


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> None:
    with zipfile.ZipFile(ZIP, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)


def link(name: str, target: str) -> tuple[zipfile.ZipInfo, bytes]:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return info, target.encode()


def spoilt(*changes: tuple[int, bytes]) -> None:
    """A zip archive of one member with bytes of its central entry changed, by their
    offset."""
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


def deflated_bomb() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = (
        b"".join(packer.compress(bytes(1 << 20)) for _ in range(48)) + packer.flush()
    )
    name, crc = MEMBER.encode(), 0
    sizes = struct.pack("<III", crc, len(packed), 48 << 20)
    head = b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 8, 0, 0) + sizes
    local = head + struct.pack("<HH", len(name), 0) + name + packed
    central = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + sizes
    central += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack(
        "<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0
    )
    ZIP.write_bytes(local + central + end)


ZIPS = {
    "an absolute name": lambda: zipped((MEMBER, TEXT), ("/etc/passwd", b"x")),
    "a name above": lambda: zipped((MEMBER, TEXT), ("../outside/x", b"x")),
    "a name of Windows": lambda: zipped((MEMBER, TEXT), ("..\\x", b"x")),
    "a link": lambda: zipped((MEMBER, TEXT), link("b.txt", "../outside/secret.txt")),
    "encrypted": lambda: spoilt((8, b"\x01\x00")),
    "size too large": lambda: spoilt((24, struct.pack("<I", 5_000_000))),
    "a bomb, deflated": deflated_bomb,
    "a bomb, in one go": lambda: bomb(zipfile.ZIP_DEFLATED),
    "a bomb, bzip2": lambda: bomb(zipfile.ZIP_BZIP2),
    "no zip": lambda: ZIP.write_bytes(b"<html>not found</html>"),
}


@pytest.mark.parametrize("case", ZIPS)
def test_a_hostile_zip(case):
    ZIPS[case]()
    repelled(lambda: archives.text(ZIP, MEMBER), ZIP.name)


def tarred(*members: tuple[tarfile.TarInfo, bytes]) -> None:
    with tarfile.open(TAR, "w:gz") as file:
        for info, content in members:
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))


def entry(
    name: str, content: bytes = TEXT, **facts: object
) -> tuple[tarfile.TarInfo, bytes]:
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


TARS = {
    "an absolute name": lambda: tarred(entry("/etc/a"), entry(MEMBER)),
    "a name above": lambda: tarred(entry("../outside/x"), entry(MEMBER)),
    "a link": special(tarfile.SYMTYPE),
    "a hard link": special(tarfile.LNKTYPE),
    "a device": special(tarfile.CHRTYPE),
    "a bomb": lambda: zeros(48, tar_header(MEMBER, 48 << 20)),
    "name bomb": lambda: zeros(48, tar_header("a", 48 << 20, tarfile.GNUTYPE_LONGNAME)),
    "facts bomb": lambda: zeros(48, tar_header("a", 48 << 20, tarfile.XHDTYPE)),
    "size beyond end": lambda: zeros(0, tar_header(MEMBER, 1 << 40) + bytes(512)),
    "names of names": lambda: zeros(
        0, tar_header("a", 1, tarfile.GNUTYPE_LONGNAME) * 5000
    ),
    "cut off": lambda: (
        tarred(entry(MEMBER, TEXT * 9000)) or TAR.write_bytes(TAR.read_bytes()[:60])
    ),
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
    with archives.unzipped(ZIP) as opened:
        assert opened.namelist() == ["folder/", "folder/b.txt", MEMBER]


# Pictures and annotations that are read from archives ---------------------------------


def test_a_picture_that_is_a_bomb():
    zipped(("Flicker8k_Dataset/a.jpg", bytes(48 << 20)))
    ZIP.rename(flickr8k.IMAGE_ZIP)
    open_picture = flickr8k.pictures(Path())
    repelled(lambda: open_picture("a.jpg"), flickr8k.IMAGE_ZIP, "a.jpg")
    for name in ("../a.jpg", "/etc/passwd", "b.jpg", "a\0.jpg", "\ud800"):
        repelled(lambda name=name: open_picture(name), flickr8k.IMAGE_ZIP)
