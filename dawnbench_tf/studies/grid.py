"""A study: a grid of recipe fields and run options, declared as data, and the runs it plans."""

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

Settings = Mapping[str, Any]  # fields of Recipe, RunOptions and Credits by name, and "recipe"
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
LARGEST = 10_000  # runs of a study
LONGEST = 100  # characters of a level's name


class Level(NamedTuple):
    """One level of a factor: what it sets. A label of "" stands for the one value it sets."""

    label: str
    settings: Settings


class Factor(NamedTuple):
    """What a study varies."""

    name: str
    levels: tuple[Level, ...]  # the first is the baseline


@dataclass(frozen=True)
class Study:
    """A grid: every combination of the factors' levels, `trials` seeds of each.

    A value in settings may be a multiple of what the recipe has: "4 * batch_size".
    """

    name: str
    question: str
    recipe: str
    trials: int
    factors: tuple[Factor, ...] = ()
    settings: Settings = field(default_factory=dict)  # of all runs
    thresholds: tuple[float, ...] = ()  # times are given to each; runs end at the highest
    latency: bool = False  # `infer` times each trained model as well
    figure: str = "times"  # of figures.FIGURES
    source: str = ""  # what of the paper it repeats

    def values(self) -> dict[str, Any]:
        """All of it as JSON has it: what a study's folder is held to."""
        values = asdict(self)
        values["factors"] = [
            {"name": f.name, "levels": [[level.label, dict(level.settings)] for level in f.levels]}
            for f in self.factors
        ]
        return json.loads(json.dumps(values))  # tuples are lists there

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Study":
        """The study that `values()`, perhaps through JSON, came from.

        Raises:
          ValueError: they are none of a study.
        """
        typed.check_fields(values, _Values, "study")
        factors = []
        for number, item in enumerate(values["factors"]):
            typed.check_fields(item, _FactorValues, f"factors.{number}")
            levels = tuple(Level(label, settings) for label, settings in item["levels"])
            factors.append(Factor(item["name"], levels))
        thresholds = tuple(values["thresholds"])
        if values["figure"] not in FIGURES:
            raise ValueError(f"figure should be one of {', '.join(FIGURES)}")
        return cls(**{**values, "factors": tuple(factors), "thresholds": thresholds})


class _Values(NamedTuple):
    """Types of what `Study.values()` gives."""

    name: str
    question: str
    recipe: str
    trials: int
    factors: list[dict[str, Any]]
    settings: typed.Settings
    thresholds: list[float]
    latency: bool
    figure: str
    source: str


class _FactorValues(NamedTuple):
    name: str
    levels: list[tuple[str, typed.Settings]]


class PlannedRun(NamedTuple):
    """One run of a study."""

    name: str  # its folder in the study's
    labels: tuple[str, ...]  # of its level of each factor
    seed: int
    recipe: Recipe
    flags: tuple[str, ...]  # of `dawnbench train`, without --output_dir
    settings: Settings  # recipe, seed and what else these flags set


def with_changes(study: Study, recipe: str, trials: int, changes: Settings) -> Study:
    """The study with another recipe, other trials, and settings of the user's in all its runs.

    Raises:
      Refusal: a setting is what the study varies.
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
        thresholds = ()
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
    """The study with other values of the one field that its one factor varies.

    Raises:
      Refusal: it varies more than one, or what has no single value.
    """
    fields_of = {tuple(level.settings) for factor in study.factors for level in factor.levels}
    if len(study.factors) != 1 or len(fields_of) != 1 or len(next(iter(fields_of))) != 1:
        why = f"{study.name} does not vary one field alone; a grid of your own may vary all"
        refuse("levels", values, why)
    (name,) = next(iter(fields_of))
    factor = Factor(study.factors[0].name, tuple(Level("", {name: value}) for value in values))
    return replace(study, factors=(factor,))


def plan(study: Study) -> list[PlannedRun]:
    """All runs of a study, trial by trial: what is stopped early has all settings as often.

    Raises:
      Refusal: a setting is none, or out of its bounds.
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
        _plan_run(labels, name, changes, seed)
        for seed in range(first, first + study.trials)
        for labels, name, changes in settings
    ]
    for name, count in Counter(run.name for run in planned).items():
        if count > 1:
            why = f"{count} of its settings would be {name.partition('/')[0]}; name levels apart"
            raise Refusal(f"{study.name}: {why}")
    return planned


def _check_size(study):
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


def _resolve_levels(study, levels):
    """Labels, name and settled changes of one combination of levels."""
    changes = dict(study.settings)
    if study.thresholds:
        changes.setdefault("threshold", max(study.thresholds))
    for level in levels:
        changes.update(level.settings)
    name = changes.pop("recipe", study.recipe)
    if not isinstance(name, str):
        refuse("recipe", name, "should be text, TASK/NAME")
    base = reference_values(name, study.settings)
    changes = {key: resolve(key, value, base) for key, value in changes.items()}
    values = {**changes, "recipe": name}
    labels = tuple(level.label or _label(values[next(iter(level.settings))]) for level in levels)
    for label in labels:
        if not label.isprintable() or len(label) > LONGEST:
            right = f"should be on one line, of {LONGEST} characters at most"
            raise Refusal(f"{study.name}: level {ascii(label[:40])}: {right}")
    changes = {key: value for key, value in changes.items() if value is not None}
    return labels, name, changes


def _label(value):
    """A value as the name of its level."""
    return one_line(",".join(map(str, value)) if isinstance(value, tuple) else value, LONGEST)


def _plan_run(labels, name, changes, seed):
    changes = {**changes, "seed": seed}
    recipe = recipes.get(name, **{k: v for k, v in changes.items() if k in RECIPE_SETTINGS})
    credits = Credits(**{k: v for k, v in changes.items() if k in CREDITS_SETTINGS})
    run_options = {k: v for k, v in changes.items() if k in RUN_SETTINGS}
    RunOptions(credits=credits, **run_options)  # which checks them
    flags = (f"--recipe={name}", *(flag_text(key, value) for key, value in changes.items()))
    words = [re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.") for label in labels]
    setting = "_".join(filter(None, words)) or "baseline"
    if len(setting) > 2 * LONGEST:
        right = f"names of levels should come to {2 * LONGEST} characters at most"
        raise Refusal(f"{setting[:40]}...: {right}")
    settings = {"recipe": name, **changes}
    return PlannedRun(f"{setting}/seed-{seed}", labels, seed, recipe, flags, settings)
