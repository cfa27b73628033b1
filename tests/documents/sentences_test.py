"""python3 sentences_test.py ROOT: our pages are read once, from left to right, by people who know CUDA and not us."""

import pathlib
import re
import sys
import unittest

import sentences

ROOT = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
MOST_WORDS = 30
MOST_WORDS_OF_README = 900
# What we used to say, and what the field says.
JARGON = {"has one speed": "costs the same", "younger than the model": "newer than the model", "room_at_last": "free SMs at the end",
          "what was far off": "large errors before", "sooner": "earlier", "urgent": "high-priority", "taste": "heuristic",
          "fenced in": "isolated", "in sight": "looked at", "nobody tuned": "unseen"}
# Records of what was measured, and generated pages; corpora of readers' tests.
NO_PAGES = ("tests/fuzz/corpus/", "build", "out/", "node_modules/")
LEFT_OUT = ("reports/blind/", "reports/measured/", "models/evidence/terms.md", "scenarios/reference.md", "CHANGELOG.md")


def pages(left_out=LEFT_OUT):
    for path in sorted(ROOT.rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith((*NO_PAGES, *left_out)):
            yield name, path.read_text(encoding="utf-8")


class Pages(unittest.TestCase):
    def test_no_sentence_is_longer_than_thirty_words(self):
        checked, long = 0, []
        for name, text in pages():
            for line, words in sentences.sentences(text):
                checked += 1
                if len(words) > MOST_WORDS:
                    long.append(f"{name}:{line}: {len(words)} words: {' '.join(words)}")
        self.assertGreater(checked, 1000)
        self.assertEqual(long, [], "\n" + "\n".join(long))

    def test_no_page_says_what_only_we_would(self):
        said = [f"{name}: '{word}'; the field says '{instead}'" for name, text in pages()
                for _, block in sentences.blocks(text) for word, instead in JARGON.items()
                if word in sentences.plain(block).lower()]
        self.assertEqual(said, [], "\n" + "\n".join(said))

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text(encoding="utf-8").split()), MOST_WORDS_OF_README)

    def test_a_link_leads_to_a_file_of_ours(self):
        checked, broken = 0, []
        for name, text in pages(()):
            text = re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
            for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", text):
                if "://" not in target:
                    checked += 1
                    if not (ROOT / name).parent.joinpath(target).exists():
                        broken.append(f"{name}: {target}")
        self.assertGreater(checked, 500)
        self.assertEqual(broken, [], "\n" + "\n".join(broken))

    def test_the_sites_pages_are_there(self):
        named = re.findall(r": (\S+\.md)$", (ROOT / "cmake/mkdocs.yml.in").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertGreater(len(named), 20)
        self.assertEqual([name for name in named if not (ROOT / name).is_file()], [])


class Sentences(unittest.TestCase):
    def words(self, text):
        return [(line, len(words)) for line, words in sentences.sentences(text)]

    def test_a_sentence_ends_with_its_full_stop_its_point_or_its_cell(self):
        self.assertEqual(self.words("One two. Three\nfour five!\n\n- six\n- seven eight\n"), [(1, 2), (1, 3), (4, 1), (5, 2)])
        self.assertEqual(self.words("| a b | c |\n| --- | --- |\n| d e f | g |\n"), [(1, 2), (1, 1), (3, 3), (3, 1)])

    def test_code_is_one_word_and_blocks_of_it_none(self):
        self.assertEqual(self.words("Run `a b c` and [see this](x/y.md).\n```sh\nnot this one\n```\n"), [(1, 5)])

    def test_what_a_command_wrote_does_not_count(self):
        self.assertEqual(self.words("A b.\n<!-- begin: t -->\nc d e\n<!-- end: t -->\nF.\n"), [(1, 2), (5, 1)])


if __name__ == "__main__":
    unittest.main()
