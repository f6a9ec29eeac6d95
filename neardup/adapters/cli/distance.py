"""`neardup distance`: how far two texts, or two fingerprints, are apart."""

from __future__ import annotations

import json
import os
import stat

import click


@click.command()
@click.argument("left")
@click.argument("right")
@click.option(
    "--scheme", "scheme_name", default="text", show_default=True, help="Name or file of the scheme."
)
@click.option("--bits", type=int, help="Width of the fingerprints; otherwise the scheme's.")
@click.option(
    "--fingerprints", is_flag=True, help="LEFT and RIGHT are fingerprints: hex, decimal, bits or base64."
)
@click.option("--files", is_flag=True, help="LEFT and RIGHT are files that hold the texts.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(
    left: str, right: str, scheme_name: str, bits: int | None, fingerprints: bool, files: bool, as_json: bool
) -> None:
    """Print the distance of two texts or fingerprints, and the cosine similarity that it estimates."""
    from neardup.distances import distance, similarity
    from neardup.errors import InvalidValue
    from neardup.fingerprints import format, parse
    from neardup.schemes import scheme

    if fingerprints and files:
        raise click.UsageError("choose one of --fingerprints and --files")
    chosen = scheme(scheme_name) if bits is None else scheme(scheme_name, bits=bits)
    values = []
    for which, given in (("LEFT", left), ("RIGHT", right)):
        if fingerprints:
            values.append(parse(given, chosen.bits))
            continue
        text = _content(given) if files else given
        value = chosen.fingerprint(text)
        if value is None:
            raise InvalidValue(f"{which} has no information in it: {text[:40]!r}")
        values.append(value)
    apart = distance(*values)
    facts = {
        "left": format(values[0], chosen.bits),
        "right": format(values[1], chosen.bits),
        "distance": apart,
        "bits": chosen.bits,
        "similarity": round(similarity(apart, chosen.bits), 6),
    }
    if as_json:
        click.echo(json.dumps(facts))
    else:
        click.echo(f"{apart} of {chosen.bits} bits differ; estimated similarity {facts['similarity']:.3f}")


def _content(path: str) -> str:
    """The text of a file that can be read to its end."""
    from neardup.errors import RefusedInput
    from neardup.sources.limits import DEFAULT, size

    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise RefusedInput(f"{path!r} is not a regular file")
    if about.st_size > DEFAULT.text:
        raise RefusedInput(f"{path!r} is larger than {size(DEFAULT.text)}")
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
