"""Keyword search in other languages than English: inflected words, scripts without spaces."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cortex.config import load_settings
from cortex.memory import Memory, open_memory
from cortex.store.function_words import LATIN_WORDS
from cortex.store.languages import LATIN, spoken
from cortex.store.stemming import stem, stems
from cortex.store.tokens import MAX_TOKEN, fold, indexed, iter_tokens, query_tokens
from tests.local import ask

# Twenty facts a language with a question each, in other forms of the words; written by somebody
# who did not know the rules of the tokenizer.
FACTS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "inflected").glob("*.json"))
}
# Another form of a word and a sentence that holds it, for the languages without such a set.
SENTENCES = {
    "ar": ("مكتبة كبير", "الكتب موجودة في المكتبة الكبيرة"),
    "da": ("kunde", "Alle kunderne har ikke betalt deres regninger endnu"),
    "el": ("συμβόλαιο", "Τα συμβόλαια λήγουν τον Ιούνιο"),
    "fi": ("Missä talossa", "Kaikki talot ovat kaupungissa"),
    "fr": ("contrat expiré", "Les contrats ont expiré en juin"),
    "hu": ("Melyik szerződés van itt", "A szerződések nem a széfben vannak"),
    "it": ("riunione rinviata", "Le riunioni sono state rinviate"),
    "ko": ("고객", "고객들이 주문을 취소했다"),
    "nl": ("klant", "De klanten hebben niet betaald"),
    "no": ("Hva er regning", "Alle kundene har ikke betalt regningene sine ennå"),
    "pt": ("reuniao adiada", "As reuniões foram adiadas"),
    "ro": ("Unde este contractul", "Aceste contracte sunt pentru clienți"),
    "sv": ("Vilken räkning är det", "Kunderna har inte betalat sina räkningar"),
    "ta": ("வாடிக்கையாளர்", "வாடிக்கையாளர்கள் வந்தார்கள்"),
    "th": ("ตู้เซฟ", "รหัสผ่านอยู่ในตู้เซฟ"),
    "tr": ("sözleşme", "Sözleşmeler kasada duruyor"),
    "zh": ("宕机", "服务器昨晚宕机了"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory with the facts of all languages, each a distractor of the others."""
    home = tmp_path_factory.mktemp("languages")
    memory = open_memory(load_settings(home=home, workspace="w", env={}))
    for facts in FACTS.values():
        for fact in facts:
            ask(memory, "graph_add_node", type="note", text=fact["fact"])
    yield memory
    memory.close()


def meets(question: str, text: str) -> bool:
    return not set(query_tokens(question)).isdisjoint(indexed(text).split())


@pytest.mark.parametrize("language", ["de", "es", "hi", "ja", "ru"])
def test_a_fact_asked_in_other_forms_is_among_five(told: Memory, language: str) -> None:
    facts = FACTS[language]
    found = 0
    for fact in facts:
        hits = told.search.keyword_search(fact["question"], top_k=5).hits
        found += fact["fact"] in [hit.node.text for hit in hits]
    assert len(facts) == 20
    assert found / len(facts) >= 0.8


@pytest.mark.parametrize("language", sorted(SENTENCES))
def test_another_form_of_a_word_meets_the_sentence(language: str) -> None:
    question, sentence = SENTENCES[language]
    assert meets(question, sentence)


def test_every_language_has_a_sentence_a_stemmer_and_stop_words() -> None:
    assert set(LATIN) <= set(SENTENCES) | set(FACTS)
    assert all(stem("station", language) for language in LATIN_WORDS)
    assert all(len(words.split()) > 30 for words in LATIN_WORDS.values())


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("Kunde Zahlung", "Unser Kunde hat die Zahlungen eingestellt"),
        ("Größe", "Die Grösse der Tabelle"),
        ("contrasena", "Cambiamos las contraseñas del servidor"),
        ("новые серверы", "Новый сервер установили в подвале"),
        ("елка", "Ёлку купили вчера"),
        ("हिंदी दस्तावेज", "हिन्दी दस्तावेज़ बन गया"),
        ("कंपनी", "कंपनियाँ बंद हो गईं"),
        ("猫", "田中さんは黒い猫が好きだ"),
        ("走る", "毎朝公園を走った"),
        ("データベース", "ﾃﾞｰﾀﾍﾞｰｽを移した"),
        ("JWT", "認証にJWTを使う"),
        ("src/auth.py", "設定はsrc/auth.pyにある"),
        ("물", "물을 마신다"),
    ],
)
def test_other_spellings_and_neighbours_do_not_hide_a_word(asked: str, text: str) -> None:
    assert meets(asked, text)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("release notes", "Les clients ne sont pas venus, and not a single one wrote"),
        ("カーソル", "本番のデータベースは毎晩複製される"),
        ("новый", "Они купили мебель"),
        ("किताब", "मुख्य सर्वर बंद है"),
    ],
)
def test_words_without_a_common_root_do_not_meet(asked: str, text: str) -> None:
    assert not meets(asked, text)


