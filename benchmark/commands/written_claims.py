"""Claims that an author writes beside their results, in a file such as claims.yaml.

    title: What our article says
    results:
      ours: [results/ours_0.csv, results/ours_1.csv]   # one file, or one for each seed
      baseline: results/baseline.parquet
    claims:
      - {better: ours, than: baseline, metric: rsum, statement: "Ours is better."}
      - {not_better: ours_large, than: ours}
      - {alike: [ours, ours_again]}
      - {result: ours, printed: "77.82", metric: i2t_r1}

Paths are relative to the file. Claims that compare two results are judged together: p is
adjusted over them by Holm. `rematch judge --claims` and `pytest --claims` read it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from benchmark.commands.judged_results import Question
from benchmark.commands.result_files import (
    METRIC,
    OWN,
    Reading,
    Result,
    file_and_preset,
    read_files,
    table_of,
)
from benchmark.core.errors import Strict, UserError, checked, entry
from benchmark.core.files import is_file, read_yaml
from benchmark.core.names import Name, inside
from benchmark.stats.claim_kinds import ALIKE, NOT_BETTER, ORDERED, ClaimKind

FORMS = ("better", "not_better", "alike", "printed")  # keys of what is claimed
KEYS = (METRIC, "printed", "first_rank", "scale")  # that are options of `judge`, too


class ResultOfFile(Strict):
    """Where a result is, and how it is read, as the options of `rematch judge` say."""

    files: list[str] = Field(min_length=1)  # one for each seed
    first_rank: int | None = Field(None, strict=True, ge=0, le=1)
    scale: float | None = Field(None, strict=True, gt=0, allow_inf_nan=False)
    layer: str = OWN


class WrittenClaim(Strict):
    """A statement on results of the file, by exactly one of FORMS."""

    statement: str = ""  # "": what is compared
    better: Name | None = None  # is better than `than`
    not_better: Name | None = None  # is no better than `than`, by the margin
    than: Name | None = None
    alike: tuple[Name, Name] | None = None  # do not differ, by the margin
    result: Name | None = None  # is compatible with what is `printed`
    printed: str | None = None
    metric: str | None = None  # None: that of `rematch judge`
    margin: float | None = Field(None, strict=True, ge=0, allow_inf_nan=False)

    @field_validator("printed", mode="before")
    @classmethod
    def _keeps_zeros(cls, value: object) -> object:
        if isinstance(value, int | float):
            raise ValueError("a text in quotes, whose zeros count")
        return value

    @model_validator(mode="after")
    def _has_one_form(self) -> Self:
        forms = [name for name in FORMS if getattr(self, name) is not None]
        if len(forms) != 1:
            raise ValueError(f"one of {', '.join(FORMS)}")
        companions = {"than": ("better", "not_better"), "result": ("printed",)}
        for name, wanting in companions.items():
            if (getattr(self, name) is not None) != (forms[0] in wanting):
                raise ValueError(
                    f"`{name}` beside {' or '.join(wanting)}, and nowhere else"
                )
        return self

    @property
    def kind(self) -> ClaimKind:
        if self.alike or self.printed:
            return ALIKE
        return ORDERED if self.better else NOT_BETTER

    @property
    def results(self) -> tuple[str, ...]:
        """The names of what it is about, its first one first."""
        if self.alike:
            return self.alike
        if self.printed is not None:
            return (self.result,)
        return (self.better or self.not_better, self.than)


class ClaimsFile(Strict):
    title: str = ""
    results: dict[Name, ResultOfFile]
    claims: list[WrittenClaim] = Field(min_length=1)

    @field_validator("results", mode="before")
    @classmethod
    def _in_short(cls, value: object) -> object:
        """A path, or a list of paths, stands for the files alone."""
        if not isinstance(value, Mapping):
            return value
        spelt_out = {}
        for name, result in value.items():
            if isinstance(result, str):
                result = {"files": [result]}
            elif isinstance(result, list):
                result = {"files": result}
            spelt_out[name] = result
        return spelt_out


@dataclass(frozen=True)
class ClaimOnFiles:
    """A claim with the results that it is about."""

    written: WrittenClaim
    results: tuple[Result, ...]
    place: str  # of the claim, for messages

    @property
    def question(self) -> Question:
        return Question(
            kind=self.written.kind,
            metric=self.written.metric,
            margin=self.written.margin,
        )


@contextmanager
def corrected_in(place: str) -> Iterator[None]:
    """Errors about a key of the file name it and its place, not an option."""
    try:
        yield
    except UserError as error:
        key = error.where.removeprefix("--").replace("-", "_")
        if key not in KEYS:
            raise
        advice = f"correct `{METRIC}` of the claim" if key == METRIC else error.do
        raise error.but(where=f"{place}: {key}", do=advice) from error


def read_claims_file(path: Path) -> ClaimsFile:
    """What a file states. Raises UserError for one that is no file of claims."""
    return checked(ClaimsFile, read_yaml(path), str(path))


def check_is_inside(file: ClaimsFile, path: Path) -> None:
    """Raises UserError for results that are not in the folder of the file at `path`,
    and for links out of it."""
    for name, result in file.results.items():
        where, advice = f"{path}: results.{name}", "copy it beside the file"
        for given in result.files:
            file, _ = file_and_preset(given)
            inside(file, where, advice)
            real = (path.parent / file).resolve()
            if not real.is_relative_to(path.parent.resolve()):
                raise UserError(where, "a path inside the folder", given, advice)


def read_claims(path: Path) -> list[ClaimOnFiles]:
    """The claims of a file with their results. Raises UserError for a file that is none,
    a name without a result, and a result that cannot be read."""
    file = read_claims_file(path)
    of_name = {}
    for claim in file.claims:
        for name in claim.results:
            advice = f"name one of `results` in {path}"
            of_name[name] = entry(file.results, name, f"{path}: result", advice)
    table_of.cache_clear()  # files may have changed
    claims = []
    for number, claim in enumerate(file.claims):
        if len(set(claim.results)) < len(claim.results):
            raise UserError(
                f"{path}: claims",
                expected="two results",
                found=f"{claim.results[0]} twice",
                do="name another one",
            )
        place = f"{path}: claims[{number}]"
        results = []
        with corrected_in(place):
            for name in claim.results:
                results.append(_read(path, name, of_name[name], claim.metric))
        claims.append(ClaimOnFiles(claim, tuple(results), place))
    return claims


def _read(path: Path, name: str, result: ResultOfFile, metric: str | None) -> Result:
    """A result, with only the directions of the metric. Raises UserError if one text
    names several files, or if its files name several presets."""
    where = f"{path}: results.{name}"
    files = []
    presets: set[str] = set()
    for each in result.files:
        text, preset = file_and_preset(each)
        file = str(path.parent / text)
        if "," in text and not is_file(file):
            raise UserError(
                where,
                expected="the path of one file in each text",
                found=each,
                do="write a list, as in [a.csv, b.csv]",
            )
        files.append(file)
        presets |= {preset} - {""}
    if len(presets) > 1:
        raise UserError(
            where,
            expected="one preset for all its files",
            found=", ".join(sorted(presets)),
            do="name one",
        )
    reading = Reading(first_rank=result.first_rank, scale=result.scale)
    given = ",".join(str(path.parent / each) for each in result.files)
    preset = "".join(presets)
    read = read_files(given, files, preset, result.layer, metric, reading)
    return replace(read, name=name)
