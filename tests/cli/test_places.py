"""Where files of rows may be: folders, patterns, URLs; and several of them as one."""

from __future__ import annotations

import datetime
import gzip
import json
import os
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shell import EVENTS, PAIRS, SCHEMA, SUBS, an_index, fails, run, subscriptions, write

import colmatch as cm
from colmatch.cli.files import read_table, reading
from colmatch.cli.places import find_files

FLAT = EVENTS.drop_columns(["tags"])
CSV = "".join(f"{event},{id}\n" for event, id in PAIRS)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    an_index(tmp_path)


def matched(*args: object, **how: Any) -> str:
    printed = run("match", "i.colmatch", *args, **how).stdout
    assert printed.startswith('"event","subscription"\n')
    return printed.partition("\n")[2]


def parts(folder: str, extension: str) -> Path:
    """Two files with the events, as Spark writes a folder."""
    path = Path(folder)
    path.mkdir(parents=True)
    for number in (0, 1):
        write(path / f"part-0000{number}-c000.{extension}", FLAT.slice(2 * number, 2))
        (path / f".part-0000{number}-c000.{extension}.crc").write_bytes(b"crc\x00")
    (path / "_SUCCESS").touch()
    return path


@pytest.mark.parametrize(
    "extension", ["parquet", "snappy.parquet", "arrow", "arrows", "csv", "csv.gz", "jsonl", "json"]
)
def test_a_folder_is_read_as_one(extension: str) -> None:
    folder = parts("events", extension)
    url = folder.absolute().as_uri()
    names = sorted(str(path) for path in folder.glob("part-*"))
    for args in (["events"], ["events/"], [f"events/*.{extension}"], ["ev*ts"], [url], [f"{url}/part-*"], names):
        assert matched(*args) == CSV, args
    assert matched(*reversed(names)) == "0,2\n1,1\n2,2\n3,1\n3,3\n"


@pytest.mark.parametrize("extension", ["parquet", "jsonl", "csv"])
def test_names_of_folders_are_columns(extension: str) -> None:
    for day, zone, rows in (("2024-01-01", "01", [1, 2]), ("2024-01-02", "x%20y", [3])):
        folder = Path(f"t/day={day}/zone={zone}")
        folder.mkdir(parents=True)
        write(folder / f"p.{extension}", pa.table({"n": rows}))
    last = Path("t/day=__HIVE_DEFAULT_PARTITION__/zone=7")
    last.mkdir(parents=True)
    write(last / f"p.{extension}", pa.table({"n": [4]}))
    rules = {1: "day = DATE '2024-01-02'", 2: "zone = '01' AND n > 1", 3: "zone = 'x y'", 4: "day IS NULL"}
    run("build", subscriptions(Path("s.csv"), rules), "--schema", "day date, zone string, n bigint", "-o", "t.cm")
    assert run("match", "t.cm", "t").stdout.split()[1:] == ["1,2", "2,1", "2,3", "3,4"]
    assert run("match", "t.cm", "t/day=2024*", "--keep", "day,n").stdout.split()[1:] == [
        "1,2024-01-01,2,2",
        "2,2024-01-02,3,1",
        "2,2024-01-02,3,3",
    ]
    said = fails("build", "s.csv", "--like", "t", "-o", "like.cm")
    assert (
        'write a string, or make the column a date, as --schema "day: date" does, or build with Options(casts="spark") (subscription 1'
        in said
    )
    run("build", "s.csv", "--like", "t", "--schema", "day: date", "-o", "like.cm")
    assert cm.Matcher.open("like.cm").schema.arrow.field("zone").type == pa.string()
    assert read_table("t/day=2024-01-01").to_pylist() == [{"n": n, "zone": "01", "day": "2024-01-01"} for n in (1, 2)]
    assert read_table("t/*/zone=7").to_pylist() == [{"n": 4, "zone": 7, "day": None}]  # a whole number


