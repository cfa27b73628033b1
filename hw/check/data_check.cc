#include "hw/check/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "hw/check/plan.h"
#include "hw/cuda/cuda_check.h"
#include "hw/cuda/device_guard.h"
#include "hw/cuda/pattern.h"
#include "hw/run/program_facts.h"
#include "scenarios/base/text/errors.h"

namespace foretrace::hw {
namespace {

/// Host memory is filled and compared on the GPU, in pieces of this size.
constexpr std::size_t kScratchBytes = std::size_t{16} << 20;
/// The first wrong results say enough.
constexpr std::size_t kMaxWrong = 20;

struct FreeDeviceMemory {
  void operator()(void* memory) const { cuda_ignore(cudaFree(memory)); }
};
using DeviceMemory = std::unique_ptr<void, FreeDeviceMemory>;

DeviceMemory allocate(std::size_t bytes) {
  void* memory = nullptr;
  cuda_check(cudaMalloc(&memory, bytes));
  return DeviceMemory{memory};
}

PatternSum pattern_of(const Value& value) {
  PatternSum sum{};
  sum.combine = combine_of(value.combine);
  for (const Term& term : value.terms) {
    sum.terms[sum.count++] = {term.seed, term.shift, term.factor};
  }
  return sum;
}

/// Works on one device; the memory it looks at may be another's, copied over in pieces.
class Checker {
 public:
  explicit Checker(Objects& objects)
      : objects_{objects},
        home_{objects.ordinal(0)},
        scratch_{(use_device(home_), allocate(kScratchBytes))},
        result_{allocate(sizeof(Mismatch))} {}

  void fill(const Buffer& buffer, Element type, std::uint32_t seed) {
    const std::size_t element = size_of(static_cast<DataType>(type)).count;
    use_device(home_);
    for (std::size_t done = 0; done < buffer.bytes(); done += kScratchBytes) {
      const std::size_t bytes = std::min(kScratchBytes, buffer.bytes() - done);
      cuda_check(launch_pattern_fill(cudaStreamLegacy, type, scratch_.get(), bytes / element,
                                     done / element, seed));
      cuda_check(cudaMemcpy(static_cast<std::byte*>(buffer.data()) + done, scratch_.get(), bytes,
                            cudaMemcpyDefault));
      cuda_check(cudaDeviceSynchronize());
    }
  }

  Mismatch compare(const Buffer& buffer, const Piece& piece) {
    const Element type = hw::element_of(piece.value.type);
    const std::size_t element = size_of(piece.value.type).count;
    const PatternSum expected = pattern_of(piece.value);
    use_device(home_);
    Mismatch mismatch{0, std::numeric_limits<unsigned long long>::max()};
    cuda_check(cudaMemcpy(result_.get(), &mismatch, sizeof mismatch, cudaMemcpyHostToDevice));
    const auto* from = static_cast<const std::byte*>(buffer.data());
    for (std::uint64_t at = piece.begin; at < piece.end; at += kScratchBytes) {
      const std::size_t bytes = std::min<std::uint64_t>(kScratchBytes, piece.end - at);
      cuda_check(cudaMemcpy(scratch_.get(), from + at, bytes, cudaMemcpyDefault));
      cuda_check(launch_compare(cudaStreamLegacy, type, scratch_.get(), bytes / element,
                                at / element, expected, static_cast<Mismatch*>(result_.get())));
      // The next piece's copy may not wait for the kernel: d2d copies are asynchronous.
      cuda_check(cudaDeviceSynchronize());
    }
    cuda_check(cudaMemcpy(&mismatch, result_.get(), sizeof mismatch, cudaMemcpyDeviceToHost));
    return mismatch;
  }

  /// One element of a buffer, as a number: element 0 compared with an expected one.
  bool holds(const Buffer& buffer, const ExpectedNumber& expected) {
    const double found = read_first(buffer, expected.type);
    return std::abs(found - expected.value) <= expected.tolerance * std::abs(expected.value);
  }

  double read_first(const Buffer& buffer, DataType type) const;

