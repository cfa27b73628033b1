#!/usr/bin/env python3
"""Plans in the page of foretrace serve: keyboard, errors, a hostile config.json, a phone, dark, axe.

  serve_test.py FORETRACE CHROMIUM SCENARIOS [AXE]
"""

import json
import os
import subprocess
import sys
import unittest

from chromium import Page

FORETRACE, CHROMIUM, SCENARIOS = sys.argv[1:4]
AXE = sys.argv[4] if len(sys.argv) > 4 and os.path.exists(sys.argv[4]) else None
PLANNED = "/simulated/.test(document.getElementById('status').textContent)"
HOSTILE = {"model_type": "llama", "hidden_size": "<img src=x onerror=document.title='run'>"}


class LocalPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen([FORETRACE, "serve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        cls.address = cls.server.stdout.readline().strip()
        cls.page = Page(CHROMIUM)

    @classmethod
    def tearDownClass(cls):
        cls.page.close()
        cls.server.terminate()
        cls.server.communicate(timeout=20)
        assert cls.server.returncode == 0

    def open(self, width=1280, touch=False):
        """A small model, planned."""
        self.page.problems.clear()
        self.page.size(width, touch=touch)
        self.page.open(self.address)
        self.page.wait("by('machine').value")
        self.set(model="gpt2", machine="h100-nvswitch-8", gpus="2", global_batch="8", sequence="1024")
        self.page.wait(f"{PLANNED} && by('headline').textContent.includes('a step,')")

    def set(self, **values):
        self.page.evaluate("by('status').textContent = ''; " + "".join(
            f"by({json.dumps(name)}).value = {json.dumps(value)}; by({json.dumps(name)}).dispatchEvent(new Event('input', {{bubbles: true}}));"
            for name, value in values.items()))

    def silent(self):
        self.assertEqual(self.page.problems, [], "the console is silent")

    def test_answers_coarsely_then_plans_and_opens_a_row(self):
        self.open()
        self.assertGreater(self.page.evaluate("by('layouts').tBodies[0].rows.length"), 1)
        self.assertGreater(self.page.evaluate("document.querySelectorAll('#chart circle').length"), 1)
        self.assertIn("training_step:", self.page.evaluate("by('scenario').textContent"))
        self.page.evaluate("document.querySelector('#row-buttons button').click()")
        self.page.wait("document.querySelectorAll('#row-buttons a').length === 2")
        self.page.evaluate("by('axis').value = 'gpus'; by('axis').dispatchEvent(new Event('change'))")
        self.page.wait("state.others.length > 0")
        self.silent()
        report = self.page.evaluate("document.querySelector('#row-buttons a').href")
        self.page.open(report)
        self.assertGreater(self.page.evaluate("document.querySelectorAll('.lanes').length"), 0)
        self.silent()

    def test_works_by_keyboard(self):
        self.open()
        self.page.evaluate("by('gpus-range').focus(); by('status').textContent = ''")
        self.page.press("ArrowRight", 39)
        self.page.wait(f"by('gpus').value === '4' && {PLANNED}")
        self.page.evaluate("document.querySelector('#layouts th button').focus()")
        self.page.press("Enter", 13, "\r")
        self.assertEqual(self.page.evaluate("document.querySelector('#layouts th').getAttribute('aria-sort')"), "ascending")
        self.assertEqual(self.page.evaluate("document.activeElement.textContent"), "layout")
        order = set()
        for _ in range(40):
            self.page.press("Tab", 9)
            order.add(self.page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        self.assertIn("axis", order)
        self.silent()

    def test_says_what_is_wrong_beside_its_input(self):
        self.open()
        self.set(machine="h100-nvswitch-9")
        self.page.wait("by('wrong-machine').textContent")
        self.assertEqual(self.page.evaluate("by('machine').getAttribute('aria-invalid')"), "true")
        self.assertIn("h100-nvswitch-8", self.page.evaluate("by('wrong-machine').textContent"))
        self.set(machine="h100-nvswitch-8")
        self.page.wait(PLANNED)
        self.assertEqual(self.page.evaluate("by('wrong-machine').textContent"), "")

    def test_shows_foreign_text_as_text(self):
        self.open()
        text = json.dumps(HOSTILE, indent=1)
        self.page.evaluate(f"take(new File([{json.dumps(text)}], '<b>config</b>.json'))")
        self.page.wait("by('wrong-config').textContent")
        self.assertIn("line 3, column 2", self.page.evaluate("by('wrong-config').textContent"))
        self.assertIn("<img", self.page.evaluate("by('place-config').textContent"))
        self.assertEqual(self.page.evaluate("document.querySelectorAll('img, b').length"), 0)
        self.assertEqual(self.page.evaluate("document.title"), "foretrace: plan a training step")
        self.page.evaluate("new Promise(done => { const s = document.createElement('script'); s.textContent = 'document.title = 1'; "
                           "document.body.append(s); setTimeout(done, 50); })")
        self.assertEqual(self.page.evaluate("document.title"), "foretrace: plan a training step")

    def test_takes_a_config(self):
        self.open()
        with open(f"{SCENARIOS}/architectures/qwen2-0.5b.json") as file:
            text = file.read()
        self.page.evaluate(f"by('status').textContent = ''; take(new File([{json.dumps(text)}], 'config.json'))")
        self.page.wait(f"{PLANNED} && by('scenario').textContent.includes('config.json')")
        self.silent()

    def test_fits_a_phone(self):
        self.open(width=400, touch=True)
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 400)
        self.silent()

    @unittest.skipUnless(AXE, "axe-core is not installed: npm ci in tests/browser")
    def test_has_no_serious_finding_of_axe(self):
        with open(AXE) as file:
            axe = file.read()
        for scheme in ("light", "dark"):
            self.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            self.open()
            self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            self.page.evaluate(axe + "; 0")
            found = self.page.evaluate("""axe.run().then(result => result.violations
                .filter(one => ['serious', 'critical'].includes(one.impact))
                .map(one => one.id + ': ' + one.nodes[0].html))""")
            self.assertEqual(found, [], scheme)
        self.page.call("Emulation.setEmulatedMedia", features=[])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