def test_subscriptions_in_a_folder() -> None:
    for number, id in enumerate(SUBS):
        folder = Path(f"subs/priority={number}")
        folder.mkdir(parents=True)
        subscriptions(folder / "part-0.parquet", {id: SUBS[id]})
    run("build", "subs", "--schema", SCHEMA, "-o", "i.colmatch")
    assert matched(write(Path("e.parquet"), EVENTS)) == CSV
    assert run("match", "i.colmatch", "e.parquet", "--top", "1", "--score", "priority").stdout.split()[2] == "1,3,2"


def test_files_of_several_formats_and_types() -> None:
    write(
        Path("a.parquet"),
        FLAT.slice(0, 1).cast(pa.schema({"age": pa.int8(), "city": pa.string(), "note": pa.string()})),
    )
    write(Path("b.jsonl"), FLAT.slice(1, 1))
    write(Path("c.csv"), FLAT.slice(2))
    assert matched("a.parquet", "b.jsonl", "c.csv") == CSV
    assert run("match", "i.colmatch", "a.parquet", "b.jsonl", "--keep", "age").stdout.split()[1] == "0,17,2"


def test_a_file_that_lacks_a_column_is_named() -> None:
    for extension in ("parquet", "csv"):
        write(Path(f"a.{extension}"), FLAT)
        write(Path(f"b.{extension}"), FLAT.drop_columns(["city"]))
        said = fails("match", "i.colmatch", f"a.{extension}", f"b.{extension}")
        assert f"b.{extension}: there is no column 'city', which is needed" in said and "--missing-columns null" in said
        assert len(matched(f"[ab].{extension}", "--missing-columns", "null").split()) == len(PAIRS) + 2
    write(Path("a.jsonl"), FLAT)
    Path("b.jsonl").write_text('{"age": 20}\n')
    assert matched("a.jsonl", "b.jsonl") == CSV + "4,1\n"
    assert "b.jsonl: no line has 'city'" in fails("match", "i.colmatch", "b.jsonl")


def test_names_of_columns_may_differ_in_case_from_file_to_file() -> None:
    write(Path("a.csv"), FLAT.slice(0, 2).rename_columns(["AGE", "City", "note"]))
    write(Path("b.parquet"), FLAT.slice(2, 1))
    write(Path("c.jsonl"), FLAT.slice(3))
    assert matched("a.csv", "b.parquet", "c.jsonl") == CSV
    assert matched("b.parquet", "a.csv") == "0,2\n1,2\n2,1\n2,3\n"


def test_a_column_that_is_there_twice() -> None:
    numbers = pa.array([20])
    for name in ("age", "x"):
        table = pa.Table.from_arrays([numbers, numbers, numbers, pa.array(["Nice"])], names=[name, name, "age", "city"])
        pq.write_table(table, "e.parquet")
        if name == "x":
            assert matched("e.parquet") == "0,1\n"
        else:
            assert "e.parquet: there are 3 columns 'age'" in fails("match", "i.colmatch", "e.parquet")


def test_columns_of_types_that_do_not_go_together() -> None:
    write(Path("a.parquet"), FLAT)
    write(Path("b.parquet"), FLAT.set_column(0, "age", [["x"] * 4]))
    said = fails("match", "i.colmatch", "a.parquet", "b.parquet")
    assert "b.parquet: its columns do not go with a.parquet: " in said and "age" in said
    Path("s").mkdir()
    subscriptions(Path("s/a.parquet"), {1: "age > 1"})
    subscriptions(Path("s/b.parquet"), {"x": "age > 1"})
    assert "have columns of several types" in fails("build", "s", "--schema", SCHEMA, "-o", "j")


