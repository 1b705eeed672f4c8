"""Logs of Inspect: made here with the members and keys that inspect_ai 0.3.285 writes
for `eval(Task(dataset, scorer), model="mockllm/model", log_format=...)`, and by
inspect_ai itself where it is installed."""

import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from refusals import refused

from benchmark.__main__ import main
from benchmark.commands.inspect_logs import (
    ENDINGS,
    HEADER,
    SUMMARIES,
    UNSCORED,
    number_of,
)
from benchmark.commands.result_files import (
    Kind,
    Reading,
    Result,
    read_table,
    table_of,
)

SAMPLES = 200
ZSTANDARD = 93


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table_of.cache_clear()


def header(status: str = "success", **config: object) -> dict:
    evaluation = {
        "eval_id": "e",
        "run_id": "r",
        "created": "2026-01-01T00:00:00+00:00",
        "task": "task",
        "task_id": "t",
        "dataset": {"samples": SAMPLES, "shuffled": False},
        "model": "mockllm/model",
        "config": {"epochs": 1, **config},
    }
    return {"version": 2, "status": status, "eval": evaluation, "plan": {}, "stats": {}}


def sample(number: int, values: Mapping[str, object], epoch: int = 1) -> dict:
    scores = {}
    for scorer, value in values.items():
        scores[scorer] = {"value": value, "answer": "a", "history": []}
    return {
        "id": f"q{number}",
        "epoch": epoch,
        "input": "which picture?",
        "target": "dog",
        "scores": scores,
        "metadata": {},
    }


def hits(share: float, scorer: str = "includes") -> list[dict]:
    samples = []
    for number in range(SAMPLES):
        letter = "C" if number < share * SAMPLES else "I"
        samples.append(sample(number, {scorer: letter}))
    return samples


def zip_of(members: Mapping[str, bytes]) -> bytes:
    """An archive whose members are packed by zstandard, as zipfile writes from Python
    3.14 on."""
    whole, directory = b"", b""
    for name, content in members.items():
        packed = pa.compress(content, codec="zstd", asbytes=True)
        crc = zlib.crc32(content)
        sizes = (crc, len(packed), len(content), len(name))
        shared = struct.pack("<HHHHHIIIHH", 63, 0, ZSTANDARD, 0, 33, *sizes, 0)
        start = struct.pack("<HHHII", 0, 0, 0, 0, len(whole))
        directory += b"PK\x01\x02" + struct.pack("<H", 63) + shared + start
        directory += name.encode()
        whole += b"PK\x03\x04" + shared + name.encode() + packed
    count = len(members)
    place = (count, count, len(directory), len(whole))
    return whole + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, *place, 0)


def archive(name: str, samples: Sequence[dict], head: dict | None = None) -> str:
    members = {
        f"samples/{each['id']}_epoch_{each['epoch']}.json": json.dumps(each).encode()
        for each in samples[:2]
    }
    members[SUMMARIES] = json.dumps(samples).encode()
    members[HEADER] = json.dumps(head or header()).encode()
    Path(name).write_bytes(zip_of(members))
    return name


def deflated(name: str, members: Mapping[str, str]) -> str:
    """As versions of Inspect before zstandard wrote it."""
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as file:
        for member, text in members.items():
            file.writestr(member, text)
    return name


def whole_object(name: str, samples: Sequence[dict], head: dict | None = None) -> str:
    log = (head or header()) | {"samples": list(samples)}
    Path(name).write_text(json.dumps(log))
    return name


def written(ending: str, samples: Sequence[dict], head: dict | None = None) -> str:
    write = archive if ending == ".eval" else whole_object
    return write(f"log{ending}", samples, head)


def read(name: str) -> Result:
    return read_table(name, "own", None, Reading())


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_sample_is_a_query_and_letters_are_hits(ending):
    result = read(written(ending, hits(0.6)))
    assert result.kind == Kind.HITS
    assert len(result.table) == SAMPLES
    assert result.table.to_numpy().mean() == pytest.approx(0.6)


