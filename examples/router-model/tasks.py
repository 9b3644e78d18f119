"""Random decision tasks in the router's own prompt format, as token ids.

A prompt begins with one token. Groups of five follow: three keywords; the action taken, with what the example is, the
mean of so many rewards (1, 2, 4, .. 32 and more) or, in pools that keep no more, the best of so many of these keywords,
whatever was done; and how the reward ranks among the prompt's rewards with its evaluation (good or bad). The
query is the first three tokens of one more group; the model answers with an action of one reward. Keywords are symbols: which word a symbol stands for is drawn anew for every prompt, so no word is
ever learned and words that training never saw are no different. runtime/router/prompt_tokens.c writes the same format;
tests/runtime/router/prompts.txt holds it to this file.

Usage: tasks.py >tests/runtime/router/prompts.txt
"""

from __future__ import annotations

import numpy as np

WORDS = 100  # 0: no keyword; a prompt of 32 examples and a query names at most 99
ACTIONS = ("edge", "cloud", "split")
LEVELS = 6  # of how many rewards an example stands for; as many again where it is the best of them
RANKS = 64
BEGIN = 0
WORD0 = 1
ACTION0 = WORD0 + WORDS
REWARD0 = ACTION0 + 2 * LEVELS * len(ACTIONS)  # + rank * 2 + (1 when bad)
VOCAB = REWARD0 + 2 * RANKS
SLOTS = 3
GROUP = SLOTS + 2
MOST_EXAMPLES = 32
HORIZON = 8  # decisions of the same keywords that what is learned now serves
EXPLORED = 0.95  # how likely an action stays untried with each request of its keywords
MOST_COUNTED = 19  # a moving mean of rate 0.1 is as sure as the mean of so many


def ranks(rewards: np.ndarray) -> np.ndarray:
    """[batch][groups] -> 0 .. RANKS - 1: dense ranks, spread over the whole range; equal rewards rank equally."""
    ordered = np.sort(rewards, axis=1)
    fresh = np.concatenate([np.zeros_like(ordered[:, :1], bool), ordered[:, 1:] != ordered[:, :-1]], axis=1).cumsum(axis=1)
    most = np.maximum(fresh[:, -1:], 1)
    place = (ordered[:, None, :] < rewards[:, :, None]).sum(axis=2)
    dense = np.take_along_axis(fresh, place, axis=1)
    return (dense * (RANKS - 1) * 2 + most) // (2 * most)


def levels(seen: np.ndarray, best: np.ndarray | bool) -> np.ndarray:
    """Rewards that an example stands for -> 0 .. 2 * LEVELS - 1."""
    return np.minimum(np.log2(seen).astype(int), LEVELS - 1) + LEVELS * np.asarray(best)


def tokens(best: np.ndarray | bool, symbols: np.ndarray, action: np.ndarray, seen: np.ndarray, rank: np.ndarray,
           bad: np.ndarray) -> np.ndarray:
    """Prompts [batch][1 + groups * GROUP] of whether examples are the best of their keywords [batch][1], symbols
    [batch][groups][SLOTS] (0: none) and the rest [batch][groups]."""
    batch, groups = action.shape
    ids = np.empty((batch, 1 + groups * GROUP), np.int64)
    ids[:, 0] = BEGIN
    body = ids[:, 1:].reshape(batch, groups, GROUP)
    body[:, :, :SLOTS] = WORD0 + symbols
    body[:, :, SLOTS] = ACTION0 + levels(seen, best) * len(ACTIONS) + action
    body[:, :, SLOTS + 1] = REWARD0 + 2 * rank + bad
    return ids


