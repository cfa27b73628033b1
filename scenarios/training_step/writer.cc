#include "scenarios/training_step/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace foretrace::training {

std::string Writer::place() const { return stream_.empty() ? "" : "stream: " + stream_ + ", "; }

void Writer::line(std::string_view text) {
  if (!writes()) return;
  text_ += margin_;
  text_ += "- ";
  text_ += text;
  text_ += '\n';
  ++now_.line;
}

void Writer::begin_section(std::int64_t calls) {
  ++now_.group;
  sections_.push_back({now_.line, now_.group, calls});
}

void Writer::repeat(std::int64_t times, std::int64_t calls, const std::function<void()>& write) {
  if (times < 1) return;
  const std::string outer = margin_;
  if (times > 1 && !is_silent_) {
    line("repeat:");
    text_ += fmt::format("{0}    times: {1}\n{0}    ops:\n", margin_, times);
    now_.line += 2;
    margin_ += "    ";
  }
  if (calls > 1) begin_section(calls);
  const std::int64_t first = now_.line;
  write();
  margin_ = outer;
  const std::size_t end = text_.size();
  for (std::int64_t call = 1; call < calls; ++call) {
    ++now_.group;
    now_.line = first;
    write();
    text_.resize(end);
  }
  if (calls > 1) begin_section(1);
}

void Writer::product(std::string_view id, std::int64_t m, std::int64_t n, std::int64_t k,
                     Turned turned) {
  constexpr std::int64_t kBytes = 2;
  largest_operand_ = std::max({largest_operand_, kBytes * m * k, kBytes * k * n, kBytes * m * n});
  if (!writes()) return;
  constexpr std::array kTurned{"", "transpose_a: true, ", "transpose_b: true, "};
  line(
      fmt::format("gemm: {{id: {}, {}m: {}, n: {}, k: {}, {}type: bfloat16, a: operand_a, b: "
                  "operand_b, c: result}}",
                  id, place(), m, n, k, kTurned[static_cast<std::size_t>(turned)]));
}

void Writer::kernel(std::string_view id, KernelKind kind, std::int64_t bytes) {
  if (!writes()) return;
  line(fmt::format("library_kernel: {{id: {}, {}kernel: {}, size: {}B}}", id, place(),
                   kernel_kind_name(kind), bytes));
}

void Writer::attention(std::string_view id, KernelKind kind, std::int64_t flops, std::int64_t bytes,
                       std::int64_t width) {
  if (!writes()) return;
  line(fmt::format("library_kernel: {{id: {}, {}kernel: {}, flops: {}, size: {}B, width: {}}}", id,
                   place(), kernel_kind_name(kind), flops, bytes, width));
}

void Writer::host(FrameworkWork work, std::int64_t count) {
  if (!writes()) return;
  if (count == 1) {
    line(fmt::format("framework_call: {{work: {}}}", framework_work_name(work)));
  } else if (count > 1) {
    line(fmt::format("framework_call: {{work: {}, count: {}}}", framework_work_name(work), count));
  }
}

std::string Writer::group(std::string_view name) const {
  const auto found = groups_.find(name);
  return found == groups_.end() ? std::string{name} : found->second;
}

void Writer::needs(std::int64_t input, std::int64_t output) {
  largest_input_ = std::max(largest_input_, input);
  largest_output_ = std::max(largest_output_, output);
}

void Writer::collective(std::string_view name, std::string_view group, std::int64_t bytes,
                        std::string_view work) {
  host(FrameworkWork::Collective);
  if (name == "all_reduce") {
    needs(bytes, 0);
    line(fmt::format(
        "all_reduce: {{id: {0}_{1}, group: {2}, buffer: part, size: {3}B, type: bfloat16}}", group,
        name, this->group(group), bytes));
    return;
  }
  const bool gathers = name == "all_gather";
  std::string part = "part", whole = "whole", rest;
  if (work.empty()) {
    needs(gathers ? bytes : 0, gathers ? bytes * tensor_ : 0);
    needs(gathers ? 0 : bytes, gathers ? 0 : bytes * tensor_);
  } else {
    part = "tensor_part";
    whole = "tensor_whole";
    rest = fmt::format(", async: true, work: {}", work);
    needs_own(part, bytes);
    needs_own(whole, bytes * tensor_);
  }
  line(fmt::format(
      "{1}: {{id: {0}_{1}, group: {2}, input: {3}, output: {4}, size: {5}B, type: bfloat16{6}}}",
      group, name, this->group(group), gathers ? part : whole, gathers ? whole : part, bytes,
      rest));
}

}  // namespace foretrace::training
