"""What hw/pytorch/operators says of a launch is what scenarios/captured says of it (tests/scenarios/captured)."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "hw" / "pytorch" / "operators"))
import joined  # noqa: E402
import public_rows  # noqa: E402
from work import Signature, closed_work_of, kernel_word, work_of  # noqa: E402


class Work(unittest.TestCase):
    def test_a_kernels_word_is_that_of_the_reader(self):
        name = ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"
                "(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)")
        self.assertEqual(kernel_word(name), "vectorized_elementwise_kernel.76555a334ea34cfb")

    def test_arguments_count_once_and_the_result_as_large_as_they_broadcast(self):
        add = Signature(["aten::add", [[64, 1024], [1024], []], ["c10::BFloat16", "c10::BFloat16", "Scalar"], None, ["", "", "1"]])
        self.assertEqual(work_of(add), (2 * (64 * 1024 + 1024 + 64 * 1024), 0, 1024, 1024, 1024))

    def test_an_element_of_stride_zero_lies_in_memory_once(self):
        copy = Signature(["aten::copy_", [[8, 16], [8, 16]], ["float", "float"], [[16, 1], [1, 0]], None])
        self.assertEqual(work_of(copy)[0], 4 * (8 * 16 + 8))

    def test_a_convolution_is_two_flops_a_tap_and_a_channel(self):
        row = ["aten::cudnn_convolution", [[2, 64, 56, 56], [128, 64, 3, 3], [], [], [], []], ["c10::BFloat16", "c10::BFloat16"] + ["ScalarList"] * 3 + ["Scalar"],
               None, ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"]]
        word, _, flops, *_ = closed_work_of(Signature(row))
        self.assertEqual((word, flops), ("cudnn_convolution.bf16_nchw_t9_s2_dense", 2 * 2 * 28 * 28 * 128 * 64 * 9))

    def test_attention_with_a_mask_or_dropout_has_words_of_its_own(self):
        heads = [[2, 8, 512, 64]] * 3
        kinds = ["c10::BFloat16"] * 3

        def word(bias, drop):
            row = ["aten::_cudnn_attention_forward", heads + [[2, 1, 512, 512] if bias else []], kinds + ["c10::BFloat16" if bias else ""], None,
                   ["", "", "", "", "", "", "512", "512", "True", drop, "False"]]
            return closed_work_of(Signature(row))[0]
        self.assertEqual(word(False, "0."), "cudnn_attention_forward.bf16_64")
        self.assertEqual(word(True, "0."), "cudnn_attention_forward.bf16_64_masked")
        self.assertEqual(word(False, "0.1"), "cudnn_attention_forward.bf16_64_dropout")

    def test_the_sums_behind_attention_are_no_mask(self):
        heads = [[2, 8, 512, 64]] * 5
        back = ["aten::_cudnn_attention_backward", heads + [[2, 8, 512, 1], [], []], ["c10::BFloat16"] * 5 + ["float", "long int", "long int"], None,
                [""] * 11 + ["512", "512", "0.1", "True"]]
        self.assertEqual(closed_work_of(Signature(back))[0], "cudnn_attention_backward.bf16_64_causal_dropout")


class Joined(unittest.TestCase):
    def test_a_closed_operations_kernels_are_one_time_wherever_others_ran_between(self):
        lines = [{"k": "name", "i": 0, "n": "sm90_xmma_dgrad"}, {"k": "name", "i": 1, "n": "void at::native::fill<float>(int)"}, {"k": "name", "i": 2, "n": "gemm"},
                 {"k": "op", "i": 0, "n": "aten::convolution_backward"}, {"k": "op", "i": 1, "n": "aten::mm"}, {"k": "op", "i": 2, "n": "aten::fill_"},
                 {"k": "launch", "n": 0, "t": 0, "d": 10_000, "op": 0, "oi": 5}, {"k": "launch", "n": 1, "t": 10_000, "d": 1_000, "op": 2, "oi": 6},
                 {"k": "launch", "n": 0, "t": 8_000, "d": 12_000, "op": 0, "oi": 5}, {"k": "launch", "n": 2, "t": 20_000, "d": 3_000, "op": 1, "oi": 7},
                 {"k": "launch", "n": 0, "t": 30_000, "d": 4_000, "op": 0, "oi": 8}]
        found = joined.measured_launches(map(json.dumps, lines))
        self.assertEqual([key.split(".")[0] for key, _ in found], ["convolution_backward", "fill", "product", "convolution_backward"])
        self.assertEqual([us for _, us in found], [20, 1, 3, 4])


class PublicRows(unittest.TestCase):
    def row(self, **more):
        return {"window": "0", "distribution": "balanced", **{k: str(v) for k, v in more.items()}}

    def test_attention_is_what_its_heads_compute_and_move(self):
        made = public_rows.operation(self.row(family="attention_decode", batch=2, heads=8, kv_heads=2, head_dim=64, seq=511))
        self.assertIn("flops: 2097152", made)  # 4 x 2 x 8 heads x 512 keys x 64
        self.assertIn("size: 528384B", made)  # queries and results of 8 heads, keys and values of 2

    def test_a_linear_layer_is_a_product_whose_weights_are_transposed(self):
        self.assertIn("m: 4096, n: 7, k: 1024, transpose_a: true", public_rows.operation(self.row(family="gemm", m=7, n=4096, k=1024)))

    def test_windows_and_uneven_experts_are_left_out(self):
        self.assertIsNone(public_rows.operation(self.row(family="attention_prefill", window=128)))
        self.assertIsNone(public_rows.operation(self.row(family="moe", distribution="power_law_1.2")))


if __name__ == "__main__":
    unittest.main()
