"""The program's answers as Python objects. Plotting is tried where matplotlib is installed, tables of pandas where that is.

    FORETRACE=build/release/sim/foretrace python3 answer_test.py     (or pytest answer_test.py)"""

import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scenarios" / "pytorch"))

import foretrace  # noqa: E402

PROGRAM = os.environ.get("FORETRACE") or foretrace.program.find_program()
SCENARIO = ROOT / "scenarios" / "examples" / "prefetch_two_streams.yaml"
NOTEBOOK = ROOT / "scenarios" / "pytorch" / "first_answers.ipynb"


def has(name):
    return importlib.util.find_spec(name) is not None


@unittest.skipIf(not PROGRAM, "there is no program foretrace: FORETRACE names it")
class Answers(unittest.TestCase):
    def test_a_simulation_has_rows_with_bands_and_is_the_programs_own_json(self):
        answer = foretrace.simulate(SCENARIO, "h200-nvswitch-8", foretrace=PROGRAM)
        self.assertEqual([row["region"] for row in answer.rows], ["pipeline"])
        row = answer.rows[0]
        self.assertTrue(row["low_us"] < row["us"] < row["high_us"])
        self.assertEqual(answer["regions"][0]["predicted_ns"], row["us"] * 1e3)
        self.assertTrue(answer.good)
        self.assertIn("pipeline", str(answer))
        self.assertIn("<td>pipeline</td>", answer._repr_html_())

    def test_a_table_is_a_data_frame_where_pandas_is_installed(self):
        answer = foretrace.nccl_tests("all_reduce", "-b", 8, "-e", "1M", "-f", 64, "--processes", 8, foretrace=PROGRAM)
        table = answer.table()
        if has("pandas"):
            self.assertEqual(list(table.columns), answer.columns())
            self.assertEqual(len(table), 3)
        else:
            self.assertIs(table, answer.rows)
        self.assertEqual([row["size_bytes"] for row in answer.rows], [8, 512, 32768])
        self.assertIn("all_reduce of 8 ranks", answer.title)

    def test_each_kind_of_answer_is_plotted_or_says_what_is_missing(self):
        answers = [foretrace.simulate(SCENARIO, "h200-nvswitch-8", foretrace=PROGRAM),
                   foretrace.nccl_tests("all_reduce", "-b", 8, "-e", "1M", "-f", 64, "--processes", 8, foretrace=PROGRAM),
                   foretrace.sweep(SCENARIO, "--with", "host=1x,2x", foretrace=PROGRAM)]
        for answer in answers:
            if has("matplotlib"):
                import matplotlib
                matplotlib.use("Agg")
                self.assertEqual(answer.plot().get_title(), answer.title)
            else:
                self.assertRaisesRegex(ImportError, "pip install matplotlib", answer.plot)

    def test_a_sweep_has_a_row_for_each_point_and_region(self):
        answer = foretrace.sweep(SCENARIO, "--with", "pcie=1x,0.5x", foretrace=PROGRAM)
        self.assertEqual([(row["point"], row["pcie"], row["region"]) for row in answer.rows], [(0, "1x", "pipeline"), (1, "0.5x", "pipeline")])
        self.assertGreater(answer.rows[1]["us"], answer.rows[0]["us"])
        self.assertEqual(len(answer["points"]), 2)

    def test_a_plan_names_its_layouts(self):
        answer = foretrace.plan("llama3-8b", "--machine", "h100-nvswitch-8", "--gpus", 8, "--keep", "tensor=1", "--keep", "pipeline=1", "--keep", "micro=1", "--top", 1,
                                foretrace=PROGRAM)
        self.assertIn("data 8", answer.rows[0]["layout"])
        self.assertGreater(answer.rows[0]["tokens_per_s_per_gpu"], 1000)

    def test_a_comparison_out_of_tolerance_is_an_answer_and_no_exception(self):
        measured = ROOT / "reports" / "measured" / "prefetch_two_streams" / "measured.timeline.json"
        near = foretrace.compare(SCENARIO, measured, "--machine", "h200-nvswitch-8", foretrace=PROGRAM)
        far = foretrace.compare(SCENARIO, measured, "--machine", "h200-nvswitch-8", "--tolerance", "0.1%", foretrace=PROGRAM)
        self.assertEqual((near.good, far.good), (True, False))
        self.assertEqual(near.rows[0]["region"], "pipeline")
        self.assertLess(abs(near.rows[0]["error"]), 0.1)

    def test_an_error_has_file_line_and_column(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / "bad.yaml"
            bad.write_text("schema_version: 1\nname: x\nthreadz: {}\n")
            with self.assertRaises(foretrace.ForetraceError) as caught:
                foretrace.simulate(bad, "h200-nvswitch-8", foretrace=PROGRAM)
        error = caught.exception
        self.assertEqual((error.code, error.file, error.line, error.column), (2, str(bad), 1, 1))
        self.assertEqual(error.problems[1]["message"], "unknown key 'threadz' in a scenario")
        with self.assertRaisesRegex(foretrace.ForetraceError, "no-such-machine"):
            foretrace.simulate(SCENARIO, "no-such-machine", foretrace=PROGRAM)

    def test_what_is_no_answer_is_an_error_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder) / "foretrace"
            for said in ("[]", "null", "7", "{", '{"regions": null}', '{"regions": [1]}', "[" * 100000):
                other.write_text(f"#!/bin/sh\ncat <<'E'\n{said}\nE\n")
                other.chmod(0o755)
                with self.assertRaisesRegex(foretrace.ForetraceError, "printed what is no answer"):
                    foretrace.simulate(SCENARIO, "x", foretrace=str(other))

    def test_html_escapes_names(self):
        answer = foretrace.answer.Answer({}, [{"<b>": "a & b"}], notes="<i>")
        self.assertIn("&lt;b&gt;", answer._repr_html_())
        self.assertNotIn("<i>", answer._repr_html_())


@unittest.skipIf(not PROGRAM, "there is no program foretrace: FORETRACE names it")
class Notebook(unittest.TestCase):
    def test_all_cells_of_the_notebook_run(self):
        notebook = json.loads(NOTEBOOK.read_text())
        cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(cells), 4)
        self.assertFalse([cell for cell in notebook["cells"] if cell.get("outputs")], "outputs are made, not kept")
        names = {"__name__": "notebook"}
        before, foretrace.program.find_program = foretrace.program.find_program, lambda: PROGRAM
        here = os.getcwd()
        try:
            if has("matplotlib"):
                import matplotlib
                matplotlib.use("Agg")
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                for cell in cells:
                    exec(compile(cell, str(NOTEBOOK), "exec"), names)
        finally:
            os.chdir(here)
            foretrace.program.find_program = before
        self.assertIn("slower", names)


if __name__ == "__main__":
    unittest.main()
