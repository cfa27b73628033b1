"""python3 archives_test.py REPOSITORY: every recorded round is whole, and says what its index and its evaluation say."""

import csv
import io
import pathlib
import re
import sys
import tempfile
import unittest

import evaluate
import index
import rounds

ROOT = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[3]
BLIND = ROOT / "reports" / "blind"
# What was measured on a machine of one GPU, judged by the file of eight as well (round-22/NOTES.md).
MEASURED_AS = {("round-22", "h200-nvswitch-8"): "h200-1"}


def rows_in(data):
    return list(csv.DictReader(io.StringIO(data.decode())))


class Archives(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = (BLIND / "README.md").read_text(encoding="utf-8")
        cls.entries = index.entries(cls.page)
        cls.files = {name: rounds.read_archive(BLIND / f"{name}.tar.gz") for name in index.recorded(BLIND)}

    def test_the_index_names_each_archive_with_its_sha256_and_counts(self):
        self.assertEqual(list(self.entries), list(self.files))
        self.assertGreaterEqual(len(self.files), 50)
        for name, files in self.files.items():
            said = self.entries[name]
            self.assertEqual(said["sha256"], rounds.sha256_of(BLIND / f"{name}.tar.gz"), name)
            self.assertEqual(int(said["files"]), len(files), name)
            programs = [file for file in files if file.startswith("programs/") and file.endswith(".yaml")]
            self.assertEqual(int(said["programs"]), len(programs), name)
            self.assertTrue(programs, name)
            self.assertRegex(said["predicted"], "^[0-9a-f]{12}", name)
            if any(file.startswith("measured") for file in files):
                self.assertRegex(said["measured"], "^[0-9a-f]{12}", name)

    def test_every_program_of_a_round_is_in_its_archive(self):
        for name, files in self.files.items():
            if "programs.csv" not in files:
                self.assertIn("-gpu-steps-", name)  # whose csv name the steps themselves
                continue
            for row in rows_in(files["programs.csv"]):
                self.assertIn(row["file"], files, name)

    def test_what_was_measured_gives_the_evaluation_that_lies_beside_it(self):
        checked = 0
        for name, files in self.files.items():
            for file in sorted((BLIND / name).glob("evaluation-*.csv")):
                machine = file.stem.removeprefix("evaluation-")
                measured = f"measured-{MEASURED_AS.get((name, machine), machine)}.csv"
                with tempfile.TemporaryDirectory() as scratch:
                    inside = pathlib.Path(scratch)
                    for part in ("programs.csv", f"predicted-{machine}.csv", measured):
                        (inside / part).write_bytes(files[part])
                    evaluate.evaluate(inside, inside / measured, machine)
                    self.assertEqual((inside / file.name).read_text(), file.read_text(), f"{name}, {machine}")
                checked += 1
        self.assertGreaterEqual(checked, 70)

    def test_a_file_of_a_round_that_a_machine_was_learned_from_is_there(self):
        named = {match for file in (ROOT / "models" / "machines").glob("*.yaml")
                 for match in re.findall(r"reports/blind/([a-z]+[a-z0-9-]*-\d+)/([\w.-]+\.csv)", file.read_text())}
        self.assertGreaterEqual(len(named), 30)
        for name, file in sorted(named):
            self.assertTrue(file in self.files[name] or (BLIND / name / file).exists(), f"{name}/{file}")

    def test_the_page_is_what_the_archives_and_evaluations_give(self):
        self.assertEqual(index.page(BLIND), self.page)


class Packing(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.round = pathlib.Path(self.scratch.name) / "round-7"
        for name, text in (("programs/a/p.yaml", "name: p\n"), ("programs.csv", "program\np\n"),
                           ("NOTES.md", "# n\n"), ("evaluation-m.csv", "x\n"), ("programs/evaluation/e.yaml", "name: e\n")):
            path = self.round / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def test_notes_and_evaluations_stay_and_the_rest_comes_back_as_it_was(self):
        archive = rounds.pack(self.round)
        self.assertEqual(sorted(path.name for path in self.round.rglob("*")), ["NOTES.md", "evaluation-m.csv"])
        with rounds.opened(self.round) as inside:
            self.assertEqual((inside / "programs/a/p.yaml").read_text(), "name: p\n")
            self.assertEqual((inside / "programs/evaluation/e.yaml").read_text(), "name: e\n")
            self.assertEqual((inside / "evaluation-m.csv").read_text(), "x\n")
            self.assertEqual(rounds.found(self.round / "programs.csv", self.round, inside), inside / "programs.csv")
        self.assertFalse(inside.exists())
        self.assertEqual(len(rounds.read_archive(archive)), 3)

    def test_packing_again_gives_the_same_bytes_and_takes_what_is_new(self):
        archive = rounds.pack(self.round)
        first = archive.read_bytes()
        rounds.unpack(self.round, self.round)
        self.assertEqual(rounds.pack(self.round).read_bytes(), first)
        (self.round / "measured-m.csv").write_text("program\n")
        self.assertIn("measured-m.csv", rounds.read_archive(rounds.pack(self.round)))

    def test_what_is_recorded_does_not_change(self):
        rounds.pack(self.round)
        (self.round / "programs.csv").write_text("program\nq\n")
        with self.assertRaisesRegex(ValueError, "another programs.csv"):
            rounds.pack(self.round)

    def test_an_archive_whose_member_leaves_its_folder_is_refused(self):
        for top, name in (("round-8", "p.yaml"), ("round-7", "../p.yaml")):
            rounds.write_archive(rounds.archive_of(self.round), top, {name: b"x"})
            with self.assertRaisesRegex(ValueError, "is no plain file of round-7/"):
                rounds.read_archive(rounds.archive_of(self.round))


if __name__ == "__main__":
    unittest.main()