def test_places_without_files() -> None:
    Path("empty").mkdir()
    Path("hidden/_temporary").mkdir(parents=True)
    Path("hidden/_temporary/x.csv").write_text("age,city\n")
    Path("hidden/.x.csv").write_text("age,city\n")
    assert "empty: no file of rows is in this folder" in fails("match", "i.colmatch", "empty")
    assert "hidden: no file of rows is in this folder" in fails("match", "i.colmatch", "hidden")
    assert "none/*.csv: no file of rows is in this pattern" in fails("match", "i.colmatch", "none/*.csv")
    assert "none: No such file or directory" in fails("match", "i.colmatch", "none")
    assert "file:///none/x.csv: No such file" in fails("match", "i.colmatch", "file:///none/x.csv")
    assert "zzz://q/x.csv: " in fails("match", "i.colmatch", "zzz://q/x.csv")
    Path("empty/readme.txt").write_text("x")
    assert "empty/readme.txt: the extension '.txt' names no format" in fails("match", "i.colmatch", "empty")


def test_a_pattern_leaves_out_what_a_folder_leaves_out() -> None:
    folder = parts("events", "csv")
    hidden = folder / "_temporary"
    hidden.mkdir()
    (hidden / "part-00000.csv").write_text((next(iter(sorted(folder.glob("part-*"))))).read_text())
    assert matched("events") == matched("events/**/*.csv") == CSV


def test_texts_without_a_byte_are_left_out_of_folders() -> None:
    folder = parts("events", "csv")
    (folder / "part-00000.csv").touch()
    assert matched("events") == CSV
    assert "part-00000.csv: the file is empty" in fails("match", "i.colmatch", folder / "part-00000.csv")


def test_a_damaged_file_among_others_is_named() -> None:
    folder = parts("events", "parquet")
    for path in sorted(folder.glob("part-*")):
        good = path.read_bytes()
        for bad in (b"", good[:50], good[:-20], b"id,city\n"):
            path.write_bytes(bad)
            assert path.name in fails("match", "i.colmatch", "events", "-o", "out.csv")
        path.write_bytes(good)
    assert not os.path.exists("out.csv")


def test_only_the_needed_columns_are_read() -> None:
    """A page of another column may be damaged."""
    table = pa.table({"note": ["x" * 50 + str(n) for n in range(4)], "age": [1, 20, 30, 4], "city": ["Nice"] * 4})
    pq.write_table(table, "e.parquet", compression="none", use_dictionary=False)
    data = bytearray(Path("e.parquet").read_bytes())
    place = pq.ParquetFile("e.parquet").metadata.row_group(0).column(0).data_page_offset
    data[place : place + 8] = b"\xff" * 8
    Path("e.parquet").write_bytes(data)
    assert matched("e.parquet") == "0,2\n1,1\n2,1\n3,2\n"
    assert "e.parquet: " in fails("match", "i.colmatch", "e.parquet", "--keep", "note")


@pytest.mark.skipif(os.name != "posix", reason="pipes with a name")
def test_a_pipe_with_a_name() -> None:
    os.mkfifo("p.csv")
    for text, says in (("age,city\n17,Nice\n", None), ("age,city\n\nx,Nice\n", "p.csv: row 1 below the header")):
        writer = Thread(target=Path("p.csv").write_text, args=(text,))
        writer.start()
        said = matched("p.csv") if says is None else fails("match", "i.colmatch", "p.csv")
        writer.join()
        assert said == "0,2\n" if says is None else says in said
    write(Path("a.csv"), FLAT)
    for pipe in ("p.csv", "-"):
        said = fails("match", "i.colmatch", "a.csv", pipe, "--format", "csv", input="age,city\n")
        assert "a pipe cannot be read beside other files" in said
    assert "p.csv: parquet cannot come by a pipe" in fails("match", "i.colmatch", "p.csv", "--format", "parquet")


def test_compressed_texts() -> None:
    text = b"age,city\n17,Nice\n"
    Path("a.csv.gz").write_bytes(gzip.compress(text) + gzip.compress(b"36,Lyon\n"))
    assert matched("a.csv.gz") == "0,2\n1,1\n1,3\n"
    for codec, extension in (("bz2", "bz2"), ("zstd", "zst")):
        with pa.CompressedOutputStream(f"a.csv.{extension}", codec) as file:
            file.write(text)
        assert matched(f"a.csv.{extension}") == "0,2\n"


