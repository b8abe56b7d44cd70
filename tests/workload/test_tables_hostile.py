"""Tables that are not what they should be: missing columns, other types, bombs, archives with tricks."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from pathlib import Path
from random import Random

import pytest

from accounting_logs import counts
from hostile.mutations import changed
from job_tables import OWN, T0, own, write_lines, write_parquet
from policyfactory.core.errors import InputError, PolicyfactoryError, TraceFormatError, UsageError, WorkloadError
from policyfactory.workload.accounting.importing import Imported
from policyfactory.workload.tables.reader import import_tables
from refusals import refused
from support import extra_module

NAMES = "id,submitted,began,ended,limit,cores"
DAY = "2024-03-05"
ROW = f"{DAY} 12:00:00,{DAY} 12:01:00,{DAY} 12:11:00,3600,4"
TEXT = f"{NAMES}\n1,{ROW}\n2,{ROW}\n"
COLUMNS = {
    "id": ["1", "2"], "submitted": [f"{DAY} 12:00:00"] * 2, "began": [f"{DAY} 12:01:00"] * 2,
    "ended": [f"{DAY} 12:11:00"] * 2, "limit": [3600, 3600], "cores": [4, 4],
}  # fmt: skip


def read(*paths: Path, text: str = OWN) -> Imported:
    return import_tables(paths, own(text))


def test_a_missing_column_names_what_is_there_and_what_is_near(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "jobs.csv", NAMES.replace("submitted", "submited"), [f"1,{ROW}"])
    refused(TraceFormatError, "jobs.csv submited submitted", read, path)


def test_a_missing_column_of_parquet_is_named_too(tmp_path: Path) -> None:
    extra_module("pyarrow", "parquet")
    path = write_parquet(tmp_path / "jobs.parquet", {name: cells for name, cells in COLUMNS.items() if name != "limit"})
    refused(TraceFormatError, "jobs.parquet column submitted", read, path)


def test_a_column_of_another_type_is_named_with_its_first_cell(tmp_path: Path) -> None:
    rows = [f"1,{ROW}", f"2,{ROW}"]
    wrong = [row.replace(f"{DAY} 12:00:00", "1709640000") for row in rows]
    # Unix seconds are taken as what they are, wherever a date is expected: nothing else can be meant.
    assert read(write_lines(tmp_path / "unix.csv", NAMES, wrong)).log.header.unix_start == T0
    wrong = [row.replace(f"{DAY} 12:00:00", "5 March") for row in rows]
    refused(TraceFormatError, "date.csv:2 submitted 5", read, write_lines(tmp_path / "date.csv", NAMES, wrong))
    wrong = [row.replace(",3600,", ",long,") for row in rows]
    refused(TraceFormatError, "limit.csv:2 long duration", read, write_lines(tmp_path / "limit.csv", NAMES, wrong))
    wrong = [row[:-1] + "four" for row in rows]
    refused(TraceFormatError, "cores.csv:2 four requested", read, write_lines(tmp_path / "cores.csv", NAMES, wrong))


@pytest.mark.parametrize("name", ["submitted", "limit", "cores", "id"])
def test_lists_and_bytes_in_parquet_are_no_numbers(tmp_path: Path, name: str) -> None:
    pa = extra_module("pyarrow", "parquet")
    lists = write_parquet(tmp_path / "lists.parquet", {**COLUMNS, name: pa.array([[1, 2], [3]])})
    raw = write_parquet(tmp_path / "raw.parquet", {**COLUMNS, name: pa.array([b"\xff\xfe", b"\x00"])})
    for path in (lists, raw):
        if name == "id":
            # Whatever an id is, it is a text.
            assert len(read(path).job) == 2
        else:
            refused(TraceFormatError, f"{path.name}:1 {name} expected", read, path)


def test_names_that_are_no_utf_8_stay_apart(tmp_path: Path) -> None:
    pa = extra_module("pyarrow", "parquet")
    users = [b"ren\xe9", b"ren\xe8"]
    text = f"user,{NAMES}\n".encode() + b"".join(
        b"%s,%d,%s\n" % (user, n, ROW.encode()) for n, user in enumerate(users)
    )
    (tmp_path / "jobs.csv").write_bytes(text)
    write_parquet(tmp_path / "jobs.parquet", {**COLUMNS, "user": pa.array(users)})
    for form in ("csv", "parquet"):
        mapping = OWN.replace('"csv"', f'"{form}"') + 'user = "user"\n'
        assert read(tmp_path / f"jobs.{form}", text=mapping).log.user.tolist() == [1, 2]


def test_numbers_where_dates_are_expected_are_refused_in_parquet(tmp_path: Path) -> None:
    extra_module("pyarrow", "parquet")
    path = write_parquet(tmp_path / "jobs.parquet", {**COLUMNS, "submitted": [T0, T0]})
    refused(TraceFormatError, "jobs.parquet:1 time date 1709640000", read, path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.parquet"
    path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    refused(UsageError, "Parquet pyarrow policyfactory[parquet]", read, path)


def test_damaged_parquet_is_named(tmp_path: Path) -> None:
    extra_module("pyarrow", "parquet")
    whole = write_parquet(tmp_path / "jobs.parquet", COLUMNS).read_bytes()
    for at in (0, 4, len(whole) // 2, len(whole) - 20):
        path = tmp_path / f"damaged{at}.parquet"
        path.write_bytes(b"PAR1" if at == 0 else whole[:at] + b"\xff" * 8 + whole[at + 8 :])
        with pytest.raises(PolicyfactoryError):
            read(path)


@pytest.mark.slow
def test_parquet_that_was_changed_here_and_there_has_an_answer(tmp_path: Path) -> None:
    # Outside of the other hunts (tests/hostile), whose limit of memory the library's reserves exceed.
    pa = extra_module("pyarrow", "parquet")
    typed = {**COLUMNS, "limit": pa.array([60, None], pa.duration("s")), "cores": [1.0, float("nan")]}
    seeds = [
        write_parquet(tmp_path / "seed.parquet", columns, compression=packing).read_bytes()
        for columns, packing in ((COLUMNS, "none"), (typed, "snappy"))
    ]
    answers: set[type | None] = set()
    path = tmp_path / "jobs.parquet"
    for number in range(400):
        path.write_bytes(changed(Random(number), seeds[number % 2], seeds[0]))
        try:
            read(path)
        except PolicyfactoryError as error:
            answers.add(type(error) if len(str(error)) < 2000 else None)
        else:
            answers.add(Imported)
    assert {InputError, TraceFormatError, Imported} <= answers
    assert None not in answers


@pytest.mark.slow
def test_a_text_that_comes_a_million_times_is_not_unpacked_a_million_times(tmp_path: Path) -> None:
    pa = extra_module("pyarrow", "parquet")
    count = 200_000
    same = {name: pa.repeat(cells[0], count) for name, cells in COLUMNS.items()}
    same["user"] = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), ["u" * 100_000])
    same["id"] = pa.array(range(count))
    # Without Arrow's own schema, so that nothing says that the column has one text alone.
    path = write_parquet(tmp_path / "jobs.parquet", same, row_group_size=count, store_schema=False)
    # 20 GB of names, if each row had its own.
    done = read(path, text=OWN + 'user = "user"')
    assert done.report.jobs == count
    assert {len(name) for name in done.user} == {256}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "jobs.csv empty table"),
        ("just one\n", "jobs.csv:1 are columns 1"),
        (f"id,id,{NAMES}\n", "jobs.csv:1 id columns"),
        (f'{NAMES}\n1,"{ROW}\n', "jobs.csv:2 CSV"),
        (f"{NAMES}\n", "jobs.csv row job"),
        (f"{NAMES}\n" + "x" * (1 << 21), "jobs.csv:2 1,048,576 characters"),
    ],
)
def test_texts_that_are_no_table(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    refused((TraceFormatError, WorkloadError), message, read, path)


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def test_archives_are_read_without_writing_their_members_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    second = TEXT.replace("\n1,", "\n3,").replace("\n2,", "\n4,").encode()
    members = {"../../evil.csv": TEXT.encode(), "/tmp_evil.csv": second, "LICENSE.md": b"x", "__MACOSX/._a.csv": b"x"}
    packed = archive(folder / "set.zip", members)
    done = read(packed)
    assert sorted(done.job) == ["1", "2", "3", "4"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["here", "set.zip"]
    assert [inputs[0] for inputs in done.report.inputs] == [str(packed)]


def test_archives_of_parquet_in_folders(tmp_path: Path) -> None:
    extra_module("pyarrow", "parquet")
    members = {}
    for year in (2023, 2024):
        columns = {**COLUMNS, "id": [f"{year}a", f"{year}b"]}
        members[f"set/year={year}/part-0.parquet"] = write_parquet(tmp_path / "part.parquet", columns).read_bytes()
    done = read(archive(tmp_path / "set.zip", members))
    assert done.job == ("2023a", "2023b", "2024a", "2024b")


def test_a_tar_archive_as_the_months_of_ccin2p3(tmp_path: Path) -> None:
    for mode, name in (("w:gz", "09.tsv.tar.gz"), ("w", "09.tar")):
        path = tmp_path / name
        with tarfile.open(path, mode, format=tarfile.GNU_FORMAT if mode == "w" else tarfile.PAX_FORMAT) as file:
            for member in ("../evil.csv", "a" * 150 + ".csv", "readme.md", "folder"):
                info = tarfile.TarInfo(member)
                content = TEXT.replace("\n1,", f"\n{member[0]}1,").encode() if member.endswith("csv") else b""
                info.size, info.type = len(content), tarfile.DIRTYPE if member == "folder" else tarfile.REGTYPE
                file.addfile(info, io.BytesIO(content))
        done = read(path)
        assert ".1" in done.job
        assert done.report.records >= 2
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 3])
        refused(InputError, path.name, read, path)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"readme.md": b"x"}, "set.zip has 0"),
        pytest.param({"bomb.csv": TEXT.encode() + b"\n" * (16 << 20)}, "set.zip 50 unpacks", marks=pytest.mark.slow),
        ({"inner.csv": b"PK\x03\x04" + bytes(100)}, "set.zip names columns"),
    ],
)
def test_archives_that_are_no_data_set(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    refused(PolicyfactoryError, message, read, archive(tmp_path / "set.zip", members))


def test_damaged_archives_are_named(tmp_path: Path) -> None:
    path = archive(tmp_path / "set.zip", {"a.csv": TEXT.encode() * 100})
    whole = path.read_bytes()
    for damaged in (whole[:200], whole[:50] + b"\xff" * 20 + whole[70:]):
        path.write_bytes(damaged)
        refused(InputError, "set.zip unpacked download", read, path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    refused(InputError, "nothing.csv no such file", read, tmp_path / "nothing.csv")
    refused(InputError, "directory name", read, tmp_path)
    (tmp_path / "a.csv.xz").write_bytes(b"\xfd7zXZ" + bytes(100))
    refused(InputError, "a.csv.xz", read, tmp_path / "a.csv.xz")


def test_the_same_file_twice_counts_each_job_once(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(TEXT)
    assert counts(read(path, path))["rules.twice"] == 2
