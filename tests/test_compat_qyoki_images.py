"""Common histograms of images, as qyoki makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neardup.compat import qyoki


def test_common_histograms_are_the_same_with_the_same_seed(library: Path) -> None:
    one, two, three = (
        qyoki.ComHistsGetter(qyoki.hsv_extractor, seed).get_common_hist(library, 0.9) for seed in (1, 1, 2)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert len(one) != len(three) or any(not np.array_equal(a, b) for a, b in zip(one, three, strict=True))
    scheduler = qyoki.Scheduler(qyoki.TFIDF(15))
    common: list[Any] = one
    prints = scheduler.generate_for_img_list(qyoki.read_img_from_dir(library)[1], common)
    scheduler.save_simhash_list([str(at) for at in range(len(prints))], prints)
    assert scheduler.img_search(prints[0], exact=True)[0][1] == prints[0]
