"""`attractor fit` and `attractor predict`, on files that the tests write."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from attractor.cli.commands import app
from attractor.errors import InputError
from attractor.estimators import RecurrentClassifier, RecurrentRegressor, load, save
from attractor.tasks.data.series import load_series

SMALL = ["--hidden-size", "8", "--epochs", "20", "--learning-rate", "0.03", "--quiet"]


def run(*arguments: object) -> Any:
    """What a command prints; a mistake of the user's is raised as it is."""
    done = CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def tsv(path: Path, n: int = 40, *, names: tuple[str, str] = ("up", "down"), seed: int = 0) -> Path:
    """Series of 5 steps around 70 that rise or fall."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        slope = 1 - 2 * (i % 2)
        x = 70 + 9 * slope * np.arange(5) + rng.normal(size=5)
        lines.append("\t".join([names[i % 2], *(f"{value:.4f}" for value in x)]))
    path.write_text("\n".join(lines) + "\n")
    return path


def ts(path: Path, n: int = 30, *, head: str = "@targetlabel true") -> Path:
    """Series of 3 to 6 steps of two features, and a number: ten times their last value, whole."""
    rng = np.random.default_rng(1)
    lines = ["# a comment", head, "@data"]
    for _ in range(n):
        x = rng.normal(size=(rng.integers(3, 7), 2))
        columns = [",".join(f"{value:.4f}" for value in column) for column in x.T]
        lines.append(":".join([*columns, str(10 * round(x[-1, 0]))]))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_file_becomes_a_model_with_a_report_and_the_model_predicts(tmp_path: Path) -> None:
    train, test = tsv(tmp_path / "some_TRAIN.tsv"), tsv(tmp_path / "some_TEST.tsv", 30, seed=1)
    out = tmp_path / "model"
    done = run("fit", train, "--cell", "gru", "--out", out, *SMALL)
    assert done.stdout.split() == [str(out), str(out / "report.html")]
    assert "accuracy on the 8 series that were held back" in done.stderr
    page = (out / "report.html").read_text()
    for text in ("gru on some_TRAIN.tsv", "40 series of 1 feature", "What is taken for what"):
        assert text in page
    again = "--cell gru --hidden-size 8 --learning-rate 0.03 --epochs 20 --seed 0</code>"
    assert f"<code>attractor fit some_TRAIN.tsv {again}" in page
    done = run("predict", out, test)
    said = done.stdout.split()
    assert len(said) == 30
    right = [["up", "down"][i % 2] for i in range(30)]
    share = np.mean([a == b for a, b in zip(said, right, strict=True)])
    assert share > 0.9
    assert f"accuracy on 30 series: {share:.4f}" in done.stderr
    found = json.loads(run("predict", out, test, "--json").stdout)
    assert found["predictions"] == said
    assert found["accuracy"] == share
    assert found["classes"] == ["down", "up"]
    chosen = np.array(found["probabilities"]).argmax(1)
    assert [found["classes"][one] for one in chosen] == said
    run("predict", out, test, "--labels", "ignore", "--out", tmp_path / "said.txt")
    assert (tmp_path / "said.txt").read_text().split() == said
    bare = tmp_path / "bare.tsv"
    bare.write_text("\n".join(line.partition("\t")[2] for line in test.read_text().splitlines()))
    done = run("predict", out, bare, "--labels", "none")
    assert done.stdout.split() == said
    assert "accuracy" not in done.stderr
    other = tsv(tmp_path / "other.tsv", names=("up", "sideways"))
    with pytest.raises(InputError, match=r"classes that the model knows \(down, up\), but got 'si"):
        run("predict", out, other)
    with pytest.raises(InputError, match="X has 2 features, .* expecting 1"):
        run("predict", out, ts(tmp_path / "two.ts"), "--labels", "ignore")
    with pytest.raises(InputError, match="there is one in .*--force"):
        run("fit", train, "--out", out)


def test_numbers_are_told_where_labels_are_numbers(tmp_path: Path) -> None:
    file, out = ts(tmp_path / "some.ts"), tmp_path / "model"
    options = ["--option", "memory_size=16", "--seed", "3", "--layers", "2"]
    options += ["--learning-rate", "0.02"]
    found = json.loads(
        run("fit", file, "--cell", "nru", "--out", out, *SMALL, *options, "--json").stdout
    )
    assert found["series"] == 30
    assert found["learning_rate"] <= 0.02
    model = load(out)
    assert isinstance(model, RecurrentRegressor)
    assert model.options == {"memory_size": 16}
    assert (model.num_layers, model.random_state) == (2, 3)
    told = json.loads(run("predict", out, file, "--json").stdout)
    assert told["r2"] > 0
    assert told["root_mean_squared_error"] > 0
    assert "Said and right" in (out / "report.html").read_text()
    run("fit", file, "--out", out, "--answers", "classes", "--epochs", "1", "-q", "--force",
        "--validation", "0")  # fmt: skip
    assert type(load(out)).__name__ == "RecurrentClassifier"


def test_cells_are_compared_and_one_is_named(tmp_path: Path) -> None:
    file = tsv(tmp_path / "some.tsv", 24)
    few = ["--cell", "rnn", "--cell", "gru", "--folds", "2", "--seconds", "0.2"]
    few += ["--parameters", "60"]
    done = run("compare", file, *few)
    assert "2 cells, 2 folds, 0.2 s each: up to about 0.8 s" in done.stderr
    assert "parameters" in done.stdout
    best = done.stdout.split("Take ")[1].split(":")[0]
    assert f"attractor fit {file} --cell {best} --hidden-size" in done.stdout
    found = json.loads(run("compare", file, *few, "--json", "-q").stdout)
    assert found["take"] == found["cells"][0]["cell"]
    assert {one["cell"] for one in found["cells"]} == {"rnn", "gru"}
    assert found["cells"][0]["mean"] == np.mean(found["cells"][0]["scores"])


BAD = {
    "": "no series at all",
    "# nothing\n": "no series at all",
    "a\t1\t2\nb\tNaN\t3\n": r"missing values \(NaN\) in series 1, before its end",
    "a\t1\t2\nb\tNaN\tNaN\n": r"a series without values \(line 2\)",
    "a\t1\t2\na\t3\t4\n": "at least two classes, but all are of the class a",
    "a,1,2\nb,3,4\n": r"a line without tabs \(line 1\)\. .* \.csv with commas",
    "?\t1\t2\n?\t3\t4\n": "expected a label for each series",
    "a\t1\t2\n \t\n\t5\t6\nb\t3\t4\n": r"got: a series without a label \(line 3\)\. Try",
    "1\t1\t2\n\t5.5\t6\n2\t3\t4\n": r"got: a series without a label \(line 2\)\. Try",
    "\t1\t2\n\t5\t6\n": "expected a label for each series .* but there are none",
    "1\t1\t2\n2\t3\t4\nNaN\t5\t6\n": r"the label NaN, which is no finite number \(line 3\)\. T",
    "1.5\t1\t2\n-inf\t3\t4\n": r"the label -inf, which is no finite number \(line 2\)\. Try",
    "a\t1\t2\nb\tinf\t3\n": r"the value inf, which is infinite in single precision \(line 2\)",
    "a\t1\t-1e39\nb\t1\t3\n": r"the value -1e39, which is infinite .*precision \(line 1\)",
    "a\t1\t2\n\nb\t3\tx\n": r"could not convert string to float: .*x.* \(line 3\)",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_are_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_text(text)
    with pytest.raises(InputError, match=BAD[text]):
        run("fit", tmp_path / "bad.tsv", "--out", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_table_with_commas_names_and_shorter_series(tmp_path: Path) -> None:
    from attractor.estimators.reading import read

    file = tmp_path / "some.csv"
    file.write_text('class,a,b,c\n"up, fast",1,2,3\ndown,4, ,\ndown,5,nan,NaN\n')
    given = read(file)
    assert [one[:, 0].tolist() for one in given.x] == [[1, 2, 3], [4], [5]]
    assert given.y is not None
    assert given.y.tolist() == ["up, fast", "down", "down"]
    file.write_text("a,b\n1,2\n3,4\n")
    assert read(file, labelled=False).x[..., 0].tolist() == [[1, 2], [3, 4]]
    file.write_text("up,1,,2\ndown,1,2,3\n")
    with pytest.raises(InputError, match="missing values .* in series 0, before its end"):
        read(file)
    file.write_text("up\t1\n")
    with pytest.raises(InputError, match="a line without commas"):
        read(file)


def test_series_that_end_before_others_do_in_the_archive(tmp_path: Path) -> None:
    (tmp_path / "ucr").mkdir()
    for half in ("TRAIN", "TEST"):
        (tmp_path / "ucr" / f"Some_{half}.tsv").write_text("1\t1\t2\t3\n2\t4\tNaN\tNaN\n")
    x, lengths, _ = load_series("Some", "train", tmp_path)
    assert x[..., 0].tolist() == [[1, 2, 3], [4, 0, 0]]
    assert lengths is not None
    assert lengths.tolist() == [3, 1]


def test_other_mistakes_are_one_sentence(tmp_path: Path) -> None:
    file = tsv(tmp_path / "some.tsv")
    (tmp_path / "taken").touch()
    with pytest.raises(InputError, match="there is no file"):
        run("fit", tmp_path / "none.tsv", "--out", tmp_path / "taken")
    (tmp_path / "small.tsv.gz").touch()
    with pytest.raises(
        InputError, match=r"there is no file .*small\.tsv\. Did you mean .*tsv\.gz\?"
    ):
        run("fit", tmp_path / "small.tsv")
    with pytest.raises(InputError, match="expected a folder for a model, but .*taken is a file"):
        run("fit", file, "--out", tmp_path / "taken")
    with pytest.raises(InputError, match="numbers as labels .* could not convert"):
        run("fit", file, "--answers", "numbers", "--out", tmp_path / "model")
    with pytest.raises(InputError, match="no model.json"):
        run("predict", tmp_path, file)
    (tmp_path / "odd.ts").write_text("@data\n1,2:3,4:a\n1,2:b\n")
    with pytest.raises(InputError, match="series of 1 and of 2 dimensions"):
        run("fit", tmp_path / "odd.ts")
    (tmp_path / "bare.ts").write_text("@classLabel false\n@data\n1,2:3,4\n1,2:5,6\n")
    with pytest.raises(InputError, match="expected a label for each series"):
        run("fit", tmp_path / "bare.ts")


def test_fractions_are_numbers_and_whole_numbers_are_classes(tmp_path: Path) -> None:
    from attractor.estimators.reading import read

    file = tmp_path / "some.tsv"
    for labels, real in (("1", "2"), False), (("1.0", "-1e0"), False), (("1.5", "2"), True):
        file.write_text("".join(f"{label}\t1\t2\n" for label in labels))
        given = read(file)
        assert given.real is real
        assert given.y is not None
        assert given.y.dtype.kind == ("f" if real else "U")
    file.write_text("nan\t1\t2\n2\t1\t2\nsome\t1\t2\n")
    given = read(file)
    assert given.y is not None
    assert given.y.tolist() == ["nan", "2", "some"]  # a name among names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("some.csv", ",a,b\nup,1,2\n,3,4\ndown,5,6\n"),  # a column of labels without a name
        ("some.csv", 'label,a,b\nup,1,2\n" ",3,4\ndown,5,6\n'),
        ("some.ts", "@data\n1,2:up\n3,4:\n5,6:down\n"),
        ("some.tsv", "up\t1\t2\n\n \t3\t4\ndown\t5\t6\n"),
    ],
)
def test_a_label_that_is_missing_beside_others_is_told_with_its_line(
    name: str, text: str, tmp_path: Path
) -> None:
    from attractor.estimators.reading import read

    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InputError, match=r"got: a series without a label \(line 3\)\. Try"):
        read(file)
    given = read(file, needed=False)
    assert given.y is None
    assert given.x[..., 0].tolist() == [[1, 2], [3, 4], [5, 6]]


def test_predicting_ignores_that_labels_are_missing_where_it_is_to_ignore_labels(
    tmp_path: Path,
) -> None:
    out, file = tmp_path / "model", tmp_path / "some.tsv"
    run("fit", tsv(tmp_path / "train.tsv"), "--out", out, "--epochs", "1", *SMALL[:2], "-q")
    file.write_text("up\t1\t2\n\t3\t4\n")
    with pytest.raises(InputError, match="a series without a label"):
        run("predict", out, file)
    done = run("predict", out, file, "--labels", "ignore")
    assert len(done.stdout.split()) == 2
    assert "accuracy" not in done.stderr
    file.write_text("1\t2\n\t4\n")
    with pytest.raises(
        InputError, match="missing values .* in series 1"
    ):  # not one that is shorter
        run("predict", out, file, "--labels", "none")


IN_FLAGS = {
    "fit --batch-size 64": r"least --batch-size 64 series .* got 32\. Try no --batch-size, which",
    "fit --validation 0.01": r"a share of 0\.01 for validation, .* 40\. Try --validation 0\.$",
    "fit --validation 2": r"expected --validation to be from 0 to 0\.9, .* Try --validation 0\.$",
    "fit --learning-rate -1": r"expected --learning-rate to be .* Try --learning-rate 0\.1\.$",
    "fit --layers 0": r"expected --layers to be at least 1, .* Try --layers 1\.$",
    "fit --patience 3 --validation 0": r"no --patience 3 beside --validation 0, .* Leave one of",
    "fit --patience 0": r"expected --patience to be at least 1, .* Try --patience 1\.$",
    "fit --option foo": r"expected --option as name=value, but got 'foo'\. Try --option t_max=140",
    "fit --option =3": r"expected --option as name=value, but got '=3'\. Try --option t_max=140",
    "fit --option a..b=3": r"expected --option as name=value, but got 'a..b=3'\. Try --option t_m",
    "compare --folds 1": r"expected --folds to be at least 2, .* Try --folds 2\.$",
    "compare --seconds 0": r"expected --seconds to be .* Try --seconds 0\.1\.$",
}


@pytest.mark.parametrize("command", IN_FLAGS)
def test_mistakes_are_told_in_the_words_of_the_command_line(command: str, tmp_path: Path) -> None:
    name, *options = command.split()
    out = ["--out", tmp_path / "model"] if name == "fit" else []
    with pytest.raises(InputError, match=IN_FLAGS[command]):
        run(name, tsv(tmp_path / "some.tsv"), *options, *out, "--quiet")


def test_a_place_that_cannot_be_written_to_is_told_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: object, **__: object) -> None:
        raise AssertionError("training began")

    monkeypatch.setattr("attractor.estimators.RecurrentClassifier.fit", fit)
    file = tsv(tmp_path / "some.tsv")
    with pytest.raises(InputError, match=r"write .*some\.tsv/model.* for --out, .* not a folder"):
        run("fit", file, "--out", file / "model")
    (tmp_path / "model" / "report.html").mkdir(parents=True)
    with pytest.raises(InputError, match=r"a file for --out, but got the folder .*report\.html"):
        run("fit", file, "--out", tmp_path / "model")


@pytest.mark.parametrize(("learnt", "asked"), [("1.0", "1"), ("1", "1.0"), ("+1e0", "01.")])
def test_equal_numbers_are_the_same_class_however_they_are_written(
    learnt: str, asked: str, tmp_path: Path
) -> None:
    out = tmp_path / "model"
    train = tsv(tmp_path / "train.tsv", names=(learnt, "-2"))
    train.write_text(train.read_text().replace("-2\t", "-2.00\t", 1))
    run("fit", train, "--out", out, *SMALL)
    test = tsv(tmp_path / "test.tsv", names=(asked, "-2.0"))
    found = json.loads(run("predict", out, test, "--json").stdout)
    assert found["classes"] == ["-2", "1"]
    assert found["accuracy"] > 0.9


@pytest.mark.parametrize("classes", [["1.0", "2.0"], [1, 2], [1.0, 2.0]])
def test_labels_of_a_file_are_the_equal_classes_of_models_from_elsewhere(
    classes: list[object], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    model = RecurrentClassifier("rnn", 4, epochs=1, random_state=0)
    save(model.fit(rng.normal(size=(20, 5)), np.array(classes * 10)), tmp_path / "model")
    file = tsv(tmp_path / "some.tsv", names=("1", "2.0"))
    found = json.loads(run("predict", tmp_path / "model", file, "--json").stdout)
    right = np.array(classes * 20)
    assert found["accuracy"] == (right == np.array(found["predictions"])).mean()
    other = tsv(tmp_path / "other.tsv", names=("1", "3"))
    with pytest.raises(InputError, match="classes that the model knows .* but got '3'"):
        run("predict", tmp_path / "model", other)
