"""A report as one HTML file that needs no other, no network and no script."""

from __future__ import annotations

import base64
import hashlib
import io
import os
from pathlib import Path
from typing import Final

from PIL import Image as Pillow

from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.reporting import wording
from zetta.runtime.reporting.document import Document

TEMPLATES: Final = Path(__file__).parent / "templates"
TEMPLATE: Final = "report.html.j2"
PAGE: Final = "report.html"
"""What a report is called in the folder that it is about."""
GENERATOR: Final = "zetta report"
MARK: Final = f'<meta name="generator" content="{GENERATOR}">'
"""Stands in every report, so that nothing else is taken for one and replaced."""
MARK_WITHIN: Final = 4096
"""Bytes from the beginning of the file."""
UNHASHED: Final = "0" * 64
STRIP_WIDTH: Final = 900
"""Pixels; wider strips are made narrower."""
QUALITY: Final = 82
"""Of JPEG."""


def render(document: Document) -> str:
    """Return the page; every text in it is escaped, and equal documents give equal pages.

    Its hash, of the page with zeros in its place, stands in the head and at the foot.

    Raises:
        ConfigError: Jinja2 is not installed.
    """
    try:
        import jinja2  # late: an extra
    except ImportError as error:
        raise missing_extra(error) from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": wording.whole_percent}
    template = environment.get_template(TEMPLATE)
    text = template.render(document=document, generator=GENERATOR, digest=UNHASHED)
    return text.replace(UNHASHED, hashlib.sha256(text.encode()).hexdigest())


def missing_extra(error: ImportError) -> ConfigError:
    """Return what to say where a package of reports is not installed."""
    return ConfigError(f"a report needs {error.name}; install it with: pip install 'zetta[report]'")


def is_report(path: Path) -> bool:
    """Say whether a file is a report that was written here."""
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(MARK_WITHIN)
    except OSError:
        return False


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all.

    Raises:
        InfraError: the file cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise InfraError(
            f"cannot write {path}: {error.strerror}; choose another place with --out"
        ) from error


def embedded_picture(path: Path) -> str:
    """Return a picture as a `data:` URI, no wider than a page.

    Raises:
        OSError: it is no picture that can be read.
    """
    with Pillow.open(path) as opened:
        picture = opened.convert("RGB")
    if picture.width > STRIP_WIDTH:
        height = max(1, round(picture.height * STRIP_WIDTH / picture.width))
        picture = picture.resize((STRIP_WIDTH, height), Pillow.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
