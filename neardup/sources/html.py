"""HTML: the main text of a page, without navigation, scripts and markup."""

from __future__ import annotations

from neardup.errors import unusable
from neardup.sources.reading import Unfit


def main_text(data: bytes) -> str:
    """The main text of a page in any encoding; what cannot be decoded becomes U+FFFD, as in a browser."""
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.encoding import bytes_to_str, detect_encoding
    except ImportError as error:
        raise unusable("HTML", "resiliparse", "html", error) from None
    try:
        page = bytes_to_str(data, detect_encoding(data, html5_compatible=True), errors="replace")
        return str(extract_plain_text(page, main_content=True))
    except (ValueError, RuntimeError) as error:
        raise Unfit(f"is not HTML that can be read: {error}") from None