 private:
  Objects& objects_;
  int home_;
  DeviceMemory scratch_;
  DeviceMemory result_;
};

template <class T>
double read_as(const void* memory) {
  T value{};
  cuda_check(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDefault));
  return static_cast<double>(value);
}

/// IEEE half and bfloat16 by their bits: the host has no type for them in C++20.
double read_half(const void* memory, int exponent_bits, int mantissa_bits) {
  std::uint16_t bits = 0;
  cuda_check(cudaMemcpy(&bits, memory, sizeof bits, cudaMemcpyDefault));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

double Checker::read_first(const Buffer& buffer, DataType type) const {
  use_device(home_);
  switch (type) {
    case DataType::Float16:
      return read_half(buffer.data(), 5, 10);
    case DataType::BFloat16:
      return read_half(buffer.data(), 8, 7);
    case DataType::Float32:
      return read_as<float>(buffer.data());
    case DataType::Float64:
      return read_as<double>(buffer.data());
    case DataType::Int8:
      return read_as<std::int8_t>(buffer.data());
    case DataType::Int32:
      return read_as<std::int32_t>(buffer.data());
    case DataType::Int64:
      return read_as<std::int64_t>(buffer.data());
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
    case DataType::Float4E2M1:
      break;  // operands of products only
  }
  return 0;
}

/// One process's walk along its steps.
class Walk {
 public:
  Walk(const Program& program, ProcessRun& run, std::uint32_t process)
      : program_{program}, run_{run}, process_{process}, checker_{run.objects()} {}

  std::vector<std::string> follow(const std::vector<CheckStep>& steps) {
    const auto types = checked_types(program_);
    for (std::uint32_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = run_.objects().buffer(BufferId{b});
      if (buffer.holds_memory()) {
        checker_.fill(buffer, types[b], pattern_seed(process_, BufferId{b}));
      }
    }
    for (const CheckStep& step : steps) {
      issue(step);
      run_.objects().synchronize_devices();
      if (wrong_.size() < kMaxWrong) compare(step);
      run_.note_progress();
    }
    return std::move(wrong_);
  }

 private:
  void issue(const CheckStep& step) {
    if (step.calls.empty()) return;
    Context context = context_of(step.calls.front());
    context.state.phase = ThreadState::Phase::Running;
    const bool grouped = step.calls.size() > 1;
    if (grouped) begin_group(context);
    for (const CheckCall& call : step.calls) {
      context.thread = call.thread;
      context.variables = call.variables;
      context.state.begin(call.op->id, call.instance);
      std::visit(Overloaded{
                     [](const Repeat&) {},  // written out in the plan
                     [](const Region&) {},
                     [](const NcclGroup&) {},
                     [](const GraphCapture&) {},  // its operations run one by one where it launches
                     [&](const auto& op) { execute(op, context); },
                 },
                 call.op->kind);
    }
    if (grouped) end_group(context);
  }

  Context context_of(const CheckCall& call) const {
    for (const auto& thread : run_.threads()) {
      if (thread->thread() == call.thread) return thread->context();
    }
    FORETRACE_CHECK(false, "a step's thread runs in its process");
    return run_.threads().front()->context();
  }

  void compare(const CheckStep& step) {
    for (const ExpectedPiece& expected : step.pieces) {
      const Mismatch mismatch =
          checker_.compare(run_.objects().buffer(expected.buffer), expected.piece);
      if (mismatch.count > 0) {
        wrong_.push_back(fmt::format(
            "{}: wrong data: {} elements of {} differ in [{} B, {} B), the first is element {}",
            place(step), mismatch.count, name_of(expected.buffer), expected.piece.begin,
            expected.piece.end, mismatch.first_index));
      }
    }
    for (const ExpectedNumber& expected : step.numbers) {
      const Buffer& buffer = run_.objects().buffer(expected.buffer);
      if (!checker_.holds(buffer, expected)) {
        wrong_.push_back(fmt::format("{}: wrong data: {} is {}, should be {}", place(step),
                                     name_of(expected.buffer),
                                     checker_.read_first(buffer, expected.type), expected.value));
      }
    }
  }

  std::string name_of(BufferId buffer) const { return program_.buffers[buffer.value].name; }

  std::string place(const CheckStep& step) const {
    if (step.calls.empty()) return fmt::format("process {}", process_);
    const auto infos = index_ops(program_);
    return place_of(program_, infos.at(step.calls.front().op->id.value), process_);
  }

  const Program& program_;
  ProcessRun& run_;
  std::uint32_t process_;
  Checker checker_;
  std::vector<std::string> wrong_;
};

}  // namespace

DataCheck check_data(const Program& program, const Processes& processes, ProcessRun& run) {
  const CheckPlan plan = plan_check(program);
  DataCheck check;
  check.summary = summary_of(plan);
  if (!plan.possible) return check;
  const auto process = static_cast<std::uint32_t>(processes.rank());
  std::vector<std::string> mine;
  run.watched([&] {
    run.objects().before_pass();
    mine = Walk{program, run, process}.follow(plan.steps[process]);
    run.objects().after_pass();
    run.objects().fill_host_buffers();
  });
  const auto all = processes.gather(nlohmann::json(mine).dump());
  std::vector<std::string> wrong;
  for (const std::string& text : all) {
    const auto lines = nlohmann::json::parse(text).get<std::vector<std::string>>();
    wrong.insert(wrong.end(), lines.begin(), lines.end());
  }
  check.wrong = nlohmann::json::parse(processes.broadcast(nlohmann::json(wrong).dump()))
                    .get<std::vector<std::string>>();
  return check;
}

}  // namespace foretrace::hw
