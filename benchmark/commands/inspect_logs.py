"""Logs that Inspect (inspect_ai) writes, as results of queries.

    NAME.eval    a zip archive, with `status` in header.json and scores in summaries.json
    NAME.json    one object, with status, eval and samples

A sample is a query. Of several scorers FILE:SCORER names one, and FILE:SCORER-KEY a
number of a scorer that gives several. Values count as in Inspect: C, "yes" and true are
1, P is 0.5, and I, N, "no" and false are 0. A query has the mean over its epochs: they
repeat one model, and are no trainings.

Nothing of a log is unpickled or extracted, and sizes are bounded before memory is
taken. Inspect packs the members of an archive by zstandard, which pyarrow unpacks.

Source: https://inspect.aisi.org.uk/eval-logs.html, and logs of inspect_ai 0.3.285.
"""

import os
import struct
import zlib
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

import pandas as pd
import pyarrow as pa
from pydantic import BaseModel

from benchmark.core import files
from benchmark.core.errors import LONGEST, UserError, checked, short
from benchmark.features.embedding_files import MOST_TEXT, TABLES
from benchmark.readers import archives

ARCHIVE, OBJECT = ".eval", ".json"
ENDINGS = (ARCHIVE, OBJECT)
HEADER, SUMMARIES = "header.json", "summaries.json"
ZSTANDARD = 93  # what zip archives call this compression
SIGNATURE = b"PK\x03\x04"
# before the bytes of a member: signature, lengths of its name and of an extra field
LOCAL_HEADER = struct.Struct("<4s22xHH")
FINISHED = "success"
MEAN = "mean"
LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
UNSCORED = "no score"  # in the place of a number
CONVERT = "run: inspect log convert LOG --to json --output-dir FOLDER"
RETRY = "run: inspect eval-retry LOG"


class Config(BaseModel):
    epochs_reducer: list[str] | None = None


class Evaluation(BaseModel):
    config: Config = Config()


class Header(BaseModel):
    """What a log says of the whole evaluation."""

    status: str  # started, success, cancelled or error
    eval: Evaluation


class Score(BaseModel):
    value: Any  # a letter, a truth value, a number, or a mapping or list of these


class Sample(BaseModel):
    """One sample in one epoch, from 1."""

    id: int | str
    epoch: int = 1
    scores: dict[str, Score] | None = None  # by scorer


class Log(BaseModel):
    """What is read of a log."""

    header: Header
    samples: list[Sample]


def as_results(path: Path) -> pd.DataFrame:
    """A row for each sample and scorer: query, value and metric. What is no number
    stays as a text, since another scorer may be asked for. Raises UserError for a file
    that is no log, a log that is not finished, and a sample without scores."""
    log = read_log(path)
    if log.header.status != FINISHED:
        raise _unfinished(path, log.header.status)
    _check_epochs(path, log)
    values: dict[tuple[str, str], list[float | str]] = {}
    metrics: dict[str, None] = {}
    numbers = [_numbers_of(path, sample) for sample in log.samples]
    for of_sample in numbers:
        metrics |= dict.fromkeys(of_sample)
    for sample, of_sample in zip(log.samples, numbers, strict=True):
        for metric in metrics:
            value = of_sample.get(metric, UNSCORED)
            values.setdefault((metric, str(sample.id)), []).append(value)
    rows = []
    for (metric, query), of_epochs in values.items():
        rows.append({"query": query, "value": _mean(of_epochs), "metric": metric})
    return pd.DataFrame(rows)


def read_log(path: Path) -> Log:
    """Raises UserError for a file that is none, or too large."""
    if path.suffix.lower() == ARCHIVE:
        header, samples = _of_archive(path)
    else:
        header = _of_object(path)
        samples = header.get("samples")
    if not samples:
        raise UserError(
            f"{path}: samples",
            expected="scores of each sample",
            found="none",
            do="evaluate again, without --no-log-samples",
        )
    return checked(Log, {"header": header, "samples": samples}, str(path))


# Files --------------------------------------------------------------------------------


def _of_archive(path: Path) -> tuple[Any, Any]:
    """What the header and the summaries of an archive hold."""
    parts = []
    with (
        files.readable(path, "a log of Inspect", "correct the path"),
        files.opened(path) as file,
        files.readable(path, "a log of Inspect", CONVERT),
        archives.unzipped(path) as zipped,
    ):
        if HEADER not in zipped.NameToInfo:
            raise _unfinished(path, f"no {HEADER}")
        for member in (HEADER, SUMMARIES):
            where = f"{path}: {member}"
            text = _member(file, zipped, member, where).decode()
            parts.append(files.parse_json(text, where, CONVERT, with_nan=True))
    return tuple(parts)


