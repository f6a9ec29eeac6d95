"""SimHash of documents and images after Qyokizzzz/simhash: documents by their words, images by colours.

The bits are the original's, except in
`Scheduler.handle_doc`: the original hashes a word's place in a set, so that
every run of Python gives another fingerprint. Here the word itself is hashed.
"""

from __future__ import annotations

import os
import random
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any, Final, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from neardup.checks import check_text
from neardup.distances import distance
from neardup.errors import InvalidValue, MissingExtra, unusable
from neardup.features import ballots
from neardup.features.hsv import hsv_histogram as hsv_extractor
from neardup.features.tfidf import top_tfidf
from neardup.features.trie import Trie
from neardup.files import check_path
from neardup.hashes import HASHES
from neardup.images.thumbs import BadImage, decode, formats

__all__ = [
    "TFIDF",
    "CharacteristicIdxListExtractor",
    "ComHistsGetter",
    "CorpusReader",
    "Dictionary",
    "Scheduler",
    "Simhash",
    "hashify_by_murmurhash_64bits",
    "hashify_by_murmurhash_128bits",
    "hsv_extractor",
    "read_img_from_dir",
    "timer",
]

Sentence = list[str]
Document = list[Sentence]
Item = tuple[str, str]  # a signature and its fingerprint


def _murmur(item: object, size: int) -> bytes:
    return HASHES.part("murmur3-128").digest(str(item).encode("utf-8", "replace"), size)


def hashify_by_murmurhash_128bits(item: object) -> str:
    """MurmurHash3 of the item's text, as binary digits without leading zeros.

    >>> hashify_by_murmurhash_128bits(7)[:20]
    '10101000010000101111'
    """
    return f"{int.from_bytes(_murmur(item, 16), 'little'):b}"


def hashify_by_murmurhash_64bits(item: object) -> str:
    """The first half of it; where that is negative as a signed number, its amount with a b before it.

    >>> hashify_by_murmurhash_64bits(7)[:12]
    'b10001101000'
    """
    return f"{int.from_bytes(_murmur(item, 8), 'little', signed=True):b}".replace("-", "b")


class Simhash:
    """Fingerprints as texts of *n_bits* binary digits, highest first.

    >>> simhash = Simhash(hashify_by_murmurhash_128bits, 128, 4)
    >>> simhash.calc_hamming_dist(simhash.generate([5, 3, 10]), simhash.generate([5, 3, 11]))
    33
    """

    def __init__(
        self,
        hashify: Callable[[Any], str] | None,
        n_bits: int = 128,
        hamming_dist_threshold: int = 4,
        *,
        n: int | None = None,
    ) -> None:
        if hashify is None:
            raise InvalidValue("hashify is required argument")
        self.hashify = hashify
        self.n_bits = n_bits if n is None else n  # its document calls it n
        self.hamming_dist_threshold = hamming_dist_threshold

    def generate(self, characteristic_idx_list: Iterable[Any]) -> str:
        """The fingerprint of features: numbers or words."""
        votes = ballots.text_votes([self.hashify(item) for item in characteristic_idx_list], self.n_bits)
        return "".join("1" if vote > 0 else "0" for vote in votes)

    @property
    def n(self) -> int:
        """The number of digits."""
        return self.n_bits

    @staticmethod
    def calc_hamming_dist(simhash1: str, simhash2: str) -> int:
        """In how many digits two fingerprints differ."""
        for text in (simhash1, simhash2):
            check_text("a fingerprint", text)
        if len(simhash1) != len(simhash2):
            raise InvalidValue(f"The lengths of {simhash1} and {simhash2} must be equal.")
        for text in (simhash1, simhash2):
            if not text or set(text) - {"0", "1"}:
                raise InvalidValue(f"{text!r} is not a fingerprint of binary digits")
        return distance(int(simhash1, 2), int(simhash2, 2))

    def segment(self, simhash: str) -> list[str]:
        """The fingerprint in as many equal parts as the threshold says."""
        check_text("a fingerprint", simhash)
        parts = self.hamming_dist_threshold
        if parts < 1 or len(simhash) % parts:
            raise InvalidValue("The number of bits in the simhash must be divisible by n.")
        size = len(simhash) // parts
        return [simhash[at * size : (at + 1) * size] for at in range(parts)]