def test_an_archive_of_an_older_inspect_is_read():
    members = {HEADER: json.dumps(header()), SUMMARIES: json.dumps(hits(0.3))}
    result = read(deflated("old.eval", members))
    assert result.table.to_numpy().mean() == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("C", 1),
        ("P", 0.5),
        ("I", 0),
        ("N", 0),
        (True, 1),
        (False, 0),
        ("Yes", 1),
        ("false", 0),
        ("0.25", 0.25),
        (-3, -3),
    ],
)
def test_values_count_as_in_inspect(value, number):
    name = whole_object("log.json", [sample(0, {"s": value}), sample(1, {"s": 7})])
    assert read(name).table[0].loc["i2t", "q0"] == number


@pytest.mark.parametrize("ending", ENDINGS)
def test_one_of_several_scorers_and_numbers_is_named(ending):
    samples = []
    for number in range(SAMPLES):
        values = {"length": number, "several": {"size": 2, "right": number % 2}}
        samples.append(sample(number, values))
    name = written(ending, samples)
    with refused(name, expected="FILE:METRIC", found="length, several-size"):
        read(name)
    assert read(f"{name}:length").table[0].max() == SAMPLES - 1
    assert read(f"{name}:several-right").kind == Kind.HITS
    with refused("other"):
        read(f"{name}:other")


def test_a_query_has_the_mean_of_its_epochs():
    samples = []
    for number in range(SAMPLES):
        samples.append(sample(number, {"s": "C"}, epoch=1))
        samples.append(sample(number, {"s": "I"}, epoch=2))
    result = read(whole_object("log.json", samples))
    assert result.kind == Kind.VALUES
    assert (result.table == 0.5).all(axis=None)
    head = header(epochs_reducer=["max"])
    with refused("epochs_reducer", expected="mean", found="max"):
        read(whole_object("reduced.json", samples, head))
    once = read(whole_object("once.json", samples[::2], head))  # nothing is reduced
    assert (once.table == 1.0).all(axis=None)
    with refused("sample q0", expected="2 epochs"):
        read(whole_object("less.json", samples[1:]))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("status", ["started", "cancelled", "error"])
def test_a_log_that_is_not_finished_is_refused(ending, status):
    with refused("status", found=status, do="eval-retry"):
        read(written(ending, hits(0.5), header(status)))


def test_an_archive_without_header_is_not_finished():
    with refused("run.eval", found=HEADER, do="eval-retry"):
        read(deflated("run.eval", {"_journal/start.json": "{}"}))


def test_a_sample_without_scores_is_named():
    samples = [*hits(0.5), sample(SAMPLES, {})]
    with refused(f"sample q{SAMPLES}, epoch 1", expected="scores", found="none"):
        read(whole_object("log.json", samples))
    with refused("samples", found="none", do="--no-log-samples"):
        read(whole_object("log.json", []))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "B", None, [1, 0]])
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_no_number_matters_only_to_its_scorer(ending, value):
    samples = [sample(0, {"odd": value, "s": 1}), sample(1, {"odd": 1, "s": 0})]
    name = written(ending, samples)
    with refused("value of query 'q0'", expected="number"):
        read(f"{name}:odd")
    assert read(f"{name}:s").kind == Kind.HITS


def test_a_scorer_that_a_sample_lacks_is_told():
    samples = [sample(0, {"a": 1, "b": 1}), sample(1, {"a": 1})]
    with refused("value of query 'q1'", found=UNSCORED):
        read(f"{whole_object('log.json', samples)}:b")


def test_a_json_file_that_is_no_log_is_refused():
    Path("means.json").write_text('{"scores": {"test": [{"ndcg_at_10": 0.5}]}}')
    with refused("means.json", expected="Inspect", do=".csv"):
        read("means.json")
    Path("broken.json").write_text('{"eval": {')
    with refused("broken.json", expected="JSON"):
        read("broken.json")
    for ending in ENDINGS:
        with refused(f"gone{ending}", found="nothing", do="path"):
            read(f"gone{ending}")


def test_two_logs_are_judged(capsys):
    better, worse = archive("a.eval", hits(0.8)), whole_object("b.json", hits(0.5))
    assert main(["judge", better, f"{worse}:includes", "--check"]) == 0
    assert "holds" in capsys.readouterr().out


# Hostile archives ---------------------------------------------------------------------


