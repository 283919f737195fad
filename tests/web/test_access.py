"""Who may start a guide for others."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the guide is not installed: pip install '.[guide]'")

from steptime.core.errors import SteptimeError
from steptime.web.access import Access


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::"])
def test_access_from_other_hosts_needs_a_token(host: str) -> None:
    with pytest.raises(SteptimeError, match="give a token with --token or"):
        Access(host)
    assert Access(host, "0123456789abcdef").host == host


@pytest.mark.parametrize(
    "token", ["short", "with spaces in the middle of it", "ünïcödeünïcödeünïcöde"]
)
def test_access_refuses_a_weak_token(token: str) -> None:
    with pytest.raises(SteptimeError, match="16 letters and digits"):
        Access(token=token)


def test_access_without_a_token_does_not_match_the_empty_one() -> None:
    assert not Access().is_token("")
