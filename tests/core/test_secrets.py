"""Secrets are redacted by their form, by their name and by what the environment holds."""

from __future__ import annotations

import pytest

from secret_kinds import SECRETS, leaks, words
from steptime.core.secrets import (
    MARK,
    is_secret_name,
    redact,
    redact_environment,
    redact_text,
    redact_words,
    secret_values,
)


@pytest.mark.parametrize("kind", SECRETS)
def test_redact_words_removes_every_kind(kind: str) -> None:
    secret, word = SECRETS[kind]
    (shown,) = redact_words([word.format(secret)])
    assert secret not in shown and MARK in shown


@pytest.mark.parametrize("kind", sorted(SECRETS.keys() - {"wandb"}))
def test_redact_text_removes_every_kind_from_prose(kind: str) -> None:
    secret, word = SECRETS[kind]
    shown = redact_text(f"Failed: {word.format(secret)} was refused.")
    assert secret not in shown and shown.startswith("Failed: ")


def test_redact_twice_changes_nothing_more() -> None:
    once = redact_words(words())
    assert redact_words(once) == once and redact(once) == once


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA_API_KEY",
        "HF_TOKEN",
        "MYSQL_PWD",
        "DB_PASSWORD",
        "--token",
        "apikey",
        "AUTH",
        "PGPASSWORD",
    ],
)
def test_is_secret_name_knows_common_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "MONKEY", "KEYBOARD", "compass", "padding_bytes"],
)
def test_is_secret_name_leaves_others(name: str) -> None:
    assert not is_secret_name(name)


def test_redact_words_takes_the_word_after_a_secret_option() -> None:
    words = ["docker", "--password", "hunter2", "--gpus", "all", "--token", "--quiet"]
    expected = ["docker", "--password", MARK, "--gpus", "all", "--token", "--quiet"]
    assert redact_words(words) == expected


def test_redact_environment_takes_values_of_secret_names() -> None:
    facts = {"cpus": [0, 1], "slurm": {"HF_TOKEN": "abc"}, "OMP_NUM_THREADS": "2"}
    shown = redact_environment(facts)
    assert shown == {"cpus": [0, 1], "slurm": {"HF_TOKEN": MARK}, "OMP_NUM_THREADS": "2"}


def test_redact_leaves_what_is_no_secret() -> None:
    digest = "sha256:" + "0123456789abcdef" * 4
    facts = {
        "container": {"image": f"registry.example.org/torch@{digest}", "digest": digest},
        "launch": ["nice", "-n", "5", "/opt/spack/gcc-12-abcdefghij0123456789abcdefghij01/python"],
        "CUDA_VISIBLE_DEVICES": "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",
        "XLA_FLAGS": "--xla_gpu_autotune_level=2 --xla_dump_to=/tmp/x",
        "url": "http://127.0.0.1:8080/a@b",
    }
    assert redact_environment(facts) == facts
    assert redact({"text": "The key is ok: tokens per second 5"})["text"].endswith("second 5")


def test_redact_removes_values_of_secret_variables_everywhere() -> None:
    secrets = secret_values(
        {"MY_API_KEY": "correct-horse", "HF_TOKEN": "ab", "PATH": "/usr/bin:/x"}
    )
    assert secrets == ("correct-horse",)
    assert redact(["the token correct-horse failed"], secrets) == [f"the token {MARK} failed"]


def test_redact_words_removes_all_kinds_from_one_line() -> None:
    assert leaks(" ".join(redact_words(words()))) == []


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "SSH_AUTH_SOCK"])
def test_secret_values_leave_out_paths(name: str) -> None:
    assert secret_values({name: "/home/me/project"}) == ()


def test_redact_text_keeps_a_sentence_about_an_option() -> None:
    sentence = "Give a token with --token or $STEPTIME_TOKEN."
    assert redact_text(sentence) == sentence
