"""Captures small programs with PyTorch on the emulated GPU. Skipped, and said, where there is no CUDA build of PyTorch or no library.

    FORETRACE_LIBRARY=build/dev/hw python3 program_test.py"""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scenarios" / "pytorch"))

from foretrace import environment  # noqa: E402


def missing():
    try:
        environment.emulated_environment("h100", 1)
    except environment.CaptureError as error:
        return str(error)
    return ""


class Captured:
    def __init__(self, script, *options, command=None, rank=0, seconds=None):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "train.py"
            path.write_text(textwrap.dedent(script))
            arguments = command or ["-m", "foretrace", "capture", "-o", folder + "/out", *options, "--", str(path)]
            env = dict(os.environ, PYTHONPATH=str(ROOT / "scenarios" / "pytorch"), OUT=folder + "/out")
            done = subprocess.run([sys.executable, "-W", "ignore", *[a.format(script=path) for a in arguments]], env=env, capture_output=True, text=True, check=False,
                                  timeout=seconds)
            self.code, self.text = done.returncode, done.stdout + done.stderr
            record = pathlib.Path(folder) / "out" / f"rank{rank}.calls.jsonl.gz"
            self.lines = [json.loads(line) for line in gzip.open(record, "rt")] if record.exists() else []

    def all(self, kind):
        return [line for line in self.lines if line.get("k") == kind]


