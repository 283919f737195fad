"""Twenty-odd kinds of secrets, made up for tests: how each stands in a command line."""

from __future__ import annotations

from base64 import b64encode

# Built from pieces, so that no scanner takes this file for a leak.
LETTERS = "abcDEF123ghiJKL456mnoPQR789stuVWX"
HEX = "0123456789abcdef" * 2 + "01234567"
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.{LETTERS}"
PEM_BODY = f"MIIEvQIBADANBg{LETTERS}"
PEM = f"-----BEGIN PRIVATE KEY-----\n{PEM_BODY}\n-----END PRIVATE KEY-----"
BASIC = b64encode(b"me:correct horse").decode()

# By kind: the secret itself, and a word that holds it.
SECRETS: dict[str, tuple[str, str]] = {
    "openai": (f"sk-proj-{LETTERS}", "{}"),
    "anthropic": (f"sk-ant-api03-{LETTERS}", "{}"),
    "nvidia": (f"nvapi-{LETTERS}", "--env=NGC={}"),
    "hugging_face": (f"hf_{LETTERS}", "{}"),
    "github": (f"ghp_{LETTERS}", "{}"),
    "github_fine": (f"github_pat_{LETTERS}", "{}"),
    "gitlab": (f"glpat-{LETTERS}", "{}"),
    "amazon_id": ("AKIA" + "ABCDEFGH12345678", "{}"),
    "amazon_key": (f"{LETTERS}/abc+def", "AWS_SECRET_ACCESS_KEY={}"),
    "slack": (f"xoxb-12345-{LETTERS}", "{}"),
    "google": (f"AIza{LETTERS}", "{}"),
    "stripe": ("sk_" + f"live_{LETTERS}", "{}"),
    "sendgrid": (f"SG.{LETTERS}.{LETTERS}", "{}"),
    "npm": (f"npm_{LETTERS}", "{}"),
    "pypi": (f"pypi-{LETTERS}", "{}"),
    "docker": (f"dckr_pat_{LETTERS}", "{}"),
    "web_token": (JWT, "{}"),
    "private_key": (PEM_BODY, PEM.replace(PEM_BODY, "{}")),
    "bearer": (f"opaque.{LETTERS}", "Authorization: Bearer {}"),
    "basic": (BASIC, "Authorization: Basic {}"),
    "url": ("hunter2hunter2", "https://me:{}@example.org/path"),
    "database": ("p@ss:w0rd", "postgresql://me:{}@db.example.org:5432/results"),
    "conninfo": ("hunter3hunter3", "host=db user=me password={}"),
    "option": ("hunter4hunter4", "--registry-password={}"),
    "azure": (f"{LETTERS}Zz==", "DefaultEndpointsProtocol=https;AccountKey={}"),
    "wandb": (HEX, "--env=WANDB={}"),
    "signed_url": (f"{LETTERS}%3D", "https://host/blob?sv=1&sig={}"),
}


def words() -> list[str]:
    return [word.format(secret) for secret, word in SECRETS.values()]


def leaks(text: str) -> list[str]:
    """The kinds of secrets that the text shows, as they are or as JSON and HTML write them."""
    shown = text.replace("\\/", "/").replace("&#43;", "+")
    return [kind for kind, (secret, _) in SECRETS.items() if secret in shown]
