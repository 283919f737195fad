"""Redact secrets: passwords, keys and tokens in texts that are stored, shown or sent.

A secret is known by the name before it, by its own form, or because a variable of the environment
with such a name holds it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

MARK = "[redacted]"
# Shorter values of variables occur in other texts by chance.
LEAST_CHARACTERS = 8

_NOUNS = (
    r"(?:api|access|account|auth|encryption|private|secret|shared|signing|ssh)[_-]?keys?"
    r"(?:[_-]?id)?"
    r"|tokens?|secrets?|passwords?|passwds?|passphrases?|pwds?|credentials?|creds?"
)
# Too common in prose, but telling in the name of a variable or an option.
_SHORT_NOUNS = r"keys?|pass|auth|authorization|bearer|cookies?|signature|sig|dsn|webhook"
_NAME = (
    rf"(?:^|[_.-])(?:{_NOUNS}|{_SHORT_NOUNS})(?:$|[_.-])|(?:apikey|token|secret|password|passwd)$"
)

# Folders and a socket, though their names end like those of secrets.
_PATH_NAMES = ("PWD", "OLDPWD", "SSH_AUTH_SOCK", "GPG_AGENT_INFO")

# The group `kept` stays in front of the mark.
_PATTERNS = (
    # A private key in several lines; one that was cut ends with the text.
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    # user:password@ of an address. The last @ before the path ends a password that has an @.
    # An address that was taken for a path has lost a slash.
    r"(?P<kept>\b[a-z][a-z0-9+.-]*://?[^\s:/@]*:)[^\s/]+(?=@)",
    # A token alone in front of the host.
    r"(?P<kept>\b[a-z][a-z0-9+.-]*://)[A-Za-z0-9_-]{16,}(?=@)",
    r"(?P<kept>\b(?:Bearer|Basic)\s+)[A-Za-z0-9+/=._~-]{8,}",
    # name=value and "name": "value"
    rf"(?P<kept>(?:\b|_)(?:{_NOUNS})[\"']?\s*[=:]\s*[\"']?)(?!\[redacted\])[^\s\"',;&]+",
    # An option's value has a digit or a sign; a sentence about the option goes on with a word.
    rf"(?P<kept>--?(?:[a-z]+-)*(?:{_NOUNS})\s+[\"']?)(?!\[redacted\])"
    r"(?=[^\s\"',;&]*[^\sa-z\"',;&$])(?![-$])[^\s\"',;&]{4,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic
    r"\b[srpw]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{16,}",  # Stripe
    r"\bgh[opusr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}",
    r"\bgl(?:pat|dt|rt|cbt)-[A-Za-z0-9_.-]{16,}",  # GitLab
    r"\bhf_[A-Za-z0-9]{16,}|\bapi_org_[A-Za-z0-9]{16,}",  # Hugging Face
    r"\bnvapi-[A-Za-z0-9_-]{8,}",
    r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b",  # Amazon
    r"\bxox[a-z]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/\S+",
    r"\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{16,}",  # Google
    r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",  # a JSON Web Token
    r"\bnpm_[A-Za-z0-9]{20,}|\bpypi-[A-Za-z0-9_-]{16,}",
    r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}|\bdop_v1_[a-f0-9]{32,}|\bdapi[a-f0-9]{32}\b",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
    r"(?P<kept>[?&](?:sig|signature|X-Amz-Signature|X-Goog-Signature)=)[^\s&\"']+",
)
# Only for the words of a command line: elsewhere such a text is a hash that proves something.
# After a colon it is a digest, and after a slash or a hyphen it is part of a file's name.
_OPAQUE = r"(?<![\w:/-])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{32,}(?!\w)"


def is_secret_name(name: str) -> bool:
    """Whether a variable or an option of this name holds a secret: `WANDB_API_KEY`, `--token`."""
    if name in _PATH_NAMES:
        return False
    return re.search(_NAME, name, re.IGNORECASE) is not None


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets among the variables, the longest first, because one may contain another."""
    values = {
        value
        for name, value in environment.items()
        if is_secret_name(name) and len(value) >= LEAST_CHARACTERS
    }
    return tuple(sorted(values, key=lambda value: (-len(value), value)))


def redact(value: Any, secrets: Collection[str] = ()) -> Any:
    """The same value without secrets in its texts. `secrets` are known to be such."""
    if isinstance(value, str):
        return redact_text(value, secrets)
    if isinstance(value, dict):
        return {name: redact(inner, secrets) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact(inner, secrets) for inner in value]
    return value


def redact_text(text: str, secrets: Collection[str] = ()) -> str:
    for secret in secrets:
        text = text.replace(secret, MARK)
    for pattern in _compile_patterns():
        text = pattern.sub(_replacement, text)
    return text


def redact_environment(facts: Any, secrets: Collection[str] = ()) -> Any:
    """Facts of a process: variables by name, and command lines as lists of words."""
    if isinstance(facts, dict):
        redacted = {}
        for name, value in facts.items():
            is_secret = isinstance(value, str) and value != "" and is_secret_name(name)
            redacted[name] = MARK if is_secret else redact_environment(value, secrets)
        return redacted
    if isinstance(facts, list | tuple):
        return redact_words(facts, secrets)
    if isinstance(facts, str):
        return _redact_opaque(redact_text(facts, secrets))
    return facts


def redact_words(arguments: Sequence[Any], secrets: Collection[str] = ()) -> list[Any]:
    """A command line. The value of an option is in the same word, after `=`, or in the next."""
    redacted: list[Any] = []
    is_value = False
    for argument in arguments:
        if not isinstance(argument, str):
            redacted.append(redact_environment(argument, secrets))
            continue
        is_option = argument.startswith("-")
        if is_value and not is_option:
            redacted.append(MARK)
        else:
            redacted.append(_redact_argument(argument, secrets))
        is_value = is_option and "=" not in argument and is_secret_name(argument)
    return redacted


def _redact_argument(argument: str, secrets: Collection[str]) -> str:
    """`--env=NAME=value` may name the secret before either sign."""
    for name, sign, value in (argument.rpartition("="), argument.partition("=")):
        if sign and value and is_secret_name(name):
            return f"{name}={MARK}"
    return _redact_opaque(redact_text(argument, secrets))


def _redact_opaque(text: str) -> str:
    return re.sub(_OPAQUE, MARK, text)


def _replacement(match: re.Match[str]) -> str:
    kept = match.groupdict().get("kept") or ""
    return f"{kept}{MARK}"


@cache
def _compile_patterns() -> tuple[re.Pattern[str], ...]:
    """Late, because `steptime --help` needs none of them."""
    patterns = []
    for pattern in _PATTERNS:
        # The prefixes of tokens are case-sensitive, and names and addresses are not.
        flags = re.IGNORECASE if "kept" in pattern else re.NOFLAG
        patterns.append(re.compile(pattern, re.DOTALL | flags))
    return tuple(patterns)
