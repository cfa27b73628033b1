"""sentences: the prose of a Markdown page, sentence by sentence, as a reader meets it.

Left out are code blocks, HTML, generated tables (between <!-- begin --> and <!-- end -->) and the targets of links. Code in
backquotes counts as one word. A cell of a table, a heading and a point of a list end a sentence, and so do . ? and !"""

import re

CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
ENDS = re.compile(r"(?<=[.?!])[)\"'*_]*\s+")
WORD = re.compile(r"[A-Za-z0-9]")
NEW_BLOCK = re.compile(r"^\s*(?:[-*+]|\d+\.|#+|>)\s+")


def blocks(text):
    """(line number, text) of each paragraph, point, heading and table cell."""
    text = re.sub(r"<!-- begin.*?<!-- end[^>]*-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    fenced, gathered, begin = False, [], 0

    def done():
        nonlocal gathered
        if gathered:
            yield begin, " ".join(gathered)
        gathered = []

    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            yield from done()
            fenced = not fenced
        elif fenced or not line.strip() or line.startswith("    ") and not gathered:
            yield from done()
        elif line.lstrip().startswith("|"):
            yield from done()
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                if WORD.search(cell):
                    yield number, cell.strip()
        else:
            if NEW_BLOCK.match(line):
                yield from done()
            if not gathered:
                begin = number
            gathered.append(NEW_BLOCK.sub("", line).strip())
    yield from done()


def plain(text):
    """Links are their words, code in backquotes is one."""
    text = CODE.sub(" code ", text)
    return LINK.sub(r"\1", text)


def sentences(text):
    """(line number of its block, words) of each sentence."""
    for number, block in blocks(text):
        for sentence in ENDS.split(plain(block)):
            words = [word for word in (sentence or "").split() if WORD.search(word)]
            if words:
                yield number, words