def spoilt(old: bytes, new: bytes) -> str:
    """An archive with bytes of its last member changed."""
    content = Path(archive("log.eval", hits(0.5))).read_bytes()
    start, _, end = content.rpartition(old)
    Path("log.eval").write_bytes(start + new + end)
    return "log.eval"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        zip_of({HEADER: b"{}"}),
        zip_of({HEADER: b"{}", SUMMARIES: b"[1]"}),
        zip_of({HEADER: b"[" * 100_000, SUMMARIES: b"[]"}),
        zip_of({HEADER: b'{"status": "success"}', SUMMARIES: b"[{}]"}),
    ],
)
def test_other_archives_are_one_line(content):
    Path("log.eval").write_bytes(content)
    with refused("log.eval"):
        read("log.eval")


def test_names_that_lead_outside_are_refused():
    Path("log.eval").write_bytes(zip_of({"../" + HEADER: b"{}", SUMMARIES: b"[]"}))
    with refused("log.eval", found="outside"):
        read("log.eval")
    assert [path.name for path in Path().iterdir()] == ["log.eval"]


def test_a_member_that_unpacks_to_much_is_refused():
    bomb = zip_of({HEADER: json.dumps(header()).encode(), SUMMARIES: bytes(1 << 25)})
    Path("log.eval").write_bytes(bomb)
    with refused(SUMMARIES, expected="bytes", found="more"):
        read("log.eval")
    declared = struct.pack("<I", 1 << 25)
    start, _, end = bomb.rpartition(declared)
    Path("log.eval").write_bytes(start + struct.pack("<I", 10) + end)
    with refused(SUMMARIES, expected="bytes", found="more"):
        read("log.eval")


def test_a_damaged_member_is_refused():
    with refused("log.eval", do="inspect log convert"):
        read(spoilt(b"PK\x03\x04", b"PK\x09\x09"))
    with refused("log.eval", do="inspect log convert"):
        read(spoilt(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"))


# Inspect itself -----------------------------------------------------------------------


def test_a_whole_number_beyond_all_floats_is_no_score():
    assert number_of(10**400) == UNSCORED
    assert number_of(10**300) == 1e300
    assert number_of(True) == 1.0
    assert number_of(float("inf")) == UNSCORED


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.filterwarnings("ignore")
def test_a_log_that_inspect_wrote_is_read(ending):
    reason = "inspect_ai is not installed: pip install inspect_ai"
    log = pytest.importorskip("inspect_ai.log", reason=reason)
    scorer = pytest.importorskip("inspect_ai.scorer", reason=reason)
    samples = []
    for number in range(3):
        scores = {"includes": scorer.Score(value="CPI"[number])}
        scores["several"] = scorer.Score(value={"size": number})
        of_sample = {"input": "i", "target": "t", "scores": scores}
        samples.append(log.EvalSample(id=f"q{number}", epoch=1, **of_sample))
    spec = log.EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="task",
        dataset=log.EvalDataset(),
        model="mockllm/model",
        config=log.EvalConfig(),
    )
    whole = log.EvalLog(status="success", eval=spec, samples=samples)
    log.write_eval_log(whole, f"log{ending}")
    assert read(f"log{ending}:includes").table[0].tolist() == [1, 0.5, 0]
    assert read(f"log{ending}:several-size").table[0].tolist() == [0, 1, 2]


def test_a_scorer_and_a_number_of_another_may_not_share_a_name():
    samples = [sample(0, {"a": {"b": 1}, "a-b": 0})]
    with refused("sample q0", found="two of a-b"):
        read(whole_object("log.json", samples))


def test_an_epoch_that_comes_twice_is_refused():
    samples = [sample(n, {"s": 1}, epoch) for n in (0, 1) for epoch in (1, 2)]
    samples[1]["epoch"] = 1
    with refused("sample q0", "each of 2 epochs once"):
        read(whole_object("log.json", samples))


def test_another_checksum_than_that_of_the_bytes_is_refused():
    content = json.dumps(header()).encode()
    checksum = struct.pack("<I", zlib.crc32(content))
    with refused("log.eval", found="checksum"):
        read(spoilt(checksum, b"\0\0\0\0"))