# Errors name the line


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("age,city\n1,a\nx,b\n", "line 3, column 'age': invalid value 'x' for int64"),
        ("age,city\n\n\n1,a\n\n" + '1,"a\nb\n"\n' * 3 + "\nx,b\n", "line 16, column 'age': invalid value 'x'"),
        ("age,city\n" + '1,"a\nb"\n' * 400_000 + "1\n", "line 800002: Expected 2 columns, got 1: 1"),
        ('age,city\n1,"a ""q"" b"\n"1",5" pipe\n1,a,b\n', "line 4: Expected 2 columns, got 3"),
    ],
    ids=["first", "blank", "many", "quotes"],
)
def test_a_wrong_line_of_csv(text: str, says: str) -> None:
    Path("e.csv").write_text(text)
    assert f"e.csv: {says}" in fails("match", "i.colmatch", "e.csv", "-o", "out.csv")
    Path("d").mkdir()
    write(Path("d/a.csv"), FLAT)
    Path("e.csv").rename("d/e.csv")
    assert f"d/e.csv: {says}" in fails("match", "i.colmatch", "d", "-o", "out.csv")
    piped = fails("match", "i.colmatch", "-", "--format", "csv", "-o", "out.csv", input=text)
    assert "standard input: row " in piped and " below the header" in piped
    subs = text.replace("age,city", "id,expression")
    Path("s.csv").write_text(subs)
    said = fails("build", "s.csv", "--ids", "int64", "--schema", SCHEMA, "-o", "j")
    assert f"s.csv: {says.replace('age', 'id')}" in said


LINE = '{"age": 1, "city": "x"}\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LINE + '{"age": 1, 2}\n', "line 2, column 12: Expecting property name"),
        ("\n\n" + LINE + "\n" + '{"age": "x"}\n', "line 5: Column(/age) changed from number to string"),
        (LINE * 500_000 + "\n[1]\n" + LINE, "line 500002: a JSON object is needed, not list"),
        (LINE + '{"age": 1\n', "line 2, column 1: Expecting"),
        ("[" + LINE.strip() + ", [1]]", "element 2: a JSON object is needed, not list"),
        (LINE + '{"at": "noon"}\n', "line 2: column 'at': Failed to parse string: 'noon'"),
        (LINE + '{"m": {"k": 1}}\n{"m": 3}\n', "line 3: column 'm' is a map"),
    ],
    ids=["syntax", "type", "many", "open", "list", "time", "map"],
)
def test_a_wrong_line_of_json(text: str, says: str) -> None:
    run(
        "build",
        subscriptions(Path("s.csv"), {1: "age > 1 OR at > TIMESTAMP '2024-01-01 00:00:00' OR m['k'] = 1"}),
        "--schema",
        "age bigint, at timestamp, m map<string, bigint>",
        "-o",
        "m.cm",
    )
    Path("e.jsonl").write_text(text)
    assert f"e.jsonl: {says}" in fails("match", "m.cm", "e.jsonl", "-o", "out.csv")
    said = fails("match", "m.cm", "-", "--format", "jsonl", "-o", "out.csv", input=text)
    assert f"standard input: {says}" in said


def test_a_line_may_be_long() -> None:
    long = json.dumps({"age": 20, "city": "x" * 3_000_000}) + "\n"
    Path("e.jsonl").write_text(LINE + long + LINE + long)
    assert matched("e.jsonl") == "1,1\n3,1\n"


# Times leave as they came


