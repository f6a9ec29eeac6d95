"""Summaries: what a result says of a run at a glance, its counts and guards, beside the way to its rows."""

from __future__ import annotations

import numpy as np

from neardup import _native
from neardup.conclusions import Conclusion
from neardup.guards import EXAMPLES, Met, losses_of, trips
from neardup.memory import give_back
from neardup.requests import Request
from neardup.results import Result
from neardup.runs import outputs
from neardup.schemes import Scheme
from neardup.survey import Documents
from neardup.types import PrintPlaces


def result_of(
    request: Request, documents: Documents, scheme: Scheme, conclusion: Conclusion, undated: int
) -> Result:
    """The result of a run that came to *conclusion*; *undated* dates were not understood."""
    decision, fixed, texts = conclusion.decision, conclusion.fixed, conclusion.texts
    losses, worst, examples = losses_of(documents, request.settings.source_field, fixed, decision.keep)
    give_back()
    if request.earlier is None:
        alike = PrintPlaces(_native.most_alike(conclusion.prints.words, conclusion.prints.valid))
        same, examples_alike = len(alike), documents.names(np.sort(texts.document_at(alike))[:EXAMPLES])
    else:  # of the same documents
        share, found = request.earlier.alike
        same, examples_alike = round(share * len(documents)), list(found)
    met = Met(
        clusters=[
            (size, documents.names(np.flatnonzero(decision.keeper == keeper)[:EXAMPLES]))
            for keeper, size in (decision.largest if len(documents) else ())
        ],
        losses=[losses[at] for at in worst],
        lost=documents.names(examples),
        documents=len(documents),
        same=same,
        alike=examples_alike,
        noun=request.content.noun,
    )
    informative = texts.of_document >= 0
    summary = {
        "documents": request.source.documents,
        "kept": int(decision.keep[~fixed].sum()),
        "removed": int((~decision.keep[~fixed]).sum()),
        "copies": int(np.count_nonzero(informative)) - len(texts),
        "clusters": decision.clusters,
        "perhaps_forms": conclusion.perhaps_forms(),
        "without_information": int(np.count_nonzero(~informative & ~fixed)),
        "protected": int(fixed.sum()),
        "undated": undated,
        "bad": request.source.bad,
        "candidate_pairs": len(conclusion.found),
        "measured_pairs": int(conclusion.judgements.judged.sum()),
        "accepted_pairs": int(conclusion.judgements.accepted.sum()),
        "radius": conclusion.found.radius,
        "similarity": request.settings.similarity,
        "scheme": scheme.digest,
    }
    return Result(
        summary=summary,
        scheme=scheme,
        plan=conclusion.found.plan,
        guards=trips(request.settings.guards, met),
        met=met,
        losses=tuple(loss for loss in losses if loss.documents),
        request=request,
        outputs=outputs,
        keep_mask=decision.keep[~fixed],
        annotation_batches=conclusion.annotations,
        evidence_batches=conclusion.evidence,
        without_information_batches=conclusion.without_information,
    )
