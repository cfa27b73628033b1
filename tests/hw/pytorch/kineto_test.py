"""The summary of a trace, on traces small enough to work out by hand."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "hw" / "pytorch"))

import kineto  # noqa: E402

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def event(name, begin, end, category="kernel", **arguments):
    return {"ph": "X", "cat": category, "name": name, "ts": begin, "dur": end - begin, "args": arguments}


class Summary(unittest.TestCase):
    def test_communication_is_exposed_where_no_compute_runs(self):
        summary = kineto.summarise({"traceEvents": [
            event("sm90_xmma_gemm_bf16", 0, 100),
            event(ALL_REDUCE, 80, 200, **{"In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float"}),
            event("void at::native::vectorized_elementwise_kernel<4>", 150, 160),
            event("Memcpy DtoD", 170, 190, "gpu_memcpy"),
            event("multi_tensor_apply_kernel", 250, 300)]})
        # 100 to 150 and 160 to 200: the copy does not hide it.
        self.assertEqual(summary["exposed_communication_us"], 90)
        self.assertEqual(summary["nccl_busy_us"], 120)
        self.assertEqual(summary["compute_busy_us"], 160)
        self.assertEqual(summary["gpu_busy_us"], 250)
        self.assertEqual((summary["idle_us"], summary["idle_gaps"], summary["largest_gap_us"]), (50, 1, 50))
        self.assertEqual(summary["window_us"], 300)
        self.assertEqual(summary["nccl_bytes"]["nccl_all_reduce"], {"bytes": 4000, "kernels_without_size": 0})

    def test_kernels_are_counted_by_kind_and_name(self):
        summary = kineto.summarise({"traceEvents": [
            event("nvjet_tst_128x256", 0, 10), event("nvjet_tst_128x256", 20, 40), event("flash_fwd_kernel", 50, 55),
            event("cudaLaunchKernel", 0, 1, "cuda_runtime"), event("cuLaunchKernelEx", 2, 3, "cuda_driver"),
            event("cudaMemsetAsync", 4, 5, "cuda_runtime"),
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 60}]})
        self.assertEqual(summary["by_kind"]["gemm"], {"count": 2, "us": 30})
        self.assertEqual(summary["by_kernel"][0],
                         {"name": "nvjet_tst_128x256", "kind": "gemm", "count": 2, "us": 30, "mean_us": 15})
        self.assertEqual((summary["launches"], summary["runtime_calls"], summary["host_step_us"]), (2, 3, 60))

    def test_what_does_not_fit_the_list_is_still_summed(self):
        events = [event(f"kernel_{index}", index, index + 1) for index in range(5)]
        summary = kineto.summarise({"traceEvents": events}, top=2)
        self.assertEqual((len(summary["by_kernel"]), summary["other_kernels_us"]), (2, 3))

    def test_a_trace_without_kernels_is_no_error(self):
        self.assertEqual(kineto.summarise({"traceEvents": []}), {"kernels": 0})


class Kinds(unittest.TestCase):
    def test_names_of_real_kernels_find_their_kind(self):
        for name, kind in {
                "nvjet_hsh_192x192_64x4_1x2_h_bz_coopA_NTN": "gemm",
                "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64": "gemm",
                "void cublasLt::splitKreduce_kernel<32, 16, int, float>": "gemm",
                "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>": "gemm",
                "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>": "attention",
                "fmha_cutlassF_f32_aligned_64x64_rf_sm80": "attention",
                "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma": "attention",
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>": "optimizer",
                "void (anonymous namespace)::softmax_warp_forward<float>": "loss",
                "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>": "loss",
                "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<float>": "elementwise",
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>": "elementwise",
                "triton_poi_fused_add_mul_3": "elementwise",
                "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float>": "embedding",
                "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL": "nccl_reduce_scatter",
                "ncclDevKernel_AllGather_RING_LL": "nccl_all_gather",
                "ncclDevKernel_SendRecv": "nccl_send_recv",
                "ncclKernel_AllReduce_RING_LL_Sum_float": "nccl_all_reduce",
                "spin": "other"}.items():
            self.assertEqual(kineto.kind_of(name), kind, name)

    def test_a_long_name_is_cut_and_keeps_what_tells_it_apart(self):
        short = kineto.shorten("void at::native::vectorized_elementwise_kernel<4, " + "x" * 300, most=40)
        self.assertEqual(len(short), 40)
        self.assertTrue(short.startswith("vectorized_elementwise_kernel<4"))


class Spans(unittest.TestCase):
    def test_union_and_difference_of_spans(self):
        self.assertEqual(kineto.union([(5, 6), (0, 2), (1, 3)]), [[0, 3], [5, 6]])
        self.assertEqual(kineto.without([[0, 10], [20, 30]], [[2, 3], [5, 22], [29, 40]]),
                         [[0, 2], [3, 5], [22, 29]])

    def test_a_size_needs_its_type(self):
        self.assertIsNone(kineto.message_bytes({"In msg nelems": 4}))
        self.assertEqual(kineto.message_bytes({"In msg nelems": 4, "Out msg nelems": 8, "dtype": "BFloat16"}), 16)


if __name__ == "__main__":
    unittest.main()
