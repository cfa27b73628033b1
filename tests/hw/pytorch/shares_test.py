"""Shares of a step over several ranks, on traces small enough to work out by hand."""

import gzip
import io
import json
import pathlib
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "hw" / "pytorch"))

import shares  # noqa: E402

ALL_REDUCE, ALL_GATHER = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "ncclDevKernel_AllGather_RING_LL"
SEND_RECV, PRODUCT = "ncclDevKernel_SendRecv", "sm90_xmma_gemm_bf16"
STEPS = ROOT / "reports" / "measured" / "pytorch_steps" / "h200_x2"


def event(name, begin, end, category="kernel", ranks=(0, 1), **arguments):
    if "nccl" in name:
        arguments |= {"Process Group Ranks": str(list(ranks)), "Group size": len(ranks)}
    return {"ph": "X", "cat": category, "name": name, "ts": begin, "dur": end - begin, "args": arguments}


def of(*ranks):
    return shares.shares_of([shares.work_of({"traceEvents": list(events)}, len(ranks)) for events in ranks])


def values(found):
    return [tuple(one[f"{name}_us"] for name in ("computing", "communication", "waiting", "idle")) for one in found]


class Shares(unittest.TestCase):
    def test_who_comes_first_waits_and_does_not_communicate(self):
        found = of([event(PRODUCT, 0, 10), event(ALL_REDUCE, 10, 50), event(PRODUCT, 50, 60)],
                   [event(PRODUCT, 0, 10), event(ALL_REDUCE, 45, 50), event(PRODUCT, 50, 60)])
        self.assertEqual(values(found), [(20, 5, 35, 0), (20, 5, 0, 35)])
        self.assertEqual([one["step_us"] for one in found], [60, 60])
        self.assertEqual((found[0]["ends_differ_us"], found[0]["unmatched"]), (0, 0))

    def test_a_clock_that_is_off_moves_no_waiting(self):
        late = [event(PRODUCT, 1, 11), event(ALL_REDUCE, 46, 51), event(PRODUCT, 51, 61)]
        found = of([event(PRODUCT, 0, 10), event(ALL_REDUCE, 10, 50), event(PRODUCT, 50, 60)], late)
        self.assertEqual(found[0]["communication_us"], 5)
        self.assertEqual(found[0]["ends_differ_us"], 1)

    def test_what_computing_hides_is_neither(self):
        found = of([event(PRODUCT, 0, 30), event(ALL_REDUCE, 10, 50)],
                   [event(PRODUCT, 0, 30), event(ALL_REDUCE, 40, 50)])
        self.assertEqual(values(found), [(30, 10, 10, 0), (30, 10, 0, 10)])

    def test_copies_are_work_of_the_gpu(self):
        found = of([event("Memcpy DtoD", 0, 10, "gpu_memcpy"), event(ALL_REDUCE, 5, 20)], [event(ALL_REDUCE, 0, 20)])
        self.assertEqual(values(found)[0], (10, 10, 0, 0))

    def test_who_is_done_waits_for_the_others_and_who_begins_late_idles(self):
        found = of([event(PRODUCT, 0, 100)], [event(PRODUCT, 20, 70)])
        self.assertEqual(values(found), [(100, 0, 0, 0), (50, 0, 30, 20)])

    def test_a_receiver_waits_for_its_sender(self):
        found = of([event(PRODUCT, 0, 40), event(SEND_RECV, 40, 45), event(SEND_RECV, 45, 90), event(PRODUCT, 90, 100)],
                   [event(SEND_RECV, 0, 45), event(PRODUCT, 45, 85), event(SEND_RECV, 85, 90)])
        self.assertEqual(values(found), [(50, 10, 40, 0), (40, 10, 50, 0)])

    def test_each_communicator_has_an_order_of_its_own(self):
        pairs = (0, 1), (2, 3)
        rank = lambda begin, pair: [event(ALL_GATHER, 0, 10, ranks=range(4)), event(ALL_REDUCE, begin, 30, ranks=pair),
                                    event(ALL_GATHER, 30, 40, ranks=range(4))]
        found = of(rank(10, pairs[0]), rank(28, pairs[0]), rank(20, pairs[1]), rank(25, pairs[1]))
        self.assertEqual([one["waiting_us"] for one in found], [18, 0, 5, 0])
        self.assertEqual(found[0]["unmatched"], 0)

    def test_kernels_without_partners_are_told_of_and_communicate(self):
        found = of([event(ALL_REDUCE, 0, 10), event(ALL_GATHER, 10, 30)], [event(ALL_REDUCE, 0, 10)])
        self.assertEqual([one["unmatched"] for one in found], [3, 3])
        self.assertEqual(found[0]["communication_us"], 30)
        self.assertIsNone(found[0]["ends_differ_us"])
        three = [event(SEND_RECV, 0, 10, ranks=range(3))]
        self.assertEqual(of(three, three, three)[0]["unmatched"], 3)

    def test_where_the_trace_names_no_group_it_is_all_ranks(self):
        self.assertEqual(shares.members({}, 2), (0, 1))
        self.assertEqual(shares.members({"Process Group Ranks": "[0, 1, ...]", "Group size": 4}, 4), (0, 1, 2, 3))
        self.assertEqual(shares.members({"Process Group Ranks": "[1, 3]", "Group size": 2}, 4), (1, 3))

    def test_a_rank_without_work_leaves_nothing_to_share(self):
        self.assertEqual(of([event(PRODUCT, 0, 1)], []), [])
        self.assertEqual(shares.shares_of([]), [])


