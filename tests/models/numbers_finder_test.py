"""What numbers_test.py takes for a number of the model, and what not."""

import pathlib
import tempfile
import unittest

import numbers_test


class Finder(unittest.TestCase):
    def found(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "code.cc"
            path.write_text(text)
            return numbers_test.numbers_in(path)

    def test_names_constants_each_by_itself(self):
        self.assertEqual(self.found("constexpr double kFirst = 0.3, kSecond = 12;"),
                         {"kFirst", "kSecond"})
        self.assertEqual(self.found("constexpr Duration kWait = std::chrono::nanoseconds{1100};"),
                         {"kWait"})
        self.assertEqual(self.found("constexpr std::array kLimits{Limit{32, 48}, Limit{48, 20}};"),
                         {"kLimits"})

    def test_finds_fractions_and_exponents_outside_of_constants(self):
        self.assertEqual(self.found("double f(double x) { return 0.28 * x + 1e-6; }"),
                         {"0.28", "1e-6"})

    def test_leaves_out_comments_strings_and_what_is_no_measurement(self):
        self.assertEqual(self.found('// 0.28 of it\nauto text = "0.28"; int i = 1'
                                    '; constexpr int kNone = 0; auto bits = 0xff; x = 1.0 - y;'),
                         set())


if __name__ == "__main__":
    unittest.main()
