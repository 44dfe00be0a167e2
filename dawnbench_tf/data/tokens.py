"""Words of a text with their exact places, and places of answers among them."""

import re
from bisect import bisect_left, bisect_right

# Contractions part as in GloVe's vocabulary (do n't, it 's); a number keeps its commas and points;
# every other sign is a word of its own, so that an answer's ends are ends of words.
_WORD = re.compile(
    r"""[^\W\d_]+?(?=n['’]t\b) | n['’]t\b | ['’](?:s|re|ve|ll|d|m)\b
      | \d+(?:[.,]\d+)* | [^\W\d_]+ | \S""",
    re.VERBOSE | re.IGNORECASE,
)


def places(text: str) -> list[tuple[int, int]]:
    """First and past-the-last character of each word.

    >>> text = "Don't pay $1,000.50!"
    >>> [text[a:b] for a, b in places(text)]
    ['Do', "n't", 'pay', '$', '1,000.50', '!']
    """
    return [match.span() for match in _WORD.finditer(text)]


def locate(context: str, answer: str, start: int) -> int:
    """Where the answer is: at `start`, or at the nearest other place; -1 if it is nowhere."""
    if start >= 0 and context.startswith(answer, start):
        return start
    found, at = [], context.find(answer)
    while at >= 0:
        found.append(at)
        at = context.find(answer, at + 1)
    return min(found, key=lambda at: abs(at - start), default=-1)


def span(words: list[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """The first and the last word that overlap the characters from begin to before end."""
    first = bisect_right(words, begin, key=lambda word: word[1])
    last = bisect_left(words, end, key=lambda word: word[0]) - 1
    return (first, last) if first <= last else None