class RealSteps(unittest.TestCase):
    def test_the_committed_lines_are_those_of_the_committed_traces(self):
        lines = gzip.decompress((STEPS / "results.jsonl.gz").read_bytes()).decode().splitlines(keepends=True)
        traced = [line for line in lines if '"shares"' in line]
        self.assertEqual([json.loads(line)["id"] for line in traced],
                         ["ddp_gpt2_124m_s1024_b8_amp", "fsdp_8b_4_layers_s4096_b1", "tp_8b_4_layers_s4096_b1_sequence",
                          "fsdp_gpt2_350m_s1024_b8"])
        self.assertEqual(list(shares.with_shares(traced, STEPS / "traces.tar.xz")), traced)

    def test_both_ranks_communicate_alike_whoever_is_late(self):
        lines = gzip.decompress((STEPS / "results.jsonl.gz").read_bytes()).decode().splitlines()
        line = next(json.loads(one) for one in lines if '"tp_8b_4_layers_s4096_b1_sequence"' in one)
        ranks = [line["ranks"][rank]["trace"] for rank in "01"]
        exposed = [one["exposed_communication_us"] for one in ranks]
        self.assertGreater(exposed[0] / exposed[1], 2)
        communication = [one["shares"]["communication_us"] for one in ranks]
        self.assertAlmostEqual(communication[0] / communication[1], 1, 2)
        for one in ranks:
            parts = [one["shares"][f"{name}_us"] for name in ("computing", "communication", "waiting", "idle")]
            self.assertAlmostEqual(sum(parts), one["shares"]["step_us"], 1)


class Lines(unittest.TestCase):
    def test_only_lines_whose_traces_are_all_there_change(self):
        traces = {"both": (0, 1), "half": (0,)}
        with tempfile.TemporaryDirectory() as directory:
            archive = pathlib.Path(directory) / "traces.tar"
            with tarfile.open(archive, "w") as files:
                for id, ranks in traces.items():
                    for rank in ranks:
                        text = gzip.compress(json.dumps({"traceEvents": [event(PRODUCT, 0, 10)]}).encode())
                        member = tarfile.TarInfo(f"{id}.rank{rank}.json.gz")
                        member.size = len(text)
                        files.addfile(member, io.BytesIO(text))
            lines = [json.dumps({"id": id, "ranks": {"0": {"trace": {}}, "1": {"trace": {}}}}) + "\n"
                     for id in (*traces, "none")]
            found = list(shares.with_shares(lines, archive))
        self.assertEqual(found[1:], lines[1:])
        self.assertEqual(json.loads(found[0])["ranks"]["1"]["trace"]["shares"]["computing_us"], 10)


if __name__ == "__main__":
    unittest.main()