TRAIN = """
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x = torch.randn(64, 256, device="cuda")
    for _ in range(12):
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@unittest.skipIf(missing(), missing())
class Programs(unittest.TestCase):
    def test_a_training_step_has_its_products_launches_phases_and_memory(self):
        run = Captured(TRAIN)
        self.assertEqual(run.code, 0, run.text)
        self.assertEqual(run.lines[0]["foretrace_calls"], 1)
        self.assertEqual(len(run.all("gemm")), 5)  # 2 forward, 3 backward: the input needs no gradient
        self.assertLessEqual({"forward", "backward", "optimizer"}, {op["ph"] for op in run.all("op")})
        self.assertIn("0", {m["n"] for m in run.all("mod")})
        end = run.lines[-1]
        parameters = 4 * (256 * 1024 * 2 + 1024 + 256)
        self.assertGreater(end["memory"]["allocated"][1], 4 * parameters)  # with gradients and two moments
        times = [line["t"] for line in run.lines if "t" in line]
        self.assertEqual(times, sorted(times))
        self.assertTrue(all("op" in line for line in run.all("launch")))

    def test_a_large_model_is_set_up_on_the_cpu_without_drawing_its_values(self):
        run = Captured("""
            import torch
            model = torch.nn.Linear(2048, 2048)
            small = torch.nn.Linear(8, 8)
            assert small.weight.abs().sum() > 0, "small tensors are drawn"
            model.cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for _ in range(9):
                model(torch.ones(4, 2048, device="cuda")).sum().backward()
                optimizer.step()
        """)
        self.assertEqual(run.code, 0, run.text)
        self.assertIn("initial values of 1 large tensors", " ".join(run.lines[0]["assumptions"]))

    def test_one_process_captures_a_rank_of_a_world_of_eight(self):
        setup = 'import torch.distributed as dist; dist.init_process_group("nccl"); '
        script = TRAIN.replace("    optimizer =", "    " + setup + "model = torch.nn.parallel.DistributedDataParallel(model)\n    optimizer =", 1)
        run = Captured(script, "--world-size", "8")
        self.assertEqual(run.code, 0, run.text)
        reductions = run.all("coll")
        self.assertEqual(sum(c["n"] for c in reductions), 256 * 1024 * 2 + 1024 + 256)
        self.assertEqual(run.all("comm")[0]["ranks"], list(range(8)))

    def test_so_many_ranks_that_pytorch_would_ask_several_for_ids(self):
        setup = 'import torch.distributed as dist; dist.init_process_group("nccl"); '
        script = TRAIN.replace("    optimizer =", "    " + setup + "model = torch.nn.parallel.DistributedDataParallel(model)\n    optimizer =", 1)
        run = Captured(script, "--world-size", "200", "--ranks", "130", rank=130, seconds=120)
        self.assertEqual(run.code, 0, run.text)
        self.assertEqual(len(run.all("comm")[0]["ranks"]), 200)

    def test_a_rank_that_is_not_the_first_finds_its_groups(self):
        setup = 'import torch.distributed as dist; dist.init_process_group("nccl"); groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]; '
        script = TRAIN.replace("    optimizer =", "    " + setup + "model = torch.nn.parallel.DistributedDataParallel(model, process_group=groups[1])\n    optimizer =", 1)
        run = Captured(script, "--world-size", "4", "--ranks", "3", rank=3)
        self.assertEqual(run.code, 0, run.text)
        self.assertEqual([(c["ranks"], c["rank"]) for c in run.all("comm")], [([2, 3], 1)])

    def test_ranks_of_a_pipeline_tell_each_other_their_shapes(self):
        run = Captured("""
            import os, torch, torch.distributed as dist
            from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
            dist.init_process_group("nccl")
            rank = dist.get_rank()
            torch.cuda.set_device(rank)
            stage = torch.nn.Linear(32, 32).cuda()
            schedule = ScheduleGPipe(PipelineStage(stage, rank, 2, torch.device("cuda", rank)), 2, loss_fn=lambda y, t: (y - t).square().mean())
            optimizer = torch.optim.SGD(stage.parameters())
            x = torch.randn(8, 32, device="cuda")
            for _ in range(9):
                schedule.step(x) if rank == 0 else schedule.step(target=x)
                optimizer.step()
                optimizer.zero_grad()
        """, "--world-size", "2", "--ranks", "0,1", rank=1)
        self.assertEqual(run.code, 0, run.text)
        self.assertEqual([c["f"] for c in run.all("coll")].count("recv"), 2)

    def test_a_rank_that_waits_for_one_that_is_not_captured_is_told(self):
        script = """
            import torch, torch.distributed as dist
            dist.init_process_group("nccl")
            torch.cuda.set_device(1)
            dist.recv_object_list([None], src=0)
        """
        run = Captured(script, "--world-size", "2", "--ranks", "1", rank=1)
        self.assertEqual(run.code, 2)
        self.assertIn("--ranks 0,1", run.text)

    def test_a_program_without_an_optimizer_needs_a_region_and_is_told(self):
        run = Captured("import torch\nfor _ in range(9): torch.ones(4, device='cuda') + 1\n")
        self.assertEqual(run.code, 2)
        self.assertIn("foretrace.region", run.text)

    def test_out_of_memory_is_the_programs_own_error(self):
        run = Captured(TRAIN.replace("(64, 256", "(1 << 20, 256"), "--memory", str(2 << 30))
        self.assertEqual(run.code, 2)
        self.assertIn("OutOfMemoryError", run.text)

    def test_what_is_not_emulated_is_named_with_the_users_line(self):
        run = Captured("import torch\n\ntorch.fft.fft(torch.ones(64, device='cuda'))\n")
        self.assertEqual(run.code, 2)
        self.assertIn("cufft", run.text)
        self.assertIn("line 3", run.text)

    def test_the_reference_loop_stays_on_the_cpu_whatever_device_is_the_default(self):
        run = Captured("""
            import torch
            from foretrace.reference_loop import torch_loop
            torch.set_default_device("meta")
            print([cell.cell_contents.device.type for cell in torch_loop().__closure__ if isinstance(cell.cell_contents, torch.Tensor)])
        """, command=["{script}"])
        self.assertIn("['cpu', 'cpu']", run.text)

    def test_a_loop_ends_where_one_of_its_conditions_is_known(self):
        run = Captured("""
            import foretrace, torch
            x = torch.randn(64, 64, device="cuda")
            with torch.inference_mode():
                for _ in range(12):
                    with foretrace.region("step"):
                        for n in range(9):  # as beam search ends: by its scores, or by its length
                            y = x @ x
                            hits = torch.zeros(4, dtype=torch.bool, device="cuda") | torch.full((4,), n == 4, device="cuda")
                            if not (y[0] > 0).any() & ~torch.all(hits):
                                break
        """, "--values", "compute")
        self.assertEqual(run.code, 0, run.text)
        self.assertEqual(len(run.all("gemm")), 5)

    def test_a_size_that_data_decide_is_computed(self):
        run = Captured("""
            import torch, foretrace
            ids = torch.arange(100).cuda()
            for _ in range(9):
                with foretrace.region("step"):
                    few = ids[ids % 10 == 3]
                    torch.ones(few.numel(), 64, device="cuda") @ torch.ones(64, 32, device="cuda")
        """)
        self.assertEqual(run.code, 0, run.text)
        self.assertEqual(run.all("gemm")[0]["n"], 10, run.text)

    def test_a_count_of_numbers_is_as_long_as_the_largest_of_them(self):
        run = Captured("""
            import torch, foretrace
            ids = torch.arange(100).cuda() % 48
            for _ in range(9):
                with foretrace.region("step"):
                    ids[ids % 10 == 3]  # values are computed where one of them is no rule's
                    torch.ones(torch.bincount(ids, minlength=16).numel(), 64, device="cuda") @ torch.ones(64, 32, device="cuda")
        """)
        self.assertEqual(run.code, 0, run.text)
        self.assertEqual(run.all("gemm")[0]["n"], 48, run.text)

    def test_sharded_parameters_are_no_hindrance_to_computing_values(self):
        setup = "import torch.distributed as dist; from torch.distributed.fsdp import fully_shard; dist.init_process_group('nccl'); fully_shard(model); "
        ask = "    few = x[torch.arange(64, device='cuda') % 2 == 0]\n"
        script = TRAIN.replace("    optimizer =", "    " + setup + "\n    optimizer =", 1).replace("        model(x)", "    " + ask + "        model(few)")
        run = Captured(script, "--world-size", "2")
        self.assertEqual(run.code, 0, run.text)
        self.assertIn(32, {size for product in run.all("gemm") for size in (product["m"], product["n"])}, run.text)

    def test_the_context_manager_starts_the_script_again(self):
        lines = textwrap.dedent(TRAIN).strip().splitlines()
        script = "import os, torch, foretrace\nwith foretrace.capture(os.environ['OUT']):\n" + "\n".join("    " + line for line in lines[1:])
        run = Captured(script, command=["{script}"])
        self.assertEqual(run.code, 0, run.text)
        self.assertEqual(len(run.all("gemm")), 5, run.text)


if __name__ == "__main__":
    unittest.main()
