"""Configuration: what is read, changed, refused, and how the refusal sounds."""

from pathlib import Path

import pytest

from attractor.errors import InputError
from attractor.experiments.changes import changed
from attractor.experiments.config import ExperimentConfig, validated
from attractor.experiments.files import VERSION, read_toml
from attractor.experiments.kinds.supervised import SupervisedRun
from attractor.experiments.read import read
from attractor.experiments.table import EXPERIMENTS, load
from attractor.experiments.train import runs_of, train
from experiments.helpers import TINY, TINY_STREAM, tiny


def test_runs_are_every_model_from_every_seed() -> None:
    name, experiment = load(str(TINY))
    runs = runs_of(name, experiment)
    assert [(run.label, run.seed) for run in runs] == [
        ("GRU", 0),
        ("LSTM", 0),
        ("GRU", 1),
        ("LSTM", 1),
    ]
    assert len({run.id for run in runs}) == 4


def test_a_run_is_written_and_read_back_the_same() -> None:
    import tomllib

    run = tiny("model.t_max=9", label="LSTM")
    again = validated(SupervisedRun, tomllib.loads(run.to_toml()), "config.toml")
    assert again == run
    assert again.id == run.id


def test_the_id_follows_what_decides_the_numbers_only() -> None:
    assert tiny("title='Another'").id == tiny().id
    for change in (
        "optimiser.lr=0.02",
        "model.hidden_size=7",
        "task.order=pixels",
        "train.threads=2",
    ):
        assert tiny(change).id != tiny().id


def test_changes_reach_every_model() -> None:
    name, experiment = load(str(TINY), ["model.hidden_size=9", "seeds=[4]"])
    sizes = [run.model_dump()["model"]["hidden_size"] for run in runs_of(name, experiment)]
    assert sizes == [9, 9]
    assert experiment.seeds == [4]


def test_values_of_changes_are_toml_or_else_text() -> None:
    content = changed(
        {}, ["a.b=1", "a.c=1e-3", "a.d=true", "a.e=[1, 2]", "a.f=cuda:0", "a.g='x=y'"]
    )
    assert content == {"a": {"b": 1, "c": 1e-3, "d": True, "e": [1, 2], "f": "cuda:0", "g": "x=y"}}


def test_a_model_can_train_differently() -> None:
    content = read_toml(TINY)
    content["variant"][0] |= {"optimiser": {"lr": 0.5}, "train": {"steps": 9}}
    runs = runs_of("x", validated(ExperimentConfig, content, "file"))
    assert [run.model_dump()["optimiser"] for run in runs[:2]] == [
        {"name": "adam", "lr": 0.5},
        {"name": "adam", "lr": 0.01},
    ]
    assert [run.train.steps for run in runs[:2]] == [9, 60]


def with_own_rate(folder: Path) -> Path:
    path = folder / "own.toml"
    path.write_text(TINY.read_text() + "optimiser.lr = 0.5\n")  # of the last model
    return path


def test_a_change_wins_over_what_a_model_says_and_its_label_tells(tmp_path: Path) -> None:
    name, experiment = load(str(with_own_rate(tmp_path)), ["optimiser.lr=0.25", "seeds=[0]"])
    runs = {run.label: run.model_dump()["optimiser"]["lr"] for run in runs_of(name, experiment)}
    assert runs == {"GRU": 0.25, "LSTM (optimiser.lr=0.25)": 0.25}
    assert [run.label for run in runs_of(name, experiment, ["LSTM"])] == [
        "LSTM (optimiser.lr=0.25)"
    ]
    name, experiment = load(str(with_own_rate(tmp_path)), ["optimiser.lr=0.5", "seeds=[0]"])
    assert [run.label for run in runs_of(name, experiment)] == ["GRU", "LSTM"]


