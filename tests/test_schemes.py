"""Schemes: the table, the digest, files, fitting in parts."""

import hashlib
import stat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import neardup as nd
from neardup.errors import DamagedFile, InvalidType, InvalidValue, SchemeMismatch, UnknownName
from neardup.schemes import SCHEMES

from .conftest import texts

PANGRAM = "The quick brown fox jumps over the lazy dog"

HTM_BITS = [135, 171, 203, 251, 279, 428, 478, 518, 535, 539, 553, 554, 570, 633, 634, 660, 676, 684, 775, 828, 846, 907, 1065, 1099, 1116, 1159, 1198, 1235, 1239, 1564, 1708, 1715, 1722, 1797, 1859, 1868, 1872, 1897, 1947, 1971, 2016]  # fmt: skip

_AT = np.mgrid[:128, :128]
IMAGE = Image.fromarray(
    ((_AT[1] ** 2 // 90 + _AT[0] * 2 + (_AT[1] // 16 + _AT[0] // 9) % 3 * 40) % 256).astype(np.uint8)
)

# What each row of the table gives for the pangram (a vector scheme: for 1, 2, 3; images: for IMAGE).
# These never change: another value is another scheme with another name.
VECTORS = {
    "text": "e61d0186b339d9f25f8cbdbf23a8b54a",
    "chars:3": "51b3c352a585e08b",
    "words:3": "02a53512e41d2765",
    "image": "b19aeba9a7a5ae05492c40b8eaadba7deb6a65535538738adf2cd6948a091d11",
    "phash:64": "b5952b6a0b071bf2",
    "dhash:64": "de7eb8628123075f",
    "ahash:64": "0f1f7efef0c08103",
    "vector": "41350b6e29e1b600288e56c19e2834f96d2d6ae9cd89fe0a99cca2300399c516",
    # The originals; the golden files have more of each.
    "simhash": "2c2a1290908a898a",
    "simhash-1.8": "2c2a1290908a898a",
    "simhash-1.3": "2d6f5691d28a898b",
    "simhash-1.1": "4adfe618612fdc9e",
    "jobs": "09bef8530de3d341",
    "pbtk": "4152aa301959af8e",
    "pbtk-published": "55aaaaaa555555aa",
    "news": "cab7991c5475edee",
    "news-unicode": "cab7991c5475edee",
    "qyoki": "b0cb1975b4d8bfb2389f869dd9ca679c",
    **dict.fromkeys(("htm", "htm-corrected"), f"{sum(1 << bit for bit in HTM_BITS):0512x}"),
}


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_scheme_gives_its_published_vector(name: str) -> None:
    image = name.endswith("hash") and name != "simhash"
    scheme = nd.scheme(name if name in VECTORS or image else f"{name}:3")
    expected = VECTORS[scheme.name]
    if scheme.features == "picture":
        assert scheme.fingerprints([IMAGE]).hex() == [expected]
    elif scheme.features == "vector":
        assert scheme.fingerprints([[1.0, 2.0, 3.0]]).hex() == [expected]
    else:
        value = scheme.fingerprint(PANGRAM.split() if scheme.features == "tokens" else PANGRAM)
        assert value is not None
        found = nd.format(value, scheme.bits)
        if expected.startswith("sha256:"):
            found = "sha256:" + hashlib.sha256(found.encode()).hexdigest()
        assert found == expected


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 64}, {"tie": "one"}, {"hash": "xxh3-128"}, {"normalize": "lower"}, {"features": "mixed:5"}, {"weights": "log"},
        {"digest_slice": "last"}, {"bit_order": "big"}, {"empty": "votes"}, {"select": "top:9"},
        {"hash": "blake3-keyed", "key": "secret one"}, {"hash": "blake3-keyed", "key": "secret two"},
    ],
)  # fmt: skip
def test_the_digest_covers_what_decides_a_bit(change: dict[str, object]) -> None:
    scheme = nd.scheme("text")
    changed = nd.scheme("text", **change)
    assert changed.digest != scheme.digest
    assert nd.scheme("text", name="other", form="decimal").digest == scheme.digest


def test_two_keys_have_two_digests_and_are_never_shown() -> None:
    one, two = (nd.scheme("text", hash="blake3-keyed", key=key) for key in ("secret one", "secret two"))
    assert one.digest != two.digest
    assert one.fingerprint(PANGRAM) != two.fingerprint(PANGRAM)
    for shown in (repr(one), str(one.describe()), str(one.facts())):
        assert "secret one" not in shown


@given(st.lists(texts, min_size=1, max_size=9), st.integers(0, 9), st.sampled_from([None, 20]))
def test_parts_fitted_and_added_equal_the_whole(
    corpus: list[str], cut: int, max_features: int | None
) -> None:
    scheme = nd.scheme("text")
    whole = scheme.fit(corpus, max_features=max_features)
    parts = scheme.fit(corpus[cut:], max_features=max_features) + scheme.fit(
        corpus[:cut], max_features=max_features
    )
    assert whole.frequencies is not None
    assert parts.frequencies is not None
    assert parts.frequencies.to_bytes() == whole.frequencies.to_bytes()
    assert parts.digest == whole.digest
    assert parts.fingerprints(corpus) == whole.fingerprints(corpus)


