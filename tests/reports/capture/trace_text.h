// Traces as PyTorch's profiler writes them, made event by event; times in microseconds.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace foretrace::test {

class TraceText {
 public:
  /// A kernel on `stream` and the call that launched it.
  TraceText& kernel(double called, double took, double begin, double lasted, int stream = 7,
                    std::string_view name = "gemm_kernel", int blocks = 64) {
    const int id = ++correlation_;
    call("cudaLaunchKernel", called, took, id);
    return event(fmt::format(
        R"("cat":"kernel","name":"{}","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"device":0,"stream":{},"correlation":{},"grid":[{},1,1]}})",
        name, stream, begin, lasted, stream, id, blocks));
  }
  TraceText& call(std::string_view name, double at, double took, int correlation = 0) {
    const int id = correlation == 0 ? ++correlation_ : correlation;
    return event(fmt::format(
        R"("cat":"cuda_runtime","name":"{}","pid":1,"tid":1,"ts":{:.3f},"dur":{:.3f},"args":{{"correlation":{}}})",
        name, at, took, id));
  }
  TraceText& step(int number, double begin, double lasted) {
    return event(fmt::format(
        R"("cat":"user_annotation","name":"ProfilerStep#{}","pid":1,"tid":1,"ts":{:.3f},"dur":{:.3f})",
        number, begin, lasted));
  }
  /// What CUPTI says of the last call.
  TraceText& waits(double at, int stream, int on_stream, int record) {
    return event(fmt::format(
        R"("cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":{0},"ts":{1:.3f},"dur":1,"args":{{"stream":{0},"wait_on_stream":{2},"wait_on_cuda_event_record_corr_id":{3},"correlation":{4}}})",
        stream, at, on_stream, record, correlation_));
  }
  TraceText& event(std::string_view members) {
    events_ += fmt::format("{}{{\"ph\":\"X\",{}}}", events_.empty() ? "" : ",\n", members);
    return *this;
  }
  TraceText& gpu(std::string_view name, int sms) {
    head_ = fmt::format(R"("deviceProperties":[{{"id":0,"name":"{}","numSms":{}}}],)", name, sms);
    return *this;
  }
  TraceText& rank(int number) {
    head_ += fmt::format(R"("distributedInfo":{{"backend":"nccl","rank":{}}},)", number);
    return *this;
  }
  int last() const { return correlation_; }
  std::string text() const { return fmt::format("{{{}\"traceEvents\":[{}]}}", head_, events_); }

 private:
  std::string head_ = R"("deviceProperties":[{"id":0,"name":"NVIDIA H200","numSms":132}],)";
  std::string events_;
  int correlation_ = 0;
};

}  // namespace foretrace::test