@runtime_checkable
class CharacteristicIdxListExtractor(Protocol):
    """What chooses the positions that represent a document."""

    @abstractmethod
    def get_characteristic_idx_list(
        self, doc_bow: Sequence[float], common_doc_bows: Sequence[Sequence[float]]
    ) -> list[int]:
        """Positions in *doc_bow*, the most telling first."""


class TFIDF(CharacteristicIdxListExtractor):
    """The *top_n* positions with the highest tf-idf; of equal ones the first.

    >>> TFIDF(2).get_characteristic_idx_list([5, 3, 10, 11], [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 0, 1]])
    [2, 0]
    """

    def __init__(self, top_n: int = 15) -> None:
        self.top_n = top_n

    def get_characteristic_idx_list(
        self, doc_bow: Sequence[float], common_doc_bows: Sequence[Sequence[float]]
    ) -> list[int]:
        """Positions in *doc_bow*, the most telling first."""
        return top_tfidf(doc_bow, common_doc_bows, self.top_n)


class Dictionary:
    """The words of many documents, in order of the alphabet (the original: of a set).

    >>> dictionary = Dictionary([[["to", "be"], ["or", "not"]], [["to", "do"]]])
    >>> dictionary.doc2bow([["to", "be", "to"]]), dictionary[0], len(dictionary)
    ([1, 0, 0, 0, 2], 'be', 5)
    """

    def __init__(self, docs: Iterable[Document]) -> None:
        self.word_map = sorted({word for doc in docs for word in chain.from_iterable(doc)})
        self.word_set = set(self.word_map)

    def doc2bow(self, doc: Document) -> list[int]:
        """How often each word occurs; words that are not in the dictionary are left out."""
        counts = Counter(chain.from_iterable(doc))
        return [counts[word] for word in self.word_map]

    def __getitem__(self, bow_idx: int) -> str:
        return self.word_map[bow_idx]

    def __len__(self) -> int:
        return len(self.word_map)


_ASIDE: Final = re.compile(r"【.*?】|\(.*?\)|（.*?）")
_CJK: Final = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


def _words(text: str) -> list[str]:
    if not _CJK.search(text):
        return re.findall(r"\w+", text)
    try:
        import rjieba
    except ImportError as error:
        reason = unusable("cutting Chinese text into words", "rjieba", "zh", error)
        raise MissingExtra(f"{reason}; or pass segment=...") from None
    return [word for word in rjieba.cut(text) if re.search(r"\w", word)]


class CorpusReader:
    """Text files as documents: a sentence for each line, a list of words for each sentence.

    *segment* cuts a line into words; without it white space and punctuation do, and rjieba if there
    is Chinese. Text in brackets is left out, as are stop words.
    """

    def __init__(self, segment: Callable[[str], Iterable[str]] | None = None) -> None:
        self.segment = segment or _words
        self.stopwords_trie: Trie | None = None

    def read_corpus_from_path(self, path: str | os.PathLike[str], encoding: str = "utf-8") -> Document:
        """The document of a file."""
        stop = self.stopwords_trie or Trie()
        with open(path, encoding=encoding) as lines:
            cut = [self.segment(_ASIDE.sub("", line)) for line in lines]
        return [sentence for words in cut if (sentence := [word for word in words if word not in stop])]

    def read_corpus_from_dir(
        self, dirname: str | os.PathLike[str], encoding: str = "utf-8"
    ) -> list[Document]:
        """The documents of the files in a folder, in order of their names."""
        return [self.read_corpus_from_path(path, encoding) for path in sorted(Path(dirname).iterdir())]

    def set_stopwords_trie_from_path(self, path: str | os.PathLike[str], encoding: str = "utf-8") -> Trie:
        """Leave out the words of a file, one in a line."""
        return self._stop([Path(path)], encoding)

    def set_stopwords_trie_from_dir(self, dirname: str | os.PathLike[str], encoding: str = "utf-8") -> Trie:
        """Leave out the words of all files in a folder."""
        return self._stop(sorted(Path(dirname).iterdir()), encoding)

    def _stop(self, paths: Iterable[Path], encoding: str) -> Trie:
        lines = chain.from_iterable(path.read_text(encoding).splitlines() for path in paths)
        self.stopwords_trie = Trie(word for line in lines if (word := line.strip()))
        return self.stopwords_trie