def test_an_english_question_meets_the_english_terms_of_a_german_text() -> None:
    text = "Die Migrations laufen im Cluster, aber nur nachts und ohne Rollback."
    assert spoken(text).languages == ("de",)
    assert meets("which migration runs", text)


@pytest.mark.parametrize(
    "text",
    [
        "When did the server die, and was the man in the hat there?",
        "def read(self, num, col): return col[num] if num in col else None",
        "Oscar de la Hoya and the van der Berg brothers met in Las Vegas.",
        "src/der/die/das.md graph_und_mit.py",
    ],
)
def test_english_and_code_are_taken_for_no_other_language(text: str) -> None:
    assert spoken(text).languages == ()


def test_a_text_in_two_languages_has_the_stems_of_both() -> None:
    text = "Wir haben die Häuser nicht verkauft. " + "Las casas no fueron vendidas por los dueños. "
    assert set(spoken(text).languages) == {"de", "es"}


def test_function_words_of_the_questions_language_are_left_out() -> None:
    assert query_tokens("Wo liegen die Verträge?") == ["liegen", "vertrag", "lieg"]
    assert query_tokens("где договор?") == ["договор"]
    assert query_tokens("किताब कहाँ है?") == ["किताब"]


def test_a_question_of_function_words_alone_keeps_them() -> None:
    assert query_tokens("wer war das") == ["wer", "war", "das"]


@pytest.mark.parametrize(
    ("identifier", "tokens"),
    [
        ("POL-358", ["pol-358", "pol", "358"]),
        ("src/auth/jwt.py", ["src/auth/jwt.py", "src", "auth", "jwt", "py"]),
        ("parseHTTPResponse", ["parsehttprespons", "pars", "http", "respons"]),
        ("graph_search", ["graph_search", "graph", "search"]),
    ],
)
def test_identifiers_stay_whole_and_split(identifier: str, tokens: list[str]) -> None:
    assert list(iter_tokens(identifier)) == tokens
    assert set(tokens) <= set(indexed(f"Der Fehler {identifier} ist bei uns nicht da.").split())


@pytest.mark.parametrize(
    ("word", "root"),
    [("लड़कों", "लडक"), ("किताबें", "किताब"), ("जाएंगे", "जा"), ("प्रतियाँ", "प्रत"), ("घर", "घर")],
)
def test_the_longest_suffix_of_a_hindi_word_is_taken_off(word: str, root: str) -> None:
    assert stems(fold(word))[0] == root


WORDS = st.sampled_from(
    [word for facts in FACTS.values() for fact in facts for word in fact["fact"].split()]
)


@given(WORDS, st.lists(WORDS, max_size=12), st.lists(WORDS, max_size=12))
def test_a_word_asked_alone_is_in_every_sentence_that_holds_it(
    word: str, before: list[str], after: list[str]
) -> None:
    sentence = set(indexed(" ".join([*before, word, *after])).split())
    assert set(iter_tokens(word, ())) <= sentence
    assert not sentence.isdisjoint(query_tokens(word))


@given(st.text())
@example("\ufe0f\u0301")
@example("ﷺ ⑴ ½ İ \ud800 \x00")
@example("が" * 200 + "\u3099" * 200)
@example("ก" + "\u0e31" * 200)
@example("_-./:@#+")
def test_any_text_becomes_tokens_that_the_index_takes(text: str) -> None:
    tokens = query_tokens(text)
    assert tokens == query_tokens(text)
    assert len(tokens) <= 64
    assert all(0 < len(token) <= MAX_TOKEN and '"' not in token for token in iter_tokens(text))
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE t USING fts5(body, tokenize=\"ascii tokenchars '_-./:@#+'\")"
        )
        connection.execute("INSERT INTO t VALUES (?)", (indexed(text),))
        question = " OR ".join(f'"{token}"' for token in tokens)
        found = connection.execute(
            "SELECT 1 FROM t WHERE t MATCH ?", (question or '""',)
        ).fetchall()
    assert bool(found) == bool(tokens)


def test_a_nearly_equal_japanese_text_is_named(memory: Memory) -> None:
    fact = "本番のデータベースは毎晩三時に複製され、古い複製は三十日後に自動で消される。"
    first = ask(memory, "graph_add_node", type="note", text=fact)["id"]
    for other in FACTS["ja"]:
        ask(memory, "graph_add_node", type="note", text=other["question"])
    again = ask(memory, "graph_add_node", type="note", text=fact.replace("三時", "四時"))
    assert [each["id"] for each in again["similar"]] == [first]


def test_a_pasted_page_costs_no_more_words_than_a_paragraph() -> None:
    page = " ".join(fact["fact"] for facts in FACTS.values() for fact in facts) * 50
    assert len(query_tokens(page)) == 64
