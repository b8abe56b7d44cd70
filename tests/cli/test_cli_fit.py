"""``policyfactory fit`` as a user types it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

Shared = Callable[[str], Path]

TABLE = "oracles/sc17-score-distribution.csv"


def test_the_published_winner_with_one_command(run, shared: Shared, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    done = run("fit", shared(TABLE), "--output", "learned.json", "--bootstrap", 50)
    assert "log10(p)*q + 870.96*log10(r)" in done.stdout
    assert "sqrt(p)*q + 25673*log10(r)" in done.stdout
    assert "Best by mean absolute error: log10(p)*q + 870.96*log10(r), 0.0052776 (" in done.stdout
    assert "warning: log10(p)*q + log10(r): the form has no constant" in done.stderr
    model = json.loads((tmp_path / "learned.json").read_text(encoding="utf-8"))
    assert model["name"] == "learned"
    assert model["formula"].startswith("log10(p)*q + 870.960070190")  # its last digits are the processor's
    assert model["provenance"]["command"].startswith("policyfactory fit ")
    assert [path.name for path in tmp_path.iterdir()] == ["learned.json"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("site.swf", "1 0\n"),
        ("renamed.txt", "; Version: 2.2\n"),
        ("bare.txt", " ".join(["1"] * 18) + "\n"),
        ("logs/of 2026.swf", "1 0\n"),
    ],
)
def test_a_log_is_no_score_table(run, tmp_path: Path, name: str, text: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = run("fit", name, code=1)
    assert done.stderr.endswith(
        f"error: {name}: is a log of jobs and not a score table; make one of it: policyfactory generate "
        f"{shlex.quote(name)} --output scores.csv\n"
    )


def test_a_family_that_there_is_not_is_named_with_those_there_are(run) -> None:  # type: ignore[no-untyped-def]
    said = " ".join(run("fit", "scores.csv", "--family", "xx", code=2).stderr.split())
    assert "Invalid value for '--family': 'xx' is not one of 'forms'" in said


def test_coefficients_are_rounded_alike_wherever_they_are_shown(run, shared: Shared) -> None:  # type: ignore[no-untyped-def]
    ratio = "25673"  # 25672.9... in the model
    done = run("fit", shared(TABLE), "--form", "F=a*sqrt(p)*q + s*log10(r)", "--output", "f.json", "--bootstrap", 20)
    assert "s*log10(r): s are coefficients here" in done.stderr
    assert f"Coefficients of F: sqrt(p)*q + {ratio}*log10(r)" in done.stdout
    assert f" {ratio} [" in done.stdout
    assert f"Best by mean absolute error: F: sqrt(p)*q + {ratio}*log10(r)" in done.stdout


def test_the_same_command_writes_the_same_bytes(run, shared: Shared, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for _ in range(2):
        run("fit", shared(TABLE), "--family", "linear", "--output", "x.json", "--bootstrap", 20, "--seed", 5)
        result = (tmp_path / "x.json").read_bytes()
        (tmp_path / "x.json").rename(tmp_path / f"{len(list(tmp_path.iterdir()))}.json")
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {result}


@pytest.mark.slow
def test_everything_at_once(run, shared: Shared, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    done = run(
        *("fit", shared(TABLE), "--family", "all", "--form", "mine=a*p**b*q + c*log10(r)", "--top", 2),
        *("--output", "all.json", "--report", "all.md", "--figures", "figures", "--bootstrap", 20, "--certainty"),
    )
    names = {path.name for path in tmp_path.glob("*.json")}
    polynomials = {f"all-{name}.json" for name in ("lin", "qdr", "cub", "qua", "qui", "sex")}
    assert names == {"all.json", "all-f1.json", "all-f2.json", "all-mix.json", "all-mine.json"} | polynomials
    winner = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert winner["diagnostics"]["mae"] == min(
        json.loads(path.read_text(encoding="utf-8"))["diagnostics"]["mae"] for path in tmp_path.glob("*.json")
    )
    f1 = json.loads((tmp_path / "all-f1.json").read_text(encoding="utf-8"))
    assert f1["formula"].startswith("log10(p)*q + 870.96")
    report = (tmp_path / "all.md").read_text(encoding="utf-8")
    for picture in (tmp_path / "figures").glob("*.png"):
        assert f"](figures/{picture.name})" in report
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"priority.png", "ranking.png", "polynomials.png", "certainty.png", "priority-f2.png"} <= drawn
    numbers = (tmp_path / "figures" / "certainty.csv").read_text(encoding="utf-8").splitlines()
    assert numbers[0].startswith("tuples,form,first,first_disjoint,")
    assert len(numbers) == 1 + 4 * (12 + 6 + 1 + 1)
    assert "warning: QDR: not monotone" in done.stderr
    assert "How many tuples until the form is certain" in done.stdout


def test_polynomials_are_written_each(run, shared: Shared, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run("fit", shared(TABLE), "--family", "polynomials", "--output", "poly.json", "--bootstrap", 0)
    assert len(list(tmp_path.glob("poly-*.json"))) == 6
    lin = json.loads((tmp_path / "poly-lin.json").read_text(encoding="utf-8"))
    assert lin["name"] == "poly-lin"
    assert [c["term"] for c in lin["coefficients"]] == ["1", "p", "q", "r"]


def test_a_learned_model_can_be_shown_and_explained(run, shared: Shared) -> None:  # type: ignore[no-untyped-def]
    run("fit", shared(TABLE), "--form", "a*log10(p)*q + b*log10(r)", "--output", "m.json", "--bootstrap", 0)
    assert "log10(p)*q" in run("policy", "show", "m.json").stdout


def test_json_is_json(run, shared: Shared) -> None:  # type: ignore[no-untyped-def]
    done = run("fit", shared(TABLE), "--bootstrap", 10, "--json", "--certainty")
    result = json.loads(done.stdout)
    assert result["table"] == {"name": "sc17-score-distribution", "rows": 6912, "tuples": 216, "left_out": 0}
    assert len(result["ranking"]) == 360
    assert result["ranking"][0]["name"] == "log10(p)*q + log10(r)"
    assert len(result["ranking"][0]["aliases"]) == 2
    assert len(result["not_finite"]) == 40
    assert sum(shares[-1] for shares in result["certainty"]["first"].values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nothing.csv"], 1, "nothing.csv: no such file"),
        (["."], 1, "is a directory"),
        (["TABLE", "--output", "model.txt"], 2, "a model file ends in .json"),
        (["TABLE", "--output", "no/model.json"], 1, "the folder no does not exist"),
        (["TABLE", "--report", "."], 1, "is a directory"),
        (["TABLE", "--form", "a*p + zz(q)"], 1, "at character"),
        (["TABLE", "--form", "p*q"], 1, "has 0 coefficients"),
        (["TABLE", "--form", "a*w*p"], 1, "has w, which no score table knows"),
        (["TABLE", "--form", "x=a*p", "--form", "x=a*q"], 2, "NAME-x.json"),
        (["TABLE", "--seed", "-1"], 2, "seed -1"),
        (["TABLE", "--certainty", "--bootstrap", "0"], 2, "--bootstrap 1 or more"),
        (["TABLE", "--family", "trees"], 2, "trees"),
        (["TABLE", "--family", "linear", "--bootstrap", "0", "--seed", "2"], 2, "--seed is for --bootstrap"),
        (["TABLE", "--form", "a*p", "--top", "2"], 2, "--top is for the 576 forms"),
    ],
)
def test_wrong_use_is_reported(run, shared: Shared, arguments: list[str], code: int, message: str) -> None:  # type: ignore[no-untyped-def]
    done = run("fit", *(str(shared(TABLE)) if part == "TABLE" else part for part in arguments), code=code)
    assert message in " ".join(done.stderr.split())
    assert not done.stdout


def test_a_table_of_one_tuple_is_refused(run, shared: Shared, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    lines = shared(TABLE).read_text(encoding="ascii").splitlines(keepends=True)
    (tmp_path / "one.csv").write_text("".join(lines[:32]), encoding="ascii")
    done = run("fit", "one.csv", code=1)
    assert "1 tuples" in done.stderr
    assert "policyfactory generate --tuples" in done.stderr


def test_a_file_that_is_no_table_is_refused(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "bad.csv").write_text("p,q,r,score,stderr,tuple\n1,2,3,x,5,6\n", encoding="ascii")
    done = run("fit", "bad.csv", code=1)
    assert "bad.csv:2" in done.stderr


def test_two_runs_do_not_write_one_output(run, shared: Shared, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from policyfactory.core.files import exclusive

    with exclusive(tmp_path / "x.json"):
        done = run("fit", shared(TABLE), "--family", "linear", "--output", "x.json", code=1)
    assert "another run is writing it" in done.stderr
    assert not (tmp_path / "x.json").exists()