def read_img(path: str | os.PathLike[str]) -> npt.NDArray[np.uint8]:
    """The pixels of an image file as blue, green, red."""
    from PIL import Image

    decode(Path(path).read_bytes())  # says what is wrong with it, and keeps to the pixel limit
    with Image.open(path, formats=formats()) as image:
        return np.ascontiguousarray(np.asarray(image.convert("RGB"))[..., ::-1])


def read_img_from_dir(dirname: str | os.PathLike[str]) -> tuple[list[str], list[npt.NDArray[np.uint8]]]:
    """The paths and the images of a folder, in order of their names; what is not an image is left out."""
    paths, images = [], []
    for path in sorted(Path(check_path(dirname)).iterdir()):
        with suppress(BadImage, IsADirectoryError):
            images.append(read_img(path))
            paths.append(os.path.join(dirname, path.name))
    return paths, images


Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def timer(func: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """The function, which then also prints how long it ran."""

    @wraps(func)
    def timed(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        start = perf_counter()
        answer = func(*args, **kwargs)
        print(f"The {func.__name__} function run time is {perf_counter() - start} second(s)")
        return answer

    return timed


class ComHistsGetter:
    """Histograms of what many images have in common: a corner and the middle of some of them.

    The original draws without a seed; here the same *seed* gives the same histograms.
    """

    def __init__(self, extractor: Callable[[Any], npt.NDArray[Any]], seed: int = 0) -> None:
        self.extractor, self.seed = extractor, seed

    def get_common_hist(self, dirname: str | os.PathLike[str], p: float) -> list[npt.NDArray[Any]]:
        """For each image of a folder that is drawn, with probability *p*, one histogram."""
        if not 0 <= p <= 1:
            raise InvalidValue(f"p must be from 0 to 1, not {p}")
        draw = random.Random(self.seed)
        found = []
        for img in read_img_from_dir(dirname)[1]:
            if draw.random() < p:
                high, wide = img.shape[:2]
                size = draw.uniform(0.2, 0.5)
                tall, broad = max(1, int(high * size)), max(1, int(wide * size))
                top, left = draw.choice([0, high - tall]), draw.choice([0, wide - broad])
                corner = img[top : top + tall, left : left + broad]
                top, left = (high - tall) // 2, (wide - broad) // 2
                middle = img[top : top + tall, left : left + broad]
                found.append(self.extractor(corner) + self.extractor(middle))
        return found


class Scheduler:
    """From documents and images to fingerprints, and among fingerprints to duplicates."""

    def __init__(
        self,
        ce: CharacteristicIdxListExtractor | None,
        hashify: Callable[[Any], str] | None = hashify_by_murmurhash_128bits,
        extractor: Callable[[Any], npt.NDArray[Any]] | None = hsv_extractor,
        n: int = 128,
        hamming_dist_threshold: int = 4,
    ) -> None:
        if ce is None:
            raise InvalidValue("ce is required argument")
        self.ce = ce
        self.extractor = extractor
        self.sh = Simhash(hashify, n, hamming_dist_threshold)
        self.dic: Dictionary | None = None
        self.items: list[Item] = []
        self.simhash_map: dict[str, list[Item]] = {}

    def handle_doc(self, doc: Document, common_docs: Sequence[Document]) -> str:
        """The fingerprint of a document by its most telling words against common documents.

        >>> scheduler = Scheduler(TFIDF(2))
        >>> common = [[["the", "cat"]], [["the", "dog"]]]
        >>> one = scheduler.handle_doc([["the", "red", "fox"]], common)
        >>> one == scheduler.handle_doc([["fox"], ["red", "the"]], common)
        True
        """
        if not any(doc):
            raise InvalidValue("Cannot entering an empty document.")
        self.dic = Dictionary([doc, *common_docs])
        bows = [self.dic.doc2bow(common) for common in common_docs]
        chosen = self.ce.get_characteristic_idx_list(self.dic.doc2bow(doc), bows)
        return self.sh.generate(self.dic[at] for at in chosen)

    def handle_img(self, img: npt.NDArray[Any], common_hists: Sequence[Sequence[float]]) -> str:
        """The fingerprint of an image (pixels as blue, green, red) by its most telling colours."""
        if self.extractor is None:
            raise InvalidValue("handle image must passed extractor")
        hist = np.asarray(self.extractor(img)).tolist()
        common = [np.asarray(common).tolist() for common in common_hists]
        return self.sh.generate(self.ce.get_characteristic_idx_list(hist, common))

    def generate_for_img_list(
        self, img_list: Iterable[npt.NDArray[Any]], common_hists: Sequence[Sequence[float]]
    ) -> list[str]:
        """The fingerprints of many images."""
        return [self.handle_img(img, common_hists) for img in img_list]

    def save_simhash(self, signature: str, simhash: str) -> None:
        """Keep a fingerprint for `img_search`."""
        self.items.append((signature, simhash))
        for part in self.sh.segment(simhash):
            self.simhash_map.setdefault(part, []).append((signature, simhash))

    def save_simhash_list(self, signatures: Sequence[str], simhash_list: Sequence[str]) -> None:
        """Keep many fingerprints."""
        _check_lengths(signatures, simhash_list)
        for signature, simhash in zip(signatures, simhash_list, strict=True):
            self.save_simhash(signature, simhash)

    def img_search(self, simhash: str, *, exact: bool = False) -> list[Item]:
        """What shares a part with a fingerprint, once for each part and at any distance, the nearest first.

        With *exact*: what is within the threshold, once.
        """
        if exact:
            found = [item for item in self.items if self._within(item[1], simhash)]
        else:
            parts = self.sh.segment(simhash)
            found = [item for part in parts for item in self.simhash_map.get(part, ())]
        return sorted(found, key=self.hamming_dist_sort(simhash))

    def hamming_dist_sort(self, simhash: str) -> Callable[[Item], int]:
        """How far an item is from a fingerprint, as a key to sort by."""
        return lambda item: self.sh.calc_hamming_dist(simhash, item[1])

    def img_deduper(
        self, signatures: Sequence[str], simhash_list: Sequence[str], *, exact: bool = False
    ) -> list[tuple[Item, Item, int]]:
        """For each item that shares a part with an earlier one, or with itself, the two and their distance.

        With *exact*: for each item the first earlier one that is within the threshold.
        """
        _check_lengths(signatures, simhash_list)
        items = list(zip(signatures, simhash_list, strict=True))
        if exact:
            return [
                (first, item, self.sh.calc_hamming_dist(first[1], item[1]))
                for at, item in enumerate(items)
                if (first := next((old for old in items[:at] if self._within(old[1], item[1])), None))
            ]
        owners: dict[str, Item] = {}
        duplicates = []
        for item in items:
            for part in self.sh.segment(item[1]):
                if part in owners:
                    owner = owners[part]
                    duplicates.append((owner, item, self.sh.calc_hamming_dist(owner[1], item[1])))
                    break
                owners[part] = item
        return duplicates

    def _within(self, simhash1: str, simhash2: str) -> bool:
        return self.sh.calc_hamming_dist(simhash1, simhash2) <= self.sh.hamming_dist_threshold


def _check_lengths(signatures: Sequence[str], simhash_list: Sequence[str]) -> None:
    if len(signatures) != len(simhash_list):
        raise InvalidValue(f"The lengths of {signatures} and {simhash_list} must be equal.")