@pytest.mark.parametrize("out", ["jsonl", "csv"])
def test_times_leave_as_they_came(out: str) -> None:
    noon = datetime.datetime(2013, 7, 4, 12, 0, 0, 250_000)
    table = pa.table(
        {
            "age": [20],
            "city": ["x"],
            "s": pa.array([noon.replace(microsecond=0)], pa.timestamp("s")),
            "ms": pa.array([noon], pa.timestamp("ms", "UTC")),
            "us": pa.array([noon], pa.timestamp("us", "America/New_York")),
            "ns": pa.array([noon], pa.timestamp("ns", "+05:30")),
            "day": pa.array([noon.date()]),
            "clock": pa.array([noon.time()], pa.time64("us")),
        }
    )
    wanted = {
        "s": "2013-07-04T12:00:00",
        "ms": "2013-07-04T12:00:00.250Z",
        "us": "2013-07-04T08:00:00.250000-04:00",
        "ns": "2013-07-04T17:30:00.250000000+05:30",
        "day": "2013-07-04",
        "clock": "12:00:00.250000",
    }
    keep = ("--keep", ",".join(wanted))
    run("match", "i.colmatch", write(Path("e.arrow"), table), *keep, "-o", f"a.{out}")
    kept = {"age": pa.int64(), **dict.fromkeys(wanted, pa.string())}
    assert read_table(f"a.{out}", types=kept).select(list(wanted)).to_pylist() == [wanted]
    # read again, typed or as texts that no expression uses
    typed = [name for name in wanted if name != "clock"]
    with reading(f"a.{out}", schema=table.schema, columns=typed) as rows:
        assert next(rows.batches).to_pylist() == table.select(typed).to_pylist()
    for extension in ("jsonl", "csv"):
        odd = wanted | {"s": "2013-07-04 12:00", "us": "2013-07-04T12:00:00.25+02:00"}
        write(Path(f"e.{extension}"), pa.table({"age": [20], "city": ["x"], **{k: [v] for k, v in odd.items()}}))
        run("match", "i.colmatch", f"e.{extension}", *keep, "-o", f"b.{out}")
        assert read_table(f"b.{out}", types=kept).select(list(wanted)).to_pylist() == [odd]


def test_times_within_others_are_written_alike() -> None:
    noon = datetime.datetime(2013, 7, 4, 12)
    at = pa.timestamp("s", "UTC")
    table = pa.table(
        {
            "age": [20],
            "city": ["x"],
            "l": pa.array([[noon]], pa.list_(at)),
            "f": pa.array([[noon]], pa.list_(at, 1)),
            "m": pa.array([{"k": noon}], pa.map_(pa.string(), at)),
            "w": pa.array([{"at": [noon]}], pa.struct({"at": pa.large_list(at)})),
        }
    )
    run("match", "i.colmatch", write(Path("e.arrow"), table), "--keep", "l,f,m,w", "-o", "a.jsonl")
    text = "2013-07-04T12:00:00Z"
    row = json.loads(Path("a.jsonl").read_text())
    assert [row[name] for name in "lfmw"] == [[text], [text], {"k": text}, {"at": [text]}]


def test_a_time_without_a_zone_is_none_with_one() -> None:
    """Also in JSON lines, whose reader would take either for the other."""
    rule = subscriptions(Path("s.csv"), {1: "at IS NOT NULL"})
    for type, text, says in (
        ("timestamp[us, tz=UTC]", "2013-07-04T12:00:00", "expected a zone offset"),
        ("timestamp[us]", "2013-07-04T12:00:00Z", "expected no zone offset"),
    ):
        run("build", rule, "--schema", f"at: {type}", "-o", "at.cm")
        for extension in ("csv", "jsonl"):
            path = write(Path(f"e.{extension}"), pa.table({"at": [text]}))
            said = fails("match", "at.cm", path)
            assert "column 'at'" in said and says in said and f"line {2 if extension == 'csv' else 1}" in said


def test_files_are_found_in_the_order_of_their_names() -> None:
    for name in ("b/2.csv", "a/10.csv", "a/9.csv", "c.csv"):
        Path("t", name).parent.mkdir(parents=True, exist_ok=True)
        Path("t", name).write_text("x\n1\n")
    assert [file.path for file in find_files("t")] == ["t/a/10.csv", "t/a/9.csv", "t/b/2.csv", "t/c.csv"]
    assert [file.path for file in find_files(["t/c.csv", "t/b"])] == ["t/c.csv", "t/b/2.csv"]