def test_a_fitted_scheme_has_a_digest_of_its_own(tmp_path: Path) -> None:
    scheme = nd.scheme("text")
    one, two = scheme.fit([PANGRAM, PANGRAM]), scheme.fit([PANGRAM, PANGRAM, "more"])
    assert len({scheme.digest, one.digest, two.digest}) == 3
    one.save(tmp_path / "one.nds")
    again = nd.scheme(tmp_path / "one.nds")
    assert again.digest == one.digest
    assert again.fingerprint(PANGRAM) == one.fingerprint(PANGRAM)


@pytest.mark.parametrize("name", ["text", "chars:3", "words:2", "vector"])
def test_a_scheme_comes_back_from_its_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    nd.scheme(name, name="mine").save(path)
    assert nd.scheme(path) == nd.scheme(name, name="mine")
    assert nd.scheme(str(path)) == nd.scheme(name, name="mine")
    assert stat.S_IMODE(path.stat().st_mode) & 0o400
    assert [entry.name for entry in tmp_path.iterdir()] == ["my.toml"]


def test_a_keyed_scheme_file_holds_no_secret_and_wants_the_right_one(tmp_path: Path) -> None:
    path = tmp_path / "keyed.toml"
    scheme = nd.scheme("text", hash="blake3-keyed", key="a long secret")
    scheme.save(path)
    assert "a long secret" not in path.read_text()
    assert nd.scheme(path, key="a long secret") == scheme
    with pytest.raises(SchemeMismatch, match="the key is another one"):
        nd.scheme(path, key="a wrong secret")
    with pytest.raises(InvalidValue, match="needs a secret"):
        nd.scheme(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = 1 2", "is not TOML"),
        ("bits = 64", "has no name"),
        ('name = "x"\nbites = 64', "unknown field 'bites'"),
        ('name = "x"\nbits = "64"', "bits must be an integer"),
        ('name = "x"\nbits = 0', "bits must be from 1"),
        ('name = "x"\nhash = "md6"', "unknown hash 'md6'"),
        ('name = "x"\nhash = "md5"\nbits = 256', "has 128 bits, too few"),
        ('name = "x"\nfeatures = "chars:0"', "write chars:N with N from 1"),
        ('name = "x"\nfeatures = "chars"', "needs an argument"),
        ('name = "x"\nformat = 99', "scheme format 99"),
        ("x = " + "[" * 60_000, "is nested too deeply; a scheme is flat"),
        ("x = " + "[" * 900, "is nested too deeply; a scheme is flat"),
        ("x = " + "{a = " * 900, "is nested too deeply; a scheme is flat"),
        ("a." * 30_000 + "b = 1", "is nested too deeply; a scheme is flat"),
        ("[" + "a." * 30_000 + "b]", "is nested too deeply; a scheme is flat"),
        ("#" * 70_000, "has 70,000 bytes of TOML; a scheme has at most 65,536"),
        ("y" * 9_000 + " = 1", r"unknown field 'yyyy[y]*\.\.\."),
        ('name = "x"\ntie = "maybe"', "tie 'maybe' is none of: zero, one"),
        ('name = "x"\ndigest = "00"', "its fields or its table were changed"),
    ],
)
def test_a_wrong_file_gets_one_clear_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises((InvalidValue, InvalidType, UnknownName, SchemeMismatch), match=message) as caught:
        nd.scheme(path)
    assert "\n" not in str(caught.value).split(" (at ")[0]


def test_every_damaged_byte_of_a_fitted_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "fitted.nds"
    nd.scheme("text").fit(["some words", "some more words"]).save(path)
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1 :])
        with pytest.raises((DamagedFile, InvalidValue, InvalidType, UnknownName, SchemeMismatch)):
            nd.scheme(path)
    for size in range(0, len(good), 7):
        path.write_bytes(good[:size])
        with pytest.raises((DamagedFile, InvalidValue, SchemeMismatch)):
            nd.scheme(path)


def test_vectors_of_one_direction_have_one_fingerprint() -> None:
    scheme = nd.scheme("vector", bits=128)
    rows = np.random.default_rng(7).normal(size=(50, 96))
    prints = scheme.fingerprints(rows)
    assert scheme.fingerprints((rows * 3).astype(np.float64)) == prints
    assert scheme.fingerprints(rows[::-1]) == nd.Fingerprints(prints.words[::-1].copy(), bits=128)
    assert scheme.fingerprints(np.zeros((1, 96))).valid.tolist() == [False]
    assert nd.scheme("vector", bits=128, hash="projection:1").fingerprints(rows) != prints


def test_distance_of_vectors_follows_their_angle() -> None:
    rng = np.random.default_rng(1)
    base, noise = rng.normal(size=384), rng.normal(size=384)
    noise -= base * (noise @ base) / (base @ base)
    noise *= np.linalg.norm(base) / np.linalg.norm(noise)
    scheme = nd.scheme("vector", bits=4096)
    for angle in (0.2, 0.5, 1.0, 1.5):
        rows = np.stack([base, np.cos(angle) * base + np.sin(angle) * noise])
        left, right = scheme.fingerprints(rows)
        assert left is not None
        assert right is not None
        assert nd.distance(left, right) / 4096 == pytest.approx(angle / np.pi, abs=0.03)


def test_top_selection_sets_that_many_bits() -> None:
    scheme = nd.Scheme("sparse", features="words:1", bits=400, hash="shake256", select="top:40")
    value = scheme.fingerprint("a few words here")
    assert value is not None
    assert value.bit_count() == 40
    votes = scheme.votes(["a", "few", "words", "here"])
    chosen = [bit for bit in range(400) if value >> bit & 1]
    assert min(votes[chosen]) >= max(votes[[bit for bit in range(400) if bit not in chosen]])
