"""Lambda's tables."""

from __future__ import annotations

from collections.abc import Callable

from steptime.formats import Reading

Read = Callable[..., Reading]
TABLE = """name_gpu,num_gpu,watt,price,resnet50,bert_base_squad
RTX 8000,1,260,6037,650.0,146.0
2x RTX 8000,2,520,12000,0.0,280.0
"""
HOSTS = """,ssd,bert_base_squad
LambdaBM_1xH200_140GB_SXM_h200_v2,946,932
LambdaBM_8xH200_140GB_SXM_h200_v2,7253,18291
"""


def test_every_cell_is_a_run_with_its_unit(read: Read) -> None:
    found = read("pytorch-train-throughput-fp16.csv", TABLE)
    assert [
        (r.dimensions["model"], r.dimensions["devices"], r.dimensions["unit"]) for r in found.runs
    ] == [
        ("resnet50", 1, "images"),
        ("bert_base_squad", 1, "sequences"),
        ("bert_base_squad", 2, "sequences"),
    ]
    assert {r.dimensions["device"] for r in found.runs} == {"RTX 8000"} and found.runs[2].metrics[
        "throughput_per_device"
    ] == 140
    assert found.skipped[0].location == "line 3, resnet50"


def test_batch_sizes_come_from_the_table_beside_it(read: Read) -> None:
    batches = "name_gpu,num_gpu,resnet50,bert_base_squad\n2x RTX 8000,2,512,64\n"
    run = read(
        "pytorch-train-throughput-fp16.csv", TABLE, {"pytorch-train-bs-fp16.csv": batches}
    ).runs[2]
    assert run.dimensions["effective_batch"] == 64 and run.dimensions["replica_batch"] == 32
    assert not read("pytorch-train-bs-fp16.csv", batches).runs


def test_super_linear_speed_is_quarantined(read: Read) -> None:
    found = read("pytorch-train-throughput-v2-fp16.csv", HOSTS)
    reasons = {(r.dimensions["model"], r.dimensions["devices"]): r.quarantine for r in found.runs}
    assert reasons[("bert_base_squad", 8)] == "19.6 times as fast on 8 devices as on 1, beyond 8"
    assert not reasons[("ssd", 8)] and not reasons[("bert_base_squad", 1)]


def test_json_beside_the_same_csv_is_skipped(read: Read) -> None:
    text = '[{"name_gpu": "RTX 3080", "num_gpu": 1, "alexnet": 7047}]'
    assert not read(
        "tf-train-throughput-fp16.json", text, {"tf-train-throughput-fp16.csv": "x"}
    ).runs
    assert len(read("tf-train-throughput-fp16.json", text).runs) == 1
