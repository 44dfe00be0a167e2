"""A study: a grid of recipe fields and run options, declared as data, and its planned runs."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple, get_type_hints

from dawnbench_tf import files, recipes
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.recipes import recipe_files
from dawnbench_tf.refusals import Refusal, one_line, refuse, suggestion
from dawnbench_tf.settings import (
    PlainSettings,
    Scalar,
    all_settings,
    check_fields,
    check_type,
    flag_text,
    replaced,
)

Settings = Mapping[str, Any]  # name -> value: "recipe", fields of Recipe, RunOptions, Credits
FIGURES = tuple("times tradeoff curves factors latency scaling distribution generalization".split())
_RECIPE = set(all_settings(Recipe))
_OPTIONS = set(all_settings(RunOptions)) - {"output_dir", "max_steps"}
LARGEST = 10_000  # runs of a study, at most
LONGEST = 100  # characters of a level's name, at most


class Level(NamedTuple):
    """One level of a factor. A label of "" is replaced by the level's only value."""

    label: str
    settings: Settings


class Factor(NamedTuple):
    """An experimental factor: the settings that a study varies together."""

    name: str
    levels: tuple[Level, ...]  # the first is the baseline


@dataclass(frozen=True)
class Study:
    """A full factorial grid: every combination of the factors' levels, with `trials` seeds each.

    A setting of a study in `rows` may be a function of the values of the recipe's settings and of
    cost_per_hour, by name; `with_changes` computes it.
    """

    name: str
    question: str
    recipe: str
    trials: int
    factors: tuple[Factor, ...] = ()
    settings: Settings = field(default_factory=dict)  # of all runs
    thresholds: tuple[float, ...] = ()  # reported thresholds; runs end at the highest
    latency: bool = False  # whether `infer` times each trained model as well
    figure: str = "times"  # a key of figures.FIGURES
    source: str = ""  # figure or section of the paper that it repeats
    modules: Mapping[str, Any] = field(default_factory=dict)  # recipes of modules and files: values

    def with_modules(self) -> "Study":
        """Returns the study with its recipes of modules and files recorded, which `plan` needs."""
        levels = [level.settings for factor in self.factors for level in factor.levels]
        names = [self.recipe, *(settings.get("recipe") for settings in (self.settings, *levels))]
        named = [n for n in names if isinstance(n, str) and (":" in n or recipe_files.is_path(n))]
        return replace(self, modules={name: recipes.get(name).values() for name in named})

    def get(self, name: str, **changes: Any) -> Recipe:
        """Returns a recipe as `recipes.get` does, but imports no module: whose study is it?"""
        if name not in self.modules:
            if ":" not in name:
                return recipes.get(name, **changes)
            text = "is of a module, and study.json does not record it"
            refuse("recipe", name, f"{text}; nothing is imported to read it")
        try:
            recipe = Recipe.from_values(self.modules[name])
        except (TypeError, KeyError, AttributeError, ValueError) as error:
            refuse("recipe", name, f"is damaged in study.json ({one_line(error, 100)})")
        return recipes.changed(recipe, **changes)

    def values(self) -> dict[str, Any]:
        """Returns the study as JSON values; `store.claimed` compares them with the folder's."""
        values = asdict(self)
        values["factors"] = [
            {"name": f.name, "levels": [[level.label, dict(level.settings)] for level in f.levels]}
            for f in self.factors
        ]
        return json.loads(json.dumps(values))  # tuples are lists there

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Study":
        """Inverse of `values()`. Raises ValueError if the values are not those of a study."""
        values = {"modules": {}, **values}  # which earlier versions did not record
        others = {
            "factors": list[_FactorValues],
            "thresholds": list[float],
            "modules": dict[str, Any],
        }
        check_fields(values, {**get_type_hints(cls), **others, "settings": PlainSettings}, "study")
        if values["figure"] not in FIGURES:
            raise ValueError(f"figure should be one of {', '.join(FIGURES)}")

        factors = tuple(
            Factor(f["name"], tuple(Level(label, own) for label, own in f["levels"]))
            for f in values["factors"]
        )
        return cls(**{**values, "factors": factors, "thresholds": tuple(values["thresholds"])})