@pytest.mark.parametrize(
    ("change", "budget"),
    [
        ("train.steps=3", "changed"),
        ("stream.tasks=3", "changed"),
        ("train.batch_size=3", "changed"),
        ("train.steps=100", "full"),
        ("optimiser.lr=0.5", "full"),
        ("train.device=cpu", "full"),
        ("seeds=[0]", "full"),
        ("strategy=er", "full"),
        ("budget=quick", "quick"),
    ],
)
def test_another_length_is_another_budget(change: str, budget: str) -> None:
    name, experiment = load("permuted-mnist", [change])
    assert {run.budget for run in runs_of(name, experiment)} == {budget}


def test_a_quick_budget_stays_one() -> None:
    assert tiny("train.steps=3").budget == "quick"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            ["train.stepz=3"],
            "known key in GRU .* 'train.stepz'. Did you mean 'train.steps'",
        ),
        (["trian.steps=3"], "known key in tiny.toml .* got 'trian'. Did you mean 'train'"),
        (["train.steps=-3"], "valid 'train.steps' .*greater than or equal to 1.* but got -3"),
        (["train.clip=fast"], "valid 'train.clip' in GRU .* but got 'fast'"),
        (["optimiser=3"], "valid 'changes.optimiser' in tiny.toml .* but got 3"),
        (["train.steps"], "a change as a.b=value, but got 'train.steps'"),
        (["title.x=3"], "'title' in the change 'title.x=3' to be a table, but it is a value"),
        (["train.steps.x.y=5"], "'steps' in the change .* to be a table, but it is a value"),
    ],
)
def test_mistakes_in_changes(changes: list[str], text: str) -> None:
    with pytest.raises(InputError, match=text):
        runs_of("tiny", read(TINY, changes))


def test_toml_syntax_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("title = no quotes")
    with pytest.raises(InputError, match="to be TOML, but got a syntax error: .*line 1"):
        read(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="configuration file at .* but got: No such file"):
        read(tmp_path / "none.toml")


def test_missing_value(tmp_path: Path) -> None:
    path = tmp_path / "short.toml"
    path.write_text("title = 'x'")
    with pytest.raises(InputError, match="a value for 'kind' in short.toml, but there is none"):
        read(path)
    path.write_text("kind = 'supervised'\ntitle = 'x'")
    with pytest.raises(InputError, match="a value for 'budget' in short.toml, but there is none"):
        read(path)


def test_newer_version(tmp_path: Path) -> None:
    path = tmp_path / "future.toml"
    path.write_text(f"version = {VERSION + 1}\nsomething_new = 3")
    with pytest.raises(InputError, match="version 2 or older, but it is of version 3. Try"):
        read(path)


def test_unknown_experiment_and_model() -> None:
    with pytest.raises(InputError, match="known experiment .* got 'dmeo'. Did you mean 'demo'"):
        load("dmeo")
    name, experiment = load(str(TINY))
    with pytest.raises(InputError, match="known variant of this experiment .* got 'GRUU'"):
        runs_of(name, experiment, ["GRUU"])


def test_seeds_must_differ() -> None:
    name, experiment = load(str(TINY), ["seeds=[1, 1]"])
    with pytest.raises(InputError, match="different seeds, but got"):
        runs_of(name, experiment)


def test_a_date_is_just_a_wrong_value() -> None:
    with pytest.raises(InputError, match="valid 'train.clip' in GRU"):
        tiny("train.clip=2026-01-01")
    assert tiny("task.order=2026-01-01").id


def test_labels_must_differ() -> None:
    name, experiment = load(str(TINY), ["variant=[{label='same'}, {label='same'}]"])
    with pytest.raises(InputError, match="its own label"):
        runs_of(name, experiment)


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_experiment_of_the_table_can_be_read(name: str) -> None:
    _, experiment = load(name)
    assert runs_of(name, experiment)
    assert experiment.description


