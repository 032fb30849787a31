"""The plotting library as text for a page: it asks nobody for anything."""

import base64
import gzip
import re
from functools import cache

# Identifiers of the W3C look like addresses, but browsers never fetch them.
_ADDRESS = re.compile(r"https?://(?!www\.w3\.org/)")


@cache
def plotting_script() -> str:
    """plotly.js, safe inside a script element, with every address in it made useless.

    The addresses are those of map tiles, help pages and the makers' server, none of which a
    report needs, and of authors in licence notes, which stay readable: only the scheme changes,
    to one that no browser can follow.
    """
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    return script_safe(_ADDRESS.sub("offline:", script))


@cache
def packed_script() -> str:
    """`plotting_script`, compressed to two fifths, as text that a page unpacks by itself.

    The same library gives the same text, byte for byte.
    """
    return base64.b64encode(gzip.compress(plotting_script().encode(), 9, mtime=0)).decode()


def script_safe(script: str) -> str:
    """Keep text in JavaScript strings from ending, or opening, the script element around it."""
    return script.replace("</script", r"<\/script").replace("<!--", r"<\!--")
