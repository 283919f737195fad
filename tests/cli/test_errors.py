"""The sentence and the exit code of every mistake that needs no store, in one snapshot."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from command_line import Command, Snapshot

MISTAKES = """
run --batch-size 4
run --workload lenet6 --dry-run
run tuor
run nowhere/x.toml
run .
run mine.toml
run --workload lenet5 --set bach_size=1
run --workload lenet5 --set protocol.targt=1
run --workload lenet5 --set batch_size
run --workload ''
run --workload lenet5 --batch-size 3000000000 --dry-run
run --workload lenet5 --set seed=10000000000000000000000000000000000000000 --dry-run
run --workload lenet5 --set protocol.processes_most=3000000000 --dry-run
list netwoks
list results
show cpu
show nets.py
show lenet
show 0198abcd
show list.json
compare workload=lenet5 0198
compare workload=lenet5 bach_size=3
compare nothing else
compare data=scratch data=scratch --by-node
compare data=scratch precision=bf16 --by-node
certify
certify mnist-mlq
certify mnist-mlp --framework pytorhc
scaling --workload mnist-mlp --kind wek
scaling --workload mnist-mlp --devices 2
scaling --workload mnist-mlp --devices 1,1
scaling --workload mnist-mlp --devices 1,x
scaling --workload mnist-mlp --set exchange=none
scaling --workload mnist-mlp --set devices=2
scaling --workload mnist-mlp --predict 8@fast
scaling --workload mnist-mlp --predict 8@0gbit
scaling --workload mnist-mlp --devices 1,3 --kind strong
scaling single.toml
profile nobody
profile nobody --batch-size 3
profile --workload mnist-mlp --batch-size 1,2
train mnist-mlp --save a.bin
train mnist-mlp --save no/a.safetensors
train mnist-mpl --save a.safetensors
train mnist-mlp --save a.safetensors --set batch_size=1,2
chart x=precision -o a.svg
chart x=precision -o a.gif
chart x=precison -o a.svg
report x=modell
export cvs -o x
export csv -o x
import nowhere
import empty
submit psc --dry-run
submit tapes.toml --dry-run
status
collect
cancel
store check
store compact
store merge elsewhere
"""
SINGLE = '[constants]\nworkload = "mnist-mlp"\ndevices = 2\nexchange = "allreduce"\n'


def test_mistakes_are_sentences_with_an_exit_code(
    steptime: Command, snapshot: Snapshot, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text('[constants]\nworkload = "lenet5"\nphase = "trainning"\n')
    (tmp_path / "single.toml").write_text(SINGLE)
    (tmp_path / "tapes.toml").write_text(
        '[constants]\nworkload = "lenet5"\ndata = "real"\nstaging = "tape"\n'
    )
    (tmp_path / "list.json").write_text(json.dumps([1, 2]))
    (tmp_path / "empty").mkdir()
    texts = []
    for line in MISTAKES.strip().splitlines():
        done = steptime(*shlex.split(line))
        assert "Traceback" not in done.stderr, line
        texts.append(f"$ steptime {line}\n{done.stdout}{done.stderr}[{done.returncode}]\n")
    snapshot("errors", "\n".join(texts))
