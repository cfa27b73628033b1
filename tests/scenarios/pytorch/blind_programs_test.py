"""Generated programs are the same for a seed, and are Python; a measured trace's sums, worked out by hand."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "reports" / "blind" / "programs"), str(ROOT / "scenarios" / "pytorch")]

import generate  # noqa: E402
import pieces  # noqa: E402
from foretrace import kernels  # noqa: E402


class Generator(unittest.TestCase):
    def test_a_seed_gives_its_programs_and_another_seed_others(self):
        self.assertEqual(generate.programs(1, 40, 1), generate.programs(1, 40, 1))
        self.assertNotEqual(generate.programs(1, 40, 1), generate.programs(2, 40, 1))

    def test_forty_programs_are_of_many_families(self):
        for seed in range(1, 6):
            self.assertGreaterEqual(len({d["family"] for d in generate.programs(seed, 40, 1)}), 12)

    def test_every_script_is_python(self):
        for gpus, compiled in ((1, False), (1, True), (2, False), (4, False)):
            for d in generate.programs(7, 60, gpus, compiled):
                with self.subTest(d["name"]):
                    compile(pieces.script(d), d["name"], "exec")

    def test_tensors_of_a_data_set_are_equally_long(self):
        d = dict(kind="causal", batch=1, seq=2048, mask=True, data="loader")
        made = "\n".join(pieces.data(d))
        self.assertIn("TensorDataset(torch.randint(1000, (4, 2048)), torch.ones(4, 2048, dtype=torch.long))", made)

    def test_programs_that_infer_have_no_optimizer(self):
        for d in generate.programs(7, 30, 1, infer=True):
            script = pieces.script(d)
            compile(script, d["name"], "exec")
            self.assertNotIn("optimizer", script)

    def test_several_gpus_have_each_kind_of_parallelism(self):
        kinds = {d["parallel"] for seed in range(1, 4) for d in generate.programs(seed, 20, 2)}
        self.assertEqual(kinds, {"ddp", "fsdp", "tp"})


def event(name, category, begin, length, **arguments):
    return {"name": name, "cat": category, "ts": begin, "dur": length, "tid": 1, "args": arguments}


class Trace(unittest.TestCase):
    EVENTS = [
        event(kernels.STEP, "user_annotation", 100, 100), event("aten::linear", "cpu_op", 105, 40), event("aten::mm", "cpu_op", 110, 20),
        event("cudaLaunchKernel", "cuda_runtime", 115, 5, correlation=1), event("gemm", "kernel", 130, 30, correlation=1, grid=[4, 1, 1], block=[128, 1, 1], stream=7),
        event("cudaMemcpyAsync", "cuda_runtime", 140, 5, correlation=2), event("Memcpy DtoH", "gpu_memcpy", 150, 20, correlation=2, bytes=8, stream=7),
        event("cudaGetDevice", "cuda_runtime", 150, 1, correlation=3), event("cudaStreamSynchronize", "cuda_runtime", 160, 15, correlation=4),
        event("cudaLaunchKernel", "cuda_runtime", 50, 5, correlation=9), event("before", "kernel", 60, 5, correlation=9)]

    def test_work_is_in_the_order_of_the_calls_with_the_operation_around_them(self):
        lines, sums = kernels.rows(self.EVENTS)
        work = [line for line in lines if line["k"] in ("launch", "copy", "call")]
        self.assertEqual([line["k"] for line in work], ["launch", "copy", "call"])
        names = {line["i"]: line["n"] for line in lines if line["k"] == "op"}
        self.assertEqual([names[line["op"]] for line in work[:2]], ["aten::mm", "aten::linear"])
        self.assertEqual((work[0]["t"], work[0]["d"], work[0]["ct"], work[0]["cd"]), (30000, 30000, 15000, 5000))

    def test_time_on_the_gpu_is_the_union(self):
        _, sums = kernels.rows(self.EVENTS)
        self.assertEqual((sums["gpu_busy_ms"], sums["kernels_ms"], sums["kernels"]), (0.04, 0.03, 1))


if __name__ == "__main__":
    unittest.main()
