"""What the fields of a recipe have to be together; each one's own bounds are beside it."""

from dataclasses import fields
from typing import Any

from dawnbench_tf.recipe_fields import OfImages, OfJpegs, OfOneSize, OfQuestions
from dawnbench_tf.refusals import refuse


def check(recipe: Any) -> None:
    """Raises Refusal for the first field of a `Recipe` that doesn't fit the others or its task."""
    if recipe.task:
        _check_against_task(recipe, recipe.task_row)
    _check_schedule(recipe)
    _check_together(recipe)


def _check_together(recipe):
    if recipe.optimizer not in ("sgd", "lars") and (
        recipe.shift_rate != 1 or recipe.whitening_bias_epochs
    ):
        refuse("optimizer", recipe.optimizer, "has no shift_rate and no whitening_bias_epochs")
    if recipe.alternating_flip and not recipe.flip:
        refuse("alternating_flip", True, "should have --flip as well")
    for name, default in (("lookahead", False), ("average_ramp", False), ("average_every", 1)):
        if not recipe.average and getattr(recipe, name) != default:
            refuse(name, getattr(recipe, name), "should have --average as well")
    for name in ("bucket_boundaries", "image_size_epochs"):
        values = getattr(recipe, name)
        if list(values) != sorted(set(values)):
            refuse(name, values, "should rise")
    if len(recipe.image_size_epochs) != max(len(recipe.image_sizes) - 1, 0):
        right = f"should be one fewer than the {len(recipe.image_sizes)} image_sizes"
        refuse("image_size_epochs", recipe.image_size_epochs, right)
    of_berts = recipe.tokenizer == "wordpiece"
    for name in ("pretrained", "sequence_length"):
        value = getattr(recipe, name)
        if bool(value) != of_berts:
            right = "should be a BERT's, for" if of_berts else "is for"
            refuse(name, value, f"{right} --tokenizer=wordpiece; --help says what it is")
    least = recipe.most_question_tokens + 4
    if recipe.sequence_length and recipe.sequence_length < least:
        why = f"should be {least} at least: most_question_tokens, three signs and the passage"
        refuse("sequence_length", recipe.sequence_length, why)
    drawn = recipe.rand_augment
    if drawn and (len(drawn) != 2 or drawn[0] < 1 or drawn[0] != int(drawn[0])):
        refuse("rand_augment", drawn, "should be a whole number of operations, and a magnitude")
    if len(recipe.color_shift) not in (0, 2):
        refuse("color_shift", recipe.color_shift, "should be two shares: of brightness, of chroma")
    if (
        recipe.standardize == "channel"
        and not len(recipe.channel_mean) == len(recipe.channel_deviation) == 3
    ):
        refuse(
            "standardize",
            "channel",
            "takes three figures each in channel_mean and channel_deviation",
        )


_OF_SOME_TASKS = {
    "images": OfImages,
    "questions": OfQuestions,
    "images of one size": OfOneSize,
    "JPEGs": OfJpegs,
}


def _check_against_task(recipe, task):
    own = {task.inputs}
    if task.inputs == "images":
        own.add("JPEGs" if task.jpegs else "images of one size")
    for inputs, kind in _OF_SOME_TASKS.items():
        for field in fields(kind) if inputs not in own else ():
            value = getattr(recipe, field.name)
            if value != field.default:
                has = "JPEGs" if task.jpegs else task.inputs
                refuse(field.name, value, f"is for {inputs}; {task.name} has {has}")
    if recipe.skip_blacklisted and not task.blacklisted:
        refuse("skip_blacklisted", True, f"is for ImageNet; {task.name} has no such images")
    for name in task.required:
        if not getattr(recipe, name):
            refuse(name, "", f"{task.name} needs it; --help says what it is")
    examples = task.train_examples - recipe.held_out
    if examples < 1:
        right = f"should be fewer than {task.name}'s {task.train_examples} examples"
        refuse("held_out", recipe.held_out, right)
    if recipe.batch_size > examples:
        right = f"should be at most {task.name}'s {examples} examples"
        refuse("batch_size", recipe.batch_size, right)
    if recipe.threshold is not None and not 0 < recipe.threshold <= task.highest:
        refuse(
            "threshold",
            recipe.threshold,
            f"{task.metric} should be over 0, at most {task.highest:g}",
        )


def _check_schedule(recipe):
    epochs, factors = recipe.schedule_epochs, recipe.schedule_factors
    if list(epochs) != sorted(set(epochs)):
        refuse("schedule_epochs", epochs, "should rise")
    falling = (len(epochs) <= 1 and not factors, "takes one of schedule_epochs at most")
    fits, rule = {
        "constant": (not epochs and not factors, "takes neither schedule_epochs nor _factors"),
        "steps": (len(factors) == len(epochs) + 1, "takes one factor more than schedule_epochs"),
        "linear": (0 < len(factors) == len(epochs), "takes a factor for each of schedule_epochs"),
        "cosine": falling,
        "quadratic": falling,
    }[recipe.schedule]
    if factors and not any(factors):
        refuse("schedule_factors", factors, "one of them should be over 0")
    if not fits:
        counts = f"{len(epochs)} schedule_epochs and {len(factors)} schedule_factors"
        refuse("schedule", recipe.schedule, f"{rule}; found {counts}")
