"""The part of YAML that files with `serving:` use: maps by indentation, maps in braces, words and whole numbers. What else YAML
has is refused, as what would be read in two ways: `foretrace simulate` must see the same file."""

import re

DEEPEST = 16
OTHER_YAML = "&*!|>[]@`%?"  # at the beginning of a value: anchors, tags, lists, blocks


class Mistake(ValueError):
    pass


def uncommented(line):
    """What stands before a comment; a `#` in quotes is none."""
    quote = None
    for at, character in enumerate(line):
        if quote:
            quote = None if character == quote else quote
        elif character in "\"'" and (at == 0 or line[at - 1] in " {,:"):
            quote = character
        elif character == "#" and (at == 0 or line[at - 1] in " \t"):
            return line[:at].rstrip()
    return line.rstrip()


def scalar(text):
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", text):
        return int(text)
    if text[:1] in ("\"", "'"):
        if len(text) < 2 or text[-1] != text[0] or text[0] in text[1:-1] or "\\" in text:
            raise Mistake(f"{text[:80]}: a text in quotes ends with its line, and has neither these quotes nor \\ inside")
        return text[1:-1]
    if text[:1] in OTHER_YAML and text:
        raise Mistake(f"'{text[:80]}': a value is a word, a number, a text in quotes or a map in braces")
    return text


def put(into, key, value):
    key = key.strip()
    if not re.fullmatch(r"[A-Za-z_][\w-]*", key, re.ASCII):
        raise Mistake(f"'{key[:80]}' is no key")
    if key in into:
        raise Mistake(f"'{key}' is there twice")
    into[key] = value


def flow(text, depth=0):
    """A map in braces, or a scalar."""
    text = text.strip()
    if not text.startswith("{"):
        return scalar(text)
    if not text.endswith("}"):
        raise Mistake(f"'{text[:80]}': a map in braces must end on its line")
    if depth == DEEPEST:
        raise Mistake(f"maps in braces are {DEEPEST} deep at most")
    found, begin, inside = {}, 1, 0
    for at, character in enumerate(text):
        inside += (character == "{") - (character == "}")
        if inside == 0 and at < len(text) - 1:
            raise Mistake(f"'{text[:80]}': a brace more ends than begins")
        if (character == "," and inside == 1) or at == len(text) - 1:
            part, begin = text[begin:at], at + 1
            key, colon, value = part.partition(":")
            if part.strip():
                if not colon or (value and value[0] != " " and value.strip()):
                    raise Mistake(f"'{part.strip()[:80]}' is no KEY: VALUE")
                put(found, key, flow(value, depth + 1))
    if inside:
        raise Mistake(f"'{text[:80]}': a map in braces must end on its line")
    return found


def maps(text):
    """Maps by indentation, and maps in braces."""
    root = {}
    open_maps = [(-1, root)]  # indentation of the key, and what stands below it
    indents = {id(root): 0}  # of a map's own keys
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = uncommented(line.removesuffix("\r"))
        if not line.strip():
            continue
        indent, (key, colon, value) = len(line) - len(line.lstrip(" ")), line.strip().partition(":")
        try:
            if line.lstrip(" ")[0] == "\t":
                raise Mistake("indentation is by spaces")
            if not colon or (value and value[0] != " "):
                raise Mistake(f"'{line.strip()[:80]}' is no KEY: VALUE")
            while open_maps[-1][0] >= indent:
                open_maps.pop()
            into = open_maps[-1][1]
            if indents.setdefault(id(into), indent) != indent:
                raise Mistake(f"'{key}' stands under no map of this indentation")
            put(into, key, flow(value) if value.strip() else {})
            if not value.strip():
                open_maps.append((indent, into[key.strip()]))
        except Mistake as mistake:
            raise Mistake(f"line {number}: {mistake}") from None
    return root
