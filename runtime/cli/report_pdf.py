"""A page printed to PDF by the browser that is installed, with the network shut."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError, InfraError, Timeout

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
DEADLINE_S: Final = 180.0


def print_pdf(page: Path, pdf: Path) -> None:
    """Print a page to a PDF, which is written whole or not at all.

    Raises:
        ConfigError: there is no browser.
        InfraError: it did not print.
        Timeout: it did not end in time.
    """
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise ConfigError(
            f"no browser is installed that prints to a file ({', '.join(BROWSERS)}); open {page} "
            "in any browser and print it to PDF, or apt install chromium"
        )
    with tempfile.TemporaryDirectory(prefix="zetta-print-") as scratch:
        fresh = pdf.with_name(f".{pdf.name}.{os.getpid()}")
        line = [
            browser, "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions",
            "--disable-background-networking", "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={scratch}",
            "--no-pdf-header-footer", f"--print-to-pdf={fresh.absolute()}",
            # Chromium has no sandbox for root; the page holds no script and may load nothing.
            *(("--no-sandbox",) if os.geteuid() == 0 else ()),
            page.absolute().as_uri(),
        ]  # fmt: skip
        try:
            ended = subprocess.run(
                line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                timeout=DEADLINE_S,
            )  # fmt: skip
            if ended.returncode or not fresh.exists():
                last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
                raise InfraError(f"{browser} did not print {page}: {last}")
            fresh.replace(pdf)
        except subprocess.TimeoutExpired as error:
            raise Timeout(f"{browser} did not print {page} within {DEADLINE_S:.0f} s") from error
        except OSError as error:
            raise InfraError(f"cannot write {pdf}: {error.strerror}") from error
        finally:
            fresh.unlink(missing_ok=True)
