"""Lists the recipes, or shows the settings and evidence of some.

    python -m dawnbench_tf.recipes                       # all recipes, one line each
    python -m dawnbench_tf.recipes cifar10/airbench94    # settings that differ from the defaults

Exit status: 0; 1 if there is no such recipe.
"""

from dataclasses import dataclass

from dawnbench_tf import flags, recipes, terminal
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.settings import setting


@dataclass(frozen=True)
class Options:
    """Flags of `dawnbench recipes`."""

    all: bool = setting(False, "show settings with default values as well")


def main(names: list[str]) -> None:
    terminal.end_quietly()
    try:
        options = flags.read(Options)
        shown = [recipes.description(recipes.get(name), options.all) for name in names]
        print("\n\n".join(shown) or recipes.table())
    except Refusal as refusal:
        terminal.exit_with(str(refusal))


if __name__ == "__main__":
    flags.run(main, Options, files=True)
