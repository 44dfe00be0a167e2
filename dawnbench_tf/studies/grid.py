"""A study: a grid of recipe fields and run options, declared as data, and its planned runs."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

from dawnbench_tf import recipes, typed
from dawnbench_tf.options import Credits, RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line, refuse
from dawnbench_tf.settings import flag_text
from dawnbench_tf.studies.multiples import (
    CREDITS_SETTINGS,
    RECIPE_SETTINGS,
    RUN_SETTINGS,
    is_multiple,
    reference_values,
    resolve,
)

Settings = Mapping[str, Any]  # name -> value: "recipe", fields of Recipe, RunOptions, Credits
FIGURES = (
    "times",
    "tradeoff",
    "curves",
    "factors",
    "latency",
    "scaling",
    "distribution",
    "generalization",
)
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

    A setting may be a multiple of a number of the recipe: "4 * batch_size".
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
    modules: Mapping[str, Any] = field(default_factory=dict)  # values of recipes of Python modules

    def with_modules(self) -> "Study":
        """Returns the study with its recipes of modules recorded, which `plan` needs."""
        levels = [level.settings for factor in self.factors for level in factor.levels]
        names = [self.recipe, *(settings.get("recipe") for settings in (self.settings, *levels))]
        named = [name for name in names if isinstance(name, str) and ":" in name]
        return replace(self, modules={name: recipes.get(name).values() for name in named})

    def get(self, name: str, **changes: Any) -> Recipe:
        """Returns a recipe as `recipes.get` does, but imports no module: whose study is it?"""
        if ":" not in name:
            return recipes.get(name, **changes)
        if name not in self.modules:
            text = (
                "is of a module, and study.json does not record it; nothing is imported to read it"
            )
            refuse("recipe", name, text)
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
        """Inverse of `values()`.

        Raises:
          ValueError: the values are not those of a study.
        """
        values = {"modules": {}, **values}  # which earlier versions did not record
        typed.check_fields(values, _Values, "study")
        factors = []
        for item in values["factors"]:
            levels = tuple(Level(label, settings) for label, settings in item["levels"])
            factors.append(Factor(item["name"], levels))
        thresholds = tuple(values["thresholds"])
        if values["figure"] not in FIGURES:
            raise ValueError(f"figure should be one of {', '.join(FIGURES)}")
        return cls(**{**values, "factors": tuple(factors), "thresholds": thresholds})


class _FactorValues(NamedTuple):
    name: str
    levels: list[tuple[str, typed.Settings]]


class _Values(NamedTuple):
    """Types of the values of `Study.values()`."""

    name: str
    question: str
    recipe: str
    trials: int
    factors: list[_FactorValues]
    settings: typed.Settings
    thresholds: list[float]
    latency: bool
    figure: str
    source: str
    modules: dict[str, Any]


class PlannedRun(NamedTuple):
    """One planned run of a study."""

    name: str  # its folder in the study's folder: SETTING/seed-N
    labels: tuple[str, ...]  # label of its level, for each factor
    seed: int
    recipe: Recipe
    flags: tuple[str, ...]  # of `dawnbench train`, without --output_dir
    settings: Settings  # the settings that the flags set


def with_changes(study: Study, recipe: str, trials: int, changes: Settings) -> Study:
    """Returns the study with another recipe, number of trials and settings.

    Args:
      study: the study to change.
      recipe: name of the recipe, TASK/NAME; "" keeps the study's.
      trials: runs of each setting; 0 keeps the study's.
      changes: settings of all runs. A threshold replaces the study's thresholds.

    Raises:
      Refusal: a change sets a field that the study varies.
    """
    levels = [level for factor in study.factors for level in factor.levels]
    varied = {name for lv in levels for name, v in lv.settings.items() if not is_multiple(v)}
    for name in (*changes, *(["recipe"] if recipe else [])):
        if name in varied:
            value = recipe if name == "recipe" else changes[name]
            refuse(
                name, value, f"is what {study.name} varies; a grid of your own may hold it fixed"
            )
    thresholds = study.thresholds
    if recipe and recipes.get(recipe).task != recipes.get(study.recipe).task:
        thresholds = ()  # thresholds and model are those of the study's own task
        study = replace(study, settings={k: v for k, v in study.settings.items() if k != "model"})
    if changes.get("threshold"):
        thresholds = (changes["threshold"],)
    return replace(
        study,
        recipe=recipe or study.recipe,
        trials=trials or study.trials,
        settings={**study.settings, **changes},
        thresholds=thresholds,
    )


def with_levels(study: Study, values: list[Any]) -> Study:
    """Returns the study with other values of the field that its only factor varies.

    Raises:
      Refusal: the study has several factors, or a level sets several fields.
    """
    varied = {tuple(level.settings) for factor in study.factors for level in factor.levels}
    if len(study.factors) != 1 or len(varied) != 1 or len(next(iter(varied))) != 1:
        reason = f"{study.name} does not vary one field alone; a grid of your own may vary all"
        refuse("levels", values, reason)
    (name,) = next(iter(varied))
    factor = Factor(study.factors[0].name, tuple(Level("", {name: value}) for value in values))
    return replace(study, factors=(factor,))


def plan(study: Study) -> list[PlannedRun]:
    """Returns all runs of a study.

    One seed of every setting comes before the next seed, so an interrupted study is balanced.

    Raises:
      Refusal: a setting is unknown or out of its bounds, or the study has too many runs.
    """
    _check_size(study)
    first = study.settings.get("seed", 0)
    if type(first) is not int:
        refuse("seed", repr(first), "should be a whole number, the first trial's")
    settings = [
        _resolve_levels(study, levels)
        for levels in product(*(factor.levels for factor in study.factors))
    ]
    planned = [
        _plan_run(study, labels, name, changes, seed)
        for seed in range(first, first + study.trials)
        for labels, name, changes in settings
    ]
    for threshold in study.thresholds:
        planned[0].recipe.task_row.check_threshold(threshold)
    for name, count in Counter(run.name for run in planned).items():
        if count > 1:
            folder = name.partition("/")[0]
            raise Refusal(
                f"{study.name}: {count} of its settings would be {folder}; name levels apart"
            )
    return planned


def _check_size(study: Study) -> None:
    count = max(study.trials, 0)
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


def _resolve_levels(
    study: Study, levels: tuple[Level, ...]
) -> tuple[tuple[str, ...], str, dict[str, Any]]:
    """Returns labels, recipe name and resolved settings of one combination of levels."""
    changes = dict(study.settings)
    if study.thresholds:
        changes.setdefault("threshold", max(study.thresholds))
    for level in levels:
        changes.update(level.settings)
    name = changes.pop("recipe", study.recipe)
    if not isinstance(name, str):
        refuse("recipe", name, "should be text, TASK/NAME")
    base = reference_values(study.get, name, study.settings)
    if study.thresholds and base["eval_from"]:  # the lower ones may be reached early
        changes.setdefault("eval_from", 0.0)
    changes = {key: resolve(key, value, base) for key, value in changes.items()}
    values = {**changes, "recipe": name}
    labels = tuple(level.label or _label(values[next(iter(level.settings))]) for level in levels)
    for label in labels:
        if not label.isprintable() or len(label) > LONGEST:
            expected = f"should be on one line, of {LONGEST} characters at most"
            raise Refusal(f"{study.name}: level {label[:40]!a}: {expected}")
    changes = {key: value for key, value in changes.items() if value is not None}
    return labels, name, changes


def _label(value: Any) -> str:
    """Formats a value as a level's label."""
    return one_line(",".join(map(str, value)) if isinstance(value, tuple) else value, LONGEST)


def _plan_run(
    study: Study, labels: tuple[str, ...], name: str, changes: Settings, seed: int
) -> PlannedRun:
    changes = {**changes, "seed": seed}
    recipe = study.get(name, **{k: v for k, v in changes.items() if k in RECIPE_SETTINGS})
    recipe = recipes.named_by(recipe, changes.get("data_dir", ""))
    credits = Credits(**{k: v for k, v in changes.items() if k in CREDITS_SETTINGS})
    run_options = {k: v for k, v in changes.items() if k in RUN_SETTINGS}
    RunOptions(credits=credits, **run_options)  # its constructor checks them
    flags = (f"--recipe={name}", *(flag_text(key, value) for key, value in changes.items()))
    words = [re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.") for label in labels]
    setting = "_".join(filter(None, words)) or "baseline"
    if len(setting) > 2 * LONGEST:
        expected = f"names of levels should come to {2 * LONGEST} characters at most"
        raise Refusal(f"{setting[:40]}...: {expected}")
    settings = {"recipe": name, **changes}
    return PlannedRun(f"{setting}/seed-{seed}", labels, seed, recipe, flags, settings)
