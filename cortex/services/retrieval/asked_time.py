"""The time that a question asks for: "last week", "since May", "on 2026-05-14", "latest".

Idea: a cheap pattern finds the words of time; only then is dateparser imported (0.3 s), which
reads the date that they name, in English, German, Spanish or Russian. How long that is — a
day, a week, a month, a year — makes the window, and a preposition opens it on one side. Times
are UTC. A month or weekday without a year is the last one.

Cost: one pass of a pattern for a question without time; else a few milliseconds a date.
Corners: "may" and "march" in small letters are verbs; a year alone counts only after a
preposition, since numbers name other things; what dateparser cannot read asks for no time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cortex.domain.instants import Instant, as_datetime, render
from cortex.services.retrieval.found import Window

_MONTH: Final = (
    r"(?:jan(?:uary|uar)?|feb(?:ruary|ruar)?|March|März|apr(?:il)?|May|june?|juni|july?|juli|"
    r"aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?|"
    r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|"
    r"январ[ьяе]|феврал[ьяе]|март[ае]?|апрел[ьяе]|ма[йя]|мае|июн[ьяе]|июл[ьяе]|август[ае]?|"
    r"сентябр[ьяе]|октябр[ьяе]|ноябр[ьяе]|декабр[ьяе])"
)
_DAY: Final = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_UNIT: Final = r"(?:days?|weeks?|months?|years?)"
_COUNT: Final = r"(?:\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_SPAN: Final = "|".join(
    (
        r"\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?",
        r"\d{4}-\d{2}",
        r"\d{1,2}[./]\d{1,2}[./]\d{4}",
        rf"(?:\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?)?{_MONTH}"
        r"(?:\.?\s+\d{1,2}(?:st|nd|rd|th)?\b(?!:))?(?:,?\s+(?:de\s+)?\d{4})?",
        r"today|yesterday|gestern|heute|ayer|hoy|вчера|сегодня",
        rf"(?:last|past|previous|this)\s+(?:week|month|year|{_DAY})",
        rf"{_COUNT}\s+{_UNIT}\s+ago",
        r"letzte[nrsm]?\s+(?:Woche|Monat|Jahr)|vor\s+\d+\s+(?:Tagen|Wochen|Monaten)",
        r"(?:la\s+semana|el\s+mes|el\s+año)\s+pasad[oa]|hace\s+\d+\s+(?:días|semanas|meses)",
        r"(?:на\s+прошлой\s+неделе|в\s+прошлом\s+(?:месяце|году))",
        r"\d+\s+(?:дней|дня|недел[ьи]|месяц[аев]+)\s+назад",
    )
)
_FLAGS: Final = re.IGNORECASE
# Verbs and names in small letters: only capitalised are these months.
_VERBS: Final = re.compile(r"\b(?:may|march|mar)\b")
_OPENS: Final = "since|from|seit|desde|с"
_FOLLOWS: Final = "after|nach|después de|после"
_PRECEDES: Final = "before|vor|antes de"
_CLOSES: Final = "until|till|up to|by|bis|hasta|до"
_HOLDS: Final = "in|on|to|and|during|im|am|en|в"
_EXPRESSION: Final = re.compile(
    rf"(?:\b(?P<lead>{_OPENS}|{_FOLLOWS}|{_PRECEDES}|{_CLOSES}|{_HOLDS})\s+)?"
    rf"\b(?:(?P<date>{_SPAN})\b|(?P<year>(?:19|20)\d{{2}})\b(?![-./:]\d))",
    _FLAGS,
)
_LAST_MANY: Final = re.compile(rf"\b(?:last|past|previous)\s+{_COUNT}\s+{_UNIT}\b", _FLAGS)
_NEWEST: Final = re.compile(
    r"\b(?:latest|newest|most\s+recent(?:ly)?|last\s+time|neueste[nrsm]?|últim[oa]s?|"
    r"последн\w+)\b",
    _FLAGS,
)
_JOINS: Final = re.compile(r"^\s*(?:to|until|till|and|through|–|-|bis|a|по|до)\s*$", _FLAGS)
_LANGUAGES: Final = ("en", "de", "es", "ru")
_READ: Final = 2_000
_NUMBERS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5} | {
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10
}  # fmt: skip
_DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}


def window_of(question: str, now: Instant) -> Window | None:
    """The window that the question asks for, seen from `now`; None where it asks for none.

    Ends are inclusive, to the microsecond. What lies beyond the calendar's years 1 to 9999 is
    no window.
    """
    try:
        return _window_of(question, now)
    except (OverflowError, ValueError):  # "the last 99999 years", the day after 9999-12-31
        return None


def _window_of(question: str, now: Instant) -> Window | None:
    text = _VERBS.sub(lambda found: " " * len(found.group()), question[:_READ])
    newest = _NEWEST.search(text)
    many = _LAST_MANY.search(text)
    if many:
        _, count, unit = many.group().lower().split()
        days = _DAYS[unit.rstrip("s")] * (int(count) if count.isdigit() else _NUMBERS[count])
        start = as_datetime(now) - timedelta(days=days)
        return Window(render(start), now, many.group(), newest is not None)
    # A bare year is a number like others, unless a preposition makes it a time.
    dates = [each for each in _EXPRESSION.finditer(text) if each["date"] or each["lead"]]
    for place, found in enumerate(dates):
        first = _span(found["date"] or found["year"], now)
        if first is None:
            continue
        if place + 1 < len(dates):
            then = dates[place + 1]
            between = text[found.end() : then.start()] + (then["lead"] or "")
            last = _span(then["date"] or then["year"], now) if _JOINS.match(between) else None
            if last is not None and last[1] > first[0]:
                words = text[found.start() : then.end()]
                return _window(first[0], last[1], words, newest is not None)
        opened = _opened((found["lead"] or "").lower(), *first)
        return _window(*opened, found.group(), newest is not None)
    return Window(None, None, newest.group(), True) if newest else None


def _opened(lead: str, start: datetime, stop: datetime) -> tuple[datetime | None, datetime | None]:
    """The window that a preposition makes of a span."""
    tick = timedelta(microseconds=1)
    if re.fullmatch(_OPENS, lead):
        return start, None
    if re.fullmatch(_FOLLOWS, lead):
        return stop + tick, None
    if re.fullmatch(_PRECEDES, lead):
        return None, start - tick
    if re.fullmatch(_CLOSES, lead):
        return None, stop
    return start, stop


def _window(start: datetime | None, stop: datetime | None, words: str, newest: bool) -> Window:
    return Window(
        None if start is None else render(start),
        None if stop is None else render(stop),
        words,
        newest,
    )


def _span(words: str, now: Instant) -> tuple[datetime, datetime] | None:
    """From the first to the last moment of a date, by how exactly it is told."""
    found = _parse(words, now)
    if found is None:
        return None
    moment, period = found
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "year":
        start = day.replace(month=1, day=1)
        end = start.replace(year=start.year + 1)
    elif period == "month":
        start = day.replace(day=1)
        end = (start + timedelta(days=32)).replace(day=1)
    elif period == "week":
        start = day - timedelta(days=day.weekday())
        end = start + timedelta(days=7)
    else:
        start, end = day, day + timedelta(days=1)
    return start, end - timedelta(microseconds=1)


def _parse(words: str, now: Instant) -> tuple[datetime, str] | None:
    from dateparser.date import DateDataParser

    settings: dict[str, Any] = {
        "RELATIVE_BASE": as_datetime(now).replace(tzinfo=None),
        "PREFER_DATES_FROM": "past",
        "DATE_ORDER": "DMY",
        "PREFER_LOCALE_DATE_ORDER": False,
    }
    parser = DateDataParser(languages=list(_LANGUAGES), settings=settings)
    data = parser.get_date_data(words)
    if data.date_obj is None:
        return None
    return data.date_obj.replace(tzinfo=UTC), str(data.period)
