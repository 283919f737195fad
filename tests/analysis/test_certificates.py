"""Which certificate covers which work, and what is said where none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from factories import make_attempt
from steptime.analysis.certificates import (
    Certificate,
    certificate_id,
    certified_remark,
    find_certificate,
    read_certificates,
    why_uncertified,
)
from steptime.analysis.compare import different_work, with_certificate_remark
from steptime.analysis.stored import compare_records
from steptime.core.record import Attempt, Record

Make = Callable[..., Attempt]
PROGRAM = "0123456789abcdef"
ITEM = {
    "item": "outputs",
    "passed": True,
    "error": 1e-7,
    "bound": 1e-6,
    "share": 0.1,
    "weak": False,
    "where": "w[0]",
}


@pytest.fixture
def measured() -> Make:
    def make(framework: str = "pytorch", version: str = "2.13", **changes: Any) -> Attempt:
        settings = {"software": {framework: version}, "program": PROGRAM, **changes}
        return make_attempt([1_000_000] * 40, framework=framework, **settings)

    return make


@pytest.fixture
def proof(measured: Make) -> Callable[..., Certificate]:
    def make(
        framework: str = "pytorch",
        *,
        items: Sequence[dict[str, Any]] = (ITEM,),
        passed: bool = True,
        covers: str = "training",
        semantics: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Certificate:
        facts = {
            "version": "2.13",
            "covers": covers,
            "semantics": semantics or {},
            "items": [{**item, "passed": passed and item["passed"]} for item in items],
        }
        base = measured(framework, **{"phase": "training", **changes})
        return read_certificates([replace(base, task="certify", findings={"certificate": facts})])[
            0
        ]

    return make


def test_find_certificate_covers_the_same_lowering_at_any_batch(measured: Make, proof: Any) -> None:
    assert find_certificate(measured(batch_size=512, threads=7), [proof()]) == proof()


@pytest.mark.parametrize(
    "changes",
    [
        {"precision": "bf16"}, {"mode": "compiled"}, {"layout": "nhwc"}, {"version": "2.11"},
        {"framework": "jax"},
        {"network": {"fingerprint": "another"}}, {"device": "cuda:0"}, {"optimizer": "adam"},
        {"program": "another"}, {"program": ""},
    ],
    ids=str,
)  # fmt: skip
def test_find_certificate_rejects_another_lowering(
    changes: dict[str, Any], measured: Make, proof: Any
) -> None:
    assert find_certificate(measured(**changes), [proof()]) is None


def test_find_certificate_rejects_code_that_neither_side_recorded(
    measured: Make, proof: Any
) -> None:
    assert find_certificate(measured(program=""), [proof(program="")]) is None


TRAINING = tuple(
    {**ITEM, "item": name}
    for name in ("outputs", "gradients", "optimizer step", "statistics", "forward")
)


def weaken(items: Sequence[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{**item, "weak": item["item"] in names} for item in items]


def test_certificate_of_all_items_passes(proof: Any) -> None:
    assert proof(items=TRAINING).passed and proof(items=TRAINING).unproved == ()


def test_certificate_whose_item_proves_little_does_not_pass(proof: Any) -> None:
    certificate = proof(items=weaken(TRAINING, "statistics"))
    assert not certificate.passed and not certificate.failed
    assert certificate.unproved == certificate.weak == ("statistics",)


def test_certificate_takes_semantics_from_fp64(proof: Any) -> None:
    items = weaken(TRAINING, "gradients", "optimizer step")
    proves = ["outputs", "gradients", "optimizer step"]
    semantics = {"certificate": "x" * 12, "passed": True, "proves": proves}
    assert proof(items=items, semantics=semantics).passed
    assert not proof(items=items, semantics=semantics | {"passed": False}).passed
    assert not proof(items=items, semantics=semantics | {"proves": ["gradients"]}).passed


def test_certificate_needs_outputs_of_its_own_precision(proof: Any) -> None:
    semantics = {"certificate": "x" * 12, "passed": True, "proves": ["outputs"]}
    assert not proof(items=weaken(TRAINING, "outputs"), semantics=semantics).passed


def test_certificate_is_proved_by_one_of_two_networks(proof: Any) -> None:
    whole = weaken(TRAINING, "gradients")
    reduced = [{**item, "network": "reduced"} for item in TRAINING]
    certificate = proof(items=[*whole, *reduced])
    assert certificate.passed and certificate.is_reduced and certificate.weak == ()


def test_certificate_worst_ignores_items_that_prove_little(proof: Any) -> None:
    items = weaken(TRAINING, "gradients")
    items[1]["share"] = 0.9
    assert proof(items=items).worst["item"] == "outputs"


def test_find_certificate_rejects_another_gpu(measured: Make, proof: Any) -> None:
    boards = [{"gpus": [{"name": name}]} for name in ("H200", "A100")]
    own = proof(device="cuda:0", machine=boards[0])
    assert own.device == "H200"
    assert find_certificate(measured(device="cuda:0", machine=boards[0]), [own])
    assert find_certificate(measured(device="cuda:0", machine=boards[1]), [own]) is None


@pytest.mark.parametrize(
    ("phase", "covered"), [("inference", True), ("forward", False), ("training", False)]
)
def test_certificate_for_inference_covers_only_inference(
    phase: str, covered: bool, measured: Make, proof: Any
) -> None:
    assert bool(find_certificate(measured(phase=phase), [proof(covers="inference")])) is covered


def test_find_certificate_compares_the_optimizer_in_training_only(
    measured: Make, proof: Any
) -> None:
    assert find_certificate(measured(phase="inference", optimizer="adam"), [proof()])


def test_find_certificate_ignores_facts_not_recorded_yet(measured: Make, proof: Any) -> None:
    planned = replace(measured(device="cuda:0"), software={}, machine={})
    assert find_certificate(planned, [proof(device="cuda:0", machine={"gpus": [{"name": "H200"}]})])


def test_find_certificate_returns_the_newest(measured: Make, proof: Any) -> None:
    assert certificate_id(measured(), [proof(), proof(passed=False)]) is None
    assert certificate_id(measured(), [proof(passed=False), proof()]) == proof().id


def test_why_uncertified_gives_the_command(measured: Make, proof: Any) -> None:
    why = different_work(measured(), measured("jax", mode="compiled"), [proof()])
    assert len(why) == 1
    assert "no certificate covers jax 2.13 compiled fp32 on cpu for training" in why[0]
    assert (
        "`steptime certify mnist-mlp --framework pytorch --framework jax "
        "--mode eager --mode compiled`" in why[0]
    )


def test_why_uncertified_asks_for_the_certificate_that_int8_can_have(
    measured: Make, proof: Any
) -> None:
    sides = (measured(phase="inference"), measured("jax", phase="inference", precision="int8"))
    why = why_uncertified(*sides, [proof()])
    assert why is not None and "no certificate covers jax 2.13 eager fp32" in why
    assert "int8" not in why
    assert why_uncertified(*sides, [proof(), proof("jax")]) is None


def test_certified_remark_says_what_proves_int8(measured: Make, proof: Any) -> None:
    sides = (measured(phase="inference"), measured("jax", phase="inference", precision="int8"))
    remark = certified_remark(*sides, [proof(), proof("jax")])
    assert "in fp32; int8 of jax is another network, which no certificate covers" in remark


def test_why_uncertified_names_the_layout(measured: Make) -> None:
    why = why_uncertified(measured(layout="nhwc"), measured("jax", layout="nhwc"), [])
    assert why is not None
    assert "`steptime certify mnist-mlp layout=nhwc --framework pytorch --framework jax`" in why


def test_why_uncertified_names_the_failed_item(measured: Make, proof: Any) -> None:
    why = why_uncertified(measured(), measured("jax"), [proof(), proof("jax", passed=False)])
    assert why is not None and "failed its certificate" in why and "outputs, w[0]" in why


def test_with_certificate_remark_names_both_certificates(measured: Make, proof: Any) -> None:
    sides, known = (measured(), measured("jax")), [proof(), proof("jax")]
    assert different_work(*sides, known) == []
    comparison = compare_records(*(Record(attempts=(side,)) for side in sides))
    found = with_certificate_remark(comparison, *sides, known)
    assert found.remarks[-1] == certified_remark(*sides, known) and found.remarks[-1].startswith(
        "certified: "
    )


def test_with_certificate_remark_adds_nothing_for_one_framework(measured: Make) -> None:
    sides = (measured(), measured(mode="compiled"))
    assert different_work(*sides) == []
    comparison = compare_records(*(Record(attempts=(side,)) for side in sides))
    assert with_certificate_remark(comparison, *sides, []) == comparison


def test_certificate_worst_is_the_item_nearest_to_its_bound(proof: Any) -> None:
    items = (
        {**ITEM, "share": 0.3},
        {**ITEM, "share": None, "item": "loss"},
        {**ITEM, "share": 7.0},
    )
    assert replace(proof(), items=items).worst["item"] == "loss"
