"""The whole flow, from documents to what stays, with the evidence.

sources -> survey -> fingerprints -> candidates -> verdicts -> stars -> conclusions

`run` is the flow in two halves: `propose`, up to the candidate pairs, and `conclude`, which judges them and
says who stays. `dedupe` and jobs are doors to it. Calibration removes nothing: it calls `propose` and judges
the pairs in every mode. No document is removed unless it was measured directly
against the one that stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.candidates import Candidates
from neardup.checkpoints import Checkpoints
from neardup.checks import check_text, check_threads, whole
from neardup.conclusions import Conclusion, decide
from neardup.contents import Content, content_for
from neardup.errors import ChangedInput, InvalidType, InvalidValue, RefusedInput, shown
from neardup.fields import check_fields, note_idle_rules, note_undated
from neardup.files import check_path
from neardup.fingerprints import Fingerprints
from neardup.keep import parse_keep
from neardup.memory import give_back
from neardup.numbering import Flags
from neardup.observers import SILENT, Observer, watching
from neardup.parts import load_stopped, save_stopped
from neardup.passes import Passes
from neardup.rejudging import Known, check_same_figures, known_pairs, placed, recalled
from neardup.representatives import Representatives
from neardup.requests import Earlier, Request, run_key
from neardup.results import Result
from neardup.schemes import Scheme
from neardup.schemes import scheme as scheme_of
from neardup.settings import MEMORY, Settings, check_choices
from neardup.sizes import USUAL, Sizes
from neardup.sources import Reading, are_texts, keep_apart, open_source
from neardup.sources.memory import Held
from neardup.stars import best_keepers, central, final_order, keepers_in
from neardup.summaries import result_of
from neardup.survey import Documents, check_apart
from neardup.threads import Pool
from neardup.types import PROTECTED, Bad, PairNumbers, TextNumbers
from neardup.verdicts import Judge, Judgements, Unverified
from neardup.verifiers import Measure

# Bad records that a result holds, and bytes of each.
SOME_BAD: Final = 1_000


def dedupe(
    data: Any,
    *,
    settings: Settings | None = None,
    scheme: str | Scheme | None = None,
    protect: Any = None,
    text_field: str | Sequence[str] = "text",
    id_field: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    work: str | None = None,
    observer: Observer = SILENT,
    sizes: Sizes = USUAL,
    **choices: Any,
) -> Result:
    """Find the near-duplicates of *data* and say which documents stay.

    *data* is a path, several, a table, a list of texts or an iterable of documents. *choices* are those of
    `Settings`: similarity, recall, radius, exact, precision, keep, subject, within, ... *protect* is
    another input, whose documents stay whatever happens. *text_field* names the field with the text, or
    several of which one text is made: `"title,body"`, or a list. *work* is a folder for checkpoints and
    for what does not fit into *memory* bytes. *observer* (`neardup.observers`) is told of progress, and
    can cancel the run. *sizes* (`neardup.sizes`) say how much is done at a time.

    `kept` of the result are the documents that stay. It raises GuardStopped if a guard says that the
    run must stop: `guards=neardup.guards.Limits(max_loss=0.9, max_cluster=None)` raises the limit of
    one and turns off another, `guards=False` turns off all. `bad` of the result lists the records that could
    not be used, and why, such as a second document with the same id. If no input can be read at all,
    RefusedInput is raised.

    >>> result = dedupe([{"id": "a", "text": "one and the same short text"},
    ...                  {"id": "b", "text": "One and the same  short text!"},
    ...                  {"id": "c", "text": "quite another text"}])
    >>> result.annotations.select(["id", "keep", "duplicate_of"]).to_pylist()[1]
    {'id': 'b', 'keep': True, 'duplicate_of': None}
    """
    if protect is not None and protect is data:
        raise InvalidValue("the input and what is protected are the same object; protect other documents")
    data, protect = (Held(one) if are_texts(one) else one for one in (data, protect))
    named = None if scheme is None else scheme_of(scheme)
    content = content_for(data, scheme=named)
    settings = _settings(settings, choices if settings is not None else {**content.defaults, **choices})
    if id_field is not None:
        check_text("id_field", id_field)
    threads, memory = check_threads(threads), whole("memory", memory, 1)
    if not isinstance(observer, Observer):
        raise InvalidType(f"observer must be an Observer of neardup.observers, not {shown(observer)}")
    if not isinstance(sizes, Sizes):
        raise InvalidType(f"sizes must be Sizes of neardup.sizes, not {shown(sizes)}")
    reading = Reading(text_field=text_field, id_field=id_field, format=content.format)
    bad: list[Bad] = []

    def note(one: Bad) -> None:
        if len(bad) < SOME_BAD:
            bad.append(replace(one, raw=one.raw[:SOME_BAD], length=one.length or len(one.raw)))

    opening: dict[str, Any] = {"fields": settings.fields, "unique": True, "on_bad": note, "sizes": sizes}
    request = Request(
        source=open_source(data, reading, **opening),
        settings=settings,
        scheme=named if named is not None or content.scheme is None else scheme_of(content.scheme),
        content=content,
        protected=None if protect is None else open_source(protect, reading, **opening, prefix=PROTECTED),
        threads=threads,
        memory=memory,
        sizes=sizes,
    )
    checkpoints = checkpoints_in(None if work is None else check_path(work), request)
    result = run(request, observer, checkpoints)
    if work is not None and any(trip.stopped for trip in result.guards):
        save_stopped(checkpoints, result, request)
    for one in request.sources:
        if one.refused and not one.records:
            first = one.refused[0]
            others = f"; {len(one.refused):,} inputs are refused" if len(one.refused) > 1 else ""
            raise RefusedInput(f"{first.file!r}: {first.reason}{others}")
        if one.bad and not bad:  # parts in *work* replaced every reading
            for _ in one:
                pass
    return replace(result, bad=tuple(bad))


def _settings(settings: Settings | None, choices: dict[str, Any]) -> Settings:
    known = set(signature(Settings).parameters)
    if unknown := sorted(set(choices) - known):
        known |= set(signature(dedupe).parameters) - {"data", "choices"}
        raise InvalidType(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    if settings is None:
        return Settings(**choices)
    if not isinstance(settings, Settings):
        raise InvalidType(f"settings must be neardup.Settings, not {shown(settings)}")
    return replace(settings, **choices)


def checkpoints_in(folder: str | None, request: Request) -> Checkpoints:
    """The parts of a run in *folder*: those that the same request left there, and new ones."""
    return Checkpoints(folder, run_key(request), seconds=request.sizes.checkpoint_seconds)


def run(request: Request, observer: Observer = SILENT, checkpoints: Checkpoints | None = None) -> Result:
    """Do what *request* says. What is found in *checkpoints* is not done again."""
    check_choices(request.settings, request.scheme, request.threads)
    request.content.check(request.settings, request.scheme)
    checkpoints = checkpoints or checkpoints_in(None, request)
    if request.protected is not None:
        keep_apart(request.source, request.protected)
    try:
        with watching(observer, *request.sources):
            result = load_stopped(checkpoints, request)
            if result is not None:
                place = checkpoints.folder
                said = f"resuming from what is in {place}: a guard stopped this run when all was judged"
                observer.note(said, minor=True)
                return result
            passes = Passes(request, observer, checkpoints)
            result = conclude(passes, propose(passes))
    except ChangedInput:
        for name in ("stopped", "survey"):  # so that a new run begins with what is there now
            checkpoints.forget(name)
        raise
    return result


@dataclass(frozen=True, slots=True, eq=False)
class Proposed:
    """What a run knows before it compares two texts."""

    documents: Documents
    fixed: Flags
    """Which documents are protected."""
    undated: int
    """Dates that were not understood."""
    scheme: Scheme
    texts: Representatives
    prints: Fingerprints
    found: Candidates
    judging: Callable[[Measure], AbstractContextManager[Judge]]
    known: Known | None = None
    """What an earlier run found, if its pairs are decided anew."""


def propose(passes: Passes, fitted: Scheme | None = None) -> Proposed:
    """The stages up to the candidate pairs. *fitted* knows how common features are, if the documents are only
    a sample.
    """
    request, observer, content = passes.request, passes.observer, passes.request.content
    settings, keep = request.settings, parse_keep(request.settings.keep)
    surveyed = passes.survey()
    documents, fixed, own = surveyed.documents, surveyed.fixed, surveyed.first
    frequencies = surveyed.frequencies
    if fitted is not None and fitted.frequencies is not None:
        frequencies = fitted.frequencies
    del surveyed
    check_apart(documents, own)
    check_fields(documents, own, settings, keep, observer, given=content.fields)
    note_idle_rules(documents, own, keep, observer, given=content.fields)
    undated = note_undated(documents, own, keep, observer)
    scheme = request.scheme or content.scheme_for(len(documents))
    if scheme.weights == "log-df" and scheme.frequencies is None:
        scheme = replace(scheme, frequencies=frequencies)

    with Pool(1) as pool:
        pool.submit(getattr, scheme, "digest")  # of a large table that takes a while; the scheme remembers it
        texts = Representatives.of(
            documents, settings, keep, fixed, request.threads, only_protected=request.only_protected
        )
    looked, documents = documents.prints, documents.without("content", "spelling", "prints")
    give_back()
    known: Known | None = None
    if request.earlier is not None:
        prints, known = _recalled(passes, request.earlier, documents, scheme, texts)
        flow, found = passes.flow(prints, texts), known.found
    else:
        bands = passes.bands(scheme, texts)
        prints = passes.fingerprint(scheme, texts, looked, bands)
        give_back()
        flow = passes.flow(prints, texts)
        found = passes.candidates(flow, len(texts), bands)
        del bands
    give_back()

    def judging(measure: Measure) -> AbstractContextManager[Judge]:
        again = (
            None if known is None or request.earlier is None else recalled(request.earlier, known, measure)
        )
        return flow.judging(found, measure, frequencies) if again is None else nullcontext(again)

    return Proposed(documents, fixed, undated, scheme, texts, prints, found, judging, known)


def _recalled(
    passes: Passes, earlier: Earlier, documents: Documents, scheme: Scheme, texts: Representatives
) -> tuple[Fingerprints, Known]:
    """The pairs that an earlier run measured, in place of a search; no fingerprint is made unless it must."""
    if scheme.digest != earlier.scheme:
        raise RefusedInput(
            f"the inputs are not those of run {earlier.path!r}: its scheme was fitted to other documents; "
            "run `neardup dedupe` again"
        )
    if placed(scheme):
        words = np.zeros((len(documents), (scheme.bits + 63) // 64), np.uint64)
        prints = Fingerprints(words, bits=scheme.bits, digest=scheme.digest)
    else:
        prints = passes.fingerprint(scheme, texts)
    return prints, known_pairs(earlier, documents, texts, texts.own(prints))


def _additions(
    content: Content, judge: Judge, judgements: Judgements, pairs: PairNumbers
) -> npt.NDArray[np.int8]:
    """Which side of each of these pairs has something added to it."""
    left, right = judgements.left[pairs], judgements.right[pairs]
    return content.additions(judge, TextNumbers(left), TextNumbers(right), judgements.map[pairs])


def conclude(passes: Passes, proposed: Proposed) -> Result:
    """The stages from the candidate pairs on: every pair is judged, and each text finds its keeper.

    Where the caller keeps no reference to *proposed*, each part of it goes when the last stage has used it.
    """
    request, content = passes.request, passes.request.content
    settings, keep = request.settings, parse_keep(request.settings.keep)
    measure = settings.measure

    documents, fixed, undated = proposed.documents, proposed.fixed, proposed.undated
    scheme, texts, prints, found = proposed.scheme, proposed.texts, proposed.prints, proposed.found
    known = proposed.known
    judging = proposed.judging(measure) if measure.verifies else nullcontext(Unverified())
    del proposed  # what it holds is dropped as soon as no stage needs it

    with judging as judge:
        judgements = passes.verify(found, judge, measure)
        if known is not None and request.earlier is not None:
            check_same_figures(request.earlier, known, judgements, measure)
        give_back()
        added = partial(_additions, content, judge, judgements)
        order = final_order(documents, keep, texts, found, judgements, added, threads=request.threads)
        give_back()
        keeper, rank = keepers_in(order, texts, found, judgements)
        found = passes.crowds(keeper, rank, found, texts, judgements, judge)
    keepers = best_keepers(keeper, rank, found, judgements, any_keeper=central(keep))
    del order, rank
    documents = documents.without("lengths")
    give_back()

    decision = decide(texts, keepers, fixed, keep)
    conclusion = Conclusion(
        content=content,
        decision=decision,
        ids=documents.ids,
        fixed=fixed,
        texts=texts,
        prints=prints,
        scheme=scheme.digest,
        found=found,
        judgements=judgements,
        pair=keepers.pair,
        verified=measure.verifies,
        placed=known is not None and placed(scheme),
        rule=None if settings.learned is None else settings.learned.digest,
        threads=request.threads,
        step=request.sizes.rows,
    )
    return result_of(request, documents, scheme, conclusion, undated)
