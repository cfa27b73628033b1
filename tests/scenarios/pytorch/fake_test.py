"""The depth of fake tensors: launches of an operation (needs no PyTorch), and small programs with any PyTorch that is there."""

import gzip
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scenarios" / "pytorch"))

from foretrace.environment import script_digest  # noqa: E402
from foretrace.fake_launches import Launches, list_launches, product  # noqa: E402


ENVIRONMENT = dict(os.environ, PYTHONPATH=str(ROOT / "scenarios" / "pytorch"), CUDA_VISIBLE_DEVICES="")
STEPS = """
import torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(8):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def captured(here, output):
    """The capture of here/train.py into a folder of this name, as it runs."""
    return subprocess.Popen([sys.executable, "-W", "ignore", "-m", "foretrace", "capture", "--depth", "fake", "-o", output, "--", "train.py"], cwd=here,
                            env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def is_running(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def tensor(*shape, kind="bf16", **more):
    return {"d": kind, "s": list(shape), **more}


class OfOperations(unittest.TestCase):
    def test_a_product_is_blas_with_its_sizes(self):
        made = product("aten::addmm", [tensor(64), tensor(32, 128), tensor(128, 64, st=[1, 128])])
        self.assertEqual((made["m"], made["n"], made["kk"], made["ta"], made["tb"], made["beta"]), (64, 32, 128, True, False, 1))

    def test_an_addition_is_one_kernel_with_blocks_by_its_size(self):
        (kind, keys), = Launches().of("aten::add", [tensor(1024, 1024), tensor(1024, 1024), 1], False)
        self.assertEqual((kind, keys["b3"]), ("launch", [128, 1, 1]))
        self.assertIn("CUDAFunctor_add<c10::BFloat16>", keys["name"])
        self.assertGreater(keys["g3"][0], 256)

    def test_lists_of_tensors_take_a_launch_for_so_many_tensors_and_blocks(self):
        name = "multi_tensor_apply_kernel<TensorListMetadata<2>, F>"
        self.assertEqual(list_launches(name, [[tensor(10)] * 65, [tensor(10)] * 65]), [64, 1])
        self.assertEqual(list_launches(name, [[tensor(65536 * 321)], [tensor(65536 * 321)]]), [320, 1])

    def test_what_the_table_does_not_know_is_one_kernel_and_is_counted(self):
        launches = Launches()
        self.assertEqual(len(launches.of("aten::no_such_operation", [tensor(8)], False)), 1)
        self.assertEqual(launches.of("aten::no_such_view", [tensor(8)], True), [])
        self.assertEqual(launches.unknown, {"aten::no_such_operation": 1})


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class Programs(unittest.TestCase):
    def capture(self, script, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "train.py"
            path.write_text(textwrap.dedent(script))
            environment = dict(os.environ, PYTHONPATH=str(ROOT / "scenarios" / "pytorch"), CUDA_VISIBLE_DEVICES="")
            done = subprocess.run([sys.executable, "-W", "ignore", "-m", "foretrace", "capture", "--depth", "fake", "-o", folder + "/out", *options, "--", str(path)],
                                  env=environment, capture_output=True, text=True, check=False)
            record = pathlib.Path(folder) / "out" / "rank0.calls.jsonl.gz"
            return done.returncode, done.stdout + done.stderr, [json.loads(line) for line in gzip.open(record, "rt")] if record.exists() else []

    def test_a_training_step_has_products_phases_modules_memory_and_says_what_is_not_exact(self):
        code, text, lines = self.capture("""
            import torch
            from torch.utils.checkpoint import checkpoint
            model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).cuda()
            model[2].weight = torch.nn.Parameter(model[0].weight.t())
            optimizer = torch.optim.AdamW(model.parameters())
            assert next(model.parameters()).is_cuda and torch.cuda.is_available()
            for _ in range(9):
                x = torch.randn(64, 256, device="cuda")
                with torch.autocast("cuda", torch.bfloat16):
                    loss = checkpoint(model, x, use_reentrant=False).square().mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                print(loss.item())
        """)
        self.assertEqual(code, 0, text)
        self.assertEqual(lines[0]["depth"], "fake")
        self.assertIn("fake tensors", lines[0]["assumptions"][0])
        self.assertRegex(lines[0]["script_digest"], "^[0-9a-f]{16}$")
        gemms = [line for line in lines if line.get("k") == "gemm"]
        self.assertEqual([(g["m"], g["n"], g["kk"]) for g in gemms[:2]], [(512, 64, 256), (256, 64, 512)])
        self.assertEqual({g["a"] for g in gemms}, {"bf16"}, "also those that are recomputed")
        phases = {line["ph"] for line in lines if line.get("k") == "op"}
        self.assertLessEqual({"forward", "recompute", "backward", "optimizer"}, phases)
        self.assertGreater(lines[-1]["memory"]["allocated"][1], 4 * (256 * 512 * 3))

    def test_what_only_the_emulated_gpu_knows_is_said(self):
        code, text, _ = self.capture("import torch\ntorch.cuda.Event()\n")
        self.assertEqual(code, 2)
        self.assertIn("torch.cuda.Event is not known to the fake GPU", text)
        code, text, _ = self.capture("pass", "--world-size", "2")
        self.assertEqual(code, 2)
        self.assertIn("one rank", text)

    def test_the_record_is_where_it_was_asked_for_wherever_the_program_goes(self):
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            (here / "elsewhere").mkdir()
            (here / "train.py").write_text(f"import os\nos.chdir('elsewhere')\n{STEPS}")
            done = captured(here, "a name, too")
            self.assertEqual(done.wait(), 0)
            self.assertEqual(list((here / "elsewhere").iterdir()), [])
            self.assertIn("\nname: a_name__too\n", (here / "a name, too" / "step.yaml").read_text())
            with gzip.open(here / "a name, too" / "rank0.calls.jsonl.gz", "rt") as file:
                self.assertEqual(json.loads(file.readline())["script_digest"], script_digest([str(here / "train.py")], 1))

    @unittest.skipUnless(sys.platform.startswith("linux"), "by Linux's prctl")
    def test_a_capture_that_is_killed_takes_its_program_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            (here / "train.py").write_text("import os, time\nopen('began', 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
            started = captured(here, "out")
            self.addCleanup(started.kill)
            for _ in range(600):
                if (here / "began").exists() and (here / "began").read_text():
                    break
                time.sleep(0.1)
            second = subprocess.run([sys.executable, "-m", "foretrace", "capture", "--depth", "fake", "-o", "out", "--", "train.py"], cwd=here, env=ENVIRONMENT,
                                    capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(second.returncode, 2)
            self.assertIn("another capture or measurement writes into it", second.stderr)
            program = int((here / "began").read_text())
            os.kill(started.pid, signal.SIGKILL)
            started.wait()
            for _ in range(100):
                if not is_running(program):
                    break
                time.sleep(0.1)
            else:
                os.kill(program, signal.SIGKILL)
                self.fail("the program goes on")


if __name__ == "__main__":
    unittest.main()