def test_a_base_may_have_a_base_but_not_itself(tmp_path: Path) -> None:
    top = tmp_path / "top.toml"
    top.write_text('base = "middle.toml"\n[train]\nlog_every = 3\n')
    (tmp_path / "middle.toml").write_text('base = "tiny.toml"\n[train]\nsteps = 7\nlog_every = 4\n')
    (tmp_path / "tiny.toml").write_text(TINY.read_text())
    _, experiment = load(str(top))
    assert (experiment.train["steps"], experiment.train["log_every"]) == (7, 3)
    (tmp_path / "tiny.toml").write_text('base = "top.toml"\n')
    with pytest.raises(InputError, match=r"top.toml -> middle.toml -> tiny.toml -> top.toml"):
        load(str(top))


@pytest.mark.parametrize("budget", ["full", "changed"])
def test_a_quick_run_cannot_call_itself_more(budget: str) -> None:
    with pytest.raises(InputError, match=f"budget of the file .quick. or a smaller .*={budget}"):
        tiny(f"budget={budget}")
    assert load("permuted-mnist", ["budget=full"])[1].budget == "full"


def test_the_nearest_label_is_found_whatever_its_case() -> None:
    name, experiment = load(str(TINY))
    with pytest.raises(InputError, match="got 'lstm'. Did you mean 'LSTM'"):
        runs_of(name, experiment, ["lstm"])


@pytest.mark.parametrize("base", ["3", "['a.toml']", "''", "'..'", "'../x.toml'", "'/etc/x.toml'"])
def test_a_base_is_the_name_of_a_file_beside(base: str, tmp_path: Path) -> None:
    path = tmp_path / "top.toml"
    path.write_text(f"base = {base}\n")
    with pytest.raises(InputError, match="the base of top.toml to be the name of a file beside it"):
        read(path)


@pytest.mark.parametrize("kind", ["['supervised']", "{ a = 1 }", "3", "'supervized'"])
def test_a_kind_is_a_name(kind: str) -> None:
    with pytest.raises(
        InputError, match="known kind of experiment .continual, lifelong, super|valid 'kind'"
    ):
        tiny(f"kind={kind}")


@pytest.mark.parametrize("text", ["x = " + "[" * 5000 + "]" * 5000, "a" + ".a" * 5000 + " = 1"])
def test_a_file_may_not_be_nested_without_end(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(text)
    with pytest.raises(InputError, match="tables and lists more than 20 deep"):
        read(path)
    with pytest.raises(InputError, match="a change as a.b=value, but got"):
        read(TINY, ["a" + ".a" * 5000 + "=1"])


@pytest.mark.parametrize("name", ["...toml", "....toml", "a\x1b[2J.toml", "a\nb.toml"])
def test_a_file_whose_name_is_no_name_for_a_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(TINY.read_text())
    with pytest.raises(InputError, match="letters, digits and .* alone, .* not dots alone"):
        load(str(tmp_path / name))


@pytest.mark.parametrize("experiment", ["..", "../x", "/x", "a/b", "a\\b", "", "a\x00"])
def test_a_run_cannot_be_put_elsewhere_by_its_experiment(experiment: str) -> None:
    content = {**tiny().model_dump(), "experiment": experiment}
    with pytest.raises(InputError, match="'experiment' in config.toml"):
        validated(SupervisedRun, content, "config.toml")


def test_a_long_label_makes_no_long_folder() -> None:
    assert len(tiny("variant=[{label='" + "x" * 4000 + "', model={cell='gru', hidden_size=3}}]",
                    label="x" * 4000).id) < 130  # fmt: skip


def test_the_features_of_an_odd_data_set_stay_where_all_are(tmp_path: Path) -> None:
    stream = "stream={name='incremental_images', dataset='../../../x'}"
    features = "features={model={name='resnet', depth=18}, steps=1}"
    name, experiment = load(str(TINY_STREAM), [stream, features])
    run = runs_of(name, experiment)[0]
    out = tmp_path / "a" / "b" / "c" / "runs"
    with pytest.raises(InputError, match="'../../../x'"):
        train(run, out)
    made = [path for path in tmp_path.rglob("*") if out not in (path, *path.parents)]
    assert all(path in out.parents for path in made)
