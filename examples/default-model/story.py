"""The small template language in which the stories of the corpus are written.

`{a|b|c}` picks one alternative (they nest), `[slot]` prints a slot of the story. A Story holds the
slots, so that names, pronouns and things stay the same from the first sentence to the last.
"""

from __future__ import annotations

import random
import re

from words import (ADJECTIVES, ANIMAL_HEROES, BOYS, FOODS, GIRLS, GROWN_UPS, PLACES, SYLLABLES, TOYS,
                   TRAITS, WEATHER)

PRONOUNS = {
    "she": {"he": "she", "him": "her", "his": "her", "self": "herself", "kid": "girl"},
    "he": {"he": "he", "him": "him", "his": "his", "self": "himself", "kid": "boy"},
}
_INNERMOST = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"\[(\w+)\]")
_SENTENCE_START = re.compile(r'((?:^|[.!?] |\n)"?)([a-z])')
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeioAEIO]|un[^i]|ug)")


class Story:
    """One story: its slots, its text, and the random source that every choice comes from."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.slot: dict[str, str] = {}
        self.parts: list[str] = []
        self.used: set[str] = set()
        self.friends = False  # whether the hero's friend has been introduced
        self.nameless = False
        self._cast()

    def _name(self, sex: str) -> str:
        """A name not yet used in this story; one in eight is made up, so that the model learns to copy."""
        while True:
            if self.rng.random() < 0.12:
                name = "".join(self.rng.choice(SYLLABLES) for _ in range(2)).capitalize()
            else:
                name = self.rng.choice(GIRLS if sex == "she" else BOYS)
            if name not in self.used:
                self.used.add(name)
                return name

    def person(self, prefix: str) -> None:
        """Fills PREFIX, PREFIXhe, PREFIXhim, ... with a new child."""
        sex = self.rng.choice(("she", "he"))
        self.slot[prefix] = self._name(sex)
        self.slot.update({prefix + key: word for key, word in PRONOUNS[sex].items()})

    def _cast(self) -> None:
        self.person("hero")
        self.person("pal")
        for key, word in PRONOUNS["she" if self.slot["herohe"] == "she" else "he"].items():
            self.slot[key] = word
        self.animal = self.rng.random() < 0.22
        if self.animal:
            kinds = self.rng.sample(ANIMAL_HEROES, 2)
            self.slot["herokid"], self.slot["palkid"] = kinds
        self.slot["kid"] = self.slot["herokid"]
        grown, sex = self.rng.choice(GROWN_UPS)
        self.slot["mom"] = grown
        self.slot.update({"mom" + key: word for key, word in PRONOUNS[sex].items()})
        self.slot["trait"] = self.rng.choice(TRAITS)
        self.slot["adj"] = self.rng.choice(ADJECTIVES)
        self.slot["toy"] = self.rng.choice(TOYS)
        self.slot["place"] = self.rng.choice(PLACES)
        self.slot["food"] = self.rng.choice(FOODS)
        self.slot["weather"] = self.rng.choice(WEATHER)

    def make_nameless(self) -> None:
        """The hero is "the little fox" throughout."""
        self.nameless = True
        self.slot["hero"] = self.expand("the {little |old |young |}[kid]")

    def choice(self, values):
        return self.rng.choice(values)

    def expand(self, text: str) -> str:
        """Alternatives are chosen from the inside out, then slots are filled."""
        while True:
            text, count = _INNERMOST.subn(lambda m: self.rng.choice(m[1].split("|")), text)
            if not count:
                break
        while _SLOT.search(text):
            text = _SLOT.sub(self._fill, text)
        return text

    def _fill(self, match: re.Match[str]) -> str:
        """`[He]` is `[he]` with a capital: a sentence that begins after a closing quote."""
        key = match[1]
        word = self.slot[key.lower() if key[0].isupper() else key]
        return word[0].upper() + word[1:] if key[0].isupper() else word

    def add(self, *variants: str) -> None:
        """Appends one of the variants, each of which is one or more whole sentences."""
        part = self.expand(self.rng.choice(variants))
        start = 1 if part.startswith('"') else 0
        self.parts.append(part[:start] + part[start : start + 1].upper() + part[start + 1 :])

    def maybe(self, chance: float, *variants: str) -> None:
        if self.rng.random() < chance:
            self.add(*variants)

    def para(self) -> None:
        self.parts.append("\n")

    def drop_opening(self) -> None:
        """Leaves out some of the first sentences, so that the model can go on from any sentence."""
        first = self.parts.index("\n") if "\n" in self.parts else 0
        del self.parts[: self.rng.randrange(1, max(2, min(5, first)))]

    def text(self) -> str:
        text = " ".join(part for part in self.parts if part)
        text = re.sub(r" *\n *", "\n", re.sub(r" +", " ", text)).strip()
        text = _SENTENCE_START.sub(lambda m: m[1] + m[2].upper(), text)
        return _ARTICLE.sub(r"\1n ", text)