def times(factor: float, name: str) -> Callable[[Mapping[str, Any]], Any]:
    """Returns a function of the recipe's values: a multiple of one; None of an unknown price."""

    def multiple(values: Mapping[str, Any]) -> Any:
        number = values.get(name)
        if number is None and name == "cost_per_hour":
            return None
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ValueError(f"{one_line(name, 60)} is no number of the recipe")
        return round(factor * number) if isinstance(number, int) else factor * number

    return multiple


class _FactorValues(NamedTuple):
    name: str
    levels: list[tuple[str, PlainSettings]]


class PlannedRun(NamedTuple):
    """One planned run of a study."""

    name: str  # its folder in the study's folder: SETTING/seed-N
    labels: tuple[str, ...]  # label of its level, for each factor
    seed: int
    recipe: Recipe
    options: RunOptions
    flags: tuple[str, ...]  # of `dawnbench train`, without --output_dir
    settings: Settings  # the study's, of this run


def with_changes(study: Study, recipe: str, trials: int, changes: Settings) -> Study:
    """Returns the study with changed settings, its functions computed, ready for `plan`."""
    # "" and 0 keep its recipe and trials.
    levels = [level for factor in study.factors for level in factor.levels]
    for name, value in {**changes, **({"recipe": recipe} if recipe else {})}.items():
        # A level that is a function of a setting follows its change.
        if any(name in lv.settings and not callable(lv.settings[name]) for lv in levels):
            text = f"is what {study.name} varies; a grid of your own may hold it fixed"
            refuse(name, value, text)
    if recipe and recipes.get(recipe).task != recipes.get(study.recipe).task:
        others = {k: v for k, v in study.settings.items() if k != "model"}
        study = replace(study, thresholds=(), settings=others)  # these are of the study's own task
    if changes.get("threshold"):
        study = replace(study, thresholds=(changes["threshold"],))
    recipe, settings = recipe or study.recipe, dict[str, Any]({**study.settings, **changes})
    sources = [settings, *(level.settings for level in levels)]
    if any(callable(value) for own in sources for value in own.values()):
        plain = {name: value for name, value in settings.items() if not callable(value)}
        row = recipes.get(recipe, **{k: v for k, v in plain.items() if k in _RECIPE})
        base = {**row.values(), "cost_per_hour": plain.get("cost_per_hour")}

        def computed(own: Settings) -> dict[str, Any]:
            values = {name: v(base) if callable(v) else v for name, v in own.items()}
            return {name: value for name, value in values.items() if value is not None}

        factors = tuple(
            Factor(f.name, tuple(Level(lv.label, computed(lv.settings)) for lv in f.levels))
            for f in study.factors
        )
        settings, study = computed(settings), replace(study, factors=factors)
    return replace(study, recipe=recipe, trials=trials or study.trials, settings=settings)


def with_levels(study: Study, values: list[Any]) -> Study:
    """Returns the study with other values of the one field that it varies. Raises Refusal."""
    varied = {tuple(level.settings) for factor in study.factors for level in factor.levels}
    if len(study.factors) != 1 or len(varied) != 1 or len(next(iter(varied))) != 1:
        reason = f"{study.name} does not vary one field alone; a grid of your own may vary all"
        refuse("levels", values, reason)
    (name,) = next(iter(varied))
    factor = Factor(study.factors[0].name, tuple(Level("", {name: value}) for value in values))
    return replace(study, factors=(factor,))


def plan(study: Study) -> list[PlannedRun]:
    """Returns all runs of a study. Raises Refusal: a setting is invalid, or runs are too many."""
    count = max(study.trials, 0)
    for text in (study.name, study.source, *(factor.name for factor in study.factors)):
        if not text.isprintable():
            raise Refusal(f"{text[:60]!a}: a study's and a factor's name should be printable")
    for factor in study.factors:
        count *= len(factor.levels)
        for level in factor.levels:
            if not level.label and len(level.settings) != 1:
                raise Refusal(f"{study.name}: a level of {factor.name} has no name")
            if "seed" in level.settings:
                text = "is what trials vary; set trials, and the first one's seed in settings"
                refuse("seed", level.settings["seed"], text)
    if not 1 <= count <= LARGEST:
        text = f"should come to 1 to {LARGEST:,} runs with all combinations of levels"
        refuse("trials", study.trials, text)
    first = study.settings.get("seed", 0)
    if type(first) is not int:
        refuse("seed", repr(first), "should be a whole number, the first trial's")
    combinations = product(*(factor.levels for factor in study.factors))
    settings = [_combine(study, levels) for levels in combinations]
    planned = [  # all settings with one seed before the next: an interrupted study is balanced
        _plan_run(study, labels, combined, seed)
        for seed in range(first, first + study.trials)
        for labels, combined in settings
    ]
    for threshold in study.thresholds:
        planned[0].recipe.task_row.check_threshold(threshold)
    for name, count in Counter(run.name for run in planned).items():
        if count > 1:
            folder = name.partition("/")[0]
            text = f"{count} of its settings would be {folder}; name levels apart"
            raise Refusal(f"{study.name}: {text}")
    return planned


