#!/usr/bin/env python3
"""Opens reports in a headless Chromium: zoom, sort, search, tooltips, touch, dark mode, console.

  page_test.py FORETRACE CHROMIUM SCENARIOS [AXE]

AXE is axe-core's axe.min.js (npm ci in tests/browser); without it accessibility is not checked.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from chromium import Page

FORETRACE, CHROMIUM, SCENARIOS = sys.argv[1:4]
AXE = sys.argv[4] if len(sys.argv) > 4 and os.path.exists(sys.argv[4]) else None


def foretrace(*arguments, code=0):
    ran = subprocess.run([FORETRACE, *arguments], capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr


def make_run(directory, scenario, factor):
    """A prediction, and as its measurement the same with every region `factor` times as long."""
    foretrace("simulate", os.path.join(SCENARIOS, scenario), "-o", directory)
    with open(f"{directory}/predicted.timeline.json") as file:
        timeline = json.load(file)
    timeline["origin"] = "measured"
    for region in timeline["regions"]:
        region["samples_ns"] = [int(ns * factor) for ns in region["samples_ns"]]
    with open(f"{directory}/measured.timeline.json", "w") as file:
        json.dump(timeline, file)


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="foretrace-pages-")
        at = cls.scratch.name
        make_run(f"{at}/sweep", "nccl/all_reduce.yaml", 1.01)
        make_run(f"{at}/far", "collectives/all_reduce.yaml", 2)
        foretrace("simulate", os.path.join(SCENARIOS, "training/llama_step_fsdp.yaml"), "-m", "h100-nvswitch-8", "-o", f"{at}/step")
        foretrace("report", f"{at}/step", "-o", f"{at}/step.html")
        foretrace("sweep", os.path.join(SCENARIOS, "training/llama_step_fsdp.yaml"), "-m", "h100-nvswitch-8,h200-nvswitch-8",
                  "-o", f"{at}/sweep.jsonl", "--page", f"{at}/sweep.html")
        os.mkdir(f"{at}/broken")
        foretrace("report", f"{at}/sweep", "-o", f"{at}/one.html")
        foretrace("report", f"{at}/far", "-o", f"{at}/small.html")  # axe's time grows with the elements
        foretrace("report", f"{at}/sweep", f"{at}/broken", f"{at}/far", "-o", f"{at}/many.html", code=2)
        cls.page = Page(CHROMIUM)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.scratch.cleanup()

    def open(self, name, width=1280, touch=False):
        self.page.size(width, touch=touch)
        self.page.open(f"{self.scratch.name}/{name}")
        self.page.rest()

    def tearDown(self):
        self.page.call("Emulation.setEmulatedMedia", features=[])
        self.assertEqual(self.page.problems, [], "the console is silent")

    def middle_of(self, selector):
        place = self.page.evaluate(f"""(() => {{
            const node = document.querySelector({json.dumps(selector)});
            node.scrollIntoView({{block: 'center', behavior: 'instant'}});
            const box = node.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()""")
        self.page.rest()  # scrolling hides tooltips
        return place

    def test_zooms_and_tells_what_a_span_is(self):
        self.open("one.html")
        labels = "[...document.querySelectorAll('.lanes .tick')].map(tick => tick.textContent).join()"
        whole = self.page.evaluate(labels)
        self.page.evaluate("document.querySelector('[data-do=in]').click()")
        self.page.rest()
        self.assertNotEqual(self.page.evaluate(labels), whole)
        self.page.evaluate("document.querySelector('[data-do=all]').click()")
        self.page.rest()
        self.assertEqual(self.page.evaluate(labels), whole)
        x, y = self.middle_of("rect.s.c-host-wait.second")
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.page.rest()
        tip = self.page.evaluate("getComputedStyle(tip).display + tip.textContent")
        self.assertRegex(tip, r"^block.*, line \d+")
        self.assertIn("measured: ", tip)

    def test_draws_a_sweep_over_its_sizes(self):
        self.open("one.html")
        words = self.page.evaluate("[...document.querySelectorAll('.curves > title')].map(t => t.textContent).join('\\n')")
        self.assertIn("Bus bandwidth: busbw over size", words)
        self.assertIn("MiB", self.page.evaluate("document.querySelector('.curves .axis').textContent"))

    def test_says_first_what_a_step_takes(self):
        self.open("step.html")
        first = self.page.evaluate("document.querySelector('.summary').textContent")
        for words in ("ms a step, predicted", "tokens/s", "MFU", "limited by computing", "memory of a GPU", "GB of 85.0 GB"):
            self.assertIn(words, first)
        kinds = self.page.evaluate("""[...document.querySelectorAll('h2')].find(one => one.textContent === 'Operations by kind')
            .nextElementSibling.querySelector('tbody').textContent""")
        self.assertIn("nccl_all_gather", kinds)

    def test_sorts_tables_of_all_pages(self):
        for name, heading in (("step.html", "share"), ("sweep.html", "time")):
            self.open(name)
            answer = self.page.evaluate(f"""(() => {{
                const button = [...document.querySelectorAll('th button')].find(one => one.textContent === '{heading}');
                const th = button.parentElement, table = th.closest('table'), said = [];
                const numbers = () => [...table.tBodies[0].rows].map(row => parseFloat(row.cells[th.cellIndex].textContent));
                button.click(); said.push(th.ariaSort, numbers());
                button.click(); said.push(th.ariaSort, numbers(), getComputedStyle(th).position);
                return said; }})()""")
            down, falling, up, rising, position = answer
            self.assertEqual([down, up, position], ["descending", "ascending", "sticky"], name)
            self.assertGreater(len(falling), 1)
            self.assertEqual(falling, sorted(falling, reverse=True), name)
            self.assertEqual(rising, falling[::-1], name)

    def test_tells_the_point_of_a_chart_that_is_near(self):
        self.open("one.html")
        x, y = self.middle_of("svg.curves circle")
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + 5, y=y + 5)
        self.page.rest()
        self.assertRegex(self.page.evaluate("getComputedStyle(tip).display + tip.textContent"), r"^block.* at .*B")
        self.page.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
        self.page.rest()
        self.assertEqual(self.page.evaluate("getComputedStyle(tip).display"), "none")

    def test_sorts_and_finds_and_opens_details(self):
        self.open("many.html")
        first = "document.querySelector('#overview tbody tr:not([hidden])').textContent"
        self.assertIn("all_reduce_", self.page.evaluate(first))  # 'far', the worst, stands first
        self.assertIn("could not be read", self.page.evaluate("document.querySelector('header').textContent"))
        self.page.evaluate("document.querySelector('#overview th:nth-child(4) button').click()")
        times = self.page.evaluate("""[...document.querySelectorAll('#overview tbody tr')].map(row => {
            const [number, unit] = row.cells[3].textContent.split(' ');
            return number * {ns: 1, us: 1e3, ms: 1e6}[unit.trim()]; })""")
        self.assertEqual(times, sorted(times, reverse=True))
        self.page.evaluate("failures.click()")
        shown = "[...document.querySelectorAll('#overview tbody tr')].filter(row => !row.hidden).length"
        self.assertEqual(self.page.evaluate(shown), 3)
        self.page.evaluate("""const box = document.getElementById('find');
            box.value = 'OUTSIDE 64mib'; box.dispatchEvent(new Event('input'))""")
        self.assertEqual(self.page.evaluate(shown), 1)
        self.assertEqual(self.page.evaluate("document.querySelectorAll('.lanes').length"), 0)
        self.page.evaluate("document.querySelector('#overview tr:not([hidden]) a').click()")
        self.page.evaluate("""new Promise(done => { const wait = () =>
            document.querySelector('.lanes .label') ? done() : setTimeout(wait, 20); wait(); })""")
        self.assertEqual(self.page.evaluate("document.querySelectorAll('.lanes').length"), 1)

    def test_fits_a_phone_and_answers_to_fingers(self):
        for name in ("many.html", "one.html"):
            self.open(name, width=400, touch=True)
            self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 400, name)
        smallest = self.page.evaluate("""Math.min(...[...document.querySelectorAll('.lanes text')]
            .filter(text => text.getBoundingClientRect().width > 0)
            .map(text => parseFloat(getComputedStyle(text).fontSize) * text.getCTM().a))""")
        self.assertGreater(smallest, 9)
        x, y = self.middle_of("rect.s.c-host-wait.second")
        self.page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.page.rest()
        self.assertIn("line", self.page.evaluate("getComputedStyle(tip).display === 'block' ? tip.textContent : ''"))

    def test_is_dark_where_the_reader_wants_it(self):
        self.open("one.html")
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        light = self.page.evaluate(ground)
        self.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        dark = self.page.evaluate(ground)
        self.assertEqual([light, dark], ["rgb(251, 251, 249)", "rgb(20, 23, 26)"])

    @unittest.skipUnless(AXE, "axe-core is not installed: npm ci in tests/browser")
    def test_has_no_serious_finding_of_axe(self):
        with open(AXE) as file:
            axe = file.read()
        for name in ("small.html", "many.html", "sweep.html"):
            for scheme in ("light", "dark"):
                self.open(name)
                self.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
                self.page.rest()
                self.page.evaluate(axe + "; 0")
                found = self.page.evaluate("""axe.run().then(result => result.violations
                    .filter(one => ['serious', 'critical'].includes(one.impact))
                    .map(one => one.id + ': ' + one.nodes[0].html))""")
                self.assertEqual(found, [], f"{name}, {scheme}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
