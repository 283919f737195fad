"""The contract of a guide page: a module in web/pages with PATH, TITLE, ORDER and add."""

from __future__ import annotations

from pathlib import Path

import pytest

testclient = pytest.importorskip(
    "fastapi.testclient", reason="the guide is not installed: pip install '.[guide]'"
)

from fastapi import FastAPI

from steptime import plugins
from steptime.index.workspace import Workspace
from steptime.store.folder import FolderStore
from steptime.web.access import Access
from steptime.web.context import Page, PageContext
from steptime.web.server import PAGES, load_pages, make_app

NAMES = plugins.names(PAGES)
SHOWN = [page for page in load_pages() if page.ORDER is not None]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(FolderStore(tmp_path))


@pytest.mark.parametrize("name", NAMES)
def test_page_module_says_its_path_title_and_order(name: str) -> None:
    page = plugins.load(PAGES, name)
    assert page.PATH.startswith("/")
    assert page.TITLE and page.TITLE[0].isupper()
    assert page.ORDER is None or isinstance(page.ORDER, int)


@pytest.mark.parametrize("name", NAMES)
def test_page_module_adds_its_path_and_describes_its_routes(
    name: str, workspace: Workspace
) -> None:
    server = FastAPI()
    context = PageContext(workspace, Access(), list)
    plugins.load(PAGES, name).add(server, context)
    routes = server.openapi()["paths"]
    assert plugins.load(PAGES, name).PATH in routes
    for methods in routes.values():
        assert all(operation.get("description") for operation in methods.values())


def test_pages_share_no_route_and_no_position(workspace: Workspace) -> None:
    routes: list[tuple[str, str]] = []
    for name in NAMES:
        server = FastAPI()
        plugins.load(PAGES, name).add(server, PageContext(workspace, Access(), list))
        for path, methods in server.openapi()["paths"].items():
            routes += [(method, path) for method in methods]
    positions = [page.ORDER for page in SHOWN]
    assert len(routes) == len(set(routes))
    assert len(positions) == len(set(positions))


@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.TITLE)
def test_page_of_the_navigation_answers_and_marks_itself(page: Page, workspace: Workspace) -> None:
    client = testclient.TestClient(make_app(workspace), base_url="http://127.0.0.1:8765")
    response = client.get(page.PATH)
    assert response.status_code == 200
    link = f'<a href="{page.PATH}" aria-current="page">{page.TITLE}</a>'
    assert link in response.text


def test_navigation_lists_every_page_with_a_position(workspace: Workspace) -> None:
    client = testclient.TestClient(make_app(workspace), base_url="http://127.0.0.1:8765")
    navigation = client.get("/").text.partition("<nav")[2].partition("</nav>")[0]
    positions = [navigation.index(f">{page.TITLE}</a>") for page in SHOWN]
    assert positions == sorted(positions)