def _combine(study: Study, levels: Sequence[Level]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Returns the labels and the settings of one combination of levels."""
    settings = {"recipe": study.recipe, **study.settings}
    if study.thresholds:
        settings.setdefault("threshold", max(study.thresholds))
    for level in levels:
        settings.update(level.settings)
    if not isinstance(settings["recipe"], str):
        refuse("recipe", settings["recipe"], "should be text, TASK/NAME")
    if study.thresholds and study.get(settings["recipe"]).values()["eval_from"]:
        settings.setdefault("eval_from", 0.0)  # the lower thresholds may be reached early
    settings = {name: _checked(name, value) for name, value in settings.items()}
    labels = []
    for level in levels:
        value = settings[next(iter(level.settings))] if not level.label else level.label
        text = ",".join(map(str, value)) if isinstance(value, tuple) else value
        labels.append(level.label or one_line(text, LONGEST).replace("e+", "e"))  # 1e+30 is 1e30
        if not labels[-1].isprintable() or len(labels[-1]) > LONGEST:
            expected = f"should be on one line, of {LONGEST} characters at most"
            raise Refusal(f"{study.name}: level {labels[-1][:40]!a}: {expected}")
    return tuple(labels), {name: value for name, value in settings.items() if value is not None}


def _checked(name: str, value: Any) -> Any:
    """Checks a setting's name and that its value is plain; returns a list as a tuple."""
    names = _RECIPE | _OPTIONS | {"recipe"}
    if name == "max_steps":
        refuse(name, value, "times steps and trains no run; leave it out")
    if name not in names:
        hint = suggestion(name, names, "`dawnbench train --helpfull` lists all")
        text = f"{one_line(name, 60)}={one_line(value)}: no field of a recipe or a run"
        raise Refusal(f"{text}; {hint}")
    if isinstance(value, dict):
        refuse(name, one_line(value, 60), "should be a number, text, or a list of them")
    values = value if isinstance(value, list | tuple) else [value]
    try:
        check_type(list(values), list[Scalar], name)
    except ValueError as error:
        raise Refusal(f"{error}; it is {one_line(value, 40)}") from None
    if not all(text.isprintable() for text in values if isinstance(text, str)):
        refuse(name, ascii(value)[:80], "should be printable")
    return tuple(value) if isinstance(value, list) else value


def _plan_run(
    study: Study, labels: tuple[str, ...], combined: dict[str, Any], seed: int
) -> PlannedRun:
    settings = {**combined, "seed": seed}
    recipe = study.get(settings["recipe"], **{k: v for k, v in settings.items() if k in _RECIPE})
    recipe = recipes.named_by(recipe, settings.get("data_dir", ""))
    # By default XLA compiles what trains long on one GPU: perhaps some levels, and others not.
    values = settings | {"jit_compile": settings.get("jit_compile", False)}
    options = replaced(RunOptions(), values, credits=replaced(Credits(), values))
    setting = "_".join(filter(None, map(files.hyphenated, labels))) or "baseline"
    if len(setting.encode()) > 2 * LONGEST:
        expected = f"names of levels should come to {2 * LONGEST} bytes at most"
        raise Refusal(f"{setting[:40]}...: {expected}")
    flags = tuple(flag_text(name, value) for name, value in values.items())
    return PlannedRun(f"{setting}/seed-{seed}", labels, seed, recipe, options, flags, settings)
