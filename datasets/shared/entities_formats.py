"""The two file formats of Flickr30k Entities: sentences with marked phrases, and boxes in XML.

A sentence marks its phrases as `[/EN#<chain>/<type>/<type> <words>]`. All phrases of an image with
the same chain name the same things; chain 0 names nothing visible. The XML of an image is PASCAL's:
boxes are whole pixels, counted from 1, and include their last row and column. Here boxes are
half-open (x0 = xmin - 1, x1 = xmax), so that width = x1 - x0, and the intersection over union of
two boxes is that of the inclusive originals.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from datasets import DataError

LONGEST_LINE = 20_000  # characters of a sentence with its markup
MOST_TAGS = 20_000  # of the XML of one image
NOT_VISUAL = "0"  # the chain of phrases that name nothing in the picture
AGAIN = "fetch the release again"

PHRASE = re.compile(r"\[/EN#(?P<chain>\d+)(?:/[^\s\]]*)? (?P<words>\s*[^\s\]][^\]]*)\]")
OPENING = re.compile(r"\[/EN#\S*")
SIDES = ("xmin", "ymin", "xmax", "ymax")


class Phrase(NamedTuple):
    """Words of a sentence, and the number (from the file, as text) of the things they name."""

    words: str
    chain: str


class Sentence(NamedTuple):
    """A sentence without its markup, and its phrases in their order."""

    text: str
    phrases: tuple[Phrase, ...]


class Box(NamedTuple):
    """Half-open pixels."""

    x0: int
    y0: int
    x1: int
    y1: int


@dataclass(frozen=True)
class Annotation:
    """The content of the XML of one image."""

    unions: dict[str, Box]  # chain -> the smallest box around all boxes of the chain
    boxless: frozenset[str]  # chains marked as the whole scene, or as without a box
    clipped: int  # boxes that reached one pixel over the border of the picture

    @property
    def chains(self) -> frozenset[str]:
        """Everything that has an object."""
        return self.boxless | self.unions.keys()


def parse_sentence(line: str, where: str) -> Sentence:
    """One line of Sentences/<image>.txt; `where` starts the message of a `DataError`."""
    if len(line) > LONGEST_LINE:  # the patterns take the square of its length
        found = f"{len(line)} characters"
        raise DataError(where, f"at most {LONGEST_LINE} characters", found, AGAIN)
    text = PHRASE.sub(lambda match: match["words"], line)
    wrong = OPENING.search(text)
    if wrong:
        expected = "[/EN#number/type words], closed and without other markup inside"
        raise DataError(where, expected, f"{wrong[0]:.40}", AGAIN)
    if not text.strip():
        raise DataError(where, "a sentence", "a blank line", AGAIN)
    phrases = (Phrase(match["words"].strip(), match["chain"]) for match in PHRASE.finditer(line))
    return Sentence(text, tuple(phrases))


def parse_annotation(text: str, where: str) -> Annotation:
    """Annotations/<image>.xml; `where` starts the message of a `DataError`."""
    root = _root(text, where)
    size = _size(root, where)
    boxes: dict[str, list[Box]] = defaultdict(list)
    named, clipped = set(), 0
    for number, thing in enumerate(root.findall("object"), start=1):
        where_object = f"{where}: object {number}"
        chains = _chains(thing, where_object)
        named.update(chains)
        for bounds in _bounds(thing, where_object):
            box = _inside(bounds, size, where_object)
            clipped += box != bounds
            for chain in chains:
                boxes[chain].append(box)
    unions = {chain: _union(members) for chain, members in boxes.items()}
    return Annotation(unions, frozenset(named - unions.keys()), clipped)


def _root(text: str, where: str) -> Element:
    # Entities could expand a small file to a huge one; text with zero bytes may be UTF-16, in which
    # they would not be recognised.
    if any(mark in text for mark in ("<!DOCTYPE", "<!ENTITY", "\0")):
        expected = "XML without DOCTYPE, ENTITY and zero bytes, as in the release"
        raise DataError(where, expected, "one of them", AGAIN)
    if text.count("<") > MOST_TAGS:  # elements inside one another: taken apart by recursion
        raise DataError(where, f"at most {MOST_TAGS} tags", text.count("<"), AGAIN)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise DataError(where, "whole XML", f"damage ({error})", AGAIN) from error


def _size(root: Element, where: str) -> tuple[int, int]:
    size = root.find("size")
    if size is None:
        raise DataError(f"{where}: size", "the picture's width and height", "nothing", AGAIN)
    return _whole(size, "width", where), _whole(size, "height", where)


def _chains(thing: Element, where: str) -> list[str]:
    chains = [(name.text or "").strip() for name in thing.findall("name")]
    if not chains or not all(chain.isdecimal() for chain in chains):
        raise DataError(f"{where}: name", "one or more chain numbers", chains, AGAIN)
    return chains


def _bounds(thing: Element, where: str) -> list[Box]:
    """The boxes of an object; none if it is marked as having none."""
    elements = thing.findall("bndbox")
    if not elements and thing.find("scene") is None and thing.find("nobndbox") is None:
        raise DataError(where, "a bndbox, or scene or nobndbox", "neither", AGAIN)
    return [_half_open(element, where) for element in elements]


def _half_open(bounds: Element, where: str) -> Box:
    xmin, ymin, xmax, ymax = (_whole(bounds, side, where) for side in SIDES)
    if xmax < xmin or ymax < ymin:
        found = f"xmin ymin xmax ymax {xmin} {ymin} {xmax} {ymax}"
        raise DataError(f"{where}: box", "a box that ends after it begins", found, AGAIN)
    return Box(xmin - 1, ymin - 1, xmax, ymax)


def _whole(parent: Element, tag: str, where: str) -> int:
    text = parent.findtext(tag)
    try:
        return int(text)
    except (TypeError, ValueError):
        found = f"{text!r:.40}"
        raise DataError(f"{where}: {tag}", "a whole number", found, AGAIN) from None


def _inside(box: Box, size: tuple[int, int], where: str) -> Box:
    """The box clipped to the picture. Raises DataError for one that reaches more than a pixel
    outside, which rounding cannot explain."""
    width, height = size
    x0, y0, x1, y1 = box
    clipped = Box(max(x0, 0), max(y0, 0), min(x1, width), min(y1, height))
    farthest = max(abs(a - b) for a, b in zip(box, clipped, strict=True))
    if farthest > 1 or clipped.x0 >= clipped.x1 or clipped.y0 >= clipped.y1:
        found = f"xmin ymin xmax ymax {x0 + 1} {y0 + 1} {x1} {y1}"
        expected = f"a box within the picture of {width} x {height} pixels"
        raise DataError(f"{where}: box", expected, found, AGAIN)
    return clipped


def _union(boxes: list[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return Box(min(x0), min(y0), max(x1), max(y1))