def _member(file: BinaryIO, zipped: ZipFile, name: str, where: str) -> bytes:
    """The bytes of a member. Raises errors of zipfile for damaged bytes."""
    info = zipped.getinfo(name)
    if info.compress_type != ZSTANDARD:  # which zipfile reads from Python 3.14 on
        return archives.read_member(zipped, info, where, MOST_TEXT)
    file.seek(info.header_offset)
    fields = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    signature, length_of_name, length_of_extra = fields
    if signature != SIGNATURE:
        raise BadZipFile("no member where the archive has one")
    file.seek(length_of_name + length_of_extra, os.SEEK_CUR)
    rest = os.fstat(file.fileno()).st_size - file.tell()
    if info.compress_size > rest:
        raise BadZipFile("a member that reaches beyond the end")
    allowed = files.allowance(info.compress_size, MOST_TEXT)
    if max(info.compress_size, info.file_size) > allowed:
        raise files.too_large(where, allowed)
    packed = pa.BufferReader(file.read(info.compress_size))
    with pa.CompressedInputStream(packed, "zstd") as stream:
        content = files.bounded(stream, allowed, where)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise BadZipFile("a member of another size or checksum")
    return content


def _of_object(path: Path) -> dict:
    """The object of a .json file. Raises UserError for one that is no log."""
    with files.readable(path, "a log of Inspect", "correct the path"):
        with files.opened(path) as file:
            if os.fstat(file.fileno()).st_size > MOST_TEXT:
                convert = CONVERT.replace("json", "eval")
                raise files.too_large(path, MOST_TEXT).but(do=convert)
            text = files.bounded(file, MOST_TEXT, path).decode("utf-8-sig")
        log = files.parse_json(text, path, "correct the file", with_nan=True)
    if not isinstance(log, dict) or "eval" not in log:
        advice = "means, as in results of MTEB, cannot be judged: write query and "
        advice += "value of each query in a .csv, or one object per line in a .jsonl"
        expected = f"a log of Inspect, or a row per query ({', '.join(TABLES)})"
        raise UserError(path, expected, "another .json file", advice)
    return log


# Checks -------------------------------------------------------------------------------


def _unfinished(path: Path, found: str) -> UserError:
    return UserError(f"{path}: status", expected=FINISHED, found=found, do=RETRY)


def _check_epochs(path: Path, log: Log) -> None:
    """Raise UserError for a sample that is not once in each epoch, and for epochs that
    are not reduced by their mean."""
    epochs_of: dict[str, list[int]] = {}
    for sample in log.samples:
        epochs_of.setdefault(str(sample.id), []).append(sample.epoch)
    epochs = sorted({sample.epoch for sample in log.samples})
    for query, of_query in epochs_of.items():
        if sorted(of_query) != epochs:
            raise UserError(
                f"{path}: sample {query}",
                expected=f"each of {len(epochs)} epochs once",
                found=f"{len(of_query)} samples",
                do=RETRY,
            )
    reducers = log.header.eval.config.epochs_reducer or [MEAN]
    if len(epochs) > 1 and reducers != [MEAN]:
        raise UserError(
            f"{path}: epochs_reducer",
            expected=MEAN,
            found=", ".join(reducers),
            do="write query and value of each query in a .csv",
        )


# Values -------------------------------------------------------------------------------


def _numbers_of(path: Path, sample: Sample) -> dict[str, float | str]:
    """The values of a sample by metric."""
    if not sample.scores:
        raise UserError(
            f"{path}: sample {sample.id}, epoch {sample.epoch}",
            expected="scores",
            found="none",
            do=f"{RETRY}, or leave the sample out on both sides",
        )
    values = []
    for scorer, score in sample.scores.items():
        if isinstance(score.value, dict):
            for key, value in score.value.items():
                values.append((f"{scorer}-{key}", value))
        else:
            values.append((scorer, score.value))
    numbers = {}
    for metric, value in values:
        if metric in numbers:
            raise UserError(
                f"{path}: sample {sample.id}, epoch {sample.epoch}",
                expected="one value of each metric",
                found=f"two of {metric}",
                do="write query and value of each query in a .csv",
            )
        numbers[metric] = number_of(value)
    return numbers


def number_of(value: object) -> float | str:
    """What a value counts in Inspect; a text for what is no finite number."""
    if isinstance(value, str):
        return _number_of_text(value)
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:  # of a whole number beyond 1e308
            return UNSCORED
        return number if isfinite(number) else UNSCORED
    return short(value)


def _number_of_text(text: str) -> float | str:
    known = LETTERS | WORDS
    for spelling in (text, text.lower()):
        if spelling in known:
            return known[spelling]
    try:
        number = float(text)
    except ValueError:
        return text[:LONGEST]
    return number if isfinite(number) else UNSCORED


def _mean(values: Sequence[float | str]) -> float | str:
    """The first text, if there is one."""
    for value in values:
        if isinstance(value, str):
            return value
    return fmean(values)
