"""Lists the recipes, or shows the settings and evidence of some.

    dawnbench recipes                       # all recipes, with their evidence
    dawnbench recipes cifar10               # a task's; or 'cifar10/*94'
    dawnbench recipes cifar10/airbench94    # settings that are not the defaults
    dawnbench recipes digits/resnet8 --toml > my.toml    # a recipe of your own
    dawnbench recipes --entry=basenet       # what reproduces a published entry

NAME may be TASK/NAME, FILE.toml, or MODULE:ATTRIBUTE of a Python module.

Exit status: 0; 1 if there is no such recipe.
"""

import sys
from dataclasses import dataclass

from dawnbench_tf import flags, recipes, terminal
from dawnbench_tf.recipes import recipe_files, reproductions
from dawnbench_tf.refusals import refuse
from dawnbench_tf.settings import setting
from dawnbench_tf.tasks import TASKS


@dataclass(frozen=True)
class Options:
    """Flags of `dawnbench recipes`."""

    all: bool = setting(False, "show settings with default values as well")
    toml: bool = setting(False, "print the file of one recipe, to start your own from")
    entry: str = setting(
        "", "print the commands that reproduce the published entries whose names contain this text"
    )


def main(options: Options, names: list[str]) -> None:
    """Prints a table of the recipes, or one recipe."""
    if options.entry and (names or options.toml):
        other = names[0] if names else "--toml"
        refuse("entry", options.entry, f"takes no recipe and no --toml; found {other}")
    if options.toml:
        if len(names) != 1:
            refuse("toml", True, "should follow the name of one recipe, as digits/resnet8")
        if ":" in names[0]:
            expected = f"{names[0]} is of a module; a file is based on TASK/NAME or a file"
            refuse("toml", True, expected)
        print(recipe_files.to_toml(recipes.get(names[0]), names[0]))
        return
    if options.entry:
        print("\n\n".join(map(reproductions.description, reproductions.find(options.entry))))
        return
    width = terminal.columns(sys.stdout) if sys.stdout.isatty() else 1000
    texts = [
        "\n".join(terminal.cut(line, width) for line in recipes.table(name).splitlines())
        if name in TASKS or "*" in name
        else recipes.description(name, options.all)
        for name in names or ["*"]
    ]
    print("\n\n".join(texts))


if __name__ == "__main__":
    flags.run(main, Options, files=True)
