"""Command lines of every command, and what becomes of one when an argument is changed."""

from __future__ import annotations

import random
import shlex
from dataclasses import fields

from odd_inputs import ODD_TEXTS
from steptime.cli.commands.data import COMMANDS as DATA_COMMANDS
from steptime.cli.commands.store import COMMANDS as STORE_COMMANDS
from steptime.cli.main import COMMAND_GROUPS, GROUPS
from steptime.core.case import SETTINGS
from steptime.core.protocol import Protocol

# RESULT, OTHER and CAMPAIGN stand for ids of the store, NEW for a path that does not exist.
COMMAND_LINES = """
run plan.toml --dry-run
run plan.toml --preset single --again --json
run --workload mnist-mlp --phase training --batch-size 4 --preset single --set framework=numpy
run --workload mnist-mlp --batch-size 1,32 --set framework=numpy --dry-run --json
run --workload own.py:tiny --dry-run
run dlbs-plan.json --dry-run
run tour --dry-run --set threads=1
run --preset single
compare RESULT OTHER
compare RESULT RESULT --force reason --json
compare workload=mnist-mlp,framework=numpy batch_size=2 --preset single
compare data=synthetic data=real --by-node
scaling --workload mnist-mlp --devices 1,2 --kind weak --preset single --predict 8,64@10gbit
scaling plan.toml --json
profile RESULT
profile --workload mnist-mlp --phase training --batch-size 2 --set framework=numpy --json
certify mnist-mlp --framework numpy --precision fp32 --mode eager --device cpu --again
certify mnist-mlp layout=nchw,nhwc --framework numpy --markdown
train mnist-mlp --save NEW.safetensors --data folder --epochs 1 --framework numpy --mode eager
data list --data folder --json
data fetch mnist cifar10 --data NEW --from http://127.0.0.1:1/sets --json
machine --no-peaks --json
machine --trust
list networks
list results --json
list
show lenet5
show RESULT --json
show dlbs-plan.json
chart x=model&y=throughput&by=framework -o NEW.json
chart x=devices&y=step_time -o NEW.svg --json
report -o NEW.html
report x=model&by=framework&source=steptime -o NEW.html --json
export csv -o NEW.csv
export parquet model=mnist-mlp --samples -o NEW.parquet
export dlbs model=resnet50&phase=training -o NEW --json
guide --host 127.0.0.1 --port 0 --token 0123456789abcdef
guide --port 0
submit psc --machine psc-machine.toml --preset single --set threads=1 --dry-run --json
submit plan.toml --machine psc-machine.toml --set node_type=k80 --again
status CAMPAIGN --watch 0.1 --json
status
collect CAMPAIGN --archive NEW --json
cancel CAMPAIGN --waiting --json
import dlbs.log --rows --json
import foreign
import psc.csv foreign/timm
store check --json
store compact
store push postgresql://127.0.0.1:1/none --json
store merge other --json
store convert old NEW --json
--store results list results
--version
"""
KEYS = (*SETTINGS, *(f"protocol.{field.name}" for field in fields(Protocol)), "node_type")
QUERY_KEYS = ("x", "y", "by", "split", "rel", "scaling", "batch", "since", "until", "s", "model")


def command_lines() -> list[list[str]]:
    return [shlex.split(line.replace("&", r"\&")) for line in COMMAND_LINES.strip().splitlines()]


def command_names() -> set[str]:
    """Every command, those of a group with both words."""
    names = {name for group in GROUPS.values() for name in group if name not in COMMAND_GROUPS}
    names |= {f"data {name}" for name in DATA_COMMANDS}
    return names | {f"store {name}" for name in STORE_COMMANDS}


def option_names() -> list[str]:
    """The options that the command lines use, for commands that do not have them."""
    words = {word for line in command_lines() for word in line if word.startswith("-")}
    return sorted(words)


def mutate_arguments(arguments: list[str], rng: random.Random) -> list[str]:
    """With one thing changed, sometimes two."""
    for _ in range(rng.choice((1, 1, 2))):
        # Most changes are of values: a wrong option is refused before the command sees it.
        if rng.random() < 0.75:
            arguments = _mutate_value(arguments, rng)
        else:
            arguments = _mutate_order(arguments, rng)
    return arguments


def _mutate_value(arguments: list[str], rng: random.Random) -> list[str]:
    values = [number for number, word in enumerate(arguments) if not word.startswith("-")]
    # The first word is the command.
    if len(values) < 2 or ("--set" in arguments and rng.random() < 0.3):
        option = "--set" if "--set" in arguments else rng.choice(option_names())
        return [*arguments, option, f"{rng.choice(KEYS)}={rng.choice(ODD_TEXTS)}"]
    position = rng.choice(values[1:])
    word = arguments[position]
    if "=" in word and rng.random() < 0.5:
        key = rng.choice(QUERY_KEYS if "&" in word else KEYS)
        separator = "&" if "&" in word else ","
        word = f"{word}{separator}{key}={rng.choice(ODD_TEXTS)}"
    else:
        word = _mutate_word(word, rng)
    return [*arguments[:position], word, *arguments[position + 1 :]]


def _mutate_order(arguments: list[str], rng: random.Random) -> list[str]:
    changed = list(arguments)
    position = rng.randrange(len(changed) + 1)
    match rng.randrange(5):
        case 0:
            del changed[position : position + 1]
        case 1:
            changed.insert(position, rng.choice(ODD_TEXTS))
        case 2:
            changed += [rng.choice(option_names()), rng.choice(ODD_TEXTS)]
        case 3:
            rng.shuffle(changed)
        case _:
            changed[position : position + 1] = [rng.choice(rng.choice(command_lines()))]
    return changed


def _mutate_word(word: str, rng: random.Random) -> str:
    odd = rng.choice(ODD_TEXTS)
    if rng.random() < 0.4:
        return odd
    # Most often after an equals sign, a comma and the like.
    places = [number for number, letter in enumerate(word, 1) if letter in "=,:&@."]
    start = rng.choice(places) if places and rng.random() < 0.7 else rng.randrange(len(word) + 1)
    end = min(len(word), start + rng.choice((0, 1, 3, 1000)))
    return word[:start] + odd + word[end:]