class Tasks:
    """A batch of random tasks: what each keyword combination (class) is worth under each action."""

    def __init__(self, rng: np.random.Generator, batch: int):
        self.rng, self.batch = rng, batch
        self.actions = np.where(rng.random(batch) < 0.75, 2, 3)
        attributes = rng.integers(1, SLOTS + 1, batch)
        most = np.array([[16, 1, 1], [8, 4, 1], [5, 3, 2]])[attributes - 1]
        self.sizes = np.maximum(1, (rng.random((batch, SLOTS)) * most + 1).astype(int))
        self.used = np.arange(SLOTS)[None] < attributes[:, None]
        self.classes = self.sizes.prod(axis=1)
        width = int(self.classes.max())
        cell = np.arange(width)
        strides = np.concatenate([np.ones((batch, 1), int), self.sizes.cumprod(axis=1)[:, :-1]], axis=1)
        self.slots = cell[None, :, None] // strides[:, None] % self.sizes[:, None]  # [batch][class][slot]
        scale = rng.random((batch, SLOTS + 2)) * (rng.random((batch, SLOTS + 2)) < 0.6)
        scale[:, SLOTS] += rng.random(batch) * 0.5 + 0.05
        mean = scale[:, SLOTS, None, None] * rng.standard_normal((batch, width, len(ACTIONS)))
        mean += scale[:, SLOTS + 1, None, None] * rng.standard_normal((batch, 1, len(ACTIONS)))
        for slot in range(SLOTS):
            effect = rng.standard_normal((batch, 16, len(ACTIONS)))
            mean += scale[:, slot, None, None] * np.take_along_axis(effect, self.slots[:, :, slot, None], axis=1)
        common = rng.random(batch) * 2  # what a class is worth whatever is done
        mean += common[:, None, None] * rng.standard_normal((batch, width, 1))
        self.mean = np.where(np.arange(len(ACTIONS)) < self.actions[:, None, None], mean, -np.inf)
        spread = np.nanstd(np.where(np.isinf(self.mean), np.nan, self.mean), axis=(1, 2))
        self.noise = np.maximum(spread, 0.05) * 2 * rng.random(batch) ** 2 * (rng.random(batch) < 0.8)
        self.best = rng.random(batch) < 0.2
        self.tries = self.history()

    def history(self) -> np.ndarray:
        """How often each action was tried on each class before the prompt [batch][class][actions]: a young pool or an old
        one, classes often met or seldom, actions preferred or, where little happened, never tried."""
        rng, shape = self.rng, self.mean.shape
        age = 6 * rng.random((self.batch, 1, 1))
        often = np.exp(age * rng.random((*shape[:2], 1)) ** 0.5 * (1 - rng.random((self.batch, 1, 1)) * rng.random(shape)))
        never = rng.random(shape) < rng.random((self.batch, 1, 1)) * EXPLORED ** (often.sum(axis=2, keepdims=True) - 1)
        tries = np.where(np.isinf(self.mean) | never, 0, often.astype(int))
        lone = tries.sum(axis=2) == 0
        first = rng.integers(0, self.actions, self.batch)
        tries[np.arange(self.batch), :, first] += lone
        return tries

    def visits(self, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which class is met, which action taken, and how many rewards are told at once: as a pool of means holds them (each
        pair once) or as they came."""
        rng, batch = self.rng, self.batch
        pairs = self.classes * self.actions
        width = int(pairs.max())
        order = np.where(np.arange(width) < pairs[:, None], rng.random((batch, width)), np.inf).argsort(axis=1)
        once = order[:, np.minimum(np.arange(groups), width - 1)]
        anew = (rng.random((batch, groups)) ** (1 + rng.random((batch, 1))) * pairs[:, None]).astype(int)
        pool = rng.random(batch) < 0.7
        pooled = pool[:, None] & (np.arange(groups) < pairs[:, None])
        pair = np.where(pooled, once, anew)
        met, action = pair // self.actions[:, None], pair % self.actions[:, None]
        seen = np.maximum(1, self.tries[np.arange(batch)[:, None], met, action])
        means = rng.random((batch, 1)) < 0.6  # what is met again comes alone, or is a mean as well
        return met, action, np.where(pool[:, None] & (pooled | means), seen, 1)

    def kept(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each class the action and reward of the best of all tries [batch][class]."""
        luck = np.full(self.mean.shape, -np.inf)
        for n in range(min(int(self.tries.max()), 20)):  # a luckier one of more is rare
            luck = np.where(n < self.tries, np.maximum(luck, self.rng.standard_normal(luck.shape)), luck)
        noise = np.maximum(self.noise, 1e-9)[:, None, None]
        reward = np.where(self.tries > 0, self.mean, -np.inf) + noise * np.where(self.tries > 0, luck, 0)
        return reward.argmax(axis=2), reward.max(axis=2)

    def values(self, met: np.ndarray, action: np.ndarray) -> np.ndarray:
        """What each action is worth at each group [batch][groups][actions]: its mean reward, and what the best one known after
        it brings to the decisions to come. An action tried is known (its noise is not thought of)."""
        rows = np.arange(self.batch)
        known = (self.tries > 0) & self.best[:, None, None]
        value = np.empty((*met.shape, len(ACTIONS)))
        for group in range(met.shape[1]):
            mean = self.mean[rows, met[:, group]]
            before = np.where(known[rows, met[:, group]], mean, -np.inf).max(axis=1, keepdims=True)
            value[:, group] = (mean + (HORIZON - 1) * np.maximum(before, mean)) / HORIZON
            known[rows, met[:, group], action[:, group]] = True
        return value

    def prompt(self, groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Token ids [batch][1 + groups * GROUP], the class met in each group [batch][groups], and the mean reward and the
        value of each action there [batch][groups][actions]. The last group is a query; its reward is no token."""
        rng, batch, rows = self.rng, self.batch, np.arange(self.batch)[:, None]
        met, action, seen = self.visits(groups)
        error = rng.standard_normal((batch, groups)) / np.sqrt(np.minimum(seen, MOST_COUNTED))
        reward = self.mean[rows, met, action] + self.noise[:, None] * error
        best_action, best_reward = self.kept()
        action = np.where(self.best[:, None], best_action[rows, met], action)
        reward = np.where(self.best[:, None], best_reward[rows, met], reward)
        seen = np.where(self.best[:, None], self.tries[rows, met].sum(axis=2), seen)
        threshold = np.quantile(reward, rng.random() * 0.6, axis=1) if rng.random() < 0.6 else np.full(batch, -np.inf)
        bad = reward < threshold[:, None]
        symbol = self.slots[rows, met] + np.concatenate(
            [np.zeros((batch, 1), int), self.sizes.cumsum(axis=1)[:, :-1]], axis=1)[:, None]
        turn = rng.random((batch, SLOTS)).argsort(axis=1)  # the order in which a task's keywords are written
        turn = np.take_along_axis(turn, (~np.take_along_axis(self.used, turn, axis=1)).argsort(axis=1, kind="stable"), axis=1)
        used = np.take_along_axis(self.used, turn, axis=1)
        symbol = np.take_along_axis(symbol, turn[:, None], axis=2)
        renamed = rng.random((batch, WORDS - 1)).argsort(axis=1) + 1
        symbols = np.where(used[:, None], renamed[rows[:, :, None], symbol], 0)
        rank = np.pad(ranks(reward[:, :-1]), ((0, 0), (0, 1)))  # among the examples of the last query
        return tokens(self.best[:, None], symbols, action, seen, rank, bad), met, self.mean[rows, met], self.values(met, action)


def write_prompts() -> None:
    """A line for each group: words, action, what it stands for, reward, evaluation and the five tokens; a blank line ends a prompt."""
    rng = np.random.default_rng(7)
    for groups in (1, 2, 5, 13, MOST_EXAMPLES):
        symbols, known = rng.integers(0, 9, (groups, SLOTS)), {}
        symbols[:, 0] += 1
        symbols[:, 2] *= symbols[:, 1] > 0  # words come first, then none
        for word in symbols.flat:
            known.setdefault(int(word), len(known) + 1) if word else None
        order = np.vectorize(lambda word: known.get(int(word), 0))(symbols)
        action, bad = rng.integers(0, len(ACTIONS), groups), rng.random(groups) < 0.4
        reward = rng.integers(-6, 7, groups) / 4  # some are equal
        seen = (2 ** rng.uniform(0, 5, groups)).astype(int)
        best = groups == 5
        body = tokens(best, order[None], action[None], seen[None], ranks(reward[None]), bad[None])[0, 1:].reshape(groups, GROUP)
        for i in range(groups):
            words = "+".join(f"word{word}" for word in symbols[i] if word)
            print(words, ACTIONS[action[i]], "best" if best else "mean", seen[i], reward[i], "bad" if bad[i] else "good", *body[i])
        print()


if __name__ == "__main__":
    write_prompts()
